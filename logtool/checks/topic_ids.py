"""Rule for the topic ids of partitions: those of one topic of a cluster are the same."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from logtool.findings import Finding
from logtool.formats.names import FileKind, PartitionDirectory
from logtool.log.dir import OF_TODAY, LogDir
from logtool.node.node import Node, images_of

if TYPE_CHECKING:
    from logtool.checks.report import PartitionSummary


class TopicIds:
    """The topic ids in the partition dirs of clusters."""

    def __init__(self) -> None:
        self._places: dict[
            tuple[str | Path, str], list[tuple[LogDir, PartitionDirectory, str]]
        ] = {}
        """By cluster and topic: log dir and name of each partition dir, and its topic id. A log dir
        whose cluster is not known is a cluster of its own."""

    def note(
        self,
        node: Node | None,
        root: LogDir,
        facts: Mapping[PartitionDirectory, "PartitionSummary"],
    ) -> None:
        """Add the partitions of one log dir of a node; None if the node is not known."""
        cluster = (node.cluster_id if node else None) or root.path
        for directory, one in facts.items():
            # A topic that was deleted and created again leaves old -delete and -stray directories.
            if one.topic_id is not None and directory.kind in OF_TODAY:
                places = self._places.setdefault((cluster, directory.topic), [])
                places.append((root, directory, one.topic_id))

    def check(self, nodes: Mapping[Path, Node]) -> Iterator[Finding]:
        """Yield partitions whose topic id differs from that of the topic.

        The right id is that in the newest metadata log, else that of most partitions. If as many
        have another one, it is not known, and the partitions with another id than the first are
        yielded. `nodes` has the node of each log dir.
        """
        for (_, topic), places in self._places.items():
            counts = Counter(topic_id for *_, topic_id in places)
            if len(counts) < 2:
                continue
            (right, most), (_, next_most) = counts.most_common(2)
            images = images_of(nodes, places[0][0].path)
            known = images[0].topics.get(topic) if images else None
            right = known if known is not None and known in counts else right
            home, sample = next((root, one.name) for root, one, own in places if own == right)
            for root, directory, topic_id in places:
                if topic_id == right:
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
