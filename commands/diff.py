"""``logtool diff``: the same partitions on several brokers. Writes nothing but ``--digest``."""

from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import Without, spread
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Sources(options.AnyInputs):
    """Arguments for the copies to compare: DIR in place of PATH."""

    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR...",
            show_default=False,
            help="A broker's log dir, a partition dir, or a file of --digest; ID=DIR names its "
            "node.",
        ),
    ] = None


DigestFile = Annotated[
    Path | None,
    typer.Option(
        "--digest",
        metavar="FILE",
        parser=options.local_path,
        help="Save what was scanned of the one DIR, to be compared elsewhere.",
    ),
]
Identical = Annotated[
    bool,
    typer.Option(
        "--identical",
        help="Anything but equal copies makes the exit status 1: also one that is shorter, "
        "compacted otherwise, or the only one.",
    ),
]


@spread
def diff(
    *,
    inputs: Annotated[Sources, Without("broker_config")],
    identical: Identical = False,
    digest: DigestFile = None,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Compare the copies of partitions on several brokers, batch by batch.

    Says where two copies diverge for the first time (offset, leader epoch, CRC), which copy holds
    all that the others hold, which copies are behind, what differs only because compaction ran at
    different times, and where each copy is damaged, with the copies in which those offsets are
    sound; also who is in sync or eligible, by the newest metadata log among the DIRs. A copy is
    called by its node id, from ID=DIR or meta.properties, else by its path. Partition dirs are
    taken for copies of one partition, whatever they are called. Partitions that are the same
    everywhere are shown with -v only. If a copy is damaged where another is sound, the command that
    repairs it from there (logtool recover --fill-from) comes first.

    If one of two copies is merely shorter, they do not contradict each other, and the exit status
    is 0. Before you delete a copy, ask with --identical: then all copies must have the same
    batches, log start, log end and leader epochs. Indexes and producer snapshots are never
    compared, because a broker makes them from the log.

    A digest holds offsets, epochs, CRCs, sizes and counts of batches, but no record. It is a zip of
    NumPy arrays. It must not lie in a log dir, and an existing file is never overwritten.

    Examples:
      logtool diff /mnt/broker-1/data /mnt/broker-2/data /mnt/broker-3/data
      logtool diff 1=/mnt/a/orders-0 2=/mnt/b/orders-0
      logtool diff --identical /mnt/old/data /mnt/new/data && rm -r /mnt/old/data
      logtool diff --digest /tmp/broker-1.npz /var/lib/kafka/data
      logtool diff /tmp/broker-1.npz /tmp/broker-2.npz --json

    Exit status:
      0    complete: nothing diverged, nothing damaged; or the digest was saved
      1    complete: copies diverge, are damaged, or batches are missing; with --identical, copies
           differ in anything, or there is one only
      2
      4
      5    refused: --digest names a file that is there, or one in a log dir
      6    --max-duration ran out; nothing said of the rest, no digest saved
      130

    """
    from logtool.commands.views.diff import run

    raise typer.Exit(run(inputs, running, printing, identical=identical, digest=digest))
