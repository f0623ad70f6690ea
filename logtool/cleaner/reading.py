"""Faults in what a cleaning reads, and what it may delete.

A cleaning reads all segments up to the first uncleanable offset, also those that are clean, and
decodes the records of all batches, control batches included. A batch without a possible size or
magic, or with records that do not decode, ends it: the broker puts the row back to the first dirty
offset, and does not clean the partition again until its next start. If a batch without a possible
size is the first of a dirty closed segment, the broker stops earlier, when it looks at the
timestamps of these batches, and the row stays. The broker does not compare the CRC of a batch. Here
a wrong CRC says which batches to decode: the records of the others are as a broker accepted them.
One difference is left: the broker does not decode most batches of aborted transactions. A record
without a key is deleted. A segment with offsets too far from its base offset is split first, and
cleaned later.

The first cleaning that sees a tombstone or an end-transaction marker as the last of its key or its
transaction gives its batch a delete horizon, ``delete.retention.ms`` later; a cleaning after that
time deletes it. The cleaner of Kafka 4.0 and later writes batches of magic 0 and 1 with magic 2.

Source: ``LogCleaner.cleanLog``, ``Cleaner.buildOffsetMap``, ``cleanInto``, ``shouldRetainRecord``,
``ByteBufferLogInputStream.nextBatchSize``, ``MemoryRecords.filterTo``, ``DefaultRecord.readFrom``,
``LogCleanerManager.maxCompactionDelay``, ``FileLogInputStream.nextBatch`` (Kafka 3.9 and 4.x).
"""

from pathlib import Path

import numpy as np

from logtool.cleaner.rules import CleaningObstacle
from logtool.disk.files import LogFile
from logtool.formats.offset_index import MAX_RELATIVE_OFFSET
from logtool.formats.record_batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MIN_ENTRY_SIZE,
    BatchTable,
)
from logtool.lazy_dataclass import dataclass
from logtool.log import records
from logtool.log.chunk import LARGEST_BUFFERED_BATCH, Chunk
from logtool.log.damage import Damage, entry_size
from logtool.log.dir import Partition, Segment
from logtool.log.record_table import Unread
from logtool.running.workers import Pace


@dataclass(frozen=True, slots=True)
class CleaningFault:
    """The first place that ends a cleaning."""

    path: Path
    position: int
    message: str
    is_overflow: bool = False
    is_damage: bool = False
    """True if the bytes differ from those that a broker wrote: a sound copy has others."""


@dataclass(slots=True)
class CleaningContents:
    """Facts about the batches that a cleaning reads."""

    horizons: int = 0
    """Batches with a delete horizon."""
    due: int = 0
    """Batches whose delete horizon has passed."""
    old_formats: int = 0
    """Batches of magic 0 and 1; Kafka 4.0 and later write what is left of them with magic 2."""
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
    partition: Partition, stop_row: int, now_ms: int, pace: Pace, *, with_records: bool
) -> CleaningContents:
    """Read the segments before a row; UnreadableError.

    Without `with_records` the records of batches with a wrong CRC alone are decoded.
    """
    found = CleaningContents(without_key=0 if with_records else None)
    for segment in partition.segments[:stop_row]:
        with segment.log.open() as source:
            for chunk in segment.batches(source, payload=with_records):
                size = chunk.damage.length if chunk.damage else int(chunk.table.size.sum())
                pace.spend(size)
                if chunk.damage is None:
                    _sound(segment, chunk, found, now_ms, with_records=with_records)
                else:
                    _damaged(segment, source, chunk.damage, found, now_ms)
                if found.fault:
                    return found
    return found


def _sound(
    segment: Segment, chunk: Chunk, found: CleaningContents, now_ms: int, *, with_records: bool
) -> None:
    """Add what sound batches hold."""
    table, path = chunk.table, segment.log.path
    _count(table, found, now_ms)
    far = np.flatnonzero(table.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET)
    if len(far):
        row = int(far[0])
        text = f"offset {table.last_offset[row]} is too far from the base offset of the segment"
        found.fault = CleaningFault(path, int(table.position[row]), text, is_overflow=True)
    elif with_records:
        _decode(path, chunk, found)


def _damaged(
    segment: Segment, source: LogFile, damage: Damage, found: CleaningContents, now_ms: int
) -> None:
    """Add what batches with a wrong CRC hold: the broker goes from one to the next by their sizes.

    It stops where no batch begins.
    """
    path, position, end = segment.log.path, damage.position, damage.position + damage.length
    while position < end:
        head = source.read(position, HEADER_SIZE)
        size = entry_size(head) or 0
        is_whole = 0 < size <= min(end - position, LARGEST_BUFFERED_BATCH)
        if not is_whole or head[16] > MAGIC or (head[16] == MAGIC and size < HEADER_SIZE):
            found.fault = CleaningFault(path, damage.position, damage.message, is_damage=True)
            return
        chunk = records.one_batch(memoryview(source.read(position, size)), position)
        _count(chunk.table, found, now_ms)
        _decode(path, chunk, found, is_damage=True)
        if found.fault:
            return
        position += size


def _decode(path: Path, chunk: Chunk, found: CleaningContents, *, is_damage: bool = False) -> None:
    """Decode records; count those without a key if that is asked for.

    `is_damage` says that the CRC of the batch is wrong.
    """
    for one in records.records(chunk):
        if isinstance(one, Unread):
            found.fault = CleaningFault(path, one.position, one.reason, is_damage=is_damage)
            return
        if found.without_key is not None:
            is_data = ~one.of_batches(one.batches.is_control)
            found.without_key += int((is_data & (one.spans.key_length < 0)).sum())


def _count(table: BatchTable, found: CleaningContents, now_ms: int) -> None:
    marked = table.has_delete_horizon
    found.old_formats += int((table.magic < MAGIC).sum())
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
            return found, CleaningFault(log.path, 0, f"batch length {length}", is_damage=True)
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
