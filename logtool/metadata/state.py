"""State of a cluster, the sum of the records of its metadata log.

Source: ``MetadataImage``, ``ClusterImage``, ``TopicsImage``, ``ConfigurationsImage``
(Kafka 3.9 and 4.x).
"""

from collections.abc import Iterator, Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from logtool.errors import UnreadableError
from logtool.formats.java_text import parse_int, parse_long
from logtool.formats.messages.cluster_metadata import PartitionRecord
from logtool.formats.messages.codec import Value
from logtool.formats.names import CLUSTER_METADATA
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition
from logtool.metadata.releases import METADATA_VERSION
from logtool.metadata.setting_values import BROKER_NAMES, SettingSource, SettingValue, in_file
from logtool.metadata.streams import StreamsImage

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Entity of a quota: type (user, client-id, ip) and name, None for the type's default."""
_ALL_BROKERS = ""
MOST_PROBLEMS = 100


@dataclass(frozen=True, slots=True)
class Problem:
    """A record that a broker or a controller cannot apply."""

    path: Path
    position: int
    """Position of the batch, in bytes."""
    offset: int
    text: str


class RecordPlace(NamedTuple):
    """Place of a record in a metadata log or snapshot."""

    path: Path
    position: int
    """Position of the batch, in bytes."""
    offset: int
    """Offset in the log; in a snapshot a number from 0."""


@dataclass(slots=True)
class MetadataImage:
    """State of the cluster; made by `logtool.metadata.image.read`.

    A record in a field has the field names of Kafka's JSON.
    """

    topics: dict[str, str] = field(default_factory=dict)
    """Topic id by name."""
    names: dict[str, str] = field(default_factory=dict)
    """Topic name by id."""
    removed: dict[str, int] = field(default_factory=dict, compare=False)
    """Offset of the RemoveTopicRecord, by topic id; only for topics that the log removed."""
    partitions: dict[str, dict[int, PartitionRecord]] = field(default_factory=dict)
    """State of each partition, by topic id and number."""
    topic_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    broker_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    """Settings by node id in decimal; the empty name has the default of all brokers."""
    other_configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    """Settings of groups and of clients' metrics, by type and name of the resource."""
    brokers: dict[int, Value] = field(default_factory=dict)
    """Registration (RegisterBrokerRecord) with its later changes, by node id."""
    controllers: dict[int, Value] = field(default_factory=dict)
    """RegisterControllerRecord by node id; an UnregisterControllerRecord removes it."""
    features: dict[str, int] = field(default_factory=dict)
    """Level by name."""
    quotas: dict[QuotaEntity, dict[str, float]] = field(default_factory=dict)
    """Value by setting, for each entity."""
    acls: dict[str, Value] = field(default_factory=dict)
    """AccessControlEntryRecord by id."""
    scram_users: dict[tuple[str, int], Value] = field(default_factory=dict)
    """UserScramCredentialRecord by user and mechanism, with its secrets."""
    tokens: dict[str, Value] = field(default_factory=dict)
    """DelegationTokenRecord by token id; the id is a secret."""
    next_producer_id: int | None = None
    """The first id that no broker was given; None if no broker was given any."""
    zk_migration_state: int | None = None
    kraft_version: int = 0
    voters: tuple[Value, ...] | None = None
    """VotersRecord; None without one, as with a static quorum."""
    static: Mapping[str, str] = field(default_factory=dict)
    """Settings of server.properties, if it was given; they count last."""
    streams: StreamsImage = field(default_factory=StreamsImage)
    """Streams and objects of AutoMQ; empty for Kafka."""
    offset: int = 0
    """The offset behind the last record that was read."""
    damage: str | None = None
    """Reason why reading ended early, or None. A torn tail is not a reason: a broker cuts it off
    and fetches it again."""
    listed: Partition | None = field(default=None, compare=False)
    """Files of the metadata log; None for a single snapshot and for a log that is absent."""
    damaged_at: tuple[Path, int] | None = field(default=None, compare=False)
    """Place of the damage: the file, and the byte in it."""
    lacks: tuple[int, int] | None = field(default=None, compare=False)
    """First and last offset that are missing before the place of the damage; None if that is a
    batch that cannot be read."""
    first_of: dict[tuple[int, int], "RecordPlace"] = field(default_factory=dict, compare=False)
    """The first record of each type and version that was read, also in a snapshot."""
    first_control: dict[int, "RecordPlace"] = field(default_factory=dict, compare=False)
    """The first control record of each type."""
    levels: dict[tuple[str, int], "RecordPlace"] = field(default_factory=dict, compare=False)
    """The first record that sets a feature to a level, in the order of reading."""
    not_understood: int = 0
    """Number of records that are newer than this program; they may have changed this state."""
    problems: list["Problem"] = field(default_factory=list, compare=False)
    """The first records that do not apply, at most `MOST_PROBLEMS`, in order."""
    problem_count: int = field(default=0, compare=False)
    snapshot: Path | None = field(default=None, compare=False)
    """Snapshot that reading began with; None if it began with the log."""
    snapshot_offset: int = field(default=0, compare=False)
    """The offset behind the last record that the snapshot covers: up to there all is committed."""
    skipped: list["Problem | UnreadableError"] = field(default_factory=list, compare=False)
    """Newer snapshots that are not whole or cannot be read, so that reading began before them."""
    open_transaction: int | None = field(default=None, compare=False)
    """First offset of a transaction that has not ended: its records do not count; or None."""
    epoch: int = field(default=-1, compare=False)
    """Leader epoch of the last record."""
    timestamp_ms: int = field(default=-1, compare=False)
    """Time of the last record in ms; -1 before the first."""

    @property
    def topic_count(self) -> int:
        """Return the number of topics."""
        return len(self.names)

    @property
    def partition_count(self) -> int:
        """Return the number of partitions of all topics."""
        return sum(len(of_topic) for of_topic in self.partitions.values())

    @property
    def broker_count(self) -> int:
        """Return the number of registered brokers."""
        return len(self.brokers)

    def copy(self) -> "MetadataImage":
        """Return a copy that can be changed without changing this image."""
        return replace(self, **{one.name: _copied(getattr(self, one.name)) for one in fields(self)})

    def metadata_version_of(self, node_id: int) -> int | None:
        """Return the highest ``metadata.version`` that a node supported when it registered.

        A node that is a controller alone has no registration as a broker.
        """
        registered = self.brokers.get(node_id) or self.controllers.get(node_id) or {}
        features = registered.get("features", ())
        levels = {one["name"]: one["maxSupportedVersion"] for one in features}
        return levels.get(METADATA_VERSION)

    def broker_log_dirs(self, node_id: int) -> tuple[str, ...]:
        """Return ``directory.id`` of a node's online log dirs, as it registered them last."""
        return tuple(self.brokers.get(node_id, {}).get("logDirs", ()))

    def topic_config(self, topic: str, name: str, node_id: int | None = None) -> str | None:
        """Return a topic's setting: its own, else the node's default, else that of all brokers.

        None means that Kafka's default counts, or server.properties, if `static` is empty.
        """
        return next(self.topic_values(topic, name, node_id), None)

    def topic_values(self, topic: str, name: str, node_id: int | None = None) -> Iterator[str]:
        """Yield all values of a topic's setting, the one that counts first."""
        return (one.value for one in self.sourced_values(topic, name, node_id))

    def sourced_values(
        self, topic: str, name: str, node_id: int | None = None
    ) -> Iterator[SettingValue]:
        """Yield all values of a topic's setting with their sources, the one that counts first."""
        own = self.topic_configs.get(topic, {})
        if name in own:
            yield SettingValue(name, own[name], SettingSource.TOPIC)
        places = ((str(node_id), SettingSource.BROKER), (_ALL_BROKERS, SettingSource.ALL_BROKERS))
        for node, source in places if name in BROKER_NAMES else ():
            value = self.broker_configs.get(node, {}).get(BROKER_NAMES[name])
            if value is not None:
                yield SettingValue(name, value, source)
        yield from in_file(name, self.static)

    def topic_number(self, topic: str, name: str, default: int, node_id: int | None = None) -> int:
        """Return a topic's setting that is a whole number, or `default` if it is not known."""
        value = parse_int(self.topic_config(topic, name, node_id) or "")
        return default if value is None or value < 0 else value

    def ahead_ms(self, topic: str, node_id: int | None = None) -> int | None:
        """Return the time that a timestamp may be ahead of its broker's clock, in ms.

        None if it is not set here: then the limit is an hour since 4.0, and there was no limit
        before, unless a server.properties that was not given has another. Source:
        ``LogConfig.getMessageTimestampAfterMaxMs`` (3.9), in which the older setting counts as long
        as the newer one is not set; 4.0 removed the older one.
        """
        names = ("message.timestamp.after.max.ms", "message.timestamp.difference.max.ms")
        values = (parse_long(self.topic_config(topic, name, node_id) or "") for name in names)
        return next((value for value in values if value is not None and value >= 0), None)

    def partition(self, topic_id: str, number: int) -> PartitionRecord | None:
        """Return the state of a partition; None if it is not known."""
        return self.partitions.get(topic_id, {}).get(number)

    def log_dirs(self, node_id: int) -> set[str]:
        """Return the directory ids of a node: from its registration, and of its replicas.

        Kafka has them since 3.7. Ids that are not of a log dir (lost, unassigned) may be included.
        """
        assigned = {
            state.directories[state.replicas.index(node_id)]
            for of_topic in self.partitions.values()
            for state in of_topic.values()
            if node_id in state.replicas and len(state.directories) == len(state.replicas)
        }
        return assigned | set(self.broker_log_dirs(node_id))

    def is_stray(self, topic: str, number: int, topic_id: str | None, node_id: int) -> bool:
        """Return whether a broker would put a log aside as stray when it starts.

        `topic_id` is that of partition.metadata; None without that file. The name alone decides
        nothing: a topic may have been deleted and created again. Source:
        ``LogManager.isStrayKraftReplica`` (3.9), ``LogManager.isStrayReplica`` (4.x).
        """
        if topic == CLUSTER_METADATA:
            return False  # a broker does not check it
        state = None if topic_id is None else self.partition(topic_id, number)
        return state is None or node_id not in state.replicas


def _copied(value: Any) -> Any:
    """Return a copy of a dict, also of the dicts in it, or of a list; else the value itself."""
    if isinstance(value, StreamsImage):
        return value.copy()
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    return list(value) if isinstance(value, list) else value
