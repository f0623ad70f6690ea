"""``logtool space``: the space that log dirs take, and what to free. Writes nothing."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import Without, spread

At = Annotated[
    str,
    typer.Option(
        "--at",
        metavar="T",
        help="Time from which on the forecast counts: milliseconds, a time such as "
        "2026-11-22T10:30:00Z (UTC without a zone), a date, -2h (also s, m, d, w), now, today or "
        "yesterday.",
        show_default=True,
    ),
]
Free = Annotated[
    str | None,
    typer.Option(
        "--free",
        metavar="SIZE",
        help="Also show the cheapest steps that free this many bytes, for example 20G.",
    ),
]


@spread
def space(
    *,
    inputs: options.LocalInputs,
    at: At = "now",
    free: Free = None,
    running: Annotated[options.Running, Without("jobs", "max_rate")],
    printing: options.StillPrinting,
) -> None:
    """Show what takes the space of log dirs, when a disk is full, and what to free.

    The command adds up the files of each topic: the blocks that they take on the disk, not their
    sizes, because a broker preallocates the indexes of active segments. It reads the last entries
    of time indexes, and the first batch of a log with only one segment.

    Examples:
      logtool space /var/lib/kafka/data
      logtool space --topic orders --json /var/lib/kafka/data
      logtool space --free 20G /var/lib/kafka/data

    Columns:

      log        segments of live partitions
      index      offset, time and transaction indexes
      leftovers  files and dirs that wait to be deleted (.deleted, -delete), and files of a job
                 that did not end (.cleaned, .swap, .tmp). The broker removes them when it starts
      stray      partition dirs that the broker renamed, because the cluster does not know them
      future     copies that move to another log dir
      other      snapshots, checkpoints, and files that Kafka does not write

    Growth:

    The bytes of a segment are spread over the time from the last record of the segment before it
    to its own last record. The week before the newest record counts, or the time that a log
    covers if that is shorter, but at least ten seconds. The growth by logs that cover less than an
    hour is named, because it may be no more than a burst. The day on which the disk is full assumes
    that as much is produced as before, and that retention deletes the segments that are there now
    when they are due.

    Deletion:

    The lines below the table say how long a running broker keeps files that wait to be deleted
    (file.delete.delay.ms), and from which topics retention never deletes anything, because both
    retention.ms and retention.bytes are -1.

    What a start needs:

    The last line on each file system says how many bytes a start of the broker writes at most:
    checkpoints and, after a kill, the indexes and snapshots of the segments that it recovers. The
    log cleaner then writes at most the closed segments of the largest compacted log, for each of
    its threads, before it frees any. Indexes that a start preallocates are not counted, because
    they take no blocks: JSON has their bytes, and those that the cleaner takes of the heap.

    Freeing space:

    --free lists leftovers first, the largest dirs first: they cost no record. Then come closed
    segments, in the order in which retention deletes them anyway. The command prints the file and
    the command that let a running broker delete their records now: these records are lost. For a
    broker that cannot start because the disk is full, it prints the 'logtool trim' command, which
    also removes leftovers, and says how much that frees: 'logtool trim' stops at the high watermark
    of the checkpoint, which is lower than the log end after a kill. Internal topics, topics with
    remote storage, and topics without delete in cleanup.policy are left out.

    Exit status:
      0    complete, and the steps free enough
      1    the steps do not free as much as --free asks for
      2
      4
      6
      130

    """
    from logtool.commands.views.space import run

    raise typer.Exit(run(inputs, running, printing, at=at, free=free))
