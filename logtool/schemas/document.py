"""A document: the objects that a command prints, or the lines of a file, by their tables."""

from functools import cached_property
from typing import Any

from logtool.lazy_dataclass import dataclass
from logtool.schemas.columns import Table


@dataclass(frozen=True)
class Document:
    """The objects that one command prints, or several commands with the same schema."""

    name: str
    """The name of the file, and of the schema: ``logtool.NAME/VERSION``."""
    title: str
    tables: tuple[Table, ...]
    """The types of object that are printed, but for errors and the summary."""
    version: int = 1

    @property
    def schema(self) -> str:
        """Return the value of ``schema`` in the first line of the output."""
        return f"logtool.{self.name}/{self.version}"

    def row(self, obj: object) -> dict[str, Any]:
        """Return the JSON object of an object of the engine, by the table of its class; KeyError.

        Where one class has several tables here, the caller takes `Table.row` of the right one.
        """
        kind = type(obj)
        return self._by_class[f"{kind.__module__}:{kind.__qualname__}"].row(obj)

    @cached_property
    def _by_class(self) -> dict[str, Table]:
        return {table.made_from: table for table in self.tables if table.made_from}


@dataclass(frozen=True)
class LinesFile:
    """A file of lines that logtool writes for itself and reads again; each line is an object."""

    name: str
    """The name of the file of its JSON Schema."""
    title: str
    note: str
    """The order of the lines."""
    tables: tuple[Table, ...]
    """The types of line."""
    version: int = 1
