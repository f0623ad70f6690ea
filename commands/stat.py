"""``logtool stat``: what logs add up to. Writes nothing."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from logtool.commands import options
from logtool.commands.options import (
    AsJson,
    Color,
    ColorOption,
    ExcludeTopics,
    FilesFrom,
    Format,
    FormatOption,
    Jobs,
    MaxDuration,
    MaxRate,
    Null,
    Partitions,
    Paths,
    Progress,
    Quiet,
    Topics,
    Verbose,
)

if TYPE_CHECKING:
    from logtool.commands.output import Report
    from logtool.statistics import Statistics
    from logtool.survey import Surveyed


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
Segments = Annotated[bool, typer.Option("--segments", help="A row for each segment too.")]
Sort = Annotated[SortBy, typer.Option("--sort", help="Sort partitions, the largest first.")]


def stat(
    paths: Paths = None,
    files_from: FilesFrom = None,
    null: Null = False,
    topic: Topics = None,
    exclude_topic: ExcludeTopics = None,
    partition: Partitions = None,
    level: Level = StatLevel.BATCHES,
    segments: Segments = False,
    sort: Sort = SortBy.PATH,
    jobs: Jobs = None,
    max_rate: MaxRate = None,
    max_duration: MaxDuration = None,
    format: FormatOption = Format.TABLE,
    as_json: AsJson = False,
    color: ColorOption = Color.AUTO,
    progress: Progress = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Show sizes, counts, codecs, producers, time span and rate of partitions or segments.

    Every batch is read and its CRC checked; damaged ranges are counted and what stands behind them
    too. Batch sizes are least/median/largest in bytes; `over time` draws bytes by timestamp from
    the first to the last, `by size` the batches by powers of two. A table ends with topics, the
    sum, and the histogram of batch sizes; each copy of a partition counts.

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
    from logtool.commands import stat_view
    from logtool.commands.output import Report
    from logtool.data_dir import Inputs
    from logtool.errors import UnreadableError
    from logtool.summary import Summary
    from logtool.survey import Survey
    from logtool.workers import Pace, available_cpus

    settings = options.settings(
        format, as_json, color, quiet=quiet, verbose=verbose, progress=progress
    )
    inputs = Inputs(
        options.all_paths(paths, files_from, null),
        options.selection(topic, exclude_topic, partition),
    )
    report = Report(settings, stat_view.make(segments=segments), Summary(), inputs)
    survey = Survey(
        inputs.paths,
        unpack=level is StatLevel.RECORDS,
        selection=inputs.selection,
        jobs=jobs or available_cpus(),
        pace=Pace.starting_now(
            options.parse_size("--max-rate", max_rate) if max_rate else None,
            options.parse_duration("--max-duration", max_duration) if max_duration else None,
        ),
        on_progress=report.show_progress,
    )
    printer = _Printer(report, sort, segments=segments, unpacked=level is StatLevel.RECORDS)
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

    def partition(self, found: "Surveyed") -> None:
        """Take one partition."""
        from logtool.survey import as_json

        summary, whole = self._report.summary, found.statistics
        summary.partitions += 1
        summary.segments += whole.segments - whole.unread_segments
        summary.batches += whole.batches
        summary.records += whole.records
        summary.bytes += whole.bytes
        self._topics.setdefault(found.found.topic, []).append(whole)
        place: dict[str, Any] = {"topic": found.found.topic, "partition": found.found.number}
        objects = []
        for segment, one in found.segments if self._with_segments else ():
            where = {"path": str(segment.log.path), **place, "segment": segment.base_offset}
            objects.append(as_json("segment", one, where, unpacked=self._unpacked))
        where = {"path": str(found.found.path), **place}
        obj = as_json("partition", whole, where, unpacked=self._unpacked)
        if self._sort is SortBy.PATH:
            self._print(obj, objects)
        else:
            self._waiting.append((obj, objects))

    def finish(self) -> None:
        """Print what waits, then topics and the sum of all."""
        from logtool.statistics import merged
        from logtool.survey import as_json

        key = _KEYS.get(self._sort, "")
        self._waiting.sort(key=lambda waiting: -(waiting[0][key] or 0))
        for obj, objects in self._waiting:
            self._print(obj, objects)
        topics = {name: (len(parts), merged(parts)) for name, parts in self._topics.items()}
        rows = [
            as_json("topic", one, {"topic": name, "partitions": count}, unpacked=self._unpacked)
            for name, (count, one) in topics.items()
        ]
        table = self._report.settings.format == "table"
        if key:
            rows.sort(key=lambda row: -(row[key] or 0))
        for row in () if table and len(rows) == 1 else rows:
            self._report.item(_without_offsets(row))
        place = {"topics": len(topics), "partitions": sum(count for count, _ in topics.values())}
        whole = merged([one for _, one in topics.values()])
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
