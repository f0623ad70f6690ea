"""``logtool checkpoint``: the small text files next to the logs. Writes only with --apply."""

from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.lazy_group import help_text, new_app
from logtool.commands.program.spread import Without, spread
from logtool.findings import Severity
from logtool.lazy_dataclass import dataclass

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
    """Options of the report on the part of each log that is not flushed."""

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
    from logtool.commands.views.checkpoint_show import run

    status = run(
        inputs, printing,
        unflushed=not_flushed.unflushed, max_unflushed=not_flushed.max_unflushed,
        segment_bytes=not_flushed.segment_bytes, now=not_flushed.now,
    )  # fmt: skip
    raise typer.Exit(status)


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
    from logtool.commands.views.checkpoint_rebuild import run

    status = run(inputs, running, printing, target=target, apply=apply, undo_dir=undo_dir)
    raise typer.Exit(status)


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
    from logtool.commands.views.checkpoint_set import run

    status = run(
        file, printing, row=row, offset=offset, delete=delete, apply=apply, undo_dir=undo_dir
    )
    raise typer.Exit(status)


app = new_app(help=help_text(checkpoint))
for _name, _function in (("show", show), ("lint", lint), ("rebuild", rebuild), ("set", set_row)):
    app.command(_name, help=help_text(_function))(_function)
