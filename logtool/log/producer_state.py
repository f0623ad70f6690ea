"""Producer state replayed from the log: who wrote last, which transactions are open or aborted.

`significant` reduces the batches of a segment to the few rows that change the outcome, in columns;
`ProducerState.apply` then replays those one by one, as ``ProducerAppendInfo`` does for replicated
data (Kafka 3.9 and 4.x). Both run per segment, so that segments can be scanned apart.
"""

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from logtool.formats import control_record
from logtool.formats.record_batch import (
    CONTROL,
    MAGIC,
    TRANSACTIONAL,
    BatchTable,
    Column,
    concat,
    empty_table,
)
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import PlainTotals

NONE = -1


@dataclass(slots=True)
class Producer:
    """The state of one producer id; -1 where nothing is known."""

    epoch: int
    last_sequence: int = NONE
    last_offset: int = NONE
    offset_delta: int = 0
    timestamp: int = NONE
    """Milliseconds; of the last batch or marker."""
    coordinator_epoch: int = NONE
    transaction_first_offset: int = NONE
    """First offset of the open transaction."""
    intruding: bool = False
    """True if the last batch of the producer was a plain one inside its open transaction."""
    transaction_has_records: bool = field(default=True, compare=False)
    """True if a batch of the open transaction holds a record, or if that is not known; compaction
    leaves empty batches."""


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """A transaction that an ABORT marker ended and that left batches in the replayed log."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Offset of the marker."""
    last_stable_offset: int = NONE
    """The last stable offset at the time of the marker: the first offset of the oldest open
    transaction of another producer, else the offset after the marker."""
    has_records: bool = True
    """True if a batch of the transaction has a record that a reader could take for committed."""


@dataclass(frozen=True, slots=True)
class CommittedTransaction:
    """A transaction that a COMMIT marker ended and that left batches in the replayed log."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Offset of the marker."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker that ended a transaction, with or without records in this log."""

    offset: int
    producer_epoch: int
    type: int
    """`control_record.ABORT` or ``COMMIT``."""
    timestamp: int
    """Milliseconds, by the clock of the broker that wrote it."""


def last_markers(rows: BatchTable) -> dict[int, Marker]:
    """Return the last marker of each producer id among the `significant` rows of a log."""
    return {
        int(rows.producer_id[row]): Marker(
            offset=int(rows.base_offset[row]),
            producer_epoch=int(rows.producer_epoch[row]),
            type=int(rows.control_type[row]),
            timestamp=int(rows.max_timestamp[row]),
        )
        for row in np.flatnonzero(_is_marker(rows)).tolist()
    }


@dataclass(slots=True)
class ProducerState:
    """All producers at one offset of the log."""

    producers: dict[int, Producer] = field(default_factory=dict)
    committed: list[CommittedTransaction] | None = field(default=None, compare=False)
    """A list to which `apply` adds committed transactions; None: they are not collected."""

    def apply(self, rows: BatchTable) -> tuple[list[AbortedTransaction], list[int]]:
        """Replay the `significant` rows of a stretch of log.

        Returns the transactions aborted in it, and the row numbers of plain batches that their
        producer wrote inside its open transaction, the first of those in a row: a broker does not
        survive loading them.
        """
        aborted: list[AbortedTransaction] = []
        intruders: list[int] = []
        marker = _is_marker(rows)
        last_sequence, transactional = rows.last_sequence, rows.is_transactional
        for row in range(len(rows)):
            producer_id, epoch = int(rows.producer_id[row]), int(rows.producer_epoch[row])
            state = self.producers.setdefault(producer_id, Producer(epoch))
            if state.epoch != epoch:
                state.epoch = epoch
                state.last_sequence = state.last_offset = NONE
                state.offset_delta = 0
            state.timestamp = int(rows.max_timestamp[row])
            if marker[row]:
                state.coordinator_epoch = int(rows.coordinator_epoch[row])
                first, state.transaction_first_offset = state.transaction_first_offset, NONE
                state.intruding = False
                offset = int(rows.base_offset[row])
                if first != NONE and rows.control_type[row] == control_record.ABORT:
                    stable = self.oldest_open(none=offset + 1)
                    nonempty = state.transaction_has_records
                    aborted.append(
                        AbortedTransaction(
                            producer_id=producer_id,
                            first_offset=first,
                            last_offset=offset,
                            last_stable_offset=stable,
                            has_records=nonempty,
                        )
                    )
                elif first != NONE and self.committed is not None:
                    self.committed.append(CommittedTransaction(producer_id, first, offset))
                continue
            state.last_sequence = int(last_sequence[row])
            state.last_offset = int(rows.last_offset[row])
            state.offset_delta = int(rows.last_offset[row] - rows.base_offset[row])
            if transactional[row] and state.transaction_first_offset == NONE:
                state.transaction_first_offset = int(rows.base_offset[row])
                state.transaction_has_records = False
            state.transaction_has_records |= bool(rows.record_count[row] > 0)
            inside = not transactional[row] and state.transaction_first_offset != NONE
            if inside and not state.intruding:
                intruders.append(row)
            state.intruding = inside
        return aborted, intruders

    @property
    def in_transaction(self) -> dict[int, Producer]:
        """Return the producers whose transaction is open, by their id."""
        return {
            producer_id: producer
            for producer_id, producer in self.producers.items()
            if producer.transaction_first_offset != NONE
        }

    def oldest_open(self, *, none: int) -> int:
        """Return the first offset of the oldest open transaction, or `none`."""
        open_ones = (p.transaction_first_offset for p in self.producers.values())
        return min((first for first in open_ones if first != NONE), default=none)


def significant(
    table: BatchTable, cuts: Sequence[int] = (), plain: PlainTotals | None = None
) -> BatchTable:
    """Return the rows of `table` without which a replay would end differently, in file order.

    Of each producer: every end-transaction marker, the last batch before and the first behind each
    marker, change of epoch, of kind or to batches without records, the first and the last. `cuts`
    are offsets at which the state is wanted too: no row stands for batches on both sides of one.
    The sums of `plain` batches answer most of what is asked here.
    """
    if plain and plain.producers == 1 and not cuts:
        return _ends(table)
    if plain.producers == 0 if plain else not len(table) or int(table.producer_id.max()) < 0:
        return empty_table()
    if not cuts:
        return _significant(table)
    edges = np.searchsorted(table.base_offset, sorted(cuts)).tolist()
    parts = [_significant(table[a:b]) for a, b in zip([0, *edges], [*edges, None], strict=True)]
    return concat(parts)


def _ends(table: BatchTable) -> BatchTable:
    """Return the `significant` rows where one producer, in one epoch, wrote plain data alone."""
    return table[np.array([0, len(table) - 1] if len(table) > 1 else [0])]


def _significant(table: BatchTable) -> BatchTable:
    ids, epochs = table.producer_id, table.producer_epoch
    if (
        len(table)
        and int(np.bitwise_or.reduce(table.attributes)) & (CONTROL | TRANSACTIONAL) == 0
        and int(table.magic.min()) == MAGIC
        and 0 <= ids.min() == ids.max()
        and epochs.min() == epochs.max()
    ):
        return _ends(table)
    marker = _is_marker(table)
    data = (table.producer_id >= 0) & (table.magic >= MAGIC) & ~table.is_control
    rows = np.flatnonzero(marker | data)
    if not len(rows):
        return table[:0]
    rows = rows[np.argsort(table.producer_id[rows], kind="stable")]
    nonempty = table.record_count > 0
    changes = (
        (table.producer_id[rows[1:]] != table.producer_id[rows[:-1]])
        | (table.producer_epoch[rows[1:]] != table.producer_epoch[rows[:-1]])
        | (table.is_transactional[rows[1:]] != table.is_transactional[rows[:-1]])
        | (nonempty[rows[1:]] != nonempty[rows[:-1]])
        | marker[rows[1:]]
        | marker[rows[:-1]]
    )
    keep = np.concatenate(([True], changes)) | np.concatenate((changes, [True]))
    return table[np.sort(rows[keep])]


def _is_marker(table: BatchTable) -> Column:
    """Return where an end-transaction marker stands; one emptied by compaction does not count."""
    column: Column = (
        table.is_control
        & (table.producer_id >= 0)
        & (
            (table.control_type == control_record.ABORT)
            | (table.control_type == control_record.COMMIT)
        )
    )
    return column
