"""The releases that can have written log dirs, from evidence in their files.

Source: the releases that first wrote each file or key: ``LeaderEpochCheckpointFile`` and
``ProducerStateManager`` (0.11), ``PartitionMetadataFile`` (2.8), ``MetaPropertiesEnsemble``
(``directory.id``, 3.7), ``MetadataVersion``; 4.0 removed ZooKeeper.
"""

from collections.abc import Iterator, Sequence

from logtool.formats.names import DirectoryKind, FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.metadata import releases
from logtool.metadata.releases import METADATA_VERSION
from logtool.node.node import Node

_MOST_PARTITIONS = 100
"""Partition dirs that are looked into: one file of one release is enough."""


@dataclass(frozen=True, slots=True)
class ReleaseEvidence:
    """A fact that bounds the releases that wrote the log dirs."""

    text: str
    first: tuple[int, int] | None = None
    """Oldest release that fits; None if the fact gives no lower bound."""
    last: tuple[int, int] | None = None
    """Newest release that fits; None if the fact gives no upper bound."""


@dataclass(frozen=True, slots=True)
class WrittenBy:
    """The releases that fit all evidence."""

    evidence: Sequence[ReleaseEvidence]

    @property
    def first(self) -> tuple[int, int] | None:
        """Return the oldest release that fits; None if it is not known."""
        return max((one.first for one in self.evidence if one.first), default=None)

    @property
    def last(self) -> tuple[int, int] | None:
        """Return the newest release that fits; None if it is not known."""
        return min((one.last for one in self.evidence if one.last), default=None)

    @property
    def text(self) -> str | None:
        """Return the range as text: ``2.8 to 3.9``, ``2.8 or later``; None without evidence."""
        first, last = self.first, self.last
        if first and last:
            one = first == last
            until = "" if one else f" to {releases.text(last)}"
            return releases.text(first) + until
        if first:
            return f"{releases.text(first)} or later"
        return f"{releases.text(last)} or earlier" if last else None

    @property
    def reasons(self) -> Sequence[str]:
        """Return the facts that set a bound of the range."""
        first, last = self.first, self.last
        return [
            one.text
            for one in self.evidence
            if (one.first and one.first == first) or (one.last and one.last == last)
        ]


def of_node(node: Node) -> WrittenBy:
    """Return the releases that can have written the log dirs of a node."""
    return WrittenBy(list(_evidence(node)))


def _evidence(node: Node) -> Iterator[ReleaseEvidence]:
    registered = list(_registration(node))
    if registered:
        yield from registered
        return  # Files of an older or newer release, before it, bound nothing.
    for name, level in (node.image.features if node.image else {}).items():
        shown = releases.of_feature(level) if name == METADATA_VERSION else None
        if shown:
            text = f"metadata.version is {level} ({releases.feature_name(level)})"
            yield ReleaseEvidence(text, first=shown)
    yield from _of_meta_properties(node)
    yield from _of_partitions(node)


def _registration(node: Node) -> Iterator[ReleaseEvidence]:
    level, shown = node.shown_level, node.shown_kafka
    if level is None:
        return
    text = f"the node registered with metadata.version up to {level}"
    if shown:
        yield ReleaseEvidence(f"{text} ({releases.feature_name(level)})", shown, shown)
    else:
        yield ReleaseEvidence(f"{text}, newer than this logtool", releases.NEWEST)


def _of_meta_properties(node: Node) -> Iterator[ReleaseEvidence]:
    metas = [one.meta for one in node.log_dirs if one.meta]
    if any(meta.directory_id for meta in metas):
        yield ReleaseEvidence("meta.properties has directory.id", first=(3, 7))
    if any(meta.version == 1 for meta in metas):
        yield ReleaseEvidence("meta.properties has version 1", first=(2, 8))
    if any(meta.version == 0 and meta.cluster_id for meta in metas):
        yield ReleaseEvidence("meta.properties has cluster.id", first=(2, 4))
    if node.is_zookeeper:
        text = "meta.properties has version 0, and there is no metadata log"
        yield ReleaseEvidence(text, last=releases.LAST_WITH_ZOOKEEPER)


def _of_partitions(node: Node) -> Iterator[ReleaseEvidence]:
    """Yield the evidence in the first partition dirs, each fact once."""
    dirs = [
        path
        for one in node.log_dirs
        for path, directory in one.root.partitions
        if directory.kind is DirectoryKind.LIVE
    ][:_MOST_PARTITIONS]
    fixed = {kind for path in dirs for kind in opening.open_partition(path).fixed}
    if FileKind.PARTITION_METADATA in fixed:
        yield ReleaseEvidence("partitions have partition.metadata", first=(2, 8))
    elif FileKind.LEADER_EPOCH_CHECKPOINT in fixed:
        yield ReleaseEvidence("partitions have leader-epoch-checkpoint", first=(0, 11))
