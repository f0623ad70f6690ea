"""Entries of a meta stream of AutoMQ: the state of one partition as keys and values.

An entry is the payload of one record of the stream, big-endian: uint8 0, int32 length of the key,
key, value. The last value of a key counts. Values, by key:

===========================  =======================================================================
``LOG``                      JSON: ``streamMap`` (stream id by name, -1 before a stream exists) and
                             ``segmentMetas`` (see `MetaStreamSegment`)
``PARTITION``                JSON: ``s`` log start offset, ``c`` cleaner offset, ``r`` recovery
                             point, ``cs`` true after an orderly stop
``PRODUCER_SNAPSHOTS``       uint8 0x18, and for each snapshot int64 offset, int32 length, and the
                             bytes of Kafka's producer snapshot
``LEADER_EPOCH_CHECKPOINT``  int32 version 0, int32 count, and for each row int32 epoch and int64
                             start offset
===========================  =======================================================================

Source: ``MetaKeyValue``, ``MetaStream``, ``ElasticLogMeta``, ``ElasticStreamSegmentMeta``,
``ElasticPartitionMeta``, ``ElasticPartitionProducerSnapshotsMeta``,
``ElasticLeaderEpochCheckpointMeta`` (AutoMQ f1ce98ec8981, 2026-08-21).
"""

import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from logtool.errors import FormatError
from logtool.lazy_dataclass import dataclass

LOG, PARTITION = "LOG", "PARTITION"
PRODUCER_SNAPSHOTS = "PRODUCER_SNAPSHOTS"
LEADER_EPOCHS = "LEADER_EPOCH_CHECKPOINT"
KEYS = (LOG, PARTITION, PRODUCER_SNAPSHOTS, LEADER_EPOCHS)
SNAPSHOTS_MAGIC = 0x18
NOT_SEALED = -1
_HEAD = struct.Struct(">Bi")
_SNAPSHOT, _EPOCH, _TWO = struct.Struct(">qi"), struct.Struct(">iq"), struct.Struct(">ii")


@dataclass(frozen=True, slots=True)
class Entry:
    """One key with its value."""

    key: str
    value: bytes


@dataclass(frozen=True, slots=True)
class StreamSlice:
    """Part of a stream that belongs to a segment."""

    start: int
    """-1 before anything was written."""
    end: int
    """-1 while the segment is active: up to the end of the stream."""


@dataclass(frozen=True, slots=True)
class MetaStreamSegment:
    """One segment: slices of three streams in place of files."""

    base_offset: int
    suffix: str
    """Empty, or ``.cleaned`` for the streams that the cleaner writes."""
    log: StreamSlice
    """In offsets of Kafka's records."""
    time: StreamSlice
    """In bytes; an entry has 12, as in Kafka's file."""
    transactions: StreamSlice
    """In bytes; an entry has 34, as in Kafka's file."""
    size: int
    """An estimate in bytes."""
    last_modified_ms: int


@dataclass(frozen=True, slots=True)
class LogMeta:
    """Streams and segments of a partition."""

    streams: Mapping[str, int]
    """Stream ids by name, such as ``log`` and ``tim.cleaned``; -1 before a stream exists."""
    segments: tuple[MetaStreamSegment, ...]


@dataclass(frozen=True, slots=True)
class PartitionMeta:
    """Offsets of a partition."""

    start_offset: int
    cleaner_offset: int
    recovery_point: int
    clean_shutdown: bool


def parse(payload: bytes | memoryview) -> Entry:
    """Read an entry; FormatError if AutoMQ could not read it."""
    data = bytes(payload)
    if len(data) < _HEAD.size:
        raise FormatError(f"an entry of a meta stream has {len(data)} bytes")
    magic, size = _HEAD.unpack_from(data)
    if magic or not 0 <= size <= len(data) - _HEAD.size:
        raise FormatError(f"an entry of a meta stream begins with {data[: _HEAD.size].hex()}")
    behind = _HEAD.size + size
    try:
        return Entry(data[_HEAD.size : behind].decode(), data[behind:])
    except UnicodeDecodeError:
        raise FormatError("the key of an entry is not UTF-8", _HEAD.size) from None


def encode(entry: Entry) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    key = entry.key.encode()
    return _HEAD.pack(0, len(key)) + key + entry.value


def log_meta(value: bytes) -> LogMeta:
    """Read the value of the key LOG; FormatError as above."""
    data = _json(value)
    try:
        return LogMeta(
            {str(name): int(stream) for name, stream in data["streamMap"].items()},
            tuple(map(_segment, data["segmentMetas"])),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"the segments of a partition cannot be read: {error!r}") from None


def partition_meta(value: bytes) -> PartitionMeta:
    """Read the value of the key PARTITION; FormatError as above."""
    data = _json(value)
    try:
        # A field that is null was never set.
        start, cleaner, recovery = (int(data.get(name) or 0) for name in ("s", "c", "r"))
        return PartitionMeta(start, cleaner, recovery, bool(data.get("cs", False)))
    except (TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"the offsets of a partition cannot be read: {error!r}") from None


def producer_snapshots(value: bytes) -> dict[int, bytes]:
    """Return the bytes of Kafka's producer snapshots by offset; FormatError as above."""
    if value[:1] != bytes([SNAPSHOTS_MAGIC]):
        raise FormatError(f"the producer snapshots begin with {value[:1].hex() or 'nothing'}")
    at, found = 1, {}
    while at < len(value):
        if len(value) - at < _SNAPSHOT.size:
            raise FormatError("the producer snapshots end inside a header", at)
        offset, size = _SNAPSHOT.unpack_from(value, at)
        start = at + _SNAPSHOT.size
        if not 0 <= size <= len(value) - start:
            raise FormatError(f"a producer snapshot has {size} bytes", at)
        found[offset] = value[start : start + size]
        at = start + size
    return found


def encode_snapshots(snapshots: Mapping[int, bytes]) -> bytes:
    """Return the value for these snapshots."""
    parts = [_SNAPSHOT.pack(offset, len(data)) + data for offset, data in snapshots.items()]
    return bytes([SNAPSHOTS_MAGIC]) + b"".join(parts)


def leader_epochs(value: bytes) -> list[tuple[int, int]]:
    """Return epochs with their start offsets; FormatError as above."""
    if len(value) < _TWO.size:
        raise FormatError("the leader epochs have no header")
    version, count = _TWO.unpack_from(value)
    if version or count * _EPOCH.size != len(value) - _TWO.size:
        raise FormatError(f"{len(value)} bytes of leader epochs, version {version}, {count} rows")
    return [(epoch, start) for epoch, start in _EPOCH.iter_unpack(value[_TWO.size :])]


def encode_leader_epochs(rows: Iterable[tuple[int, int]]) -> bytes:
    """Return the value for these epochs."""
    packed = [_EPOCH.pack(*row) for row in rows]
    return _TWO.pack(0, len(packed)) + b"".join(packed)


def _json(value: bytes) -> dict[str, Any]:
    try:
        data = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"a value of a meta stream is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise FormatError("a value of a meta stream is not a JSON object")
    return data


def _segment(data: dict[str, Any]) -> MetaStreamSegment:
    return MetaStreamSegment(
        base_offset=int(data["bo"]),
        suffix=str(data.get("s", "")),
        log=_slice(data.get("ls")),
        time=_slice(data.get("ts")),
        transactions=_slice(data.get("txs")),
        size=int(data.get("lsz", 0)),
        last_modified_ms=int(data.get("lmt", 0)),
    )


def _slice(data: dict[str, Any] | None) -> StreamSlice:
    found = data or {}
    return StreamSlice(int(found.get("s", NOT_SEALED)), int(found.get("e", NOT_SEALED)))
