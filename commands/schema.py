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
    typer.Argument(metavar="[TABLE]", help="Name of a table.", show_default=False),
]
FormatOption = Annotated[
    SchemaFormat,
    typer.Option(
        "-f",
        "--format",
        help="Format of standard output. json-schema: JSON Schema of a row; spark-ddl: "
        "columns in Spark SQL.",
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
    """Print the columns of a table: name, type, unit and meaning.

    Without a name, the command lists all tables. The tables batches, records, gaps and so on are
    written by 'logtool scan'. Tables such as offset-index, named after a kind of file, are the
    entries that 'logtool dump' prints for it. A column has the same name, type and meaning
    everywhere.

    The column "ways" shows where a column is available: ndjson, csv (and tsv) and parquet in
    'logtool dump'; scan in the tables of 'logtool scan'; history in 'logtool scan --history' and
    the table _history of each run; source in the data source of a Spark session. "payload" is the
    option value of scan and source that the column requires.

    Examples:
      logtool schema
      logtool schema batches
      logtool schema records --format spark-ddl

    Exit status:
      0    the columns were printed
      2    the table does not exist

    """
    from logtool.commands.views.schema import run

    raise typer.Exit(run(table, printing.settings(format)))
