"""Options of commands that check logs: limits of what they print, and the file of their metrics."""

from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.findings import Severity
from logtool.lazy_dataclass import dataclass

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


@dataclass(frozen=True, slots=True)
class FindingOptions:
    """Options for the findings of a check."""

    fail_on: options.FailOn = Severity.WARNING
    max_findings: Annotated[
        int | None,
        typer.Option(
            "--max-findings",
            metavar="N",
            min=0,
            help="Print at most N findings, but count all.",
        ),
    ] = None
    metrics_file: MetricsFile = None
