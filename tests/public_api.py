"""The public names of logtool with their signatures, one a line.

`python tests/public_api.py` writes ``public_api.txt``, which a test compares: a line that changes
or goes is a change of the public library, for the changelog.
"""

import ast
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import logtool
from logtool import formats

FILE = Path(__file__).with_suffix(".txt")
CODECS = ("parse", "encode", "check", "build")
"""The functions of a module of formats that are public."""


def lines() -> list[str]:
    """Return the lines of all public names."""
    return [*_of_package(), *_of_formats()]


def _of_package() -> Iterator[str]:
    for name in sorted(logtool.__all__):
        value = getattr(logtool, name)
        if inspect.isclass(value):
            bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
            yield f"logtool.{name}({bases})"
            yield from sorted({f"logtool.{name}.{line}" for line in _members(value)})
        elif inspect.isfunction(value):
            yield f"logtool.{_signature(_tree(value))}"
        else:
            yield f"logtool.{name}"


def _members(cls: type) -> Iterator[str]:
    """Yield attributes, properties and methods of a class and of its bases here."""
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] != "logtool":
            continue
        for node in _tree(base).body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                if not node.target.id.startswith("_"):
                    yield f"{node.target.id}: {ast.unparse(node.annotation)}"
            elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                words = [ast.unparse(one) for one in node.decorator_list]
                yield " ".join([*(f"@{word}" for word in words), _signature(node)])


def _of_formats() -> Iterator[str]:
    for found in pkgutil.walk_packages(formats.__path__, "logtool.formats."):
        if any(part.startswith("_") for part in found.name.split(".")):
            continue
        module = importlib.import_module(found.name)
        for name in CODECS:
            value = getattr(module, name, None)
            if inspect.isfunction(value) and value.__module__ == found.name:
                yield f"{found.name}.{_signature(_tree(value))}"


def _tree(value: Any) -> Any:
    return ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]


def _signature(node: ast.FunctionDef) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){returns}"


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n")
