"""``logtool schema``: the columns of tables, with type, unit and meaning. Reads no data."""

import difflib
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.commands.output import Report
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object
from logtool.commands.program.spread import Without, spread
from logtool.commands.views import schema as views
from logtool.errors import UsageError
from logtool.running.summary import Summary

if TYPE_CHECKING:
    from logtool.schemas.columns import Table


class SchemaFormat(StrEnum):
    """As of every command, and the schema in two languages."""

    _ignore_ = "members each"
    members = vars()
    for each in options.Format:
        members[each.name] = each.value
    JSON_SCHEMA = "json-schema"
    SPARK_DDL = "spark-ddl"


_AS_TABLE = SchemaFormat(options.Format.TABLE)
Name = Annotated[
    str | None,
    typer.Argument(metavar="[TABLE]", help="The name of a table.", show_default=False),
]
FormatOption = Annotated[
    SchemaFormat,
    typer.Option(
        "-f",
        "--format",
        help="How standard output looks; json-schema is the schema of a row as JSON, spark-ddl the "
        "columns in Spark's SQL.",
        show_default=True,
    ),
]


@spread
def schema(
    *,
    table: Name = None,
    format: FormatOption = _AS_TABLE,
    printing: Annotated[options.Printing, Without("format", "progress", "quiet", "verbose")],
) -> None:
    """Print the columns of a table: name, type, unit, what null says, and the meaning.

    Without a name, lists every table. A column has one name, type and meaning wherever it is to be
    had: the ways are ndjson, csv (and tsv) and parquet of logtool dump, scan for the tables of
    logtool scan, history for scan --history and the table _history of each run, and source for the
    data source of a Spark session. Payload is how much of keys and
    values scan and source must be asked for to have the column.

    The tables batches, records, gaps and so on are those of logtool scan; offset-index and others
    with the name of a kind of file are the entries that logtool dump prints of it.

    Examples:
      logtool schema
      logtool schema batches
      logtool schema records --format spark-ddl

    Exit status:
      0    the columns were printed
      2    there is no such table

    """
    from logtool.exits import Exit

    settings = printing.settings(format)
    if format in (SchemaFormat.JSON_SCHEMA, SchemaFormat.SPARK_DDL):
        if table is None:
            raise UsageError(f"--format {format} needs a TABLE")
        _print(_find(table), format)
        raise typer.Exit(Exit.OK)
    objects = _tables() if table is None else _columns(_find(table))
    view = views.make(views.TABLE if table is None else views.COLUMN)
    with Report(settings=settings, view=view, summary=Summary()) as report:
        for obj in objects:
            report.item(obj)
    raise typer.Exit(report.exit_status())


def _print(table: "Table", format: SchemaFormat) -> None:
    import json

    from logtool.commands import output
    from logtool.schemas import documents, spark

    if format is SchemaFormat.JSON_SCHEMA:
        output.plain(json.dumps(documents.document(table), indent=1))
    else:
        output.plain(spark.ddl(table))


def _find(name: str) -> "Table":
    from logtool.schemas import entries, tables

    known = {**tables.ALL, **entries.ALL}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"expected {', '.join(known)}"
    raise UsageError(f"there is no table {text.quote(name)}: {hint}")


def _tables() -> Iterator[Object]:
    from logtool.schemas import entries, tables
    from logtool.schemas.columns import Way

    for table in (*tables.ALL.values(), *entries.ALL.values()):
        yield views.TABLE.make(
            table=table.name,
            row=f"a row for each {table.each}",
            columns=len(table.columns),
            ways=[str(way) for way in Way if way in table.ways],
        )


def _columns(table: "Table") -> Iterator[Object]:
    from logtool.schemas.columns import TABLES, Payload, Way

    for column in table.columns:
        ways = [str(way) for way in Way if way in column.ways & table.ways]
        asked = column.payload is not Payload.NONE and not TABLES.isdisjoint(table.ways)
        yield views.COLUMN.make(
            table=table.name,
            column=column.name,
            data_type=str(column.kind),
            unit=column.unit,
            nullable=column.null is not None,
            null=column.null,
            values=column.words,
            ways=ways,
            payload=str(column.payload) if asked else None,
            meaning=column.meaning,
        )
