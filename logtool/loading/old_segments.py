"""Segments that a truncation removed and that a crash brought back, and segments that overlap.

A log is truncated, goes on in a later leader epoch, and its machine stops before the directory is
durable: a segment of the past is there again (KAFKA-615 has such a "zombie segment"). No broker
looks for one: ``LogLoader.loadSegmentFiles`` (Kafka 3.9 and 4.3) takes every ``.log``, and the log
ends where the last segment does. A reader gets the segment with the greatest base offset that is
not above the one it asks for (``LogSegments.floorSegment``), and so a zombie's records in place of
those that were written after the truncation.

Leader epochs decide: along a log they never go down. A segment is a zombie where all its batches
are of an earlier epoch than ``leader-epoch-checkpoint`` has for its base offset, and a segment
before it holds a batch of a later epoch. Where only the batches say so, or two segments of one
epoch overlap, as an interrupted cleaning or split may leave them, nothing is decided here.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from logtool.formats import offset_index, wording
from logtool.formats.names import FileKind
from logtool.formats.record_batch import MAGIC
from logtool.loading import cuts
from logtool.loading.result import LoadResult, Overlap, Zombie
from logtool.loading.segments import LoadedSegment
from logtool.loading.shadow import Shadow
from logtool.log.batches import read_batches

_HEAD = struct.Struct(">qiiB")
Rows = Sequence[tuple[int, int]]
"""(leader epoch, start offset) in order, as `EpochCache` has them."""


class _Epochs(NamedTuple):
    least: int
    most: int
    """-1 where no batch has an epoch."""
    end: int
    """Offset behind the last batch."""

    @property
    def said(self) -> str:
        return "none" if self.most < 0 else wording.through(self.least, self.most)


def find(
    shadow: Shadow, segments: Sequence[LoadedSegment], rows: Rows
) -> tuple[dict[int, Zombie], list[Overlap]]:
    """Return the zombies of a log by base offset, and segments that only their batches call so.

    `rows` are those of the checkpoint. Of each segment the first batch is looked at; whole logs are
    read only where that is of an earlier epoch than it should be. UnreadableError where a log
    cannot be read.
    """
    zombies: dict[int, Zombie] = {}
    doubts: list[Overlap] = []
    if len(segments) < 2 or (rows and rows[-1][0] <= 0):
        return zombies, doubts  # no epoch is later than another
    witnesses: dict[int, int] = {}
    bases = [segment.base_offset for segment in segments]
    latest = _first_epoch(shadow, segments[0])
    for number, segment in enumerate(segments[1:], 1):
        head = _first_epoch(shadow, segment)
        current, since = _current(rows, segment.base_offset)
        if head < 0 or head >= max(current, latest):
            latest = max(latest, head)
            continue
        if latest <= head and bases[0] <= since:
            # The batch that began the epoch stands where the checkpoint says, if it is right.
            at = bisect_right(bases, since, hi=number) - 1
            if at not in witnesses:
                witnesses[at] = _epochs(shadow, segments[at]).most
            latest = max(latest, witnesses[at])
        if latest <= head:
            continue
        own = _epochs(shadow, segment)
        if own.most >= latest:
            latest = own.most
        elif current > own.most:
            follower = segments[number + 1] if number + 1 < len(segments) else None
            zombies[segment.base_offset] = _zombie(shadow, segment, own, (current, since), follower)
        else:
            says = f"has epoch {current} at that offset" if rows else "has no entry for that offset"
            text = (
                f"is of leader epoch {own.most}, but an earlier segment has a batch of "
                f"epoch {latest}, and leader-epoch-checkpoint {says}: the epochs do not "
                "show whether a truncation had removed this segment; compare it with "
                "other replicas (logtool diff)"
            )
            doubts.append(Overlap(segment.base_offset, segment.size, text))
    return zombies, doubts


def overlaps(
    shadow: Shadow, segments: Sequence[LoadedSegment], known: LoadResult
) -> Iterator[Overlap]:
    """Yield the segments that begin before the one before them ends, but none that is `known`.

    Of a segment that was not recovered the last entry of the index is asked first, and the log only
    where that lies behind the next segment.
    """
    ends = {one.base_offset: one.next_offset for one in known.recovered}
    reported = {*known.zombies, *(one.base_offset for one in known.overlaps)}
    for left, right in pairwise(one for one in segments if one.base_offset not in reported):
        end = ends.get(left.base_offset)
        if end is None:
            end = _indexed(shadow, left)
            end = _epochs(shadow, left).end if end > right.base_offset else end
        if end <= right.base_offset:
            continue
        one, other = _epochs(shadow, left).said, _epochs(shadow, right).said
        text = (
            f"begins at offset {right.base_offset}, but {left.name(FileKind.LOG)} ends at "
            f"{end - 1}: leader epochs do not show which of the two segments is right: "
            f"the earlier segment has {one}, this segment has {other}; consumers that ask "
            f"for {wording.offsets(right.base_offset, end - 1)} get this segment; after "
            "an interrupted cleaning or split both hold the same records: compare them "
            "(logtool dump)"
        )
        yield Overlap(right.base_offset, right.size, text)


def _zombie(
    shadow: Shadow,
    segment: LoadedSegment,
    own: _Epochs,
    current: tuple[int, int],
    follower: LoadedSegment | None,
) -> Zombie:
    lost = cuts.count(shadow, segment)
    return Zombie(
        base_offset=segment.base_offset,
        size=segment.size,
        batches=lost.batches,
        records=lost.records,
        last_offset=own.end - 1,
        leader_epoch=own.most,
        log_epoch=current[0],
        since=current[1],
        next_base_offset=follower.base_offset if follower else None,
    )


def _current(rows: Rows, offset: int) -> tuple[int, int]:
    """Return the epoch of the log at an offset and where it begins; (-1, -1) where none does."""
    at = bisect_right(rows, offset, key=lambda row: row[1])
    return rows[at - 1] if at else (-1, -1)


def _first_epoch(shadow: Shadow, segment: LoadedSegment) -> int:
    """Return the epoch of the first batch, -1 without an epoch or without a batch."""
    data = shadow.files[segment.name(FileKind.LOG)].read(0, _HEAD.size)
    if len(data) < _HEAD.size:
        return -1
    _, _, epoch, magic = _HEAD.unpack(data)
    return int(epoch) if magic == MAGIC else -1


def _epochs(shadow: Shadow, segment: LoadedSegment) -> _Epochs:
    """Return the epochs and the end offset of the sound batches of a segment."""
    least, most, end = 2**31, -1, segment.base_offset
    with shadow.files[segment.name(FileKind.LOG)].open() as log:
        for chunk in read_batches(log, base_offset=segment.base_offset, payload=False):
            if not len(chunk.table):
                continue
            known = chunk.table.leader_epoch[chunk.table.leader_epoch >= 0]
            if len(known):
                least, most = min(least, int(known.min())), max(most, int(known.max()))
            end = max(end, int(chunk.table.last_offset.max()) + 1)
    return _Epochs(least, most, end)


def _indexed(shadow: Shadow, segment: LoadedSegment) -> int:
    """Return the offset behind the last entry of the offset index, which the log reaches."""
    file = shadow.files.get(segment.name(FileKind.OFFSET_INDEX))
    size = offset_index.ENTRY_SIZE
    count = file.size // size if file else 0
    if not file or not count:
        return segment.base_offset
    relative = int.from_bytes(file.read((count - 1) * size, 4), "big")
    return segment.base_offset + relative + 1 if relative else segment.base_offset
