"""``logtool schema``: the columns of tables, with type, unit and meaning. Reads no data."""

from enum import StrEnum
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import Without, spread


class SchemaFormat(StrEnum):
    """Output formats: those of every command, and the schema in two languages."""

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
    from logtool.commands.views.schema import run

    raise typer.Exit(run(table, printing.settings(format)))
