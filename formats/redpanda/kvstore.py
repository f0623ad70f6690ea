"""Redpanda's key-value store: the state that each core of a broker keeps in addition to the logs.

It is a log of batches of type 4 (``redpanda/kvstore/<shard>_0``) and a ``snapshot`` of the records
before the log. A record of the log has as key an int8, the keyspace, and the key, and as value an
int8 and, if that is 1, an int32 size and the value; without a value the key is deleted. In a
snapshot the metadata is the last offset that it holds (int64), and the payload is this,
little-endian:

====================  =======  ====================================================================
size                  int32    bytes of the batch that follows
header                         as in a segment, see `record_batch`; its CRCs are those of a batch
                               with the same records in Kafka's encoding
term                  int64
is_compressed         int8     0
--------------------  -------  --------------------------------------------------------------------
size                  uint32   for each record
attributes            int8
timestamp_delta       int64
offset_delta          int32
key, value            each int32 length, int32 size, bytes; a value is not wrapped as in the log
headers               int32    how many; always 0
====================  =======  ====================================================================

Keys about a log, with the keyspace before the key:

====================================================  =============================================
1 consensus, int8 kind, int64 group                   kind 0 the vote, 1 configurations, 2 and 3
                                                      offsets
2 storage, int8 0, namespace, topic, partition        int64: where the log begins
2 storage, int8 1, namespace, topic, partition        the segment that a clean stop left last
4 offset_translator, int8 kind, int64 group           kind 0 the map of `offset_translation`, 1
                                                      int64: the highest offset that it knows
====================================================  =============================================

Names are an int32 size and bytes, a partition an int32. Source: ``storage/kvstore.cc``,
``model/adl_serde.cc``, ``storage/disk_log_impl.cc`` (Redpanda 1c6cff34ea, 2024-12-20).
"""

import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum

from logtool.errors import FormatError
from logtool.formats import record
from logtool.formats.redpanda import record_batch
from logtool.formats.redpanda._reader import (
    INT8,
    INT32,
    INT64,
    Reader,
    TooShortError,
)
from logtool.formats.redpanda.record_batch import (
    HEADER_SIZE,
    BatchType,
    RedpandaBatch,
    RedpandaHeader,
)
from logtool.lazy_dataclass import dataclass

_SNAPSHOT_TAIL = struct.Struct("<qb")
_RECORD = struct.Struct("<Ibqi")
_SIZES = struct.Struct("<ii")
_ENVELOPE = struct.Struct("<BBI")


State = dict[tuple[int, bytes], bytes]
"""Stored values, by (keyspace, key)."""


class Keyspace(IntEnum):
    """Owner of a key."""

    TESTING = 0
    CONSENSUS = 1
    STORAGE = 2
    CONTROLLER = 3
    OFFSET_TRANSLATOR = 4
    USAGE = 5
    STMS = 6
    SHARD_PLACEMENT = 7
    DEBUG_BUNDLE = 8


@dataclass(frozen=True, slots=True)
class KeyValue:
    """One key and its value."""

    keyspace: int
    key: bytes
    """Without the keyspace."""
    value: bytes | None
    """None deletes the key."""


@dataclass(frozen=True, slots=True)
class SnapshotBatch:
    """The payload of a snapshot that can be read."""

    header: RedpandaHeader
    term: int
    pairs: tuple[KeyValue, ...]
    crc_holds: bool
    """True if both CRCs of the header hold for these records."""


@dataclass(frozen=True, slots=True)
class LogKey:
    """A key of the keyspace ``storage``."""

    kind: int
    """0 where the log begins, 1 the last segment of a clean stop."""
    namespace: str
    topic: str
    partition: int


def pairs(batch: RedpandaBatch) -> Iterator[KeyValue]:
    """Yield the pairs of a batch of the log, in its order; FormatError for other batches."""
    if batch.header.type != BatchType.KVSTORE:
        raise FormatError(f"expected a batch of type {BatchType.KVSTORE}")
    body = memoryview(batch.body)
    for table, damage in record.parse_slices(body, batch.header.record_count):
        for row in range(len(table.position)):
            key = _slice(body, table.key_position[row], table.key_length[row])
            value = _slice(body, table.value_position[row], table.value_length[row])
            yield _pair(key, _unwrapped(value))
        if damage:
            raise damage


def build(stored: Iterable[KeyValue], *, base_offset: int) -> RedpandaBatch:
    """Return a batch of the log with these pairs."""
    records = [
        record.Record(number, 0, INT8.pack(pair.keyspace) + pair.key, _wrapped(pair.value))
        for number, pair in enumerate(stored)
    ]
    return record_batch.build(
        record.encode(records),
        base_offset=base_offset,
        type=BatchType.KVSTORE,
        last_offset_delta=len(records) - 1,
        record_count=len(records),
    )


def parse_snapshot(payload: bytes) -> SnapshotBatch | None:
    """Read the payload of a snapshot; None where it is not whole."""
    reader = Reader(payload)
    try:
        reader = Reader(reader.take(reader.number(INT32)))
        header = record_batch.parse(reader.take(HEADER_SIZE))
        term, _ = reader.numbers(_SNAPSHOT_TAIL)
        records = [_snapshot_record(reader) for _ in _counted(header.record_count, reader.left)]
        stored = tuple(_pair(r.key or b"", r.value or b"") for r in records)
    except (TooShortError, FormatError):
        return None
    body = record.encode(records)
    holds = (
        header.header_crc == record_batch.header_crc(header)
        and header.crc == record_batch.body_crc(header, body)
        and not reader.left
    )
    return SnapshotBatch(header, term, stored, holds)


def build_snapshot(stored: Iterable[KeyValue]) -> bytes:
    """Return the payload of a snapshot with these pairs."""
    entries = [(INT8.pack(p.keyspace) + p.key, p.value or b"") for p in stored]
    records = [record.Record(n, 0, key, value) for n, (key, value) in enumerate(entries)]
    batch = record_batch.build(
        record.encode(records),
        base_offset=0,
        type=BatchType.KVSTORE,
        last_offset_delta=len(records) - 1,
        record_count=len(records),
    )
    parts = [record_batch.encode(batch.header), _SNAPSHOT_TAIL.pack(0, 0)]
    for number, (key, value) in enumerate(entries):
        parts.append(_RECORD.pack(len(record.encode(records[number : number + 1])), 0, 0, number))
        for content in (key, value):
            parts += [_SIZES.pack(len(content), len(content)), content]
        parts.append(INT32.pack(0))
    content = b"".join(parts)
    return INT32.pack(len(content)) + content


def replay(state: State, stored: Iterable[KeyValue]) -> None:
    """Apply pairs to `state`, in the order of the log."""
    for pair in stored:
        if pair.value is None:
            state.pop((pair.keyspace, pair.key), None)
        else:
            state[pair.keyspace, pair.key] = pair.value


def parse_log_key(key: bytes) -> LogKey | None:
    """Read a key of the keyspace ``storage``; None if it is not such a key."""
    reader = Reader(key)
    try:
        kind = reader.number(INT8)
        namespace, topic = (reader.take(reader.number(INT32)) for _ in range(2))
        partition = reader.number(INT32)
    except TooShortError:
        return None
    if reader.left:
        return None
    return LogKey(kind, _text(namespace), _text(topic), partition)


def encode_log_key(key: LogKey) -> bytes:
    """Return the bytes of a key of the keyspace ``storage``."""
    # Names of directories are any bytes.
    names = [name.encode("utf-8", "surrogateescape") for name in (key.namespace, key.topic)]
    sized = b"".join(INT32.pack(len(name)) + name for name in names)
    return INT8.pack(key.kind) + sized + INT32.pack(key.partition)


def start_offset(state: State, namespace: str, topic: str, partition: int) -> int | None:
    """Return the Raft offset where a log begins for its readers; None where nothing is stored."""
    key = encode_log_key(LogKey(0, namespace, topic, partition))
    value = state.get((Keyspace.STORAGE, key))
    return INT64.unpack(value)[0] if value is not None and len(value) == INT64.size else None


def clean_segment(state: State, namespace: str, topic: str, partition: int) -> str | None:
    """Return the file name of the last segment at a clean stop; None if no name is stored.

    The value is an envelope (version, compat version, uint32 size) around an int32 size and a name.
    """
    key = encode_log_key(LogKey(1, namespace, topic, partition))
    value = state.get((Keyspace.STORAGE, key))
    if value is None:
        return None
    reader = Reader(value)
    try:
        reader.numbers(_ENVELOPE)
        return _text(reader.take(reader.number(INT32)))
    except TooShortError:
        return None


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _slice(body: memoryview, position: int, length: int) -> bytes:
    return bytes(body[position : position + length]) if length > 0 else b""


def _pair(key: bytes, value: bytes | None) -> KeyValue:
    if not key:
        raise FormatError("expected a keyspace before a key, found no byte")
    return KeyValue(INT8.unpack_from(key)[0], key[1:], value)


def _unwrapped(value: bytes) -> bytes | None:
    reader = Reader(value)
    try:
        return reader.take(reader.number(INT32)) if reader.number(INT8) else None
    except TooShortError as error:
        raise FormatError("a value is shorter than its size field") from error


def _wrapped(value: bytes | None) -> bytes:
    return INT8.pack(0) if value is None else INT8.pack(1) + INT32.pack(len(value)) + value


def _counted(count: int, left: int) -> range:
    """Return a range over records; of a count that cannot be, only what there are bytes for."""
    return range(min(count, left // _RECORD.size + 1))


def _snapshot_record(reader: Reader) -> record.Record:
    _, _, timestamp_delta, offset_delta = reader.numbers(_RECORD)
    contents = []
    for _ in range(2):
        _, size = reader.numbers(_SIZES)
        contents.append(reader.take(size))
    if reader.number(INT32):
        raise TooShortError  # a broker writes no header here
    return record.Record(offset_delta, timestamp_delta, contents[0], contents[1])
