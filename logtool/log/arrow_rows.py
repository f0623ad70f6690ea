"""Batches and records as Arrow columns: what one pass over a segment gives for the tables.

No Python object is made for a row: NumPy columns are narrowed, and keys, values and headers are
gathered out of the bytes of a block by a kernel. The exceptions are messages of magic 0 and 1, and
the CRC-32C of keys and values, one call each. Only the columns that are asked for are made.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from logtool.errors import LimitError
from logtool.formats import _kernels, compression, control_record, wording
from logtool.formats.crc import crc32c
from logtool.formats.names import CLUSTER_METADATA
from logtool.formats.record_batch import (
    CODEC_MASK,
    MAGIC,
    BatchTable,
    Column,
)
from logtool.formats.redpanda.record_batch import RAFT_DATA, type_name
from logtool.lazy_dataclass import dataclass
from logtool.log import arrow_columns, control
from logtool.log.chunk import Chunk, Source
from logtool.log.decoded import redact
from logtool.log.record_table import RecordTable, Unread
from logtool.log.records import records as read_records
from logtool.log.selection import WHOLE, OffsetTimeRange
from logtool.schemas import arrow
from logtool.schemas.arrow import Payload
from logtool.times import FIRST_TIME, LAST_TIME

MOST_ROWS: Final = 16_384
"""Largest number of rows in a record batch. A larger number costs fewer batches; a smaller one
keeps the byte counts inside an int32 and the rows inside a cache."""
_KEPT_ROWS = MOST_ROWS
"""Constant columns up to this length are kept, as nearly all record batches want the same few."""
_WORTH_KEEPING = 64
"""Rows from which on a constant column is kept."""
LARGEST_INT32: Final = 2**31 - 1
"""Most bytes to which a batch of a table of records may decompress."""
_CODECS: Final = tuple(map(compression.name, range(CODEC_MASK + 1)))
_TIMESTAMP_TYPES: Final = ("CreateTime", "LogAppendTime")
_VALUES: Final = frozenset({"value", "value_hash"})
"""Columns that are made of the bytes of values."""


class PartitionIdentity(NamedTuple):
    """The first columns of the rows of one partition directory, the same in each row."""

    log_dir: str
    node_id: int | None
    topic: str | None
    partition: int | None
    directory: str | None


def batch_rows(
    place: PartitionIdentity, segment: int, table: BatchTable, names: Sequence[str] | None = None
) -> Any:
    """Return a `pyarrow.RecordBatch` of the table ``batches``, or of its columns `names` alone.

    `segment` is the base offset of the segment that the batches stand in.
    """
    return batch_columns(_common(place, segment), table, _chosen("batches", names))


def batch_columns(common: Mapping[str, Any], table: BatchTable, schema: Any) -> Any:
    """Return a `pyarrow.RecordBatch` of `schema`; `common` has what is the same in each row."""
    columns = [
        constant(common[field.name], field.type, len(table))
        if field.name in common
        else _OF_BATCHES[field.name](table)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def record_rows(
    place: PartitionIdentity,
    segment: int,
    chunk: Chunk,
    payload: Payload,
    names: Sequence[str] | None = None,
    limit: int = compression.DEFAULT_LIMIT,
    file: Source | None = None,
    span: OffsetTimeRange = WHOLE,
    *,
    strict: bool = False,
    recipe: "Recipe | None" = None,
    show_secrets: bool = False,
    on_unread: Callable[[Unread], None] | None = None,
) -> Iterator[Any]:
    """Yield `pyarrow.RecordBatch`es of the table ``records``, or of its columns `names` alone.

    A `recipe` is for another table of records. Without `show_secrets` those of a metadata log are
    starred, in their hashes, too: a dictionary would find what a hash is of.

    Every record of the chunk's batches that `span` wants is one row, in order; of Redpanda those of
    data, as the other types hold nothing that was produced. Of a batch with
    damage inside there are the records before it; a batch that cannot be decompressed, or only to
    more than `limit` bytes, gives no rows, nor does one too large for the chunk to hold unless
    `file` has its bytes. With `strict`, LimitError names one that is above the limit. `on_unread`
    is called for each batch without all of its records.
    """
    recipe = recipe or RECORDS
    schema = _chosen(recipe.table, names or arrow.schema(recipe.table, payload).names)
    common = _common(place, segment)
    foreign = chunk.table.batch_type > RAFT_DATA
    if foreign.any():
        chunk = chunk.with_table(chunk.table[~foreign])
    has_values = not _VALUES.isdisjoint(schema.names)
    hides = has_values and not show_secrets and place.topic == CLUSTER_METADATA
    limit = min(limit, LARGEST_INT32)
    for part in read_records(chunk, limit=limit, source=file):
        if isinstance(part, Unread):
            if strict and (part.beyond_limit or (part.size > limit and not part.in_memory)):
                raise _too_large(part, limit)
            if on_unread:
                on_unread(part)
            continue
        records = redact(part) if hides else part
        for rows, some in _record_columns(common, records, schema, recipe):
            mask = span.of_records(some.cut(records.offset), some.cut(records.timestamp))
            yield rows if mask is None else rows.filter(arrow_columns.bits(mask))


def _too_large(batch: Unread, limit: int) -> LimitError:
    return LimitError(
        f"the batch at byte {batch.position}, "
        f"{wording.offsets(batch.first_offset, batch.last_offset)}, "
        f"decompresses to more than {limit:,} bytes"
    )


def _record_columns(
    common: Mapping[str, Any], records: RecordTable, schema: Any, recipe: "Recipe"
) -> Iterator[tuple[Any, "Slice"]]:
    for some in _slices(records):
        columns = [
            constant(common[field.name], field.type, some.stop - some.start)
            if field.name in common
            else recipe.columns[field.name](some)
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema), some


def constant(value: Any, kind: Any, count: int) -> Any:
    """Return an Arrow array of `count` times the same value, None included."""
    if count < _WORTH_KEEPING:  # as of the name of a partition with one small segment
        return arrow_columns.repeated(value, kind, count)
    if count > _KEPT_ROWS:
        return _kept_longer(value, kind, 1 << (count - 1).bit_length()).slice(0, count)
    return _kept(value, kind).slice(0, count)


@lru_cache(maxsize=64)
def _kept(value: Any, kind: Any) -> Any:
    return arrow_columns.repeated(value, kind, _KEPT_ROWS)


@lru_cache(maxsize=16)
def _kept_longer(value: Any, kind: Any, count: int) -> Any:
    return arrow_columns.repeated(value, kind, count)


def _common(place: PartitionIdentity, segment: int) -> dict[str, Any]:
    return {**place._asdict(), "segment": segment}


@lru_cache(maxsize=64)
def _schema_of(table: str, names: tuple[str, ...]) -> Any:
    whole = _whole_schema(table)
    return pa.schema([whole.field(name) for name in names], metadata=whole.metadata)


@cache
def _whole_schema(table: str) -> Any:
    return arrow.schema(table)


def _chosen(table: str, names: Sequence[str] | None) -> Any:
    return _whole_schema(table) if names is None else _schema_of(table, tuple(names))


def _nullable(column: Column, kind: Any, missing: Column | None = None) -> Any:
    """Return a column of another type, null where it is -1 (or where it is `missing`)."""
    missing = column == -1 if missing is None else missing
    if len(column) and missing.all():
        return pa.nulls(len(column), pa.from_numpy_dtype(kind))
    return arrow_columns.numbers(column, kind, missing)


def as_times(column: Column, missing: Column | None = None) -> Any:
    """Return milliseconds as timestamps, null for -1 and for times that no calendar has."""
    missing = column == -1 if missing is None else missing
    odd = (column < FIRST_TIME) | (column > LAST_TIME)
    return _nullable(column, np.int64, missing | odd if odd.any() else missing).view(arrow.TIME)


def _words(codes: Column, words: Sequence[str], missing: Column | None = None) -> Any:
    """Return a column of `words` by their numbers, null where it is `missing`."""
    if missing is None or not missing.any():
        if len(codes) and (codes == codes[0]).all():
            return constant(words[int(codes[0])], pa.string(), len(codes))
        missing = None
    return arrow_columns.objects(words, pa.string()).take(
        arrow_columns.numbers(codes, np.int64, missing)
    )


def _batch_types(table: BatchTable) -> Any:
    """Return the names of the types that batches of Redpanda have, null of Kafka's."""
    numbers, rows = np.unique(table.batch_type, return_inverse=True)
    words = [None if number < 0 else type_name(number) for number in numbers.tolist()]
    return arrow_columns.objects(words, pa.string()).take(arrow_columns.numbers(rows, np.int64))


def _timestamp_type(table: BatchTable) -> Any:
    return _words(table.is_log_append_time.astype(np.int64), _TIMESTAMP_TYPES, table.magic == 0)


def _control_types(table: BatchTable) -> Any:
    types = table.control_type
    if (types == -1).all():
        return pa.nulls(len(types), pa.string())
    return arrow_columns.objects(
        [None if one == -1 else control_record.name(one) for one in types.tolist()], pa.string()
    )


def _no_base(table: BatchTable) -> Column:
    missing: Column = (table.base_timestamp == -1) | table.has_delete_horizon
    return missing


_OF_BATCHES: Final[Mapping[str, Callable[[BatchTable], Any]]] = {
    "position": lambda table: arrow_columns.numbers(table.position, np.int64),
    "size": lambda table: arrow_columns.numbers(table.size, np.int64),
    "magic": lambda table: arrow_columns.numbers(table.magic, np.int8),
    "base_offset": lambda table: arrow_columns.numbers(table.base_offset, np.int64),
    "last_offset": lambda table: arrow_columns.numbers(table.last_offset, np.int64),
    "record_count": lambda table: _nullable(table.record_count, np.int32, table.magic < MAGIC),
    "codec": lambda table: _words(table.codec, _CODECS),
    "timestamp_type": _timestamp_type,
    "base_timestamp_ms": lambda table: _nullable(table.base_timestamp, np.int64, _no_base(table)),
    "base_timestamp": lambda table: as_times(table.base_timestamp, _no_base(table)),
    "max_timestamp_ms": lambda table: _nullable(table.max_timestamp, np.int64),
    "max_timestamp": lambda table: as_times(table.max_timestamp),
    "delete_horizon_ms": lambda table: _nullable(
        table.base_timestamp, np.int64, ~table.has_delete_horizon
    ),
    "delete_horizon": lambda table: as_times(table.base_timestamp, ~table.has_delete_horizon),
    "leader_epoch": lambda table: _nullable(table.leader_epoch, np.int32),
    "producer_id": lambda table: _nullable(table.producer_id, np.int64),
    "producer_epoch": lambda table: _nullable(table.producer_epoch, np.int16),
    "base_sequence": lambda table: _nullable(table.base_sequence, np.int32),
    "last_sequence": lambda table: _nullable(table.last_sequence, np.int32),
    "transactional": lambda table: arrow_columns.bits(table.is_transactional),
    "control": lambda table: arrow_columns.bits(table.is_control),
    "control_type": _control_types,
    "coordinator_epoch": lambda table: _nullable(table.coordinator_epoch, np.int32),
    "attributes": lambda table: arrow_columns.numbers(table.attributes, np.int16),
    "crc": lambda table: arrow_columns.numbers(table.crc, np.uint32),
    "term": lambda table: _nullable(table.leader_epoch, np.int64, table.batch_type < 0),
    "batch_type": _batch_types,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Slice:
    """The records `start` to `stop` of some that were decoded."""

    records: RecordTable
    row: Column
    """Row of the batch of each record of the slice."""
    start: int
    stop: int

    @property
    def batches(self) -> BatchTable:
        """Return the batches of all records that were decoded."""
        return self.records.batches

    def cut(self, column: Column) -> Column:
        """Return the values of a column of all records for the records of the slice."""
        return column[self.start : self.stop]

    def of_batch(self, column: Column) -> Column:
        """Return the value of a column of the batches for each record of the slice."""
        return column[self.row]


def whole(records: RecordTable) -> Slice:
    """Return all records of a table as one slice."""
    row = records.of_batches(np.arange(len(records.batches)))
    return Slice(records=records, row=row, start=0, stop=len(row))


def _slices(records: RecordTable) -> Iterator[Slice]:
    every = whole(records)
    for start in range(0, every.stop, MOST_ROWS):
        stop = min(start + MOST_ROWS, every.stop)
        yield replace(every, row=every.row[start:stop], start=start, stop=stop)


def _of_batches(some: Slice, column: Column, kind: Any) -> Any:
    """Return for each record what a column has for its batch, null where it is -1."""
    first = int(column[0]) if len(column) else -1
    if (column == first).all():
        value = None if first == -1 else first
        return constant(value, pa.from_numpy_dtype(kind), some.stop - some.start)
    return _nullable(some.of_batch(column), kind)


def _flag(some: Slice, column: Column) -> Any:
    """Return the same of a column of bools."""
    if not column.any() or column.all():
        return constant(bool(column.any()), pa.bool_(), some.stop - some.start)
    return arrow_columns.bits(some.of_batch(column))


def _size(name: str) -> Callable[[Slice], Any]:
    def column(some: Slice) -> Any:
        return _nullable(some.cut(getattr(some.records.spans, f"{name}_length")), np.int32)

    return column


def _spans(some: Slice, name: str) -> tuple[Column, Column]:
    """Return where the keys or values begin, and their lengths, -1 for null."""
    spans = some.records.spans
    positions, lengths = getattr(spans, f"{name}_position"), getattr(spans, f"{name}_length")
    return some.cut(positions), some.cut(lengths)


def _hash(name: str) -> Callable[[Slice], Any]:
    def column(some: Slice) -> Any:
        at, size = _spans(some, name)
        data = some.records.data
        found = [
            crc32c(data[first:stop])
            for first, stop in zip(at.tolist(), (at + np.maximum(size, 0)).tolist(), strict=True)
        ]
        return _nullable(np.array(found, np.uint32), np.uint32, size < 0)

    return column


def _bytes(name: str) -> Callable[[Slice], Any]:
    def column(some: Slice) -> Any:
        return arrow_columns.pieces(some.records.data, *_spans(some, name))

    return column


def _record_headers(some: Slice) -> Any:
    counts = some.cut(some.records.spans.header_count)
    kind = _whole_schema("records").field("headers").type
    if not counts.any():
        return constant((), kind, len(counts))
    data, at = some.records.data, some.cut(some.records.spans.header_position)
    found = np.empty((int(counts.sum()), _kernels.HEADER_COLUMNS), np.int64)
    _kernels.decode_headers(data, at, counts, found)
    key, key_size, value, value_size = found.T
    fields = (
        arrow_columns.pieces(data, key, key_size),
        arrow_columns.pieces(data, value, value_size),
    )
    return arrow_columns.lists(kind, counts, fields)


def _record_control_types(some: Slice) -> Any:
    """Return the words for control records, which come few at a time."""
    is_control = some.of_batch(some.batches.is_control)
    if not is_control.any():
        return pa.nulls(len(is_control), pa.string())
    keys, values = (_bytes(name)(some).to_pylist() for name in ("key", "value"))
    return arrow_columns.objects(
        [
            control.name_of(key, value) if is_one else None
            for is_one, key, value in zip(is_control.tolist(), keys, values, strict=True)
        ],
        pa.string(),
    )


def _record_crc(some: Slice) -> Any:
    crc = some.records.crc
    if crc is None:
        return pa.nulls(some.stop - some.start, pa.uint32())
    return arrow_columns.numbers(some.cut(crc), np.uint32)


RECORD_COLUMNS: Final[Mapping[str, Callable[[Slice], Any]]] = {
    "batch_position": lambda some: arrow_columns.numbers(
        some.of_batch(some.batches.position), np.int64
    ),
    "offset": lambda some: arrow_columns.numbers(some.cut(some.records.offset), np.int64),
    "timestamp_type": lambda some: _words(
        some.of_batch(some.batches.is_log_append_time).astype(np.int64), _TIMESTAMP_TYPES,
        some.of_batch(some.batches.magic == 0),
    ),
    "timestamp_ms": lambda some: _nullable(some.cut(some.records.timestamp), np.int64),
    "timestamp": lambda some: as_times(some.cut(some.records.timestamp)),
    "leader_epoch": lambda some: _of_batches(some, some.batches.leader_epoch, np.int32),
    "producer_id": lambda some: _of_batches(some, some.batches.producer_id, np.int64),
    "producer_epoch": lambda some: _of_batches(some, some.batches.producer_epoch, np.int16),
    "sequence": lambda some: _nullable(some.cut(some.records.sequence), np.int32),
    "transactional": lambda some: _flag(some, some.batches.is_transactional),
    "control": lambda some: _flag(some, some.batches.is_control),
    "control_type": _record_control_types,
    "crc": _record_crc,
    "header_count": lambda some: arrow_columns.numbers(
        some.cut(some.records.spans.header_count), np.int32
    ),
    "key_size": _size("key"),
    "value_size": _size("value"),
    "key_hash": _hash("key"),
    "value_hash": _hash("value"),
    "key": _bytes("key"),
    "value": _bytes("value"),
    "headers": _record_headers,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recipe:
    """A table of records, and what makes those of its columns that are not the same in each row."""

    table: str
    columns: Mapping[str, Callable[[Slice], Any]]


RECORDS: Final = Recipe("records", RECORD_COLUMNS)
