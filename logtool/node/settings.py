"""The settings of topics, by the metadata log and the broker's own file.

A setting of the topic counts before a dynamic setting of the broker, and that before the broker's
own file. Source: ``LogConfig.fromProps``, ``DynamicBrokerConfig`` (Kafka 3.9 to 4.3).
"""

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import offset_index
from logtool.formats.names import CLUSTER_METADATA
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.kafka import KAFKA
from logtool.metadata import image as metadata_image
from logtool.metadata.image import MetadataImage
from logtool.metadata.policies import Past, PastPolicies
from logtool.node.identity import identify
from logtool.node.node import Node

_NOTHING: Mapping[str, str] = {}


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
        image, found = self.image, None
        if image and topic and image.topics.get(topic) == self.topic_id(topic, own_id):
            found = next(image.dynamic_values(topic, "cleanup.policy", self.node_id), None)
        if found is None and self.static.get("log.cleanup.policy"):
            return self.static["log.cleanup.policy"], "the broker's own file"
        return found, source

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
