"""Options of commands that check logs: limits of what they print, and the file of their metrics."""

from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options

MaxFindings = Annotated[
    int | None,
    typer.Option(
        "--max-findings",
        metavar="N",
        min=0,
        help="Print at most N findings, but count all.",
    ),
]
DropCache = Annotated[
    bool,
    typer.Option(
        "--drop-cache",
        help="Drop each page from the page cache after reading. The broker then has to read "
        "it from the disk again.",
    ),
]
MetricsFile = Annotated[
    Path | None,
    typer.Option(
        "--metrics-file",
        metavar="FILE",
        parser=options.local_path,
        help="At the end, write metrics of the run to FILE, in the text format of Prometheus, for "
        "the textfile collector of node_exporter. FILE ends with .prom and lies outside of all log "
        "dirs.",
    ),
]
