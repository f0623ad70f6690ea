"""What is known of a cluster: the state that the records of its metadata log add up to.

Source: ``MetadataImage``, ``ClusterImage``, ``TopicsImage``, ``ConfigurationsImage``
(Kafka 3.9 and 4.x).
"""

from collections.abc import Iterator, Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any

from logtool.errors import UnreadableError
from logtool.formats.java_text import parse_int, parse_long
from logtool.formats.messages.cluster_metadata import PartitionRecord
from logtool.formats.messages.codec import Value
from logtool.formats.names import CLUSTER_METADATA
from logtool.lazy_dataclass import dataclass

METADATA_VERSION = "metadata.version"
QuotaEntity = tuple[tuple[str, str | None], ...]
"""Whom a quota is for: type (user, client-id, ip) and name, None for the default of the type."""
_ALL_BROKERS = ""
MOST_PROBLEMS = 100
_BROKER_NAMES = {
    "cleanup.policy": "log.cleanup.policy",
    "index.interval.bytes": "log.index.interval.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.difference.max.ms": "log.message.timestamp.difference.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
}
"""What a broker calls the default of a topic's setting (``ServerTopicConfigSynonyms``)."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A record that a broker or a controller cannot apply."""

    path: Path
    position: int
    """Of its batch."""
    offset: int
    text: str


@dataclass(slots=True)
class MetadataImage:
    """What is known of the cluster; made by `logtool.metadata.image.read`.

    Where a field holds a record as such, its fields have the names of Kafka's JSON.
    """

    topics: dict[str, str] = field(default_factory=dict)
    """Topic id by name."""
    names: dict[str, str] = field(default_factory=dict)
    """Topic by id."""
    partitions: dict[str, dict[int, PartitionRecord]] = field(default_factory=dict)
    """By topic id and number; each as the records have made it."""
    topic_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    broker_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    """By node id in decimal; that of the empty name is the default of all brokers."""
    other_configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    """By type and name of the resource: those of groups and of clients' metrics."""
    brokers: dict[int, Value] = field(default_factory=dict)
    """By node id: the registration (RegisterBrokerRecord), with what changed of it since."""
    controllers: dict[int, Value] = field(default_factory=dict)
    """By node id: RegisterControllerRecord."""
    features: dict[str, int] = field(default_factory=dict)
    """Level by name."""
    quotas: dict[QuotaEntity, dict[str, float]] = field(default_factory=dict)
    """Value by setting, for each entity."""
    acls: dict[str, Value] = field(default_factory=dict)
    """By id: AccessControlEntryRecord."""
    scram_users: dict[tuple[str, int], Value] = field(default_factory=dict)
    """By user and mechanism: UserScramCredentialRecord, with its secrets."""
    tokens: dict[str, Value] = field(default_factory=dict)
    """By token id: DelegationTokenRecord; the id is a secret."""
    next_producer_id: int | None = None
    """The first id that no broker was given; None where none was."""
    zk_migration_state: int | None = None
    kraft_version: int = 0
    voters: tuple[Value, ...] | None = None
    """VotersRecord; None where none was written, as with a static quorum."""
    static: Mapping[str, str] = field(default_factory=dict)
    """What server.properties says, where it was given: it counts last."""
    offset: int = 0
    """Where reading ended: the offset behind the last record that was looked at."""
    damage: str | None = None
    """What ended reading early, None where nothing did. A torn tail, which a broker cuts off and
    fetches again, is none."""
    damaged_at: tuple[Path, int] | None = field(default=None, compare=False)
    """Where that is: the file, and the byte in it."""
    not_understood: int = 0
    """Records that are newer than this program, and may have changed what is here."""
    problems: list["Problem"] = field(default_factory=list, compare=False)
    """The first records that do not apply, at most `MOST_PROBLEMS`, in order."""
    problem_count: int = field(default=0, compare=False)
    snapshot: Path | None = field(default=None, compare=False)
    """What reading began with; None where that was the log."""
    snapshot_offset: int = field(default=0, compare=False)
    """The offset behind the last record that the snapshot covers: up to there all is committed."""
    skipped: list["Problem | UnreadableError"] = field(default_factory=list, compare=False)
    """Newer snapshots that are not whole or cannot be read, so that reading began before them."""
    open_transaction: int | None = field(default=None, compare=False)
    """Where a transaction begins that has not ended: what is behind does not count."""
    epoch: int = field(default=-1, compare=False)
    """Leader epoch of the last record."""
    timestamp_ms: int = field(default=-1, compare=False)
    """Time of the last record; -1 where none was read."""

    @property
    def topic_count(self) -> int:
        """Return how many topics there are."""
        return len(self.names)

    @property
    def partition_count(self) -> int:
        """Return how many partitions the topics have."""
        return sum(len(of_topic) for of_topic in self.partitions.values())

    @property
    def broker_count(self) -> int:
        """Return how many brokers are registered."""
        return len(self.brokers)

    def copy(self) -> "MetadataImage":
        """Return an image that can be changed without this one."""
        return replace(self, **{one.name: _copied(getattr(self, one.name)) for one in fields(self)})

    def metadata_version_of(self, node_id: int) -> int | None:
        """Return the highest ``metadata.version`` that a node supported when it registered."""
        features = self.brokers.get(node_id, {}).get("features", ())
        levels = {one["name"]: one["maxSupportedVersion"] for one in features}
        return levels.get(METADATA_VERSION)

    def broker_log_dirs(self, node_id: int) -> tuple[str, ...]:
        """Return ``directory.id`` of the log dirs that a node has online, as it said last."""
        return tuple(self.brokers.get(node_id, {}).get("logDirs", ()))

    def topic_config(self, topic: str, name: str, node_id: int | None = None) -> str | None:
        """Return a topic's setting: its own, else the node's default, else that of all brokers.

        None means that Kafka's default decides, or server.properties, where `static` is empty.
        """
        return next(self.topic_values(topic, name, node_id), None)

    def topic_values(self, topic: str, name: str, node_id: int | None = None) -> Iterator[str]:
        """Yield all values that are set for a topic's setting, that which counts first."""
        yield from self.dynamic_values(topic, name, node_id)
        if _BROKER_NAMES.get(name) in self.static:
            yield self.static[_BROKER_NAMES[name]]

    def dynamic_values(self, topic: str, name: str, node_id: int | None = None) -> Iterator[str]:
        """Yield those of the metadata log itself."""
        own = self.topic_configs.get(topic, {})
        if name in own:
            yield own[name]
        for node in (str(node_id), _ALL_BROKERS) if name in _BROKER_NAMES else ():
            value = self.broker_configs.get(node, {}).get(_BROKER_NAMES[name])
            if value is not None:
                yield value

    def topic_number(self, topic: str, name: str, default: int, node_id: int | None = None) -> int:
        """Return a topic's setting that is a whole number, `default` where none is known."""
        value = parse_int(self.topic_config(topic, name, node_id) or "")
        return default if value is None or value < 0 else value

    def ahead_ms(self, topic: str, node_id: int | None = None) -> int | None:
        """Return how far ahead of its broker's clock a timestamp in a topic may be, in ms.

        None where it is not set here: then it is an hour since 4.0, and any time before, unless
        a server.properties that was not given says otherwise. Source:
        ``LogConfig.getMessageTimestampAfterMaxMs`` (3.9),
        where the older setting counts as long as the newer one is not set; 4.0 took that away.
        """
        names = ("message.timestamp.after.max.ms", "message.timestamp.difference.max.ms")
        values = (parse_long(self.topic_config(topic, name, node_id) or "") for name in names)
        return next((value for value in values if value is not None and value >= 0), None)

    def partition(self, topic_id: str, number: int) -> PartitionRecord | None:
        """Return what is known of a partition, if anything is."""
        return self.partitions.get(topic_id, {}).get(number)

    def log_dirs(self, node_id: int) -> set[str]:
        """Return the directory ids of a node: those it registered with, and those it has logs in.

        Since 3.7. Ids that stand for no log dir (lost, unassigned) may be among them.
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

        `topic_id` is that of partition.metadata; None where there is no such file. The name alone
        decides nothing: a topic may have been deleted and made anew. Source:
        ``LogManager.isStrayKraftReplica`` (3.9), ``LogManager.isStrayReplica`` (4.x).
        """
        if topic == CLUSTER_METADATA:
            return False  # it is not among the logs that are asked about
        state = None if topic_id is None else self.partition(topic_id, number)
        return state is None or node_id not in state.replicas


def _copied(value: Any) -> Any:
    """Return a copy of a dict or list and of the dicts in it; anything else as it is."""
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    return list(value) if isinstance(value, list) else value
