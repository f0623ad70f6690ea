"""The reading of the segments of a copy: as a whole, or part by part."""

from collections.abc import Callable, Iterator

import numpy as np

from logtool.copies.batches import COLUMNS, NOTHING, CopyBatches, CopyPart, DamagedRange, joined
from logtool.errors import UnreadableError
from logtool.formats.record_batch import BatchTable
from logtool.log.chunk import Chunk
from logtool.log.damage import DamageReason
from logtool.log.dir import Segment

UNREADABLE, OFFSETS = "unreadable", "offsets"
"""Reasons of damage in addition to those of a scan: a log that cannot be read; batches whose
offsets do not belong to the segment."""
BLOCK_ROWS = 16_384
"""Number of batches at which a block is complete; it may exceed that by a chunk."""
BLOCK_BYTES = 64 * 1024 * 1024
"""Number of bytes of the log at which a block is complete, even with few batches."""
_MOST_GROWTH = 64
"""Largest factor by which the room of columns exceeds their rows: only zeros may follow a few
batches, so that the size of the file is a bad estimate of the rows to come."""


def scan_segment(segment: Segment, on_bytes: Callable[[int], None]) -> CopyPart:
    """Read one segment as a whole, in any thread; UnreadableError if that is not possible."""
    table = _GrowingTable(segment)
    collector = _Collector(segment, table.add)
    with segment.log.open() as log:
        at = 0
        for chunk in segment.batches(log, payload=False):
            collector.feed(chunk)
            on_bytes(chunk.end_position - at)
            at = chunk.end_position
        collector.finish()
        return CopyPart(table.batches, collector.take(), log.size)


def try_segment(segment: Segment, on_bytes: Callable[[int], None]) -> CopyPart | UnreadableError:
    """Return the result of `scan_segment`, or its error."""
    try:
        return scan_segment(segment, on_bytes)
    except UnreadableError as error:
        return error


def parts_of(segment: Segment, on_bytes: Callable[[int], None]) -> Iterator[CopyPart]:
    """Read one segment part by part.

    If it cannot be read to its end, the last part has the rest as damage, and UnreadableError is
    raised after it.
    """
    kept: list[CopyBatches] = []
    collector = _Collector(segment, lambda table, _: kept.append(_rows(segment, table)))
    begin = at = 0
    try:
        with segment.log.open() as log:
            for chunk in segment.batches(log, payload=False):
                collector.feed(chunk)
                on_bytes(chunk.end_position - at)
                at = chunk.end_position
                if sum(map(len, kept)) >= BLOCK_ROWS or at - begin >= BLOCK_BYTES:
                    yield CopyPart(joined(kept), collector.take(), at - begin)
                    kept.clear()
                    begin = at
            collector.finish()
            yield CopyPart(joined(kept), collector.take(), log.size - begin)
    except UnreadableError as error:
        collector.give_up(at, error.reason)
        collector.finish()
        yield CopyPart(joined(kept), collector.take(), segment.log.size - begin)
        raise


def _rows(segment: Segment, table: BatchTable) -> CopyBatches:
    """Return the rows of a chunk as a table of their own, which no later chunk changes."""
    columns = (np.asarray(getattr(table, name), np.int64) for name in COLUMNS[1:])
    return CopyBatches(np.full(len(table), segment.base_offset, np.int64), *columns)


def unreadable_segment(segment: Segment, reason: str) -> CopyPart:
    """Return the part of a segment that cannot be read: damage from its first byte to its last."""
    damage = DamagedRange(
        segment=segment.base_offset,
        position=0,
        length=segment.log.size,
        reason=UNREADABLE,
        message=reason,
        first_offset=segment.base_offset,
        last_offset=_end_of(segment),
    )
    return CopyPart(NOTHING, (damage,), segment.log.size)


def _end_of(segment: Segment) -> int | None:
    return None if segment.next_base_offset is None else segment.next_base_offset - 1


class _GrowingTable:
    """The batches of a segment in a single table that grows: allocating memory is slow here."""

    def __init__(self, segment: Segment) -> None:
        self._columns = np.empty((len(COLUMNS), 0), np.int64)
        self._count = 0
        self._segment = segment

    @property
    def batches(self) -> CopyBatches:
        """Return the rows that were added."""
        return CopyBatches(*self._columns[:, : self._count])

    def add(self, table: BatchTable, position: int) -> None:
        """Add the rows of a chunk that ends at a position of the log."""
        first, end = self._count, self._count + len(table)
        if end > self._columns.shape[1]:
            # Room for the rest of the log if its batches stay as large, which is the usual case.
            rest = max(self._segment.log.size - position, 0)
            room = int(end * (1.01 + 1.01 * rest / position))
            room = min(max(room, 3 * first // 2), _MOST_GROWTH * end)
            grown = np.empty((len(COLUMNS), room), np.int64)
            grown[:, :first] = self._columns[:, :first]
            self._columns = grown
        self._columns[0, first:end] = self._segment.base_offset
        for column, name in zip(self._columns[1:], COLUMNS[1:], strict=True):
            column[first:end] = getattr(table, name)
        self._count = end


class _Collector:
    """Collector of sound batches, and of damage with its offsets; a `ChunkConsumer`."""

    def __init__(self, segment: Segment, keep: Callable[[BatchTable, int], None]) -> None:
        """Start without damage; `keep` gets sound batches, and the end position of their chunk."""
        self._keep = keep
        self._segment = segment
        self._damages: list[DamagedRange] = []
        self._open: list[tuple[int, int, str, str, bool]] = []
        """Damage since the last sound batch: (position, length, reason, message, tail)."""
        self._next = segment.base_offset

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk."""
        damage = chunk.damage
        if damage:
            torn = damage.reason in (DamageReason.INCOMPLETE, DamageReason.ZEROS)
            tail = torn and not damage.resynchronised and self._segment.is_active
            # Preallocated bytes that were never written are no damage.
            if not (tail and damage.reason is DamageReason.ZEROS):
                reason = str(damage.reason)
                what = damage.position, damage.length, reason, damage.message, tail
                self._open.append(what)
            return
        table, bad = chunk.table, chunk.misplaced
        for row in [] if bad is None else np.flatnonzero(bad).tolist():
            text = f"batch at offset {table.base_offset[row]}"
            what = int(table.position[row]), int(table.size[row]), OFFSETS, text, False
            self._open.append(what)
        good = table if bad is None else table[~bad]
        if len(good):
            self._close(int(good[:1].first_offset[0]) - 1)
            self._next = int(good.last_offset.max()) + 1
            self._keep(good, chunk.end_position)

    def take(self) -> tuple[DamagedRange, ...]:
        """Return the damage whose offsets are known by now, and forget it."""
        found, self._damages = self._damages, []
        return tuple(found)

    def give_up(self, position: int, reason: str) -> None:
        """Add the bytes from a position on as damage."""
        length = max(self._segment.log.size - position, 0)
        self._open.append((position, length, UNREADABLE, reason, False))

    def finish(self) -> None:
        """Set the offsets of the damage at the end."""
        self._close(_end_of(self._segment))

    def _close(self, last: int | None) -> None:
        """Set the offsets of the damage since the last sound batch; `last` is its last offset."""
        for position, length, reason, message, tail in self._open:
            self._damages.append(
                DamagedRange(
                    segment=self._segment.base_offset,
                    position=position,
                    length=length,
                    reason=reason,
                    message=message,
                    first_offset=self._next,
                    last_offset=last,
                    tail=tail,
                )
            )
        self._open = []
