"""``logtool checkpoint``: the small text files beside the logs. Writes only with --apply."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.commands.program import parsing
from logtool.commands.program.lazy_group import help_text, new_app
from logtool.commands.program.spread import Without, spread
from logtool.disk import shell
from logtool.errors import UsageError
from logtool.findings import Severity
from logtool.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from logtool.checkpoints.view import Wanted
    from logtool.commands.output import Report
    from logtool.commands.views.checkpoint import NotFlushed as Total
    from logtool.log.selection import Selection

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="A checkpoint.", show_default=False, parser=options.local_path
    ),
]
Target = Annotated[
    Path | None,
    typer.Argument(
        metavar="PATH",
        help="A log dir, a partition dir or a checkpoint; by default the current directory.",
        show_default=False,
        parser=options.local_path,
    ),
]
Row = Annotated[
    str | None,
    typer.Argument(
        metavar="[ROW]",
        help="TOPIC-PARTITION, such as orders-0; in leader-epoch-checkpoint, the epoch.",
        show_default=False,
    ),
]
Offset = Annotated[
    str | None, typer.Argument(metavar="[OFFSET]", help="The new offset.", show_default=False)
]
Delete = Annotated[bool, typer.Option("--delete", help="Remove the row; without ROW, the file.")]


@dataclass(frozen=True, slots=True)
class NotFlushed:
    """What is to be said of the part of each log that is not flushed."""

    unflushed: Annotated[
        bool,
        typer.Option(
            "--unflushed",
            help="Read the logs from their recovery points on, and show how many bytes and records "
            "are not known to be flushed, since when, and what a start after a kill reads.",
        ),
    ] = False
    max_unflushed: Annotated[
        str | None,
        typer.Option(
            "--max-unflushed",
            metavar="SIZE",
            help="The same, with exit status 1 where a partition has more than SIZE, such as 1G, "
            "that is not flushed.",
        ),
    ] = None
    segment_bytes: Annotated[
        str | None,
        typer.Option(
            "--segment-bytes",
            metavar="SIZE",
            help="The same, with what a start would read if segments were of SIZE, such as 128M.",
        ),
    ] = None
    now: Annotated[
        str | None,
        typer.Option(
            "--now",
            metavar="TIME",
            help="Ages are counted to TIME, such as 2026-11-22T10:30:00Z; by default to this "
            "moment.",
        ),
    ] = None

    def wanted(self) -> "tuple[Wanted | None, str | None]":
        """Return what is asked for, and the line that says which time is meant by --now.

        None where nothing is asked for; UsageError for what makes no sense.
        """
        from logtool.checkpoints.view import Wanted

        if not (self.unflushed or self.max_unflushed or self.segment_bytes):
            if self.now:
                raise UsageError("--now is for --unflushed")
            return None, None
        now_ms, told = parsing.now_ms(), None
        if self.now is not None:
            now_ms, told = parsing.parse_moment("--now", self.now)
        return Wanted(now_ms, _size("--segment-bytes", self.segment_bytes)), told

    def total(self) -> "Total":
        """Return what adds it up."""
        from logtool.commands.views.checkpoint import NotFlushed as Total

        limit = _size("--max-unflushed", self.max_unflushed)
        return Total(limit, _size("--segment-bytes", self.segment_bytes))


def _size(option: str, text: str | None) -> int | None:
    return None if text is None else parsing.parse_size(option, text)


Chosen = Annotated[options.LocalInputs, Without("paths", "files_from", "null", "broker_config")]


def checkpoint() -> None:
    """Show, check, mend and change the checkpoints of a log dir.

    These are recovery-point-offset-checkpoint, replication-offset-checkpoint (high watermarks),
    log-start-offset-checkpoint, cleaner-offset-checkpoint, and the leader-epoch-checkpoint of each
    partition.
    """


@spread
def show(
    *,
    inputs: options.LocalInputs,
    not_flushed: NotFlushed,
    printing: options.StillPrinting,
) -> None:
    """Print the offsets of partitions, side by side.

    For a log dir, prints a line for each partition, with its recovery point, high watermark, log
    start, cleaner offset and last leader epoch. A partition without a directory is gone. For a
    partition dir, prints the leader epochs. A file to which recovery points were appended, one
    'topic partition offset' on a line, as KAFKA-615 first had it, is told by its first line; the
    last entry of a partition counts, and one that was not written whole does not.

    With --unflushed, prints what of each log in a log dir lies behind its recovery point: a power
    failure may take it, and a start after a kill reads it again, from the first byte of the segment
    that holds the recovery point. What --segment-bytes says is an estimate: it lets segments of
    that size begin where the log on disk does. Tables say sizes and ages in words, and a narrow one
    leaves columns out that --wide shows; CSV, TSV and JSON have bytes and milliseconds.

    Examples:
      logtool checkpoint show /var/lib/kafka/data
      logtool checkpoint show --max-unflushed 1G --segment-bytes 128M /var/lib/kafka/data
      logtool checkpoint show /var/lib/kafka/data/orders-0
      logtool checkpoint show -f csv /var/lib/kafka/data > offsets.csv

    Exit status:
      0    everything was printed
      1    a file has lines that a broker cannot read, or a partition has more than --max-unflushed
      2
      4    some input could not be read, or nothing matched
      130

    """
    from logtool.commands.output import Report
    from logtool.commands.views import checkpoint as checkpoint_views
    from logtool.running.summary import ActionSummary

    settings = printing.settings()
    given, total, (wanted, told) = inputs.resolved(), not_flushed.total(), not_flushed.wanted()
    view = checkpoint_views.of_rows(unflushed=wanted is not None)
    summary = ActionSummary()
    report = Report(settings=settings, view=view, summary=summary, inputs=given)
    if told:
        report.note(told)
    with report:
        for path in given.paths:
            _show(path, given.selection, wanted, report, total)
        summary.to_do = bool(total.over)
    for line in total.lines() if wanted else ():
        report.note(line)
    raise typer.Exit(report.exit_status())


def _show(
    path: Path,
    selection: "Selection",
    wanted: "Wanted | None",
    report: "Report",
    total: "Total",
) -> None:
    """Print what one path holds, and add what is not flushed to the total."""
    from logtool.checkpoints.view import PartitionRow, show
    from logtool.commands.views.checkpoint import DOCUMENT
    from logtool.errors import UnreadableError
    from logtool.findings import Finding

    shown = False
    try:
        for item in show(path, selection, wanted):
            if isinstance(item, str):
                report.note(item)
            elif isinstance(item, UnreadableError):
                report.unreadable(item)
            elif isinstance(item, Finding):
                report.summary.add(item)
                report.note(f"{item.path}: {item.message}", str(item.severity))
            else:
                # Of a partition dir the rows are epochs, all of one partition.
                is_partition = isinstance(item, PartitionRow)
                report.summary.partitions += is_partition or not shown
                shown = True
                obj = DOCUMENT.row(item)
                report.item(obj)
                if wanted and is_partition:
                    total.add(obj)
    except UnreadableError as error:
        report.unreadable(error)


@spread
def lint(
    *,
    inputs: options.LocalInputs,
    fail_on: options.FailOn = Severity.WARNING,
    printing: options.StillPrinting,
) -> None:
    """Check the small text files of log dirs.

    Compares their offsets with the ends of the logs, and reports what 'logtool verify' would
    report. Whether the leader epochs are those of the batches is checked only by 'logtool verify'
    and 'logtool checkpoint rebuild'.

    Examples:
      logtool checkpoint lint /var/lib/kafka/data
      logtool checkpoint lint /var/lib/kafka/data/recovery-point-offset-checkpoint

    Exit status:
      0    nothing found at or above --fail-on
      1    findings at or above --fail-on
      2
      4    some input could not be read, or nothing matched
      130

    """
    from logtool.commands.views.checkpoint_lint import run

    raise typer.Exit(run(inputs, fail_on, printing))


@spread
def rebuild(
    *,
    target: Target = None,
    inputs: Chosen,
    apply: options.Apply = False,
    undo_dir: options.UndoDir = None,
    running: Annotated[options.Running, Without("max_duration")],
    printing: options.StillPrinting,
) -> None:
    """Mend checkpoints by what the logs hold.

    Prints the difference that this makes; with --apply, makes it.

    Rebuilds leader epochs from the batches. Rows that no batch contradicts stay: epochs in which
    nothing was written, and starts that compaction has removed from the log.

    Of the other checkpoints, rows change only where no broker could mean them: a recovery point
    beyond the end of the log comes down to it and never rises; a high watermark comes to lie within
    the log; a log start beyond the end becomes the end; a cleaner offset outside of the log becomes
    its start. Rows of partitions that are not there are removed. No row is added, since a missing
    row is always safe.

    To rebuild one checkpoint, give that file; then only the logs that it needs are read.

    Examples:
      logtool checkpoint rebuild /var/lib/kafka/data
      logtool checkpoint rebuild /var/lib/kafka/data/orders-0 --apply
      logtool checkpoint rebuild /var/lib/kafka/data/recovery-point-offset-checkpoint

    Exit status:
      0    nothing is to be done, or with --apply, it was done
      1    something is to be done
      2
      4    some input could not be read, or nothing matched; nothing was written
      5    refused: a broker holds the log dir, or a file changed meanwhile
      130

    """
    from logtool.checkpoints.rebuild import Rebuild
    from logtool.commands.views.checkpoint import Job
    from logtool.errors import UnreadableError
    from logtool.log.inputs import GivenPaths
    from logtool.running.budget import Budget
    from logtool.running.run import Run
    from logtool.running.summary import ActionSummary

    settings = printing.settings()
    path = target or parsing.here()
    given = GivenPaths([path], inputs.selection)
    summary = ActionSummary()
    job = Job(
        settings=settings,
        log_dir=path,
        apply=False,
        undo_dir=undo_dir,
        command=f"logtool checkpoint rebuild --apply {shell.path(path)}",
        summary=summary,
    )
    budget = Budget(running.threads, running.pace())
    try:
        found = Rebuild(
            path=path, selection=given.selection, run=Run(budget=budget), summary=summary
        )
    except UnreadableError as error:
        problems = [error]
        raise typer.Exit(job.run(lambda: problems)) from error
    job = replace(job, log_dir=found.log_dir, apply=apply, inputs=given)
    raise typer.Exit(job.run(lambda: found))


@spread
def set_row(
    *,
    file: File,
    row: Row = None,
    offset: Offset = None,
    delete: Delete = False,
    apply: options.Apply = False,
    undo_dir: options.UndoDir = None,
    printing: options.StillPrinting,
) -> None:
    """Set or remove one row of a checkpoint.

    Prints the difference that this makes; with --apply, makes it. The new offset is not compared
    with the log; 'logtool checkpoint lint' does that afterwards.

    Removing a partition's recovery point makes a broker read its whole log at the next start, and
    removing the file does so for all of them; but only if the start is an unclean one, so remove
    .kafka_cleanshutdown too. The file of the leader epochs takes an epoch for ROW.

    Examples:
      logtool checkpoint set data/recovery-point-offset-checkpoint orders-0 --delete --apply
      logtool checkpoint set data/.kafka_cleanshutdown --delete --apply
      logtool checkpoint set data/log-start-offset-checkpoint orders-0 4711
      logtool checkpoint set data/orders-0/leader-epoch-checkpoint 7 4711

    Exit status:
      0    it is so already, or there is no such row or file to remove, or with --apply, it was
           done
      1    it is to be done
      2
      4    the file could not be read
      5    refused: a broker holds the log dir, or cannot read the file as it is
      130

    """
    from logtool.checkpoints.carry_out import log_dir_of
    from logtool.checkpoints.edit import Edit, remove, set_row
    from logtool.commands.views.checkpoint import Job

    settings = printing.settings()
    if delete == (offset is not None) or (row is None and not delete):
        raise UsageError("give ROW and OFFSET, or ROW and --delete, or --delete alone")

    def edits() -> list[Edit]:
        edit = remove(file) if row is None else set_row(file, row, offset)
        return [edit] if edit else []

    words = [word for word in (row, offset) if word]
    options_given = "--apply --delete" if delete else "--apply"
    command = f"logtool checkpoint set {options_given} {shell.path(file)} {_arguments(words)}"
    job = Job(
        settings=settings,
        log_dir=log_dir_of(file),
        apply=apply,
        undo_dir=undo_dir,
        command=command.strip(),
    )
    if delete:
        missing = f"{file} is not there" if row is None else f"{file} has no row of {row}"
        job = replace(job, unchanged=f"{missing}; nothing to change")
    raise typer.Exit(job.run(edits))


def _arguments(words: list[str]) -> str:
    """Return the words behind a path, also those that look like options."""
    dashed = any(word.startswith("-") for word in words)
    return shell.join(["--", *words] if dashed else words)


app = new_app(help=help_text(checkpoint))
for _name, _function in (("show", show), ("lint", lint), ("rebuild", rebuild), ("set", set_row)):
    app.command(_name, help=help_text(_function))(_function)
