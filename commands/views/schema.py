"""The view of tables and their columns."""

from typing import Final

from logtool.commands.output import View
from logtool.commands.printing.writers import Column as Cell
from logtool.commands.printing.writers import Columns, columns
from logtool.schemas.columns import Column, Kind, Payload, Table, Way
from logtool.schemas.document import Document

_WAYS = Column("ways", Kind.STRINGS, "how it is to be had", words=tuple(Way))
TABLE: Final = Table("table", "table", (
    Column("table", Kind.STRING, "name of the table"),
    Column("row", Kind.STRING, "things for each of which the table has a row, in words"),
    Column("columns", Kind.INT64, "columns of the table", "count"),
    _WAYS,
), note="A table.", type="table")  # fmt: skip
COLUMN: Final = Table("column", "column of a table", (
    Column("table", Kind.STRING, "name of the table"),
    Column("column", Kind.STRING, "name of the column"),
    Column("data_type", Kind.STRING, "type of the column", words=tuple(Kind)),
    Column("unit", Kind.STRING, "unit of its values", null="they have none"),
    Column("nullable", Kind.BOOL, "whether it may be null"),
    Column("null", Kind.STRING, "meaning of null in the column", null="the column is never null"),
    Column("values", Kind.STRINGS, "every value that it takes, where these are few"),
    _WAYS,
    Column("payload", Kind.STRING, "how much of keys and values scan and source must be asked for "
           "to have it", null="it is there in any case",
           words=tuple(one for one in Payload if one is not Payload.NONE)),
    Column("meaning", Kind.STRING, "meaning of the column"),
), note="A column of a table.", type="column")  # fmt: skip
DOCUMENT: Final = Document(
    name="schema", title="What logtool schema prints", tables=(TABLE, COLUMN)
)
SCHEMA = DOCUMENT.schema

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
