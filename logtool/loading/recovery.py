"""Recovery of one segment: its log is read from the first byte, its indexes are written anew.

The rules, their order and what ends them are those of ``LogSegment.recover`` (Kafka 3.9 and 4.3):
one offset entry for each stretch of more than ``index.interval.bytes``, with the running maximum of
the time stamps beside it; the log ends where the first batch is unsound.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from logtool.errors import FormatError
from logtool.formats import control_record, offset_index, record_batch, time_index
from logtool.formats import transaction_index as txn_index
from logtool.formats.offset_index import MAX_RELATIVE_OFFSET
from logtool.formats.record_batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, BatchTable, Column
from logtool.loading.epochs import EpochCache
from logtool.loading.reading import StartFailsError
from logtool.loading.shadow import ShadowFile
from logtool.loading.unsound import Tally, Unsound
from logtool.segment import producer_state, walk
from logtool.segment.damage import Damage, Reason
from logtool.segment.producer_state import AbortedTransaction
from logtool.segment.walk import Chunk

INDEX_INTERVAL = 4096
"""Default of ``index.interval.bytes``."""
MAX_INDEX_SIZE = 10 * 1024 * 1024
"""Default of ``segment.index.bytes``."""


class InvalidOffsetError(Exception):
    """An index entry would go backwards: a broker then gives up the whole segment."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position
        """Of the batch for which the entry was due."""


class OffsetOverflowError(Exception):
    """A batch whose offset is out of reach of the segment's base offset."""

    def __init__(self, position: int, offset: int) -> None:
        super().__init__(f"offset {offset} at byte {position} is out of reach of the base offset")
        self.position = position
        self.what = f"offset {offset} is out of reach of the base offset"


Fault = tuple[tuple[int, int], StartFailsError | InvalidOffsetError]
"""What ends a recovery, with its turn: the number of the entry, and the step in making it."""


@dataclass(slots=True)
class Lost:
    """The sound batches from some byte on, counted until none is left."""

    batches: int = 0
    records: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    unsound: list[Unsound] = field(default_factory=list)
    """The batches among them, or before them, that are not sound."""

    def add(self, table: BatchTable) -> None:
        """Count more of them."""
        if not len(table):
            return
        self.batches += len(table)
        self.records += table.records
        first, last = int(table.base_offset.min()), int(table.last_offset.max())
        self.first_offset = first if self.first_offset is None else min(first, self.first_offset)
        self.last_offset = last if self.last_offset is None else max(last, self.last_offset)


@dataclass(slots=True)
class Recovered:
    """What is left of a segment, and its new indexes."""

    valid_size: int = 0
    """Bytes of log that stay."""
    next_offset: int | None = None
    """Behind the last magic 2 batch; None without one."""
    end_offset: int | None = None
    """Behind the last batch; None without one."""
    offset_index: bytes = b""
    time_index: bytes = b""
    aborted: list[AbortedTransaction] = field(default_factory=list)
    """For the transaction index, in the order of their markers."""
    stop: Damage | None = None
    """What ended the log before its file."""
    batches: int = 0
    records: int = 0


class Indexes:
    """The offset index and the time index of a segment, built batch by batch in columns."""

    def __init__(self, base_offset: int, interval: int, max_size: int = MAX_INDEX_SIZE) -> None:
        self._base = base_offset
        self._interval = interval
        self._most_offsets = max_size // offset_index.ENTRY_SIZE
        self._most_times = max_size // time_index.ENTRY_SIZE - 1
        self._last_indexed = 0
        self._offsets: list[Column] = []
        self._times: list[Column] = []
        self._last_entry: int | None = None
        self._last_time = (-1, base_offset)
        self._max = (-1, -1)
        self._count = self._time_count = 0

    def feed(self, table: BatchTable) -> None:
        """Take the next batches; InvalidOffsetError where an entry would go backwards."""
        rows = self._due(table)
        stamps = table.max_timestamp
        running = np.maximum.accumulate(np.concatenate(([self._max[0]], stamps)))
        rises = np.flatnonzero(stamps > running[:-1])
        if len(rows):
            offsets = table.last_offset[rows]
            positions = table.position[rows]
            # The row whose maximum is current at each entry; -1 for that of an earlier chunk.
            at = np.searchsorted(rises, rows, side="right") - 1
            owners = np.where(at >= 0, rises[at] if len(rises) else -1, -1)
            named = np.where(owners >= 0, table.last_offset[owners], self._max[1])
            times = running[rows + 1]
            # What is wrong with the first entries ends the recovery, whatever follows.
            faults = [
                *self._offset_faults(offsets, positions),
                *self._time_faults(times, named, positions),
            ]
            if faults:
                raise min(faults, key=lambda fault: fault[0])[1]
            self._add_offsets(offsets, positions)
            self._add_times(times, named)
        if len(rises):
            self._max = int(stamps[rises[-1]]), int(table.last_offset[rises[-1]])

    def _due(self, table: BatchTable) -> Column:
        """Return the rows that get an entry."""
        if int(table.size.min()) > self._interval:
            # Each batch is far enough behind the one before it.
            first = np.searchsorted(table.position, self._last_indexed + self._interval, "right")
            rest = np.arange(int(first), len(table))
            self._last_indexed = int(table.position[-1]) if len(rest) else self._last_indexed
            return rest
        positions = table.position.tolist()
        rows = []
        row = bisect_right(positions, self._last_indexed + self._interval)
        while row < len(positions):
            rows.append(row)
            self._last_indexed = positions[row]
            row = bisect_right(positions, self._last_indexed + self._interval, row + 1)
        return np.array(rows, np.int64)

    def _offset_faults(self, offsets: Column, positions: Column) -> Iterator[Fault]:
        """Yield what a broker does not survive in the offset entries, by entry."""
        if self._count + len(offsets) > self._most_offsets:
            text = f"the offset index has room for {self._most_offsets} entries"
            yield (self._most_offsets - self._count, 0), StartFailsError(text)
        last = _MIN if self._last_entry is None else self._last_entry
        before = np.concatenate(([last], offsets[:-1]))
        for entry in np.flatnonzero(offsets <= before)[:1].tolist():
            text = f"offset {int(offsets[entry])} follows {int(before[entry])}"
            yield (entry, 1), InvalidOffsetError(int(positions[entry]), text)

    def _time_faults(self, stamps: Column, offsets: Column, positions: Column) -> Iterator[Fault]:
        """Yield what a broker does not survive in the time entries, by entry of the offset index.

        It looks for room whether or not there is something to write.
        """
        rises = self._rises(stamps)
        count = self._time_count + np.cumsum(rises) - rises
        for entry in np.flatnonzero(count >= self._most_times)[:1].tolist():
            text = f"the time index has room for {self._most_times} entries"
            yield (entry, 2), StartFailsError(text)
        entered = np.concatenate(([self._last_time[1]], np.where(rises, offsets, _MIN)))
        latest = np.maximum.accumulate(entered)[:-1]
        for entry in np.flatnonzero(rises & (offsets < latest) & (count > 0))[:1].tolist():
            text = (
                f"the largest time stamp {int(stamps[entry])} is at offset {int(offsets[entry])}, "
                f"before {int(latest[entry])} of the last time entry"
            )
            yield (entry, 3), InvalidOffsetError(int(positions[entry]), text)

    def _rises(self, stamps: Column) -> npt.NDArray[np.bool_]:
        """Return which of the time stamps, each the largest until then, get an entry."""
        last = self._last_time[0]
        return stamps > np.concatenate(([last], np.maximum(stamps[:-1], last)))

    def _add_offsets(self, offsets: Column, positions: Column) -> None:
        self._last_entry = int(offsets[-1])
        self._count += len(offsets)
        entries = np.empty(len(offsets), offset_index.ENTRY)
        entries["relative_offset"] = offsets - self._base
        entries["position"] = positions
        self._offsets.append(entries)

    def _add_times(self, stamps: Column, offsets: Column) -> None:
        rises = self._rises(stamps)
        if rises.any():
            self._write_times(stamps[rises], offsets[rises])

    def _write_times(self, stamps: Column, offsets: Column) -> None:
        entries = np.empty(len(stamps), time_index.ENTRY)
        entries["timestamp"] = stamps
        entries["relative_offset"] = offsets - self._base
        self._times.append(entries)
        self._time_count += len(stamps)
        self._last_time = int(stamps[-1]), int(offsets[-1])

    def finish(self, position: int) -> tuple[bytes, bytes]:
        """Return both files; the closing time entry may take the slot that is kept free for it."""
        if self._max[0] > self._last_time[0]:
            if self._time_count and self._max[1] < self._last_time[1]:
                raise InvalidOffsetError(position, "the closing time entry would go backwards")
            self._write_times(np.array([self._max[0]]), np.array([self._max[1]]))
        return self.written()

    def written(self) -> tuple[bytes, bytes]:
        """Return what is in both files so far."""
        return (
            b"".join(part.tobytes() for part in self._offsets),
            b"".join(part.tobytes() for part in self._times),
        )


_MIN = -(2**63)


class Producers(Protocol):
    """Whoever takes the batches that change the producer state, such as `ProducerState`."""

    def apply(self, rows: BatchTable) -> tuple[list[AbortedTransaction], list[int]]:
        """Take `significant` rows; returns what `ProducerState.apply` returns."""


class Recovery:
    """Recovers one segment, chunk by chunk; then `result` holds what came of it.

    `watch` is given each table of batches that stay, when they have passed all rules.
    """

    def __init__(
        self,
        base_offset: int,
        *,
        producers: Producers,
        epochs: EpochCache | None = None,
        interval: int = INDEX_INTERVAL,
        max_index_size: int = MAX_INDEX_SIZE,
        watch: Callable[[BatchTable], None] = lambda _: None,
    ) -> None:
        self._base = base_offset
        self._indexes = Indexes(base_offset, interval, max_index_size)
        self._producers = producers
        self._epochs = epochs
        self._watch = watch
        self.result = Recovered()
        self.unreadable: str | None = None
        """The control batch that ended the reading; it stays, and no broker can replay it."""

    @property
    def indexes(self) -> tuple[bytes, bytes]:
        """Return the offset index and the time index as far as they were written."""
        return self._indexes.written()

    def run(
        self, log: ShadowFile, on_bytes: Callable[[int], None] = lambda _: None
    ) -> tuple[Recovered, Lost, Lost]:
        """Recover `log`; also returns the sound batches that go, and those of them behind damage.

        Raises InvalidOffsetError, OffsetOverflowError and StartFailsError, as a broker does.
        """
        lost, behind = Lost(), Lost()
        tally = Tally(log, self._base)
        at = 0
        with log.open() as file:
            for chunk in walk.scan(file, base_offset=self._base, payload=False):
                on_bytes(chunk.end_position - at)
                at = chunk.end_position
                if self.result.stop is not None:
                    behind.add(chunk.table)
                    lost.add(chunk.table)
                else:
                    lost.add(self._feed(chunk, log))
                tally.feed(chunk, counts=self.result.stop is not None)
        lost.unsound = tally.finish()
        result = self.result
        result.offset_index, result.time_index = self._indexes.finish(result.valid_size)
        return result, lost, behind

    def _feed(self, chunk: Chunk, log: ShadowFile) -> BatchTable:
        """Take one chunk; returns the sound batches of it that do not stay."""
        damage = chunk.damage
        if damage is None:
            return self._take_in_reach(chunk.table, chunk.control_errors)
        position, end = damage.position, damage.position + damage.length
        while self.result.stop is None and position < end:
            accepted = _accepted(position, end, log) if damage.reason is Reason.MAGIC else None
            if accepted is None:
                known = position == damage.position
                text = damage.message if known else "no sound batch begins there"
                self.result.stop = replace(
                    damage, position=position, length=end - position, message=text
                )
                break
            position += int(accepted[0].size[0])
            self._take_in_reach(*accepted)
        return record_batch.empty_table()

    def _take_in_reach(
        self, table: BatchTable, errors: list[tuple[int, FormatError]]
    ) -> BatchTable:
        relative = table.last_offset - self._base
        foreign = np.flatnonzero((relative < 0) | (relative > MAX_RELATIVE_OFFSET))
        if len(foreign):
            self._take(table[: foreign[0]], [e for e in errors if e[0] < foreign[0]])
            at = int(foreign[0])
            raise OffsetOverflowError(int(table.position[at]), int(table.last_offset[at]))
        return self._take(table, errors)

    def _take(self, table: BatchTable, errors: list[tuple[int, FormatError]]) -> BatchTable:
        """Take sound batches up to a control record that cannot be read, that one included."""
        rest = record_batch.empty_table()
        readable = len(table)
        if errors:
            readable, error = errors[0]
            table, rest = table[: readable + 1], table[readable + 1 :]
            position = int(table.position[readable] + table.size[readable])
            self.result.stop = Damage(
                position=position,
                length=0,
                reason=Reason.SIZE,
                message=str(error),
                resynchronised=True,
            )
        if not len(table):
            return rest
        try:
            self._indexes.feed(table)
        except InvalidOffsetError as error:
            self._settle(table[table.position < error.position])
            raise
        if self._epochs is not None:
            self._epochs.feed(table)
        self.result.valid_size = int(table.position[-1] + table.size[-1])
        self.result.end_offset = int(table.last_offset[-1]) + 1
        self.result.batches += len(table)
        self.result.records += table.records
        self._replay(table[:readable])
        if errors:
            offset, reason = table.base_offset[readable], errors[0][1].reason
            self.unreadable = f"control record at offset {offset}: {reason}"
        self._watch(table)
        return rest

    def _settle(self, table: BatchTable) -> None:
        """Take what stands before the batch that ends the recovery of the segment."""
        if self._epochs is not None:
            self._epochs.feed(table)
        self._replay(table)

    def _replay(self, table: BatchTable) -> None:
        if not len(table):
            return
        self.result.aborted += replay(self._producers, table, self.result.aborted)
        new = np.flatnonzero(table.magic >= MAGIC)
        if len(new):
            self.result.next_offset = int(table.last_offset[new[-1]]) + 1


def replay(
    producers: Producers, table: BatchTable, before: Sequence[AbortedTransaction] | None = None
) -> list[AbortedTransaction]:
    """Replay batches as a broker does; StartFailsError for what it does not survive.

    `before` are the transactions aborted earlier in the segment, where its index is being written.
    """
    strange = (
        table.is_control
        & (table.producer_id >= 0)
        & ~np.isin(table.control_type, control_record.END_TRANSACTION)
        & (table.record_count > 0)
    )
    rows = producer_state.significant(table)
    aborted, intruders = producers.apply(rows)
    if intruders:
        row = intruders[0]
        raise StartFailsError(
            f"plain batch of producer {rows.producer_id[row]} in its open transaction at offset "
            f"{rows.base_offset[row]}"
        )
    if strange.any():
        row = int(np.flatnonzero(strange)[0])
        raise StartFailsError(
            f"control record of type {table.control_type[row]} of producer "
            f"{table.producer_id[row]} at offset {table.base_offset[row]}"
        )
    last = before[-1].last_offset if before else _MIN
    for transaction in aborted:
        if before is not None and transaction.last_offset <= last:
            raise StartFailsError(
                f"ABORT marker at offset {transaction.last_offset} follows {last}"
            )
        last = transaction.last_offset
    return aborted


def encode_aborted(aborted: list[AbortedTransaction]) -> bytes:
    """Return the transaction index of a segment."""
    entries = np.zeros(len(aborted), txn_index.ENTRY)
    for row, transaction in enumerate(aborted):
        entries[row] = (
            txn_index.VERSION,
            transaction.producer_id,
            transaction.first_offset,
            transaction.last_offset,
            transaction.last_stable_offset,
        )
    return entries.tobytes()


def _accepted(
    position: int, end: int, log: ShadowFile
) -> tuple[BatchTable, list[tuple[int, FormatError]]] | None:
    """Return the batch that a broker sees: the magic byte is neither in the CRC nor looked at."""
    head = log.read(position, HEADER_SIZE)
    size = LOG_OVERHEAD + int.from_bytes(head[8:LOG_OVERHEAD], "big", signed=True)
    if len(head) < HEADER_SIZE or not HEADER_SIZE <= size <= end - position:
        return None
    data = bytearray(log.read(position, size))
    if not MAGIC < data[16] < 128:
        return None
    data[16] = MAGIC
    if crc32c(memoryview(data)[21:]) != int.from_bytes(data[17:21], "big"):
        return None
    table = record_batch.parse(memoryview(data), [0], base=position)
    return table, walk.fill_control(table, memoryview(data), position)
