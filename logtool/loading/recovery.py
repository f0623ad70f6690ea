"""Recovery of one segment: its log is read from the first byte, its indexes are built again.

The rules, their order and the errors are those of ``LogSegment.recover`` (Kafka 3.9 and 4.3): one
offset entry for each stretch of more than ``index.interval.bytes``, and with it a time entry with
the largest time stamp so far; the log ends where the first batch is unsound.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Protocol

import numpy as np

from logtool.errors import FormatError
from logtool.formats import compression, control_record, record_batch
from logtool.formats import transaction_index as txn_index
from logtool.formats.crc import crc32c
from logtool.formats.offset_index import MAX_RELATIVE_OFFSET
from logtool.formats.record_batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, BatchTable
from logtool.lazy_dataclass import dataclass
from logtool.loading.epochs import EpochCache
from logtool.loading.index_building import (
    INDEX_INTERVAL,
    MAX_INDEX_SIZE,
    IndexBuilder,
    InvalidOffsetError,
)
from logtool.loading.kafka_reading import StartFailsError
from logtool.loading.lost_records import LossCount, Unsound
from logtool.loading.shadow import ShadowFile
from logtool.log import producer_state
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk, PlainTotals
from logtool.log.control_rows import fill_control
from logtool.log.damage import Damage, DamageReason
from logtool.log.producer_state import AbortedTransaction


class OffsetOverflowError(Exception):
    """A batch whose offset is out of reach of the segment's base offset."""

    def __init__(self, position: int, offset: int) -> None:
        super().__init__(f"offset {offset} at byte {position} is too far from the base offset")
        self.position = position
        self.what = f"offset {offset} is too far from the base offset"


@dataclass(slots=True)
class CutBatches:
    """Totals of the batches behind a cut."""

    batches: int = 0
    records: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    unsound: list[Unsound] = field(default_factory=list)
    """The unsound batches behind the cut; the other fields count the sound ones."""

    def add(self, table: BatchTable) -> None:
        """Count more sound batches."""
        if not len(table):
            return
        self.batches += len(table)
        self.records += table.records
        first, last = int(table.first_offset.min()), int(table.last_offset.max())
        self.first_offset = first if self.first_offset is None else min(first, self.first_offset)
        self.last_offset = last if self.last_offset is None else max(last, self.last_offset)


@dataclass(slots=True)
class Recovered:
    """The part of a segment that is left, and its new indexes."""

    valid_size: int = 0
    """Bytes of log that stay."""
    next_offset: int | None = None
    """Offset behind the last magic 2 batch; None without one."""
    end_offset: int | None = None
    """Offset behind the last batch; None without one."""
    offset_index: bytes = b""
    time_index: bytes = b""
    aborted: list[AbortedTransaction] = field(default_factory=list)
    """Entries for the transaction index, in the order of their markers."""
    stop: Damage | None = None
    """Damage at which the log ends before its file does; None if it does not."""
    batches: int = 0
    records: int = 0
    is_odd: bool = False
    """True if a batch stays that no broker writes, such as one with offsets of batches before."""


_MIN = -(2**63)


class ProducerSink(Protocol):
    """Receiver of the batches that change the producer state, such as `ProducerState`."""

    def apply(self, rows: BatchTable) -> tuple[list[AbortedTransaction], list[int]]:
        """Take `significant` rows; returns what `ProducerState.apply` returns."""


class Recovery:
    """The recovery of one segment, chunk by chunk; `result` is complete after `run`.

    `watch` gets each table of batches that stay, after they passed all rules, with their totals if
    they are plain.
    """

    def __init__(
        self,
        base_offset: int,
        *,
        producers: ProducerSink,
        epochs: EpochCache | None = None,
        interval: int = INDEX_INTERVAL,
        max_index_size: int = MAX_INDEX_SIZE,
        watch: Callable[[BatchTable, PlainTotals | None], None] = lambda _table, _plain: None,
    ) -> None:
        self._base = base_offset
        self._indexes = IndexBuilder(base_offset, interval, max_index_size)
        self._producers = producers
        self._epochs = epochs
        self._watch = watch
        self._plain: PlainTotals | None = None
        self._control_times: Mapping[int, int] = {}
        self._highest = _MIN
        """Largest offset of the batches that stay."""
        self.result = Recovered()
        self.unreadable: str | None = None
        """The control batch that ended the reading; it stays, and no broker can replay it."""

    @property
    def indexes(self) -> tuple[bytes, bytes]:
        """Return the offset index and the time index as far as they were written."""
        return self._indexes.written()

    def added_entries(self) -> tuple[bytes, bytes]:
        """Return the entries that were added to both indexes since the last call."""
        return self._indexes.added()

    def forget_indexes(self) -> None:
        """Free both indexes once they were used."""
        self.result.offset_index = self.result.time_index = b""
        self._indexes = IndexBuilder(self._base, 0)

    def run(
        self,
        log: ShadowFile,
        on_bytes: Callable[[int], None] = lambda _: None,
    ) -> tuple[Recovered, CutBatches, CutBatches]:
        """Recover `log`; return the result, the batches that are cut, and those behind damage.

        Raises InvalidOffsetError, OffsetOverflowError and StartFailsError, as a broker does.
        """
        lost, behind = CutBatches(), CutBatches()
        tally = LossCount(log, self._base)
        at = 0
        with log.open() as file:
            for chunk in read_batches(file, base_offset=self._base, payload=False):
                on_bytes(chunk.end_position - at)
                at = chunk.end_position
                if self.result.stop is not None:
                    behind.add(chunk.table)
                    lost.add(chunk.table)
                else:
                    lost.add(self._feed(chunk, log))
                tally.add(chunk, counts=self.result.stop is not None)
        lost.unsound = tally.finish()
        result = self.result
        result.offset_index, result.time_index = self._indexes.finish(result.valid_size)
        return result, lost, behind

    def _feed(self, chunk: Chunk, log: ShadowFile) -> BatchTable:
        """Take one chunk; returns the sound batches of it that do not stay."""
        damage = chunk.damage
        self._plain = chunk.plain
        self._control_times = chunk.control_times
        if damage is None:
            return self._take_in_reach(chunk.table, chunk.control_errors)
        position, end = damage.position, damage.position + damage.length
        while self.result.stop is None and position < end:
            accepted = (
                _accepted(position, end, log) if damage.reason is DamageReason.MAGIC else None
            )
            if accepted is None:
                known = position == damage.position
                text = damage.message if known else "no sound batch begins there"
                self.result.stop = replace(
                    damage, position=position, length=end - position, message=text
                )
                break
            position += int(accepted[0].size[0])
            self.result.is_odd = True
            self._take_in_reach(*accepted)
        return record_batch.empty_table()

    def _take_in_reach(
        self, table: BatchTable, errors: list[tuple[int, FormatError]]
    ) -> BatchTable:
        if self._plain:
            # Their offsets rise, so that all lie between those of the first and of the last.
            first, last = (int(offset) - self._base for offset in table.last_offset[[0, -1]])
            if first >= 0 and last <= MAX_RELATIVE_OFFSET:
                return self._take(table, errors)
            self._plain = None
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
                reason=DamageReason.SIZE,
                message=str(error),
                resynchronised=True,
            )
        if not len(table):
            return rest
        try:
            rising = self._plain is not None and self._plain.timestamps_rise == 1
            self._indexes.add(table, rising=rising)
        except InvalidOffsetError as error:
            self._settle(table[table.position < error.position])
            raise
        if self._epochs is not None:
            self._epochs.add(table)
        self._look(table)
        self.result.valid_size = int(table.position[-1] + table.size[-1])
        self.result.end_offset = int(table.last_offset[-1]) + 1
        self.result.batches += len(table)
        self.result.records += self._plain.records if self._plain else table.records
        self._replay(table[:readable] if errors else table)
        if errors:
            offset, reason = table.base_offset[readable], errors[0][1].reason
            self.unreadable = f"control record at offset {offset}: {reason}"
        self._watch(table, self._plain)
        return rest

    def _look(self, table: BatchTable) -> None:
        """Note whether batches that stay are odd: a broker compares no offsets but in indexes."""
        last_offset = table.last_offset
        if self._plain:
            self.result.is_odd |= bool(table.base_offset[0] <= self._highest)
            self._highest = max(self._highest, int(last_offset[-1]))
            return
        highest = np.maximum.accumulate(np.concatenate(([self._highest], last_offset)))
        delta = last_offset - table.base_offset
        count, is_new = table.record_count, table.magic >= MAGIC
        odd = (table.base_offset <= highest[:-1]) | (delta < 0)
        odd |= is_new & ((count < 0) | (count > delta + 1))
        odd |= table.codec >= len(compression.NAMES)
        self.result.is_odd |= bool(odd.any())
        self._highest = int(highest[-1])

    def _settle(self, table: BatchTable) -> None:
        """Take the batches before the batch that ends the recovery of the segment."""
        if self._epochs is not None:
            self._epochs.add(table)
        self._replay(table)

    def _replay(self, table: BatchTable) -> None:
        if not len(table):
            return
        self.result.aborted += replay(
            self._producers, table, self.result.aborted, self._plain, self._control_times
        )
        new = [-1] if self._plain else np.flatnonzero(table.magic >= MAGIC)
        if len(new):
            self.result.next_offset = int(table.last_offset[new[-1]]) + 1


def replay(
    producers: ProducerSink,
    table: BatchTable,
    before: Sequence[AbortedTransaction] | None = None,
    plain: PlainTotals | None = None,
    control_times: Mapping[int, int] | None = None,
) -> list[AbortedTransaction]:
    """Replay batches as a broker does; StartFailsError where a broker would stop.

    `before` are the transactions aborted earlier in the segment, if its index is being written.
    `plain` are the totals of the batches if they are plain, `control_times` those of the chunk.
    """
    rows = producer_state.significant(table, plain=plain)
    if control_times:
        rows = _with_times(rows, control_times)
    aborted, intruders = producers.apply(rows)
    faults = [(int(rows.base_offset[row]), _intruding(rows, row)) for row in intruders[:1]]
    if not plain:
        faults += _strange(table)
    last = before[-1].last_offset if before else _MIN
    for transaction in aborted:
        if before is not None and transaction.last_offset <= last:
            text = f"ABORT marker at offset {transaction.last_offset} follows {last}"
            faults.append((transaction.last_offset, text))
            break
        last = transaction.last_offset
    if faults:
        raise StartFailsError(min(faults)[1])  # a broker meets the first one
    return aborted


def _with_times(rows: BatchTable, times: Mapping[int, int]) -> BatchTable:
    """Return the rows with the times of control records (``ProducerAppendInfo.append``)."""
    stamps = [
        times.get(position, stamp)
        for position, stamp in zip(rows.position.tolist(), rows.max_timestamp.tolist(), strict=True)
    ]
    return replace(rows, max_timestamp=np.array(stamps, np.int64))


def _intruding(rows: BatchTable, row: int) -> str:
    return (
        f"plain batch of producer {rows.producer_id[row]} in its open transaction at offset "
        f"{rows.base_offset[row]}"
    )


def _strange(table: BatchTable) -> list[tuple[int, str]]:
    """Return the first control record of a producer that ends no transaction, with its offset."""
    control = table.is_control & (table.producer_id >= 0)
    if not control.any():
        return []
    ends = np.isin(table.control_type, control_record.END_TRANSACTION)
    return [
        (
            int(table.base_offset[row]),
            f"control record of type {table.control_type[row]} of producer "
            f"{table.producer_id[row]} at offset {table.base_offset[row]}",
        )
        for row in np.flatnonzero(control & ~ends & (table.record_count > 0))[:1].tolist()
    ]


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
    return table, fill_control(table, memoryview(data), position)
