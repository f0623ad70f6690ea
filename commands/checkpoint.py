"""``logtool checkpoint``: the small text files next to the logs. Writes only with --apply."""

from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.lazy_group import add, help_text, new_app
from logtool.commands.program.spread import Without, spread
from logtool.findings import Severity
from logtool.lazy_dataclass import dataclass

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="A checkpoint file.", show_default=False, parser=options.local_path
    ),
]
Target = Annotated[
    Path | None,
    typer.Argument(
        metavar="PATH",
        help="A log dir, a partition dir or a checkpoint file. Default: the current directory.",
        show_default=False,
        parser=options.local_path,
    ),
]
Row = Annotated[
    str | None,
    typer.Argument(
        metavar="[ROW]",
        help="TOPIC-PARTITION, for example orders-0; in leader-epoch-checkpoint, the leader epoch.",
        show_default=False,
    ),
]
Offset = Annotated[
    str | None, typer.Argument(metavar="[OFFSET]", help="The new offset.", show_default=False)
]
Delete = Annotated[
    bool, typer.Option("--delete", help="Remove the row; without ROW, remove the file.")
]


@dataclass(frozen=True, slots=True)
class NotFlushed:
    """Options of the report on the part of each log that is not flushed."""

    unflushed: Annotated[
        bool,
        typer.Option(
            "--unflushed",
            help="Read the logs from their recovery points on, and show how many bytes and "
            "records may not be flushed, since when, and what a start after a kill would "
            "read.",
        ),
    ] = False
    max_unflushed: Annotated[
        str | None,
        typer.Option(
            "--max-unflushed",
            metavar="SIZE",
            help="Like --unflushed, with exit status 1 if a partition has more than SIZE (for "
            "example 1G) that may not be flushed.",
        ),
    ] = None
    segment_bytes: Annotated[
        str | None,
        typer.Option(
            "--segment-bytes",
            metavar="SIZE",
            help="Like --unflushed, and show what a start would read with segments of SIZE (for "
            "example 128M).",
        ),
    ] = None
    now: Annotated[
        str | None,
        typer.Option(
            "--now",
            metavar="TIME",
            help="Compute ages at TIME, for example 2026-11-22T10:30:00Z. Default: now.",
        ),
    ] = None


Chosen = Annotated[options.LocalInputs, Without("paths", "files_from", "null", "broker_config")]


def checkpoint() -> None:
    """Show, check, repair and edit the checkpoint files of a log dir.

    These files are recovery-point-offset-checkpoint, replication-offset-checkpoint (high
    watermarks), log-start-offset-checkpoint and cleaner-offset-checkpoint, and
    leader-epoch-checkpoint in each partition dir.
    """


@spread
def show(
    *,
    inputs: options.LocalInputs,
    not_flushed: NotFlushed,
    printing: options.StillPrinting,
) -> None:
    """Print the offsets in the checkpoint files, one line for each partition.

    For a log dir, each line has recovery point, high watermark, log start offset, cleaner offset
    and last leader epoch of a partition; a partition in a checkpoint without a directory is gone.
    For a partition dir, the command prints the leader epochs.

    With --unflushed, the command prints the part of each log after its recovery point. A power
    failure can lose this part, and a start after a kill reads it again, from the first byte of the
    segment with the recovery point.

    Examples:
      logtool checkpoint show /var/lib/kafka/data
      logtool checkpoint show --max-unflushed 1G --segment-bytes 128M /var/lib/kafka/data
      logtool checkpoint show /var/lib/kafka/data/orders-0
      logtool checkpoint show -f csv /var/lib/kafka/data > offsets.csv

    Details:

    The result of --segment-bytes is an estimate: it assumes segments of that size, from the first
    offset of the log on disk on. Tables show rounded sizes and ages; a narrow table leaves out
    columns, which --wide shows. CSV, TSV and JSON have bytes and milliseconds.

    The first line of a file shows whether recovery points were appended to it, one 'topic partition
    offset' on each line, as in the first version of KAFKA-615. The last complete entry of a
    partition counts.

    Exit status:
      0    everything was printed
      1    a broker cannot read a line of a file, or a partition exceeds --max-unflushed
      2
      4
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
    """Check the checkpoint files of log dirs.

    The command compares the offsets in these files with the logs, and reports the same findings as
    'logtool verify'. It does not compare leader epochs with the batches; 'logtool verify' and
    'logtool checkpoint rebuild' do.

    Examples:
      logtool checkpoint lint /var/lib/kafka/data
      logtool checkpoint lint /var/lib/kafka/data/recovery-point-offset-checkpoint

    Exit status:
      0    nothing found at or above --fail-on
      1    findings at or above --fail-on
      2
      4
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
    """Repair checkpoint files from the content of the logs, and partition.metadata.

    The command prints the difference; with --apply, it also writes the files. For a single
    checkpoint file, it reads only the logs that this file needs. Leader epochs are rebuilt from the
    batches. Rows that no batch contradicts stay: epochs without records, and starts of epochs that
    compaction removed.

    In other checkpoints, a row changes only if no broker could have written it. A recovery point
    after the end of the log is lowered to the end, and never rises. A high watermark is moved into
    the log. A log start offset after the end becomes the end. A cleaner offset outside of the log
    becomes the log start offset. Rows of missing partitions are removed. No row is added, because a
    missing row is always safe.

    Examples:
      logtool checkpoint rebuild /var/lib/kafka/data
      logtool checkpoint rebuild /var/lib/kafka/data/orders-0 --apply
      logtool checkpoint rebuild /var/lib/kafka/data/recovery-point-offset-checkpoint

    Topic ids:

    A partition.metadata that a broker cannot read, or that is missing, gets the topic id from the
    metadata log in the same log dir, or from the other partitions of the topic there.

    Exit status:
      0    with --apply: done; without: nothing to do
      1    without --apply: something to do
      2
      4    ...; nothing was written
      5    refused: a broker holds the log dir, or a file changed during the run
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
    """Set or remove one row of a checkpoint file.

    The command prints the change; with --apply, it also writes the file. It does not compare the
    new offset with the log; run 'logtool checkpoint lint' afterwards. In leader-epoch-checkpoint,
    ROW is a leader epoch, and OFFSET is the start offset of the epoch.

    After an unclean shutdown, a broker recovers each log from its recovery point. To make a broker
    read the whole log of a partition at its next start, remove the row of the partition from
    recovery-point-offset-checkpoint, and remove .kafka_cleanshutdown. To make it read all logs,
    remove the whole recovery-point-offset-checkpoint and .kafka_cleanshutdown.

    Examples:
      logtool checkpoint set data/recovery-point-offset-checkpoint orders-0 --delete --apply
      logtool checkpoint set data/.kafka_cleanshutdown --delete --apply
      logtool checkpoint set data/log-start-offset-checkpoint orders-0 4711
      logtool checkpoint set data/orders-0/leader-epoch-checkpoint 7 4711

    Exit status:
      0    with --apply: done; without: nothing to do (the row already has this value; with
           --delete: the row does not exist)
      1    without --apply: something to do
      2
      4    the file could not be read
      5    refused: a broker has locked the log dir, or could not read the existing file
      130

    """
    from logtool.commands.views.checkpoint_set import run

    status = run(
        file, printing, row=row, offset=offset, delete=delete, apply=apply, undo_dir=undo_dir
    )
    raise typer.Exit(status)


app = new_app(help=help_text(checkpoint))
for _name, _function in (("show", show), ("lint", lint), ("rebuild", rebuild), ("set", set_row)):
    add(app, _name, _function)
