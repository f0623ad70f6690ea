"""``logtool diff``: the same partitions on several brokers. Writes nothing but ``--digest``."""

from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import case_paths
from logtool.commands.program.case_paths import TakesCases
from logtool.commands.program.spread import Without, spread
from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Sources(TakesCases, options.AnyInputs):
    """Arguments for the copies to compare: DIR in place of PATH."""

    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR...",
            show_default=False,
            help="Log dir of a broker, a partition dir, or a file from --digest. ID=DIR sets the"
            " node id.",
        ),
    ] = None


DigestFile = Annotated[
    Path | None,
    typer.Option(
        "--digest",
        metavar="FILE",
        parser=options.local_path,
        help="Save a digest of a single DIR in FILE, to compare it elsewhere.",
    ),
]
Identical = Annotated[
    bool,
    typer.Option(
        "--identical",
        help="Set the exit status to 1 unless the copies are equal: also if one is shorter, "
        "was compacted differently, or is the only one.",
    ),
]
Fingerprint = Annotated[
    bool,
    typer.Option(
        "--fingerprint",
        help="Print one line for each partition, with its offsets and a hash of its batches, and "
        "compare nothing. A table shows the first digits of the hash; use -v or -f ndjson.",
    ),
]
Check = Annotated[
    Path | None,
    typer.Option(
        "--check",
        metavar="FILE",
        parser=options.local_path,
        help="Compare the partitions with the fingerprints in FILE, which --fingerprint -f ndjson"
        " printed.",
    ),
]


@spread
def diff(
    *,
    inputs: Annotated[Sources, Without("broker_config")],
    identical: Identical = False,
    digest: DigestFile = None,
    fingerprint: Fingerprint = False,
    check: Check = None,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Compare the copies of partitions on several brokers, batch by batch.

    The command shows where two copies first diverge (offset, leader epoch, CRC), which copy
    contains everything that the others contain, which copies are behind, which differences result
    only from compaction at different times, and where a copy is damaged, with the copies that are
    sound there, and the record or header field of the first byte that differs. If the newest
    metadata log among the DIRs contains the partition, the command also shows which replicas are in
    sync or eligible. If a copy is damaged where another is sound, the first line is the command
    that repairs it (logtool recover --fill-from).

    If one copy is only shorter than the other, they do not diverge, and the exit status is 0. If
    one begins later although retention did not delete its beginning, the exit status is 1.
    Before you delete a copy, use --identical: then all copies must have the same batches, log start
    offset, log end offset and leader epochs, and log dirs of Kafka the same directories (also those
    to be deleted), rows of checkpoints, meta.properties and other files; with a selection of
    partitions, only their directories. The bytes of indexes and producer snapshots of partitions
    with the same batches must be the same too, without zeros at the end of preallocated indexes;
    replicas that brokers wrote may have different ones. Partitions that are equal everywhere are
    shown only with -v.

    Examples:
      logtool diff /mnt/broker-1/data /mnt/broker-2/data /mnt/broker-3/data
      logtool diff 1=/mnt/a/orders-0 2=/mnt/b/orders-0
      logtool diff --identical /mnt/old/data /mnt/new/data && rm -r /mnt/old/data
      logtool diff --digest /tmp/broker-1.npz /var/lib/kafka/data
      logtool diff /tmp/broker-1.npz /tmp/broker-2.npz --json
      logtool diff --fingerprint -f ndjson /var/lib/kafka/data > /tmp/backup.ndjson
      logtool diff --check /tmp/backup.ndjson /mnt/restored/data

    Names of copies:

    The name of a copy is its node id, from ID=DIR or from meta.properties; its path without a node
    id, and in two copies of one log dir. If the DIRs are partition dirs, they count as copies of
    one partition, whatever their names are.

    Two copies of one log dir:

    Two log dirs with the same directory id are copies of one log dir, such as a log dir and its
    backup; so are two of the same node, cluster and partitions. A partition that only one of them
    has is then named with its path. If the metadata log or a checkpoint of the other one names the
    partition, it is missing there, and the exit status is 1. If that metadata log does not, it was
    created, deleted or moved in between. A topic that was created again in between, by the metadata
    log of each, is no fault either. Between different brokers a partition on one only is normal.

    Digests:

    A digest contains offsets, leader epochs, CRCs, sizes and counts of batches, but no records. It
    is a zip file of NumPy arrays. It must not be in a log dir; an existing file is never
    overwritten.

    Fingerprints:

    A fingerprint is the SHA-256 of the offsets, leader epochs and CRCs of all batches. It does not
    change if a broker rolls other segments, but if it compacts the log. With --check a partition
    may be longer than it was; its batches up to the end of the fingerprint must be the same.
    A partition that begins later, because retention deleted its beginning, cannot be compared.

    Exit status:
      0    complete: no divergence, no damage; or the digest was saved
      1    copies diverge or are damaged; or batches, a beginning, or a partition of a copy
           of a log dir are missing; with --identical: any difference, or only one copy;
           with --check: a partition is absent, shorter or changed, or begins later
      2
      4
      5    refused: the file of --digest exists or is in a log dir
      6    ...; no digest was saved
      130

    """
    case_paths.require(inputs.given(), crcs=True)
    if fingerprint or check:
        if identical or digest or (fingerprint and check):
            names = "--fingerprint, --check, --identical and --digest"
            raise UsageError(f"use only one of {names}")
        from logtool.commands.views import fingerprints

        raise typer.Exit(fingerprints.run(inputs, running, printing, check))
    from logtool.commands.views.diff import run

    raise typer.Exit(run(inputs, running, printing, identical=identical, digest=digest))
