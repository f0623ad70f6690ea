"""``logtool stat``: what logs add up to. Writes nothing."""

from enum import StrEnum
from typing import Annotated

import typer

from logtool.commands import options
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
        help="quick: names and sizes alone, with the blocks on disk, by topic; batches: every "
        "batch; records: also decompress, for the compression ratio.",
    ),
]
Top = Annotated[
    int | None,
    typer.Option(
        "--top", metavar="N", min=1, help="Show only the N largest, by --sort or else by size."
    ),
]
Segments = Annotated[bool, typer.Option("--segments", help="Print a row for each segment too.")]
Sort = Annotated[SortBy, typer.Option("--sort", help="Sort partitions, the largest first.")]


@spread
def stat(
    *,
    inputs: options.AnyInputs,
    level: Level = StatLevel.BATCHES,
    segments: Segments = False,
    sort: Sort = SortBy.PATH,
    top: Top = None,
    max_batch_memory: options.MaxBatchMemory = options.MAX_BATCH_MEMORY,
    fail_on: options.FailOn = Severity.WARNING,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Show sizes, counts, codecs, producers, time span and rate of partitions or segments.

    Every batch is read and its CRC checked. Damaged ranges are counted, and so are the sound
    batches behind them. Batch sizes are least/median/largest in bytes. The column `over time` draws
    the bytes from the first timestamp to the last, and `by size` draws how many batches have which
    size, by powers of two. Rows for the topics, the sum, and a histogram of batch sizes end the
    table. Each copy of a partition counts.

    With --level quick no file is opened. It shows what takes up the disk: the topics, the largest
    first, with their real blocks beside the sizes of the files. An index that a broker has
    preallocated has a size of 10 MiB, and takes up only what was written.

    Timestamps far in the future or in another unit are told as infos, as verify tells them.

    Examples:
      logtool stat /var/lib/kafka/data
      logtool stat --level quick --top 10 /var/lib/kafka/data
      logtool stat --sort size --topic 'orders*' /var/lib/kafka/data
      logtool stat --segments --level records /var/lib/kafka/data/orders-0
      logtool stat -f csv /var/lib/kafka/data > partitions.csv

    Exit status:
      0    complete, whatever was counted
      1    complete, with findings at or above --fail-on: --fail-on info is for odd timestamps
      2
      4
      6
      130  interrupted by Ctrl-C (143: SIGTERM, 129: SIGHUP); the summary says what was counted

    """
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
