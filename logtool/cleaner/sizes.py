"""The records and bytes that a cleaning leaves of the segments that it reads, from the keys.

The segments are read twice: for the last dirty offset of each key, then for what stays. A record
stays if it has a key, is not of an aborted transaction, no dirty record of its key is behind it,
and it is no tombstone whose delete horizon has passed. The keys are held in memory; where they take
more than `MEMORY`, the last offsets are those of a part of the keys, chosen by a hash, and the
result is an estimate. The bytes are those of whole batches, where all records stay; of any other
batch, the header and the share of the records: the broker compresses them again. A batch that is
kept without records, for the state of its producer, is not counted.

Source: ``Cleaner.buildOffsetMap``, ``Cleaner.cleanInto``, ``MemoryRecords.filterTo``
(Kafka 3.9 and 4.x).
"""

from collections.abc import Iterator

import numpy as np

from logtool.cleaner.rules import Extent
from logtool.cleaner.transactions import AbortedTransactions
from logtool.formats.names import FileKind
from logtool.formats.record_batch import HEADER_SIZE, Column
from logtool.lazy_dataclass import dataclass
from logtool.log import records
from logtool.log.chunk import Chunk
from logtool.log.dir import Partition
from logtool.log.keys import NONE, KeyTable, lengthened
from logtool.log.record_table import RecordTable, Unread
from logtool.running.workers import Pace

MEMORY = 256 * 1024 * 1024
"""Bytes that the keys of one log may take in memory."""
_SPARSER = 3
"""Bits by which a sample shrinks if its keys take too much memory."""
_HASHED = 64
"""Bytes of a key that decide whether it is in a sample."""


@dataclass(frozen=True, slots=True)
class CleanedSizes:
    """The segments that a cleaning reads, before and after it; control records do not count."""

    records: int
    records_after: int
    bytes: int
    """Bytes of the .log files."""
    bytes_after: int
    tombstones_due: int
    """Tombstones that are deleted because their delete horizon has passed."""
    is_exact: bool
    """True if the numbers of records are exact; False for an estimate from a part of the keys."""


class _LastOffsets(KeyTable):
    """The last dirty offset of each key."""

    last: Column = np.empty(0, np.int64)
    """Offset for each slot; -1 without a dirty record."""

    def _lengthen(self, room: int) -> None:
        super()._lengthen(room)
        self.last = lengthened(self.last, self.count, room, NONE)

    @property
    def is_full(self) -> bool:
        """Return whether the keys take too much memory."""
        return self.keys.nbytes + self.key_end.nbytes + self.last.nbytes > MEMORY


@dataclass(slots=True)
class _Sums:
    """Sums over the records of a log; with a sample, those of it apart."""

    records: int = 0
    keyed: int = 0
    sampled: int = 0
    kept: int = 0
    due: int = 0
    data_bytes: int = 0
    """Bytes of batches that are not control batches."""
    kept_bytes: int = 0
    control_bytes: int = 0
    """Bytes of control batches that stay."""


class _Measure:
    """One log, and one sample of its keys."""

    def __init__(
        self, partition: Partition, extent: Extent, now_ms: int, pace: Pace, bits: int
    ) -> None:
        self._segments = partition.segments[: extent.uncleanable_row]
        kind = FileKind.TRANSACTION_INDEX
        self._aborted = AbortedTransactions(
            one.indexes[kind] for one in partition.segments if kind in one.indexes
        )
        self._first, self._now_ms, self._pace, self._bits = (
            extent.first_dirty_offset, now_ms, pace, bits,
        )  # fmt: skip
        self._keys = _LastOffsets()
        self.sums = _Sums()

    def fill(self) -> bool | None:
        """Find the last dirty offsets; False if the keys do not fit, None for unread records."""
        for chunk in self._chunks():
            table = chunk.table
            rows = np.flatnonzero(~table.is_control & (table.last_offset >= self._first))
            for one in records.records(chunk, rows):
                if isinstance(one, Unread):
                    return None
                at = self._in_sample(one, one.offset >= self._first)
                at = at[~self._is_aborted(one)[at]]
                self._keys.last[self._slots(one, at)] = one.offset[at]
                if self._keys.is_full:
                    return False
        return True

    def count(self) -> bool | None:
        """Count what stays; False if the keys do not fit, None for unread records."""
        for chunk in self._chunks():
            table, sums = chunk.table, self.sums
            is_due = table.has_delete_horizon & (table.base_timestamp <= self._now_ms)
            control = table.is_control
            sums.control_bytes += int(table.size[control & ~is_due].sum())
            data = np.flatnonzero(~control)
            sums.data_bytes += int(table.size[data].sum())
            counted, kept_of, total, left = (np.zeros(len(table), np.int64) for _ in range(4))
            for one in records.records(chunk, data):
                if isinstance(one, Unread):
                    return None
                row = np.searchsorted(table.position, one.of_batches(one.batches.position))
                has_key = one.spans.key_length >= 0
                at = self._in_sample(one, has_key)
                stays = one.offset[at] >= self._keys.last[self._slots(one, at)]
                stays &= ~self._is_aborted(one)[at]
                dead = stays & (one.spans.value_length[at] < 0) & is_due[row[at]]
                kept = at[stays & ~dead]
                sums.records += len(one.offset)
                sums.keyed += int(has_key.sum())
                sums.sampled += len(at)
                sums.kept += len(kept)
                sums.due += int(dead.sum())
                np.add.at(counted, row, 1)
                np.add.at(kept_of, row[kept], 1)
                np.add.at(total, row, one.spans.size)
                np.add.at(left, row[kept], one.spans.size[kept])
                if self._keys.is_full:
                    return False
            share = HEADER_SIZE + (table.size - HEADER_SIZE) * (left / np.maximum(total, 1))
            after = np.where(kept_of == counted, table.size, np.where(kept_of, share, 0))
            sums.kept_bytes += int(after[data].sum())
        return True

    def result(self) -> CleanedSizes:
        """Return the sizes; those of a sample stand for all keys."""
        sums, total = self.sums, sum(one.log.size for one in self._segments)
        kept, due, kept_bytes = sums.kept, sums.due, sums.kept_bytes
        if self._bits:
            scale = sums.keyed / max(sums.sampled, 1)
            kept, due = round(kept * scale), round(due * scale)
            kept_bytes = round(sums.data_bytes * kept / max(sums.records, 1))
        return CleanedSizes(
            records=sums.records,
            records_after=kept,
            bytes=total,
            bytes_after=kept_bytes + sums.control_bytes,
            tombstones_due=due,
            is_exact=not self._bits,
        )

    def _chunks(self) -> Iterator[Chunk]:
        for segment in self._segments:
            for chunk in segment.batches():
                self._pace.spend(int(chunk.table.size.sum()))
                yield chunk

    def _in_sample(self, one: RecordTable, wanted: Column) -> Column:
        """Return the rows of wanted records with a key that is in the sample."""
        length = one.spans.key_length
        rows = np.flatnonzero(wanted & (length >= 0))
        if self._bits:
            hashed = _hash(one.data, one.spans.key_position[rows], length[rows])
            rows = rows[hashed & ((1 << self._bits) - 1) == 0]
        return rows

    def _is_aborted(self, one: RecordTable) -> Column:
        batches = one.batches
        aborted = self._aborted.mask(batches.base_offset, batches.producer_id)
        return one.of_batches(aborted & batches.is_transactional)

    def _slots(self, one: RecordTable, rows: Column) -> Column:
        spans = one.spans
        return self._keys.intern(one.data, spans.key_position[rows], spans.key_length[rows])


def measure(partition: Partition, extent: Extent, now_ms: int, pace: Pace) -> CleanedSizes | None:
    """Return the sizes that a cleaning at `now_ms` leaves; None if a record cannot be read.

    UnreadableError; OutOfTimeError once the time is over.
    """
    bits = 0
    while True:
        one = _Measure(partition, extent, now_ms, pace, bits)
        fits = one.fill()
        if fits:
            fits = one.count()
        if fits is None:
            return None
        if fits:
            return one.result()
        bits += _SPARSER


def _hash(data: memoryview, position: Column, length: Column) -> Column:
    """Return a number for each key, as uint64 whose low bits are mixed."""
    octets = np.frombuffer(data, np.uint8)
    found = length.astype(np.uint64) + np.uint64(0xCBF29CE484222325)
    for place in range(min(_HASHED, int(length.max(initial=0)))):
        rows = np.flatnonzero(length > place)
        octet = octets[position[rows] + place].astype(np.uint64)
        found[rows] = (found[rows] ^ octet) * np.uint64(0x100000001B3)
    mixed: Column = found ^ (found >> np.uint64(29)) ^ (found >> np.uint64(47))
    return mixed
