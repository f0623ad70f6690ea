"""Streams and objects of AutoMQ, as the records that it adds to the metadata log give them.

The end offset of a stream is no field of a record: it is the highest offset that any record gives
it. It lags behind the end of the data by what is only in a WAL. A value of AutoMQ's keys is kept
only if it is the id of a stream: another value may be a secret. Source: ``S3StreamsMetadataDelta``,
``S3StreamMetadataDelta``, ``NodeS3WALMetadataDelta``, ``S3ObjectsDelta``, ``KVDelta``
(AutoMQ f1ce98ec8981, 2026-08-21).
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields, replace
from enum import IntEnum
from typing import Any

from logtool.errors import FormatError
from logtool.formats.automq import stream_ranges
from logtool.formats.java_text import parse_int
from logtool.formats.messages.codec import Value
from logtool.lazy_dataclass import dataclass

COMPOSITE = 1
"""Kind of an object in the two lowest bits of its attributes."""
_TOPIC_TAG, _PARTITION_TAG = "0", "1"
_STREAM_ID = struct.Struct(">q")
_NAMESPACE = "_kafka_"


class ObjectState(IntEnum):
    """State of an object (``S3ObjectState``)."""

    UNINITIALIZED = 0
    PREPARED = 1
    COMMITTED = 2
    MARKED_DESTROYED = 3
    """AutoMQ deletes it from the bucket after a delay."""
    DESTROYED = 4


@dataclass(frozen=True, slots=True)
class Stream:
    """An ordered run of records."""

    stream_id: int
    epoch: int
    range_index: int
    start_offset: int
    is_open: bool
    tags: Mapping[str, str]

    @property
    def topic_id(self) -> str | None:
        """Return the id of its topic; None if the tags do not say it."""
        return self.tags.get(_TOPIC_TAG)

    @property
    def partition(self) -> int | None:
        """Return the number of its partition, which its tag has in hexadecimal."""
        try:
            return int(self.tags.get(_PARTITION_TAG, ""), 16)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class StreamRange:
    """The offsets that one node wrote in one epoch of a stream."""

    stream_id: int
    epoch: int
    index: int
    start_offset: int
    end_offset: int
    node_id: int


@dataclass(frozen=True, slots=True)
class StreamObject:
    """An object with offsets of one stream."""

    stream_id: int
    object_id: int
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class StreamSetObject:
    """An object with offsets of many streams of one node."""

    node_id: int
    object_id: int
    order_id: int
    """Order among those of the node; compaction keeps that of the first object."""
    data_time_ms: int


@dataclass(frozen=True, slots=True)
class BucketObject:
    """An object that should be in the bucket."""

    object_id: int
    size: int
    """Bytes; of a composite object the bytes of the linked blocks."""
    state: int
    """See `ObjectState`."""
    attributes: int
    timestamp_ms: int

    @property
    def is_composite(self) -> bool:
        """Return whether it links others."""
        return self.attributes & 3 == COMPOSITE

    @property
    def is_live(self) -> bool:
        """Return whether records are read from it."""
        return self.state == ObjectState.COMMITTED


@dataclass(frozen=True, slots=True)
class NodeWal:
    """The WAL of one node."""

    node_id: int
    epoch: int
    failover: bool


@dataclass(slots=True)
class StreamsImage:
    """Streams and objects of a cluster; all empty for Kafka."""

    streams: dict[int, Stream] = field(default_factory=dict)
    end_offsets: dict[int, int] = field(default_factory=dict)
    """End offset of each stream in the metadata log."""
    ranges: dict[int, dict[int, StreamRange]] = field(default_factory=dict)
    """By stream and index."""
    stream_objects: dict[int, dict[int, StreamObject]] = field(default_factory=dict)
    """By stream and object id."""
    set_objects: dict[int, StreamSetObject] = field(default_factory=dict)
    objects: dict[int, BucketObject] = field(default_factory=dict)
    wals: dict[int, NodeWal] = field(default_factory=dict)
    uncommitted: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """Offsets in the WAL of a node: first and end offset by node and stream."""
    meta_streams: dict[tuple[str, int], int] = field(default_factory=dict)
    """Meta stream by topic id (the name, if the topic has no id) and partition."""
    keys: set[str] = field(default_factory=set)
    """Every key of the cluster, without its value."""
    next_stream_id: int | None = None
    next_object_id: int | None = None

    def __bool__(self) -> bool:
        """Return whether the cluster is AutoMQ's."""
        return bool(self.streams or self.objects or self.wals or self.keys)

    def copy(self) -> "StreamsImage":
        """Return a copy that can be changed without changing this image."""
        return replace(self, **{one.name: _copied(getattr(self, one.name)) for one in fields(self)})

    def has_cluster(self, cluster_id: str) -> bool:
        """Return whether its keys are those of a cluster."""
        return any(key.startswith(f"{_NAMESPACE}{cluster_id}/") for key in self.keys)

    def live_set_objects(self) -> list[StreamSetObject]:
        """Return the stream set objects that have records, by node and order."""
        return sorted(self.set_objects.values(), key=lambda one: (one.node_id, one.order_id))

    def of_partition(self, topic_id: str, partition: int) -> Iterator[Stream]:
        """Yield the streams whose tags name a partition."""
        for stream in self.streams.values():
            if stream.topic_id == topic_id and stream.partition == partition:
                yield stream


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    return set(value) if isinstance(value, set) else value


def _raise_end(image: StreamsImage, stream_id: int, end_offset: int) -> None:
    if end_offset > image.end_offsets.get(stream_id, -1):
        image.end_offsets[stream_id] = end_offset


def _stream(image: StreamsImage, data: Value) -> None:
    stream_id = data["streamId"]
    tags = {one["key"]: one["value"] for one in data.get("tags", ())}
    before = image.streams.get(stream_id)
    image.streams[stream_id] = Stream(
        stream_id,
        data["epoch"],
        data["rangeIndex"],
        data["startOffset"],
        data["streamState"] == 1,
        # A record without tags keeps those of the stream.
        tags or (before.tags if before else {}),
    )
    _raise_end(image, stream_id, data["startOffset"])


def _remove_stream(image: StreamsImage, data: Value) -> None:
    for known in (image.streams, image.end_offsets, image.ranges, image.stream_objects):
        known.pop(data["streamId"], None)


def _range(image: StreamsImage, data: Value) -> None:
    found = StreamRange(
        data["streamId"],
        data["epoch"],
        data["rangeIndex"],
        data["startOffset"],
        data["endOffset"],
        data["nodeId"],
    )
    image.ranges.setdefault(found.stream_id, {})[found.index] = found
    _raise_end(image, found.stream_id, found.end_offset)


def _remove_range(image: StreamsImage, data: Value) -> None:
    image.ranges.get(data["streamId"], {}).pop(data["rangeIndex"], None)


def _stream_object(image: StreamsImage, data: Value) -> None:
    found = StreamObject(data["streamId"], data["objectId"], data["startOffset"], data["endOffset"])
    image.stream_objects.setdefault(found.stream_id, {})[found.object_id] = found
    _raise_end(image, found.stream_id, found.end_offset)


def _remove_stream_object(image: StreamsImage, data: Value) -> None:
    image.stream_objects.get(data["streamId"], {}).pop(data["objectId"], None)


def _set_object(image: StreamsImage, data: Value) -> str | None:
    found = StreamSetObject(data["nodeId"], data["objectId"], data["orderId"], data["dataTimeInMs"])
    image.set_objects[found.object_id] = found
    try:
        ranges = stream_ranges.parse_ranges(data.get("ranges", b""))
    except FormatError as error:
        return f"stream set object {found.object_id}: {error.reason}"
    for stream_id, start, count in ranges.tolist():
        _raise_end(image, stream_id, start + count)
    return None


def _remove_set_object(image: StreamsImage, data: Value) -> None:
    image.set_objects.pop(data["objectId"], None)


def _object(image: StreamsImage, data: Value) -> None:
    # Version 0 has a time for each state.
    times = ("timestamp", "committedTimeInMs", "preparedTimeInMs")
    time_ms = next((data[name] for name in times if name in data), 0)
    image.objects[data["objectId"]] = BucketObject(
        data["objectId"],
        data["objectSize"],
        data["objectState"],
        data.get("attributes", 0),
        time_ms,
    )


def _remove_object(image: StreamsImage, data: Value) -> None:
    image.objects.pop(data["objectId"], None)


def _next_stream(image: StreamsImage, data: Value) -> None:
    image.next_stream_id = data["assignedStreamId"] + 1


def _next_object(image: StreamsImage, data: Value) -> None:
    image.next_object_id = data["assignedS3ObjectId"] + 1


def _wal(image: StreamsImage, data: Value) -> None:
    node_id = data["nodeId"]
    image.wals[node_id] = NodeWal(node_id, data["nodeEpoch"], data["failoverMode"])


def _remove_wal(image: StreamsImage, data: Value) -> None:
    image.wals.pop(data["nodeId"], None)


def _end_offsets(image: StreamsImage, data: Value) -> str | None:
    try:
        entries = stream_ranges.parse_end_offsets(data["endOffsets"])
    except FormatError as error:
        return error.reason
    for stream_id, end_offset in entries.tolist():
        _raise_end(image, stream_id, end_offset)
    return None


def _put_keys(image: StreamsImage, data: Value) -> None:
    for pair in data["keyValues"]:
        key, value = pair["key"], pair["value"]
        image.keys.add(key)
        place = _partition_of(key)
        if place and len(value) == _STREAM_ID.size:
            image.meta_streams[place] = _STREAM_ID.unpack(value)[0]


def _remove_keys(image: StreamsImage, data: Value) -> None:
    for key in data["keys"]:
        image.keys.discard(key)
        place = _partition_of(key)
        if place:
            image.meta_streams.pop(place, None)


def _partition_of(key: str) -> tuple[str, int] | None:
    """Return topic id and partition of a key of the form ``_kafka_<cluster>/<topic>/<number>``."""
    match key.split("/"):
        case [namespace, topic, number] if namespace.startswith(_NAMESPACE):
            partition = parse_int(number)
            return None if partition is None else (topic, partition)
    return None


def _uncommitted(image: StreamsImage, data: Value) -> None:
    for entry in data["entries"]:
        key = data["nodeId"], entry["streamId"]
        if entry["startOffset"] == entry["endOffset"]:
            image.uncommitted.pop(key, None)
        else:
            image.uncommitted[key] = entry["startOffset"], entry["endOffset"]


CHANGES: dict[int, Callable[[StreamsImage, Value], str | None]] = {
    501: _stream,
    502: _remove_stream,
    503: _range,
    504: _remove_range,
    505: _stream_object,
    506: _remove_stream_object,
    507: _set_object,
    508: _remove_set_object,
    509: _object,
    510: _remove_object,
    511: _next_stream,
    512: _next_object,
    513: _wal,
    514: _remove_wal,
    515: _end_offsets,
    516: _put_keys,
    517: _remove_keys,
    518: _uncommitted,
}
"""Functions for the records of AutoMQ, by type."""
