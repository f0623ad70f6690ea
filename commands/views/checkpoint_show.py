"""The offsets in checkpoints: how they are read and look, and what is not flushed of the logs."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from logtool.checkpoints.show import Item, ShownEpoch, ShownPartition, UnflushedOptions, show
from logtool.commands import options
from logtool.commands.output import Line, Printer, Report, View
from logtool.commands.printing import text, writers
from logtool.commands.printing.writers import columns, keep
from logtool.commands.program import parsing
from logtool.errors import UnreadableError, UsageError
from logtool.exits import Exit
from logtool.findings import Finding
from logtool.log.selection import Selection
from logtool.running.summary import ActionSummary
from logtool.schemas.columns import Column, Kind, Table, Way, offset, timed
from logtool.schemas.document import Document

_NO_ROW = "the checkpoint has no row of the partition"
_NO_EPOCHS = "no leader epoch is known"
_NOT_READ = "the log was not read (no --unflushed)"


def _bytes(name: str, meaning: str, null: str) -> Column:
    return Column(name, Kind.INT64, meaning, "bytes", null)


_PARTITION_ROW = Table("partition", "partition", (
    Column("path", Kind.PATH, "the log dir, or the given checkpoint"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    Column("directory", Kind.STRING, "name of the partition dir",
           null="the partition dir is missing, or a single checkpoint was given"),
    offset("recovery_point", "offset up to which the log is known to be flushed", _NO_ROW),
    offset("high_watermark", "checkpointed high watermark", _NO_ROW),
    offset("log_start_offset", "first offset that clients can read", _NO_ROW),
    offset("cleaner_offset", "offset up to which the log is compacted", _NO_ROW),
    Column("leader_epoch", Kind.INT32, "the last leader epoch of the partition", null=_NO_EPOCHS),
    offset("epoch_start_offset", "first offset of the last leader epoch", _NO_EPOCHS),
    offset("log_end_offset", "offset after the last sound batch", _NOT_READ),
    _bytes("unflushed_bytes", "bytes of the log that are not flushed: from the first batch that "
           "ends after the recovery point on", _NOT_READ),
    Column("unflushed_records", Kind.INT64, "records in sound batches that end after the recovery "
           "point", "count", _NOT_READ),
    *timed("unflushed_since_ms", "largest timestamp of the first batch that ends after the "
           "recovery point", f"there is no such batch or time, or {_NOT_READ}"),
    Column("unflushed_age_ms", Kind.INT64, "time from unflushed_since_ms to --now; 0 if --now is "
           "earlier", "ms", f"there is no such timestamp, or {_NOT_READ}"),
    _bytes("recovery_bytes", "bytes of the segments that a start after a kill reads; it reads each "
           "segment from its first byte", _NOT_READ),
    _bytes("recovery_bytes_if", "estimate of the bytes that a start after a kill would read if the "
           "segments had the size of --segment-bytes",
           f"there is no --segment-bytes, or {_NOT_READ}"),
), note="The rows of one partition in the checkpoints of a log dir.", type="partition",
    made_from="logtool.checkpoints.show:ShownPartition")  # fmt: skip
_EPOCH_ROW = Table("epoch", "leader epoch of a partition", (
    Column("path", Kind.PATH, "the leader-epoch-checkpoint"),
    Column("leader_epoch", Kind.INT32, "the leader epoch"),
    offset("start_offset", "first offset of the epoch", None),
    offset("end_offset", "offset at which the next epoch starts", "the epoch is the last one"),
), note="One row of a leader-epoch-checkpoint.", type="epoch",
    made_from="logtool.checkpoints.show:ShownEpoch")  # fmt: skip
DOCUMENT: Final = Document(
    name="checkpoint",
    title="Objects that logtool checkpoint show prints; lint prints those of logtool verify, "
    "rebuild and set those of logtool plan",
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
    writers.TableColumn("unflushed", lambda obj: _size(obj["unflushed_bytes"])),
    writers.TableColumn("records", lambda obj: obj["unflushed_records"]),
    writers.TableColumn("age", lambda obj: _age(obj["unflushed_age_ms"])),
    writers.TableColumn("start_reads", lambda obj: _size(obj["recovery_bytes"])),
    writers.TableColumn("would_read", lambda obj: _size(obj["recovery_bytes_if"])),
    *columns("recovery_point", "log_end_offset", "unflushed_since"),
), "topic", "partition", "unflushed", "age")  # fmt: skip
_EPOCH = columns(*(name for name in _EPOCH_ROW.names(Way.CSV) if name != "path"))
_CSV = columns("type", "path", *(c.title for c in _PARTITION), "start_offset", "end_offset")
_NAMED = 5
"""Partitions beyond a limit that are named."""


def run(
    inputs: options.LocalInputs,
    printing: options.Printing,
    *,
    unflushed: bool,
    max_unflushed: str | None,
    segment_bytes: str | None,
    now: str | None,
) -> Exit:
    """Print the offsets of partitions; return the exit status.

    With `unflushed`, a limit or a size of segments, print what is not flushed of each log.
    """
    settings, given = printing.settings(), inputs.resolved()
    limit = _parse_size("--max-unflushed", max_unflushed)
    size = _parse_size("--segment-bytes", segment_bytes)
    with_unflushed = unflushed or limit is not None or size is not None
    now_ms, meaning = parsing.now_ms(), None
    if with_unflushed and now is not None:
        now_ms, meaning = parsing.parse_moment("--now", now)
    elif now:
        raise UsageError("--now has no effect without --unflushed")
    summary, view = ActionSummary(), make(unflushed=with_unflushed)
    report = Report(settings=settings, view=view, summary=summary, inputs=given)
    if meaning:
        report.note(meaning)
    wanted = UnflushedOptions(now_ms, size) if with_unflushed else None
    rows = _rows(given.paths, given.selection, wanted, summary)
    if wanted:
        return report.consume(rows, UnflushedPrinter(report, summary, limit, size))
    return report.consume(rows, CheckpointPrinter(report, summary))


def _parse_size(option: str, size: str | None) -> int | None:
    return None if size is None else parsing.parse_size(option, size)


def _rows(
    paths: Sequence[Path],
    selection: Selection,
    wanted: UnflushedOptions | None,
    summary: ActionSummary,
) -> Iterator[Item | UnreadableError]:
    """Yield the rows of each path, and count their partitions."""
    for path in paths:
        shown = False
        try:
            for item in show(path, selection, wanted):
                if isinstance(item, ShownPartition | ShownEpoch):
                    # Of a partition dir the rows are epochs, all of one partition.
                    summary.partitions += isinstance(item, ShownPartition) or not shown
                    shown = True
                yield item
        except UnreadableError as error:
            yield error


def make(*, unflushed: bool = False) -> View:
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


class CheckpointPrinter(Printer[Item]):
    """Prints rows of checkpoints; findings and other lines are for people alone."""

    def __init__(self, report: Report, summary: ActionSummary) -> None:
        self._report = report
        self._summary = summary

    def show(self, item: Item) -> None:
        """Print one row, finding or line."""
        if isinstance(item, str):
            self._report.note(item)
        elif isinstance(item, Finding):
            self._summary.add(item)
            self._report.note(f"{item.path}: {item.message}", str(item.severity))
        else:
            self._report.item(DOCUMENT.row(item))


class UnflushedPrinter(CheckpointPrinter):
    """The same, and adds up what is not flushed, and holds it against a limit."""

    def __init__(
        self, report: Report, summary: ActionSummary, limit: int | None, segment_bytes: int | None
    ) -> None:
        super().__init__(report, summary)
        self._limit = limit
        self._segment_bytes = segment_bytes
        self._partitions = self._bytes = self._records = 0
        self._recovery_bytes = self._recovery_bytes_if = 0
        self._since: str | None = None
        self._over: list[str] = []
        """Partitions with more than the limit."""

    def show(self, item: Item) -> None:
        """Print one item, and count a partition of whose log something is known."""
        super().show(item)
        if not isinstance(item, ShownPartition) or item.unflushed_bytes is None:
            return
        self._partitions += item.unflushed_bytes > 0
        self._bytes += item.unflushed_bytes
        self._records += item.unflushed_records or 0
        self._recovery_bytes += item.recovery_bytes or 0
        self._recovery_bytes_if += item.recovery_bytes_if or 0
        times = [time for time in (self._since, item.unflushed_since) if time]
        self._since = min(times, default=None)
        if self._limit is not None and item.unflushed_bytes > self._limit:
            self._over.append(f"{item.topic}-{item.partition}")

    def finish(self) -> None:
        """Count the partitions beyond the limit as something to do."""
        self._summary.to_do = bool(self._over)

    def last_lines(self) -> Iterable[Line]:
        """Yield the sums, and the partitions beyond the limit."""
        since = f", the oldest since {self._since}" if self._since else ""
        where = text.count(self._partitions, "partition")
        records = text.count(self._records, "record")
        yield f"not flushed: {text.size(self._bytes)}, {records} in {where}{since}", None
        line = f"a start after a kill reads {text.size(self._recovery_bytes)}"
        if self._segment_bytes:
            other = text.size(self._recovery_bytes_if)
            line += f"; with segments of {text.size(self._segment_bytes)} about {other}"
        yield line, None
        if self._over and self._limit is not None:
            names = ", ".join(map(text.escape, self._over[:_NAMED]))
            more = f" and {len(self._over) - _NAMED} more" if len(self._over) > _NAMED else ""
            yield f"more than {text.size(self._limit)} in {names}{more}", None
