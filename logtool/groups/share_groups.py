"""Start offsets of share groups in ``__share_group_state``.

A snapshot sets the state of a partition of a group, an update changes it, and a tombstone of the
snapshot removes it. An update without start offset keeps the start offset. Records from the start
offset on whose delivery is complete are not part of the lag; delivery goes on behind those that
follow the start offset. Source: ``ShareCoordinatorShard`` (its handling of snapshots and updates),
``SharePartition`` (delivery after a start), ``GroupCoordinatorService`` (lag of share groups; Kafka
4.3).
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import field

import numpy as np

from logtool.disk import shell
from logtool.errors import FormatError
from logtool.findings import Finding
from logtool.formats.java_text import partition_of
from logtool.formats.messages import internal_topics
from logtool.formats.names import SHARE_GROUP_STATE
from logtool.groups import deliveries, findings
from logtool.groups.deliveries import Delivery
from logtool.groups.ends import Ends, LogEnds
from logtool.groups.loading import is_torn
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import Chunk
from logtool.log.dir import Partition
from logtool.log.keys import NONE
from logtool.log.record_table import Unread
from logtool.log.records import records
from logtool.times import rfc3339

_SNAPSHOT, _UPDATE = 0, 1

Place = tuple[str, str, int]
"""Group, topic id, partition."""


@dataclass(frozen=True, slots=True)
class ShareState:
    """The state of one partition of a share group."""

    start_offset: int | None
    """Offset from which the group reads; None before it was initialized."""
    delivered: int | None
    """Number of records from the start offset on whose delivery is complete; None if unknown."""
    leader_epoch: int
    written_ms: int
    """Time of its last record, in ms."""
    record_offset: int
    stored_in: int = 0
    """The partition of ``__share_group_state`` that has its records."""
    live: Sequence[Delivery] = ()
    """States of the records from the start offset on."""
    settled: list[Delivery] = field(default_factory=list)
    """The last states of records below the start offset; empty unless the run asks for them."""


@dataclass(frozen=True, slots=True)
class ShareOffset:
    """The state of one partition of a share group, with the partition on these disks."""

    group: str
    topic: str | None
    """Name of the topic; None if no metadata log has the topic id."""
    topic_id: str
    partition: int
    state: ShareState
    extent: LogEnds | None
    in_doubt: bool = False
    """True if the partition of ``__share_group_state`` has lost records, maybe newer states."""

    @property
    def next_offset(self) -> int | None:
        """Return the first offset that is delivered after a start; None if it is not known."""
        start = self.state.start_offset
        return None if start is None else deliveries.next_offset(self.state.live, start)

    @property
    def acknowledged(self) -> int:
        """Return how many records from the start offset on are acknowledged."""
        return deliveries.count(self.state.live, deliveries.ACKNOWLEDGED)

    @property
    def archived(self) -> int:
        """Return how many records from the start offset on are archived."""
        return deliveries.count(self.state.live, deliveries.ARCHIVED)

    def deliveries(self) -> Iterator["ShareDelivery"]:
        """Yield the states of its records that the log still has, in order."""
        for ranges, is_below in ((self.state.settled, True), (self.state.live, False)):
            for one in deliveries.joined(ranges):
                yield ShareDelivery(self, one, is_below_start=is_below)

    @property
    def log_start(self) -> int | None:
        """Return the log start offset on these disks; None if they do not have the partition."""
        return self.extent.log_start if self.extent else None

    @property
    def log_end(self) -> int | None:
        """Return the log end offset on these disks; None if they do not have the partition."""
        return self.extent.log_end if self.extent else None

    @property
    def written(self) -> str | None:
        """Return the time of its last record, as text; None if it is out of range of a date."""
        return rfc3339(self.state.written_ms)

    @property
    def lag(self) -> int | None:
        """Return the number of records that are still to be delivered; None if it is not known."""
        start, done = self.state.start_offset, self.state.delivered
        if self.extent is None or start is None or done is None:
            return None
        return self.extent.log_end - start - done

    @property
    def place(self) -> str:
        """Return where the start offset lies, in the words of `CommittedOffset.place`."""
        start = self.state.start_offset
        if not self.extent or start is None:
            return "unknown"
        if start < self.extent.log_start:
            return "below-start"
        return "beyond-end" if start > self.extent.log_end else "in"

    def findings(self) -> Iterator[Finding]:
        """Yield a finding if the log has lost records that the group has read.

        A start offset below the log start is no finding: the group moves it by itself.
        """
        start = self.state.start_offset
        if self.extent and start is not None and self.place == "beyond-end":
            where, end = f"{self.topic}-{self.partition}", self.extent.log_end
            yield findings.beyond_end(shell.quote(self.group), where, start, end, "begins at")


@dataclass(frozen=True, slots=True)
class ShareDelivery:
    """Records of a partition with the same delivery state in a share group."""

    share: ShareOffset
    delivery: Delivery
    is_below_start: bool

    @property
    def state(self) -> str:
        """Return the state in Kafka's word, or its number if that has no word."""
        return deliveries.STATES.get(self.delivery.state, str(self.delivery.state))

    @property
    def again(self) -> bool:
        """Return whether the records are delivered again."""
        return not (self.is_below_start or self.delivery.is_complete)


class Shares:
    """States of all partitions of share groups, from the copies that were given to `read`."""

    def __init__(self, at_ms: int | None = None, *, keeps_settled: bool = False) -> None:
        """Keep the states before the first record that is later than `at_ms`, if that is given.

        With `keeps_settled`, states below the start offset are kept too.
        """
        self._states: dict[Place, ShareState] = {}
        self._at_ms = at_ms
        self._keeps_settled = keeps_settled
        self._number = 0
        self._numbers: set[int] = set()
        """The partitions of the topic that were read."""

    def read(
        self, listed: Partition, on_bytes: Callable[[int], None]
    ) -> Generator[Finding, None, bool]:
        """Read one copy of a partition of the topic; yield findings for what cannot be read in it.

        Return True if the moment was reached before the log end. UnreadableError where a file
        cannot be read.
        """
        is_over, self._number = False, listed.number or 0
        self._numbers.add(self._number)
        for segment in listed.segments:
            for chunk in segment.batches():
                if is_over:
                    return True
                is_over = self._at_ms is not None and self._at_ms < max(
                    chunk.table.max_timestamp.tolist(), default=NONE
                )
                damage = chunk.damage
                if damage and segment.is_active and is_torn(damage):
                    continue
                found = (
                    [findings.missing_records(
                        SHARE_GROUP_STATE, damage.message, damage.position, damage.length
                    )]
                    if damage
                    else self._take(chunk)
                )  # fmt: skip
                for one in found:
                    yield one.placed(
                        segment.log.path, topic=SHARE_GROUP_STATE, partition=listed.number,
                        segment=segment.base_offset,
                    )  # fmt: skip
                on_bytes(0 if damage else int(chunk.table.size.sum()))
        return is_over

    def _take(self, chunk: Chunk) -> Iterator[Finding]:
        for part in records(chunk, np.flatnonzero(~chunk.table.is_control)):
            if isinstance(part, Unread):
                yield findings.unreadable_record(part.reason, part.first_offset, part.last_offset)
                continue
            for row in range(len(part.offset)):
                offset = int(part.offset[row])
                if self._at_ms is not None and part.timestamp[row] > self._at_ms:
                    return
                try:
                    self._replay(part.key(row), part.value(row), offset, int(part.timestamp[row]))
                except FormatError as error:
                    yield findings.unreadable_record(error.reason, offset, offset)

    def _replay(self, key: bytes | None, value: bytes | None, offset: int, time_ms: int) -> None:
        of_key = internal_topics.decode_key(SHARE_GROUP_STATE, key)
        if of_key.data is None:
            return
        place = (of_key.data["groupId"], of_key.data["topicId"], of_key.data["partition"])
        if value is None:
            if of_key.type == _SNAPSHOT:
                self._states.pop(place, None)
            return
        data = internal_topics.decode_value(SHARE_GROUP_STATE, of_key.type, value).data
        if data is None:
            return
        start, done = data["startOffset"], data.get("deliveryCompleteCount", NONE)
        before = self._states.get(place)
        new = deliveries.from_batches(data["stateBatches"], offset)
        live: Sequence[Delivery] = before.live if before else ()
        settled = before.settled if before else []
        if start == NONE and of_key.type == _UPDATE and before and before.start_offset is not None:
            start = before.start_offset
        if of_key.type == _UPDATE:
            below, live = deliveries.split(deliveries.combined(live, new), start)
        else:
            below, live = deliveries.split(live, start)[0], deliveries.combined((), new)
        state = ShareState(
            start_offset=None if start == NONE else start,
            delivered=None if done == NONE else done,
            leader_epoch=data["leaderEpoch"],
            written_ms=time_ms,
            record_offset=offset,
            stored_in=self._number,
            live=live,
            settled=self._settled(settled, below, start),
        )
        self._states[place] = state

    def _settled(
        self, settled: list[Delivery], below: Sequence[Delivery], start: int
    ) -> list[Delivery]:
        """Return the states below the start offset, which may have been set back."""
        if not self._keeps_settled:
            return []
        if settled and settled[-1].last >= start:
            settled = deliveries.split(settled, start)[0]
        settled += below
        return settled

    def of_group(
        self, group: str, ends: Ends, takes: Callable[[str, int], bool]
    ) -> list[ShareOffset]:
        """Return the start offsets of a group in the selected partitions, by topic and partition.

        Without a metadata log no name is known, and `takes` gets the topic id.
        """
        found = []
        for (name, topic_id, number), state in self._states.items():
            topic = ends.topic_names.get(topic_id)
            if name == group and takes(topic or topic_id, number):
                extent = ends.extent(topic, number) if topic else None
                found.append(ShareOffset(group, topic, topic_id, number, state, extent))
        return sorted(found, key=lambda one: (one.topic or "", one.topic_id, one.partition))

    def lacking(
        self,
        group: str,
        initialized: Iterable[tuple[str, int]],
        ends: Ends,
        takes: Callable[[str, int], bool],
    ) -> list[str]:
        """Return the selected partitions of a group whose start offset should have been read.

        `initialized` are the topic ids and numbers for which the group coordinator had a start
        offset stored. Nothing is known of a past moment, nor without the number of partitions.
        """
        count = ends.partition_count(SHARE_GROUP_STATE, self._numbers)
        if count is None or self._at_ms is not None:
            return []
        names = ends.topic_names
        return sorted(
            f"{names.get(topic_id, topic_id)}-{number}"
            for topic_id, number in initialized
            if (group, topic_id, number) not in self._states
            and takes(names.get(topic_id, topic_id), number)
            and partition_of(f"{group}:{topic_id}:{number}", count) in self._numbers
        )
