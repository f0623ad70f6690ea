"""The verdict on the copies of a metadata log: the offsets of a majority, and the copy to keep.

Raft elects the voter with the highest last epoch, and of those the one with the longest log. A
record is committed once a majority of the voters has it in their logs; no disk has the offset up to
which that is so. The end of a snapshot was committed, because controllers write snapshots of
nothing else. A broker has a copy too, which may be longer than that of a controller, but no vote:
its copy never leads, and is cut to that of the controller. Only a controller can have it in place
of its own. Source: ``KafkaRaftClient``, ``LeaderState.maybeUpdateHighWatermark``,
``OffsetAndEpoch`` (Kafka 3.9, 4.3).
"""

from collections.abc import Sequence, Set
from contextlib import suppress
from itertools import combinations

import numpy as np

from logtool.copies.compare import compare
from logtool.copies.pair import CopyPair
from logtool.disk import shell
from logtool.errors import UnreadableError
from logtool.formats import wording
from logtool.lazy_dataclass import dataclass
from logtool.metadata.difference import Difference
from logtool.quorum import giving
from logtool.quorum.copy import MetadataCopy
from logtool.quorum.giving import VoterLack
from logtool.quorum.strays import StrayDir
from logtool.quorum.unvoted import RecordCount, unvoted
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
    furthest: MetadataCopy
    """The copy with the highest last epoch, and of those the longest; a copy that lacks offsets
    only if all copies do."""
    keep: MetadataCopy
    """The furthest copy; with voters that are wanted, the furthest of theirs."""
    voters: tuple[Voter, ...] | None
    """Voters by the kept copy, the newest quorum-state, or the configuration; None if none has
    voters."""
    voters_from: str | None
    missing: tuple[Voter, ...]
    """Voters without a copy among those given."""
    majority_offset: int | None
    """Offset below which a majority of the voters has all records, by the copies given; None if
    there are too few copies."""
    majority_at_most: int | None
    """Most that a majority can have had; None if the missing voters may have more."""
    committed_at_least: int
    """The end of the newest snapshot of all copies."""
    losses: tuple[CopyLoss, ...]
    unvoted: tuple[RecordCount, ...] = ()
    """Records of the kept copy, that of an observer, which no given voter has; empty if the copies
    of fewer than a majority of the voters were given."""
    lacking: tuple[VoterLack, ...] = ()
    """The given voters, if none of them has the changes of the kept copy, that of an observer."""
    rolled_back: tuple[MetadataCopy, ...] = ()
    """Copies that end before changes which their own node wrote as the leader."""
    strays: tuple[StrayDir, ...] = ()
    """Partition dirs next to the copies that become strays with the copy to keep."""
    heir_strays: tuple[StrayDir, ...] = ()
    """Partition dirs that become strays if no controller gets the kept copy, that of a broker."""
    heir_losses: tuple[Difference, ...] = ()
    """Differences that the nodes see if no controller gets it."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the names of the copies that were given."""
        return tuple(one.label for one in self.copies)

    @property
    def rolled_back_labels(self) -> tuple[str, ...]:
        """Return the names of the copies that are of an earlier moment."""
        return tuple(one.label for one in self.rolled_back)

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
        """Return whether voters may have agreed on records that no copy here has.

        The missing voters alone may have, or voters that have lost the end of their logs since.
        """
        few = self.majority is None or len(self.missing) >= self.majority
        return few or self._have_lost

    @property
    def _have_lost(self) -> bool:
        """Return whether voters that were given had changes that they have not any more."""
        return self.voters_are_behind or bool(self.rolled_back)

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
        lost = self.losses or self.strays or self.rolled_back
        return bool(damaged or few or lost or several or self.voters_are_behind)

    @property
    def voters_are_behind(self) -> bool:
        """Return whether a node that does not vote has changes that no given voter has.

        It fetched them from a voter, so that all these lost them, or are of an earlier moment. A
        NoOpRecord is no change.
        """
        return any(one.is_change for one in self.unvoted)

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
        if self._have_lost and len(self.missing) < (self.majority or 0):
            return (
                f"{whose}, and the voters given here lost records: whether more records were "
                f"committed after offset {self.keep.log_end - 1} is not known"
            )
        return (
            f"{whose}: these voters are enough to have agreed on records that no copy "
            "given here has, and logtool cannot know what they agreed on after offset "
            f"{self.keep.log_end - 1}"
        )

    def _can_lead(self, copy: MetadataCopy) -> bool:
        """Return whether the node of a copy can be a controller.

        It can if it votes, or if the copy to keep registers it as a controller
        (RegisterControllerRecord).
        """
        if any(is_of(copy, voter) for voter in self.voters or ()):
            return True
        with suppress(UnreadableError):
            return copy.node in self.keep.image.controllers
        return False

    @property
    def heir(self) -> MetadataCopy | None:
        """Return the copy to keep, or the one whose node has to start from it in its place.

        That is the furthest copy of a node that can be a controller, if the copy to keep is that of
        a broker. None without such a node.
        """
        if self._can_lead(self.keep):
            return self.keep
        able = [one for one in self.copies if self._can_lead(one)]
        return max(able, key=lambda one: (one.is_whole, one.position), default=None)

    @property
    def copying(self) -> str | None:
        """Return the command that gives the copy to keep to a controller, which lacks its end.

        The controller keeps its meta.properties and its quorum-state, which holds its vote. None if
        the copy to keep is that of a controller, if no controller needs it, or without one.
        """
        needed = self.majority_offset is None or self.voters_are_behind
        heir = self.heir if self.voters is not None and needed else None
        if heir is None or heir is self.keep:
            return None
        return giving.command(heir, self.keep)

    @property
    def command(self) -> str | None:
        """Return the command that gives the copy to keep the voters whose copies were given.

        HOST:PORT stands for an address that no file has. None if a majority of the voters has a
        copy, if the voters are not known, or if no copy is that of a node that can be a controller.
        """
        if self.voters is None or self.majority_offset is not None or self.heir is None:
            return None
        lost = set(self.missing)
        ends = {
            str(one.node): str(one.endpoints[0]) if one.endpoints else None
            for one in self.voters
            if one not in lost
        }
        ends.setdefault("ID" if self.heir.node is None else str(self.heir.node), None)
        voters = ",".join(f"{node}@{end or 'HOST:PORT'}" for node, end in ends.items())
        paths = (one.argument for one in self.copies)
        return " ".join(["logtool quorum --voters", shell.quote(voters), *paths])

    @property
    def brokers_not_given(self) -> tuple[int, ...]:
        """Return the brokers whose copies may have records that the copy to keep lacks.

        Empty if the given copies have every committed record.
        """
        if not self.may_lack_committed:
            return ()
        given = {one.node for one in self.copies} | set(self.missing_nodes)
        return tuple(sorted(set(self.keep.image.brokers) - given))

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

    These count if no control record has voters. With nodes that are `wanted` as voters, one of
    their copies is kept. Among copies with the same end, that of a voter is kept.
    """
    furthest = max(copies, key=_age)
    keep = max([copy for copy in copies if copy.node in wanted] or copies, key=_age)
    voters, source, _ = keep.voted
    if configured and source != "log" and source != "snapshot":
        voters, source = tuple(configured), "controller.quorum.voters"
    elif source == "quorum-state":
        newest = max([keep, *copies], key=_election)
        voters, source, _ = newest.voted
    pairs = tuple(compare(a.batches, b.batches) for a, b in combinations(copies, 2))
    ends: list[int] = []
    missing: list[Voter] = []
    for voter in voters or ():
        own = [copy for copy in copies if is_of(copy, voter)]
        if own:
            ends.append(max(_whole_end(copy, _agreed(copy, keep, pairs)) for copy in own))
        else:
            missing.append(voter)
    own = _of_voters(copies, voters)
    majority = len(voters) // 2 + 1 if voters else 0
    lacks = bool(own) and len(missing) < majority and keep.role == "observer"
    lacks &= all(one.position < keep.position or not one.is_whole for one in own)
    begins = [(one, _whole_end(one, _agreed(one, keep, pairs))) for one in own]
    records = unvoted(keep, max(begin for _, begin in begins)) if lacks else ()
    ends.sort(reverse=True)
    most = _at_most(ends, majority - len(missing)) if voters else None
    is_behind = any(one.is_change for one in records)
    if is_behind and most is not None:
        most = max(most, keep.log_end)
    rolled_back = tuple(one for one in copies if giving.is_rolled_back(one, copies))
    if rolled_back and missing and not is_behind:
        most = None
    return Quorum(
        copies=tuple(copies),
        pairs=pairs,
        furthest=furthest if _age(furthest)[:2] > _age(keep)[:2] else keep,
        keep=keep,
        voters=voters,
        voters_from=source,
        missing=tuple(missing),
        majority_offset=ends[majority - 1] if voters and len(ends) >= majority else None,
        majority_at_most=most,
        committed_at_least=max(
            (copy.newest.end_offset for copy in copies if copy.newest), default=0
        ),
        losses=tuple(_losses(copies, keep, pairs)),
        unvoted=records,
        lacking=tuple(giving.lacking(begins, keep)) if is_behind else (),
        rolled_back=rolled_back,
    )


def _age(copy: MetadataCopy) -> tuple[bool, tuple[int, int], bool]:
    """Return a key by which the furthest copy is the largest."""
    return copy.is_whole, copy.position, copy.role == "voter"


def _election(copy: MetadataCopy) -> tuple[int, bool]:
    """Return a key by which the newest quorum-state with voters is the largest."""
    epoch = copy.leader_epoch if copy.voters_from == "quorum-state" else None
    return -1 if epoch is None else epoch, copy.role == "voter"


def _at_most(ends: Sequence[int], needed: int) -> int | None:
    """Return the most that `needed` copies all have, if the missing copies have everything."""
    return ends[needed - 1] if needed > 0 else None


def is_of(copy: MetadataCopy, voter: Voter) -> bool:
    """Return whether a copy is that of a voter; without a directory id only the node counts."""
    if copy.node != voter.node:
        return False
    ids = copy.directory_id, voter.directory_id
    return None in ids or ids[0] == ids[1]


def _of_voters(
    copies: Sequence[MetadataCopy], voters: Sequence[Voter] | None
) -> list[MetadataCopy]:
    return [one for one in copies if any(is_of(one, voter) for voter in voters or ())]


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
