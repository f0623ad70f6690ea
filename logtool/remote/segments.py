"""Remote segments of one partition, as brokers keep them: replayed event by event.

A broker drops an event that does not follow from the state before, and the change of a segment
whose first record is missing. Source: ``RemoteLogMetadataCache``,
``RemoteLogSegmentState.isValidTransition``, ``RemotePartitionMetadataStore`` (Kafka 3.9 and 4.2).
"""

from dataclasses import field

from logtool.formats.messages.remote_log import PartitionDeletion, RemoteEvent, SegmentState
from logtool.lazy_dataclass import dataclass

_NEXT = {
    SegmentState.COPY_STARTED: {SegmentState.COPY_FINISHED, SegmentState.DELETE_STARTED},
    SegmentState.COPY_FINISHED: {SegmentState.DELETE_STARTED},
    SegmentState.DELETE_STARTED: {SegmentState.DELETE_FINISHED},
    SegmentState.DELETE_FINISHED: set[SegmentState](),
}
"""The states that may follow each state; the same state may always follow."""


@dataclass(slots=True)
class RemoteSegment:
    """One remote segment. Times are in ms."""

    segment_id: str
    start_offset: int
    end_offset: int
    """Last offset, inclusive."""
    size: int
    """Bytes of its log."""
    max_timestamp_ms: int
    leader_epochs: tuple[tuple[int, int], ...]
    """Leader epochs in it, each with its first offset there, in order."""
    broker_id: int
    """Node id of the broker that copied it."""
    state: SegmentState
    record_offset: int
    """Offset of its first record in the partition of the topic."""
    started_ms: int
    copied_ms: int | None = None
    """Time at which the copy was finished; None if it was not."""
    deleting_ms: int | None = None
    """Time at which the deletion began; None if none did."""
    deleted_ms: int | None = None
    """Time at which the deletion was finished; None if it was not."""
    custom_metadata: bytes | None = None
    is_forgotten: bool = False
    """True if a null value removed the record of the segment."""
    is_referenced: bool = False
    """True if brokers look up offsets in it."""

    @property
    def state_word(self) -> str:
        """Return its state as it is printed."""
        return self.state.word

    @property
    def is_readable(self) -> bool:
        """Return whether it was copied to its end and no deletion has begun."""
        return self.state is SegmentState.COPY_FINISHED and not self.is_forgotten

    @property
    def covers(self) -> range:
        """Return its offsets."""
        return range(self.start_offset, self.end_offset + 1)

    @property
    def is_gone(self) -> bool:
        """Return whether it was deleted, or a null value removed it."""
        return self.state is SegmentState.DELETE_FINISHED or self.is_forgotten

    def end_of_epoch(self, epoch: int) -> int:
        """Return the last offset of a leader epoch in it."""
        return next((first - 1 for one, first in self.leader_epochs if one > epoch),
                    self.end_offset)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unstarted:
    """A segment of which only changes are known: its first record is missing."""

    segment_id: str
    state: SegmentState
    """State by the last change."""
    record_offset: int
    """Offset of the last change."""


@dataclass(frozen=True, slots=True)
class DroppedEvent:
    """An event that brokers drop, because it does not follow from the state before."""

    segment_id: str
    before: SegmentState
    after: SegmentState
    record_offset: int


@dataclass(slots=True)
class RemotePartition:
    """The remote segments of one partition, by the events that one copy of the topic has."""

    topic: str
    topic_id: str
    number: int
    segments: dict[str, RemoteSegment] = field(default_factory=dict)
    """By id, in the order of their first records; deleted ones too."""
    timeline: list[tuple[SegmentState, RemoteSegment]] = field(default_factory=list)
    """Copies that were finished and deletions that began, in the order of their records."""
    unstarted: dict[str, Unstarted] = field(default_factory=dict)
    dropped: list[DroppedEvent] = field(default_factory=list)
    deletion: PartitionDeletion | None = None
    events: int = 0
    first_record: int | None = None
    """Offset of its first record in the partition of the topic."""
    last_copy: str | None = None
    """Id of the segment whose copy began last."""

    @property
    def deletion_word(self) -> str | None:
        """Return the state of the deletion of the partition; None if none began."""
        return self.deletion.word if self.deletion is not None else None

    @property
    def present(self) -> list[RemoteSegment]:
        """Return the segments that are not deleted, by first offset."""
        found = [one for one in self.segments.values() if not one.is_gone]
        return sorted(found, key=lambda one: (one.start_offset, one.record_offset))

    def take(self, event: RemoteEvent, offset: int, *, is_keyed: bool = False) -> None:
        """Apply the event of the record at `offset`; `is_keyed`: the record has a key."""
        self.events += 1
        if event.deletion is not None:
            self.deletion = event.deletion
            return
        assert event.segment_id is not None and event.state is not None
        known = self.segments.get(event.segment_id)
        if known is None:
            self._begin(event, event.segment_id, event.state, offset)
            return
        is_next = event.state in _NEXT[known.state] or event.state is known.state
        # A compacted topic keeps the first record of a segment and the last change alone.
        if not is_next and not (is_keyed and event.state > known.state):
            dropped = DroppedEvent(known.segment_id, known.state, event.state, offset)
            self.dropped.append(dropped)
            return
        self._change(known, event, event.state)

    def forget(self, segment_id: str) -> None:
        """Remove a segment: a null value with the key of its record was written."""
        if segment_id in self.segments:
            self.segments[segment_id].is_forgotten = True
        self.unstarted.pop(segment_id, None)

    def _begin(self, event: RemoteEvent, segment_id: str, state: SegmentState, offset: int) -> None:
        if event.start_offset is None:
            self.unstarted[segment_id] = Unstarted(segment_id, state, offset)
            return
        self.last_copy = segment_id
        self.segments[segment_id] = segment = RemoteSegment(
            segment_id=segment_id,
            start_offset=event.start_offset,
            end_offset=event.end_offset,
            size=event.size,
            max_timestamp_ms=event.max_timestamp_ms,
            leader_epochs=event.leader_epochs,
            broker_id=event.broker_id,
            state=SegmentState.COPY_STARTED,
            record_offset=offset,
            started_ms=event.event_ms,
            custom_metadata=event.custom_metadata,
        )
        if state is not SegmentState.COPY_STARTED:
            self._change(segment, event, state)

    def _change(self, segment: RemoteSegment, event: RemoteEvent, state: SegmentState) -> None:
        if event.custom_metadata is not None:
            segment.custom_metadata = event.custom_metadata
        if state is segment.state:
            return
        segment.state = state
        match state:
            case SegmentState.COPY_FINISHED:
                segment.copied_ms = event.event_ms
                self.timeline.append((state, segment))
            case SegmentState.DELETE_STARTED:
                segment.deleting_ms = event.event_ms
                self.timeline.append((state, segment))
            case SegmentState.DELETE_FINISHED:
                segment.deleted_ms = event.event_ms
