"""Find prose that does not follow "How we write" in CONTRIBUTING.md.

``python tests/lint_prose.py PATH...`` reads Python, Markdown and TOML files. It prints each place
with its file and line, and ends with 1 if there is one that `lint_prose.toml` does not allow. That
list names a place by its file and a piece of its text, with a reason. An entry that allows nothing
is printed too.
"""

# ruff: noqa: T201
from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ALLOWED = Path(__file__).with_suffix(".toml")
FIRST_WORDS = re.compile(
    r"(?:Of|What|Whether|That|Those|Who|Whose|Which|Where|How|As|(?:Return|Yield) what)\b"
)
WORDS = re.compile(
    r"\b(?:(?i:told|tells?|telling|beside|whoever|nobody|foretell\w*|foretold|anew)"
    r"|(?:is|are) none)\b"
)
NAME = re.compile(
    r"(?:^|_)(?:told|tells?|telling|beside|whoever|nobody|foretell|foretold|anew)(?:_|$)|^_*held$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Place:
    """Piece of prose, or a name, with the line where it begins."""

    line: int
    text: str
    reason: str


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield docstrings, and the strings that stand as statements below an attribute, with lines."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield statement.lineno, text


def names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the names of functions, classes, parameters, variables and attributes, with lines."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr


def words(line: int, text: str) -> Iterator[Place]:
    """Yield the words of a text that are not used here. `line` is where the text begins, from 1."""
    for number, part in enumerate(text.split("\n"), line):
        for found in WORDS.finditer(part):
            yield Place(number, part.strip(), f"the word {found.group().lower()!r}")


def in_python(source: str) -> Iterator[Place]:
    """Yield the places in the docstrings, comments, strings and names of a module."""
    tree = ast.parse(source)
    for line, text in docstrings(tree):
        first = text.strip().split("\n")[0]
        if found := FIRST_WORDS.match(first):
            yield Place(line, first, f"a docstring begins with {found.group()!r}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield from words(node.lineno, node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from words(token.start[0], token.string)
    for line, name in names(tree):
        if NAME.search(name):
            yield Place(line, name, f"the name {name!r}")


def in_file(path: Path) -> Iterator[Place]:
    """Yield the places of one file, and of its name."""
    if NAME.search(path.stem):
        yield Place(1, path.name, f"the file name {path.name!r}")
    source = path.read_text(encoding="utf-8")
    yield from in_python(source) if path.suffix == ".py" else words(1, source)


def files(paths: list[str]) -> Iterator[Path]:
    """Yield the given files, and the Python, Markdown and TOML files below the given folders."""
    for given in map(Path, paths):
        found = given.rglob("*") if given.is_dir() else (given,)
        yield from sorted(
            path for path in found if path.suffix in {".py", ".md", ".toml"} and path.is_file()
        )


def main(paths: list[str]) -> int:
    """Check the files, print the places that are not allowed, and return the exit status."""
    allowed = {
        (entry["file"], entry["text"]) for entry in tomllib.loads(ALLOWED.read_text())["allowed"]
    }
    unused = set(allowed)
    count = 0
    for path in files(paths):
        for place in in_file(path):
            entries = {
                entry
                for entry in allowed
                if path.as_posix().endswith(entry[0]) and entry[1] in place.text
            }
            unused -= entries
            if not entries:
                print(f"{path}:{place.line}: {place.reason}: {place.text[:100]}")
                count += 1
    for file, text in sorted(unused):
        print(f"{ALLOWED.name}: nothing in {file} needs the entry {text!r}")
    return 1 if count or unused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
