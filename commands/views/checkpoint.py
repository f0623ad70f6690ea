"""How checkpoints and changes to them look, and how such changes are made."""

import difflib
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from logtool.checkpoints.carry_out import carry_out, held
from logtool.checkpoints.edit import Edit
from logtool.commands.output import OutputSettings, Report, View
from logtool.commands.printing import text, writers
from logtool.commands.printing.writers import Object, columns, keep
from logtool.commands.views import actions
from logtool.disk import shell
from logtool.errors import UnreadableError
from logtool.exits import Exit
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.running.summary import ActionSummary
from logtool.schemas.columns import Column, Kind, Table, Way, offset, timed
from logtool.schemas.document import Document
from logtool.schemas.printed import ACTION

if TYPE_CHECKING:
    from logtool.log.inputs import GivenPaths

_NO_ROW = "the checkpoint has no row of the partition"
_NO_EPOCHS = "no leader epoch is known"
_NOT_READ = "the log was not read, as without --unflushed"


def _bytes(name: str, meaning: str, null: str) -> Column:
    return Column(name, Kind.INT64, meaning, "bytes", null)


_PARTITION_ROW = Table("partition", "partition", (
    Column("path", Kind.PATH, "the log dir, or the one checkpoint that was given"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    Column("directory", Kind.STRING, "name of the partition dir",
           null="it is gone, or one checkpoint was given"),
    offset("recovery_point", "offset up to which the log is known to be flushed", _NO_ROW),
    offset("high_watermark", "checkpointed high watermark", _NO_ROW),
    offset("log_start_offset", "first offset that clients are given", _NO_ROW),
    offset("cleaner_offset", "offset up to which the log is compacted", _NO_ROW),
    Column("leader_epoch", Kind.INT32, "the last leader epoch of the partition", null=_NO_EPOCHS),
    offset("epoch_start_offset", "first offset of the last leader epoch", _NO_EPOCHS),
    offset("log_end_offset", "offset behind the last sound batch", _NOT_READ),
    _bytes("unflushed_bytes", "bytes of the log from the first batch on that ends behind the "
           "recovery point", _NOT_READ),
    Column("unflushed_records", Kind.INT64, "records in sound batches that end behind "
           "the recovery point", "count", _NOT_READ),
    *timed("unflushed_since_ms", "largest timestamp of the first batch that ends behind the "
           "recovery point", f"there is none, it has no time, or {_NOT_READ}"),
    Column("unflushed_age_ms", Kind.INT64, "time from unflushed_since_ms to --now; 0 where "
           "--now is earlier", "ms", f"there is no such timestamp, or {_NOT_READ}"),
    _bytes("recovery_bytes", "bytes of the segments that a start after a kill reads, each from "
           "its first byte", _NOT_READ),
    _bytes("recovery_bytes_if", "bytes that a start after a kill would read if the log were in "
           "segments of the size of --segment-bytes, from its first byte on: an estimate",
           f"there is no --segment-bytes, or {_NOT_READ}"),
), note="What the checkpoints of a log dir say of one partition.", type="partition",
    made_from="logtool.checkpoints.view:PartitionRow")  # fmt: skip
_EPOCH_ROW = Table("epoch", "leader epoch of a partition", (
    Column("path", Kind.PATH, "the leader-epoch-checkpoint"),
    Column("leader_epoch", Kind.INT32, "the leader epoch"),
    offset("start_offset", "first offset of the epoch", None),
    offset("end_offset", "offset at which the next epoch starts", "it is the last epoch"),
), note="One row of a leader-epoch-checkpoint.", type="epoch",
    made_from="logtool.checkpoints.view:EpochRow")  # fmt: skip
DOCUMENT: Final = Document(
    name="checkpoint",
    title="What logtool checkpoint show prints; lint prints what logtool verify does, rebuild and "
    "set what logtool plan does",
    tables=(_PARTITION_ROW, _EPOCH_ROW),
)
SCHEMA = DOCUMENT.schema
_PARTITION = keep(columns(
    "topic", "partition", "directory", "recovery_point", "high_watermark", "log_start_offset",
    "cleaner_offset", "leader_epoch", "epoch_start_offset",
), "topic", "partition", "recovery_point", "high_watermark")  # fmt: skip
_UNFLUSHED = columns(
    "topic", "partition", "recovery_point", "log_end_offset", "unflushed_bytes",
    "unflushed_records", "unflushed_since", "unflushed_age_ms", "recovery_bytes",
    "recovery_bytes_if",
)  # fmt: skip
_FOR_PEOPLE = keep((
    *columns("topic", "partition"),
    writers.Column("unflushed", lambda obj: _size(obj["unflushed_bytes"])),
    writers.Column("records", lambda obj: obj["unflushed_records"]),
    writers.Column("age", lambda obj: _age(obj["unflushed_age_ms"])),
    writers.Column("start_reads", lambda obj: _size(obj["recovery_bytes"])),
    writers.Column("would_read", lambda obj: _size(obj["recovery_bytes_if"])),
    *columns("recovery_point", "log_end_offset", "unflushed_since"),
), "topic", "partition", "unflushed", "age")  # fmt: skip
_EPOCH = columns(*(name for name in _EPOCH_ROW.names(Way.CSV) if name != "path"))
_CSV = columns("type", "path", *(c.title for c in _PARTITION), "start_offset", "end_offset")


def of_rows(*, unflushed: bool = False) -> View:
    """Return the view of `checkpoint show`; of what is `unflushed` it has other columns."""
    layouts = {"partition": _FOR_PEOPLE if unflushed else _PARTITION, "epoch": _EPOCH}
    return View(
        schema=SCHEMA,
        columns=_UNFLUSHED if unflushed else _CSV,
        layout=lambda obj: layouts.get(obj["type"]),
        row_types=frozenset(layouts),
    )


def _size(count: int | None) -> str:
    return "" if count is None else text.size(count)


def _age(age_ms: int | None) -> str:
    return "" if age_ms is None else text.duration(age_ms / 1000)


@dataclass(slots=True)
class NotFlushed:
    """Adds up what is not flushed, and holds it against a limit."""

    limit: int | None
    """Bytes of one partition; None: there is none."""
    segment_bytes: int | None
    partitions: int = 0
    """Those that hold some."""
    bytes: int = 0
    records: int = 0
    recovery_bytes: int = 0
    recovery_bytes_if: int = 0
    since: str | None = None
    over: list[str] = field(default_factory=list)
    """Names of those that hold more than the limit."""

    def add(self, obj: Object) -> None:
        """Count one partition; one of which nothing is known is left out."""
        if obj["unflushed_bytes"] is None:
            return
        self.partitions += obj["unflushed_bytes"] > 0
        for name in ("bytes", "records"):
            setattr(self, name, getattr(self, name) + obj[f"unflushed_{name}"])
        self.recovery_bytes += obj["recovery_bytes"]
        self.recovery_bytes_if += obj["recovery_bytes_if"] or 0
        times = [time for time in (self.since, obj["unflushed_since"]) if time]
        self.since = min(times, default=None)
        if self.limit is not None and obj["unflushed_bytes"] > self.limit:
            self.over.append(f"{obj['topic']}-{obj['partition']}")

    def lines(self) -> Iterable[str]:
        """Yield what it comes to, for people."""
        since = f", the oldest since {self.since}" if self.since else ""
        where = text.count(self.partitions, "partition")
        records = text.count(self.records, "record")
        yield f"not flushed: {text.size(self.bytes)}, {records} in {where}{since}"
        line = f"a start after a kill reads {text.size(self.recovery_bytes)}"
        if self.segment_bytes:
            other = text.size(self.recovery_bytes_if)
            line += f"; with segments of {text.size(self.segment_bytes)} about {other}"
        yield line
        if self.over and self.limit is not None:
            names = ", ".join(map(text.escape, self.over[:_NAMED]))
            more = f" and {len(self.over) - _NAMED} more" if len(self.over) > _NAMED else ""
            yield f"more than {text.size(self.limit)} in {names}{more}"


_NAMED = 5
"""Partitions beyond a limit that are named."""


def of_edits(settings: OutputSettings, diffs: dict[str, str]) -> View:
    """Return the view of what changes; `diffs` are the differences of the files, by their path."""
    return replace(
        actions.make(settings), lines={"table": lambda obj: diffs.get(obj.get("path") or "")}
    )


@dataclass(frozen=True, slots=True)
class Job:
    """Edits that are shown and, where that is wanted, made."""

    settings: OutputSettings
    log_dir: Path
    apply: bool
    undo_dir: Path | None
    command: str
    """What is run, for whoever finds the undo directory."""
    summary: ActionSummary = field(default_factory=ActionSummary)
    inputs: "GivenPaths | None" = None
    unchanged: str = "nothing to change"
    """What is said where there is nothing to do."""

    def run(self, find: Callable[[], Iterable[Edit | UnreadableError]]) -> Exit:
        """Show what `find` returns, and do it if all of it could be found; returns the status."""
        diffs: dict[str, str] = {}
        edits: list[Edit] = []
        undo_dir = None
        summary = self.summary
        report = Report(
            settings=self.settings,
            view=of_edits(self.settings, diffs),
            summary=summary,
            inputs=self.inputs,
        )
        none: list[Path] = []
        holding = held(self.log_dir, self.undo_dir) if self.apply else nullcontext(none)
        # The report is outside: it is what takes signals, also while an earlier change is finished.
        with report, holding as finished:
            for place in finished:
                report.note(f"an earlier change was finished first; to undo it: {_undo(place)}")
            for item in find():
                if isinstance(item, UnreadableError):
                    report.unreadable(item)
                    continue
                edits.append(item)
                diffs[str(item.action.path)] = difference(item)
                report.item(ACTION.row(item.action))
            summary.to_do = bool(edits) and not self.apply
            if self.apply and edits and summary.complete:
                undo_dir = carry_out(edits, self.log_dir, self.undo_dir, self.command)
                report.item(actions.undo_object(undo_dir))
        for edit in edits:
            self._explain(report, edit)
        self._conclude(report, edits, undo_dir)
        return report.exit_status()

    def _explain(self, report: Report, edit: Edit) -> None:
        for reason in edit.reasons:
            report.note(f"{edit.action.path}: {reason}")
        marker = self.log_dir / FileKind.CLEAN_SHUTDOWN
        if edit.action.path.name == FileKind.RECOVERY_POINT_CHECKPOINT and marker.exists():
            report.note(f"{marker} is there: a broker that finds it recovers nothing at all")

    def _conclude(self, report: Report, edits: list[Edit], undo_dir: Path | None) -> None:
        state = text.state(self.summary)
        count = f"{state}{text.count(len(edits), 'file')}"
        if undo_dir:
            report.note(f"{count} changed; to undo it: {_undo(undo_dir)}", "good")
        elif edits and self.apply:
            report.note(f"{count} to change; nothing was written", "error")
        elif edits:
            report.note(f"{count} to change; nothing was written; add --apply to do it", "warning")
        else:
            report.note(f"{state}{self.unchanged}", None if state else "good")


def difference(edit: Edit) -> str:
    """Return the unified difference of a file's text, fit for a terminal and for patch(1)."""
    name, change = text.escape(str(edit.action.path)), edit.action.change
    before = name if change and change.seen else "/dev/null"
    after = "/dev/null" if change and change.content is None else name
    lines = difflib.unified_diff(_lines(edit.before), _lines(edit.after), before, after)
    return "\n".join(line.removesuffix("\n") for line in lines)


def _undo(undo_dir: Path) -> str:
    return f"logtool undo --apply {shell.path(undo_dir)}"


def _lines(data: bytes) -> list[str]:
    """Return the lines of a file, each with its end; the last says where it has none."""
    content = data.decode("utf-8", "backslashreplace")
    lines = [f"{text.escape(line)}\n" for line in content.split("\n")]
    if lines[-1] == "\n":
        return lines[:-1]
    lines[-1] += "\\ No newline at end of file\n"
    return lines
