"""The settings of topics, by the metadata log and the broker's own file.

A setting of the topic counts before a dynamic setting of the broker, and that before the broker's
own file. Source: ``LogConfig.fromProps``, ``DynamicBrokerConfig`` (Kafka 3.9 to 4.3).
"""

import time
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import offset_index
from logtool.formats.java_text import parse_long
from logtool.formats.names import CLUSTER_METADATA
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.kafka import KAFKA
from logtool.metadata import image as metadata_image
from logtool.metadata.image import MetadataImage
from logtool.metadata.log_start import is_tiered
from logtool.metadata.policies import Past, PastPolicies
from logtool.metadata.setting_values import SettingSource, in_file
from logtool.node import own_file
from logtool.node.identity import identify
from logtool.node.node import Node

_NOTHING: Mapping[str, str] = {}
ALWAYS_COMPACTED = frozenset({"__consumer_offsets", "__transaction_state"})
"""Topics that a broker compacts even if their settings say otherwise."""
_WEEK_MS = 168 * 3_600_000
"""Default of ``log.retention.hours``."""


@dataclass(frozen=True, slots=True)
class LogRetention:
    """Settings of a topic by which a broker deletes the beginning of its logs."""

    deletes: bool
    """True if ``cleanup.policy`` includes ``delete``."""
    compacts: bool = False
    """True if a broker compacts the topic."""
    ms: int = _WEEK_MS
    """``retention.ms``; -1 for no limit."""
    bytes: int = -1
    """``retention.bytes``; -1 for no limit."""
    is_remote: bool = False
    """True if the beginning may be in remote storage only."""
    is_tiered: bool = False
    """True if the broker copies segments to remote storage, and deletes them there."""

    def may_have_deleted(self, size: int, oldest_ms: int, made_ns: int, stopped_ns: int) -> bool:
        """Return whether retention may have deleted segments before the log that is left.

        The log has `size` bytes and begins with a batch of the time `oldest_ms`. The broker made
        its directory at `made_ns` and ran until `stopped_ns`; 0 for a time that is not known.
        """
        if not self.deletes:
            return False
        if 0 <= self.bytes <= size:
            return True
        if self.ms < 0:
            return False
        until_ms = (stopped_ns or time.time_ns()) // 1_000_000 - self.ms
        return made_ns // 1_000_000 <= until_ms or oldest_ms <= until_ms


@dataclass()
class Settings:
    """The settings of topics, as far as they are known."""

    image: MetadataImage | None = None
    node_id: int | None = None
    static: Mapping[str, str] = field(default_factory=dict)
    """The settings in the broker's own file."""
    metadata_dir: Path | None = None
    """Log dir of the metadata log, from which `past` is read; None: `past` is not known."""

    def ahead_ms(self, topic: str | None) -> int | None:
        """Return how far ahead a topic's timestamps may be, in ms; None where it is not known.

        For the metadata log it is not known either: controllers write it, and no setting applies.
        """
        if topic in (None, CLUSTER_METADATA):
            return None
        image = self.image
        if image is None or image.damage:
            image = MetadataImage(static=self.static)
        return image.ahead_ms(topic or "", self.node_id)

    def index_interval(self, topic: str | None) -> int:
        """Return the bytes of log for which an offset index may lack an entry, as far as is known.

        It is ``index.interval.bytes`` or its default, which may have applied earlier: the larger.
        """
        image = self.image or MetadataImage(static=self.static)
        known = image.topic_number(topic or "", "index.interval.bytes", 0, self.node_id)
        return max(known, offset_index.DEFAULT_INTERVAL)

    def topic_id(self, topic: str | None, own: str | None) -> str | None:
        """Return `own`, the id of a topic, else the id of the topic that has its name today."""
        return own or (self.image.topics.get(topic or "") if self.image else None)

    def policy(self, topic: str | None, own_id: str | None) -> tuple[str | None, str]:
        """Return ``cleanup.policy`` and its source; None where no source sets the policy.

        `own_id` is the topic id in partition.metadata. The metadata log is not asked where it knows
        another topic of that name.
        """
        source = "the metadata log"
        if topic == CLUSTER_METADATA:
            return "delete", source  # it is never compacted: its snapshots take the place of that
        image, values = self.image, in_file("cleanup.policy", self.static)
        if image and topic and image.topics.get(topic) == self.topic_id(topic, own_id):
            values = image.sourced_values(topic, "cleanup.policy", self.node_id)
        found = next(values, None)
        if found and found.source is SettingSource.FILE:
            source = "the broker's own file"
        return (found.value if found else None), source

    def retention(self, topic: str) -> LogRetention | None:
        """Return the settings by which beginnings are deleted; None if they are not known."""
        image = self.image
        if image is None or image.damage or topic not in image.topics:
            return None
        policy = image.topic_config(topic, "cleanup.policy", self.node_id) or "delete"
        remote = image.topic_config(topic, "remote.storage.enable", self.node_id)
        ms = image.topic_config(topic, "retention.ms", self.node_id)
        size = image.topic_config(topic, "retention.bytes", self.node_id)
        return LogRetention(
            deletes="delete" in policy,
            compacts="compact" in policy or topic in ALWAYS_COMPACTED,
            ms=_number(ms, _WEEK_MS),
            bytes=_number(size, -1),
            is_remote=remote == "true",
            is_tiered=is_tiered(image, topic)
            and own_file.switch(self.static, own_file.REMOTE_STORAGE) is not False,
        )

    def past(self, topic: str | None, own_id: str | None) -> Past | None:
        """Return the policies that a topic had, also a deleted one; None where it is not known.

        The first call reads the metadata log as far back as it goes.
        """
        topic_id = self.topic_id(topic, own_id)
        if self._policies is None or topic_id is None or topic == CLUSTER_METADATA:
            return None
        return self._policies.of(topic_id)

    @cached_property
    def _policies(self) -> PastPolicies | None:
        return PastPolicies(self.metadata_dir) if self.metadata_dir else None


def _number(text: str | None, default: int) -> int:
    """Return a whole number, or `default` if the text is not one."""
    found = parse_long(text or "")
    return default if found is None else found


def of_node(node: Node) -> Settings:
    """Return the settings in the metadata log of a node; without one, those in its own file."""
    holder = node.metadata_log
    return Settings(node.image, node.node_id, node.static, holder.path if holder else None)


def within(path: Path, static: Mapping[str, str] = _NOTHING) -> Settings:
    """Return the settings in the metadata log of a log dir; without one, `static` alone."""
    if not files.has_dir(path / metadata_image.DIRECTORY):
        return Settings(static=static)
    try:
        meta = identify(opening.open_log_dir(path, KAFKA)).meta
        image = metadata_image.read(path)
    except UnreadableError:
        return Settings(static=static)
    image.static = static
    return Settings(image, meta.node_id if meta else None, static, path)


def around(path: Path, static: Mapping[str, str] = _NOTHING) -> Settings:
    """Return the settings in the log dir around a partition dir, or around a file in one.

    At a URL only `static` counts, because each further file is a request.
    """
    if files.is_remote(path):
        return Settings(static=static)
    return within(path.resolve().parent, static)
