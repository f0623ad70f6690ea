"""Partitions with remote segments: where their offsets are, and what is wrong with them."""

from collections import Counter
from collections.abc import Iterator

from logtool.commands import options
from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object, TableColumn, columns, keep
from logtool.commands.program import parsing
from logtool.commands.views.remote_tables import (
    DOCUMENT,
    METADATA,
    PARTITION,
    RANGE,
    SEGMENT,
    finding_line,
)
from logtool.disk import shell
from logtool.exits import Exit
from logtool.findings import Finding, Remedy, Severity
from logtool.formats import wording
from logtool.lazy_dataclass import dataclass
from logtool.remote.lineage import PartitionLineage
from logtool.remote.loading import MetadataLog
from logtool.remote.run import Item, RemoteLineage
from logtool.remote.segments import RemoteSegment
from logtool.retention.settings import FROM_FILE
from logtool.running.summary import Summary
from logtool.schemas.columns import Way
from logtool.times import rfc3339

_ROWS = columns(
    "type", *dict.fromkeys(
        (*PARTITION.names(Way.CSV), *RANGE.names(Way.CSV), *SEGMENT.names(Way.CSV))
    ),
)  # fmt: skip
_RANGE = columns("first_offset", "last_offset", "leader_epoch", "place", "segments")
_SEGMENT = keep((
    *columns("segment_id", "first_offset", "last_offset", "state"),
    TableColumn("size", lambda obj: wording.size(obj["bytes"])),
    TableColumn("epochs", lambda obj: ", ".join(str(one) for one, _ in obj["leader_epochs"])),
    *columns("broker"),
    TableColumn("copied", lambda obj: rfc3339(obj["copy_finished_ms"])),
    TableColumn("deleted", lambda obj: rfc3339(obj["delete_finished_ms"])),
), "segment_id", "first_offset", "last_offset", "state")  # fmt: skip


@dataclass(frozen=True, slots=True)
class LineageSegment:
    """One remote segment with its partition."""

    topic: str
    partition: int
    segment: RemoteSegment


def run(
    inputs: options.Inputs,
    running: options.Running,
    printing: options.Printing,
    *,
    at: str | None,
    segments: bool,
    fail_on: Severity,
) -> Exit:
    """Print where the offsets of tiered partitions are; return the exit status.

    `at` is the moment of the state, None for the end of the log. With `segments`, a table shows the
    remote segments too.
    """
    settings, summary, given = printing.settings(), Summary(), inputs.of_one_cluster(inputs.given())
    at_ms, meaning = None, None
    if at is not None:
        at_ms, meaning = parsing.parse_moment("--at", at)
    report = Report(settings, make(settings, segments=segments), summary, given)
    job = RemoteLineage(
        paths=given.paths, selection=given.selection, static=inputs.broker.take(*FROM_FILE),
        has_file=bool(inputs.broker), at_ms=at_ms, run=running.run(report), summary=summary,
    )  # fmt: skip
    if meaning:
        report.note(meaning, "dim")
    return report.consume(job, LineagePrinter(report, job), fail_on)


def make(settings: OutputSettings, *, segments: bool) -> View:
    """Return the view; a table has the remote segments only with `segments`."""

    def layout(obj: Object) -> Columns | str | None:
        match obj["type"]:
            case "metadata-partition":
                return _metadata(obj) if settings.verbose else None
            case "partition":
                return _heading(obj)
            case "range":
                return _RANGE
            case "remote-segment":
                return _SEGMENT if segments else None
            case "finding":
                return finding_line(obj, settings)
        return None

    return View(
        schema=DOCUMENT.schema,
        columns=_ROWS,
        layout=layout,
        row_types=frozenset({"partition", "range", "remote-segment"}),
    )


class LineagePrinter(Printer[Item]):
    """Prints partition after partition, and counts."""

    def __init__(self, report: Report, job: RemoteLineage) -> None:
        self._report = report
        self._job = job
        self._offsets: Counter[str] = Counter()
        self._from_remote: dict[str, None] = {}
        """Topics of which `remote restore` writes something."""
        self._partitions = self._segments = self._alone = 0

    def show(self, item: Item) -> None:
        """Print one item of a run, and count it."""
        if isinstance(item, Finding):
            if item.remedy is Remedy.REMOTE and item.topic:
                self._from_remote[item.topic] = None
            self._report.item(DOCUMENT.row(item))
        elif isinstance(item, MetadataLog):
            self._report.item(METADATA.row(item))
        else:
            self._partition(item)

    def _partition(self, item: PartitionLineage) -> None:
        self._partitions += 1
        self._alone += item.local is None
        self._segments += item.copied
        self._report.item(PARTITION.row(item))
        for one in item.ranges:
            self._offsets[one.place] += one.last_offset - one.first_offset + 1
            self._report.item(RANGE.row(one))
        for segment in item.remote.segments.values():
            listed = LineageSegment(item.remote.topic, item.remote.number, segment)
            self._report.item(SEGMENT.row(listed))

    def last_lines(self) -> Iterator[Line]:
        """Yield the limits of the answer, and the counts."""
        if self._job.unjudged:
            count = text.count(self._job.unjudged, "deletion")
            yield (
                f"{count} not compared with retention: give the broker's own file with "
                "--broker-config"
            ), "warning"  # fmt: skip
        if self._alone and self._job.at_ms is None:
            count = text.count(self._alone, "partition")
            yield f"{count} without a local copy here: only the remote part is known", "warning"
        summary = self._report.summary
        paths = " ".join(map(shell.path, self._job.paths))
        if self._segments and self._job.at_ms is None:
            yield "whether the objects of the segments are there, for the plugin PLUGIN:", "dim"
            yield f"  logtool remote verify --rsm PLUGIN PREFIX {paths}", "dim"
        if self._from_remote:
            topics = [shell.option("--topic", one) for one in self._from_remote]
            yield "Next, before a broker starts, to take from remote storage what is missing:", None
            words = ["logtool remote restore --output restored", *topics, "PREFIX", paths]
            yield f"  {' '.join(words)}", None
        parts = [
            text.count(self._partitions, "partition"),
            text.count(self._segments, "remote segment"),
            *(f"{text.count(count, 'offset')} {_WORDS[place]}"
              for place, count in sorted(self._offsets.items())),
        ]  # fmt: skip
        findings = sum(summary.codes.values())
        parts += [text.count(findings, "finding")] if findings else []
        good = summary.complete and not findings
        yield text.state(summary) + ", ".join(parts), "good" if good else "warning"


_WORDS = {
    "both": "in both parts", "remote": "only remote", "local": "only local",
    "hidden": "hidden from consumers", "nowhere": "nowhere", "deleted": "deleted",
    "unknown": "not known",
}  # fmt: skip


def _metadata(obj: Object) -> str:
    extent = text.extent(obj["log_start_offset"], obj["log_end_offset"])
    count = text.count(obj["records"], "record")
    return (
        f"__remote_log_metadata-{obj['partition']}: {extent}, {count}, {text.escape(obj['path'])}"
    )


def _heading(obj: Object) -> str:
    parts = [f"{text.escape(obj['topic'])}-{obj['partition']}: id {obj['topic_id']}"]
    if obj["log_end_offset"] is None:
        parts.append("no local copy")
    else:
        parts.append(f"log {text.extent(obj['log_start_offset'], obj['log_end_offset'])}")
        parts.append(f"local from {obj['local_start_offset']}")
    copied = text.count(obj["copied"], "segment")
    parts.append(f"{copied} copied, {wording.size(obj['remote_bytes'])}")
    for key, word in (("copying", "being copied"), ("deleting", "being deleted")):
        parts += [f"{obj[key]} {word}"] if obj[key] else []
    parts += [f"{obj['deleted']} deleted"] if obj["deleted"] else []
    parts += [f"partition {obj['deletion']}"] if obj["deletion"] else []
    return "; ".join(parts)
