"""What a broker's metadata log says, read offline: topics, partitions and their settings.

The image is that of ``MetadataImage``: the newest KRaft snapshot that is whole, and what the log of
``__cluster_metadata-0`` says behind it. How far the log is committed is not on disk: everything is
read, so that the last records may be some that the controllers never agreed on. And a broker that
starts first fetches what it missed: the image is what it knew, not what it will be told.
Source: ``MetadataDelta``, ``TopicsDelta``, ``ConfigurationsDelta``, ``MetadataBatchLoader``,
``PartitionRegistration.merge`` (Kafka 3.9 and 4.x).
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from logtool.disk import files, partition
from logtool.disk.files import LogFile
from logtool.disk.partition import File
from logtool.errors import FormatError, UnreadableError
from logtool.formats import compression, control_record, record, wording
from logtool.formats.java_text import parse_int, parse_long
from logtool.formats.messages import cluster_metadata
from logtool.formats.messages.cluster_metadata import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    BrokerLogDirs,
    ConfigRecord,
    OtherRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
    Transaction,
)
from logtool.formats.names import CLUSTER_METADATA
from logtool.formats.record_batch import CODEC_MASK, HEADER_SIZE, MAGIC
from logtool.segment.damage import Reason
from logtool.segment.walk import Chunk, scan

DIRECTORY = f"{CLUSTER_METADATA}-0"
_ALL_BROKERS = ""
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


@dataclass(slots=True)
class MetadataImage:
    """What is known of the cluster; made by `read`."""

    topics: dict[str, str] = field(default_factory=dict)
    """Topic id by name."""
    partitions: dict[str, dict[int, PartitionRecord]] = field(default_factory=dict)
    """By topic id and number; each as the records have made it."""
    topic_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    broker_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    """By node id in decimal; that of the empty name is the default of all brokers."""
    broker_log_dirs: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """By node id: ``directory.id`` of the log dirs that it had online when it registered last."""
    metadata_versions: dict[int, int] = field(default_factory=dict)
    """By node id: the highest ``metadata.version`` that it supported when it registered last."""
    static: Mapping[str, str] = field(default_factory=dict)
    """What server.properties says, where it was given: it counts last."""
    offset: int = 0
    """Where reading ended: the offset behind the last record that was looked at."""
    damage: str | None = None
    """What ended reading early, None where nothing did. A torn tail, which a broker cuts off and
    fetches again, is none."""
    not_understood: int = 0
    """Records that may have changed what is here, but are newer than this program."""

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
        return assigned | set(self.broker_log_dirs.get(node_id, ()))

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


def read(metadata_dir: Path) -> MetadataImage:
    """Read ``__cluster_metadata-0``, or that of the log dir given; UnreadableError without one."""
    inner = metadata_dir / DIRECTORY
    log = partition.read(inner if files.has_dir(inner) else metadata_dir)
    builder = _newest_snapshot(log.kraft_snapshots)
    image = builder.image
    try:
        for segment in log.segments:
            if segment.next_base_offset is None or segment.next_base_offset > image.offset:
                builder.read_log(segment.log.path, segment.base_offset, active=segment.is_active)
    except (FormatError, UnreadableError) as error:
        image.damage = str(error)
    return image


def _newest_snapshot(snapshots: tuple[File, ...]) -> "_Builder":
    """Return what the newest usable snapshot says; nothing where there is none."""
    newest_first = sorted(snapshots, key=lambda f: (f.name.epoch, f.name.offset), reverse=True)
    for file in newest_first:
        builder = _Builder()
        with suppress(FormatError, UnreadableError):
            builder.read_snapshot(file.path)
            builder.image.offset = file.name.offset or 0
            return builder
    return _Builder()


class _Builder:
    """Folds records into an image."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self._names: dict[str, str] = {}
        """Topic by id."""
        self._pending: list[Record] | None = None
        """The records of a transaction that is open."""

    def read_snapshot(self, path: Path) -> None:
        """Apply a whole snapshot; FormatError where it is not."""
        types = []
        with LogFile(path) as log:
            for chunk in scan(log, base_offset=0):
                if chunk.damage:
                    raise FormatError(chunk.damage.message, chunk.damage.position, path)
                types += chunk.table.control_type.tolist()
                for row in range(len(chunk.table)):
                    for _, change in _records(chunk, row, path):
                        self._apply(change)
        if types[:1] != [control_record.SNAPSHOT_HEADER]:
            raise FormatError("no snapshot header", 0, path)
        if types[-1] != control_record.SNAPSHOT_FOOTER:
            raise FormatError("no snapshot footer", 0, path)

    def read_log(self, path: Path, base_offset: int, *, active: bool) -> None:
        """Apply the records of a segment from the image's offset on; FormatError at damage."""
        with LogFile(path) as log:
            for chunk in scan(log, base_offset=base_offset):
                damage = chunk.damage
                if damage and active and damage.reason in (Reason.INCOMPLETE, Reason.ZEROS):
                    return
                if damage:
                    raise FormatError(damage.message, damage.position, path)
                for row in range(len(chunk.table)):
                    self._apply_batch(chunk, row, path)

    def _apply_batch(self, chunk: Chunk, row: int, path: Path) -> None:
        table, image = chunk.table, self.image
        first, last = int(table.base_offset[row]), int(table.last_offset[row])
        if first > image.offset:
            text = f"the metadata log lacks {wording.offsets(image.offset, first - 1)}"
            raise FormatError(text, int(table.position[row]), path)
        for offset, change in _records(chunk, row, path):
            if offset >= image.offset:
                self._receive(change)
        image.offset = max(image.offset, last + 1)

    def _receive(self, change: Record) -> None:
        """Apply a record, or keep it until its transaction ends."""
        if change is Transaction.BEGIN:
            self._pending = []
        elif isinstance(change, Transaction):
            pending, self._pending = self._pending or [], None
            for one in pending if change is Transaction.END else ():
                self._apply(one)
        elif self._pending is not None:
            self._pending.append(change)
        else:
            self._apply(change)

    def _apply(self, change: Record) -> None:
        image = self.image
        match change:
            case TopicRecord(name, topic_id):
                image.topics[name] = topic_id
                image.partitions[topic_id] = {}
                self._names[topic_id] = name
            case RemoveTopicRecord(topic_id):
                self._remove(topic_id)
            case PartitionRecord():
                image.partitions.setdefault(change.topic_id, {})[change.partition_id] = change
            case PartitionChangeRecord():
                self._change(change)
            case ConfigRecord():
                self._configure(change)
            case BrokerLogDirs():
                if change.directories is not None:
                    image.broker_log_dirs[change.broker_id] = change.directories
                if change.metadata_version is not None:
                    image.metadata_versions[change.broker_id] = change.metadata_version
            case OtherRecord() if change.type in cluster_metadata.TYPES:
                image.not_understood += 1

    def _remove(self, topic_id: str) -> None:
        image = self.image
        name = self._names.pop(topic_id, None)
        image.partitions.pop(topic_id, None)
        if name is not None and image.topics.get(name) == topic_id:
            del image.topics[name]
            image.topic_configs.pop(name, None)

    def _change(self, change: PartitionChangeRecord) -> None:
        of_topic = self.image.partitions.get(change.topic_id, {})
        state = of_topic.get(change.partition_id)
        if state is None:
            # What made the partition was not understood: nor is what becomes of it.
            self.image.not_understood += 1
            return
        if change.leader is not None:
            # A change of leader begins an epoch; the record does not name it.
            state = replace(state, leader=change.leader, leader_epoch=state.leader_epoch + 1)
        of_topic[change.partition_id] = replace(
            state,
            partition_epoch=state.partition_epoch + 1,
            isr=state.isr if change.isr is None else change.isr,
            replicas=state.replicas if change.replicas is None else change.replicas,
            directories=state.directories if change.directories is None else change.directories,
        )

    def _configure(self, setting: ConfigRecord) -> None:
        configs = {
            TOPIC_RESOURCE: self.image.topic_configs,
            BROKER_RESOURCE: self.image.broker_configs,
        }.get(setting.resource_type)
        if configs is None:
            return
        of_resource = configs.setdefault(setting.resource_name, {})
        of_resource.pop(setting.name, None)
        if setting.value is not None:
            of_resource[setting.name] = setting.value
        if not of_resource:
            del configs[setting.resource_name]


def _records(chunk: Chunk, row: int, path: Path) -> Iterator[tuple[int, Record]]:
    """Yield the offset and content of each record of a batch; FormatError where it has none."""
    table = chunk.table
    if table.is_control[row]:
        return
    position, data = int(table.position[row]), chunk.batch(row)
    if table.magic[row] != MAGIC or len(data) != table.size[row]:
        raise FormatError("a batch of another kind than a metadata log has", position, path)
    try:
        codec = int(table.attributes[row]) & CODEC_MASK
        payload = compression.decompress(codec, data[HEADER_SIZE:])
        records, wrong = record.parse(payload, int(table.record_count[row]))
        base = int(table.base_offset[row])
        columns = (records.offset_delta, records.value_position, records.value_length)
        for delta, start, size in zip(*(c.tolist() for c in columns), strict=True):
            yield base + delta, cluster_metadata.parse(payload[start : start + max(size, 0)])
        if wrong:
            raise wrong
    except FormatError as error:
        raise FormatError(error.reason, position, path) from error
