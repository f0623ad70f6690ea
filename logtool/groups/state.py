"""State of each group in one partition of ``__consumer_offsets``."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from logtool.groups.columns import Column, CommitRows, Slots
from logtool.groups.commits import COMMIT_TYPES, as_text, parse_commit_key
from logtool.groups.committed_offset import CommittedOffset, OffsetMaker, Retention
from logtool.groups.ends import Ends
from logtool.groups.loading import LoadedGroups
from logtool.groups.membership import CLASSIC, Member, Membership
from logtool.groups.share_groups import ShareOffset
from logtool.lazy_dataclass import dataclass
from logtool.log.keys import NONE
from logtool.times import rfc3339

DEAD = "Dead"
"""State of a group of which only records are left that delete it, or that come before those."""
Takes = Callable[[str, int], bool]


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """A commit in an open transaction: it counts once the transaction is committed."""

    group: str
    producer_id: int
    topic: str
    partition: int
    offset: int
    record_offset: int
    commit_ms: int
    metadata: str

    @property
    def committed(self) -> str | None:
        """Return the time of the commit, as text; None if it is out of range of a date."""
        return rfc3339(self.commit_ms)


@dataclass(frozen=True, slots=True)
class RemovedOffset:
    """The last committed offset of a partition, which a tombstone removed: expired or deleted."""

    group: str
    topic: str
    partition: int
    offset: int
    commit_ms: int
    record_offset: int
    """Offset of the tombstone in the log of ``__consumer_offsets``."""
    is_of_deleted_topic: bool
    """True if the metadata log shows that the topic of the commit is deleted."""

    @property
    def committed(self) -> str | None:
        """Return the time of the commit, as text; None if it is out of range of a date."""
        return rfc3339(self.commit_ms)


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member with the names of the topics that it reads."""

    group: str
    member: Member
    topic_names: Mapping[str, str]
    """Names of the topics in the metadata log, by topic id."""

    @property
    def epoch(self) -> int | None:
        """Return the epoch of the member; None where it has none."""
        return None if self.member.epoch == NONE else self.member.epoch

    @property
    def assigned(self) -> list[str]:
        """Return its partitions in order, as TOPIC-NUMBER; the id stands for an unknown topic."""
        names = self.topic_names
        parts = sorted((names.get(topic, topic), number) for topic, number in self.member.assigned)
        return [f"{topic}-{number}" for topic, number in parts]


@dataclass(frozen=True, slots=True)
class GroupSizes:
    """Number and size of the records of a group in the log."""

    records: int
    bytes: int
    superseded_records: int
    """Records that a newer record with the same key follows: compaction would remove them."""
    superseded_bytes: int


@dataclass(frozen=True, slots=True)
class GroupState:
    """One group."""

    name: str
    type: str
    state: str
    """State in Kafka's word; `Dead` if only records of a deleted group are left."""
    membership: Membership | None
    """None for a group that merely commits offsets, and for a dead group."""
    offsets: list[CommittedOffset]
    pending: list[PendingCommit]
    sizes: GroupSizes
    offsets_partition: int
    """The partition of ``__consumer_offsets`` that has its records."""
    topic_names: Mapping[str, str]
    """Names of the topics in the metadata log, by topic id."""
    shares: Sequence[ShareOffset] = ()
    """Start offsets of a share group."""
    lacking: Sequence[str] = ()
    """Partitions of a share group whose start offset is not where its coordinator stored it."""
    removed: Sequence[RemovedOffset] = ()
    """The last offsets of partitions without a committed offset, while the log still has them.

    Without those of topics that no longer exist, unless all offsets of the group were removed.
    """
    restorable: Sequence[CommittedOffset] = ()
    """The offsets of `removed` as offsets to commit again; empty unless the run asks for them."""
    later: Sequence[CommittedOffset] = ()
    """Offsets at the end of the log, of partitions without a committed offset at the moment."""
    present: Sequence[CommittedOffset] = ()
    """Offsets at the end of the log, of partitions with a committed offset at the moment."""
    in_doubt: bool = False
    """True if its partition of ``__consumer_offsets`` has lost records, maybe its newest."""
    only_sizes: bool = False
    """True if the group is printed without its members and offsets."""

    @property
    def members(self) -> list[GroupMember]:
        """Return its members, ordered by id."""
        members = self.membership.members if self.membership else {}
        return [GroupMember(self.name, members[name], self.topic_names) for name in sorted(members)]

    @property
    def member_count(self) -> int:
        """Return how many members it has."""
        return len(self.membership.members) if self.membership else 0

    @property
    def offset_count(self) -> int:
        """Return how many committed offsets it has."""
        return len(self.offsets)

    @property
    def pending_count(self) -> int:
        """Return the number of its commits in open transactions."""
        return len(self.pending)

    @property
    def aborted(self) -> list[str]:
        """Return other offsets in newer, aborted commits, each as TOPIC-NUMBER=OFFSET."""
        return [
            f"{one.topic}-{one.partition}={one.aborted_offset}"
            for one in self.offsets
            if one.aborted_offset not in (None, one.offset)
        ]

    @property
    def removed_count(self) -> int:
        """Return the number of its removed offsets, without those of deleted topics."""
        return sum(not one.is_of_deleted_topic for one in self.removed)

    @property
    def epoch(self) -> int | None:
        """Return its epoch, in a classic group the generation; None if it only has offsets."""
        return self.membership.epoch if self.membership else None

    @property
    def source_topics(self) -> list[str] | None:
        """Return the topics that a streams group reads, by name; None for other groups."""
        if self.membership is None or self.membership.topology_epoch is None:
            return None
        return sorted(self.membership.source_topics)

    @property
    def protocol_type(self) -> str | None:
        """Return the type of protocol of a classic group; None where no record has it."""
        return self.membership.protocol_type if self.membership else None

    @property
    def protocol(self) -> str | None:
        """Return the protocol by which a classic group assigns; None if no record has it."""
        return self.membership.protocol if self.membership else None

    @property
    def leader(self) -> str | None:
        """Return the id of the member that leads a classic group; None where no record has it."""
        return self.membership.leader if self.membership else None

    @property
    def state_ms(self) -> int | None:
        """Return the time at which a classic group got its state, in ms; None if not recorded."""
        return self.membership.state_timestamp if self.membership else None

    @property
    def state_since(self) -> str | None:
        """Return `state_ms` as text; None if it is not known, or out of range of a date."""
        return rfc3339(self.state_ms)


def judge(
    loaded: LoadedGroups,
    ends: Ends,
    takes_group: Callable[[str], bool],
    takes: Takes,
    retention: Retention,
    *,
    restores_removed: bool = False,
) -> Iterator[GroupState]:
    """Yield the groups of a partition by name; `takes` selects committed offsets.

    With `restores_removed`, the groups have `restorable` offsets.
    """
    slots, memberships = loaded.slots, loaded.memberships
    numbers, names, is_commit = _group_of_each(slots)
    order = np.argsort(numbers, kind="stable")
    edges = np.searchsorted(numbers[order], np.arange(len(names) + 1))
    by_name = {name: number for number, name in enumerate(names)}
    pending = _pending_by_group(loaded, numbers)
    topics = set(ends.topic_names.values())
    is_live, was_live = slots.live, slots.record_offset != NONE
    for name in sorted({*by_name, *memberships.groups}):
        if not takes_group(name):
            continue
        number = by_name.get(name, NONE)
        mine = order[edges[number] : edges[number + 1]] if number != NONE else order[:0]
        membership = memberships.groups.get(name)
        commits = mine[is_commit[mine]]
        waiting = pending.get(number)
        open_commits = list(_pending(name, slots, waiting, takes)) if waiting else []
        maker = OffsetMaker(name, slots, membership, ends, retention, {
            (one.topic, one.partition) for one in open_commits
        })  # fmt: skip
        alive = commits[is_live[commits]]
        offsets = [maker.make(slot) for slot in _in_order(slots, alive, takes)]
        gone = _in_order(slots, commits[was_live[commits] & ~is_live[commits]], takes)
        removed = [_removed(name, slots, slot, ends) for slot in gone]
        if len(alive) and topics:
            removed = [one for one in removed if one.topic in topics]
        seen = int(slots.seen[commits].max()) if len(commits) else NONE
        exists = membership is not None or seen > memberships.removed.get(name, NONE)
        yield GroupState(
            name=name,
            type=membership.type if membership else CLASSIC,
            state=membership.state if membership else ("Empty" if exists else DEAD),
            membership=membership,
            offsets=offsets,
            pending=open_commits,
            sizes=_sizes(slots, mine),
            offsets_partition=loaded.number,
            topic_names=ends.topic_names,
            removed=removed,
            restorable=[maker.make(slot) for slot in gone] if restores_removed else (),
        )


def with_later(states: Iterable[GroupState], at_end: Iterable[GroupState]) -> Iterator[GroupState]:
    """Yield the groups of a moment with their offsets at the end, and the later groups.

    `at_end` are the groups at the end of the log.
    """
    rest = {one.name: one for one in at_end if one.offsets}
    for state in states:
        known = {(one.topic, one.partition) for one in state.offsets}
        now = rest.pop(state.name, None)
        offsets = now.offsets if now else ()
        places = {(one.topic, one.partition) for one in offsets}
        yield replace(
            state,
            removed=[one for one in state.removed if (one.topic, one.partition) not in places],
            later=[one for one in offsets if (one.topic, one.partition) not in known],
            present=[one for one in offsets if (one.topic, one.partition) in known],
        )
    for now in rest.values():
        yield replace(now, offsets=[], pending=[], later=now.offsets)


def _group_of_each(slots: Slots) -> tuple[Column, list[str], Column]:
    """Return for each slot the number of its group; the names; True for each slot of a commit.

    Keys without a group have the number -1.
    """
    numbers = np.full(len(slots), NONE, np.int32)
    is_commit = np.zeros(len(slots), np.bool_)
    known: dict[bytes, int] = {}
    keys, start = slots.keys.data, 0
    for slot, end in enumerate(slots.key_end[: len(slots)].tolist()):
        size = int.from_bytes(keys[start + 2 : start + 4], "big", signed=True)
        if 0 <= size <= end - start - 4:
            name = bytes(keys[start + 4 : start + 4 + size])
            numbers[slot] = known.setdefault(name, len(known))
            is_commit[slot] = int.from_bytes(keys[start : start + 2], "big") in COMMIT_TYPES
        start = end
    return numbers, [as_text(name) for name in known], is_commit


def _in_order(slots: Slots, chosen: Column, takes: Takes) -> list[int]:
    """Return the selected slots, ordered by topic and partition."""
    found = []
    for slot in chosen.tolist():
        _, topic, number = parse_commit_key(slots.key(slot))
        if takes(topic, number):
            found.append((topic, number, slot))
    return [slot for _, _, slot in sorted(found)]


def _removed(group: str, slots: Slots, slot: int, ends: Ends) -> RemovedOffset:
    _, topic, number = parse_commit_key(slots.key(slot))
    id_number, today = int(slots.topic_id[slot]), ends.topic_id(topic)
    is_other = id_number != NONE and today is not None and slots.topic_ids[id_number] != today
    return RemovedOffset(
        group=group,
        topic=topic,
        partition=number,
        offset=int(slots.offset[slot]),
        commit_ms=int(slots.commit_timestamp[slot]),
        record_offset=int(slots.removed_at[slot]),
        is_of_deleted_topic=is_other or ends.is_gone(topic),
    )


def _pending_by_group(
    loaded: LoadedGroups, numbers: Column
) -> dict[int, tuple[CommitRows, Column]]:
    """Return the pending commits of each group by its number, with their producer ids."""
    rows, ids = loaded.pending.rows, loaded.pending.producer_id
    if rows is None:
        return {}
    of_row = numbers[rows.slot]
    return {
        number: (rows[of_row == number], ids[of_row == number])
        for number in np.unique(of_row).tolist()
    }


def _pending(
    group: str, slots: Slots, waiting: tuple[CommitRows, Column], takes: Takes
) -> Iterator[PendingCommit]:
    rows, ids = waiting
    for row, producer_id in enumerate(ids.tolist()):
        _, topic, number = parse_commit_key(slots.key(int(rows.slot[row])))
        if takes(topic, number):
            yield PendingCommit(
                group=group,
                producer_id=producer_id,
                topic=topic,
                partition=number,
                offset=int(rows.offset[row]),
                record_offset=int(rows.record_offset[row]),
                commit_ms=int(rows.commit_timestamp[row]),
                metadata=as_text(rows.metadata[row]),
            )


def _sizes(slots: Slots, mine: Column) -> GroupSizes:
    records, size = int(slots.records[mine].sum()), int(slots.size[mine].sum())
    return GroupSizes(
        records=records,
        bytes=size,
        superseded_records=records - len(mine),
        superseded_bytes=size - int(slots.last_size[mine].sum()),
    )
