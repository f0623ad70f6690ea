"""Output of statistics: a row for each partition, topic by topic, sparklines and a histogram."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from logtool.commands import options
from logtool.commands.output import Line, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object, TableColumn, columns, keep
from logtool.commands.program import broker_config, parsing
from logtool.commands.views.findings import FurtherFindings
from logtool.commands.views.stat_tables import DOCUMENT, PARTITION, SEGMENT, TOPIC, TOTAL
from logtool.exits import Exit
from logtool.findings import Severity
from logtool.running.summary import Summary
from logtool.schemas.columns import Way
from logtool.stat.run import Survey, Surveyed, TopicTotal
from logtool.stat.statistics import StatisticsOf, merged

SCHEMA = DOCUMENT.schema
_DECIDE = ("partition", "segment", "topic", "in all", "size", "batches", "records", "damage")
"""The columns that stay on a narrow terminal."""
_BARS = "▁▂▃▄▅▆▇█"
_SPARK_WIDTH = 16
_BAR_WIDTH = 40
_KEYS = {
    "size": "log_bytes", "segments": "segments", "batches": "batches", "records": "records",
    "batch-size": "batch_size_median", "ratio": "compression_ratio", "producers": "producers",
    "span": "span_ms", "rate": "bytes_per_second", "damage": "damaged_bytes",
}  # fmt: skip
"""By what is sorted, the largest first, by the words of --sort; `path` is not among them."""


def run(
    inputs: options.AnyInputs,
    running: options.Running,
    printing: options.Printing,
    *,
    sort: str,
    top: int | None,
    segments: bool,
    unpack: bool,
    max_batch_memory: str,
    fail_on: Severity,
) -> Exit:
    """Print statistics of the batches of logs; with `segments` also a row for each segment."""
    settings, given = printing.settings(), inputs.with_buckets()
    limit = parsing.parse_batch_memory(max_batch_memory)
    static = inputs.broker.take(*broker_config.TIMESTAMPS)
    # The rows of CSV and TSV are partitions, or the segments in their place.
    table = SEGMENT if segments else PARTITION
    view = View(
        schema=SCHEMA,
        columns=columns(*table.names(Way.CSV)),
        layout=_layout(segments=segments),
        row_types=frozenset({table.name}),
        sparse=True,
    )
    report = Report(settings=settings, view=view, summary=Summary(), inputs=given)
    survey = Survey(
        given.paths,
        unpack=unpack,
        selection=given.selection,
        limit=limit,
        static=static,
        run=running.run(report),
        flavour=given.flavour,
    )
    return report.consume(survey, StatPrinter(report, sort, top, segments=segments), fail_on)


class StatPrinter(Printer[Surveyed]):
    """Prints partitions as they come, or sorted once all are there, and in the end the sums."""

    def __init__(self, report: Report, sort: str, top: int | None, *, segments: bool) -> None:
        self._report = report
        self._key = _KEYS.get(sort)
        self._top = top
        self._with_segments = segments
        self._waiting: list[tuple[Object, list[Object]]] = []
        self._topics: dict[str | None, TopicTotal] = {}
        self._findings = FurtherFindings(report)

    def show(self, item: Surveyed) -> None:
        """Print one partition, or hold it back, and its findings."""
        summary, whole, of = self._report.summary, item.statistics, item.partition
        summary.partitions += 1
        summary.segments += whole.segments - whole.unread_segments
        summary.batches += whole.batches
        summary.records += whole.records
        summary.bytes += whole.bytes
        self._topics.setdefault(of.topic, TopicTotal()).add(whole)
        objects: list[Object] = [
            SEGMENT.row(
                StatisticsOf(
                    segment.statistics, segment.log, of.topic, of.number, segment.base_offset
                )
            )
            for segment in (item.segments if self._with_segments else ())
        ]
        obj = PARTITION.row(StatisticsOf(whole, of.path, of.topic, of.number))
        if self._key:
            self._waiting.append((obj, objects))
        else:
            self._print(obj, objects)
        for finding in item.findings:
            self._findings.take(finding)

    def finish(self) -> None:
        """Print the partitions that were held back, then the topics and the total."""
        key = self._key or ""
        self._waiting.sort(key=lambda waiting: -(waiting[0][key] or 0))
        for obj, objects in self._waiting[: self._top]:
            self._print(obj, objects)
        topics = {name: (one.partitions, one.statistics) for name, one in self._topics.items()}
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

    def last_lines(self) -> Iterable[Line]:
        """Return the findings."""
        return self._findings.last_lines()

    def _print(self, obj: Object, segments: list[Object]) -> None:
        for segment in segments:
            self._report.item(segment)
        self._report.item(obj)


def sparkline(values: Sequence[int], width: int = _SPARK_WIDTH) -> str:
    """Return bars for the values, each the sum of its neighbours where there are more than `width`.

    A space is nothing at all, the lowest bar is something.
    """
    step = -(-len(values) // width) or 1
    sums = [sum(values[at : at + step]) for at in range(0, len(values), step)]
    most = max(sums, default=0)
    return "".join(_BARS[(value * len(_BARS) - 1) // most] if value else " " for value in sums)


def histogram(sizes: Sequence[Mapping[str, int]]) -> str:
    """Return the batch sizes as lines of bars, whose first space keeps them from being folded."""
    most = max((size["batches"] for size in sizes), default=0)
    lines = []
    for size in sizes:
        count = size["batches"]
        bar = "█" * -(-count * _BAR_WIDTH // most) if count else ""
        lines.append(f" < {text.size(size['below']):>9}  {count:>12,}  {bar}".rstrip())
    return "\n".join(["batches by size", *lines])


def _layout(*, segments: bool) -> Callable[[Object], Columns | str | None]:
    rows = (_NAME, _SEGMENT, *_SHOWN) if segments else (_NAME, *_SHOWN)
    by_type = {
        "partition": keep(rows, *_DECIDE),
        "segment": keep(rows, *_DECIDE),
        "topic": keep(_TOPIC, *_DECIDE),
        "total": keep(_TOTAL, *_DECIDE),
    }

    def layout(obj: Object) -> Columns | str | None:
        if obj["type"] == "histogram":
            return histogram(obj["batch_sizes"]) if obj["batch_sizes"] else None
        return by_type.get(str(obj["type"]))

    return layout


_OF_REDPANDA = re.compile(r"[0-9]+_[0-9]+", re.ASCII)


def _directory(obj: Object) -> str:
    """Return the name of the directory: a moved or deleted one says so by its suffix."""
    path = str(obj["path"])
    if obj["type"] == "segment":
        path = path.rpartition("/")[0]
    above, _, name = path.rpartition("/")
    # Redpanda's are named alike in each topic.
    return f"{above.rpartition('/')[2]}/{name}" if _OF_REDPANDA.fullmatch(name) else name


def _sizes(obj: Object) -> str:
    if obj["batch_size_median"] is None:
        return ""
    return "/".join(str(obj[f"batch_size_{which}"]) for which in ("min", "median", "max"))


def _codecs(obj: Object) -> str:
    total = sum(obj["codecs"].values())
    shares = sorted(obj["codecs"].items(), key=lambda item: -item[1])
    if len(shares) == 1:
        return str(shares[0][0])
    return " ".join(f"{name} {count * 100 / total:.0f}%" for name, count in shares)


def _span(obj: Object) -> str:
    return "" if obj["span_ms"] is None else text.duration(obj["span_ms"] / 1000)


def _bytes(key: str, after: str = "") -> Callable[[Object], str]:
    return lambda obj: "" if obj[key] is None else text.size(obj[key]) + after


def _rate(obj: Object) -> str:
    rate = obj["records_per_second"]
    return "" if rate is None else f"{rate:.1f}"


def _over_time(obj: Object) -> str:
    return sparkline(obj["bytes_over_time"]["bytes"]) if obj["bytes_over_time"] else ""


def _by_size(obj: Object) -> str:
    return sparkline([size["batches"] for size in obj["batch_sizes"]])


def _damage(obj: Object) -> str:
    if obj["unread_segments"]:
        return text.count(obj["unread_segments"], "segment") + " not read"
    if not obj["damaged_ranges"]:
        return ""
    return f"{text.count(obj['damaged_ranges'], 'range')}, {text.size(obj['damaged_bytes'])}"


def _key(key: str) -> Callable[[Object], object]:
    return lambda obj: obj[key]


_NAME = TableColumn("partition", _directory)
_SEGMENT = TableColumn("segment", lambda obj: obj.get("segment", "all"))
_COUNTED = (
    TableColumn("segments", _key("segments")),
    TableColumn("size", _bytes("log_bytes")),
    TableColumn("indexes", _bytes("index_bytes")),
    TableColumn("batches", _key("batches")),
    TableColumn("records", _key("records")),
    TableColumn("batch size", _sizes),
    TableColumn("codec", _codecs),
    TableColumn("ratio", _key("compression_ratio")),
    TableColumn("producers", _key("producers")),
)
_RATES = (
    TableColumn("span", _span),
    TableColumn("records/s", _rate),
    TableColumn("rate", _bytes("bytes_per_second", "/s")),
    TableColumn("over time", _over_time),
)
_LAST = (TableColumn("by size", _by_size), TableColumn("damage", _damage))
_SHOWN = (
    *_COUNTED,
    TableColumn("first", _key("first_offset")),
    TableColumn("last", _key("last_offset")),
    *_RATES,
    *_LAST,
)
_TOPIC = (
    TableColumn("topic", _key("topic")), TableColumn("partitions", _key("partitions")),
    *_COUNTED, *_RATES, *_LAST,
)  # fmt: skip
_TOTAL = (TableColumn("in all", lambda _: ""), *_TOPIC[1:])
