"""The tables of what is printed, against the classes whose objects are their rows."""

import ast
import inspect
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, get_args

import pytest

from logtool.commands.program.printed import documents_printed
from logtool.schemas.columns import Table
from logtool.schemas.document import Document
from logtool.schemas.journal import JOURNAL
from logtool.schemas.printed import ERROR, SUMMARY
from logtool.schemas.tables import FINDING

DOCUMENTS = list(documents_printed())


def tables() -> dict[str, Table]:
    """Return every table that is made from a class, by a name for it."""
    found = [table for document in DOCUMENTS for table in document.tables]
    found += [ERROR, SUMMARY, FINDING, *JOURNAL.tables]
    found += [part for table in found for part in table.parts()]
    return {f"{one.made_from}-{one.name}": one for one in found if one.made_from}


def class_of(name: str) -> type:
    module, _, qualified = name.partition(":")
    found: Any = import_module(module)
    for part in qualified.split("."):
        found = getattr(found, part)
    assert isinstance(found, type)
    return found


def names_in(module: str) -> dict[str, Any]:
    """Return the names of a module, with those that it imports for type checkers only."""
    found = dict(vars(sys.modules[module]))
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            exec(compile(ast.Module(node.body, []), module, "exec"), found)
    return found


def types_of(cls: type, name: str) -> Iterator[type]:
    """Yield the types that an attribute may have, but for None; AssertionError without it."""
    for base in cls.__mro__:
        annotation = inspect.get_annotations(base).get(name)
        attribute = base.__dict__.get(name)
        function = getattr(attribute, "fget", None) or getattr(attribute, "func", None)
        if function:
            annotation = function.__annotations__["return"]
        if annotation is not None:
            if isinstance(annotation, str):
                annotation = eval(annotation, names_in(base.__module__))
            is_union = isinstance(annotation, UnionType)
            parts = get_args(annotation) if is_union else (annotation,)
            yield from (part for part in parts if part is not NoneType)
            return
    raise AssertionError(f"{cls.__qualname__} has no attribute {name}")


def types_at(cls: type, path: str) -> Iterator[type]:
    """Yield the types at a path of attributes with dots; AssertionError without one of them."""
    first, _, rest = path.partition(".")
    for one in types_of(cls, first):
        yield from types_at(one, rest) if rest else (one,)


@pytest.mark.parametrize("name", tables())
def test_every_attribute_of_a_table_exists(name: str) -> None:
    table = tables()[name]
    cls = class_of(table.made_from)
    for column in table.columns:
        assert list(types_at(cls, column.value or column.name))


def test_an_attribute_that_does_not_exist_is_found() -> None:
    for path in ("no_such", "loss.no_such"):
        with pytest.raises(AssertionError):
            list(types_at(class_of("logtool.actions:Action"), path))


@pytest.mark.parametrize("name", tables())
def test_a_part_is_made_from_the_class_of_its_attribute(name: str) -> None:
    table = tables()[name]
    for column in table.columns:
        if column.of and column.of.made_from and not column.many:
            found = list(types_at(class_of(table.made_from), column.value or column.name))
            if column.by_name:
                found = [part for one in found for part in get_args(one)[1:]]
            assert class_of(column.of.made_from) in found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: one.name)
def test_the_objects_of_a_document_have_names_of_their_own(document: Document) -> None:
    names = [table.name for table in document.tables]
    parts = {part.name: part for table in document.tables for part in table.parts()}
    assert len(set(names)) == len(names)
    assert not parts.keys() & {*names, "document", "error", "summary"}
    for table in document.tables:
        assert table.type
        assert all(part is parts[part.name] for part in table.parts())
        assert [column.name for column in table.columns if not column.meaning] == []
        assert len({column.name for column in table.columns}) == len(table.columns)


def test_a_row_has_every_column_and_nothing_else() -> None:
    with pytest.raises(TypeError):
        ERROR.make(path="x", position=None)
    obj = ERROR.make(path="x", position=None, length=None, reason="unreadable", message="gone")
    assert list(obj) == ["type", *(column.name for column in ERROR.columns)]


def test_dataclasses_are_what_tables_are_made_from() -> None:
    assert all(is_dataclass(class_of(table.made_from)) for table in tables().values())
    assert fields(class_of(SUMMARY.made_from))
