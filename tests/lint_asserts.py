"""Finds asserts whose message is a comparison: ``assert a, b == c`` never looks at ``b``.

``python tests/lint_asserts.py PATH...`` prints each with its file and line, and then ends with 1.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path


def half_asserts(source: str) -> Iterator[int]:
    """Yield the lines of asserts that compare in their message and not in what they assert."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert):
            parts = node.msg.values if isinstance(node.msg, ast.BoolOp) else [node.msg]
            if any(isinstance(part, ast.Compare) for part in parts):
                yield node.lineno


def main(paths: list[str]) -> int:
    """Check the Python files below the paths."""
    count = 0
    for path in sorted(file for given in paths for file in Path(given).rglob("*.py")):
        for line in half_asserts(path.read_text()):
            print(f"{path}:{line}: the message of this assert is a comparison, which is never made")
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
