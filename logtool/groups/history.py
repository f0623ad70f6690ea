"""Events of one group, record by record in the order of the log."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from logtool.errors import FormatError
from logtool.findings import Finding
from logtool.formats import compression
from logtool.formats.messages.codec import Value
from logtool.formats.record_batch import BatchTable
from logtool.groups import findings, redpanda
from logtool.groups.commits import COMMIT_TYPES, decode
from logtool.groups.loading import is_torn, torn_batch
from logtool.groups.membership import Memberships
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition, Segment
from logtool.log.keys import NONE
from logtool.log.record_table import RecordTable, Unread
from logtool.times import rfc3339


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """One record of a group, or the end of a transaction in which it has committed."""

    record_offset: int
    time_ms: int | None
    what: str
    """`commit`, `transactional-commit`, `delete-offset`, `committed`, `aborted`, or the name of
    the record, such as ``GroupMetadata``."""
    state: str | None
    """State of the group after it; None before the first record that is no commit."""
    members: int
    epoch: int | None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    member: str | None = None
    """For a commit the member that owned the partition, else the member that the record names."""
    producer_id: int | None = None
    deleted: bool = False
    """True if the record is a tombstone."""
    set_back: int | None = None
    """Offsets by which it lies below the one that counted before; None if it does not."""
    ended: tuple[int, ...] = ()
    """Offsets of the group's records in the transaction that ended."""

    @property
    def time(self) -> str | None:
        """Return its time as text; None if it has no time, or it is out of range of a date."""
        return rfc3339(self.time_ms)


def of_group(
    listed: Partition, group: str, on_bytes: Callable[[int], None], *, clean: bool
) -> Iterator[GroupEvent | Finding]:
    """Yield the events of a group in one copy of its partition of ``__consumer_offsets``.

    Findings report what cannot be read: records of any group may be lost there. `clean`: the log
    dir was stopped in order.
    """
    replay = _GroupReplay(group)
    for segment in listed.segments:

        def placed(finding: Finding, segment: Segment = segment) -> Finding:
            return finding.placed(
                segment.log.path, topic=listed.topic, partition=listed.number,
                segment=segment.base_offset,
            )  # fmt: skip

        for chunk in segment.batches():
            if chunk.damage:
                damage = chunk.damage
                if not (segment.is_active and is_torn(damage)):
                    yield placed(
                        findings.missing_records(
                            listed.topic, damage.message, damage.position, damage.length
                        )
                    )
                elif torn := torn_batch(segment, damage):
                    yield placed(findings.torn_batch(torn, clean=clean))
                continue
            on_bytes(int(chunk.table.size.sum()))
            ends = _ends(chunk.table)
            for part in redpanda.read(chunk, compression.DEFAULT_LIMIT):
                if isinstance(part, Unread):
                    yield placed(
                        findings.unreadable_record(part.reason, part.first_offset, part.last_offset)
                    )
                    continue
                producer_ids = part.of_batches(part.batches.producer_id)
                for row in range(len(part.offset)):
                    while ends and ends[0][0] < part.offset[row]:
                        yield from replay.end(*ends.pop(0))
                    try:
                        yield from replay.record(part, row, int(producer_ids[row]))
                    except FormatError as error:
                        offset = int(part.offset[row])
                        yield placed(findings.unreadable_record(error.reason, offset, offset))
            for one in ends:
                yield from replay.end(*one)


def _ends(table: BatchTable) -> list[tuple[int, int, bool, int]]:
    """Return the ends of transactions as `redpanda.ends`, each with the time of its batch, ms."""
    markers = redpanda.ends(table)
    mine = table[np.isin(table.last_offset, [offset for offset, _, _ in markers])]
    times = dict(zip(mine.last_offset.tolist(), mine.max_timestamp.tolist(), strict=True))
    return [(*marker, times[marker[0]]) for marker in markers]


class _Commit(NamedTuple):
    """A commit of an offset."""

    record_offset: int
    topic: str
    partition: int
    offset: int


class _GroupReplay:
    """A replay of the records of one group."""

    def __init__(self, group: str) -> None:
        self._group = group
        raw = group.encode("utf-8", "replace")
        self._head = len(raw).to_bytes(2, "big") + raw
        self._memberships = Memberships()
        self._open: dict[int, list[_Commit]] = {}
        """The commits in the open transaction of each producer."""
        self._committed: dict[tuple[str, int], _Commit] = {}
        """The commit that counts, by topic and partition."""

    def record(self, records: RecordTable, row: int, producer_id: int) -> Iterator[GroupEvent]:
        """Yield the event of a record, if it is one of the group; FormatError as `decode`."""
        key = records.key(row)
        if key is None or key[2 : 2 + len(self._head)] != self._head:
            return
        found = decode(row, key, records.value(row))
        if found is None:
            return
        offset = int(records.offset[row])
        time_ms = int(records.timestamp[row])
        if found.type in COMMIT_TYPES:
            yield self._commit(offset, producer_id, found.key, found.value, time_ms)
            return
        self._memberships.replay(found.type, found.key, found.value, offset)
        yield self._event(
            offset,
            time_ms,
            found.name,
            member=found.key.get("memberId"),
            deleted=found.value is None,
        )

    def _commit(
        self,
        offset: int,
        producer_id: int,
        key: Value,
        value: Value | None,
        time_ms: int,
    ) -> GroupEvent:
        in_transaction = producer_id != NONE and value is not None
        what = "transactional-commit" if in_transaction else "commit"
        place, before = (key["topic"], key["partition"]), None
        if value is None:
            self._committed.pop(place, None)
        else:
            before = self._committed.get(place)
            commit = _Commit(offset, *place, value["offset"])
            if in_transaction:
                self._open.setdefault(producer_id, []).append(commit)
            else:
                self._committed[place] = commit
        membership = self._memberships.groups.get(self._group)
        topics = (key["topic"], (value or {}).get("topicId"))
        places = [(topic, key["partition"]) for topic in topics if topic]
        return self._event(
            offset,
            time_ms if value is None else value["commitTimestamp"],
            what if value is not None else "delete-offset",
            topic=key["topic"],
            partition=key["partition"],
            offset=None if value is None else value["offset"],
            member=membership.owner(places, offset) if membership else None,
            producer_id=producer_id if in_transaction else None,
            deleted=value is None,
            set_back=before.offset - value["offset"]
            if before and value and before.offset > value["offset"]
            else None,
        )

    def end(
        self, offset: int, producer_id: int, commits: bool, time_ms: int
    ) -> Iterator[GroupEvent]:
        """Yield the end of a transaction in which the group has committed."""
        if ended := self._open.pop(producer_id, None):
            for one in ended if commits else ():
                place = one.topic, one.partition
                now = self._committed.get(place)
                if now is None or now.record_offset < one.record_offset:
                    self._committed[place] = one
            yield self._event(
                offset,
                time_ms,
                "committed" if commits else "aborted",
                producer_id=producer_id,
                ended=tuple(one.record_offset for one in ended),
            )

    def _event(
        self,
        record_offset: int,
        time_ms: int,
        what: str,
        *,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        member: str | None = None,
        producer_id: int | None = None,
        deleted: bool = False,
        set_back: int | None = None,
        ended: tuple[int, ...] = (),
    ) -> GroupEvent:
        membership = self._memberships.groups.get(self._group)
        return GroupEvent(
            record_offset=record_offset,
            time_ms=None if time_ms == NONE else time_ms,
            what=what,
            state=membership.state if membership else None,
            members=len(membership.members) if membership else 0,
            epoch=membership.epoch if membership else None,
            topic=topic,
            partition=partition,
            offset=offset,
            member=member,
            producer_id=producer_id,
            deleted=deleted,
            set_back=set_back,
            ended=ended,
        )
