"""Offsets that brokers find in remote storage, by leader epoch.

For each leader epoch a broker keeps the first offsets of the segments that hold it, and looks for
an offset in the segment with the greatest of them that is not above the offset. A copy of another
leader that holds more takes the place of earlier ones. So an offset can be in a copied segment and
not be found. Source: ``RemoteLogLeaderEpochState``, ``RemoteLogMetadataCache`` (Kafka 3.9 and 4.2).
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from logtool.formats.messages.remote_log import SegmentState
from logtool.lazy_dataclass import dataclass
from logtool.remote.segments import RemotePartition, RemoteSegment

Epochs = Sequence[tuple[int, int]]
"""Leader epochs with their first offsets, in order."""


@dataclass(frozen=True, slots=True)
class FoundRange:
    """Offsets of one leader epoch that brokers find in one remote segment, both included."""

    first: int
    last: int
    epoch: int
    segment: RemoteSegment


@dataclass(slots=True)
class _EpochSegments:
    """The segments in which one leader epoch is looked up."""

    by_start: dict[int, RemoteSegment] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)
    highest: int = -1

    def add(self, start: int, segment: RemoteSegment, end: int) -> None:
        """Add a copied segment, in the order of the copies."""
        while self.starts and self.starts[-1] >= start and self.highest <= end:
            del self.by_start[self.starts.pop()]
        if start not in self.by_start:
            insort(self.starts, start)
        self.by_start[start] = segment
        self.highest = max(self.highest, end)


def index(remote: RemotePartition) -> dict[int, list[FoundRange]]:
    """Return for each leader epoch the ranges that brokers find, in order of their offsets.

    The segments that they are found in are marked as referenced.
    """
    epochs: dict[int, _EpochSegments] = {}
    for state, segment in remote.timeline:
        for epoch, start in segment.leader_epochs if state is SegmentState.COPY_FINISHED else ():
            at = epochs.setdefault(epoch, _EpochSegments())
            at.add(start, segment, segment.end_of_epoch(epoch))
    for segment in remote.segments.values():
        segment.is_referenced = False
    found: dict[int, list[FoundRange]] = {}
    for epoch, at in sorted(epochs.items()):
        # A deleted segment is taken out; what it had replaced does not come back.
        starts = [start for start in at.starts if at.by_start[start].is_readable]
        for row, start in enumerate(starts):
            segment = at.by_start[start]
            end = segment.end_of_epoch(epoch)
            if row + 1 < len(starts):
                end = min(end, starts[row + 1] - 1)
            if end >= start:
                segment.is_referenced = True
                found.setdefault(epoch, []).append(FoundRange(start, end, epoch, segment))
    return found


def along(found: dict[int, list[FoundRange]], epochs: Epochs, log_end: int) -> Iterator[FoundRange]:
    """Yield the ranges that are found by leader epochs of a log which ends at `log_end`, in order.

    Each epoch is cut to the offsets that it has in the log.
    """
    for row, (epoch, first) in enumerate(epochs):
        end = epochs[row + 1][1] if row + 1 < len(epochs) else log_end
        for one in found.get(epoch, ()):
            low, high = max(one.first, first), min(one.last, end - 1)
            if high >= low:
                yield FoundRange(low, high, epoch, one.segment)


def all_of(found: dict[int, list[FoundRange]]) -> list[FoundRange]:
    """Return the ranges of all leader epochs by first offset: for a log that is not known."""
    ranges = [one for ranges in found.values() for one in ranges]
    return sorted(ranges, key=lambda one: (one.first, one.epoch))


def gaps(ranges: Iterable[FoundRange], start: int, end: int) -> list[range]:
    """Return the offsets from `start` to before `end` that no range has; `ranges` are in order."""
    missing = []
    at = start
    for one in ranges:
        if one.first > at:
            missing.append(range(at, min(one.first, end)))
        at = max(at, one.last + 1)
        if at >= end:
            break
    if at < end:
        missing.append(range(at, end))
    return [one for one in missing if one]


def without_empty(epochs: Epochs) -> list[tuple[int, int]]:
    """Return leader epochs without those that have no record.

    Source: ``RemoteLogManager.buildFilteredLeaderEpochMap`` (Kafka 3.9 and 4.2).
    """
    after = [first for _, first in epochs[1:]]
    return [one for row, one in enumerate(epochs) if row >= len(after) or after[row] != one[1]]


def is_in_lineage(segment: RemoteSegment, epochs: Epochs, log_end: int) -> bool:
    """Return whether the leader epochs of a segment are those of a log.

    Source: ``RemoteLogManager.isRemoteSegmentWithinLeaderEpochs`` (Kafka 3.9 and 4.2).
    """
    known, own = without_empty(epochs), without_empty(segment.leader_epochs)
    if not known or not own or segment.end_offset >= log_end:
        return False
    numbers = [epoch for epoch, _ in known]
    last = own[-1][0]
    if not numbers[0] <= last <= numbers[-1]:
        return False
    counted = [one for one in own if one[0] >= numbers[0]]
    for row, (epoch, first) in enumerate(counted):
        at = bisect_right(numbers, epoch) - 1
        if at < 0 or numbers[at] != epoch:
            return False
        if row == 0 and at > 0 and first < known[at][1]:
            return False
        after = known[at + 1] if at + 1 < len(known) else None
        if epoch != last and after != counted[row + 1]:
            return False
        if epoch == last and after is not None and segment.end_offset >= after[1]:
            return False
    return True
