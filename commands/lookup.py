"""``logtool lookup``: position of an offset or a timestamp. Writes nothing."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import spread
from logtool.errors import UsageError

LARGEST = 2**63 - 1
"""Offsets and timestamps have 64 bits."""

Place = Annotated[
    # Not Path: that would take an empty string for the current directory.
    list[str] | None,
    typer.Argument(
        metavar="PATH",
        help="A partition dir, or a log dir with --topic and --partition; or a bucket of AutoMQ "
        "and the log dir of its metadata log; or objects of tiered storage and log dirs. "
        "Default: the current directory.",
        show_default=False,
    ),
]
Topic = Annotated[
    str | None,
    typer.Option("--topic", metavar="NAME", help="Topic, if PATH is a log dir."),
]
Partition = Annotated[
    int | None,
    typer.Option("--partition", metavar="N", min=0, help="Partition, if PATH is a log dir."),
]
Offset = Annotated[
    int | None,
    typer.Option("--offset", metavar="N", min=0, max=LARGEST, help="Find this offset."),
]
Timestamp = Annotated[
    str | None,
    typer.Option(
        "--timestamp",
        metavar="T",
        help="Find the first record with this timestamp or a later one: milliseconds, a time"
        " such as 2026-11-22T10:30:00Z (UTC without a zone), a date, -2h (also s, m, d,"
        " w), now, today or yesterday; or earliest or latest.",
    ),
]


@spread
def lookup(
    *,
    place: Place = None,
    topic: Topic = None,
    partition: Partition = None,
    offset: Offset = None,
    timestamp: Timestamp = None,
    max_batch_memory: options.MaxBatchMemory = options.MAX_BATCH_MEMORY,
    flavour: options.FlavourOption = None,
    printing: options.Printing,
) -> None:
    """Find the segment, batch and record of an offset or a timestamp.

    logtool searches twice: through the indexes, in the same steps as a broker, and by reading the
    log from its start, skipping damage. If the two searches find different records, consumers
    receive wrong records or miss records.

    For a timestamp, the result is the first offset whose record has this timestamp or a later one,
    as in offsetsForTimes of a consumer. "earliest" is the log start offset, "latest" the offset
    after the last record. A broker does not return offsets beyond its high watermark; this command
    does.

    Examples:
      logtool lookup --offset 1200 data/orders-0
      logtool lookup --offset 1200 --topic orders --partition 0 /var/lib/kafka/data
      logtool lookup --timestamp 2025-03-01T12:00:00Z data/orders-0
      logtool lookup --timestamp latest --json data/orders-0 | jq .items[0].log_end_offset

    AutoMQ:

    For a bucket, give it and the log dir of its metadata log: logtool lookup --offset 1200 --topic
    orders --partition 0 BUCKET META. AutoMQ has no offset index; the search by index uses the time
    index alone.

    Tiered storage:

    With the prefix of its objects and the log dirs of the cluster as PATH, the record is also
    looked for in the remote segments of the partition; see 'logtool dump --help'.

    Exit status:
      0    found; both searches agree
      1    not found, or the two searches disagree
      2
      4    the log could not be read
      130

    """
    from logtool.commands.views.lookup import run

    if (offset is None) == (timestamp is None):
        raise UsageError("give one of --offset and --timestamp")
    inputs = options.AnyInputs(place, flavour=flavour)
    status = run(
        inputs, printing,
        topic=topic, partition=partition, offset=offset, timestamp=timestamp,
        max_batch_memory=max_batch_memory,
    )  # fmt: skip
    raise typer.Exit(status)
