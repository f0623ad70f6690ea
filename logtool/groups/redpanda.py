"""The records of Redpanda's ``__consumer_offsets`` as Kafka's coordinator would have written them.

Redpanda writes Kafka's own records for groups and their commits, except for commits in a
transaction: see `logtool.formats.redpanda.group_transaction`. This module makes Kafka's records of
the offsets of a transaction, and markers of the batches that end it, for one way of replay.
"""

import struct
from collections.abc import Iterator, Sequence

import numpy as np

from logtool.errors import FormatError
from logtool.formats.record import RecordSpans
from logtool.formats.record_batch import NO_SEQUENCE, BatchTable, Column
from logtool.formats.redpanda import group_transaction
from logtool.formats.redpanda.group_transaction import TransactionOffset
from logtool.formats.redpanda.record_batch import BatchType
from logtool.log.chunk import Chunk
from logtool.log.control import Marker, markers
from logtool.log.record_table import RecordTable, Unread, unread
from logtool.log.records import batch_records, records

_LONGEST = 2**15 - 1
"""Largest number of bytes of a text in a record of Kafka."""
_KEY, _NUMBER = 1, struct.Struct(">h")
_PARTITION = struct.Struct(">i")
_VALUE, _TIME = struct.Struct(">hqi"), struct.Struct(">q")
_VALUE_VERSION = 3


def read(chunk: Chunk, limit: int) -> Iterator[RecordTable | Unread]:
    """Yield the records of a chunk in order, those of transactions in Kafka's form."""
    table = chunk.table
    data = np.flatnonzero(~table.is_control)
    prepared = np.flatnonzero(table.batch_type == BatchType.GROUP_PREPARE_TX)
    *before, behind = np.split(data, np.searchsorted(data, prepared))
    for some, row in zip(before, prepared.tolist(), strict=True):
        if len(some):
            yield from records(chunk, some, limit=limit)
        yield _prepared(chunk, row, limit)
    yield from records(chunk, behind, limit=limit)


def ends(table: BatchTable) -> list[Marker]:
    """Return the ends of transactions among batches of Kafka or Redpanda, in order."""
    committed = table.batch_type == BatchType.GROUP_COMMIT_TX
    rows = np.flatnonzero(committed | (table.batch_type == BatchType.GROUP_ABORT_TX))
    columns = (table.last_offset[rows], table.producer_id[rows], committed[rows])
    found = zip(*(column.tolist() for column in columns), strict=True)
    return sorted([*markers(table), *found])


def _prepared(chunk: Chunk, row: int, limit: int) -> RecordTable | Unread:
    batch = chunk.table[row : row + 1]
    pairs: list[tuple[bytes, bytes]] = []
    for part in batch_records(chunk, row, limit=limit):
        if isinstance(part, Unread):
            return part
        try:
            pairs += _pairs(part, int(batch.max_timestamp[0]))
        except FormatError as error:
            return unread(chunk.table, row, error)
    return _in_kafkas_form(pairs, batch)


def _pairs(part: RecordTable, time_ms: int) -> Iterator[tuple[bytes, bytes]]:
    for row in range(len(part.offset)):
        one = group_transaction.parse(part.value(row) or b"")
        for offset in one.offsets:
            yield _pair(one.group, offset, time_ms)


def _pair(group: bytes, one: TransactionOffset, time_ms: int) -> tuple[bytes, bytes]:
    """Return key and value of the record that Kafka writes for an offset."""
    key = _NUMBER.pack(_KEY) + _text(group) + _text(one.topic) + _PARTITION.pack(one.partition)
    value = _VALUE.pack(_VALUE_VERSION, one.offset, one.leader_epoch)
    return key, value + _text(one.metadata) + _TIME.pack(time_ms)


def _text(content: bytes) -> bytes:
    if len(content) > _LONGEST:
        raise FormatError(f"a text of {len(content)} bytes is too long for a record of a group")
    return _NUMBER.pack(len(content)) + content


def _in_kafkas_form(pairs: Sequence[tuple[bytes, bytes]], batch: BatchTable) -> RecordTable:
    """Return pairs of key and value as records at the offset and with the time of their batch."""
    sizes = np.array([len(part) for pair in pairs for part in pair], np.int64)
    at = np.cumsum(sizes) - sizes

    def each(value: int) -> Column:
        return np.full(len(pairs), value, np.int64)

    return RecordTable(
        data=memoryview(bytearray(b"".join(part for pair in pairs for part in pair))),
        batches=batch,
        counts=np.array([len(pairs)]),
        spans=RecordSpans(
            position=at[::2],
            size=sizes[::2] + sizes[1::2],
            attributes=each(0),
            timestamp_delta=each(0),
            offset_delta=each(0),
            key_position=at[::2],
            key_length=sizes[::2],
            value_position=at[1::2],
            value_length=sizes[1::2],
            header_position=each(0),
            header_count=each(0),
        ),
        offset=each(int(batch.base_offset[0])),
        timestamp=each(int(batch.max_timestamp[0])),
        sequence=each(NO_SEQUENCE),
    )
