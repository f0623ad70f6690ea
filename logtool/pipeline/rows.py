"""Batches and records as Arrow columns: what one pass over a segment gives for the tables.

No Python object is made for a row: NumPy columns are narrowed, and keys and values are gathered
out of the bytes of a block by Arrow itself. The exceptions are messages of magic 0 and 1, and the
CRC-32C of keys and values, one call each. Only the columns that are asked for are made.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from logtool.dump import blocks
from logtool.dump.blocks import Records
from logtool.errors import FormatError, LimitError
from logtool.formats import compression, legacy_batch, record
from logtool.formats.record import RecordTable
from logtool.formats.record_batch import (
    HEADER_SIZE,
    MAGIC,
    NO_SEQUENCE,
    SEQUENCES,
    BatchTable,
    Column,
)
from logtool.pipeline import tables
from logtool.pipeline.tables import Payload
from logtool.pipeline.wanted import WHOLE, Span
from logtool.scan import Chunk, Source

MOST_ROWS: Final = 65_536
"""Of one record batch: many enough for what each costs, and few enough for their bytes to be
counted in an int32."""
_KEPT_ROWS = 16_384
"""Constant columns up to this length are kept, as nearly all record batches want the same few."""
_LARGEST_INT32 = 2**31 - 1


class Place(NamedTuple):
    """What the rows of one partition directory have in common: their first columns."""

    log_dir: str
    node_id: int | None
    topic: str | None
    partition: int | None
    directory: str | None


def batch_rows(
    place: Place, segment: int, table: BatchTable, names: Sequence[str] | None = None
) -> Any:
    """Return a `pyarrow.RecordBatch` of the table ``batches``, or of its columns `names` alone.

    `segment` is the base offset of the segment that the batches stand in.
    """
    schema, count = _chosen("batches", names), len(table)
    common = _common(place, segment)
    columns = [
        constant(common[field.name], field.type, count)
        if field.name in common
        else _OF_BATCHES[field.name](table)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def record_rows(
    place: Place, segment: int, chunk: Chunk, payload: Payload,
    names: Sequence[str] | None = None, limit: int = compression.DEFAULT_LIMIT,
    file: Source | None = None, span: Span = WHOLE, *, strict: bool = False,
) -> Iterator[Any]:  # fmt: skip
    """Yield `pyarrow.RecordBatch`es of the table ``records``, or of its columns `names` alone.

    Every record of the chunk's batches that `span` wants is one row, in order. Of a batch with
    damage inside there are the records before it; a batch that cannot be decompressed, or only to
    more than `limit` bytes, gives no rows, nor does one too large for the chunk to hold unless
    `file` has its bytes. With `strict`, LimitError names one that is above the limit.
    """
    schema = _chosen("records", names or tables.schema("records", payload).names)
    common = _common(place, segment)
    for batches, records in _decoded(chunk, min(limit, _LARGEST_INT32), file, strict):
        for some in _slices(batches, records):
            count = some.stop - some.start
            columns = [
                constant(common[field.name], field.type, count)
                if field.name in common
                else _OF_RECORDS[field.name](some)
                for field in schema
            ]
            rows = pa.RecordBatch.from_arrays(columns, schema=schema)
            mask = span.of_records(some.cut(records.offset), some.cut(records.timestamp))
            yield rows if mask is None else rows.filter(pa.array(mask))


def constant(value: Any, kind: Any, count: int) -> Any:
    """Return an Arrow array of `count` times the same value, None included."""
    if count > _KEPT_ROWS:
        return _repeated(value, kind, count)
    return _kept(value, kind).slice(0, count)


@lru_cache(maxsize=64)
def _kept(value: Any, kind: Any) -> Any:
    return _repeated(value, kind, _KEPT_ROWS)


def _repeated(value: Any, kind: Any, count: int) -> Any:
    return pa.nulls(count, kind) if value is None else pa.repeat(pa.scalar(value, kind), count)


def _common(place: Place, segment: int) -> dict[str, Any]:
    return {**place._asdict(), "segment": segment}


@lru_cache(maxsize=64)
def _schema_of(table: str, names: tuple[str, ...]) -> Any:
    whole = _whole_schema(table)
    return pa.schema([whole.field(name) for name in names], metadata=whole.metadata)


@cache
def _whole_schema(table: str) -> Any:
    return tables.schema(table)


def _chosen(table: str, names: Sequence[str] | None) -> Any:
    return _whole_schema(table) if names is None else _schema_of(table, tuple(names))


def _narrow(column: Column, kind: Any) -> Any:
    """Return a column of another type; always a copy, which keeps no more alive than itself."""
    return pa.array(column.astype(kind))


def _nullable(column: Column, kind: Any, missing: Column | None = None) -> Any:
    """Return a column of another type, null where it is -1 (or where it is `missing`)."""
    missing = column == -1 if missing is None else missing
    if not missing.any():
        return _narrow(column, kind)
    if missing.all():
        return pa.nulls(len(column), pa.from_numpy_dtype(kind))
    return pa.array(column.astype(kind), mask=missing)


def _size(table: BatchTable) -> Any:
    # A batch can be some bytes larger than an int32 tells, in no file that a broker opens.
    return _narrow(np.minimum(table.size, _LARGEST_INT32), np.int32)


_OF_BATCHES: Final[Mapping[str, Callable[[BatchTable], Any]]] = {
    "position": lambda table: _narrow(table.position, np.int64),
    "size": _size,
    "base_offset": lambda table: _narrow(table.base_offset, np.int64),
    "last_offset": lambda table: _narrow(table.last_offset, np.int64),
    "record_count": lambda table: _nullable(table.record_count, np.int32, table.magic < MAGIC),
    "magic": lambda table: _narrow(table.magic, np.int8),
    "codec": lambda table: _narrow(table.codec, np.int8),
    "crc": lambda table: _narrow(table.crc, np.uint32),
    "leader_epoch": lambda table: _nullable(table.leader_epoch, np.int32),
    "timestamp_type": lambda table: _nullable(
        table.is_log_append_time, np.int8, table.magic == 0
    ),
    "base_timestamp_ms": lambda table: _nullable(
        table.base_timestamp, np.int64, (table.base_timestamp == -1) | table.has_delete_horizon
    ),
    "max_timestamp_ms": lambda table: _nullable(table.max_timestamp, np.int64),
    "delete_horizon_ms": lambda table: _nullable(
        table.base_timestamp, np.int64, ~table.has_delete_horizon
    ),
    "producer_id": lambda table: _nullable(table.producer_id, np.int64),
    "producer_epoch": lambda table: _nullable(table.producer_epoch, np.int16),
    "base_sequence": lambda table: _nullable(table.base_sequence, np.int32),
    "last_sequence": lambda table: _nullable(table.last_sequence, np.int32),
    "transactional": lambda table: pa.array(table.is_transactional),
    "control": lambda table: pa.array(table.is_control),
    "control_type": lambda table: _nullable(table.control_type, np.int16),
    "coordinator_epoch": lambda table: _nullable(table.coordinator_epoch, np.int32),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Slice:
    """The records `start` to `stop` of some that were decoded."""

    batches: BatchTable
    records: Records
    row: Column
    """Of each record of the slice, the row of its batch."""
    start: int
    stop: int

    def cut(self, column: Column) -> Column:
        """Return what a column of all records holds for these."""
        return column[self.start : self.stop]

    def of_batch(self, column: Column) -> Column:
        """Return what a column of the batches holds for these."""
        return column[self.row]


def _slices(batches: BatchTable, records: Records) -> Iterator[_Slice]:
    row = np.repeat(np.arange(len(batches)), records.counts)
    for start in range(0, len(row), MOST_ROWS):
        stop = min(start + MOST_ROWS, len(row))
        yield _Slice(batches, records, row[start:stop], start, stop)


def _length(name: str) -> Callable[[_Slice], Any]:
    def column(some: _Slice) -> Any:
        return _nullable(some.cut(getattr(some.records.table, f"{name}_length")), np.int32)

    return column


def _spans(some: _Slice, name: str) -> tuple[Column, Column]:
    """Return where the keys or values begin, and their lengths, -1 for null."""
    table = some.records.table
    positions, lengths = getattr(table, f"{name}_position"), getattr(table, f"{name}_length")
    return some.cut(positions), some.cut(lengths)


def _hash(name: str) -> Callable[[_Slice], Any]:
    def column(some: _Slice) -> Any:
        at, size = _spans(some, name)
        data = some.records.data
        found = [
            crc32c(data[first:stop])
            for first, stop in zip(at.tolist(), (at + np.maximum(size, 0)).tolist(), strict=True)
        ]
        return _nullable(np.array(found, np.uint32), np.uint32, size < 0)

    return column


def _bytes(name: str) -> Callable[[_Slice], Any]:
    def column(some: _Slice) -> Any:
        return _gathered(some.records.data, *_spans(some, name))

    return column


def _gathered(data: memoryview, at: Column, size: Column) -> Any:
    """Return the bytes of `data` at rising positions `at` as a binary array, null below size 0.

    They and what lies between them are one binary array over `data` as it is, of which every
    second element is taken.
    """
    first = int(at[0])
    edges = np.empty(2 * len(at), np.int32)
    edges[::2] = at - first
    edges[1::2] = at - first + np.maximum(size, 0)
    window = pa.py_buffer(data[first : first + int(edges[-1])])
    everything = pa.Array.from_buffers(
        pa.binary(), len(edges) - 1, [None, pa.py_buffer(edges), window]
    )
    wanted = np.arange(len(at)) * 2
    return everything.take(pa.array(wanted, mask=size < 0))


_OF_RECORDS: Final[Mapping[str, Callable[[_Slice], Any]]] = {
    "batch_position": lambda some: _narrow(some.of_batch(some.batches.position), np.int64),
    "offset": lambda some: _narrow(some.cut(some.records.offset), np.int64),
    "timestamp_ms": lambda some: _nullable(some.cut(some.records.timestamp), np.int64),
    "producer_id": lambda some: _nullable(some.of_batch(some.batches.producer_id), np.int64),
    "producer_epoch": lambda some: _nullable(
        some.of_batch(some.batches.producer_epoch), np.int16
    ),
    "sequence": lambda some: _nullable(some.cut(some.records.sequence), np.int32),
    "transactional": lambda some: pa.array(some.of_batch(some.batches.is_transactional)),
    "control": lambda some: pa.array(some.of_batch(some.batches.is_control)),
    "header_count": lambda some: _narrow(some.cut(some.records.table.header_count), np.int32),
    "key_length": _length("key"),
    "value_length": _length("value"),
    "key_hash": _hash("key"),
    "value_hash": _hash("value"),
    "key": _bytes("key"),
    "value": _bytes("value"),
}  # fmt: skip


def _decoded(
    chunk: Chunk, limit: int, file: Source | None, strict: bool
) -> Iterator[tuple[BatchTable, Records]]:
    """Yield the batches of a chunk with their records: many at once, or one by one."""
    rows = np.arange(len(chunk.table))
    for some, block in blocks.cut(Path(), chunk, rows, records=True):
        # What a block decompresses to is held against no other limit than its own.
        if block and block.records and limit >= blocks.MOST_UNPACKED:
            yield block.batches, block.records
            continue
        for row in some.tolist():
            records = _one_by_one(chunk, row, limit, file, strict)
            if records:
                yield chunk.table[row : row + 1], records


def _one_by_one(
    chunk: Chunk, row: int, limit: int, file: Source | None, strict: bool
) -> Records | None:
    """Return the records of one batch of any kind; of a damaged one those that are readable."""
    batch, data = chunk.table[row : row + 1], _whole(chunk, row, limit, file)
    if len(data) < int(batch.size[0]):
        if strict and int(batch.size[0]) > limit:
            raise _too_large(batch, limit)
        return None
    try:
        if batch.magic[0] < MAGIC:
            return _legacy(data, limit)
        return _modern(
            batch, compression.decompress(int(batch.codec[0]), data[HEADER_SIZE:], limit)
        )
    except LimitError as error:
        if strict:
            raise _too_large(batch, limit) from error
        return None
    except FormatError:
        return None


def _too_large(batch: BatchTable, limit: int) -> LimitError:
    return LimitError(
        f"the batch at byte {batch.position[0]}, offsets {batch.base_offset[0]} to "
        f"{batch.last_offset[0]}, decompresses to more than {limit} bytes"
    )


def _whole(chunk: Chunk, row: int, limit: int, file: Source | None) -> memoryview:
    """Return the bytes of a batch; the scan does not hold those of a very large one."""
    size, held = int(chunk.table.size[row]), chunk.batch(row)
    if len(held) >= size or size > limit or file is None:
        return held
    whole = memoryview(bytearray(size))
    return whole[: file.read_into(whole, int(chunk.table.position[row]))]


def _modern(batch: BatchTable, payload: memoryview) -> Records | None:
    """Decode a payload of magic 2 as far as it goes. Sums wrap, as they do in Java."""
    found, _ = record.parse(payload, max(int(batch.record_count[0]), 0))
    if not len(found):
        return None
    base = batch.base_timestamp if not batch.is_log_append_time[0] else batch.max_timestamp
    delta = found.timestamp_delta if not batch.is_log_append_time[0] else 0
    first = int(batch.base_sequence[0])
    sequence = (first + found.offset_delta) % SEQUENCES
    return Records(
        payload, np.array([len(found)]), found, batch.base_offset + found.offset_delta,
        np.broadcast_to(base + delta, len(found)),
        np.full(len(found), NO_SEQUENCE) if first == NO_SEQUENCE else sequence,
    )  # fmt: skip


def _legacy(data: memoryview, limit: int) -> Records:
    """Return the messages of an entry of magic 0 or 1 as if they were records of magic 2."""
    messages = list(legacy_batch.parse_messages(data, limit))
    joined = bytearray()
    rows = np.zeros((len(messages), len(RecordTable.__slots__)), np.int64)
    for row, message in zip(rows, messages, strict=True):
        for column, value in ((5, message.key), (7, message.value)):
            row[column : column + 2] = len(joined), -1 if value is None else len(value)
            joined += value or b""
    return Records(
        memoryview(joined), np.array([len(messages)]), RecordTable(*rows.T),
        np.array([message.offset for message in messages], np.int64),
        np.array([message.timestamp for message in messages], np.int64),
        np.full(len(messages), NO_SEQUENCE),
    )  # fmt: skip
