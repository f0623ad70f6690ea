"""The sums of producers and of transactions: sums of parts of a log can be added up again.

Both sums are tables of int64 columns in the order of the log, with a row for each producer in each
part. A batch is such a row by itself. `producers` and `transactions` add up the rows of one key:
those of the batches of a chunk, of the chunks of a stretch, and of the stretches of a partition. So
one function serves in executors and in the driver, and rows of batches are not sent.

A number of -1 means none. Only batches of magic 2 with a producer id count.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np

from logtool.formats import control_record
from logtool.formats.record_batch import (
    CONTROL,
    NO_SEQUENCE,
    SEQUENCES,
    TRANSACTIONAL,
    BatchTable,
    Column,
)

_MARKERS: Final = (int(control_record.ABORT), int(control_record.COMMIT))


class ProducerSums(NamedTuple):
    """Batches with data of one producer and epoch in one partition dir, by rows."""

    directory: Column
    """A number for each partition dir, 0 where there is only one."""
    producer_id: Column
    producer_epoch: Column
    first_offset: Column
    """Base offset of the first batch in the log."""
    last_offset: Column
    """Largest offset."""
    first_sequence: Column
    last_sequence: Column
    """Last sequence number of the last batch in the log."""
    batches: Column
    records: Column
    first_timestamp_ms: Column
    """Least time in the header of a batch."""
    last_timestamp_ms: Column
    """Largest time in the header of a batch."""
    sequence_breaks: Column
    """Batches whose first sequence number does not follow the last one of the batch before."""


class TransactionSums(NamedTuple):
    """Transactions of one producer in one partition dir, or parts of them, by rows.

    A row with a marker ends the transaction; a row without one goes on in the next row of its
    producer.
    """

    directory: Column
    producer_id: Column
    producer_epoch: Column
    """Epoch of the first batch: with transactions of version 2 the marker has the next epoch."""
    first_offset: Column
    last_offset: Column
    """Last offset of the last batch with data."""
    batches: Column
    """Batches with data; 0 for a marker alone."""
    records: Column
    first_timestamp_ms: Column
    """Least time in the header of a batch with data."""
    last_timestamp_ms: Column
    """Largest time in the header of a batch, that of the marker included."""
    marker: Column
    """Type of the control record that ends the transaction; -1: the transaction is open."""
    marker_offset: Column
    coordinator_epoch: Column


_NEVER: Final = 2**63 - 1
_Rows = TypeVar("_Rows", ProducerSums, TransactionSums)


def producers_of(table: BatchTable) -> ProducerSums | None:
    """Return the producers of sound batches in the order of the log; None without any."""
    if not len(table) or int(table.producer_id.max()) < 0:
        return None
    if int(table.producer_id.min()) < 0 or bool((table.attributes & CONTROL).any()):
        table = table[(table.producer_id >= 0) & ~table.is_control]
        if not len(table):
            return None
    count = len(table)
    zeros, ones = np.zeros(count, np.int64), np.ones(count, np.int64)
    least, largest = _times(table)
    return producers(
        ProducerSums(
            directory=zeros,
            producer_id=table.producer_id,
            producer_epoch=table.producer_epoch,
            first_offset=table.base_offset,
            last_offset=table.last_offset,
            first_sequence=table.base_sequence,
            last_sequence=table.last_sequence,
            batches=ones,
            records=table.records_of_each,
            first_timestamp_ms=least,
            last_timestamp_ms=largest,
            sequence_breaks=zeros,
        )
    )


def producers(rows: ProducerSums) -> ProducerSums:
    """Return one row for each producer and epoch of each directory."""
    starts, rows = _grouped(rows, "directory", "producer_id", "producer_epoch")
    expected, found = (rows.last_sequence[:-1] + 1) & (SEQUENCES - 1), rows.first_sequence[1:]
    known = (rows.last_sequence[:-1] != NO_SEQUENCE) & (found != NO_SEQUENCE)
    broken = np.concatenate(([False], known & (found != expected)))
    broken[starts] = False
    ends = _ends(starts, len(broken))
    return ProducerSums(
        directory=rows.directory[starts],
        producer_id=rows.producer_id[starts],
        producer_epoch=rows.producer_epoch[starts],
        first_offset=rows.first_offset[starts],
        last_offset=np.maximum.reduceat(rows.last_offset, starts),
        first_sequence=rows.first_sequence[starts],
        last_sequence=rows.last_sequence[ends],
        batches=np.add.reduceat(rows.batches, starts),
        records=np.add.reduceat(rows.records, starts),
        first_timestamp_ms=_least(rows.first_timestamp_ms, starts),
        last_timestamp_ms=np.maximum.reduceat(rows.last_timestamp_ms, starts),
        sequence_breaks=np.add.reduceat(rows.sequence_breaks + broken, starts),
    )


def transactions_of(table: BatchTable) -> TransactionSums | None:
    """Return the transactions of sound batches in the order of the log; None without any."""
    if not len(table) or not (table.attributes & TRANSACTIONAL).any():
        return None
    ends = table.is_control & np.isin(table.control_type, _MARKERS)
    table = table[(table.producer_id >= 0) & (ends | (table.is_transactional & ~table.is_control))]
    if not len(table):
        return None
    ends = table.is_control
    none, data = np.full(len(table), -1), (~ends).astype(np.int64)
    least, largest = _times(table)
    return transactions(
        TransactionSums(
            directory=np.zeros(len(table), np.int64),
            producer_id=table.producer_id,
            producer_epoch=table.producer_epoch,
            first_offset=table.base_offset,
            last_offset=table.last_offset,
            batches=data,
            records=data * table.records_of_each,
            first_timestamp_ms=np.where(ends, none, least),
            last_timestamp_ms=largest,
            marker=np.where(ends, table.control_type, none),
            marker_offset=np.where(ends, table.base_offset, none),
            coordinator_epoch=np.where(ends, table.coordinator_epoch, none),
        )
    )


def transactions(rows: TransactionSums) -> TransactionSums:
    """Return one row for each transaction, and for each marker without one, of each producer."""
    starts, rows = _grouped(rows, "directory", "producer_id")
    begins = np.concatenate(([True], rows.marker[:-1] >= 0))
    begins[starts] = True
    starts = np.flatnonzero(begins)
    ends = _ends(starts, len(begins))
    # A row with only a marker has no last offset of data: take that of the row before.
    last = np.where((rows.batches[ends] == 0) & (ends > starts), ends - 1, ends)
    return TransactionSums(
        directory=rows.directory[starts],
        producer_id=rows.producer_id[starts],
        producer_epoch=rows.producer_epoch[starts],
        first_offset=rows.first_offset[starts],
        last_offset=rows.last_offset[last],
        batches=np.add.reduceat(rows.batches, starts),
        records=np.add.reduceat(rows.records, starts),
        first_timestamp_ms=_least(rows.first_timestamp_ms, starts),
        last_timestamp_ms=np.maximum.reduceat(rows.last_timestamp_ms, starts),
        marker=rows.marker[ends],
        marker_offset=rows.marker_offset[ends],
        coordinator_epoch=rows.coordinator_epoch[ends],
    )


class ProducerRows:
    """The rows of both sums of one stretch, added up from its chunks in their order."""

    def __init__(self) -> None:
        self._producers: list[ProducerSums] = []
        self._transactions: list[TransactionSums] = []

    def add_data(self, table: BatchTable) -> None:
        """Take sound batches that stand in their place, for the producers."""
        if found := producers_of(table):
            self._producers.append(found)

    def add_transactions(self, table: BatchTable) -> None:
        """Take sound batches that stand in their place, for the transactions."""
        if found := transactions_of(table):
            self._transactions.append(found)

    def finish(self) -> tuple[ProducerSums | None, TransactionSums | None]:
        """Return the rows of both sums; None for a sum without any."""
        one = joined(self._producers)
        other = joined(self._transactions)
        # The rows of a single chunk are added up already.
        if one and len(self._producers) > 1:
            one = producers(one)
        if other and len(self._transactions) > 1:
            other = transactions(other)
        return one, other


def joined(parts: Sequence[_Rows]) -> _Rows | None:
    """Return the rows of all parts in order; None without any part."""
    if len(parts) < 2:
        return parts[0] if parts else None
    return type(parts[0])(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _grouped(rows: _Rows, *key: str) -> tuple[Column, _Rows]:
    """Return the first row of each group of equal keys, and the rows sorted into groups."""
    columns = [getattr(rows, name) for name in key]
    edges = _edges(columns)
    if len(edges) > 1:
        order = np.lexsort([column for column in reversed(columns) if column.any()] or columns)
        rows = type(rows)(*(column[order] for column in rows))
        edges = _edges([getattr(rows, name) for name in key])
    return edges, rows


def _edges(columns: Sequence[Column]) -> Column:
    """Return the rows in which any of the columns changes, the first row included."""
    changed = np.zeros(len(columns[0]), bool)
    changed[0] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(changed)


def _ends(starts: Column, count: int) -> Column:
    """Return the last row of each group."""
    return np.concatenate((starts[1:], [count])) - 1


def _times(table: BatchTable) -> tuple[Column, Column]:
    """Return the least and the largest time of each batch, by the rule of `SegmentTotals`."""
    newest = table.max_timestamp
    stamped = table.is_log_append_time | table.has_delete_horizon
    oldest = np.where(stamped, newest, table.base_timestamp)
    largest = np.maximum(np.maximum(oldest, newest), -1)
    least = np.where((oldest < 0) | ((newest >= 0) & (newest < oldest)), newest, oldest)
    return np.maximum(least, -1), largest


def _least(times: Column, starts: Column) -> Column:
    """Return the least time of each group; -1 for a group without a time."""
    found = np.minimum.reduceat(np.where(times < 0, _NEVER, times), starts)
    return np.where(found == _NEVER, -1, found)
