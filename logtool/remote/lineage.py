"""One partition with its remote and its local part: where each range of offsets is, and faults.

Offsets count from the log start to the log end of the furthest local copy. Without a local copy,
and for a moment in the past, only the remote part is known.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import field
from itertools import pairwise
from pathlib import Path

from logtool.findings import Finding
from logtool.formats.messages.remote_log import SegmentState
from logtool.lazy_dataclass import dataclass
from logtool.remote import coverage, findings
from logtool.remote.loading import MetadataLog
from logtool.remote.local import LocalCopy
from logtool.remote.segments import RemotePartition, RemoteSegment
from logtool.times import shown

BOTH, REMOTE, LOCAL = "both", "remote", "local"
HIDDEN, NOWHERE, DELETED, UNKNOWN = "hidden", "nowhere", "deleted", "unknown"
_PLACES = {
    (True, True): BOTH, (True, False): REMOTE, (False, True): LOCAL, (False, False): NOWHERE,
}  # fmt: skip
"""Places by whether the remote and the local part have an offset."""
PLACES = (BOTH, REMOTE, LOCAL, HIDDEN, NOWHERE, DELETED, UNKNOWN)
"""Places of a range: in both parts, in one, in remote storage between local segments, where no
consumer gets it, lost, deleted in the past, or not known."""


@dataclass(frozen=True, slots=True)
class LineageRange:
    """Offsets of one leader epoch that are in the same place, both included."""

    lineage: "PartitionLineage"
    first_offset: int
    last_offset: int
    leader_epoch: int | None
    """Leader epoch; None if no file gives it."""
    place: str
    """One of `PLACES`."""
    segments: int
    """Remote segments in which brokers find these offsets."""


@dataclass(slots=True, eq=False)
class PartitionLineage:
    """One partition: its remote segments, its furthest local copy, and the ranges of both."""

    remote: RemotePartition
    """The remote segments."""
    metadata: MetadataLog
    """The copy of the metadata topic that names the segments."""
    local: LocalCopy | None
    """The furthest local copy, or None."""
    unjudged_deletions: int = 0
    """Deletions that are not judged because retention of the topic is not known."""
    ranges: list[LineageRange] = field(init=False)
    found: list[coverage.FoundRange] = field(init=False, repr=False)
    """The ranges that brokers find in remote storage, in order."""
    _epochs: coverage.Epochs = field(init=False, repr=False)

    def __post_init__(self) -> None:
        local = self.local
        found = coverage.index(self.remote)
        # Epochs that a start would make of local batches alone do not show where offsets are.
        self._epochs = local.epochs if local and not local.lacks_remote_epochs else ()
        if local and self._epochs:
            self.found = list(coverage.along(found, self._epochs, local.log_end))
        else:
            self.found = coverage.all_of(found)
        self.ranges = list(self._ranges())

    @property
    def present(self) -> list[RemoteSegment]:
        """Return the remote segments that are not deleted, by first offset."""
        return self.remote.present

    @property
    def path(self) -> Path | None:
        """Return the partition dir of the local copy; None without one."""
        return self.local.path if self.local else None

    @property
    def log_start(self) -> int | None:
        """Return the log start offset; None without a local copy."""
        return self.local.log_start if self.local else None

    @property
    def local_start(self) -> int | None:
        """Return the base offset of the first local segment; None without a local copy."""
        return self.local.local_start if self.local else None

    @property
    def log_end(self) -> int | None:
        """Return the end of the furthest local copy; None without one."""
        return self.local.log_end if self.local else None

    @property
    def remote_start(self) -> int | None:
        """Return the first offset that brokers find in remote storage; None without one."""
        return self.found[0].first if self.found else None

    @property
    def remote_end(self) -> int | None:
        """Return the offset behind the last that brokers find in remote storage; None without."""
        return max(one.last for one in self.found) + 1 if self.found else None

    @property
    def remote_bytes(self) -> int:
        """Return the bytes of the remote segments that were copied and are not deleted."""
        return sum(one.size for one in self.remote.segments.values() if one.is_readable)

    def count(self, state: SegmentState) -> int:
        """Return the number of remote segments in a state."""
        return sum(
            one.state is state and not one.is_forgotten for one in self.remote.segments.values()
        )

    @property
    def copying(self) -> int:
        """Return the number of segments whose copy is not finished."""
        return self.count(SegmentState.COPY_STARTED)

    @property
    def copied(self) -> int:
        """Return the number of segments that are copied."""
        return self.count(SegmentState.COPY_FINISHED)

    @property
    def deleting(self) -> int:
        """Return the number of segments whose deletion is not finished."""
        return self.count(SegmentState.DELETE_STARTED)

    @property
    def deleted(self) -> int:
        """Return the number of deleted segments of which records are left."""
        return sum(one.is_gone for one in self.remote.segments.values())

    def faults(self) -> Iterator[Finding]:
        """Yield the findings about offsets and about segments, in this order."""
        local = self.local
        if local and local.lacks_remote_epochs:
            yield from findings.lacks_epochs(local, self.present)
        yield from self._hidden()
        yield from self._holes()
        below = []
        for segment in self.present:
            match segment.state:
                case SegmentState.COPY_STARTED:
                    yield findings.unfinished_copy(segment, self.remote.last_copy)
                case SegmentState.DELETE_STARTED:
                    yield findings.delete_unfinished(segment)
                case _ if self.local and segment.end_offset < self.local.log_start:
                    below.append(segment)
                case _:
                    yield from self._of_copied(segment)
        if below and self.local:
            yield findings.below_log_start(below, self.local.log_start)

    def _of_copied(self, segment: RemoteSegment) -> Iterator[Finding]:
        """Yield the faults of a copied segment that is not below the log start."""
        local = self.local
        if local and segment.end_offset >= local.log_end:
            yield findings.beyond_log_end(segment, local.log_end)
        elif not segment.is_referenced:
            yield findings.unreferenced(segment)
        elif local and self._epochs and not coverage.is_in_lineage(
            segment, self._epochs, local.log_end
        ):  # fmt: skip
            known = ", ".join(f"{epoch} from {first}" for epoch, first in self._epochs)
            yield findings.outside_lineage(segment, known)

    def joined(self, place: str) -> list[range]:
        """Return the ranges of offsets in a place, those of all leader epochs together."""
        found: list[range] = []
        for one in self.ranges:
            if one.place != place:
                continue
            if found and found[-1].stop == one.first_offset:
                found[-1] = range(found[-1].start, one.last_offset + 1)
            else:
                found.append(range(one.first_offset, one.last_offset + 1))
        return found

    def segments_in(self, offsets: range) -> list[RemoteSegment]:
        """Return the segments in which brokers find some of these offsets, in order."""
        inside = [one.segment for one in self.found
                  if one.first < offsets.stop and one.last >= offsets.start]  # fmt: skip
        return list({one.segment_id: one for one in inside}.values())

    def _hidden(self) -> Iterator[Finding]:
        for each in self.joined(HIDDEN):
            yield findings.hidden(each, self.segments_in(each), self.local_start or 0)

    def _holes(self) -> Iterator[Finding]:
        for each in self.joined(NOWHERE):
            inside = self.local is not None and each.start >= self.local.local_start
            yield findings.hole(each, self._why(each), inside=inside)

    def _why(self, lost: range) -> str:
        """Return the reason, by the records, why offsets are nowhere."""
        there = [
            one for one in self.remote.segments.values()
            if one.start_offset < lost.stop and one.end_offset >= lost.start
        ]  # fmt: skip
        if not there:
            return "no record names a segment with them"
        one = max(there, key=lambda each: (each.is_readable, each.record_offset))
        if one.is_readable:
            return (
                f"segment {one.segment_id} has offsets {one.start_offset} through "
                f"{one.end_offset}, but brokers do not find them there by the leader epochs"
            )
        if one.deleting_ms is not None:
            return f"the deletion of segment {one.segment_id} began at {shown(one.deleting_ms)}"
        if one.is_forgotten:
            return f"a null value removed segment {one.segment_id}"
        return f"the copy of segment {one.segment_id} was not finished"

    def _ranges(self) -> Iterator[LineageRange]:
        """Yield the ranges from the log start to the log end, in order."""
        local = self.local
        start = local.log_start if local else self.remote_start
        end = local.log_end if local else self.remote_end
        if start is None or end is None:
            return
        local_start = local.local_start if local else end
        first = min([local_start, *(max(one.first, start) for one in self.found
                                    if one.last >= start)])  # fmt: skip
        gone = [one.covers for one in self.remote.segments.values()
                if one.deleting_ms is not None or one.is_forgotten]  # fmt: skip
        cuts = {start, end, local_start, first, *(at for _, at in self._epochs)}
        cuts |= {at for one in self.found for at in (one.first, one.last + 1)}
        cuts |= {min(at, first) for one in gone for at in (one.start, one.stop)}
        edges = sorted(cut for cut in cuts if start <= cut <= end)
        holes = [range(first, last + 1) for first, last in local.holes] if local else []
        cuts = {*edges, *(at for one in holes for at in (one.start, one.stop))}
        edges = sorted(cut for cut in cuts if start <= cut <= end)
        remote = _Union([range(one.first, one.last + 1) for one in self.found])
        deleted, missing = _Union(gone), _Union(holes)
        kept: LineageRange | None = None
        for low, high in pairwise(edges):
            inside = local is not None and low >= local_start
            place = _PLACES[low in remote, inside and low not in missing]
            if inside and place == REMOTE:
                place = HIDDEN
            if place == NOWHERE and low < first:
                known = NOWHERE if self.metadata.is_whole else UNKNOWN
                place = DELETED if low in deleted else known
            begin, epoch = low, self._epoch_at(low)
            if kept and (kept.place, kept.leader_epoch) == (place, epoch):
                begin = kept.first_offset
            elif kept:
                yield kept
            count = remote.count(begin, high)
            kept = LineageRange(self, begin, high - 1, epoch, place, count)
        if kept:
            yield kept

    def _epoch_at(self, offset: int) -> int | None:
        row = bisect_right(self._epochs, offset, key=lambda one: one[1])
        return self._epochs[row - 1][0] if row else None


class _Union:
    """Offsets that some ranges have together."""

    def __init__(self, ranges: list[range]) -> None:
        self._first = sorted(one.start for one in ranges)
        self._stop = sorted(one.stop for one in ranges)

    def __contains__(self, offset: int) -> bool:
        return self.count(offset, offset + 1) > 0

    def count(self, first: int, stop: int) -> int:
        """Return how many ranges have an offset from `first` to before `stop`."""
        return bisect_left(self._first, stop) - bisect_right(self._stop, first)
