"""``logtool convert``: a segment of Redpanda as a log of Kafka, or the reverse."""

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
To = Annotated[FlavourName, typer.Option("--to", help="Whose files are to be written.")]
Output = Annotated[
    Path,
    typer.Option(
        "--output",
        metavar="DIR",
        parser=options.local_path,
        help="Write into DIR, which must be new or empty and lie in no log dir.",
    ),
]
StartDelta = Annotated[
    int | None,
    typer.Option(
        "--start-delta",
        metavar="N",
        min=0,
        help="With --to kafka: how many offsets below the segment are Raft's alone, where its "
        "folder does not tell.",
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
    """Write segments of Redpanda as logs of Kafka, or logs of Kafka as segments of Redpanda.

    PATH is a segment, or a partition dir for all of its segments. Each batch gets the header of the
    other; its records and its CRC stay as they are. With --to kafka the log lies in
    DIR/partitions/TOPIC-N, with the indexes that a broker makes of it, and the term is the leader
    epoch. With --to redpanda a segment for each leader epoch lies in DIR/kafka/TOPIC/N_REVISION,
    with its base index; give it to no broker that has other segments of the partition.

    Kafka would give clients what is no data in Redpanda: such batches are left out, and damage too.
    They are kept in DIR/left-out/TOPIC-N, and with them the way back, of DIR/partitions as it is,
    gives the same bytes again. Offsets become Kafka's where the folder of the segment tells what is
    between the two, as all segments from offset 0 on do, or a snapshot, or --start-delta. Else they
    stay Raft's, and the answer says so.

    Examples:
      logtool convert --to kafka --output /tmp/kafka data/kafka/orders/0_22/0-1-v1.log
      logtool convert --to redpanda --output /tmp/back /tmp/kafka/partitions/orders-0/*.log

    Exit status:
      0    all was converted
      1    all that is sound was converted; damage was left out
      2
      4    incomplete: a path is no segment, or could not be read, or DIR not be written
      5    refused: DIR is not empty or lies in a log dir, or a batch has no form in the target
      130

    """
    from logtool.commands.views.convert import run

    if start_delta is not None and to is not FlavourName.KAFKA:
        raise UsageError("--start-delta is for --to kafka")
    raise typer.Exit(run(inputs, printing, to=to, output=output, start_delta=start_delta))
