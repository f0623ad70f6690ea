"""The tables and their columns."""

import difflib
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from logtool.commands import output
from logtool.commands.output import OutputSettings, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object, columns
from logtool.commands.printing.writers import TableColumn as Cell
from logtool.commands.views.rows import RowPrinter
from logtool.errors import UsageError
from logtool.exits import Exit
from logtool.running.summary import Summary
from logtool.schemas import documents, entries, tables
from logtool.schemas.columns import TABLES, Column, Kind, Payload, Table, Way
from logtool.schemas.document import Document

_WAYS = Column("ways", Kind.STRINGS, "how to get the table", words=tuple(Way))
TABLE: Final = Table("table", "table", (
    Column("table", Kind.STRING, "name of the table"),
    Column("row", Kind.STRING, "the thing that each row of the table describes, in words"),
    Column("columns", Kind.INT64, "columns of the table", "count"),
    _WAYS,
), note="A table.", type="table")  # fmt: skip
COLUMN: Final = Table("column", "column of a table", (
    Column("table", Kind.STRING, "name of the table"),
    Column("column", Kind.STRING, "name of the column"),
    Column("data_type", Kind.STRING, "type of the column", words=tuple(Kind)),
    Column("unit", Kind.STRING, "unit of its values", null="the values have no unit"),
    Column("nullable", Kind.BOOL, "whether the column may be null"),
    Column("null", Kind.STRING, "meaning of null in the column", null="the column is never null"),
    Column("values", Kind.STRINGS, "all values of the column, if there are only a few"),
    _WAYS,
    Column("payload", Kind.STRING, "the --payload level that scan and source need for the column",
           null="the column is always present",
           words=tuple(one for one in Payload if one is not Payload.NONE)),
    Column("meaning", Kind.STRING, "meaning of the column"),
), note="A column of a table.", type="column")  # fmt: skip
DOCUMENT: Final = Document(
    name="schema", title="Objects that logtool schema prints", tables=(TABLE, COLUMN)
)
SCHEMA = DOCUMENT.schema

_KNOWN = {**tables.ALL, **entries.ALL}
_LANGUAGES: Final[Mapping[str, Callable[[Table], str]]] = {
    "json-schema": lambda table: json.dumps(documents.document(table), indent=1),
    "spark-ddl": documents.spark_ddl,
}
_JOINED = Cell("ways", lambda obj: " ".join(obj["ways"]))


def _cells(table: Table) -> Columns:
    """Return all columns of a table, with the ways as words."""
    names = table.names(Way.CSV)
    return tuple(_JOINED if one.title == "ways" else one for one in columns(*names))


_FOR_PEOPLE = (
    *columns("column", "data_type", "unit"),
    Cell("null", lambda obj: obj["null"] or ""),
    _JOINED,
    *columns("payload", "meaning"),
)


def run(name: str | None, settings: OutputSettings) -> Exit:
    """Print the columns of a table, or every table without a name; return the exit status."""
    if settings.format in _LANGUAGES:
        if name is None:
            raise UsageError(f"--format {settings.format} needs a TABLE")
        output.plain(_LANGUAGES[settings.format](_find(name)))
        return Exit.OK
    table = None if name is None else _find(name)
    report = Report(settings, make(TABLE if table is None else COLUMN), Summary())
    if table is None:
        return report.consume(_KNOWN.values(), RowPrinter(report, _table_object))
    return report.consume(table.columns, RowPrinter(report, partial(_column_object, table)))


def _find(name: str) -> Table:
    if name in _KNOWN:
        return _KNOWN[name]
    near = difflib.get_close_matches(name, _KNOWN, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"expected {', '.join(_KNOWN)}"
    files = {file.stem: file for file in Path(documents.__file__).parent.glob("*.json")}
    if name in files:
        hint = f"the JSON Schema of the objects in the output of that command is {files[name]}"
    raise UsageError(f"there is no table {text.quote(name)}: {hint}")


def _table_object(table: Table) -> Object:
    return TABLE.make(
        table=table.name,
        row=f"a row for each {table.each}",
        columns=len(table.columns),
        ways=[str(way) for way in Way if way in table.ways],
    )


def _column_object(table: Table, column: Column) -> Object:
    asked = column.payload is not Payload.NONE and not TABLES.isdisjoint(table.ways)
    return COLUMN.make(
        table=table.name,
        column=column.name,
        data_type=str(column.kind),
        unit=column.unit,
        nullable=column.null is not None,
        null=column.null,
        values=column.words,
        ways=[str(way) for way in Way if way in column.ways & table.ways],
        payload=str(column.payload) if asked else None,
        meaning=column.meaning,
    )


def make(table: Table) -> View:
    """Return the view of `TABLE` or `COLUMN`."""
    cells = _cells(table)
    layout = _FOR_PEOPLE if table is COLUMN else cells
    return View(
        schema=SCHEMA,
        columns=cells,
        layout=lambda _: layout,
        row_types=frozenset({table.name}),
    )
