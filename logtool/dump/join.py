"""Index entries compared with the log: the batch of each, and whether a lookup finds it.

The rules are those of `logtool.log.index_join`; here the batch is remembered, too. One pass over
the log serves all indexes of a segment.
"""

from typing import Protocol

import numpy as np

from logtool.dump.records import Object
from logtool.dump.values import or_null
from logtool.formats import control_record, offset_index, time_index, transaction_index
from logtool.formats.names import FileKind
from logtool.formats.record_batch import BatchTable, Column
from logtool.log.chunk import Chunk, ChunkConsumer
from logtool.log.index_join import ABSENT, EntryState, OffsetIndexJoin, TimeIndexJoin
from logtool.times import rfc3339

UNKNOWN = "unknown"
"""The verdict if the place in the log is damaged."""


class Join(ChunkConsumer, Protocol):
    """Takes all chunks of the log, and then has batch and verdict of each entry."""

    def batch(self, entry: int) -> Object | None:
        """Return the batch that the entry points at; None without one."""

    def verdict(self, entry: int) -> str:
        """Return ``right``, or what is wrong."""


def make_join(kind: FileKind, data: bytes, base_offset: int) -> Join:
    """Return the join for an index of `kind`."""
    if kind is FileKind.OFFSET_INDEX:
        index = offset_index.parse(data)
        return _Lookup(OffsetIndexJoin(index, base_offset))
    if kind is FileKind.TIME_INDEX:
        return _Lookup(TimeIndexJoin(time_index.parse(data), base_offset))
    if kind is FileKind.REDPANDA_BASE_INDEX:
        return _Bases(data, base_offset)
    return _Aborts(transaction_index.parse(data))


class _Batches:
    """One batch for each entry."""

    def __init__(self, count: int) -> None:
        self._columns = {
            name: np.full(count, ABSENT, np.int64)
            for name in ("position", "base_offset", "last_offset", "max_timestamp")
        }

    @property
    def missing(self) -> Column:
        """Return a mask of the entries with no batch yet."""
        mask: Column = self._columns["position"] == ABSENT
        return mask

    def put(self, entries: Column, table: BatchTable, rows: Column) -> None:
        """Remember for `entries` the batches in `rows` of `table`."""
        for name, column in self._columns.items():
            column[entries] = getattr(table, name)[rows]

    def get(self, entry: int) -> Object | None:
        """Return the batch of an entry."""
        row = {name: int(column[entry]) for name, column in self._columns.items()}
        if row["position"] == ABSENT:
            return None
        time = or_null(row.pop("max_timestamp"))
        return {**row, "max_timestamp_ms": time, "max_timestamp": rfc3339(time)}


class _Lookup:
    """An offset or a time index: the join of `logtool.log.index_join` with its batches."""

    def __init__(self, join: OffsetIndexJoin | TimeIndexJoin) -> None:
        self._join = join
        self._batches = _Batches(len(join.batch_base))
        self._verdicts: list[int] = []

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk of the log; batches that are misplaced count as damage."""
        self._join.feed(chunk)
        new = np.flatnonzero(self._batches.missing & (self._join.batch_base != ABSENT))
        if not len(new):
            return
        table = chunk.table
        order = np.argsort(table.base_offset, kind="stable")
        rows = np.searchsorted(table.base_offset, self._join.batch_base[new], sorter=order)
        self._batches.put(new, table, order[rows])

    def finish(self) -> None:
        """Come to the verdicts."""
        self._join.finish()
        self._verdicts = self._join.verdicts.tolist()

    def batch(self, entry: int) -> Object | None:
        """Return the batch that the entry points at."""
        return self._batches.get(entry)

    def verdict(self, entry: int) -> str:
        """Return the engine's verdict as a word."""
        return EntryState(self._verdicts[entry]).name.lower().replace("_", "-")


class _Direct:
    """An index whose entries are compared with single batches of each chunk."""

    _batches: _Batches

    def finish(self) -> None:
        """Nothing is left to do."""

    def batch(self, entry: int) -> Object | None:
        """Return the batch that the entry points at."""
        return self._batches.get(entry)


class _Bases(_Direct):
    """A base index of Redpanda: the batch that begins at the byte of an entry has its offset."""

    def __init__(self, data: bytes, base_offset: int) -> None:
        from logtool.formats.redpanda import base_index

        index = base_index.parse(data)
        self._offsets = self._positions = np.empty(0, np.int64)
        if isinstance(index, base_index.BaseIndex):
            offsets = base_index.offsets(index, segment_base=base_offset)
            count = min(len(offsets), len(index.entries.position))
            self._offsets = np.array(offsets[:count], np.int64)
            self._positions = index.entries.position[:count].astype(np.int64)
        self._batches = _Batches(len(self._offsets))
        self._right = np.zeros(len(self._offsets), np.bool_)
        self._unread = self._right.copy()

    def feed(self, chunk: Chunk) -> None:
        """Look for the batches of the entries; whether they are in their segment is not asked."""
        if chunk.damage:
            begin, end = chunk.damage.position, chunk.end_position
            self._unread |= (self._positions >= begin) & (self._positions < end)
            return
        table = chunk.table
        if not len(table):
            return
        rows = np.searchsorted(table.position, self._positions)
        rows = np.minimum(rows, len(table) - 1)
        there = np.flatnonzero(table.position[rows] == self._positions)
        self._batches.put(there, table, rows[there])
        self._right[there] = table.base_offset[rows[there]] == self._offsets[there]

    def verdict(self, entry: int) -> str:
        """Return whether that has the offset of the entry."""
        if self._right[entry]:
            return "right"
        if not self._batches.missing[entry]:
            return "offset"
        return UNKNOWN if self._unread[entry] else "no-batch"


class _Aborts(_Direct):
    """A transaction index: the batch is the ABORT marker at the last offset of the entry."""

    def __init__(self, index: transaction_index.TransactionIndex) -> None:
        self._index = index
        count = len(index)
        self._batches = _Batches(count)
        self._order = np.argsort(index.last_offsets, kind="stable")
        self._sorted = index.last_offsets[self._order]
        self._right = np.zeros(count, np.bool_)
        self._damaged = False

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk of the log; batches that are misplaced count as damage."""
        self._damaged |= chunk.damage is not None or chunk.misplaced is not None
        table = chunk.table
        if not len(table) or not len(self._sorted):
            return
        at = np.searchsorted(self._sorted, table.base_offset)
        rows = np.flatnonzero(at < len(self._sorted))
        rows = rows[self._sorted[at[rows]] == table.base_offset[rows]]
        entries = self._order[at[rows]]
        self._batches.put(entries, table, rows)
        self._right[entries] = (table.control_type[rows] == control_record.ABORT) & (
            table.producer_id[rows] == self._index.producer_ids[entries]
        )

    def verdict(self, entry: int) -> str:
        """Return whether that is an ABORT marker of the entry's producer."""
        if self._right[entry]:
            return "right"
        if self._batches.missing[entry]:
            return UNKNOWN if self._damaged else "no-batch"
        return "no-abort-marker"
