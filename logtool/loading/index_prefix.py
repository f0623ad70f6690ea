"""The valid prefix of a segment's indexes, found in one pass over the log.

A broker only appends to an index, so a crash damages its end: the entries before the first one that
is out of order, or that the log contradicts, stay. They are followed by entries of the rebuilt
index, which is complete when the log has been read. If an index is a prefix of the rebuilt one, the
result is the rebuilt one.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence

import numpy as np

from logtool.formats import control_record, offset_index, time_index
from logtool.formats import transaction_index as txn_index
from logtool.formats.names import FileKind
from logtool.formats.record_batch import BatchTable, Column, concat, empty_table
from logtool.loading.epochs import EpochCache
from logtool.loading.index_building import INDEX_INTERVAL, MAX_INDEX_SIZE
from logtool.loading.index_compare import IndexComparison, prefix
from logtool.loading.recovery import Recovery
from logtool.loading.shadow import ShadowFile
from logtool.log import producer_state
from logtool.log.chunk import Chunk, PlainTotals
from logtool.log.producer_state import AbortedTransaction, Producer

_NOTHING = IndexComparison(0, b"", b"")
_CHUNKS_OF_ROWS = 64
"""Number of chunks whose rows are kept apart before they are merged into one table."""


class _BatchRows:
    """A store of rows for later: the offset from which they are applied is not known yet."""

    def __init__(self) -> None:
        self._parts: list[BatchTable] = []

    def apply(self, rows: BatchTable) -> tuple[list[AbortedTransaction], list[int]]:
        """Keep rows and return empty lists, because nothing is applied yet."""
        self._parts.append(rows)
        if len(self._parts) >= _CHUNKS_OF_ROWS:
            self._parts = [producer_state.significant(concat(self._parts))]
        return [], []

    def table(self) -> BatchTable:
        return concat(self._parts) if self._parts else empty_table()


class ValidPrefix:
    """The valid prefix of a segment's indexes, known once its `recovery` has read the segment.

    `indexes` are the bytes of its index files; `cuts` are the offsets of snapshots, in ascending
    order.
    """

    def __init__(
        self,
        base_offset: int,
        indexes: Mapping[FileKind, bytes],
        cuts: Sequence[int] = (),
        *,
        epochs: EpochCache | None = None,
        interval: int = INDEX_INTERVAL,
        max_index_size: int = MAX_INDEX_SIZE,
    ) -> None:
        self._base = base_offset
        self._rows = _BatchRows()
        self.recovery = Recovery(
            base_offset,
            producers=self._rows,
            epochs=epochs,
            interval=interval,
            max_index_size=max_index_size,
            watch=self._watch,
        )
        self._interval, self._most = interval, max_index_size
        offsets, times = (
            indexes.get(kind, b"") for kind in (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)
        )
        self._comparison = IndexComparison(base_offset, offsets, times)
        self._files = indexes
        self.inside: set[int] = set()
        """The cuts that fall inside a batch."""
        self._cuts = cuts
        self._spans: list[tuple[int, int, int]] = []
        """(last offset, bytes, records) of each chunk."""
        self._parts: dict[int, tuple[int, int]] = {}
        """By cut: bytes and records in front of it, in the chunks that it falls into."""
        self._aborted: Column = np.empty(0, np.int64)
        """The offsets of the ABORT markers, once the log was read."""
        self.kept_aborts = b""
        """The valid prefix of the transaction index."""
        self.covered = base_offset - 1
        """The last offset up to which the transaction index lacks no entry."""

    def _watch(self, table: BatchTable, plain: PlainTotals | None) -> None:
        """Compare the indexes with batches that stay."""
        chunk = Chunk(
            table=table,
            data=memoryview(b""),
            data_position=int(table.position[0]),
            damage=None,
            control_errors=[],
            plain=plain,
        )
        self._comparison.add(chunk, self.recovery.added_entries)
        self._count(table, plain)

    def _count(self, table: BatchTable, plain: PlainTotals | None) -> None:
        """Count the batches in front of each cut; most cuts do not fall into a chunk."""
        if not self._cuts:
            return
        if plain:
            first, last = int(table.base_offset[0]), int(table.last_offset[-1])
            records = plain.records
        else:
            first, last = int(table.base_offset.min()), int(table.last_offset.max())
            records = table.records
        size = int(table.position[-1] + table.size[-1] - table.position[0])
        self._spans.append((last, size, records))
        for cut in self._cuts[bisect_right(self._cuts, first) : bisect_right(self._cuts, last)]:
            # Offsets may go backwards: each batch counts for itself.
            before = table[table.last_offset < cut]
            size, records = self._parts.get(cut, (0, 0))
            self._parts[cut] = size + int(before.size.sum()), records + before.records
            if ((table.base_offset < cut) & (table.last_offset >= cut)).any():
                self.inside.add(cut)

    def before(self, cut: int) -> tuple[int, int]:
        """Return the bytes and the records in front of a cut."""
        whole = [span for span in self._spans if span[0] < cut]
        size, records = self._parts.get(cut, (0, 0))
        return size + sum(span[1] for span in whole), records + sum(span[2] for span in whole)

    @property
    def rows(self) -> BatchTable:
        """Return the batches that matter for the producer state."""
        return self._rows.table()

    def offset_index(self) -> bytes:
        """Return the valid entries, followed by rebuilt ones from an interval behind them on."""
        whole = self.recovery.result.offset_index
        if whole.startswith(self._comparison.offset_entries):
            return whole
        there, index = self._comparison.offset_entries, self._comparison.offsets
        rebuilt = np.frombuffer(whole, offset_index.ENTRY)
        count = self._comparison.right_offsets()
        if not count:
            return whole
        kept = there[: count * offset_index.ENTRY_SIZE]
        behind = (rebuilt["relative_offset"] > index.relative_offsets[count - 1]) & (
            rebuilt["position"] > int(index.positions[count - 1]) + self._interval
        )
        return self._fitting(kept + rebuilt[behind].tobytes(), whole)

    def time_index(self) -> bytes:
        """Return the valid entries, followed by rebuilt ones.

        The last one is the closing entry: the largest timestamp of the segment, and the first
        batch that has it.
        """
        whole = self.recovery.result.time_index
        if whole.startswith(self._comparison.time_entries):
            return whole
        rebuilt = np.frombuffer(whole, time_index.ENTRY)
        count = self._comparison.right_times()
        if not count:
            return whole
        last = int(self._comparison.times.timestamps[count - 1])
        behind = rebuilt[rebuilt["timestamp"] > last]
        if not len(behind):
            # Older brokers named the record, not the last offset of its batch.
            count, behind = count - 1, rebuilt[-1:]
        kept = self._comparison.time_entries[: count * time_index.ENTRY_SIZE]
        return self._fitting(kept + behind.tobytes(), whole)

    def _fitting(self, index: bytes, rebuilt: bytes) -> bytes:
        """Return `index`, or `rebuilt` if a broker would have no room for `index`."""
        return index if len(index) <= self._most else rebuilt

    def is_there(self, kind: FileKind, content: bytes) -> bool:
        """Return whether an index that was read already has this content."""
        return self._files.get(kind) == content

    def let_go(self) -> None:
        """Free the indexes once they were used: many segments are kept until the replay."""
        self._files = {}
        self._cuts = ()
        self._comparison = _NOTHING
        self.recovery.forget_indexes()

    def believe_aborts(self, recovery_point: int, *, none: bool = False) -> None:
        """Set `kept_aborts` and `covered` after the log was read; with `none` nothing is kept.

        Each valid entry has its ABORT marker. No entry is missing up to the recovery point, unless
        the file was cut, is empty or is missing: a log without aborts and a lost file look the
        same.
        """
        rows = self.rows
        is_marker = (
            rows.is_control & (rows.producer_id >= 0) & (rows.control_type == control_record.ABORT)
        )
        self._aborted = rows.base_offset[is_marker]
        data = self._files.get(FileKind.TRANSACTION_INDEX)
        if none or not data:
            return
        index = txn_index.parse(data)
        ids = rows.producer_id[is_marker]
        there = set(zip(ids.tolist(), self._aborted.tolist(), strict=True))
        entries = zip(index.producer_ids.tolist(), index.last_offsets.tolist(), strict=True)
        wrong = np.array([entry not in there for entry in entries], np.bool_)
        count = prefix(txn_index.check(index, base_offset=self._base), wrong, txn_index.ENTRY_SIZE)
        self.kept_aborts = data[: count * txn_index.ENTRY_SIZE]
        if count:
            self.covered = int(index.last_offsets[count - 1])
        if self.kept_aborts == data:
            self.covered = max(self.covered, recovery_point - 1)

    def first_missing(self) -> int:
        """Return the offset of the first ABORT marker that may lack its entry."""
        return int(min(self._aborted[self._aborted > self.covered], default=2**63))


def is_behind(producers: Mapping[int, Producer], rows: BatchTable, expiration_ms: int) -> bool:
    """Return whether a snapshot lacks batches that producers wrote in front of it.

    It may know more, because compaction removes batches from the log. A producer that was idle for
    `expiration_ms` may be missing.
    """
    data = rows[~rows.is_control]
    ids, last = np.unique(data.producer_id[::-1], return_index=True)
    latest = int(rows.max_timestamp.max()) if len(rows) else 0
    for producer_id, row in zip(ids.tolist(), (len(data) - 1 - last).tolist(), strict=True):
        known = producers.get(producer_id)
        if known is None:
            if latest - int(data.max_timestamp[row]) < expiration_ms:
                return True
        elif (known.epoch, known.last_offset) < (
            int(data.producer_epoch[row]),
            int(data.last_offset[row]),
        ):
            return True
    return False


def seems_whole(log: ShadowFile, indexes: Mapping[FileKind, ShadowFile]) -> bool:
    """Return whether the ends of a flushed segment's indexes look as they should.

    They were flushed with the log, so nothing else is checked.
    """
    times = indexes.get(FileKind.TIME_INDEX)
    return bool(times and times.size) >= bool(log.size) and all(
        not _is_torn(file, size)
        for kind, size in (
            (FileKind.OFFSET_INDEX, offset_index.ENTRY_SIZE),
            (FileKind.TIME_INDEX, time_index.ENTRY_SIZE),
            (FileKind.TRANSACTION_INDEX, txn_index.ENTRY_SIZE),
        )
        if (file := indexes.get(kind))
    )


def _is_torn(file: ShadowFile, entry_size: int) -> bool:
    """Return whether a file ends within an entry or in zeros."""
    if file.size % entry_size:
        return True
    return file.size > 0 and not any(file.read(file.size - entry_size))
