"""Events of remote log segments: the records of ``__remote_log_metadata``, and their partition.

A segment begins with a record of type 0, which has its offsets, size and leader epochs; records of
type 1 change its state; a record of type 2 is about the deletion of a whole partition. Released
brokers write no keys. With KIP-1266 a record has a key, and a null value removes what has that key.

The partition of the topic is chosen by a hash of the topic id and the partition number: that of
``Objects.hash`` over the two halves of the id, the lower first, and the number, as four bytes
through murmur2. Source: ``RemoteLogMetadataTopicPartitioner``, ``RemoteLogSegmentState``,
``RemotePartitionDeleteState`` (Kafka 3.9 and 4.2), ``Utils.murmur2``.
"""

import struct
from enum import IntEnum
from typing import Any, TypeVar

from logtool.errors import FormatError
from logtool.formats.java_text import uuid_bytes
from logtool.formats.messages import internal_topics
from logtool.formats.messages.codec import Value
from logtool.lazy_dataclass import dataclass

TOPIC = "__remote_log_metadata"
State = TypeVar("State", bound=IntEnum)
_SEGMENT, _UPDATE, _PARTITION = 0, 1, 2
_INT = 2**32
_HALVES = struct.Struct(">QQ")
_SEED, _FACTOR, _SHIFT = 0x9747B28C, 0x5BD1E995, 24


class SegmentState(IntEnum):
    """States of a remote segment, by their number in a record."""

    COPY_STARTED = 0
    COPY_FINISHED = 1
    DELETE_STARTED = 2
    DELETE_FINISHED = 3

    @property
    def word(self) -> str:
        """Return the state as logtool prints it, such as ``copy-started``."""
        return self.name.lower().replace("_", "-")


class PartitionDeletion(IntEnum):
    """States of the deletion of all remote segments of a partition."""

    MARKED = 0
    STARTED = 1
    FINISHED = 2

    @property
    def word(self) -> str:
        """Return the state as logtool prints it, such as ``delete-marked``."""
        return f"delete-{self.name.lower()}"


@dataclass(frozen=True, slots=True)
class RemoteEvent:
    """One record of the topic. Times are in ms."""

    topic: str
    topic_id: str
    partition: int
    broker_id: int
    event_ms: int
    """Time that the broker gave the event."""
    segment_id: str | None = None
    """Id of the segment; None for the deletion of the partition."""
    state: SegmentState | None = None
    """State of the segment after the event; None for the deletion of the partition."""
    deletion: PartitionDeletion | None = None
    custom_metadata: bytes | None = None
    """Bytes that the storage plugin returned; None without them."""
    start_offset: int | None = None
    """First offset of the segment; None in an event that only changes the state."""
    end_offset: int = -1
    """Last offset of the segment, inclusive."""
    max_timestamp_ms: int = -1
    size: int = 0
    """Bytes of the log of the segment."""
    leader_epochs: tuple[tuple[int, int], ...] = ()
    """Leader epochs in the segment, each with its first offset there, in order."""


def parse(value: bytes) -> RemoteEvent | None:
    """Return the event in a value; None if its type or version is not known; FormatError."""
    found = internal_topics.decode_framed(TOPIC, value)
    data = found.data
    if data is None or found.type not in (_SEGMENT, _UPDATE, _PARTITION):
        return None
    if found.type == _PARTITION:
        return RemoteEvent(
            **_partition(data["topicIdPartition"]),
            broker_id=data["brokerId"],
            event_ms=data["eventTimestampMs"],
            deletion=_state(PartitionDeletion, data["remotePartitionDeleteState"]),
        )
    segment = data["remoteLogSegmentId"]
    event: dict[str, Any] = {
        **_partition(segment["topicIdPartition"]),
        "segment_id": segment["id"],
        "broker_id": data["brokerId"],
        "event_ms": data["eventTimestampMs"],
        "custom_metadata": data["customMetadata"],
        "state": _state(SegmentState, data["remoteLogSegmentState"]),
    }
    if found.type == _UPDATE:
        return RemoteEvent(**event)
    epochs = ((one["leaderEpoch"], one["offset"]) for one in data["segmentLeaderEpochs"])
    return RemoteEvent(
        **event,
        start_offset=data["startOffset"],
        end_offset=data["endOffset"],
        max_timestamp_ms=data["maxTimestampMs"],
        size=data["segmentSizeInBytes"],
        leader_epochs=tuple(sorted(epochs)),
    )


def metadata_partition(topic_id: str, partition: int, count: int) -> int:
    """Return the partition, of `count`, that has the events of a partition of a topic."""
    high, low = _HALVES.unpack(uuid_bytes(topic_id))
    code = 1
    for number in (_hash_of_long(low), _hash_of_long(high), partition):
        code = (31 * code + number) % _INT
    return (_murmur2(code.to_bytes(4, "big")) & 0x7FFFFFFF) % count


def _partition(of: Value) -> dict[str, Any]:
    return {"topic": of["name"], "topic_id": of["id"], "partition": of["partition"]}


def _state(kind: type[State], number: int) -> State:
    try:
        return kind(number)
    except ValueError:
        raise FormatError(f"no state has the number {number}") from None


def _hash_of_long(value: int) -> int:
    """Return the number of ``Long.hashCode``, as an unsigned number of 32 bits."""
    return (value ^ (value >> 32)) % _INT


def _murmur2(data: bytes) -> int:
    """Return the hash of bytes whose number is a multiple of four."""
    found = (_SEED ^ len(data)) % _INT
    for at in range(0, len(data), 4):
        word = int.from_bytes(data[at : at + 4], "little") * _FACTOR % _INT
        word = (word ^ (word >> _SHIFT)) * _FACTOR % _INT
        found = (found * _FACTOR % _INT) ^ word
    found = (found ^ (found >> 13)) * _FACTOR % _INT
    return found ^ (found >> 15)
