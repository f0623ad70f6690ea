"""Output of cleaner: a row for each compacted partition."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

from logtool.cleaner.rules import CleaningObstacle
from logtool.cleaner.run import CleanerOptions, CleanerRun, PartitionCleaning
from logtool.commands import options
from logtool.commands.output import Line, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object, TableColumn, columns, keep
from logtool.commands.program import parsing
from logtool.commands.views import wrong_timestamps
from logtool.commands.views.cleaner_tables import DOCUMENT, PARTITION, TOTAL
from logtool.commands.views.findings import to_repair
from logtool.exits import Exit
from logtool.findings import Finding
from logtool.lazy_dataclass import dataclass
from logtool.log.selection import Selection
from logtool.metadata.setting_values import SettingValue
from logtool.retention import settings as retention_settings
from logtool.retention.logs import LiveLogs
from logtool.running.remedies import Remedies
from logtool.running.summary import Summary
from logtool.schemas.columns import Way
from logtool.times import rfc3339

SCHEMA = DOCUMENT.schema
_IN_ORDER = (CleaningObstacle.ACTIVE, CleaningObstacle.EMPTY, CleaningObstacle.RATIO)
"""Obstacles of a partition that has nothing to clean yet, or too little."""
_MOST = 10
"""Partitions of one kind that are described after the table."""


def run(
    inputs: options.LocalInputs,
    running: options.Running,
    printing: options.Printing,
    *,
    at: str,
    changed: list[str],
    records: bool,
    sizes: bool,
) -> Exit:
    """Print what the cleaner does with each partition; return the exit status."""
    chosen, given = printing.settings(), inputs.of_one_broker()
    at_ms, meaning = parsing.parse_moment("--at", at)
    view = View(
        schema=SCHEMA,
        columns=columns(*PARTITION.names(Way.CSV)),
        layout=_layout(at_ms, sizes=sizes),
        row_types=frozenset({PARTITION.name}),
        sparse=True,
    )
    report = Report(settings=chosen, view=view, summary=Summary(), inputs=given)
    static = inputs.broker.take(*retention_settings.CLEANER_FROM_FILE)
    logs = LiveLogs(
        given.paths,
        static,
        selection=given.selection,
        run=running.run(report),
        flavour=given.flavour,
    )
    job = CleanerRun(
        logs,
        CleanerOptions(
            now_ms=at_ms,
            changed=retention_settings.parse_change(changed, retention_settings.CHANGES_OF_CLEANER),
            static=static,
            with_records=records,
            with_sizes=sizes,
        ),
    )
    printer = CleanerPrinter(report, job, at_ms, meaning if at != "now" else None)
    return report.consume(job, printer)


@dataclass(slots=True)
class CleanerTotal:
    """The sums of a run."""

    at_ms: int
    partitions: int = 0
    bytes: int = 0
    cleaned: int = 0
    cleanable_bytes: int = 0
    in_order: int = 0
    kept: int = 0
    bytes_before: int | None = None
    bytes_after: int | None = None
    obstacles: Counter[str] = field(default_factory=Counter)
    settings: tuple[SettingValue, ...] = ()
    topics_known: bool = False

    @property
    def at(self) -> str | None:
        """Return the time of the round in UTC."""
        return rfc3339(self.at_ms)


class CleanerPrinter(Printer[PartitionCleaning]):
    """Prints partitions as they come, and adds them up."""

    def __init__(self, report: Report, job: CleanerRun, at_ms: int, meaning: str | None) -> None:
        self._report, self._job, self._meaning = report, job, meaning
        self._total = CleanerTotal(at_ms)
        self._notes: list[str] = []
        self._note_count = 0
        self._due = 0
        given = report.inputs
        self._remedies = Remedies(
            given.paths if given else (), given.selection if given else Selection()
        )

    def show(self, item: PartitionCleaning) -> None:
        """Print one partition."""
        total, summary = self._total, self._report.summary
        summary.partitions += 1
        summary.segments += item.segments
        summary.bytes += item.bytes
        total.partitions += 1
        total.bytes += item.bytes
        if item.obstacle is None:
            total.cleaned += 1
            total.cleanable_bytes += item.extent.cleanable_bytes
            if item.sizes is not None:
                total.bytes_before = (total.bytes_before or 0) + item.sizes.bytes
                total.bytes_after = (total.bytes_after or 0) + item.sizes.bytes_after
        else:
            total.obstacles[str(item.obstacle)] += 1
            total.in_order += item.obstacle in _IN_ORDER
            total.kept += item.obstacle not in _IN_ORDER
        if item.is_repairable:
            name, number = item.directory.topic, item.directory.partition
            # A copy mends all damage that stops the cleaner alike.
            finding = Finding("batch/crc", "", path=item.fault_path, topic=name, partition=number)
            self._remedies.add(finding)
        self._due += item.horizons_due or 0
        for note in _notes(item):
            self._note_count += 1
            if len(self._notes) < _MOST:
                self._notes.append(f"{item.path.name}: {note}")
        self._report.item(PARTITION.row(item))

    def finish(self) -> None:
        """Print the sums."""
        self._report.summary.partitions += self._job.not_compacted
        self._total.settings = self._job.broker_settings
        self._total.topics_known = self._job.knows_topics
        for one in self._remedies.counts():
            if one.command:
                self._report.summary.next.setdefault(one.command)
        self._report.item(TOTAL.row(self._total))

    def last_lines(self) -> Iterator[Line]:
        """Yield the odd facts, and the sum of the cleaned partitions."""
        total = self._total
        if self._meaning:
            yield self._meaning, "dim"
        yield from ((line, "warning") for line in self._notes)
        if self._note_count > len(self._notes):
            yield f"and {self._note_count - len(self._notes)} more, see --json", "warning"
        if total.obstacles["active-segment"]:
            yield (
                "an active segment is never cleaned. It ends at the first append after the time in "
                "'until' (segment.ms or max.compaction.lag.ms), or where segment.bytes is reached. "
                "Smaller values end it earlier; --with segment.ms=3600000 shows when",
                None,
            )
        if not total.topics_known:
            yield "no metadata log was given: settings of topics are not known", "warning"
        if not total.partitions:
            yield "no partition is compacted", None
            return
        for one in self._remedies.counts():
            if one.command:
                yield to_repair(one.findings, one.remedy, one.command, noun="partition") + ":", None
                yield f"  {one.command}", None
        yield self._sum(), None

    def _sum(self) -> str:
        """Return how many partitions are cleaned, have nothing to clean yet, and are kept."""
        total = self._total
        effects = [f"{text.size(total.cleanable_bytes)} cleanable"] if total.cleaned else []
        if total.bytes_before is not None and total.bytes_after is not None:
            left = f"about {text.size(total.bytes_after)} of {text.size(total.bytes_before)}"
            effects.append(f"leaves {left}")
        if self._due:
            batches = text.count(self._due, "batch", "batches")
            effects.append(f"deletes what is due in {batches}")
        parts = [f"{total.cleaned:,} cleaned now" + (f" ({'; '.join(effects)})" if effects else "")]
        if total.in_order:
            parts.append(f"{total.in_order:,} with nothing or too little to clean yet")
        if total.kept:
            why = ", ".join(
                f"{name} {number:,}"
                for name, number in sorted(total.obstacles.items())
                if name not in _IN_ORDER
            )
            parts.append(f"{total.kept:,} kept from cleaning ({why})")
        return f"{text.count(total.partitions, 'compacted partition')}: {', '.join(parts)}"


def _notes(item: PartitionCleaning) -> Iterator[str]:
    found = item.extent
    if item.transaction is not None and item.obstacle == "open-transaction":
        first, producer = item.transaction.first_offset, item.transaction.producer_id
        yield f"the transaction of producer {producer} is open from offset {first}"
    if item.stamp is not None:
        line = wrong_timestamps.described(item.stamp)
        yield (
            f"{line}; until {_minute(item.due) or 'after 9999'} the cleaner cleans neither this "
            "segment nor those behind it, unless min.compaction.lag.ms is set to 0"
        )
    if item.fault_path is not None:
        line = f"{item.fault_path.name}: byte {item.fault_position}: {item.fault}"
        if item.obstacle is CleaningObstacle.DAMAGE:
            line += (
                "; the cleaner reads also the segments that are clean, and gives the partition up "
                "there after each start of the broker"
            )
        yield line
    if item.future_copy is not None:
        yield f"future copy {item.future_copy}"
    if found.source in ("row-below-log-start", "row-above-log-end"):
        why = str(found.source).removeprefix("row-").replace("-", " ", 1).replace("-", " ")
        yield f"the row {item.checkpoint} is {why}: all is dirty from {found.first_dirty_offset}"
    if item.is_cleaned and item.old_formats:
        old = text.count(item.old_formats, "batch", "batches")
        yield f"Kafka 4.0 and later write what is left of {old} of magic 0 or 1 with magic 2"
    if item.without_key:
        yield f"{text.count(item.without_key, 'record')} without a key: the cleaning deletes them"


def _layout(at_ms: int, *, sizes: bool) -> Callable[[Object], Columns | None]:
    rows = [one for one in _PARTITION if sizes or one.title != "left"]
    rows.append(TableColumn("until", lambda obj: _until(obj, at_ms)))
    rows.append(TableColumn("or after", _room))
    titles = "partition", "dirty", "cleaned", "left", "obstacle"
    # With the sizes there is no room for the time; the notes have that of a wrong timestamp.
    kept = keep(rows, *titles, where_said=() if sizes else ("until",))
    return lambda obj: kept if obj["type"] == "partition" else None


def _obstacle(obj: Object) -> str:
    """Return the obstacle, with the segment that is too young."""
    if obj["obstacle"] == CleaningObstacle.MIN_LAG:
        return f"{obj['obstacle']} at {obj['first_uncleanable_offset']}"
    return str(obj["obstacle"] or "")


def _until(obj: Object, at_ms: int) -> str:
    """Return the time at which an obstacle ends by age, to the minute in UTC.

    An active segment ends at the first append after its time.
    """
    roll = obj["roll"]
    if roll is not None and roll["after_ms"] is not None and roll["after_ms"] <= at_ms:
        return "next append"
    key, holder = ("due", obj) if roll is None else ("after", roll)
    if holder[f"{key}_ms"] is None:
        return ""
    return _minute(holder[key]) or "after 9999"


def _minute(time: str | None) -> str:
    return "" if time is None else time[:16].replace("T", " ")


def _room(obj: Object) -> str:
    return "" if obj["roll"] is None else text.size(obj["roll"]["bytes_left"])


def _left(obj: Object) -> str:
    found = obj["sizes"]
    if found is None:
        return ""
    records = f"{found['records_after']:,} of {found['records']:,} records"
    return f"{'' if found['is_exact'] else 'about '}{records}, {text.size(found['bytes_after'])}"


_PARTITION: Sequence[TableColumn] = (
    TableColumn("partition", lambda obj: obj["path"].rpartition("/")[2]),
    TableColumn("size", lambda obj: text.size(obj["bytes"])),
    TableColumn("dirty", lambda obj: f"{obj['dirty_ratio']:.0%}"),
    TableColumn("from", lambda obj: obj["first_dirty_offset"]),
    TableColumn("to", lambda obj: max(obj["first_dirty_offset"], obj["first_uncleanable_offset"])),
    TableColumn("cleaned", lambda obj: "yes" if obj["is_cleaned"] else "no"),
    TableColumn("left", _left),
    TableColumn("obstacle", _obstacle),
)
