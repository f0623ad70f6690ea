"""``logtool salvage``: every sound batch around damage, in new partition dirs."""

from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.bucket_inputs import BucketInputs
from logtool.commands.program.spread import spread
from logtool.errors import UsageError

FillFrom = Annotated[
    list[Path] | None,
    typer.Option(
        "--fill-from",
        metavar="DIR",
        parser=options.local_path,
        help="Fill damaged or missing ranges from another copy in this log dir or partition "
        "dir, if it is provably the same log; repeatable.",
    ),
]


Retry = Annotated[
    Path | None,
    typer.Option(
        "--retry",
        metavar="DIR",
        parser=options.local_path,
        help="Continue the run on a failing disk whose output is DIR: read only the ranges "
        "that the earlier run could not read.",
    ),
]


class RecordsFormat(StrEnum):
    """Formats in which the records of saved partitions can be written as well."""

    NDJSON = "ndjson"
    PARQUET = "parquet"
    KCAT = "kcat"


class SalvageTo(StrEnum):
    """Formats that a partition of AutoMQ can be saved in."""

    KAFKA = "kafka"


To = Annotated[
    SalvageTo | None,
    typer.Option(
        "--to",
        help="Save the partitions of a bucket of AutoMQ, which is given with the log dir of its "
        "metadata log, as partition dirs of Kafka.",
    ),
]
Records = Annotated[
    RecordsFormat | None,
    typer.Option(
        "--records",
        help="Also write the records of each saved partition, to produce them again, into "
        "DIR/records/TOPIC-N.FORMAT.",
    ),
]
DecodeDamaged = Annotated[
    bool,
    typer.Option(
        "--decode-damaged",
        help="Also write the records that can be decoded from damaged bytes, as NDJSON in "
        "DIR/rejects; each record is marked as damaged.",
    ),
]


@spread
def salvage(
    *,
    inputs: BucketInputs,
    output: options.SavedTo,
    to: To = None,
    fill_from: FillFrom = None,
    retry: Retry = None,
    records: Records = None,
    decode_damaged: DecodeDamaged = False,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Save every sound batch of damaged logs into new partition dirs.

    A broker cuts a log at the first bad batch and loses all sound batches after it. This command
    writes every sound batch, with the same bytes and offset, into DIR/partitions/TOPIC-N, in the
    same segments; it builds indexes, producer snapshots and leader epochs as a broker's recovery
    does. It only reads PATH. To use the result: stop the broker, move the old partition dir away,
    move the new one to its place, and give it to the broker's user.

    All other bytes go into DIR/rejects. DIR/manifest.ndjson has a line for each such range: file,
    bytes, possible offsets, reason, CRC-32C and SHA-256.

    Examples:
      logtool salvage --output /mnt/saved /var/lib/kafka/data/orders-0
      logtool salvage --output /mnt/saved --fill-from /mnt/broker-2/data /var/lib/kafka/data
      logtool salvage --to kafka --output /mnt/saved /mnt/bucket /var/lib/automq/metadata

    Rejected bytes:

    These are: damage; unreadable disk sectors, each of which was read again separately; sound
    batches whose offset or leader epoch contradicts the batches around them (no CRC covers these
    fields); batches with offsets that the next segment also contains; and segments that a
    truncation had removed. A sound batch inside the value of a damaged record does not count as a
    batch of the log. The command reports transactions that may have lost records or their marker.
    It never creates a marker.

    Directories:

    If a partition occurs twice, for example from two brokers, the second one is written to
    DIR/partitions.2. The metadata log is written to DIR/metadata.

    AutoMQ:

    With --to kafka, PATH is a bucket of AutoMQ and the log dir of its metadata log. Each partition,
    as it is after the recovery of the WAL, is written as a partition dir of Kafka. Offsets,
    timestamps and leader epochs do not change. If a Kafka cluster that has the topics is to serve
    them, keep the partition.metadata of its own partition dir: it holds the topic id.

    Tiered storage:

    With the prefix of its objects and the log dirs of the cluster as PATH, a partition is saved
    with its remote segments, as one log; see 'logtool dump --help'.

    Filling from another copy:

    With --fill-from, missing batches are taken from another copy of the partition, if the batches
    before and after are the same there (offsets, leader epoch, CRC and size). After the last batch,
    the leader epochs must agree; in a log without leader epochs, the high watermark of the copy
    must be later. Alternatively, more than half of the damaged bytes must be equal in the copy. If
    a range is not filled, the manifest has the reason. A partition of another topic id or cluster
    does not count as a copy, and nothing is filled before the start of this log.

    Failing disks:

    For a log on a failing disk, all readable bytes are saved as DIR/rejects/TOPIC-N/LOG.image, with
    zeros in place of the unreadable bytes. LOG.map lists the unreadable ranges in the format of GNU
    ddrescue. A second run with another --output and with --retry DIR reads only these ranges, in
    blocks of 512 bytes. 'ddrescue LOG LOG.image LOG.map' does the same.

    Records:

    With --records, the records of the saved partitions are also written, so that you can produce
    them again: as lines of JSON or a Parquet table with the fields of 'logtool dump --records', or
    as input for kcat, with the command to run. Transaction markers and internal topics are left
    out; records of aborted transactions are included. Each line of JSON has the field
    transaction_outcome: committed, aborted, open, unknown (the marker may be lost), or null for a
    record outside of a transaction. If kcat would produce a partition
    differently, no file is written for it, and the reason is reported.

    With --decode-damaged, the records that can be decoded from damaged bytes are written next to
    these bytes, up to the first undecodable byte. A CRC does not show which bit is wrong, so any of
    these records may differ from the produced one. Only messages of magic 0 and 1 have a CRC of
    their own: where crc_valid is true, time, key and value are the produced ones.

    Redpanda:

    Redpanda segments and their base indexes are written to
    DIR/partitions/NAMESPACE/TOPIC/PARTITION. A .cannotrecover file is read as a segment. Terms
    count as leader epochs. Records have the field raft_offset; after damage they have no offset,
    because the Kafka offset is not known there.

    Exit status:
      0    everything was saved, or filled from another copy
      1    some bytes were rejected, or a broker would not start with the saved partitions
      2
      4    ..., or DIR could not be written
      5    refused: DIR is not empty, is in a log dir, or has too little space; or kcat cannot
           produce the records
      6    --max-duration ran out; the partitions saved so far are complete
      130

    """
    from logtool.commands.views.salvage import run

    if records is RecordsFormat.PARQUET and find_spec("pyarrow") is None:
        raise UsageError("--records parquet needs pyarrow: pip install 'kafka-logtool[parquet]'")
    status = run(
        inputs, running, printing,
        output=output, fill_from=fill_from or (), retry=retry,
        records=records and str(records), damaged=decode_damaged, to_kafka=to is not None,
    )  # fmt: skip
    raise typer.Exit(status)
