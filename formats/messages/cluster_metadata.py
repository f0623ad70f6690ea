"""The records of ``__cluster_metadata`` that say where partitions are and how topics are set.

Their fields stand in the table ``cluster_metadata`` (see `logtool.formats.messages.schema`); those
that the image of the cluster needs become the classes here, and everything else is an
`OtherRecord`. Source: ``common/metadata``, ``MetadataRecordSerde`` (Kafka 3.9 to 4.3).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from logtool.formats.messages import internal_topics
from logtool.formats.messages.codec import Value
from logtool.formats.names import CLUSTER_METADATA

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
"""Resource types of a ConfigRecord."""
NO_LEADER = -1
_SAME_LEADER = -2


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A topic was created."""

    name: str
    topic_id: str


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    """Where a partition is, and who leads it."""

    topic_id: str
    partition_id: int
    replicas: tuple[int, ...]
    """Node ids, the preferred leader first."""
    isr: tuple[int, ...]
    leader: int
    """-1 none."""
    leader_epoch: int
    partition_epoch: int
    directories: tuple[str, ...]
    """``directory.id`` of the log dir of each replica; empty in version 0."""


@dataclass(frozen=True, slots=True)
class PartitionChangeRecord:
    """What changed of a partition; None for what did not."""

    topic_id: str
    partition_id: int
    isr: tuple[int, ...] | None
    leader: int | None
    replicas: tuple[int, ...] | None
    directories: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    """One setting of a topic, broker or another resource."""

    resource_type: int
    resource_name: str
    """The topic, or the node id; empty for the default of all brokers."""
    name: str
    value: str | None
    """None where the setting was removed."""


@dataclass(frozen=True, slots=True)
class RemoveTopicRecord:
    """A topic was deleted with its partitions."""

    topic_id: str


@dataclass(frozen=True, slots=True)
class BrokerLogDirs:
    """Which log dirs a broker had, and its release, as it registered or said later."""

    broker_id: int
    directories: tuple[str, ...] | None
    """``directory.id`` of each that was online; None where a change is of something else."""
    metadata_version: int | None = None
    """The highest that it supports; None in a change, which does not say."""


class Transaction(IntEnum):
    """Records that bind those between them; what is not ended does not count."""

    BEGIN = 23
    END = 24
    ABORT = 25


@dataclass(frozen=True, slots=True)
class OtherRecord:
    """A record of a type or version that is not decoded."""

    type: int
    version: int


Record = (
    TopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | ConfigRecord
    | RemoveTopicRecord
    | BrokerLogDirs
    | Transaction
    | OtherRecord
)


def parse(value: bytes | memoryview) -> Record:
    """Decode the value of one record; FormatError when a broker could not read it."""
    data = bytes(value)
    kind, version, _ = internal_topics.parse_frame(data)
    if kind not in _RECORDS:
        return OtherRecord(kind, version)
    decoded = internal_topics.decode_framed(CLUSTER_METADATA, data)
    if decoded.data is None:
        return OtherRecord(kind, version)
    return _RECORDS[kind](decoded.data)


def _partition(data: Value) -> Record:
    return PartitionRecord(
        topic_id=data["topicId"],
        partition_id=data["partitionId"],
        replicas=tuple(data["replicas"]),
        isr=tuple(data["isr"]),
        leader=data["leader"],
        leader_epoch=data["leaderEpoch"],
        partition_epoch=data["partitionEpoch"],
        directories=tuple(data.get("directories", ())),
    )


def _config(data: Value) -> Record:
    return ConfigRecord(
        resource_type=data["resourceType"],
        resource_name=data["resourceName"],
        name=data["name"],
        value=data["value"],
    )


def _partition_change(data: Value) -> Record:
    leader = data.get("leader", _SAME_LEADER)
    return PartitionChangeRecord(
        topic_id=data["topicId"],
        partition_id=data["partitionId"],
        isr=_all(data, "isr"),
        leader=None if leader == _SAME_LEADER else leader,
        replicas=_all(data, "replicas"),
        directories=_all(data, "directories"),
    )


def _all(data: Value, name: str) -> tuple[Any, ...] | None:
    """Return the elements of a tagged array; None where it is null or not there."""
    found = data.get(name)
    return None if found is None else tuple(found)


def _register_broker(data: Value) -> Record:
    features = {one["name"]: one["maxSupportedVersion"] for one in data["features"]}
    log_dirs = _all(data, "logDirs") or ()
    return BrokerLogDirs(data["brokerId"], log_dirs, features.get("metadata.version"))


def _transaction(kind: Transaction) -> Callable[[Value], Record]:
    return lambda _: kind


_RECORDS: dict[int, Callable[[Value], Record]] = {
    0: _register_broker,
    2: lambda data: TopicRecord(data["name"], data["topicId"]),
    3: _partition,
    4: _config,
    5: _partition_change,
    9: lambda data: RemoveTopicRecord(data["topicId"]),
    17: lambda data: BrokerLogDirs(data["brokerId"], _all(data, "logDirs")),
    **{int(kind): _transaction(kind) for kind in Transaction},
}
"""By type: what makes the record of the fields."""
TYPES = frozenset(_RECORDS)
"""The types that are decoded, in the versions known."""
