"""``logtool lookup``: where an offset or a timestamp lives. Writes nothing."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import spread
from logtool.errors import UsageError

LARGEST = 2**63 - 1
"""Offsets and timestamps have 64 bits."""

Place = Annotated[
    # Not Path: that would take an empty string for the current directory.
    str | None,
    typer.Argument(
        metavar="PATH",
        help="A partition dir, or a log dir with --topic and --partition; by default the current "
        "directory.",
        show_default=False,
    ),
]
Topic = Annotated[
    str | None,
    typer.Option("--topic", metavar="NAME", help="The topic, where PATH is a log dir."),
]
Partition = Annotated[
    int | None,
    typer.Option("--partition", metavar="N", min=0, help="The partition, where PATH is a log dir."),
]
Offset = Annotated[
    int | None,
    typer.Option("--offset", metavar="N", min=0, max=LARGEST, help="Look for this offset."),
]
Timestamp = Annotated[
    str | None,
    typer.Option(
        "--timestamp",
        metavar="T",
        help="Look for the first record of this time or a later one: milliseconds, a time such as "
        "2026-11-22T10:30:00Z (UTC without a zone), a date, -2h (also s, m, d, w), now, today or "
        "yesterday; or for the earliest or the latest offset.",
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
    """Find the segment, the batch and the record of an offset or a timestamp in a partition dir.

    Searches twice: through the indexes, by the steps of a broker, and by reading the log from its
    start, which passes over what is damaged. If the two lead to different records, consumers get
    wrong records or miss some.

    A timestamp gives the first offset whose record has it or a later one, as a broker answers
    offsetsForTimes; earliest is the log start offset, and latest is the offset behind the last
    record. A broker does not answer beyond its high watermark; this command does.

    Examples:
      logtool lookup --offset 1200 data/orders-0
      logtool lookup --offset 1200 --topic orders --partition 0 /var/lib/kafka/data
      logtool lookup --timestamp 2025-03-01T12:00:00Z data/orders-0
      logtool lookup --timestamp latest --json data/orders-0 | jq .items[0].log_end_offset

    Exit status:
      0    it was found, and index and scan agree
      1    nothing is there, or index and scan disagree
      2
      4    the log could not be read
      130

    """
    from logtool.commands.views.lookup import run

    if (offset is None) == (timestamp is None):
        raise UsageError("give one of --offset and --timestamp")
    inputs = options.AnyInputs(None if place is None else [place], flavour=flavour)
    status = run(
        inputs, printing,
        topic=topic, partition=partition, offset=offset, timestamp=timestamp,
        max_batch_memory=max_batch_memory,
    )  # fmt: skip
    raise typer.Exit(status)
