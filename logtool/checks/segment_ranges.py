"""The check of a large segment in pieces, each by itself, with their reports joined.

The offset index gives the positions of the cuts, and is not trusted: a piece counts only if sound
batches fill it exactly, and if it has no findings. Rules that need several pieces are applied when
the reports are joined. If anything is out of the ordinary there is no joined report, and the
segment is checked from its start: so the findings never depend on the cuts. A test checks that for
every row of the damage table. Segments of 192 MiB or more are cut; `check_piece` is a function of
plain data to plain data.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from math import inf

from logtool.checks import old_formats
from logtool.checks.edge_walk import plain_pass
from logtool.checks.log_pass import LogPass
from logtool.checks.report import Level, SegmentReport, SegmentTask
from logtool.checks.segment import (
    check_segment,
    finish_log,
    judge_indexes,
    open_indexes,
)
from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats import offset_index, time_index
from logtool.formats.names import FileKind
from logtool.formats.record_batch import MAX_SEGMENT_SIZE, NO_TIMESTAMP, concat
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import ChunkConsumer
from logtool.log.dir import Segment
from logtool.log.index_entries import SparseEntries
from logtool.log.index_join import OffsetIndexJoin, TimeIndexJoin

PIECE_BYTES = 128 * 1024 * 1024
"""Approximate size of a piece: large, so that its overhead is small; small, to use all cores."""

_WHEREVER_CUT = ("/padding", "/preallocated", "/too-large")
"""Ends of the codes of findings that have nothing to do with the batches."""

OnBytes = Callable[[int], None]


@dataclass(slots=True)
class PieceReport:
    """The report of one piece: plain data."""

    report: SegmentReport
    """Report of the batches in the piece, as if they were the whole segment; without findings."""
    ordinary: bool = False
    """True if sound batches fill the piece, and neither they nor the index entries have faults."""
    offset_entries: range = range(0)
    """Entries of the offset index that were compared with the piece; `time_entries` likewise."""
    time_entries: range = range(0)
    first_timestamp: int | None = None
    """Timestamp of the first of `time_entries`, ms; None without entries."""
    max_timestamp: int = NO_TIMESTAMP
    """Largest timestamp of the batches, ms."""
    last_batch_position: int = 0
    wrapper_first: bool = False
    """True if the piece begins with a wrapper, whose first offset is not known."""
    damage: Sequence[Finding | UnreadableError] = ()
    """The first damage in the piece, for a segment that cannot be checked from its start in time.

    It is behind a sound batch, so that the piece surely begins with a batch.
    """


def cut(task: SegmentTask, piece_bytes: int | None = None) -> list[SegmentTask]:
    """Split the task of a segment into smaller tasks, or return it if that is not worth it."""
    log, index = task.segment.log, task.segment.indexes.get(FileKind.OFFSET_INDEX)
    # No index reaches further, and a listing may say any size: the rest belongs to the last piece.
    size = min(log.size, MAX_SEGMENT_SIZE)
    count = round(size / (piece_bytes or PIECE_BYTES))
    if count < 2 or index is None or task.level is Level.QUICK:
        return [task]
    edges = [0]
    with suppress(UnreadableError), index.open_listed() as file:
        for number in range(1, count):
            position = SparseEntries.of_offsets(file).at_or_behind(size * number // count)
            if edges[-1] < position < log.size:
                edges.append(int(position))
    edges.append(log.size)
    if len(edges) == 2:
        return [task]
    return [replace(task, piece=range(start, stop)) for start, stop in pairwise(edges)]


def check_tasks(
    tasks: Sequence[SegmentTask], on_bytes: OnBytes
) -> list[SegmentReport | PieceReport]:
    """Check several segments or pieces, one after the other: one unit of work for `workers`."""
    return [
        check_piece(task, on_bytes) if task.piece else check_segment(task, on_bytes)
        for task in tasks
    ]


def check_piece(task: SegmentTask, on_bytes: OnBytes, *more: ChunkConsumer) -> PieceReport:
    """Check the piece of a task, up to the first thing that is out of the ordinary.

    The input of the consumers `more` is valid only if the piece is `ordinary`; see `join`.
    """
    report = PieceReport(SegmentReport(task.segment.base_offset))
    with suppress(UnreadableError), task.segment.log.open_listed() as log:
        report.ordinary = _is_ordinary(task, log, report, on_bytes, more)
    for consumer in more:
        consumer.finish()
    return report


def join(task: SegmentTask, pieces: Sequence[PieceReport]) -> SegmentReport | None:
    """Return the report of the whole segment; None if it must be checked from its start."""
    if not all(piece.ordinary for piece in pieces) or not _in_order(pieces):
        return None
    report = SegmentReport(task.segment.base_offset, scanned=True, has_end=True)
    for piece in pieces:
        _add(report, piece)
    report.bytes = task.segment.log.size
    epochs = [epoch for epoch, _, _ in report.epochs]
    if any(after <= before for before, after in pairwise(epochs)):
        return None
    indexes, last = open_indexes(task.segment, report), pieces[-1]
    if indexes.offset:
        if indexes.offset.entries != last.offset_entries.stop:
            return None
        indexes.offset.accept(last.last_batch_position)
    if indexes.time:
        if indexes.time.entries != last.time_entries.stop:
            return None
        indexes.time.accept(max(piece.max_timestamp for piece in pieces))
    finish_log(report, task.segment, indexes)
    judge_indexes(task, report, indexes, judged=True)
    codes = [item.code if isinstance(item, Finding) else "" for item in report.findings]
    return report if all(code.endswith(_WHEREVER_CUT) for code in codes) else None


def _in_order(pieces: Sequence[PieceReport]) -> bool:
    """Return whether offsets rise from piece to piece, and time entries hold across pieces."""
    highest = NO_TIMESTAMP
    for before, after in pairwise(pieces):
        highest = max(highest, before.max_timestamp)
        if (
            (after.report.first_offset or 0) <= (before.report.last_offset or 0)
            or after.offset_entries.start != before.offset_entries.stop
            or after.time_entries.start != before.time_entries.stop
            or (after.first_timestamp is not None and after.first_timestamp < highest)
        ):
            return False
    return True


def _add(whole: SegmentReport, piece: PieceReport) -> None:
    """Add the report of the next piece to the report of the segment."""
    part, end = piece.report, whole.next_offset
    if whole.last_offset is None:
        whole.first_offset = part.first_offset
    elif part.first_offset is not None and part.first_offset > end and not piece.wrapper_first:
        whole.gaps.add(end, part.first_offset, whole.end_position)
    whole.gaps.extend(part.gaps)
    whole.with_holes += part.with_holes
    whole.horizons += part.horizons
    whole.old_formats = old_formats.merged((*whole.old_formats, *part.old_formats))
    whole.last_offset, whole.end_position = part.last_offset, part.end_position
    whole.batches += part.batches
    whole.records += part.records
    whole.largest_batch = max(whole.largest_batch, part.largest_batch)
    whole.producer_rows = concat([whole.producer_rows, part.producer_rows])
    for run in part.epochs:
        whole.add_epoch(*run)


def _is_ordinary(
    task: SegmentTask,
    log: LogFile,
    report: PieceReport,
    on_bytes: OnBytes,
    more: Sequence[ChunkConsumer],
) -> bool:
    segment, piece = task.segment, task.piece or range(0)
    if log.size != segment.log.size:
        return False
    offsets, times = _joins(segment, log, piece, report)
    log_pass = LogPass(task, report.report)
    consumers: tuple[ChunkConsumer, ...] = (log_pass, offsets, times, *more)
    at = piece.start
    for chunk in segment.batches(
        log,
        start=at,
        stop=piece.stop,
        payload=task.payload,
        limit=task.limit,
        inspect=log_pass.inspect,
        plain_walk=None if more else plain_pass(task, log_pass.rules, offsets, times),
    ):
        for consumer in consumers:
            consumer.feed(chunk)
        if chunk.damage or log_pass.findings or log_pass.timestamps.has_odd:
            if at > piece.start or at == 0:
                report.damage = log_pass.partial().findings
            return False
        if at == piece.start:
            report.wrapper_first = bool(chunk.table.is_wrapper[0])
        at = log_pass.leave(log, at, chunk, on_bytes)
    if at != piece.stop or log.size_now() != segment.log.size:
        return False
    segment.hold_to_store()
    for consumer in (log_pass, offsets, times):
        consumer.finish()
    report.last_batch_position = offsets.last_batch_position
    report.max_timestamp = times.max_timestamp
    return not (offsets.verdicts.any() or times.verdicts.any())


def _joins(
    segment: Segment, log: LogFile, piece: range, report: PieceReport
) -> tuple[OffsetIndexJoin, TimeIndexJoin]:
    """Return the joins of the entries that point into a piece, and note these entries."""
    offsets, times = offset_index.parse(b""), time_index.parse(b"")
    if file := segment.indexes.get(FileKind.OFFSET_INDEX):
        with file.open_listed() as index:
            entries = SparseEntries.of_offsets(index)
            report.offset_entries = entries.between(piece.start, piece.stop)
            offsets = offset_index.parse(entries.read(report.offset_entries))
    if file := segment.indexes.get(FileKind.TIME_INDEX):
        with file.open_listed() as index:
            entries = SparseEntries.of_times(index)
            start, stop = (
                _relative_offset(segment, log, position) for position in (piece.start, piece.stop)
            )
            report.time_entries = entries.between(start, stop)
            times = time_index.parse(entries.read(report.time_entries))
    if len(times):
        report.first_timestamp = int(times.timestamps[0])
    base = segment.base_offset
    return OffsetIndexJoin(offsets, base), TimeIndexJoin(times, base)


def _relative_offset(segment: Segment, log: LogFile, position: int) -> float:
    """Return the relative base offset of the batch at `position`; infinite at both ends."""
    if position in (0, log.size):
        return inf if position else -inf
    return int.from_bytes(log.read(position, 8), "big", signed=True) - segment.base_offset
