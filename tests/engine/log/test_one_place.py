"""Rules about the code as a whole: what has one place, and what there are few of."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import logtool
from logtool.log import records

ROOT = Path(logtool.__file__).parent
DECODERS = {
    "compression": {"decompress", "snappy_block_into"},
    "record": {"parse", "parse_slices"},
    "legacy_batch": {"parse_messages"},
}
"""By module of formats, what only `logtool.log.records` may use."""
FLAVOURS = {"KAFKA", "REDPANDA"}
MOST_COMPARISONS = 20
"""Comparisons of a flavour above `logtool.log`: what differs is better asked of the flavour."""
MOST_LINES = 450
KERNELS = {"formats/_kernels.py", "formats/_rendering.py"}
"""The modules that are compiled as one, and may be longer."""
MOST_LATE_IMPORTS = 113
"""Imports inside functions: of optional packages, and of modules that few runs need. The view of a
command does not count: each is imported when its command runs."""


def modules(*but: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the modules of the product with their trees, without those below some folders."""
    folders = (ROOT.parent / "commands", ROOT.parent / "formats", ROOT)
    files = {file.resolve() for folder in folders for file in folder.rglob("*.py")}
    for path in sorted(files):
        if not any(path.is_relative_to(folder) for folder in but):
            yield path, _tree(path)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def test_no_other_module_decodes_records() -> None:
    found = set()
    # A case file rewrites compressed streams, and tries whether they are read as before.
    but = ROOT.parent / "formats", Path(records.__file__).resolve(), ROOT / "case"
    for path, tree in modules(*but):
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                module = node.value.id if isinstance(node.value, ast.Name) else ""
                used = {node.attr}
            elif isinstance(node, ast.ImportFrom):
                module = (node.module or "").rpartition(".")[2]
                used = {name.name for name in node.names}
            else:
                continue
            if used & DECODERS.get(module, set()):
                found.add(f"{path.name}:{node.lineno}")
    assert found == set()


def is_flavour(node: ast.expr) -> bool:
    """Return whether an expression is one of the flavours, or the name of one."""
    if isinstance(node, ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        return node.attr in FLAVOURS and owner in ("FlavourName", "kafka", "redpanda")
    return isinstance(node, ast.Name) and node.id in FLAVOURS


def test_few_modules_ask_for_the_flavour() -> None:
    found = [
        f"{path.relative_to(ROOT.parent)}:{node.lineno}"
        for path, tree in modules(ROOT.parent / "formats", ROOT / "log")
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) and any(map(is_flavour, (node.left, *node.comparators)))
    ]
    assert 0 < len(found) <= MOST_COMPARISONS, found


def is_view_of_command(path: Path, node: ast.Import | ast.ImportFrom) -> bool:
    """Return whether a command imports its view, which each does when it runs."""
    module = node.module if isinstance(node, ast.ImportFrom) else None
    return path.parent.name == "commands" and (module or "").startswith("logtool.commands.views")


def test_few_imports_stand_in_functions() -> None:
    found = {
        f"{path.relative_to(ROOT.parent)}:{node.lineno}"
        for path, tree in modules()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom) and not is_view_of_command(path, node)
    }
    assert 0 < len(found) <= MOST_LATE_IMPORTS, sorted(found)


def test_nothing_is_named_by_the_question_whether_it_is_of_redpanda() -> None:
    found = {
        f"{path.name}:{name}"
        for path, tree in modules()
        for node in ast.walk(tree)
        for name in (getattr(node, field, None) for field in ("id", "attr", "arg", "name"))
        if isinstance(name, str) and "is_redpanda" in name
    }
    assert found == set()


def test_a_class_name_has_one_definition() -> None:
    places: dict[str, list[str]] = {}
    for path, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT.parent)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_module_is_long_but_the_kernels() -> None:
    found = {path for path, _ in modules() if path.read_text().count("\n") > MOST_LINES}
    assert {str(path.relative_to(ROOT.parent)) for path in found} == KERNELS


def listed_modules(text: str) -> set[str]:
    """Return the names that the docstring of a package lists, each before two blanks or more."""
    return set(re.findall(r"^ *([a-z][a-z_0-9]*) {2,}\S", text, re.MULTILINE))


def test_the_docstring_of_a_package_lists_its_modules() -> None:
    checked = {}
    for path, tree in modules():
        listed = listed_modules(ast.get_docstring(tree) or "") if path.stem == "__init__" else set()
        if listed:
            others = {one.name for one in path.parent.iterdir() if (one / "__init__.py").exists()}
            there = {one.stem for one in path.parent.glob("*.py")} - {"__init__"} | others
            checked[path.parent.name] = there ^ listed
    assert len(checked) > 15
    assert {name: wrong for name, wrong in checked.items() if wrong} == {}
