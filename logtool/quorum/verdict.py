"""The verdict on the copies of a metadata log: the offsets of a majority, and the copy to keep.

Raft elects the voter with the highest last epoch, and of those the one with the longest log. A
record is committed once a majority of the voters has it in their logs; no disk has the offset up to
which that is so. The end of a snapshot was committed, because controllers write snapshots of
nothing else. Source: ``KafkaRaftClient``, ``LeaderState.maybeUpdateHighWatermark``,
``OffsetAndEpoch`` (Kafka 3.9, 4.3).
"""

from collections.abc import Sequence, Set
from itertools import combinations

import numpy as np

from logtool.copies.compare import compare
from logtool.copies.pair import CopyPair
from logtool.disk import shell
from logtool.formats import wording
from logtool.lazy_dataclass import dataclass
from logtool.quorum.copy import MetadataCopy
from logtool.quorum.strays import StrayDir
from logtool.quorum.voters import Voter


@dataclass(frozen=True, slots=True)
class CopyLoss:
    """Batches of a copy that the kept copy lacks."""

    copy: MetadataCopy
    first_offset: int
    last_offset: int
    batches: int
    records: int


@dataclass(frozen=True, slots=True)
class Quorum:
    """The verdict on all copies that were given."""

    copies: tuple[MetadataCopy, ...]
    pairs: tuple[CopyPair, ...]
    keep: MetadataCopy
    """The copy with the highest last epoch, and of those the longest; a copy that lacks offsets
    only if all copies do."""
    voters: tuple[Voter, ...] | None
    """Voters by the kept copy or the configuration; None if neither has voters."""
    voters_from: str | None
    missing: tuple[Voter, ...]
    """Voters without a copy among those given."""
    majority_offset: int | None
    """Offset below which a majority of the voters has all records, by the copies given; None if
    there are too few copies."""
    majority_at_most: int | None
    """Most that a majority can have; None if the missing voters may have more."""
    committed_at_least: int
    """The end of the newest snapshot of all copies."""
    losses: tuple[CopyLoss, ...]
    strays: tuple[StrayDir, ...] = ()
    """Partition dirs next to the copies that become strays with the copy to keep."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the names of the copies that were given."""
        return tuple(one.label for one in self.copies)

    @property
    def majority(self) -> int | None:
        """Return how many voters are a majority."""
        return None if self.voters is None else len(self.voters) // 2 + 1

    @property
    def diverges(self) -> CopyPair | None:
        """Return the two copies that diverge first; None if no copies diverge."""
        apart = [pair for pair in self.pairs if pair.diverges_at is not None]
        return min(apart, key=lambda pair: pair.diverges_at or 0, default=None)

    @property
    def may_lack_committed(self) -> bool:
        """Return whether missing voters may have agreed on records that no copy here has."""
        return self.majority is None or len(self.missing) >= self.majority

    @property
    def clusters(self) -> set[str]:
        """Return the clusters of the copies: one, unless they were mixed up."""
        return {copy.cluster_id for copy in self.copies if copy.cluster_id}

    @property
    def is_grave(self) -> bool:
        """Return whether a person must act before these controllers serve again."""
        damaged = any(copy.problems or copy.batches.real_damages for copy in self.copies)
        few = self.majority_offset is None
        several = len(self.clusters) > 1
        lost = self.losses or self.strays
        return bool(damaged or few or lost or several or self.voters_are_behind)

    @property
    def voters_are_behind(self) -> bool:
        """Return whether a node that does not vote has records that no voter has.

        It fetched them from a voter, so that all voters lost them, or were restored from a backup.
        False if the copy of a voter was not given.
        """
        if self.voters is None or self.missing or self.keep.role != "observer":
            return False
        return all(copy.position < self.keep.position or not copy.is_whole
                   for copy in self.copies if copy.role == "voter")  # fmt: skip

    @property
    def unknown(self) -> str | None:
        """Return in a sentence what cannot be known because copies are missing."""
        if not self.keep.is_whole:
            first, last = self.keep.missing[0]
            return (
                f"no copy given is whole, and {self.keep.label} lacks "
                f"{wording.offsets(first, last)}: whether those records exist is not known; give "
                "the metadata log of another controller or broker"
            )
        if self.voters is None:
            return (
                "these copies do not contain the voters; a static quorum has them in "
                "controller.quorum.voters: give --broker-config"
            )
        if not self.missing:
            return None
        names = ", ".join(str(voter.node) for voter in self.missing)
        whose = f"no copy of {wording.count(len(self.missing), 'voter')} was given ({names})"
        if not self.may_lack_committed:
            return f"{whose}; a copy given here has every committed record"
        return (
            f"{whose}: these voters are enough to have agreed on records that no copy "
            "given here has, and logtool cannot know what they agreed on after offset "
            f"{self.keep.log_end - 1}"
        )

    @property
    def command(self) -> str | None:
        """Return the command that gives the copy to keep the voters whose copies were given.

        HOST:PORT stands for an address that no file has. None if a majority of the voters has a
        copy, or if the voters are not known.
        """
        if self.voters is None or self.majority_offset is not None:
            return None
        lost = set(self.missing)
        ends = {
            str(one.node): str(one.endpoints[0]) if one.endpoints else None
            for one in self.voters
            if one not in lost
        }
        ends.setdefault("ID" if self.keep.node is None else str(self.keep.node), None)
        voters = ",".join(f"{node}@{end or 'HOST:PORT'}" for node, end in ends.items())
        paths = (one.argument for one in self.copies)
        return " ".join(["logtool quorum --voters", shell.quote(voters), *paths])

    @property
    def missing_nodes(self) -> tuple[int, ...]:
        """Return the nodes of the voters without a copy among those given."""
        return tuple(voter.node for voter in self.missing)

    @property
    def diverges_at(self) -> int | None:
        """Return the first offset at which two copies diverge; None if no copies diverge."""
        return self.diverges.diverges_at if self.diverges else None


def judge(
    copies: Sequence[MetadataCopy],
    configured: Sequence[Voter] | None = None,
    wanted: Set[int] = frozenset(),
) -> Quorum:
    """Return the verdict on one or more copies; `configured` are the voters of a static quorum.

    These count if no control record has voters. Among copies with the same end, that of a node in
    `wanted` is kept, else that of a voter.
    """
    keep = max(
        copies,
        key=lambda copy: (
            copy.is_whole, copy.position, copy.node in wanted, copy.role == "voter"
        ),
    )  # fmt: skip
    voters, source, _ = keep.voted
    if configured and source != "log" and source != "snapshot":
        voters, source = tuple(configured), "controller.quorum.voters"
    pairs = tuple(compare(a.batches, b.batches) for a, b in combinations(copies, 2))
    ends: list[int] = []
    missing: list[Voter] = []
    for voter in voters or ():
        own = [copy for copy in copies if is_of(copy, voter)]
        if own:
            ends.append(max(_whole_end(copy, _agreed(copy, keep, pairs)) for copy in own))
        else:
            missing.append(voter)
    majority = len(voters) // 2 + 1 if voters else 0
    ends.sort(reverse=True)
    return Quorum(
        copies=tuple(copies),
        pairs=pairs,
        keep=keep,
        voters=voters,
        voters_from=source,
        missing=tuple(missing),
        majority_offset=ends[majority - 1] if voters and len(ends) >= majority else None,
        majority_at_most=_at_most(ends, majority - len(missing)) if voters else None,
        committed_at_least=max(
            (copy.newest.end_offset for copy in copies if copy.newest), default=0
        ),
        losses=tuple(_losses(copies, keep, pairs)),
    )


def _at_most(ends: Sequence[int], needed: int) -> int | None:
    """Return the most that `needed` copies all have, if the missing copies have everything."""
    return ends[needed - 1] if needed > 0 else None


def is_of(copy: MetadataCopy, voter: Voter) -> bool:
    """Return whether a copy is that of a voter; without a directory id only the node counts."""
    if copy.node != voter.node:
        return False
    ids = copy.directory_id, voter.directory_id
    return None in ids or ids[0] == ids[1]


def _pair(one: MetadataCopy, other: MetadataCopy, pairs: Sequence[CopyPair]) -> CopyPair | None:
    wanted = {id(one.batches), id(other.batches)}
    return next((p for p in pairs if {id(p.left), id(p.right)} == wanted), None)


def _agreed(copy: MetadataCopy, keep: MetadataCopy, pairs: Sequence[CopyPair]) -> int:
    """Return the end of the part that a copy has in common with the kept one."""
    pair = None if copy is keep else _pair(copy, keep, pairs)
    ends = [copy.log_end, keep.log_end]
    if pair and pair.diverges_at is not None:
        ends.append(pair.diverges_at)
    return min(ends)


def _whole_end(copy: MetadataCopy, end: int) -> int:
    """Return the end of the part of a copy, up to `end`, that lacks no offset."""
    return min([end, *(first for first, _ in copy.missing)])


def _losses(
    copies: Sequence[MetadataCopy], keep: MetadataCopy, pairs: Sequence[CopyPair]
) -> list[CopyLoss]:
    found = []
    for copy in copies:
        end = _agreed(copy, keep, pairs)
        table = copy.usable
        lacks = np.asarray(table.last_offset >= end)
        for first, last in keep.missing:
            lacks |= np.asarray((table.last_offset >= first) & (table.base_offset <= last))
        gone = table[lacks]
        if copy is not keep and len(gone):
            first, last = int(gone.base_offset[0]), int(gone.last_offset[-1])
            records = int(gone.record_count.sum())
            found.append(CopyLoss(copy, first, last, len(gone), records))
    return found
