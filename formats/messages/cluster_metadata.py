"""The records of ``__cluster_metadata``.

Their fields stand in the table ``cluster_metadata`` (see `logtool.formats.messages.schema`). Those
about topics, partitions and settings, of which there are many, become classes here; every other one
is an `OtherRecord` with its fields. Source: ``common/metadata``, ``MetadataRecordSerde`` (Kafka 3.9
to 4.4).
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from logtool.formats.messages import internal_topics
from logtool.formats.messages.codec import Value
from logtool.formats.names import CLUSTER_METADATA
from logtool.lazy_dataclass import dataclass

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
"""Resource types of a ConfigRecord."""
NO_LEADER = -1
_SAME_LEADER = -2
_SAME_STATE = -1


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A topic was created."""

    name: str
    topic_id: str


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    """Replicas, leader and ISR of a partition."""

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
    elr: tuple[int, ...] = ()
    """Eligible leader replicas: not in sync, but known to have every committed record (KIP-966)."""
    last_known_elr: tuple[int, ...] = ()
    """Eligible leader replicas that were not shut down cleanly; and the last leader, if no eligible
    replica is left."""
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    recovery_state: int = 0
    """1 while a leader that was elected unclean has not recovered (``LeaderRecoveryState``)."""


@dataclass(frozen=True, slots=True)
class PartitionChangeRecord:
    """Changes of a partition; None for a field that did not change."""

    topic_id: str
    partition_id: int
    isr: tuple[int, ...] | None
    leader: int | None
    replicas: tuple[int, ...] | None
    directories: tuple[str, ...] | None
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    recovery_state: int | None = None


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


class MetadataTransaction(IntEnum):
    """Records that bind those between them; what is not ended does not count."""

    BEGIN = 23
    END = 24
    ABORT = 25


@dataclass(frozen=True, slots=True)
class OtherRecord:
    """A record of any other type."""

    type: int
    version: int
    data: Value | None = None
    """Its fields; None where its type or version is not known."""


Record = (
    TopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | ConfigRecord
    | RemoveTopicRecord
    | MetadataTransaction
    | OtherRecord
)


def parse(value: bytes | memoryview) -> Record:
    """Decode the value of one record; FormatError when a broker could not read it."""
    data = bytes(value)
    decoded = internal_topics.decode_framed(CLUSTER_METADATA, data)
    if decoded.data is None or decoded.type not in _RECORDS:
        return OtherRecord(decoded.type, decoded.version, decoded.data)
    return _RECORDS[decoded.type](decoded.data)


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
        elr=_all(data, "eligibleLeaderReplicas") or (),
        last_known_elr=_all(data, "lastKnownElr") or (),
        removing=tuple(data["removingReplicas"]),
        adding=tuple(data["addingReplicas"]),
        recovery_state=data.get("leaderRecoveryState", 0),
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
    state = data.get("leaderRecoveryState", _SAME_STATE)
    return PartitionChangeRecord(
        topic_id=data["topicId"],
        partition_id=data["partitionId"],
        isr=_all(data, "isr"),
        leader=None if leader == _SAME_LEADER else leader,
        replicas=_all(data, "replicas"),
        directories=_all(data, "directories"),
        elr=_all(data, "eligibleLeaderReplicas"),
        last_known_elr=_all(data, "lastKnownElr"),
        removing=_all(data, "removingReplicas"),
        adding=_all(data, "addingReplicas"),
        recovery_state=None if state == _SAME_STATE else state,
    )


def _all(data: Value, name: str) -> tuple[Any, ...] | None:
    """Return the elements of a tagged array; None where it is null or not there."""
    found = data.get(name)
    return None if found is None else tuple(found)


def _transaction(kind: MetadataTransaction) -> Callable[[Value], Record]:
    return lambda _: kind


_RECORDS: dict[int, Callable[[Value], Record]] = {
    2: lambda data: TopicRecord(data["name"], data["topicId"]),
    3: _partition,
    4: _config,
    5: _partition_change,
    9: lambda data: RemoveTopicRecord(data["topicId"]),
    **{int(kind): _transaction(kind) for kind in MetadataTransaction},
}
"""By type: what makes the record of the fields."""
