"""The records of Redpanda's ``__consumer_offsets`` as Kafka's coordinator would have written them.

What a group commits by itself, and the group, stand in Kafka's own records. What it commits in a
transaction does not: see `logtool.formats.redpanda.group_transaction`. Its offsets become records
of Kafka's form here, and the batches that end it markers, so that they are replayed in one way.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from logtool.dump.columns import Marker, RecordColumns, Unread, markers, read_records
from logtool.errors import FormatError
from logtool.formats import record
from logtool.formats.record_batch import HEADER_SIZE, BatchTable, Column
from logtool.formats.redpanda import group_transaction
from logtool.formats.redpanda.group_transaction import TransactionOffset
from logtool.formats.redpanda.record_batch import BatchType
from logtool.log.chunk import Chunk

_LONGEST = 2**15 - 1
"""Bytes of a text in a record of Kafka."""
_KEY, _NUMBER = 1, struct.Struct(">h")
_PARTITION = struct.Struct(">i")
_VALUE, _TIME = struct.Struct(">hqi"), struct.Struct(">q")
_VALUE_VERSION = 3


def read(chunk: Chunk, limit: int) -> Iterator[RecordColumns | Unread]:
    """Yield the records of a chunk in order, those of transactions in Kafka's form."""
    table, first = chunk.table, 0
    for row in np.flatnonzero(table.batch_type == BatchType.GROUP_PREPARE_TX).tolist():
        if row > first:
            yield from read_records(_part(chunk, first, row), limit)
        yield _prepared(chunk, row)
        first = row + 1
    if first < len(table):
        yield from read_records(_part(chunk, first, len(table)), limit)


def ends(table: BatchTable) -> list[Marker]:
    """Return the ends of transactions among batches of Kafka or Redpanda, in order."""
    committed = table.batch_type == BatchType.GROUP_COMMIT_TX
    rows = np.flatnonzero(committed | (table.batch_type == BatchType.GROUP_ABORT_TX))
    columns = (table.last_offset[rows], table.producer_id[rows], committed[rows])
    found = zip(*(column.tolist() for column in columns), strict=True)
    return sorted([*markers(table), *found])


def _part(chunk: Chunk, first: int, stop: int) -> Chunk:
    return replace(chunk, table=chunk.table[first:stop])


def _prepared(chunk: Chunk, row: int) -> RecordColumns | Unread:
    table = chunk.table
    fields = table.row(row)
    try:
        values = _values(chunk, row, fields["record_count"])
        pairs = [
            _pair(one.group, offset, fields["max_timestamp"])
            for one in map(group_transaction.parse, values)
            for offset in one.offsets
        ]
    except FormatError as error:
        return Unread(
            position=fields["position"],
            size=fields["size"],
            first_offset=fields["base_offset"],
            last_offset=fields["last_offset"],
            reason=error.reason,
        )
    return _columns(pairs, fields["base_offset"], fields["max_timestamp"], fields["producer_id"])


def _values(chunk: Chunk, row: int, count: int) -> Iterator[bytes]:
    body = chunk.batch(row)[HEADER_SIZE:]
    for part, damage in record.parse_slices(body, count):
        for at, size in zip(part.value_position.tolist(), part.value_length.tolist(), strict=True):
            yield bytes(body[at : at + max(size, 0)])
        if damage:
            raise damage


def _pair(group: bytes, one: TransactionOffset, time_ms: int) -> tuple[bytes, bytes]:
    """Return key and value of the record that Kafka has for an offset."""
    key = _NUMBER.pack(_KEY) + _text(group) + _text(one.topic) + _PARTITION.pack(one.partition)
    value = _VALUE.pack(_VALUE_VERSION, one.offset, one.leader_epoch)
    return key, value + _text(one.metadata) + _TIME.pack(time_ms)


def _text(content: bytes) -> bytes:
    if len(content) > _LONGEST:
        raise FormatError(f"a text of {len(content)} bytes is too long for a record of a group")
    return _NUMBER.pack(len(content)) + content


def _columns(
    pairs: Sequence[tuple[bytes, bytes]], offset: int, time_ms: int, producer_id: int
) -> RecordColumns:
    sizes = np.array([len(part) for pair in pairs for part in pair], np.int64)
    at = np.cumsum(sizes) - sizes

    def each(value: int) -> Column:
        return np.full(len(pairs), value, np.int64)

    return RecordColumns(
        data=memoryview(bytearray(b"".join(part for pair in pairs for part in pair))),
        offset=each(offset),
        timestamp=each(time_ms),
        producer_id=each(producer_id),
        size=sizes[::2] + sizes[1::2],
        key_position=at[::2],
        key_length=sizes[::2],
        value_position=at[1::2],
        value_length=sizes[1::2],
    )
