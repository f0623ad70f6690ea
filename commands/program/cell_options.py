"""Options for the cells of rows."""

from typing import Annotated

import typer

CsvSafe = Annotated[
    bool,
    typer.Option(
        "--csv-safe",
        help="In CSV and TSV, put an apostrophe before each text that begins with =, +, -, @, a "
        "tab or a carriage return, because a spreadsheet would run it as a formula.",
    ),
]
CsvEscaped = Annotated[
    bool,
    typer.Option(
        "--csv-escaped",
        help="In CSV and TSV, write each row as one line: a backslash as \\\\, and line ends, tabs "
        "and characters that are not printable as \\n, \\x1b or \\u2028, in keys, values, headers "
        "and all other cells. TSV then has no quotes. Default: cells hold the text of the log, "
        "quoted by the rules of CSV (RFC 4180), and only output to a terminal is escaped.",
    ),
]
Fields = Annotated[
    str | None,
    typer.Option(
        "--fields",
        metavar="NAME,...",
        show_default=False,
        help="Print only rows, with these fields in this order; the names are those of JSON. "
        "Totals and lines for people stay.",
    ),
]
