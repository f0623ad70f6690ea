"""Replay of a metadata log: the change that each record makes, and records that do not apply.

A record applies as in a broker's or controller's own classes: if these throw, a `Problem` is noted,
and the record is skipped, as a broker does; a controller ends. Source:
``MetadataBatchLoader.replay``, ``MetadataDelta`` and the deltas of its parts, such as
``TopicsDelta``, ``ClusterDelta`` and ``AclsDelta``, ``PartitionRegistration.merge`` (Kafka 3.9 and
4.x).
"""

from dataclasses import replace
from typing import Protocol, TypeVar

from logtool.formats.control_record import KRAFT_VERSION, KRAFT_VOTERS
from logtool.formats.messages.cluster_metadata import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    ConfigRecord,
    MetadataTransaction,
    OtherRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
)
from logtool.metadata.other_records import OTHERS
from logtool.metadata.reading import Control, MetadataEntry
from logtool.metadata.state import (
    MOST_PROBLEMS,
    MetadataImage,
    Problem,
    RecordPlace,
)
from logtool.metadata.streams import CHANGES

Key = TypeVar("Key")
_RECOVERY_STATES = (0, 1)
"""``LeaderRecoveryState``"""
_FEATURE_LEVEL = 12


class Watcher(Protocol):
    """Receiver of each record as it is applied."""

    def begin(self, image: MetadataImage) -> None:
        """Take the image that will change."""

    def before(self, entry: MetadataEntry) -> None:
        """Take a record before it is applied."""

    def after(self, entry: MetadataEntry, problem: str | None) -> None:
        """Take a record after it was applied; `problem` is the reason if it does not apply."""


class ImageReplay:
    """Folds records into an image."""

    def __init__(self, image: MetadataImage | None = None) -> None:
        self.image = image or MetadataImage()
        self.watcher: Watcher | None = None
        self._pending: list[MetadataEntry] | None = None
        """The records of a transaction that is open."""

    def receive(self, entry: MetadataEntry) -> None:
        """Apply a record, or keep it until its transaction ends."""
        image, content = self.image, entry.content
        image.epoch, image.timestamp_ms = entry.epoch, entry.timestamp_ms
        if isinstance(content, MetadataTransaction):
            self._transaction(entry, content)
        elif self._pending is not None and not isinstance(content, Control):
            self._see(entry)
            self._pending.append(entry)
        else:
            self.apply(entry)

    def _transaction(self, entry: MetadataEntry, kind: MetadataTransaction) -> None:
        problem = None
        begun = self._pending is not None
        if kind is MetadataTransaction.BEGIN and begun:
            problem = "a transaction begins, but the one before it has not ended"
        elif kind is not MetadataTransaction.BEGIN and not begun:
            word = "ends" if kind is MetadataTransaction.END else "is aborted"
            problem = f"a transaction {word}, but no transaction has begun"
        if not problem:
            pending, self._pending = (
                self._pending or [],
                [] if kind is MetadataTransaction.BEGIN else None,
            )
            self.image.open_transaction = (
                entry.offset if kind is MetadataTransaction.BEGIN else None
            )
            if kind is MetadataTransaction.END:
                problem = self._end(pending)
            else:
                self._try(pending)
        if self.watcher:
            self.watcher.before(entry)
        if problem:
            self._note(entry, problem)
        if self.watcher:
            self.watcher.after(entry, problem)

    def _end(self, pending: list[MetadataEntry]) -> str | None:
        """Apply the records of a transaction, or return why a broker drops them all."""
        image = self.image
        created = {one.content.topic_id for one in pending if isinstance(one.content, TopicRecord)}
        for one in pending:
            if (
                isinstance(one.content, PartitionRecord | PartitionChangeRecord)
                and one.content.topic_id not in image.names.keys() | created
            ):
                self._try(pending)
                at = one.offset
                return (
                    "a transaction ends, but a broker drops it because of its record at "
                    f"offset {at}"
                )
        for one in pending:
            self.apply(one)
        return None

    def _try(self, entries: list[MetadataEntry]) -> None:
        """Note the records that do not apply, for records that are not to change the image."""
        if entries:
            trial = ImageReplay(self.image.copy())
            for one in entries:
                trial.apply(one)
            self.image.problems = trial.image.problems
            self.image.problem_count = trial.image.problem_count

    def finish(self) -> None:
        """Note problems in an open transaction: a broker applies its records as they come."""
        self._try(self._pending or [])

    def apply(self, entry: MetadataEntry) -> None:
        """Apply a record at once."""
        self._see(entry)
        if self.watcher:
            self.watcher.before(entry)
        content, problem = entry.content, None
        if isinstance(content, Control):
            self._control(content)
        else:
            problem = self._record(content)
            if isinstance(content, RemoveTopicRecord):
                self.image.removed[content.topic_id] = entry.offset
        if problem:
            self._note(entry, problem)
        if self.watcher:
            self.watcher.after(entry, problem)

    def _see(self, entry: MetadataEntry) -> None:
        """Keep the place of a record if it is the first of its type and version, or of a level."""
        image, content = self.image, entry.content
        if isinstance(content, Control):
            image.first_control.setdefault(content.type, RecordPlace(*entry[:3]))
        elif entry.kind not in image.first_of:
            image.first_of[entry.kind] = RecordPlace(*entry[:3])
        if entry.kind[0] == _FEATURE_LEVEL and isinstance(content, OtherRecord) and content.data:
            level = content.data["name"], content.data["featureLevel"]
            image.levels.setdefault(level, RecordPlace(*entry[:3]))

    def _note(self, entry: MetadataEntry, text: str) -> None:
        image = self.image
        if image.not_understood:
            return  # a record that was not understood may hold what is missing
        image.problem_count += 1
        if len(image.problems) < MOST_PROBLEMS:
            image.problems.append(Problem(entry.path, entry.position, entry.offset, text))

    def _control(self, control: Control) -> None:
        data = control.data
        if control.type == KRAFT_VERSION and data:
            self.image.kraft_version = data["kRaftVersion"]
        elif control.type == KRAFT_VOTERS and data:
            self.image.voters = tuple(data["voters"])

    def _record(self, change: Record) -> str | None:
        """Change the image; return the reason why the record does not apply, or None."""
        image = self.image
        match change:
            case PartitionRecord():
                return self._put(change)
            case PartitionChangeRecord():
                return self._change(change)
            case ConfigRecord():
                self._configure(change)
            case TopicRecord(name, topic_id):
                image.topics[name] = topic_id
                image.partitions[topic_id] = {}
                image.names[topic_id] = name
            case RemoveTopicRecord(topic_id):
                return self._remove(topic_id)
            case OtherRecord(data=None):
                image.not_understood += 1
            case OtherRecord() if change.type in OTHERS and change.data is not None:
                return OTHERS[change.type](image, change.data)
            case OtherRecord() if change.type in CHANGES and change.data is not None:
                return CHANGES[change.type](image.streams, change.data)
        return None

    def _put(self, state: PartitionRecord) -> str | None:
        """Set the state of a partition, or return the reason why it is not valid."""
        name = f"{state.topic_id}:{state.partition_id}"
        if state.topic_id not in self.image.names:
            return f"partition {name} belongs to a topic that does not exist"
        if state.directories and len(state.directories) != len(state.replicas):
            return f"partition {name} has more or fewer directories than replicas"
        if state.recovery_state not in _RECOVERY_STATES:
            return (
                f"partition {name} is in recovery state {state.recovery_state}, which does "
                "not exist"
            )
        self.image.partitions.setdefault(state.topic_id, {})[state.partition_id] = state
        return None

    def _remove(self, topic_id: str) -> str | None:
        image = self.image
        name = image.names.pop(topic_id, None)
        image.partitions.pop(topic_id, None)
        if name is None:
            return f"topic {topic_id} is removed, but does not exist"
        # By its name, even if a topic with another id has that name, too.
        image.topics.pop(name, None)
        image.topic_configs.pop(name, None)
        return None

    def _change(self, change: PartitionChangeRecord) -> str | None:
        of_topic = self.image.partitions.get(change.topic_id, {})
        state = of_topic.get(change.partition_id)
        if state is None:
            return f"partition {change.topic_id}:{change.partition_id} changes, but does not exist"
        if change.leader is not None:
            # A change of leader begins an epoch; the record does not name it.
            state = replace(state, leader=change.leader, leader_epoch=state.leader_epoch + 1)
        changes = {name: getattr(change, name) for name in _CHANGING}
        changes = {name: value for name, value in changes.items() if value is not None}
        return self._put(replace(state, partition_epoch=state.partition_epoch + 1, **changes))

    def _configure(self, setting: ConfigRecord) -> None:
        kind, name = setting.resource_type, setting.resource_name
        if kind in (TOPIC_RESOURCE, BROKER_RESOURCE):
            image = self.image
            configs = image.topic_configs if kind == TOPIC_RESOURCE else image.broker_configs
            _set(configs, name, setting)
        else:
            _set(self.image.other_configs, (kind, name), setting)


_CHANGING = (
    "isr", "replicas", "directories", "elr", "last_known_elr", "removing", "adding",
    "recovery_state",
)  # fmt: skip


def _set(configs: dict[Key, dict[str, str]], key: Key, setting: ConfigRecord) -> None:
    of_resource = configs.setdefault(key, {})
    of_resource.pop(setting.name, None)
    if setting.value is not None:
        of_resource[setting.name] = setting.value
    if not of_resource:
        del configs[key]
