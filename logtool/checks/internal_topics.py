"""Partitions of an internal topic that should be in the log dirs of a node and are absent.

A coordinator loads its groups, transactions or share groups from one partition of its topic. If no
copy of the partition is there, they are not known. `logtool.node.claims` has the files that say
which partitions a node has; a copy on another node whose log dirs are given makes up for one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log.claims import Evidence
from logtool.log.dir import LogDir
from logtool.metadata.image import MetadataImage
from logtool.metadata.releases import NEWEST
from logtool.node.claims import absent_partitions, was_never_made
from logtool.node.identity import identify
from logtool.node.node import Node, nodes_of


@dataclass(frozen=True, slots=True)
class AbsentNumbers:
    """Partitions of one topic that no log dir of a node holds, although files name them."""

    topic: str
    numbers: tuple[int, ...]
    """In order; at least one."""
    evidence: Evidence
    """Place of the strongest claim about the first of them."""
    node_id: int | None

    @property
    def text(self) -> str:
        """Return which partitions are absent, and the file that names them."""
        whose = "" if self.node_id is None else f" of node {self.node_id}"
        one = len(self.numbers) == 1
        noun, verb, them = ("partition", "is", "it") if one else ("partitions", "are", "them")
        return (
            f"{noun} {_ranges(self.numbers)} of {self.topic} {verb} in no log dir{whose}, although "
            f"{self.evidence} names {them}"
        )

    def placed(self, finding: Finding) -> Finding:
        """Return a finding with the place of the evidence."""
        number = self.numbers[0] if len(self.numbers) == 1 else None
        placed = finding.placed(self.evidence.path, topic=self.topic, partition=number)
        return replace(placed, position=self.evidence.position)


def kafka_nodes(log_dirs: Iterable[LogDir], images: Mapping[Path, MetadataImage]) -> list[Node]:
    """Group the log dirs of Kafka by node; one with an unreadable meta.properties is left out.

    `images` are those of the metadata logs that were read, by log dir.
    """
    known = [identify(one) for one in log_dirs if one.flavour.has_checkpoints]
    nodes = nodes_of([one for one in known if not one.unread], NEWEST)
    for node in nodes:
        if node.metadata_log and node.metadata_log.path in images:
            node.image = images[node.metadata_log.path]
    return nodes


def absent(nodes: Iterable[Node], topic: str, here: Collection[int]) -> Iterator[AbsentNumbers]:
    """Yield the partitions of a topic that each node should have, without those in `here`.

    A partition that the broker has not made yet, or in which it had no record, is not missed.
    """
    for node in nodes:
        found = [
            one
            for one in absent_partitions(node)
            if one.key[0] == topic and one.key[1] not in here
            and (one.state is not None or one.end) and not was_never_made(node, one)
        ]  # fmt: skip
        if found:
            numbers = tuple(one.key[1] for one in found)
            yield AbsentNumbers(topic, numbers, found[0].claims[0].evidence, node.node_id)


def lists_partitions(nodes: Iterable[Node]) -> bool:
    """Return whether a file of some node lists the partitions that it has."""
    return any(_lists(node) for node in nodes)


def _lists(node: Node) -> bool:
    if node.image is not None and not node.image.damage:
        return True
    with suppress(UnreadableError):
        return any(one.root.rows(FileKind.REPLICATION_CHECKPOINT) for one in node.log_dirs)
    return False


def _ranges(numbers: Iterable[int]) -> str:
    """Return numbers in order as text, with a range for each run of them."""
    runs: list[list[int]] = []
    for one in numbers:
        if runs and runs[-1][1] == one - 1:
            runs[-1][1] = one
        else:
            runs.append([one, one])
    return ", ".join(f"{first}-{last}" if first < last else str(first) for first, last in runs)
