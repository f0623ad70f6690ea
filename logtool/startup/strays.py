"""The fate of a log that the broker's metadata log does not know, release by release.

=====  =========================================  =============================================
       a topic id that is not known               no ``partition.metadata``
=====  =========================================  =============================================
3.3    the directory is deleted once all logs     it is written again, if the metadata log has a
       are loaded                                 topic of that name here; if not, the log stays,
                                                  and nothing is deleted at all
3.7    the directory is renamed to ``-stray``     the directory is renamed to ``-stray``
=====  =========================================  =============================================

Source: ``BrokerMetadataPublisher.findStrayPartitions``, ``UnifiedLog.assignTopicId`` (3.3),
``LogManager.isStrayKraftReplica`` (3.7, 3.9), ``LogManager.isStrayReplica`` (4.3).
"""

from collections.abc import Iterator
from pathlib import Path

from logtool.checks.broker_dirs import WITH_STRAYS
from logtool.formats.names import DirectoryKind, PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import OF_TODAY
from logtool.node.identity import topic_id_of
from logtool.node.node import Node

GONE = frozenset({"stray", "delete"})
"""Actions after which the broker no longer has the log."""


@dataclass(frozen=True, slots=True)
class StrayOutcome:
    """The fate of a directory once its log is loaded."""

    action: str
    """``stray``, ``delete``, ``adopt`` or ``keep``, as in `logtool.actions`."""
    text: str


def fate(node: Node, path: Path, directory: PartitionDirectory) -> StrayOutcome | None:
    """Return the fate of a stray log in use; None without a metadata log that decides it."""
    if not node.image:
        return None
    topic_id = topic_id_of(path)
    known = f"the metadata log up to offset {node.image.offset}"
    why = f"{known} does not give topic id {topic_id} to node {node.node_id}"
    if topic_id is None:
        why = (
            "it has no topic id, because it has no partition.metadata; an empty log takes its place"
        )
    if node.kafka >= WITH_STRAYS:
        return StrayOutcome("stray", f"gets a name that ends in {DirectoryKind.STRAY}: {why}")
    if topic_id is None:
        adopted = id_by_name(node, directory)
        if adopted:
            text = f"gets a partition.metadata with {adopted}, the id that {known} gives to it"
            return StrayOutcome("adopt", text)
        text = f"stays: it has no topic id, and {known} has no such partition"
        return StrayOutcome(
            "keep",
            f"{text}; because of this directory the broker deletes no stray directory",
        )
    holder = _without_any_id(node)
    if holder:
        return StrayOutcome("keep", f"stays, but only because {holder} has no topic id: {why}")
    return StrayOutcome("delete", f"is deleted with all its records: {why}")


def gone(node: Node) -> Iterator[tuple[Path, PartitionDirectory, StrayOutcome]]:
    """Yield the logs in use that the start of a node puts aside or deletes as strays."""
    for one in node.log_dirs:
        for path, directory in one.root.partitions:
            if directory.kind in OF_TODAY and node.is_stray(path, directory):
                outcome = fate(node, path, directory)
                if outcome and outcome.action in GONE:
                    yield path, directory, outcome


def id_by_name(node: Node, directory: PartitionDirectory) -> str | None:
    """Return the topic id of the name, if the metadata log gives the partition to the node."""
    image, node_id = node.image, node.node_id
    if not image or node_id is None or directory.kind is not DirectoryKind.LIVE:
        return None
    topic_id = image.topics.get(directory.topic)
    stray = image.is_stray(directory.topic, directory.partition, topic_id, node_id)
    return None if stray else topic_id


def _without_any_id(node: Node) -> Path | None:
    """Return a log that has no topic id and gets none; None without one."""
    return next(
        (
            path
            for one in node.log_dirs
            for path, directory in one.root.partitions
            if directory.kind in OF_TODAY
            and node.is_stray(path, directory)
            and topic_id_of(path) is None
            and not id_by_name(node, directory)
        ),
        None,
    )
