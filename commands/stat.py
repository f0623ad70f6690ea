"""``logtool stat``: what logs add up to. Writes nothing."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from logtool.commands import options
from logtool.commands.program import parsing
from logtool.commands.program.spread import spread

if TYPE_CHECKING:
    from logtool.commands.output import Report
    from logtool.stat.run import Surveyed
    from logtool.stat.statistics import Statistics


class StatLevel(StrEnum):
    """How deep to look."""

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
    typer.Option("--level", help="records: also decompress, for the compression ratio."),
]
Segments = Annotated[bool, typer.Option("--segments", help="Print a row for each segment too.")]
Sort = Annotated[SortBy, typer.Option("--sort", help="Sort partitions, the largest first.")]


@spread
def stat(
    *,
    inputs: options.Inputs,
    level: Level = StatLevel.BATCHES,
    segments: Segments = False,
    sort: Sort = SortBy.PATH,
    max_batch_memory: options.MaxBatchMemory = options.MAX_BATCH_MEMORY,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Show sizes, counts, codecs, producers, time span and rate of partitions or segments.

    Every batch is read and its CRC checked. Damaged ranges are counted, and so are the sound
    batches behind them. Batch sizes are least/median/largest in bytes. The column `over time` draws
    the bytes from the first timestamp to the last, and `by size` draws how many batches have which
    size, by powers of two. Rows for the topics, the sum, and a histogram of batch sizes end the
    table. Each copy of a partition counts.

    Examples:
      logtool stat /var/lib/kafka/data
      logtool stat --sort size --topic 'orders*' /var/lib/kafka/data
      logtool stat --segments --level records /var/lib/kafka/data/orders-0
      logtool stat -f csv /var/lib/kafka/data > partitions.csv

    Exit status:
      0    complete, whatever was counted
      2    the command line makes no sense
      4    incomplete: some input could not be read, or nothing matched
      6    --max-duration ran out; nothing said of the rest
      130  interrupted by Ctrl-C (143: SIGTERM, 129: SIGHUP); the summary says what was counted

    """
    from logtool.commands.output import Report
    from logtool.commands.views import stat
    from logtool.errors import UnreadableError
    from logtool.running.summary import Summary
    from logtool.stat.run import Survey

    settings = printing.settings()
    given = inputs.resolved()
    report = Report(
        settings=settings, view=stat.make(segments=segments), summary=Summary(), inputs=given
    )
    unpack = level is StatLevel.RECORDS
    survey = Survey(
        given.paths,
        unpack=unpack,
        selection=given.selection,
        limit=parsing.parse_batch_memory(max_batch_memory),
        run=running.run(report.show),
    )
    printer = _Printer(report, sort, segments=segments, unpacked=unpack)
    with report:
        for item in survey:
            if isinstance(item, UnreadableError):
                report.summary.add(item)
                report.unreadable(item)
            else:
                printer.partition(item)
        report.summary.out_of_budget = survey.out_of_time
        printer.finish()
    raise typer.Exit(report.exit_status())


class _Printer:
    """Prints partitions as they come, or sorted once all are there, and in the end the sums."""

    def __init__(self, report: "Report", sort: SortBy, *, segments: bool, unpacked: bool) -> None:
        self._report = report
        self._sort = sort
        self._with_segments = segments
        self._unpacked = unpacked
        self._waiting: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        self._topics: dict[str | None, list[Statistics]] = {}

    def partition(self, surveyed: "Surveyed") -> None:
        """Take one partition."""
        from logtool.stat.run import as_json

        summary, whole = self._report.summary, surveyed.statistics
        summary.partitions += 1
        summary.segments += whole.segments - whole.unread_segments
        summary.batches += whole.batches
        summary.records += whole.records
        summary.bytes += whole.bytes
        self._topics.setdefault(surveyed.partition.topic, []).append(whole)
        place: dict[str, Any] = {
            "topic": surveyed.partition.topic,
            "partition": surveyed.partition.number,
        }
        objects = []
        for segment, statistics in surveyed.segments if self._with_segments else ():
            where = {"path": str(segment.log.path), **place, "segment": segment.base_offset}
            objects.append(as_json("segment", statistics, where, unpacked=self._unpacked))
        where = {"path": str(surveyed.partition.path), **place}
        obj = as_json("partition", whole, where, unpacked=self._unpacked)
        if self._sort is SortBy.PATH:
            self._print(obj, objects)
        else:
            self._waiting.append((obj, objects))

    def finish(self) -> None:
        """Print what waits, then topics and the sum of all."""
        from logtool.stat.run import as_json
        from logtool.stat.statistics import merged

        key = _KEYS.get(self._sort, "")
        self._waiting.sort(key=lambda waiting: -(waiting[0][key] or 0))
        for obj, objects in self._waiting:
            self._print(obj, objects)
        topics = {name: (len(parts), merged(parts)) for name, parts in self._topics.items()}
        rows = [
            as_json(
                "topic", statistics, {"topic": name, "partitions": count}, unpacked=self._unpacked
            )
            for name, (count, statistics) in topics.items()
        ]
        table = self._report.settings.format == "table"
        if key:
            rows.sort(key=lambda row: -(row[key] or 0))
        for row in () if table and len(rows) == 1 else rows:
            self._report.item(_without_offsets(row))
        place = {"topics": len(topics), "partitions": sum(count for count, _ in topics.values())}
        whole = merged([statistics for _, statistics in topics.values()])
        total = as_json("total", whole, place, unpacked=self._unpacked)
        self._report.item(_without_offsets(total))
        if table:
            self._report.item({"type": "histogram", "batch_sizes": total["batch_sizes"]})

    def _print(self, obj: dict[str, Any], segments: list[dict[str, Any]]) -> None:
        for segment in segments:
            self._report.item(segment)
        self._report.item(obj)


def _without_offsets(obj: dict[str, Any]) -> dict[str, Any]:
    """Return the object of a sum: offsets of several partitions say nothing together."""
    return {key: value for key, value in obj.items() if key not in ("first_offset", "last_offset")}
