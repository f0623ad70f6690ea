"""Find asserts that compare in their message, and count asserts that pin a sentence.

``assert a, b == c`` never looks at ``b``: each is printed with its file and line, and ends the run
with 1. An assert that compares with a literal of `WORDS` words or more pins the wording of a
message, where a code, a field or a status would not change with it: more than `MOST` of them in
all end the run with 1 too. ``python tests/lint_asserts.py [--sentences] PATH...`` prints each of
those with its file and line.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

WORDS = 5
MOST = 150
"""Number of asserts in the tests that may pin a sentence: whole screens, and few others."""


def half_asserts(source: str) -> Iterator[int]:
    """Yield the lines of asserts that compare in their message and not in what they assert."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert):
            parts = node.msg.values if isinstance(node.msg, ast.BoolOp) else [node.msg]
            if any(isinstance(part, ast.Compare) for part in parts):
                yield node.lineno


def text_of(node: ast.AST) -> str:
    """Return the literal text of a string, an f-string, a sum or a join of them, or else ''."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(text_of(value) or "x" for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return text_of(left) + text_of(right)
        case ast.Call(
            func=ast.Attribute(attr="join"), args=[ast.List(elts=parts) | ast.Tuple(elts=parts)]
        ):
            return " ".join(map(text_of, parts))
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return max(map(text_of, parts), key=count_words, default="")
    return ""


def count_words(text: str) -> int:
    """Return the number of words in which there is a letter."""
    return sum(any(map(str.isalpha, word)) for word in text.split())


def constants(tree: ast.Module) -> Mapping[str, str]:
    """Return the literal texts that the names of a module are given."""
    return {
        target.id: text_of(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def sentences(source: str) -> Iterator[int]:
    """Yield the lines of asserts and of ``match=`` with a literal of `WORDS` words or more."""
    tree = ast.parse(source)
    named = constants(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=test):
                inside = [test]
            case ast.Call(keywords=keywords):
                inside = [keyword.value for keyword in keywords if keyword.arg == "match"]
            case _:
                continue
        parts = [part for expression in inside for part in ast.walk(expression)]
        texts = (
            named.get(part.id, "") if isinstance(part, ast.Name) else text_of(part)
            for part in parts
        )
        if any(count_words(text) >= WORDS for text in texts):
            yield node.lineno


def main(arguments: list[str]) -> int:
    """Check the Python files below the paths, and return the exit status."""
    show = "--sentences" in arguments
    halves = pinned = 0
    for path in sorted(
        file for given in arguments if given[0] != "-" for file in Path(given).rglob("*.py")
    ):
        source = path.read_text(encoding="utf-8")
        for line in half_asserts(source):
            print(f"{path}:{line}: the message of this assert is a comparison, which is never made")
            halves += 1
        for line in sentences(source):
            if show:
                print(f"{path}:{line}: this assert pins a sentence")
            pinned += 1
    print(f"{pinned} asserts pin a sentence of {WORDS} words or more; at most {MOST} may")
    return 1 if halves or pinned > MOST else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
