"""Output of retention: a row for each partition, and with --segments for each segment."""

from collections.abc import Callable, Iterator, Sequence

from logtool.commands import options
from logtool.commands.output import Line, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object, TableColumn, columns, keep
from logtool.commands.program import parsing
from logtool.commands.views import wrong_timestamps
from logtool.commands.views.retention_tables import DOCUMENT, PARTITION, REMOTE, SEGMENT, TOTAL
from logtool.errors import UnreadableError
from logtool.exits import Exit
from logtool.formats.names import TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.metadata.log_start import is_tiered
from logtool.metadata.setting_values import SettingValue
from logtool.remote.expiry import RemoteRetention, RemoteRetentionRun
from logtool.retention import settings as retention_settings
from logtool.retention.logs import LiveLogs
from logtool.retention.run import PartitionRetention, RetentionOptions, RetentionRun
from logtool.running.run import Run
from logtool.running.summary import Summary
from logtool.schemas.columns import Way
from logtool.times import rfc3339

SCHEMA = DOCUMENT.schema
_STALE = "logtool explain clean-shutdown/stale"
"""Command about a marker that is older than a log."""
_MOST_STAMPS = 10
"""Odd timestamps that are described after the table."""
_LARGEST = 2**63 - 1
_PLACED = ("high-watermark",)
"""Obstacles of a partition that are shown with the segment that they keep.

The segment of a timestamp in the future is named below the table.
"""


def run(
    inputs: options.LocalInputs,
    running: options.Running,
    printing: options.Printing,
    *,
    at: str,
    changed: list[str],
    segments: bool,
) -> Exit:
    """Print the forecast of each partition; return the exit status."""
    chosen, given = printing.settings(), inputs.of_one_broker()
    start_ms, meaning = parsing.parse_moment("--at", at)
    table = SEGMENT if segments else PARTITION
    view = View(
        schema=SCHEMA,
        columns=columns(*table.names(Way.CSV)),
        layout=_layout(segments=segments, changed=bool(changed)),
        row_types=frozenset({table.name}),
        sparse=True,
    )
    report = Report(settings=chosen, view=view, summary=Summary(), inputs=given)
    static, limits = inputs.broker.take(*retention_settings.FROM_FILE), running.run(report)
    logs = LiveLogs(
        given.paths, static, selection=given.selection, run=limits, flavour=given.flavour
    )
    job = RetentionRun(
        logs,
        RetentionOptions(
            start_ms=start_ms,
            changed=retention_settings.parse_change(changed),
            static=static,
        ),
    )
    printer = RetentionPrinter(report, job, start_ms, meaning if at != "now" else None, segments)
    return report.consume(_both_tiers(logs, job, printer, limits), printer)


def _both_tiers(
    logs: LiveLogs, job: RetentionRun, printer: "RetentionPrinter", limits: Run
) -> Iterator[PartitionRetention | RemoteRetention | UnreadableError]:
    """Yield the partitions, and then the remote parts of those in tiered storage."""
    yield from job
    tiered = {key for key in printer.shown if is_tiered(logs.image, key[0])}
    remote = RemoteRetentionRun(
        list(logs.roots.values()), job.settings, printer.start_ms, tiered, limits
    )
    yield from remote
    printer.without_remote = remote.unknown


@dataclass(slots=True)
class Total:
    """The sums of a run, and the times of its rounds."""

    start_ms: int
    first_ms: int = 0
    every_ms: int = 0
    partitions: int = 0
    segments: int = 0
    bytes: int = 0
    first_segments: int = 0
    first_bytes: int = 0
    freed_bytes: int | None = None
    compacted: int = 0
    emptied: int = 0
    """Partitions of which the first round deletes something."""
    settings: tuple[SettingValue, ...] = ()
    topics_known: bool = False

    @property
    def start(self) -> str | None:
        """Return the start in UTC."""
        return rfc3339(self.start_ms)

    @property
    def first(self) -> str | None:
        """Return the time of the first round in UTC."""
        return rfc3339(self.first_ms)


class RetentionPrinter(Printer[PartitionRetention | RemoteRetention]):
    """Prints partitions as they come, and adds them up."""

    def __init__(
        self,
        report: Report,
        job: RetentionRun,
        start_ms: int,
        meaning: str | None,
        with_segments: bool,
    ) -> None:
        self._report, self._job = report, job
        self._total = Total(start_ms)
        self.start_ms = start_ms
        self.shown: set[TopicPartition] = set()
        """The partitions that were printed."""
        self.without_remote = 0
        """Tiered partitions whose remote part is not known."""
        self._due = self._due_bytes = self._at_risk = 0
        self._meaning, self._with_segments = meaning, with_segments
        self._stamps: list[str] = []
        self._early: list[PartitionRetention] = []
        """Partitions that lose records too early."""
        self._oldest: tuple[int, str] | None = None
        """Timestamp and partition of the oldest segment that the first round deletes."""
        self._by_default = 0
        """Partitions that lose segments in the first round by the default of Kafka."""
        self._stamp_count = self._by_mtime = self._by_watermark = self._after_marker = 0

    def show(self, item: PartitionRetention | RemoteRetention) -> None:
        """Print one partition, or its remote part."""
        if isinstance(item, RemoteRetention):
            self._due += item.due_segments
            self._due_bytes += item.due_bytes
            self._at_risk += item.at_risk_segments
            self._report.item(REMOTE.row(item))
            return
        self.shown.add((item.directory.topic, item.directory.partition))
        total, summary = self._total, self._report.summary
        summary.partitions += 1
        summary.segments += item.count
        summary.bytes += item.bytes
        total.partitions += 1
        total.segments += item.count
        total.bytes += item.bytes
        total.first_segments += item.first_segments
        total.first_bytes += item.first_bytes
        total.emptied += item.first_segments > 0
        if item.first_segments and (self._oldest is None or item.oldest_ms < self._oldest[0]):
            self._oldest = item.oldest_ms, item.path.name
        total.compacted += item.limits.compacts
        if item.freed_bytes is not None:
            total.freed_bytes = (total.freed_bytes or 0) + item.freed_bytes
        self._by_mtime += item.by_mtime
        self._after_marker += item.after_marker
        self._by_watermark += item.obstacle == "high-watermark"
        if item.early:
            self._early.append(item)
        elif item.stamp is not None:
            self._stamp_count += 1
            if len(self._stamps) < _MOST_STAMPS:
                self._stamps.append(wrong_timestamps.of_retention(item))
        if self._with_segments:
            for segment in item.segments:
                self._report.item(SEGMENT.row(segment))
        row = PARTITION.row(item)
        self._by_default += bool(item.first_segments) and _has_default_age(row)
        self._report.item(row)

    def finish(self) -> None:
        """Print the sums."""
        total, job = self._total, self._job
        total.first_ms, total.every_ms = job.rounds.first_ms, job.rounds.every_ms
        if self._after_marker:
            self._report.summary.next.setdefault(_STALE)
        total.settings, total.topics_known = job.broker_settings, job.knows_topics
        self._report.item(TOTAL.row(total))

    def last_lines(self) -> Iterator[Line]:
        """Yield the odd timestamps, the doubts, and what the first round deletes."""
        total = self._total
        if self._meaning:
            yield self._meaning, "dim"
        for one in self._early[:_MOST_STAMPS]:
            yield wrong_timestamps.of_retention(one), "warning"
        if len(self._early) > _MOST_STAMPS:
            hidden = len(self._early) - _MOST_STAMPS
            yield f"and {hidden:,} more that lose records too early, see --json", "warning"
        yield from ((line, "warning") for line in wrong_timestamps.to_keep(self._early))
        yield from ((line, "warning") for line in self._stamps)
        if self._stamp_count > len(self._stamps):
            yield f"and {self._stamp_count - len(self._stamps)} more, see --json", "warning"
        if self._by_mtime:
            counted = text.count(self._by_mtime, "segment")
            yield (
                f"{counted} without a timestamp in the time index: the modification time counts",
                "info",
            )
        if self._after_marker:
            counted = text.count(self._after_marker, "segment")
            line = f"{counted} changed after the clean marker was written: the start takes the "
            yield f"{line}timestamps of their time indexes; what that means: {_STALE}", "warning"
        if self._by_watermark:
            counted = text.count(self._by_watermark, "partition")
            yield f"{counted} kept until the broker raises the high watermark", "info"
        if not total.partitions:
            yield text.state(self._report.summary) + "retention applies to no partition here", None
            return
        if not total.topics_known:
            yield "no metadata log was given: settings of topics are not known", "warning"
        if self.without_remote:
            counted = text.count(self.without_remote, "tiered partition")
            line = f"{counted} without a record in __remote_log_metadata here, so that the remote "
            yield f"{line}part is not known; give the log dirs that have the records", "warning"
        if self._at_risk:
            counted = text.count(self._at_risk, "remote segment")
            line = f"{counted} that retention keeps may be deleted by a leader before 4.3.2, which "
            yield f"{line}may count local segments twice (KAFKA-20732)", "warning"
        if self._due:
            counted = text.count(self._due, "remote segment")
            yield f"a leader deletes {counted} ({text.size(self._due_bytes)})", None
        delay = total.first_ms - total.start_ms
        what = text.count(total.first_segments, "segment")
        line = f"{text.duration(delay / 1000)} after the start retention deletes {what}"
        if total.first_segments:
            where = text.count(total.emptied, "partition")
            line += f" ({text.size(total.first_bytes)}) of {where}"
            line += f", the oldest of {self._oldest[1]}" if self._oldest else ""
        if self._by_default and not (self._report.inputs and self._report.inputs.config):
            where = text.count(self._by_default, "partition")
            yield (
                f"{where} by Kafka's default of 7 days, which the metadata log does not change; if "
                "the broker's own file does (log.retention.ms), give it with --broker-config",
                "warning",
            )
        if total.freed_bytes is not None:
            more = "more" if total.freed_bytes >= 0 else "less"
            line += f", {text.size(abs(total.freed_bytes))} {more} than without --with"
        yield text.state(self._report.summary) + line, None


def _has_default_age(row: Object) -> bool:
    """Return whether retention.ms of a partition is the default of Kafka."""
    return any(
        one["name"] == "retention.ms" and one["source"] == "default" for one in row["settings"]
    )


def _layout(*, segments: bool, changed: bool) -> Callable[[Object], Columns | None]:
    rows = [one for one in _PARTITION if changed or one.title != "freed by --with"]
    kept = keep(rows, "partition", "first round", "freed by --with", "stays", "goes")
    by_type = {
        "partition": None if segments else kept,
        "segment": keep(_SEGMENT, "partition", "segment", "goes", "stays", "timestamp"),
        "remote": _REMOTE,
    }
    return lambda obj: by_type.get(str(obj["type"]))


def _time(key: str) -> Callable[[Object], str]:
    def shown(obj: Object) -> str:
        value = obj[key]
        return "" if value is None else str(value)[:19].replace("T", " ")

    return shown


def _goes(key: str) -> Callable[[Object], str]:
    """Return a function for the time at which something goes: to the second, in UTC."""

    def shown(obj: Object) -> str:
        if obj[f"{key}_ms"] is None:
            return "never" if obj["obstacle"] else ""
        return str(obj[key])[:16].replace("T", " ") if obj[key] else "after 9999"

    return shown


def _first(obj: Object) -> str:
    if not obj["first_segments"]:
        return ""
    said = f"{obj['first_segments']:,} of {obj['segments']:,}, {text.size(obj['first_bytes'])}"
    first, last = obj["deleted_first_offset"], obj["deleted_last_offset"]
    if first is None:
        return said
    return f"{said}, {text.offsets(first, 'the end' if last is None else last)}"


def _stays(obj: Object) -> str:
    if obj["obstacle"] is None:
        return ""
    if obj["type"] == "partition":
        at = obj["blocked_at"] if obj["obstacle"] in _PLACED else None
    else:
        at = obj["held_by"]
    return str(obj["obstacle"]) if at is None else f"{obj['obstacle']} at {at}"


def _limits(obj: Object) -> str:
    policy, *limits = obj["settings"]
    return ", ".join([_sourced(policy["value"] or "none", policy), *_age_and_size(*limits)])


def _whole_limits(obj: Object) -> str:
    return ", ".join(_age_and_size(*obj["settings"]))


def _age_and_size(age: Object, most: Object) -> list[str]:
    said = []
    if int(age["value"]) >= 0:
        said.append(_sourced(_age(int(age["value"])), age))
    if int(most["value"]) >= 0:
        said.append(_sourced(text.size(int(most["value"])), most))
    return said


def _sourced(value: str, setting: Object) -> str:
    return value if setting["source"] == "default" else f"{value} ({setting['source']})"


def _age(milliseconds: int) -> str:
    return "no limit" if milliseconds == _LARGEST else wrong_timestamps.age(milliseconds)


def _freed(obj: Object) -> str:
    return "" if obj["freed_bytes"] is None else text.size(obj["freed_bytes"])


_PARTITION: Sequence[TableColumn] = (
    TableColumn("partition", lambda obj: obj["path"].rpartition("/")[2]),
    TableColumn("size", lambda obj: text.size(obj["bytes"])),
    TableColumn("first round", _first),
    TableColumn("freed by --with", _freed),
    TableColumn("stays", _stays),
    TableColumn("goes", _goes("next")),
    TableColumn("limits", _limits),
)
_SEGMENT: Sequence[TableColumn] = (
    TableColumn("partition", lambda obj: obj["path"].rpartition("/")[0].rpartition("/")[2]),
    TableColumn("segment", lambda obj: obj["base_offset"]),
    TableColumn("size", lambda obj: text.size(obj["size"])),
    TableColumn("goes", _goes("deleted")),
    TableColumn("round", lambda obj: obj["round"]),
    TableColumn("rule", lambda obj: obj["rule"]),
    TableColumn("stays", _stays),
    TableColumn("timestamp", _time("timestamp")),
    TableColumn("source", lambda obj: obj["timestamp_source"]),
)
_REMOTE: Sequence[TableColumn] = (
    TableColumn("remote part of", lambda obj: f"{obj['topic']}-{obj['partition']}"),
    TableColumn("remote", lambda obj: text.size(obj["remote_bytes"])),
    TableColumn("only local", lambda obj: text.size(obj["only_local_bytes"])),
    TableColumn("deleted", lambda obj: f"{obj['due_segments']:,} of {obj['segments']:,}"),
    TableColumn("rule", lambda obj: ", ".join(obj["rules"])),
    TableColumn("log start", lambda obj: obj["log_start_offset"]),
    TableColumn("goes", _time("next")),
    TableColumn("limits", _whole_limits),
)
