"""Faults in what a cleaning reads, and what it may delete.

A cleaning reads all segments up to the first uncleanable offset. A batch without a possible size or
magic ends it: the broker puts the row back to the first dirty offset, and does not clean the
partition again until its next start. If that batch is the first of a dirty closed segment, the
broker stops earlier, when it looks at the timestamps of these batches, and the row stays. The CRC
of a batch is not compared, and a record without a key is deleted. A segment with offsets too far
from its base offset is split first, and cleaned later.

The first cleaning that sees a tombstone or an end-transaction marker as the last of its key or its
transaction gives its batch a delete horizon, ``delete.retention.ms`` later; a cleaning after that
time deletes it.

Source: ``LogCleaner.cleanLog``, ``Cleaner.buildOffsetMap``, ``cleanInto``, ``shouldRetainRecord``,
``ByteBufferLogInputStream.nextBatchSize``, ``MemoryRecords.filterTo``,
``LogCleanerManager.maxCompactionDelay``, ``FileLogInputStream.nextBatch`` (Kafka 3.9 and 4.x).
"""

from contextlib import suppress
from pathlib import Path

import numpy as np

from logtool.cleaner.rules import CleaningObstacle
from logtool.formats.offset_index import MAX_RELATIVE_OFFSET
from logtool.formats.record_batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MIN_ENTRY_SIZE,
    BatchTable,
)
from logtool.lazy_dataclass import dataclass
from logtool.loading.header_walk import ContradictionError, HeaderWalk
from logtool.log import records
from logtool.log.dir import Partition, Segment
from logtool.log.record_table import Unread


@dataclass(frozen=True, slots=True)
class CleaningFault:
    """The first place that ends a cleaning."""

    path: Path
    position: int
    message: str
    is_overflow: bool = False


@dataclass(slots=True)
class CleaningContents:
    """Facts about the batches that a cleaning reads."""

    horizons: int = 0
    """Batches with a delete horizon."""
    due: int = 0
    """Batches whose delete horizon has passed."""
    without_key: int | None = None
    """Records without a key; None if records were not read."""
    fault: CleaningFault | None = None

    @property
    def obstacle(self) -> CleaningObstacle | None:
        """Return why the cleaning does not get to its end; None if it does."""
        if self.fault is None:
            return None
        return CleaningObstacle.OVERFLOW if self.fault.is_overflow else CleaningObstacle.DAMAGE


def read(
    partition: Partition, stop_row: int, now_ms: int, *, with_records: bool
) -> CleaningContents:
    """Read the segments before a row, headers alone unless `with_records`; UnreadableError."""
    found = CleaningContents(without_key=0 if with_records else None)
    for segment in partition.segments[:stop_row]:
        _read(segment, found, now_ms, with_records=with_records)
        if found.fault:
            break
    return found


def _read(segment: Segment, found: CleaningContents, now_ms: int, *, with_records: bool) -> None:
    """Add what a segment holds; sound headers lead through it, and else all of it is read."""
    path = segment.log.path
    if not with_records:
        with suppress(ContradictionError), segment.log.open() as source:
            walk = HeaderWalk(source, segment.base_offset, path.name)
            tables = [table[table.has_delete_horizon] for table in walk.tables(0)]
            if walk.end == source.size:
                for table in tables:
                    _count(table, found, now_ms)
                return
    for chunk in segment.batches(payload=with_records):
        table = chunk.table
        if chunk.damage is not None:
            if chunk.damage.framed:
                continue  # Its CRC alone is wrong.
            found.fault = CleaningFault(path, chunk.damage.position, chunk.damage.message)
            return
        _count(table, found, now_ms)
        far = np.flatnonzero(table.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET)
        if len(far):
            row = int(far[0])
            text = f"offset {table.last_offset[row]} is too far from the base offset of the segment"
            found.fault = CleaningFault(path, int(table.position[row]), text, is_overflow=True)
            return
        if not with_records:
            continue
        for one in records.records(chunk, np.flatnonzero(~table.is_control)):
            if isinstance(one, Unread):
                found.fault = CleaningFault(path, one.position, str(one.error))
                return
            found.without_key = (found.without_key or 0) + int((one.spans.key_length < 0).sum())


def _count(table: BatchTable, found: CleaningContents, now_ms: int) -> None:
    marked = table.has_delete_horizon
    found.horizons += int(marked.sum())
    found.due += int((marked & (table.base_timestamp <= now_ms)).sum())


def first_batches(partition: Partition, rows: range, none: int) -> tuple[int, CleaningFault | None]:
    """Return the earliest timestamp of the first batches of segments, and the first fault in one.

    The timestamp is `none` if no batch has one. UnreadableError.
    """
    found = none
    for row in rows:
        log = partition.segments[row].log
        with log.open() as source:
            head, size = source.read(0, HEADER_SIZE), source.size
        if len(head) < HEADER_SIZE:
            continue
        length = int.from_bytes(head[8:12], "big", signed=True)
        if length + LOG_OVERHEAD < MIN_ENTRY_SIZE:
            return found, CleaningFault(log.path, 0, f"batch length {length}")
        if length + LOG_OVERHEAD > size:
            continue  # No whole batch: for the broker the segment has none.
        stamp = int(records.one_batch(memoryview(head)).table.max_timestamp[0])
        found = min(found, stamp) if stamp > 0 else found
    return found, None


def log_end(segment: Segment) -> int:
    """Return the offset behind the last sound batch of a segment; UnreadableError."""
    end = segment.base_offset
    for chunk in segment.batches(payload=False):
        if chunk.damage is not None:
            break
        end = int(chunk.table.last_offset[-1]) + 1
    return end
