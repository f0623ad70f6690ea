"""``logtool convert``: a segment of Redpanda as a log of Kafka, or the reverse."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import Without, spread
from logtool.errors import UsageError
from logtool.log.flavour import FlavourName

Given = Annotated[
    options.LocalInputs,
    Without("files_from", "null", "topic", "exclude_topic", "partition", "broker_config"),
]


class ConvertTo(StrEnum):
    """Formats of the files that are written."""

    KAFKA = "kafka"
    REDPANDA = "redpanda"


To = Annotated[ConvertTo, typer.Option("--to", help="Format of the files to write.")]
Output = Annotated[
    Path,
    typer.Option(
        "--output",
        metavar="DIR",
        parser=options.local_path,
        help="Write into DIR, which must be new or empty and outside of all log dirs.",
    ),
]
StartDelta = Annotated[
    int | None,
    typer.Option(
        "--start-delta",
        metavar="N",
        min=0,
        help="With --to kafka: number of offsets before the segment that only Raft uses, if "
        "the directory of the segment does not contain it.",
    ),
]


@spread
def convert(
    *,
    inputs: Given,
    to: To,
    output: Output,
    start_delta: StartDelta = None,
    printing: Annotated[options.Printing, Without("progress")],
) -> None:
    """Convert Redpanda segments to Kafka logs, or Kafka logs to Redpanda segments.

    PATH is a segment, or a partition dir for all of its segments. Each batch gets the header of the
    target format; its records and its CRC do not change. With --to kafka, the log is written to
    DIR/partitions/TOPIC-N, with the indexes that a broker would build; the Raft term becomes the
    leader epoch. With --to redpanda, one segment for each leader epoch is written to
    DIR/kafka/TOPIC/N_REVISION, with its base index. Do not give this segment to a broker that has
    other segments of the partition.

    Batches that are not data in Redpanda are left out, because Kafka would return them to clients;
    damage is left out too. Both are kept in DIR/left-out/TOPIC-N. With them, the opposite
    conversion of an unchanged DIR/partitions returns the same bytes.

    Examples:
      logtool convert --to kafka --output /tmp/kafka data/kafka/orders/0_22/0-1-v1.log
      logtool convert --to redpanda --output /tmp/back /tmp/kafka/partitions/orders-0/*.log

    Offsets:

    With --to kafka, the offsets become Kafka offsets if the difference between both is known: from
    a complete set of segments from offset 0 on, from a Raft snapshot, or from --start-delta.
    Otherwise the offsets stay Raft offsets, and the output reports it.

    Exit status:
      0    everything was converted
      1    all sound batches were converted; damage was left out
      2
      4    incomplete: a path is not a segment or could not be read, or DIR could not be written
      5    refused: DIR is not empty or is in a log dir, or the target format cannot represent a
           batch
      130

    """
    from logtool.commands.views.convert import run

    if start_delta is not None and to is not ConvertTo.KAFKA:
        raise UsageError("--start-delta requires --to kafka")
    raise typer.Exit(
        run(inputs, printing, to=FlavourName(to), output=output, start_delta=start_delta)
    )
