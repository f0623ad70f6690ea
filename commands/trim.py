"""``logtool trim``: removal of the oldest segments of a log. Writes only with --apply."""

from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import spread
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Removed:
    """Options for the segments to remove, and for the permitted changes."""

    free: Annotated[
        str | None,
        typer.Option(
            "--free",
            metavar="SIZE",
            help="Free this many bytes, for example 20G, with the steps of 'logtool space --free'.",
        ),
    ] = None
    offsets_file: Annotated[
        Path | None,
        typer.Option(
            "--offsets-file",
            metavar="FILE",
            parser=options.local_path,
            help="Remove the segments below the offsets in FILE, a file for "
            "kafka-delete-records.sh --offset-json-file. -1 is the high watermark.",
        ),
    ] = None
    apply: options.Apply = False
    accept_loss: Annotated[
        list[str] | None,
        typer.Option(
            "--accept-loss",
            metavar="TOPIC-PARTITION",
            help="With --apply: accept that this partition loses the offsets that are shown "
            "without --apply; repeatable.",
        ),
    ] = None
    undo_dir: Annotated[
        Path | None,
        typer.Option(
            "--undo-dir",
            metavar="DIR",
            parser=options.local_path,
            help="Directory on another disk for the removed files, which 'logtool undo' needs. "
            "Default: a new directory next to the log dir, if that is another disk.",
        ),
    ] = None


@spread
def trim(
    *,
    inputs: options.LocalInputs,
    removed: Removed,
    printing: options.StillPrinting,
) -> None:
    """Remove the oldest segments of logs while the broker is stopped; can be undone.

    Use it if a broker does not start because its disk is full; let a running broker delete records
    with kafka-delete-records.sh. The command removes whole segments from the oldest on, never the
    active segment, and never above the high watermark. It changes what a broker changes with them:
    indexes and producer snapshots, log start offset, recovery point and leader epochs. The
    clean-shutdown marker stays as it is.

    Without --apply, the command writes nothing and prints what it would remove. With --apply, it
    takes the broker's lock, copies the files to an undo directory, and then removes them. That
    directory must be on another disk, because the copies take as much space as becomes free. If the
    command is killed, run it again to finish the work, or run 'logtool undo' to restore everything.
    Each finished run with --free frees that much once more.

    Examples:
      logtool trim --free 20G /var/lib/kafka/data
      logtool trim --free 20G --apply --accept-loss orders-0 --undo-dir /mnt/nfs/undo data
      logtool trim --offsets-file offsets.json /var/lib/kafka/data

    Files that wait to be deleted:

    With --free, the command first removes files and directories that the broker deletes by itself
    when it starts (.deleted, -delete, .cleaned). They cost no record. Stray partition dirs stay.

    Logs that stay:

    The command refuses what a broker refuses: records of internal topics, of topics without delete
    in cleanup.policy, and above the high watermark. It also refuses topics with remote storage. The
    settings of the topics are in the metadata log: if DIR does not contain it, give the
    __cluster_metadata-0 directory of this broker as well.

    Other replicas:

    A log start offset only rises. While another broker leads the partition, consumers can still
    read the records there; once this broker leads it, the other replicas delete them, too.

    Exit status:
      0    with --apply: done; without: nothing to remove
      1    without --apply: something to remove; with --apply: less than --free was removed
      2
      4    ..., or could not be written
      5    refused: a broker has locked the log dir, offsets would be lost without --accept-loss, a
           partition must keep its segments, or the undo directory is on the same disk
      130

    """
    from logtool.commands.views.trim import run

    status = run(
        inputs, printing,
        free=removed.free, offsets_file=removed.offsets_file, apply=removed.apply,
        accept_loss=removed.accept_loss or (), undo_dir=removed.undo_dir,
    )  # fmt: skip
    raise typer.Exit(status)
