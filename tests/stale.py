"""Finds references in documents, docstrings and comments to what is not there any more.

A reference is a dotted name such as ``logtool.verify.Level``, an option in a span of code such as
``--apply``, or the path of a file of this repository. Nothing is imported: names are looked up in
the source. ``python tests/stale.py`` prints each stale reference with its file and line.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("logtool", "commands", "formats", "tests", "man", "completions")
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "logtool/catalogue.toml")
FOREIGN = {
    "pip": {"--find-links", "--no-deps", "--prefix", "--require-hashes", "--upgrade", "--user"},
    "spark-submit": {"--conf", "--master", "--packages", "--py-files"},
    "kafka-dump-log.sh": {"--deep-iteration", "--print-data-log"},
    "kafka-consumer-groups.sh": {"--from-file", "--reset-offsets"},
}
"""Options of other programs that are spoken of."""

_NAME = re.compile(r"(?<![\w./~-])logtool((?:\.[A-Za-z_]\w*)+)(?![\w/-])")
_SPAN = re.compile(r"`+([^`\n]+)`+")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*\w")
_PATH = re.compile(
    r"(?<![\w./~*<-])(?:(?:logtool|commands|formats|tests|man|completions|\.ci|\.github)/[\w./-]*\w"
    r"|[\w/-]*\w\.(?:py|pxd|md|ini))(?![\w*/<{-])"
)
_LINK = re.compile(r"\]\(([^)#:\s]+)\)")
_STANDS_FOR_A_NAME = re.compile(r"NAME|YOUR|FILE|\bX\b|\bone\.py")


@dataclass(frozen=True)
class Stale:
    """A reference to what is not there."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what} is not there"


class Project:
    """The names, options and files of a checkout.

    Args:
        root: the folder of the sources.
        options: every option of a command line, with its dashes.
    """

    def __init__(self, root: Path, options: Iterable[str]) -> None:
        self.root = root
        self.options = set(options)
        self._files = {
            path.relative_to(root).as_posix()
            for folder in FOLDERS
            for path in (root / folder).rglob("*")
            if "__pycache__" not in path.parts
        }

    def stale(self, where: str, text: Iterable[tuple[int, str]]) -> Iterator[Stale]:
        """Yield each stale reference in lines that come with their numbers."""
        for number, line in text:
            for what in (*self._names(line), *self._options(line), *self._paths(where, line)):
                yield Stale(where, number, what)

    def _names(self, line: str) -> Iterator[str]:
        for match in _NAME.finditer(line):
            if not self.has_name(match[1].strip(".").split(".")):
                yield match[0]

    def _options(self, line: str) -> Iterator[str]:
        for match in _SPAN.finditer(line):
            if match[1].startswith(("--", "logtool ")):
                yield from (one for one in _OPTION.findall(match[1]) if one not in self.options)

    def _paths(self, where: str, line: str) -> Iterator[str]:
        yield from (
            one for one in _PATH.findall(line)
            if not self.has_path(one) and not _STANDS_FOR_A_NAME.search(one)
        )  # fmt: skip
        if where.endswith(".md"):
            home = (self.root / where).parent
            yield from (one for one in _LINK.findall(line) if not (home / one).exists())

    def has_path(self, text: str) -> bool:
        """Return whether a file or folder is called so, or ends with that name."""
        if text.startswith("build/") or text.endswith((".c", ".so")):
            return True  # made, not kept
        if (self.root / text).exists():
            return True
        return any(path.endswith(f"/{text}") for path in self._files)

    def has_name(self, parts: list[str]) -> bool:
        """Return whether ``logtool`` has a module, and in it a name, by this path."""
        home = self.root / "logtool"
        while parts and (home / parts[0]).is_dir():
            home, parts = home / parts[0], parts[1:]
        if not parts:
            return True
        module = home / f"{parts[0]}.py"
        if module.is_file():
            parts = parts[1:]
        else:
            module = home / "__init__.py"
        return not parts or (module.is_file() and _defines(module, tuple(parts[:2])))


@cache
def _tree(module: Path) -> ast.Module:
    return ast.parse(module.read_text("utf-8"))


def _defines(module: Path, names: tuple[str, ...]) -> bool:
    """Return whether a module defines or imports a name, and that a name if it is a class."""
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ClassDef) and node.name == names[0]:
            return len(names) == 1 or names[1] in set(_bound(node.body))
    return names[0] in set(_bound(_tree(module).body))


def _bound(body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
                for inner in ast.walk(node):  # attributes that a method sets
                    if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
                        yield inner.attr
            case ast.Import() | ast.ImportFrom():
                yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
            case ast.If() | ast.Try() | ast.With():
                yield from _bound([*node.body, *getattr(node, "orelse", ())])
            case _:
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                        yield inner.id


def prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of the comments and docstrings of Python source."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str):
                yield from enumerate(text.splitlines(), node.lineno)


def defined_options(source: str) -> set[str]:
    """Return the options that a program takes by `argparse`, or by hand: all texts like one."""
    return {
        node.value for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        and _OPTION.fullmatch(node.value)
    }  # fmt: skip


def all_stale(root: Path = ROOT) -> list[Stale]:
    """Return the stale references of the documents and sources of a checkout."""
    sources = sorted(
        path for folder in ("commands", "formats", "logtool", "tests")
        for path in (root / folder).rglob("*.py") if "__pycache__" not in path.parts
    )  # fmt: skip
    texts = {path: path.read_text("utf-8") for path in sources}
    options = {"--help", "--version"}.union(*FOREIGN.values())
    completions = (root / "completions" / "logtool.fish").read_text("utf-8")
    options |= {f"--{name}" for name in re.findall(r"-l ([a-z][a-z0-9-]+)", completions)}
    for path, text in texts.items():
        if (root / "tests") in path.parents and not path.name.startswith("test_"):
            options |= defined_options(text)
    project = Project(root, options)
    found = []
    for name in (*DOCUMENTS, *(f"man/{path.name}" for path in sorted((root / "man").glob("*.md")))):
        lines = (root / name).read_text("utf-8").splitlines()
        found += project.stale(name, enumerate(lines, 1))
    for path, text in texts.items():
        found += project.stale(path.relative_to(root).as_posix(), prose(text))
    return sorted(set(found), key=lambda one: (one.path, one.line, one.what))


if __name__ == "__main__":
    every = all_stale()
    print(*every, sep="\n")
    sys.exit(1 if every else 0)
