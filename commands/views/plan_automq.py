"""A run of ``plan`` on a bucket of AutoMQ: WALs, streams and the replay of partitions."""

from collections import Counter
from collections.abc import Callable, Iterator

from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object, columns, keep
from logtool.commands.views.plan_tables import DOCUMENT, REPLAY
from logtool.disk import shell
from logtool.exits import Exit
from logtool.log.inputs import GivenPaths
from logtool.metadata import automq_tree
from logtool.running.summary import ActionSummary
from logtool.schemas.columns import Way
from logtool.startup.automq import NodeStart, NodeStartItem, PartitionReplay, StreamRecovery

_STREAMS = keep(
    columns(
        "stream", "topic", "partition", "metadata_end_offset", "end_offset", "recovered_records",
        "lost_offsets",
    ),
    "stream", "topic", "partition", "end_offset", "lost_offsets",
)  # fmt: skip
_REPLAYS = keep(
    columns(
        "topic", "partition", "log_start_offset", "log_end_offset", "recovery_point", "snapshot",
        "replayed_from", "replayed_bytes", "full_replay_bytes", "undone_log_start",
    ),
    "topic", "partition", "replayed_from", "replayed_bytes", where_said=("undone_log_start",),
)  # fmt: skip


def run(given: GivenPaths, settings: OutputSettings) -> Exit:
    """Print what the nodes of a bucket recover and replay at their next start."""
    view = View(
        schema=DOCUMENT.schema,
        columns=columns(*REPLAY.names(Way.CSV)),
        layout=_layout(verbose=settings.verbose),
        row_types=frozenset({REPLAY.name}),
    )
    summary, joined = ActionSummary(), automq_tree.join(given)
    report = Report(settings=settings, view=view, summary=summary, inputs=joined)
    starts = [NodeStart(one, given.selection) for one in automq_tree.trees(joined)]
    items = (item for start in starts for item in start)
    check = " ".join(["logtool verify", *map(shell.path, given.paths)])
    return report.consume(items, NodeStartPrinter(report, summary, check))


class NodeStartPrinter(Printer[NodeStartItem]):
    """Prints the parts of the starts of nodes, and counts for the last line."""

    def __init__(self, report: Report, summary: ActionSummary, check: str) -> None:
        """Begin; `check` is the command that names the objects behind a gap, and what to do."""
        self._report = report
        self._summary = summary
        self._check = check
        self._recovered = self._stopped = self._replayed = self._full = self._undone = 0
        self._lost: Counter[str] = Counter()
        """Offsets that the recovery drops, by partition; of a stream without one by its id."""

    def show(self, item: NodeStartItem) -> None:
        """Print one part."""
        self._report.item(DOCUMENT.row(item))
        if isinstance(item, PartitionReplay):
            self._summary.partitions += 1
            self._replayed += item.replayed_bytes
            self._full += item.full_replay_bytes
            self._undone += item.undone_log_start is not None
        elif isinstance(item, StreamRecovery):
            self._recovered += item.recovered_records
            if item.lost_offsets:
                known = item.topic is not None
                name = f"{item.topic}-{item.partition}" if known else f"stream {item.stream_id}"
                self._lost[name] += item.lost_offsets
        else:
            self._stopped += item.fault is not None
        self._summary.to_do = bool(self._lost or self._stopped)
        if self._summary.to_do:
            self._summary.next.setdefault(self._check)

    def last_lines(self) -> Iterator[Line]:
        """Yield the command to run before the start, then the records recovered and lost."""
        if self._summary.to_do:
            yield f"before the start, to see the objects and what to do: {self._check}", None
        parts = [
            text.count(self._summary.partitions, "partition"),
            f"{text.count(self._recovered, 'record')} recovered from the WAL",
            f"{text.size(self._replayed)} replayed, {text.size(self._full)} without checkpoints",
        ]
        if self._stopped:
            parts.append(f"{text.count(self._stopped, 'node')} would not start")
        if self._undone:
            parts.append(f"{text.count(self._undone, 'deletion')} of records undone")
        if self._lost:
            offsets = text.count(self._lost.total(), "offset")
            parts.append(f"{offsets} of the WAL LOST: {', '.join(sorted(self._lost))}")
        line = text.state(self._summary) + ", ".join(parts)
        if self._summary.complete and not self._summary.to_do:
            line += ": nothing of the WAL is lost"
        yield line, {0: "good", 1: "warning"}.get(int(self._report.exit_status()))


def _layout(*, verbose: bool) -> Callable[[Object], Columns | str | None]:
    def layout(obj: Object) -> Columns | str | None:
        if obj["type"] == "replay":
            return _REPLAYS
        if obj["type"] == "stream":
            changed = obj["recovered_records"] or obj["lost_offsets"]
            return _STREAMS if changed or verbose else None
        return _wal(obj) if obj["type"] == "wal" else None

    return layout


def _wal(obj: Object) -> str:
    """Return the recovery of a WAL in one line."""
    taken = text.count(obj["taken_objects"], "object")
    line = f"WAL of node {obj['node']}: {taken} of {obj['objects']:,} read, "
    line += f"{text.count(obj['records'], 'record')} behind offset {obj['trim_offset']:,}, "
    line += f"{obj['recovered_records']:,} of them in no other object"
    if obj["dropped_objects"]:
        line += f"; {text.count(obj['dropped_objects'], 'object')} behind a gap DROPPED"
    return line + (
        f"; THE NODE DOES NOT START: {text.escape(obj['fault'])}" if obj["fault"] else ""
    )
