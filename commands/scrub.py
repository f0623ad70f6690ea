"""``logtool scrub``: check every segment once in a cycle, a share each night."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import check_options, parsing
from logtool.commands.program.spread import spread
from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass

CYCLE = "30d"


@dataclass(frozen=True, slots=True)
class ScrubDirs(options.AnyLocalInputs):
    """Arguments for the directories to check: DIR in place of PATH."""

    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR...",
            help="Log dirs or partition dirs, also of several brokers. Default: the log dirs in "
            "--broker-config, otherwise the current directory.",
            show_default=False,
        ),
    ] = None


class ScrubLevel(StrEnum):
    """Depth of the checks; see `logtool.verify.Level`."""

    BATCHES = "batches"
    RECORDS = "records"


StateFile = Annotated[
    Path,
    typer.Option(
        "--state",
        metavar="FILE",
        parser=options.local_path,
        help="File that keeps, from run to run, when each segment was checked and what was found. "
        "It is made by the first run, outside of all log dirs.",
    ),
]
Cycle = Annotated[
    str | None,
    typer.Option(
        "--cycle",
        metavar="TIME",
        help=f"Time in which every segment is checked once. Default: {CYCLE}; with --status that "
        "of the last run.",
    ),
]
Level = Annotated[
    ScrubLevel,
    typer.Option(
        "--level",
        help="batches: framing, CRC and order of every batch, and indexes against the log; "
        "records: also the records in them.",
    ),
]
Status = Annotated[
    bool,
    typer.Option(
        "--status",
        help="Show what the state file knows, and read no log: coverage by age and topic, the "
        "last run, and the findings that are open and gone.",
    ),
]


@spread
def scrub(
    *,
    inputs: ScrubDirs,
    state: StateFile,
    cycle: Cycle = None,
    status: Status = False,
    level: Level = ScrubLevel.BATCHES,
    shown: check_options.FindingOptions,
    max_batch_memory: options.MaxBatchMemory = options.MAX_BATCH_MEMORY,
    running: options.Running,
    drop_cache: check_options.DropCache = False,
    printing: options.Printing,
) -> None:
    """Check every segment once in a cycle, a share at each run.

    Run it every night from a timer. Each run checks names, small files and checkpoints of every
    partition, as 'logtool verify' does, and the segments that are due. The state file knows when
    each segment was checked, so that a run which was stopped or killed loses nothing but its last
    moments. If time runs out inside a segment, the next run goes on there. Segments that are not
    due are not read; findings across segments are made from their last checks.

    The command writes nothing but the state file and the file of metrics, and needs no broker.

    Examples:
      logtool scrub --state /var/lib/logtool/scrub.db /var/lib/kafka/data
      logtool scrub --state scrub.db --cycle 14d --max-duration 2h --max-rate 100M /data
      logtool scrub --state scrub.db --status

    Segments that are due:

    In this order: segments whose last check found something, closed segments that are new or
    changed, segments that would be older than the cycle at the next run, and then the oldest. The
    first and the third kind are always due. Of new ones and of the oldest, a run takes one share
    each: all bytes, times the time since the last complete run (at first one day), divided by the
    cycle. What a time limit leaves stays due. A segment inside which time ran out takes nothing of
    the share, and comes after the others. An active segment is due by its age, and is new once it
    is closed. If the cleaner writes a segment again, the segment has changed.

    With --cycle 1d, a nightly run takes everything, as far as its limits allow. If one night is too
    short for that, a cycle of as many days as it takes reads no segment twice before all were read.

    Findings that are open:

    A finding is open until what it is about was checked again without it, or does not exist any
    more; then it is gone. Findings of earlier runs that are still open count for the exit status.

    Exit status:
      0    complete: nothing found at or above --fail-on, and nothing open
      1    findings at or above --fail-on, in this run or still open
      2
      4    ...; this does not mean that data is corrupt
      5    refused: --state names a file in a log dir, or another run is using the file
      6
      130  ...; the state file knows what was checked

    """
    if status:
        from logtool.commands.views.scrub_status import run as show_status

        if inputs.paths or inputs.files_from:
            raise UsageError("--status reads the state file only; it takes no DIR")
        raise typer.Exit(
            show_status(printing, state=state, cycle=cycle, level=str(level), fail_on=shown.fail_on)
        )
    from logtool.commands.views.scrub import run

    ended = run(
        inputs, running, printing,
        state=state, cycle=cycle or CYCLE, level=str(level), fail_on=shown.fail_on,
        max_findings=shown.max_findings, limit=parsing.parse_batch_memory(max_batch_memory),
        drop_cache=drop_cache, metrics_file=shown.metrics_file,
    )  # fmt: skip
    raise typer.Exit(ended)
