"""``logtool stat``: statistics of logs. Writes nothing."""

from enum import StrEnum
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import case_paths
from logtool.commands.program.case_inputs import CaseInputs
from logtool.commands.program.spread import spread
from logtool.findings import Severity


class StatLevel(StrEnum):
    """Depth of the statistics."""

    QUICK = "quick"
    BATCHES = "batches"
    RECORDS = "records"


class SortBy(StrEnum):
    """Numbers by which partitions are sorted, largest first; `path` keeps their order."""

    PATH = "path"
    SIZE = "size"
    SEGMENTS = "segments"
    BATCHES = "batches"
    RECORDS = "records"
    BATCH_SIZE = "batch-size"
    RATIO = "ratio"
    PRODUCERS = "producers"
    SPAN = "span"
    RATE = "rate"
    DAMAGE = "damage"


Level = Annotated[
    StatLevel,
    typer.Option(
        "--level",
        help="quick: only names, sizes and disk blocks, by topic; batches: every batch; "
        "records: also decompress the batches, to compute the compression ratio.",
    ),
]
Top = Annotated[
    int | None,
    typer.Option(
        "--top",
        metavar="N",
        min=1,
        help="Show only the N largest partitions or topics, by --sort or else by size.",
    ),
]
Segments = Annotated[bool, typer.Option("--segments", help="Also print a row for each segment.")]
Sort = Annotated[
    SortBy,
    typer.Option("--sort", help="Sort partitions by this number, largest first; path: by path."),
]


@spread
def stat(
    *,
    inputs: CaseInputs,
    level: Level = StatLevel.BATCHES,
    segments: Segments = False,
    sort: Sort = SortBy.PATH,
    top: Top = None,
    max_batch_memory: options.MaxBatchMemory = options.MAX_BATCH_MEMORY,
    fail_on: options.FailOn = Severity.WARNING,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Show sizes, counts, codecs, producers, time span and rate of logs.

    logtool reads every batch and checks its CRC. It counts damaged ranges, and continues with the
    sound batches after them. If several log dirs hold replicas of a partition, each replica counts.
    With --level quick it opens no file. It shows the disk usage of each topic (allocated blocks and
    file sizes), largest topic first. (A preallocated index has a size of 10 MiB, but occupies only
    its written part.)

    Batch sizes are minimum/median/maximum in bytes. The column `over time` is a small chart of the
    bytes between the first and the last timestamp. The column `by size` is a small chart of the
    number of batches in each size class; each class is twice as large as the one before. The table
    ends with rows for topics, the total, and a histogram of batch sizes.

    Examples:
      logtool stat /var/lib/kafka/data
      logtool stat --level quick --top 10 /var/lib/kafka/data
      logtool stat --sort size --topic 'orders*' /var/lib/kafka/data
      logtool stat --segments --level records /var/lib/kafka/data/orders-0
      logtool stat -f csv /var/lib/kafka/data > partitions.csv

    Timestamps:

    The command reports timestamps that are far in the future, or that seem to be in seconds or
    microseconds in place of milliseconds, as findings of severity info, as 'logtool verify' does.

    AutoMQ:

    With a bucket and the log dir of its metadata log as PATH, the command counts the partitions as
    they are after the recovery of the WAL. The path of a segment is its place in the log dir that
    Kafka would have.

    Tiered storage:

    With the prefix of its objects and the log dirs of the cluster as PATH, a partition of tiered
    storage is counted with its remote segments.

    Exit status:
      0    complete, whatever the numbers are
      1    findings at or above --fail-on (with --fail-on info, unusual timestamps)
      2
      4
      6
      130  ...; the summary shows what was counted

    """
    case_paths.require(
        inputs.given(), records=level is StatLevel.RECORDS, blocks=level is StatLevel.QUICK
    )
    if level is StatLevel.QUICK:
        from logtool.commands.views import sizes

        status = sizes.run(inputs, running, printing, sort=str(sort), top=top, segments=segments)
    else:
        from logtool.commands.views import stat

        if top is not None and sort is SortBy.PATH:
            sort = SortBy.SIZE
        status = stat.run(
            inputs, running, printing,
            sort=str(sort), top=top, segments=segments, unpack=level is StatLevel.RECORDS,
            max_batch_memory=max_batch_memory, fail_on=fail_on,
        )  # fmt: skip
    raise typer.Exit(status)
