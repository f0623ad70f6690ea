"""``logtool stat``: what logs add up to. Writes nothing."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from logtool.commands import options
from logtool.commands.program import broker_config, parsing
from logtool.commands.program.spread import spread
from logtool.errors import UsageError
from logtool.findings import Severity
from logtool.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logtool.commands.output import OutputSettings, Report
    from logtool.exits import Exit
    from logtool.log.inputs import GivenPaths
    from logtool.stat.run import Surveyed
    from logtool.stat.statistics import Statistics


class StatLevel(StrEnum):
    """How deep to look."""

    QUICK = "quick"
    BATCHES = "batches"
    RECORDS = "records"


class SortBy(StrEnum):
    """By which number partitions are sorted, largest first; `path` leaves them in their order."""

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


_KEYS = {
    SortBy.SIZE: "log_bytes", SortBy.SEGMENTS: "segments", SortBy.BATCHES: "batches",
    SortBy.RECORDS: "records", SortBy.BATCH_SIZE: "batch_size_median",
    SortBy.RATIO: "compression_ratio", SortBy.PRODUCERS: "producers", SortBy.SPAN: "span_ms",
    SortBy.RATE: "bytes_per_second", SortBy.DAMAGE: "damaged_bytes",
}  # fmt: skip

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
    settings, given = printing.settings(), inputs.resolved()
    if level is StatLevel.QUICK:
        if segments or sort not in (SortBy.PATH, SortBy.SIZE, SortBy.SEGMENTS):
            raise UsageError("--level quick has no --segments, and --sort size or segments alone")
        raise typer.Exit(_weigh(settings, given, sort, top, running))
    if top is not None and sort is SortBy.PATH:
        sort = SortBy.SIZE
    limit = parsing.parse_batch_memory(max_batch_memory)
    chosen = _Chosen(sort, top, segments=segments, unpacked=level is StatLevel.RECORDS)
    static = inputs.broker.take(*broker_config.TIMESTAMPS)
    raise typer.Exit(_survey(settings, given, chosen, limit, static, running, fail_on))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What is printed of the partitions."""

    sort: SortBy
    top: int | None
    segments: bool
    unpacked: bool


def _survey(
    settings: "OutputSettings", given: "GivenPaths", chosen: _Chosen, limit: int,
    static: "Mapping[str, str]", running: options.Running, fail_on: Severity,
) -> "Exit":  # fmt: skip
    """Print what logs add up to, batch by batch."""
    from logtool.commands.output import Report
    from logtool.commands.views import stat
    from logtool.commands.views.findings import FurtherFindings
    from logtool.errors import UnreadableError
    from logtool.running.summary import Summary
    from logtool.stat.run import Survey

    view = stat.make(segments=chosen.segments)
    report = Report(settings=settings, view=view, summary=Summary(), inputs=given)
    survey = Survey(
        given.paths,
        unpack=chosen.unpacked,
        selection=given.selection,
        limit=limit,
        static=static,
        run=running.run(report),
        flavour=given.flavour,
    )
    printer, aside = _Printer(report, chosen), FurtherFindings(report)
    with report:
        for item in survey:
            if isinstance(item, UnreadableError):
                report.unreadable(item)
            else:
                printer.partition(item)
                for finding in item.findings:
                    aside.take(finding)
        printer.finish()
    for line, style in aside.last_lines():
        report.note(line, style)
    return report.exit_status(fail_on)


def _weigh(
    settings: "OutputSettings", given: "GivenPaths", sort: SortBy, top: int | None,
    running: options.Running,
) -> "Exit":  # fmt: skip
    """Print what takes up the disk, by names and sizes alone."""
    from logtool.commands.output import Report
    from logtool.commands.views import sizes
    from logtool.errors import UnreadableError
    from logtool.running.summary import Summary
    from logtool.stat.sizes import Weighing

    report = Report(settings=settings, view=sizes.make(), summary=Summary(), inputs=given)
    weighing = Weighing(given.paths, given.selection, running.run(report), given.flavour)
    printer = sizes.Printer(report, str(sort), top)
    with report:
        for item in weighing:
            if isinstance(item, UnreadableError):
                report.unreadable(item)
            else:
                printer.partition(*item)
        printer.finish()
    return report.exit_status()


class _Printer:
    """Prints partitions as they come, or sorted once all are there, and in the end the sums."""

    def __init__(self, report: "Report", chosen: _Chosen) -> None:
        self._report = report
        self._sort = chosen.sort
        self._top = chosen.top
        self._with_segments = chosen.segments
        self._waiting: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        self._topics: dict[str | None, list[Statistics]] = {}

    def partition(self, surveyed: "Surveyed") -> None:
        """Take one partition."""
        from logtool.commands.views.stat_tables import PARTITION, SEGMENT
        from logtool.stat.statistics import StatisticsOf

        summary, whole = self._report.summary, surveyed.statistics
        summary.partitions += 1
        summary.segments += whole.segments - whole.unread_segments
        summary.batches += whole.batches
        summary.records += whole.records
        summary.bytes += whole.bytes
        self._topics.setdefault(surveyed.partition.topic, []).append(whole)
        of = surveyed.partition
        parts = [
            StatisticsOf(part, segment.log.path, of.topic, of.number, segment.base_offset)
            for segment, part in (surveyed.segments if self._with_segments else ())
        ]
        objects = [SEGMENT.row(part) for part in parts]
        obj = PARTITION.row(StatisticsOf(whole, of.path, of.topic, of.number))
        if self._sort is SortBy.PATH:
            self._print(obj, objects)
        else:
            self._waiting.append((obj, objects))

    def finish(self) -> None:
        """Print what waits, then topics and the sum of all."""
        from logtool.commands.views.stat_tables import TOPIC, TOTAL
        from logtool.stat.statistics import StatisticsOf, merged

        key = _KEYS.get(self._sort, "")
        self._waiting.sort(key=lambda waiting: -(waiting[0][key] or 0))
        for obj, objects in self._waiting[: self._top]:
            self._print(obj, objects)
        topics = {name: (len(parts), merged(parts)) for name, parts in self._topics.items()}
        rows = [
            TOPIC.row(StatisticsOf(statistics, topic=name, partitions=count))
            for name, (count, statistics) in topics.items()
        ]
        table = self._report.settings.format == "table"
        if key:
            rows.sort(key=lambda row: -(row[key] or 0))
        for row in () if table and len(rows) == 1 else rows[: self._top]:
            self._report.item(row)
        partitions = sum(count for count, _ in topics.values())
        whole = merged([statistics for _, statistics in topics.values()])
        total = TOTAL.row(StatisticsOf(whole, topics=len(topics), partitions=partitions))
        self._report.item(total)
        if table:
            self._report.item({"type": "histogram", "batch_sizes": total["batch_sizes"]})

    def _print(self, obj: dict[str, Any], segments: list[dict[str, Any]]) -> None:
        for segment in segments:
            self._report.item(segment)
        self._report.item(obj)
