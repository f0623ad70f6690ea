"""Partitions that only some of the copies of one log dir have, such as a log dir and its backup.

Between different brokers it is normal that a partition is on one of them only. Of two copies of one
log dir, the one without the partition shows whether it should be there: by its own metadata log, or
by its own checkpoints.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cached_property
from itertools import combinations
from pathlib import Path

from logtool.copies.copy import Copy
from logtool.disk import shell
from logtool.formats.names import CLUSTER_METADATA, DirectoryKind, TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import OF_TODAY
from logtool.node import dir_copies
from logtool.node.claims import AbsentPartition, absent_partitions, was_never_made
from logtool.node.identity import LogDirIdentity, topic_id_of
from logtool.node.node import Node


class AbsentState(StrEnum):
    """The reason why a copy of a log dir lacks a partition that another copy has."""

    MISSING = "missing"
    """Its own metadata log gives it the partition, or its checkpoints have rows of it."""
    NOT_ASSIGNED = "not-assigned"
    """Its metadata log does not: the partition was created, deleted or moved in between."""
    UNKNOWN = "unknown"
    """It has no metadata log that can be read, and no rows of the partition."""


@dataclass(frozen=True, slots=True)
class AbsentCopy:
    """A partition that one copy of a log dir has, and another copy of it lacks."""

    topic: str
    partition: int
    path: Path
    """The directory in the copy that has it."""
    log_dir: Path
    """The copy of the log dir that lacks it."""
    state: AbsentState
    next: str | None = None
    """The command that copies it; None if it is not missing, or is of another topic."""


class LogDirCopies:
    """The log dirs that were given to be compared, those that are copies of one log dir apart."""

    def __init__(self, log_dirs: Sequence[LogDirIdentity]) -> None:
        self._pairs = [
            pair
            for pair in combinations(log_dirs, 2)
            if pair[0].path != pair[1].path and dir_copies.are_copies(*pair)
        ]
        self._known = {one.path: _Expected(one) for pair in self._pairs for one in pair}
        self._log_dirs = log_dirs

    @property
    def paths(self) -> frozenset[Path]:
        """Return the log dirs that are copies of another one: their node id does not name them."""
        return frozenset(self._known)

    def has_new_topic(self, copies: Sequence[Copy]) -> bool:
        """Return whether a topic was deleted and created again between copies of one log dir.

        Then each copy of the partition has the topic id of its own metadata log.
        """
        homes = [self._known.get(Path(copy.path).parent) for copy in copies]
        return len({copy.topic_id for copy in copies}) > 1 and all(
            home is not None and home.has_topic(copy.topic, copy.topic_id)
            for home, copy in zip(homes, copies, strict=True)
        )

    def absent(self, there: Mapping[Path, Mapping[TopicPartition, Path]]) -> Iterator[AbsentCopy]:
        """Yield each partition that only one of two copies of a log dir has, in order.

        `there` has the directories of the partitions that are looked at, by log dir.
        """
        found: dict[tuple[TopicPartition, Path], AbsentCopy] = {}
        for pair in self._pairs:
            for has, lacks in (pair, pair[::-1]):
                mine, judged = there.get(has.path, {}), self._known[lacks.path]
                for key in mine.keys() - judged.partitions:
                    one = judged.absent(key, mine[key])
                    if self._is_elsewhere(key, lacks):
                        one = replace(one, state=AbsentState.NOT_ASSIGNED, next=None)
                    if found.setdefault((key, lacks.path), one).next is None:
                        found[key, lacks.path] = one
        yield from (found[place] for place in sorted(found))

    def _is_elsewhere(self, key: TopicPartition, log_dir: LogDirIdentity) -> bool:
        """Return whether another log dir of the same node, and no copy of this one, has it."""
        return any(
            (directory.topic, directory.partition) == key and directory.kind is DirectoryKind.LIVE
            for one in self._log_dirs
            if one.path != log_dir.path
            and one.node_id == log_dir.node_id
            and not dir_copies.are_copies(one, log_dir)
            for _, directory in one.root.partitions
        )


def missing(lacking: Sequence[Path], others: Sequence[Path]) -> list[AbsentCopy]:
    """Return the partitions that log dirs lack, and that can be copied from copies of them.

    `others` are the log dirs that may be copies of `lacking`.
    """
    paths = dict.fromkeys((*lacking, *others))
    known = [one for one in map(dir_copies.identity_of, paths) if one]
    there = {
        one.path: {
            (directory.topic, directory.partition): path
            for path, directory in one.root.partitions
            if directory.kind is DirectoryKind.LIVE
        }
        for one in known
    }
    return [
        one
        for one in LogDirCopies(known).absent(there)
        if one.next and one.log_dir in lacking and one.path.parent in others
    ]


class _Expected:
    """The partitions that a log dir should hold, by its own files."""

    def __init__(self, log_dir: LogDirIdentity) -> None:
        self._log_dir = log_dir
        self.partitions = {
            (directory.topic, directory.partition)
            for _, directory in log_dir.root.partitions
            if directory.kind in OF_TODAY
        }
        """The partitions that have a directory, even one that cannot be read."""
        self._node = Node([log_dir], None)

    @cached_property
    def _missing(self) -> Mapping[TopicPartition, AbsentPartition]:
        return {
            one.key: one
            for one in absent_partitions(self._node)
            if (one.state is not None or one.end) and not was_never_made(self._node, one)
        }

    def absent(self, key: TopicPartition, path: Path) -> AbsentCopy:
        """Return a partition of another copy that this one lacks, with the reason."""
        image = self._node.image
        state = AbsentState.NOT_ASSIGNED if image and not image.damage else AbsentState.UNKNOWN
        is_log = key[0] == CLUSTER_METADATA and self._node.is_kraft
        if key in self._missing or is_log:
            state = AbsentState.MISSING
        command = None
        if state is AbsentState.MISSING and self._is_same_topic(key, path):
            command = f"cp -a {shell.path(path)} {shell.path(self._log_dir.path)}/"
        return AbsentCopy(*key, path, self._log_dir.path, state, command)

    def has_topic(self, name: str, topic_id: str | None) -> bool:
        """Return whether its metadata log, if it is undamaged, has a topic with this id."""
        image = self._node.image
        if image is None or image.damage or topic_id is None:
            return False
        return image.topics.get(name) == topic_id

    def _is_same_topic(self, key: TopicPartition, path: Path) -> bool:
        image, own_id = self._node.image, topic_id_of(path)
        known = image.topics.get(key[0]) if image else None
        return known is None or own_id is None or known == own_id
