"""The records of ``__cluster_metadata`` that say where partitions are and how topics are set.

A record has no key. Its value begins with a frame of three unsigned varints; behind it stands the
message in the encoding of `logtool.formats.messages.flexible`::

    frame version   1 (0 was a preview in 2.8)
    type            apiKey of the message
    version         of the message

=====  =====================  ========  ============================================================
type                          versions  fields; those with a number in brackets are tagged
=====  =====================  ========  ============================================================
0      RegisterBrokerRecord   0 to 4    broker_id, is_migrating_zk_broker int8 (from version 2),
                                        incarnation_id, broker_epoch int64, end_points, features,
                                        rack or null, fenced int8, in_controlled_shutdown int8
                                        (from version 1), log_dirs [0]
2      TopicRecord            0         name, topic_id
3      PartitionRecord        0 to 2    partition_id, topic_id, replicas, isr, removing_replicas,
                                        adding_replicas, leader, leader_epoch, partition_epoch,
                                        directories (from version 1)
4      ConfigRecord           0         resource_type int8, resource_name, name, value or null
5      PartitionChangeRecord  0 to 2    partition_id, topic_id, isr [0], leader [1], replicas [2],
                                        directories [8]
9      RemoveTopicRecord      0         topic_id
17     BrokerRegistration-    0 to 3    broker_id, broker_epoch int64, log_dirs [2]
       ChangeRecord
23     BeginTransaction       0
24     EndTransaction         0
25     AbortTransaction       0
=====  =====================  ========  ============================================================

Numbers without another type are int32, ids of topics and directories UUIDs. Other types, versions
and tagged fields are skipped. Source: the schemas in ``common/metadata``,
``AbstractApiMessageSerde`` (Kafka 3.9 to 4.3).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from logtool.errors import FormatError
from logtool.formats.messages.flexible import Reader

FRAME_VERSION = 1
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
"""Resource types of a ConfigRecord."""
NO_LEADER = -1
_SAME_LEADER = -2
_TAG_ISR, _TAG_LEADER, _TAG_REPLICAS, _TAG_DIRECTORIES = 0, 1, 2, 8
_TAG_REGISTERED, _TAG_CHANGED = 0, 2
"""Of the log dirs of a broker: when it registers, and when they change."""


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
    reader = Reader(value, "the metadata record")
    frame_version = reader.varint()
    if frame_version != FRAME_VERSION:
        raise FormatError(f"frame version is {frame_version}, only {FRAME_VERSION} exists")
    kind, version = reader.varint(), reader.varint()
    decode, highest = _MESSAGES.get(kind, (None, -1))
    if decode is None or version > highest:
        return OtherRecord(kind, version)
    record = decode(reader, version)
    reader.end()
    return record


def _topic(reader: Reader, version: int) -> Record:
    record = TopicRecord(reader.string(), reader.uuid())
    reader.tagged()
    return record


def _partition(reader: Reader, version: int) -> Record:
    partition_id, topic_id = reader.int32(), reader.uuid()
    replicas, isr = reader.array(Reader.int32), reader.array(Reader.int32)
    for _ in ("removing_replicas", "adding_replicas"):
        reader.array(Reader.int32)
    leader, leader_epoch, partition_epoch = (reader.int32() for _ in range(3))
    directories = reader.array(Reader.uuid) if version >= 1 else ()
    reader.tagged()
    return PartitionRecord(
        topic_id=topic_id,
        partition_id=partition_id,
        replicas=replicas,
        isr=isr,
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        directories=directories,
    )


def _config(reader: Reader, version: int) -> Record:
    kind, resource = reader.number(1), reader.string()
    record = ConfigRecord(
        resource_type=kind,
        resource_name=resource,
        name=reader.string(),
        value=reader.nullable_string(),
    )
    reader.tagged()
    return record


def _partition_change(reader: Reader, version: int) -> Record:
    partition_id, topic_id = reader.int32(), reader.uuid()
    tagged = reader.tagged()

    def numbers(tag: int) -> tuple[int, ...] | None:
        return tagged[tag].nullable_array(Reader.int32) if tag in tagged else None

    leader = tagged[_TAG_LEADER].int32() if _TAG_LEADER in tagged else _SAME_LEADER
    directories = None
    if version >= 1 and _TAG_DIRECTORIES in tagged:
        directories = tagged[_TAG_DIRECTORIES].nullable_array(Reader.uuid)
    return PartitionChangeRecord(
        topic_id=topic_id,
        partition_id=partition_id,
        isr=numbers(_TAG_ISR),
        leader=None if leader == _SAME_LEADER else leader,
        replicas=numbers(_TAG_REPLICAS),
        directories=directories,
    )


def _remove_topic(reader: Reader, version: int) -> Record:
    record = RemoveTopicRecord(reader.uuid())
    reader.tagged()
    return record


def _register_broker(reader: Reader, version: int) -> Record:
    broker_id = reader.int32()
    if version >= 2:
        reader.take(1)
    reader.uuid()
    reader.number(8)
    reader.array(_end_point)
    features = dict(reader.array(_feature))
    reader.nullable_string()
    reader.take(2 if version >= 1 else 1)
    tagged = reader.tagged()
    log_dirs = tagged[_TAG_REGISTERED].array(Reader.uuid) if _TAG_REGISTERED in tagged else ()
    return BrokerLogDirs(broker_id, log_dirs, features.get("metadata.version"))


def _end_point(reader: Reader) -> None:
    for _ in ("name", "host"):
        reader.string()
    reader.take(2 + 2)  # port, security protocol
    reader.tagged()


def _feature(reader: Reader) -> tuple[str, int]:
    name = reader.string()
    reader.number(2)  # the lowest version
    highest = reader.number(2)
    reader.tagged()
    return name, highest


def _change_broker(reader: Reader, version: int) -> Record:
    broker_id = reader.int32()
    reader.number(8)
    tagged = reader.tagged()
    log_dirs = tagged[_TAG_CHANGED].array(Reader.uuid) if _TAG_CHANGED in tagged else None
    return BrokerLogDirs(broker_id, log_dirs)


def _transaction(kind: Transaction) -> Callable[[Reader, int], Record]:
    def decode(reader: Reader, version: int) -> Record:
        reader.tagged()
        return kind

    return decode


_MESSAGES: dict[int, tuple[Callable[[Reader, int], Record], int]] = {
    0: (_register_broker, 4),
    2: (_topic, 0),
    3: (_partition, 2),
    4: (_config, 0),
    5: (_partition_change, 2),
    9: (_remove_topic, 0),
    17: (_change_broker, 3),
    **{int(kind): (_transaction(kind), 0) for kind in Transaction},
}
"""By type: what decodes the message, and the highest version that it knows."""
TYPES = frozenset(_MESSAGES)
"""The types that are decoded, in the versions known."""
