"""What one partition of ``__consumer_offsets`` says of each of its groups.

When an offset expires: of a classic group without members, a retention after it became empty, or
after the commit where no such time is known; of what a member subscribes to, never; of all others,
a retention after their commit. A commit of value version 1 may have its own time. Source:
``ClassicGroup.offsetExpirationCondition``, ``ConsumerGroup``, ``OffsetExpirationConditionImpl``,
``OffsetMetadataManager.cleanupExpiredOffsets`` (Kafka 3.9 and 4.3).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from logtool.disk import shell
from logtool.findings import Finding
from logtool.groups import findings
from logtool.groups.columns import Column, CommitRows, Slots
from logtool.groups.commits import COMMIT_TYPES
from logtool.groups.ends import Ends, LogEnds
from logtool.groups.loading import LoadedGroups
from logtool.groups.membership import CLASSIC, CONSUMER_PROTOCOL, Member, Membership
from logtool.groups.share_groups import ShareOffset
from logtool.lazy_dataclass import dataclass
from logtool.log.keys import NONE
from logtool.times import rfc3339

RETENTION_MS = 7 * 86_400_000
"""Default of ``offsets.retention.minutes``."""
Takes = Callable[[str, int], bool]


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention of offsets, and the moment to which it is counted."""

    kept_ms: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The committed offset of one partition."""

    group: str
    topic: str
    partition: int
    offset: int
    record_offset: int
    """Of the commit, in the log of ``__consumer_offsets``."""
    leader_epoch: int | None
    metadata: str
    commit_ms: int
    member: str | None
    """Who owned the partition when it was committed, as far as the log tells."""
    expires_ms: int | None
    """None while it does not expire."""
    topic_id: str | None
    """For which it was committed; None before value version 4 and for commits by name."""
    topic_is: str
    """Whether that is today's topic: `same`, `other`, `gone` or `unknown`."""
    extent: LogEnds | None
    """The partition on these disks, None where there is none."""
    pending: bool
    """Whether an open transaction holds a newer commit."""
    expired: bool
    """True where it may be removed: it has expired, and no transaction holds a newer commit."""

    @property
    def lag(self) -> int | None:
        """Return how far it is behind the log end; negative beyond it."""
        return self.extent.log_end - self.offset if self.extent else None

    @property
    def log_start(self) -> int | None:
        """Return the start of the partition on these disks; None where there is none."""
        return self.extent.log_start if self.extent else None

    @property
    def log_end(self) -> int | None:
        """Return the end of the partition on these disks; None where there is none."""
        return self.extent.log_end if self.extent else None

    @property
    def last_stable(self) -> int | None:
        """Return the last stable offset of the partition; None where there is none."""
        return self.extent.last_stable if self.extent else None

    @property
    def committed(self) -> str | None:
        """Return when it was committed, as text; None where no calendar has it."""
        return rfc3339(self.commit_ms)

    @property
    def expires(self) -> str | None:
        """Return when it expires, as text; None where it does not, or no calendar has it."""
        return rfc3339(self.expires_ms)

    @property
    def stable_lag(self) -> int | None:
        """Return how far it is behind the last stable offset; none where it is ahead of it."""
        return max(0, self.extent.last_stable - self.offset) if self.extent else None

    @property
    def place(self) -> str:
        """Return where the offset lies: `in`, `below-start`, `beyond-end` or `unknown`."""
        if not self.extent:
            return "unknown"
        if self.offset < self.extent.log_start:
            return "below-start"
        return "beyond-end" if self.offset > self.extent.log_end else "in"

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong with it."""
        where = f"{self.topic}-{self.partition}"
        name = shell.quote(self.group)
        if self.topic_id and self.topic_is in ("other", "gone"):
            today = self.extent.topic_id if self.extent else None
            yield findings.other_topic(name, where, self.offset, self.topic_id, today)
        elif self.extent and self.place == "below-start":
            yield findings.below_start(name, where, self.offset, self.extent.log_start)
        elif self.extent and self.place == "beyond-end":
            yield findings.beyond_end(name, where, self.offset, self.extent.log_end)


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """A commit in a transaction without marker: it counts once the transaction is committed."""

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
        """Return when it was committed, as text; None where no calendar has it."""
        return rfc3339(self.commit_ms)


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member with the names of the topics that it reads."""

    group: str
    member: Member
    topic_names: Mapping[str, str]
    """Names of the topics here, by topic id."""

    @property
    def epoch(self) -> int | None:
        """Return the epoch of the member; None where it has none."""
        return None if self.member.epoch == NONE else self.member.epoch

    @property
    def assigned(self) -> list[str]:
        """Return its partitions in order, as TOPIC-NUMBER; those of unknown topics by their ids."""
        names = self.topic_names
        parts = sorted((names.get(topic, topic), number) for topic, number in self.member.assigned)
        return [f"{topic}-{number}" for topic, number in parts]


@dataclass(frozen=True, slots=True)
class GroupSizes:
    """What the records of a group take up in the log."""

    records: int
    bytes: int
    superseded_records: int
    """Which a newer record with the same key stands behind: compaction would remove them."""
    superseded_bytes: int


@dataclass(frozen=True, slots=True)
class GroupState:
    """One group."""

    name: str
    type: str
    state: str
    """As Kafka says it; `Dead` for what only records of a deleted group are left of."""
    membership: Membership | None
    """None for a group that merely commits offsets, and for a dead one."""
    offsets: list[CommittedOffset]
    pending: list[PendingCommit]
    sizes: GroupSizes
    offsets_partition: int
    """The partition of ``__consumer_offsets`` that has its records."""
    topic_names: Mapping[str, str]
    """Names of the topics here, by topic id."""
    shares: Sequence[ShareOffset] = ()
    """Where a share group begins."""
    only_sizes: bool = False
    """True where it is printed without its members and offsets."""

    @property
    def members(self) -> list[GroupMember]:
        """Return its members by their ids."""
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
        """Return how many commits of it lie in open transactions."""
        return len(self.pending)

    @property
    def epoch(self) -> int | None:
        """Return its epoch, the generation of a classic group; None where it only has offsets."""
        return self.membership.epoch if self.membership else None

    @property
    def protocol_type(self) -> str | None:
        """Return the type of protocol of a classic group; None where no record has it."""
        return self.membership.protocol_type if self.membership else None

    @property
    def protocol(self) -> str | None:
        """Return how a classic group assigns partitions; None where no record says so."""
        return self.membership.protocol if self.membership else None

    @property
    def leader(self) -> str | None:
        """Return the id of the member that leads a classic group; None where no record has it."""
        return self.membership.leader if self.membership else None

    @property
    def state_ms(self) -> int | None:
        """Return when a classic group got its state, in ms; None where no record says so."""
        return self.membership.state_timestamp if self.membership else None

    @property
    def state_since(self) -> str | None:
        """Return `state_ms` as text; None where it is not known, or no calendar has it."""
        return rfc3339(self.state_ms)


def judge(
    loaded: LoadedGroups,
    ends: Ends,
    takes_group: Callable[[str], bool],
    takes: Takes,
    retention: Retention,
) -> Iterator[GroupState]:
    """Yield the groups of a partition by name; `takes` says which committed offsets are meant."""
    slots, memberships = loaded.slots, loaded.memberships
    numbers, names, is_commit = _group_of_each(slots)
    order = np.argsort(numbers, kind="stable")
    edges = np.searchsorted(numbers[order], np.arange(len(names) + 1))
    by_name = {name: number for number, name in enumerate(names)}
    pending = _pending_by_group(loaded, numbers)
    for name in sorted({*by_name, *memberships.groups}):
        if not takes_group(name):
            continue
        number = by_name.get(name, NONE)
        mine = order[edges[number] : edges[number + 1]] if number != NONE else order[:0]
        membership = memberships.groups.get(name)
        commits = mine[is_commit[mine]]
        waiting = pending.get(number)
        held = list(_pending(name, slots, waiting, takes)) if waiting else []
        maker = _OffsetMaker(name, slots, membership, ends, retention, {
            (one.topic, one.partition) for one in held
        })  # fmt: skip
        alive = commits[slots.live[commits] == 1]
        offsets = [maker.make(slot) for slot in _in_order(slots, alive, takes)]
        seen = int(slots.seen[commits].max()) if len(commits) else NONE
        exists = membership is not None or seen > memberships.removed.get(name, NONE)
        yield GroupState(
            name=name,
            type=membership.type if membership else CLASSIC,
            state=membership.state if membership else ("Empty" if exists else "Dead"),
            membership=membership,
            offsets=offsets,
            pending=held,
            sizes=_sizes(slots, mine),
            offsets_partition=loaded.number,
            topic_names=ends.topic_names,
        )


def parse_commit_key(key: bytes) -> tuple[str, str, int]:
    """Return group, topic and partition of the key of a commit that was decoded before."""
    size = int.from_bytes(key[2:4], "big")
    topic_at = 4 + size
    topic_size = int.from_bytes(key[topic_at : topic_at + 2], "big")
    topic = key[topic_at + 2 : topic_at + 2 + topic_size]
    number = int.from_bytes(key[topic_at + 2 + topic_size :][:4], "big", signed=True)
    return _text(key[4:topic_at]), _text(topic), number


class _OffsetMaker:
    """Makes committed offsets of a group."""

    def __init__(
        self,
        group: str,
        slots: Slots,
        membership: Membership | None,
        ends: Ends,
        retention: Retention,
        pending: set[tuple[str, int]],
    ) -> None:
        self._group = group
        self._slots = slots
        self._membership = membership
        self._ends = ends
        self._retention = retention
        self._pending = pending

    def make(self, slot: int) -> CommittedOffset:
        """Return the committed offset of a slot that is live."""
        slots = self._slots
        _, topic, number = parse_commit_key(slots.key(slot))
        extent = self._ends.extent(topic, number)
        id_number = int(slots.topic_id[slot])
        topic_id = None if id_number == NONE else slots.topic_ids[id_number]
        record_offset = int(slots.record_offset[slot])
        epoch = int(slots.leader_epoch[slot])
        today = self._ends.topic_id(topic) or (extent.topic_id if extent else None)
        owner = None
        if self._membership:
            keys = [(one, number) for one in (topic, topic_id, today) if one]
            owner = self._membership.owner(keys, record_offset)
        expires_ms = self._expires(slot, topic)
        is_over = expires_ms is not None and expires_ms <= self._retention.now_ms
        pending = (topic, number) in self._pending
        return CommittedOffset(
            group=self._group,
            topic=topic,
            partition=number,
            offset=int(slots.offset[slot]),
            record_offset=record_offset,
            leader_epoch=None if epoch == NONE else epoch,
            metadata=_text(slots.metadata.get(slot, b"")),
            commit_ms=int(slots.commit_timestamp[slot]),
            member=owner,
            expires_ms=expires_ms,
            topic_id=topic_id,
            topic_is=self._topic_is(topic, topic_id, today),
            extent=extent,
            pending=pending,
            expired=is_over and not pending,
        )

    def _topic_is(self, topic: str, topic_id: str | None, today: str | None) -> str:
        if self._ends.is_gone(topic):
            return "gone"
        if topic_id is None or today is None:
            return "unknown"
        return "same" if topic_id == today else "other"

    def _expires(self, slot: int, topic: str) -> int | None:
        own = self._slots.expire_timestamps.get(slot)
        committed = int(self._slots.commit_timestamp[slot])
        group = self._membership
        base = committed
        if group and group.subscribes(topic):
            return None
        if group and group.type == CLASSIC and group.protocol_type is not None:
            if not group.members:
                base = committed if group.state_timestamp is None else group.state_timestamp
            elif group.protocol_type != CONSUMER_PROTOCOL:
                return None
        return base + self._retention.kept_ms if own is None else own


def _group_of_each(slots: Slots) -> tuple[Column, list[str], Column]:
    """Return for each slot the number of its group, and whether it is that of a commit; the names.

    Keys that tell no group have the number -1.
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
    return numbers, [_text(name) for name in known], is_commit


def _in_order(slots: Slots, chosen: Column, takes: Takes) -> list[int]:
    """Return those of the slots that are meant, by topic and partition."""
    found = []
    for slot in chosen.tolist():
        _, topic, number = parse_commit_key(slots.key(slot))
        if takes(topic, number):
            found.append((topic, number, slot))
    return [slot for _, _, slot in sorted(found)]


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
                metadata=_text(rows.metadata[row]),
            )


def _sizes(slots: Slots, mine: Column) -> GroupSizes:
    records, size = int(slots.records[mine].sum()), int(slots.size[mine].sum())
    return GroupSizes(
        records=records,
        bytes=size,
        superseded_records=records - len(mine),
        superseded_bytes=size - int(slots.last_size[mine].sum()),
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
