"""Rule for the topic ids of partitions: those of one topic of a cluster are the same."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from logtool.findings import Finding
from logtool.formats.names import FileKind, PartitionDirectory
from logtool.log.dir import OF_TODAY, LogDir
from logtool.node.identity import topic_id_of
from logtool.node.node import Node, images_of

if TYPE_CHECKING:
    from logtool.checks.report import PartitionSummary


_Place = tuple[LogDir, PartitionDirectory, str]
"""Log dir and name of a partition dir, and its topic id."""


class TopicIds:
    """The topic ids in the partition dirs of clusters."""

    def __init__(self) -> None:
        self._places: dict[tuple[str | Path, str], dict[Path, _Place]] = {}
        """By cluster and topic, and by the path of each partition dir. A log dir whose cluster is
        not known is a cluster of its own."""
        self._asked: set[Path] = set()
        """The partition dirs that findings are wanted about."""

    def note(
        self,
        node: Node | None,
        root: LogDir,
        facts: Mapping[PartitionDirectory, "PartitionSummary"],
    ) -> None:
        """Add the partitions of one log dir of a node; None if the node is not known."""
        for directory, one in facts.items():
            # A topic that was deleted and created again leaves old -delete and -stray directories.
            if one.topic_id is not None and directory.kind in OF_TODAY:
                self._asked.add(self._add(node, root, directory, one.topic_id))

    def note_one(self, node: Node | None, root: LogDir, directory: PartitionDirectory) -> None:
        """Add one partition of a log dir, and the others of its topic to compare it with."""
        if directory.kind not in OF_TODAY:
            return
        self._asked.add(root.path / directory.name)
        if root.path / directory.name in self._places.get(_key(node, root, directory), {}):
            return
        for path, other in root.partitions:
            if other.topic == directory.topic and other.kind in OF_TODAY:
                topic_id = topic_id_of(path)
                if topic_id is not None:
                    self._add(node, root, other, topic_id)

    def _add(
        self, node: Node | None, root: LogDir, directory: PartitionDirectory, topic_id: str
    ) -> Path:
        path = root.path / directory.name
        places = self._places.setdefault(_key(node, root, directory), {})
        places[path] = root, directory, topic_id
        return path

    def check(self, nodes: Mapping[Path, Node]) -> Iterator[Finding]:
        """Yield partitions whose topic id differs from that of the topic.

        The right id is that in the newest metadata log, else that of most partitions. If as many
        have another one, it is not known, and the partitions with another id than the first are
        yielded. `nodes` has the node of each log dir.
        """
        for (_, topic), by_path in self._places.items():
            places = list(by_path.values())
            counts = Counter(topic_id for *_, topic_id in places)
            if len(counts) < 2:
                continue
            (right, most), (_, next_most) = counts.most_common(2)
            images = images_of(nodes, places[0][0].path)
            known = images[0].topics.get(topic) if images else None
            right = known if known is not None and known in counts else right
            home, sample = next((root, one.name) for root, one, own in places if own == right)
            for root, directory, topic_id in places:
                if topic_id == right or root.path / directory.name not in self._asked:
                    continue
                text = f"topic id {topic_id}, but {home.path / sample} has {right}"
                if known == right:
                    text += ", as the metadata log has"
                elif most == next_most:
                    text += ": which one is right is not known without the metadata log"
                yield Finding(
                    "partition-metadata/topic-id",
                    text,
                    topic=topic,
                    path=root.path / directory.name / FileKind.PARTITION_METADATA.value,
                    partition=directory.partition,
                )


def _key(node: Node | None, root: LogDir, directory: PartitionDirectory) -> tuple[str | Path, str]:
    return (node.cluster_id if node else None) or root.path, directory.topic
