"""Topics that were ever compacted, as far back as a metadata log goes.

A topic with the policy delete today may have been compacted before: its gaps stay. A snapshot holds
the settings at its time, and none from before, so that the answer begins where the log can be
applied from. A broker's server.properties may have set another policy: it is not in the metadata
log.
"""

from dataclasses import field
from functools import cached_property
from pathlib import Path

from logtool.errors import UnreadableError
from logtool.formats.messages.cluster_metadata import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    ConfigRecord,
    PartitionRecord,
)
from logtool.lazy_dataclass import dataclass
from logtool.metadata import image as metadata_image
from logtool.metadata.reading import MetadataEntry
from logtool.metadata.state import MetadataImage

_POLICY, _DEFAULT = "cleanup.policy", "log.cleanup.policy"


@dataclass(frozen=True, slots=True)
class Past:
    """Policies that a topic had, as far as a metadata log shows them."""

    since: int
    """Offset of the metadata log from which on all of them are known."""
    compacted_at: int | None
    """Offset from which on the topic was compacted for the first time; None if it never was."""


@dataclass(slots=True)
class _Watcher:
    """Watcher that notes the first time that each topic is compacted."""

    image: MetadataImage = field(default_factory=MetadataImage)
    since: int = 0
    compacted: dict[str, int] = field(default_factory=dict)
    """Offset of the first time, by topic id."""
    seen: set[str] = field(default_factory=set)
    """Ids of all topics that existed, also of deleted ones."""

    def begin(self, image: MetadataImage) -> None:
        """Take the image that the replay begins with."""
        self.image, self.since = image, image.snapshot_offset
        self._look_at_all(self.since)

    def before(self, entry: MetadataEntry) -> None:
        """Nothing is read from the image before a record."""

    def after(self, entry: MetadataEntry, problem: str | None) -> None:
        """Look at the topics that a record may have changed."""
        match entry.content:
            case ConfigRecord(resource_type=kind, resource_name=topic, name=name):
                if kind == TOPIC_RESOURCE and name == _POLICY:
                    self._look(topic, entry.offset)
                elif kind == BROKER_RESOURCE and name == _DEFAULT:
                    self._look_at_all(entry.offset)
            # The settings of a new topic come between its record and its partitions.
            case PartitionRecord(topic_id=topic_id):
                self._look(self.image.names.get(topic_id, ""), entry.offset)

    def _look_at_all(self, offset: int) -> None:
        for topic in self.image.topics:
            self._look(topic, offset)

    def _look(self, topic: str, offset: int) -> None:
        image = self.image
        topic_id = image.topics.get(topic)
        if topic_id is None or topic_id in self.compacted:
            return
        self.seen.add(topic_id)
        own = image.topic_configs.get(topic, {}).get(_POLICY)
        # Any broker's default counts: batches come from every leader that there was.
        defaults = [of_node.get(_DEFAULT, "") for of_node in image.broker_configs.values()]
        if any("compact" in policy for policy in ([own] if own is not None else defaults)):
            self.compacted[topic_id] = offset


@dataclass()
class PastPolicies:
    """The policies that topics had, read at the first query."""

    metadata_dir: Path
    """The log dir with the metadata log, or its directory."""

    @cached_property
    def _read(self) -> _Watcher | None:
        watcher = _Watcher()
        try:
            image = metadata_image.read(self.metadata_dir, watcher=watcher)
        except UnreadableError:
            return None
        return None if image.damage else watcher

    def of(self, topic_id: str) -> Past | None:
        """Return the policies of a topic, also of a deleted one; None if they are not known."""
        watcher = self._read
        if watcher is None or topic_id not in watcher.seen:
            return None
        return Past(watcher.since, watcher.compacted.get(topic_id))
