"""Changes that each record of the metadata log made, emitted while the log is applied."""

from collections.abc import Callable
from dataclasses import field
from fnmatch import fnmatchcase
from pathlib import Path

from logtool.formats import control_record
from logtool.formats.messages.cluster_metadata import (
    MetadataTransaction,
    OtherRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from logtool.formats.messages.internal_topics import framed_message
from logtool.formats.names import CLUSTER_METADATA
from logtool.lazy_dataclass import dataclass
from logtool.metadata.entities import Entity, EntityChange, EntityView, Key, changes, of_record
from logtool.metadata.reading import Control, MetadataEntry
from logtool.metadata.state import MetadataImage
from logtool.times import rfc3339

NO_OP = "NoOpRecord"
_NO_OP, _CLEAR_ELR = 20, 28
_QUORUM = Key("quorum", None)
_OF_QUORUM = (control_record.KRAFT_VERSION, control_record.KRAFT_VOTERS)


@dataclass(frozen=True, slots=True)
class MetadataEvent:
    """One record with what it changed."""

    path: Path
    position: int
    """Position of the batch, in bytes."""
    offset: int
    epoch: int
    timestamp_ms: int | None
    record: str
    """Kafka's name of the record."""
    entity: Entity | None
    """The entity of the record, in its old state if it was removed; None without one."""
    changes: tuple[EntityChange, ...] = ()
    problem: str | None = None
    """Reason why the record does not apply; None if it applies."""

    @property
    def timestamp(self) -> str | None:
        """Return its time as text; None without one, or for a time that no calendar has."""
        return rfc3339(self.timestamp_ms)

    @property
    def kind(self) -> str | None:
        """Return the kind of the entity; None without one."""
        return self.entity.kind if self.entity else None

    @property
    def name(self) -> str | None:
        """Return the name of the entity; None without one."""
        return self.entity.name if self.entity else None

    @property
    def topic(self) -> str | None:
        """Return the topic of the entity; None without one."""
        return self.entity.topic if self.entity else None

    @property
    def topic_id(self) -> str | None:
        """Return the id of the topic; None without one, or if its id is not known."""
        return self.entity.topic_id if self.entity else None

    @property
    def partition(self) -> int | None:
        """Return the number of the partition; None without one."""
        return self.entity.partition if self.entity else None


def takes(topics: tuple[str, ...], entity: Entity | None) -> bool:
    """Return whether an entity is of one of `topics`, globs or ids; True without topics."""
    if not topics:
        return True
    if entity is None:
        return False
    name, topic_id = entity.topic or "", entity.topic_id
    return any(glob == topic_id or fnmatchcase(name, glob) for glob in topics)


@dataclass(slots=True)
class MetadataHistory:
    """Watcher of a replay; emits a `MetadataEvent` for each record except those that do nothing."""

    emit: Callable[[MetadataEvent], None]
    topics: tuple[str, ...] = ()
    """Globs or ids of the selected topics; empty for everything."""
    view: EntityView = field(default_factory=EntityView)
    image: MetadataImage = field(default_factory=MetadataImage)
    _before: Entity | None = None

    def begin(self, image: MetadataImage) -> None:
        """Take the image that the replay begins with."""
        self.image = image
        self.view.topic_names.update(image.names)

    def before(self, entry: MetadataEntry) -> None:
        """Remember the entity of the record before the change."""
        key = _key(entry.content)
        self._before = self.view.find(self.image, key) if key else None

    def after(self, entry: MetadataEntry, problem: str | None) -> None:
        """Emit the event for the record."""
        content = entry.content
        if isinstance(content, OtherRecord) and content.type == _NO_OP:
            return
        if isinstance(content, TopicRecord):
            self.view.topic_names[content.topic_id] = content.name
        key = _key(content)
        now = self.view.find(self.image, key) if key else None
        entity = now or self._before or self._named(entry)
        if not takes(self.topics, entity):
            return
        changed = changes(self._before, now) if key else _changes_of_other(content)
        self.emit(
            MetadataEvent(
                path=entry.path,
                position=entry.position,
                offset=entry.offset,
                epoch=entry.epoch,
                timestamp_ms=None if entry.timestamp_ms == -1 else entry.timestamp_ms,
                record=record_name(content),
                entity=entity,
                changes=tuple(changed),
                problem=problem,
            )
        )

    def _named(self, entry: MetadataEntry) -> Entity | None:
        """Return the entity of a record for an entity that exists neither before nor after it."""
        match entry.content:
            case PartitionRecord(topic_id, number) | PartitionChangeRecord(topic_id, number):
                topic = self.view.name_of(self.image, topic_id)
                name = f"{topic or topic_id}-{number}"
                return Entity("partition", name, {}, topic, topic_id, number)
            case RemoveTopicRecord(topic_id):
                topic = self.view.name_of(self.image, topic_id)
                return Entity("topic", topic or topic_id, {}, topic, topic_id)
            case OtherRecord(type=kind, data=data) if kind == _CLEAR_ELR and data is not None:
                cleared = data["topicName"]
                of_topic = self.image.topics.get(cleared)
                return Entity("topic", cleared or "(all)", {}, cleared or None, of_topic)
        return None


def _key(content: object) -> Key | None:
    if isinstance(content, Control):
        return _QUORUM if content.type in _OF_QUORUM else None
    if isinstance(content, MetadataTransaction):
        return None
    return of_record(content)  # type: ignore[arg-type]  # what is left is a record


def _changes_of_other(content: object) -> list[EntityChange]:
    """Return the changes of a record that has no entity of its own."""
    if isinstance(content, Control) and content.type == control_record.LEADER_CHANGE:
        return [EntityChange("leader", None, content.data.get("leaderId"))]
    if isinstance(content, OtherRecord) and content.type == _CLEAR_ELR:
        return [EntityChange("elr", None, []), EntityChange("last_known_elr", None, [])]
    return []


def record_name(content: object) -> str:
    """Return the name of the kind of a record."""
    if isinstance(content, Control):
        return control_record.name(content.type)
    if isinstance(content, MetadataTransaction):
        return f"{content.name.capitalize()}TransactionRecord"
    if not isinstance(content, OtherRecord):
        return type(content).__name__
    message = framed_message(CLUSTER_METADATA, content.type)
    if message is None:
        return f"type {content.type}"
    return message.name if content.data is not None else f"{message.name} {content.version}"
