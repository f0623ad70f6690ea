"""Index entries compared with the batches of the log: one linear merge, chunk by chunk.

The rules are those that make every lookup correct, not equality with a rebuilt file: an index that
a broker appended to, that compaction wrote or that an older release began differs from a rebuilt
one and is right all the same (``LogSegment.append``, ``OffsetIndex.lookup``, ``TimeIndex.lookup``).
Releases before 2.0 indexed the first offset of an append, also where that is the first one inside
a compressed wrapper of magic 0 or 1, whose own offset is the last (``LogSegment`` of 1.1). And
they left batches that compaction had emptied out of the time index (``MemoryRecords.filterTo``).
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum

import numpy as np

from logtool.formats.offset_index import OffsetIndex
from logtool.formats.record_batch import NO_TIMESTAMP, BatchTable, Column
from logtool.formats.time_index import TimeIndex
from logtool.log.chunk import Chunk

ABSENT = -1
ENTRY_ROWS = 5
"""Rows of the `columns` of a join: what it looks for, and what it found."""


class EntryState(IntEnum):
    """State of an index entry, compared with the log."""

    RIGHT = 0
    UNKNOWN = 1
    """Its place in the log is damaged."""
    NO_BATCH = 2
    """No batch begins at its position, or none holds its offset."""
    OFFSET = 3
    """A lookup through it would miss records."""
    TIMESTAMP = 4
    """The batch that holds its offset has another largest timestamp."""
    LATER = 5
    """A record before it has a later timestamp."""


class OffsetIndexJoin:
    """Joins an offset index with the log: a `ChunkConsumer`, which comes to `verdicts`.

    The columns have one row an entry, in the index's order: `batch_base` and `batch_last` of the
    batch at its position (int64, -1 where none begins there).
    """

    def __init__(self, index: OffsetIndex, base_offset: int) -> None:
        count = len(index)
        # Lookups assume rising positions; where they do not rise, the format's own rules say so.
        self._order = _order(index.positions)
        self._offsets = index.offsets(base_offset)
        self.columns = np.full((ENTRY_ROWS, count), ABSENT, np.int64)
        """One of each entry; `_kernels.walk_plain` fills them, too, where the index `is_sorted`."""
        self._positions, self.batch_base, self.batch_last, self._first, self._before = self.columns
        # The first offset in the batch is `ABSENT` for a wrapper, which does not have it.
        self._positions[:] = index.positions if self.is_sorted else index.positions[self._order]
        self._in_damage = np.zeros(count, np.bool_)
        self._highest = ABSENT
        self._end = 0
        self.last_batch_position = 0
        """Byte position of the last batch of the log so far."""
        self.verdicts = np.full(count, EntryState.UNKNOWN, np.int8)
        """`EntryState`s, one an entry."""

    @property
    def is_sorted(self) -> bool:
        """Return whether no position is below the one before it."""
        return self._order is None

    def begin_behind(self, last_offset: int) -> None:
        """Take the log up to an offset for read, its highest until there: no entry points to it."""
        self._highest = last_offset

    def odd_before(self, count: int) -> list[list[int]]:
        """Return the columns of those of the first entries that are not right, for `accept`.

        With them come the entries that end their appends, and the last one that points to a batch:
        its append may go on. The join has come to its verdicts.
        """
        there = np.flatnonzero(self.batch_base[:count] != ABSENT)
        odd = np.flatnonzero(self.verdicts[:count])
        behind = there.searchsorted(odd, "right")
        rows = np.unique(np.concatenate((odd, there[behind[behind < len(there)]], there[-1:])))
        found = np.column_stack((rows, self._in_damage[rows], self.columns[1:, rows].T))
        return [*map(list, found.tolist())]

    def accept(self, count: int, odd: Iterable[Sequence[int]]) -> None:
        """Take the first entries for right, where the index `is_sorted`, but for those of `odd`.

        `odd` is what `odd_before` of an earlier join returned.
        """
        for found in (self.batch_base, self.batch_last, self._first):
            found[:count] = self._offsets[:count]
        self._before[:count] = self._offsets[:count] - 1
        for row, in_damage, *columns in odd:
            self._in_damage[row], self.columns[1:, row] = in_damage, columns

    def first_at(self, position: int) -> int:
        """Return the first entry, by position, that does not point before `position`."""
        return int(self._positions.searchsorted(position))

    def forget(self, first: int) -> None:
        """Forget what was found for the entries from `first` on, where the index `is_sorted`."""
        self.columns[1:, first:] = ABSENT

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk of the log; batches that are misplaced count as damage."""
        self._end = chunk.end_position
        if chunk.damage:
            self._damage(chunk.damage.position, self._end)
        table, misplaced = chunk.table, chunk.misplaced
        if len(table):
            self.last_batch_position = int(table.position[-1])
        if misplaced is not None:
            for row in np.flatnonzero(misplaced):
                self._damage(int(table.position[row]), int(table.end_position[row]))
            table = table[~misplaced]
        if not len(table) or not len(self._positions):
            return
        if chunk.at_edges:  # its entries are filled
            self._highest = int(table.last_offset[-1])
            return
        ends = [table.position[0], table.position[-1] + 1]
        first, last = self._positions.searchsorted(ends).tolist()
        wanted = self._positions[first:last]
        rows = table.position.searchsorted(wanted, "right") - 1
        hit = table.position.take(rows) == wanted
        entries = _entries(self._order, first, last)
        if not hit.all():
            entries, rows = _entries(self._order, first, last, hit), rows[hit]
        base = table.base_offset.take(rows)
        self.batch_base[entries] = base
        self.batch_last[entries] = table.last_offset.take(rows)
        if chunk.plain is None:
            base = np.where(table.is_wrapper.take(rows), ABSENT, base)
        self._first[entries] = base
        if _goes_on(chunk, self._highest):
            self._before[entries] = _before(table.last_offset, rows, self._highest)
            self._highest = int(table.last_offset[-1])
        else:
            highest = _rising(table.last_offset, self._highest)
            self._before[entries] = highest[rows]
            self._highest = int(highest[-1])

    def _damage(self, begin: int, end: int) -> None:
        first, last = np.searchsorted(self._positions, [begin, end]).tolist()
        self._in_damage[_entries(self._order, first, last)] = True

    def finish(self) -> None:
        """Come to the verdicts."""
        if not len(self.batch_base):
            return
        there = self.batch_base != ABSENT
        # An append reaches up to the batch before the next entry's, or the end of the log.
        reach = np.full(len(there), self._highest, np.int64)
        rows = np.flatnonzero(there)
        reach[rows[:-1]] = self._before[rows[1:]]
        wrong = there & (
            (self._offsets <= self._before)
            | (self._offsets < self._first)
            | (self._offsets > np.maximum(reach, self.batch_last))
        )
        verdicts = np.where(wrong, EntryState.OFFSET, EntryState.RIGHT)
        verdicts[~there] = EntryState.NO_BATCH
        # A position beyond the log breaks a rule of the file itself.
        beyond = np.zeros(len(there), np.bool_)
        beyond[_entries(self._order, 0, len(there))] = self._positions >= self._end
        verdicts[~there & (self._in_damage | beyond)] = EntryState.UNKNOWN
        self.verdicts = verdicts.astype(np.int8)


class TimeIndexJoin:
    """Joins a time index with the log: a `ChunkConsumer`, which comes to `verdicts`.

    The columns have one row an entry: `batch_base`, `batch_last` and `batch_timestamp` (ms) of the
    batch that holds its offset (int64; base and last -1 where none does).
    """

    def __init__(self, index: TimeIndex, base_offset: int) -> None:
        count = len(index)
        self._timestamps = index.timestamps
        offsets = index.offsets(base_offset)
        self._order = _order(offsets)
        self.columns = np.full((ENTRY_ROWS, count), ABSENT, np.int64)
        """One of each entry, which `_kernels.walk_plain` fills, too, where the index `is_sorted`.
        Without a batch there is no timestamp, which is as much as `ABSENT`."""
        self._offsets, self.batch_base, self.batch_last = self.columns[:3]
        self.batch_timestamp, self._before = self.columns[3:]
        self._offsets[:] = offsets if self.is_sorted else offsets[self._order]
        self._highest = base_offset - 1
        self.max_timestamp = NO_TIMESTAMP
        """Largest timestamp of any batch with records so far, ms."""
        self._damaged = False
        self.verdicts = np.full(count, EntryState.UNKNOWN, np.int8)
        """`EntryState`s, one an entry."""

    @property
    def is_sorted(self) -> bool:
        """Return whether no offset is below the one before it."""
        return self._order is None

    def begin_behind(self, last_offset: int, max_timestamp: int, *, damaged: bool = False) -> None:
        """Take the log up to an offset for read, its highest; the largest timestamp is in ms."""
        self._highest, self.max_timestamp = last_offset, max_timestamp
        self._damaged = damaged

    def odd_before(self, count: int) -> list[list[int]]:
        """Return the columns of those of the first entries that are not right, for `accept`."""
        rows = np.flatnonzero(self.verdicts[:count])
        return [*map(list, np.column_stack((rows, self.columns[1:, rows].T)).tolist())]

    def accept(self, count: int, odd: Iterable[Sequence[int]]) -> None:
        """Take the first entries for right, where the index `is_sorted`, but for those of `odd`."""
        for found in (self.batch_base, self.batch_last):
            found[:count] = self._offsets[:count]
        for found in (self.batch_timestamp, self._before):
            found[:count] = self._timestamps[:count]
        for row, *columns in odd:
            self.columns[1:, row] = columns

    def first_behind(self, offset: int) -> int:
        """Return the first entry, by offset, that is behind `offset`."""
        return int(self._offsets.searchsorted(offset, "right"))

    def forget(self, first: int) -> None:
        """Forget what was found for the entries from `first` on, where the index `is_sorted`."""
        self.columns[1:, first:] = ABSENT

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk of the log; batches that are misplaced count as damage."""
        misplaced = chunk.misplaced
        if chunk.damage or misplaced is not None:
            self._damaged = True
        table = chunk.table if misplaced is None else chunk.table[~misplaced]
        if not len(table):
            return
        if chunk.plain and chunk.at_edges:  # its entries are filled
            self._highest = int(table.last_offset[-1])
            self.max_timestamp = max(self.max_timestamp, chunk.plain.max_timestamp)
            return
        offsets = table.last_offset
        if not _goes_on(chunk, self._highest):
            offsets = np.maximum(_rising(offsets, self._highest)[1:], self._highest)
        ends = [self._highest, offsets[-1]]
        first, last = self._offsets.searchsorted(ends, "right").tolist()
        wanted = self._offsets[first:last]
        rows = offsets.searchsorted(wanted)
        base = table.base_offset.take(rows)
        hit = base <= wanted
        if chunk.plain is None:
            # Of a wrapper's first offset no more is known than that the batch before ends below.
            hit |= table.is_wrapper.take(rows)
        entries = _entries(self._order, first, last)
        if not hit.all():
            entries = _entries(self._order, first, last, hit)
            rows, base = rows[hit], base[hit]
        self.batch_base[entries] = base
        self.batch_last[entries] = table.last_offset.take(rows)
        self.batch_timestamp[entries] = table.max_timestamp.take(rows)
        self._highest = int(offsets[-1])
        self._feed_timestamps(chunk, table, entries, rows)

    def _feed_timestamps(
        self, chunk: Chunk, table: BatchTable, entries: slice | Column, rows: Column
    ) -> None:
        """Note the largest timestamp before each of `rows`, which are those of `entries`.

        A lookup by time finds no record in an empty batch, so its timestamp need not be indexed.
        """
        stamps = table.max_timestamp
        if chunk.plain is None:
            stamps = np.where(table.record_count == 0, NO_TIMESTAMP, stamps)
        if chunk.plain and chunk.plain.timestamps_rise and stamps[0] >= self.max_timestamp:
            self._before[entries] = _before(stamps, rows, self.max_timestamp)
            self.max_timestamp = int(stamps[-1])
        else:
            highest = _rising(stamps, self.max_timestamp)
            self._before[entries] = highest[rows]
            self.max_timestamp = int(highest[-1])

    def finish(self) -> None:
        """Come to the verdicts."""
        there = self.batch_base != ABSENT
        verdicts = np.full(len(there), EntryState.RIGHT, np.int8)
        verdicts[there & (self._before > self._timestamps)] = EntryState.LATER
        verdicts[there & (self.batch_timestamp != self._timestamps)] = EntryState.TIMESTAMP
        # Behind damage an offset may have stood in what is lost.
        verdicts[~there] = EntryState.UNKNOWN if self._damaged else EntryState.NO_BATCH
        self.verdicts = verdicts


def _order(values: Column) -> Column | None:
    """Return where the values stand from the smallest to the largest; None: where they are."""
    if bool((values[1:] >= values[:-1]).all()):
        return None
    return np.argsort(values, kind="stable")


def _entries(
    order: Column | None, first: int, last: int, which: Column | None = None
) -> slice | Column:
    """Return the entries from `first` up to `last` in an order, or `which` of them.

    A slice of the columns takes less than half the time of an index array.
    """
    if order is not None:
        return order[first:last] if which is None else order[first:last][which]
    return slice(first, last) if which is None else first + np.flatnonzero(which)


def _goes_on(chunk: Chunk, highest: int) -> bool:
    """Return whether all offsets of a chunk rise, and from above `highest`."""
    return chunk.plain is not None and bool(chunk.table.base_offset[0] > highest)


def _before(values: Column, rows: Column, start: int) -> Column:
    """Return the values before `rows` where values rise from `start`."""
    before: Column = np.where(rows > 0, values.take(rows - 1), start)
    return before


def _rising(values: Column, start: int) -> Column:
    """Return int64 of one more row: the largest value before each row, and at last of all."""
    column: Column = np.maximum.accumulate(np.concatenate(([start], values)))
    return column
