"""Partitions that the files of a node name, and that no log dir of it holds.

The metadata log gives partitions to a node, and offset checkpoints name those that a broker had
when it wrote them. The metadata log is the better witness: a partition that it does not give to the
node was deleted or moved, so that rows of it are stale.
"""

import re
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats.messages.cluster_metadata import PartitionRecord
from logtool.formats.names import CLUSTER_METADATA, DirectoryKind, FileKind, TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.claims import (
    Claim,
    ClaimKind,
    Evidence,
    Presence,
    Revocation,
    standing,
    unmet,
)
from logtool.log.dir import OF_TODAY
from logtool.log.kafka import KAFKA
from logtool.metadata import image as metadata_image
from logtool.node.identity import LogDirIdentity, identify
from logtool.node.node import NO_LOG_DIRS, Node

_KINDS = {
    FileKind.REPLICATION_CHECKPOINT: ClaimKind.HIGH_WATERMARK,
    FileKind.RECOVERY_POINT_CHECKPOINT: ClaimKind.RECOVERY_POINT,
    FileKind.LOG_START_CHECKPOINT: ClaimKind.LOG_START,
    FileKind.CLEANER_CHECKPOINT: ClaimKind.CLEANER_OFFSET,
}
_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""Names that a topic may have (``Topic.validate``)."""
_ABSENT = Presence(exists=False)


@dataclass(frozen=True, slots=True)
class AbsentPartition:
    """Partition that no log dir of its node holds, with the claims that it should be there."""

    key: TopicPartition
    claims: tuple[Claim, ...]
    """The strongest first; at least one."""
    home: LogDirIdentity
    """Log dir that a row names it in, else that of its assignment, else the first of the node."""
    state: PartitionRecord | None = None
    """Replicas and ISR in the metadata log; None if the metadata log is not known."""
    aside: Path | None = None
    """Directory of the partition whose name ends in -stray, or else in -delete; None without."""
    disk_is_new: bool = False
    """True if another log dir, with another id, stands in place of that of its assignment."""

    @property
    def is_deleted(self) -> bool:
        """Return whether a directory of the partition waits to be deleted."""
        return self.aside is not None and self.aside.name.endswith(DirectoryKind.DELETE)

    @property
    def rows(self) -> list[Claim]:
        """Return the claims of offset checkpoints."""
        return [one for one in self.claims if one.kind is not ClaimKind.REPLICA]

    @property
    def end(self) -> int:
        """Return the largest offset that a claim proves; 0 if no claim proves a record."""
        return max(one.offset for one in self.claims)


def has_list(nodes: Iterable[Node], partition_dirs: Iterable[Path] = ()) -> bool | None:
    """Return whether each node has a file that names its partitions; None without a log of Kafka.

    That is a metadata log without damage, or an offset checkpoint with a row. The log dirs around
    `partition_dirs` count too.
    """
    known = {id(node): node for node in nodes if node.log_dirs}
    for path in partition_dirs:
        flavour = None if files.is_remote(path) else opening.try_flavour(path)
        if flavour is None or not flavour.has_checkpoints:
            continue
        with suppress(UnreadableError):
            home = opening.open_log_dir(path.resolve().parent, KAFKA)
            node = Node([identify(home)], None)
            known[id(node)] = node
    return all(map(_has_list, known.values())) if known else None


def _has_list(node: Node) -> bool:
    has_log = node.metadata_log is not None or node.elsewhere is not None
    if has_log and node.image is not None and not node.image.damage:
        return True
    for _ in _rows(node):
        return True
    return False


def absent_partitions(node: Node) -> Iterator[AbsentPartition]:
    """Yield the partitions whose claims are not met by a directory, by topic and number.

    A checkpoint that cannot be read makes no claim; `verify` reports it.
    """
    there = {
        (directory.topic, directory.partition)
        for one in node.log_dirs
        for _, directory in one.root.partitions
        if directory.kind in OF_TODAY
    }
    aside = {
        (directory.topic, directory.partition): path
        for kind in (DirectoryKind.DELETE, DirectoryKind.STRAY)
        for one in node.log_dirs
        for path, directory in one.root.partitions
        if directory.kind is kind
    }
    states = _assigned(node)
    facts: dict[TopicPartition, list[Claim | Revocation]] = {}
    homes: dict[TopicPartition, LogDirIdentity] = {}
    for claim, home in (*_replicas(node, states, there), *_rows(node, there)):
        facts.setdefault(claim.about, []).append(claim)
        homes[claim.about] = home
    for revocation in _revocations(node, states, facts):
        facts[revocation.about].append(revocation)
    for key in sorted(facts):
        claims = tuple(unmet(standing(facts[key]), _ABSENT))
        if claims:
            state = states.get(key)
            yield AbsentPartition(
                key, claims, homes[key], state, aside.get(key), _disk_is_new(node, state)
            )


def was_never_made(node: Node, absent: AbsentPartition) -> bool:
    """Return whether the broker stopped before it made the directory of a new partition.

    It then has no row in replication-offset-checkpoint, which has one for each partition of the
    broker and is written every five seconds. And the metadata log has not changed it since it was
    created, or it is adding this replica, which is not in sync yet. An ISR without the node alone
    shows nothing: a stop in order takes each replica out of it.
    """
    state = absent.state
    if state is None or absent.rows:
        return False
    if absent.disk_is_new or FileKind.REPLICATION_CHECKPOINT not in absent.home.root.files:
        return False
    is_new = state.leader_epoch == 0 and state.partition_epoch == 0
    return is_new or (node.node_id in state.adding and node.node_id not in state.isr)


def _disk_is_new(node: Node, state: PartitionRecord | None) -> bool:
    """Return whether the metadata log gives a replica to a log dir that is not there any more."""
    if state is None or node.node_id is None:
        return False
    assigned = _directory(state, node.node_id)
    ids = {one.meta.directory_id for one in node.log_dirs if one.meta}
    return assigned is not None and assigned not in ids


def _assigned(node: Node) -> dict[TopicPartition, PartitionRecord]:
    """Return the partitions that the metadata log gives to the node in a log dir that is given."""
    image, me = node.image, node.node_id
    if image is None or image.damage or me is None:
        return {}
    if image.streams:
        return {}  # the partitions of AutoMQ are in a bucket
    elsewhere = node.ids_not_given()
    states = {}
    for topic_id, of_topic in image.partitions.items():
        for number, state in of_topic.items():
            if me not in state.replicas:
                continue
            if _directory(state, me) not in elsewhere:
                states[image.names[topic_id], number] = state
    return states


def _directory(state: PartitionRecord, node_id: int) -> str | None:
    """Return the directory id of a replica; None if the metadata log does not say one."""
    if len(state.directories) != len(state.replicas):
        return None
    found = state.directories[state.replicas.index(node_id)]
    return None if found in NO_LOG_DIRS else found


def _replicas(
    node: Node, states: dict[TopicPartition, PartitionRecord], there: Container[TopicPartition]
) -> Iterator[tuple[Claim, LogDirIdentity]]:
    """Yield the claims of the metadata log, each with the log dir of its assignment.

    Nothing is yielded about partitions that are `there`.
    """
    source = node if node.metadata_log or node.elsewhere is None else node.elsewhere
    holder, me = source.metadata_log, node.node_id
    if holder is None or me is None:
        return
    evidence = Evidence(holder.path / metadata_image.DIRECTORY)
    by_id = {one.meta.directory_id: one for one in node.log_dirs if one.meta}
    for key, state in states.items():
        if key in there:
            continue
        home = by_id.get(_directory(state, me), node.log_dirs[0])
        yield Claim(key, ClaimKind.REPLICA, evidence), home


def _rows(
    node: Node, there: Container[TopicPartition] = ()
) -> Iterator[tuple[Claim, LogDirIdentity]]:
    """Yield the claims of the offset checkpoints, each with the log dir of the file.

    Nothing is yielded about partitions that are `there`.
    """
    for home in node.log_dirs:
        for kind, claims in _KINDS.items():
            with suppress(UnreadableError):
                for key, row in home.root.rows(kind).items():
                    if key in there:
                        continue
                    if not _NAME.fullmatch(row.topic) or row.partition < 0:
                        continue  # Damage: no broker wrote such a row.
                    path = home.root.files[kind].path
                    evidence = Evidence(path, row.line.number, row.line.position)
                    yield Claim(key, claims, evidence, max(0, row.offset)), home


def _revocations(
    node: Node,
    states: dict[TopicPartition, PartitionRecord],
    claimed: Iterable[TopicPartition],
) -> Iterator[Revocation]:
    """Yield the facts that end claims: a directory that is being deleted, other assignments."""
    image = node.image
    going = {
        (directory.topic, directory.partition): path
        for one in node.log_dirs
        for path, directory in one.root.partitions
        if directory.kind is DirectoryKind.DELETE
    }
    rows = frozenset(_KINDS.values())
    for key in tuple(claimed):
        if key in going:
            yield Revocation(key, Evidence(going[key]), rows)
        elif key[0] == CLUSTER_METADATA:
            yield Revocation(key, Evidence(node.log_dirs[0].path))
        elif image is not None and not image.damage and key not in states:
            holder = node.metadata_log or node.log_dirs[0]
            yield Revocation(key, Evidence(holder.path / metadata_image.DIRECTORY), rows)
