"""Batches that one copy of a log lacks, taken from another copy that is proved to be the same log.

The proof is that of replication: a leader writes an offset of its epoch once, and a follower copies
it with all records before it. So if two logs hold one batch (equal offsets, leader epoch, CRC and
size), they are equal up to there.

* A hole before a batch that both copies hold is filled with the other copy's batches up to that
  batch, if both also hold the batch before the hole.
* Behind our last batch only the epochs are a proof: the other copy's batches are taken as far as
  each is of the epoch that our ``leader-epoch-checkpoint`` has for its offset, or, without such a
  file, of the epoch of our last batch.
* Without any batch of ours that file decides, if ``partition.metadata`` has one topic id in both.
* For a log without leader epochs the high watermark of the other copy decides; see
  `logtool.repair.acknowledged`.
* Else, if the other copy's batches are as long as the damage and more than half of the bytes are
  equal, the batches were there; or those up to the last one whose header is left.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np

from logtool.errors import UnreadableError
from logtool.formats.record_batch import BatchTable
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.dir import Partition, Segment
from logtool.node.identity import topic_id_of
from logtool.repair import acknowledged, ranges
from logtool.repair.bad_sectors import SectorTolerantFile
from logtool.repair.ranges import FILLABLE, BatchKey, Kept, Part, Rejected, RejectReason
from logtool.repair.reading import take

_MOST_COMPARED = 64 * 1024 * 1024
"""Bytes of damage that are compared with another copy."""
_LEAST_COMPARED = 26
"""Bytes of the smallest message: fewer prove nothing."""
_HEADER = 21
"""Bytes that hold offset, size and CRC of an entry of any magic."""
NO_COPY = "no other copy holds offsets that are missing here"
Rows = Sequence[tuple[int, int]]
"""(leader epoch, start offset) in order."""


@dataclass(frozen=True, slots=True)
class Hole:
    """A place where something is missing."""

    before: BatchKey | None
    """The batch in front of it; None at the start of the log."""
    behind: BatchKey | None
    """The batch behind it; None at its end."""
    rejects: tuple[Rejected, ...]
    start: int = 0
    """The offset at which the log begins: records below it were deleted here."""

    @property
    def low(self) -> int:
        """Return the last offset in front of it."""
        return self.start - 1 if self.before is None else self.before.last_offset

    @property
    def has_room(self) -> bool:
        """Return whether offsets are missing."""
        return self.behind is None or self.behind.start > self.low + 1


@dataclass(frozen=True, slots=True)
class FillRange:
    """Batches of one file of another copy; `torn` if damage comes before them."""

    path: Path
    table: BatchTable
    torn: bool


class FillCondition(Protocol):
    """Further conditions for a log that is filled in its own place."""

    def start(self, copy: Partition) -> int:
        """Return the first offset that may be taken into the beginning of the log."""

    def end(self, copy: Partition) -> int:
        """Return the offset that the log is known to have reached, also by a copy's checkpoint.

        From there on only batches that the log's own bytes prove are taken.
        """

    def refusal(self, hole: Hole, copy: Partition, chosen: Sequence[FillRange]) -> str | None:
        """Return the reason why proved batches do not fill a hole after all, or None."""


def fill(
    ours: Partition,
    found: Sequence[Part],
    replicas: Sequence[Path],
    epochs: Rows,
    bases: Sequence[int],
    conditions: FillCondition | None = None,
) -> Iterator[Part | UnreadableError]:
    """Yield the parts of a log with its holes filled, in order.

    `replicas` are partition dirs of other copies, the first that helps is used; `bases` are the
    base offsets of the segments that will be written, at which extents are divided, and the log
    begins at the first of them. `conditions` has further conditions for the batches.
    """
    pending: list[Part] = []
    before: BatchKey | None = None
    for part in [*found, None]:
        if isinstance(part, Rejected):
            pending.append(part)
            continue
        rejects = tuple(one for one in pending if isinstance(one, Rejected))
        behind = part.first if part else None
        hole = Hole(before, behind, rejects, min(bases, default=0))
        wanted = any(one.kind in FILLABLE for one in rejects) or part is None
        if wanted and hole.has_room:
            yield from _filled(hole, replicas, epochs, bases, ours, conditions)
        else:
            yield from rejects
        pending = []
        if part:
            yield part
            before = part.last


def _filled(
    hole: Hole,
    replicas: Sequence[Path],
    epochs: Rows,
    bases: Sequence[int],
    ours: Partition,
    conditions: FillCondition | None,
) -> Iterator[Part | UnreadableError]:
    why, own_id, asked = NO_COPY, topic_id_of(ours.path), hole
    for path in replicas:
        try:
            copy = opening.open_partition(path, ours.flavour)
            if conditions and asked.before is None:
                hole = replace(asked, start=max(asked.start, conditions.start(copy)))
            stretches = list(_stretches(copy, hole))
        except UnreadableError as error:
            yield error
            continue
        known = epochs if hole.before or topic_id_of(copy.path) == own_id is not None else ()
        end = conditions.end(copy) if conditions else None
        chosen, reason = _proved(hole, stretches, known, end, _acked(hole, ours, copy, stretches))
        refusal = conditions.refusal(hole, copy, chosen) if conditions and chosen else None
        if refusal:
            chosen, reason = [], refusal
        if chosen:
            kinds = FILLABLE - {RejectReason.FOREIGN}
            damaged = sum(one.length for one in hole.rejects if one.kind in kinds)
            whole = sum(int(one.table.size.sum()) for one in chosen) >= damaged
            first = int(chosen[0].table.first_offset[0])
            listed = hole.low
            for one in hole.rejects:
                at = first if one.first_offset is None or one.length else one.first_offset
                if at < first and hole.before is None and hole.behind:
                    yield replace(one, last_offset=first - 1, proof=_not_in(copy, first))
                    one = replace(one, first_offset=first)
                if one.kind in FILLABLE and (whole or hole.behind):
                    one = _with_offsets(one, chosen)
                    listed = max(listed, one.last_offset or 0)
                    yield replace(one, filled_from=path, proof=reason)
                else:
                    yield replace(one, filled_from=None, proof=reason)
            last = int(chosen[-1].table.last_offset[-1])
            if hole.behind is None and ours.flavour.has_checkpoints and last > listed:
                yield ranges.continued(ours, max(first, listed + 1), last, path, reason)
            for stretch in chosen:
                yield from _divided(stretch, bases)
            return
        why = reason or _begins_behind(copy, hole) or why
    for one in hole.rejects:
        yield replace(one, proof=f"nothing was taken from another copy: {why}")


def _not_in(copy: Partition, first: int) -> str:
    """Return the reason why a beginning is filled from an offset on only."""
    base = copy.segments[0].base_offset if copy.segments else first
    why = f"that copy begins at offset {base}"
    if base < first:
        why = "they are below the log start offset of that copy, or in one batch with it"
    return f"nothing was taken from another copy: {why}"


def _acked(hole: Hole, ours: Partition, copy: Partition, stretches: Sequence[FillRange]) -> int:
    """Return the offset up to which a copy proves the end of a log without leader epochs."""
    if hole.behind is not None or not ours.flavour.has_checkpoints:
        return 0
    if hole.before is None:
        tables = [stretch.table for stretch in stretches]
        same = acknowledged.is_same_partition(ours, copy)
        if not same or acknowledged.index_denies(ours, copy, tables):
            return 0
    return acknowledged.watermark(copy)


def _with_offsets(one: Rejected, chosen: Sequence[FillRange]) -> Rejected:
    """Return a reject with the offsets of the batches in its place, if it has none of its own."""
    first, last = chosen[0].table.first_offset[0], chosen[-1].table.last_offset[-1]
    return replace(
        one,
        first_offset=int(first) if one.first_offset is None else one.first_offset,
        last_offset=int(last) if one.last_offset is None else one.last_offset,
    )


def _begins_behind(copy: Partition, hole: Hole) -> str | None:
    """Return a text with the first offset of a copy, if offsets before that are missing."""
    base = copy.segments[0].base_offset if copy.segments else 0
    first = hole.low + 1
    return f"that copy begins at offset {base}" if first < base else None


def _stretches(copy: Partition, hole: Hole) -> Iterator[FillRange]:
    """Yield the batches of another copy from the one before a hole to the one behind it."""
    low = hole.before.base_offset if hole.before else hole.low
    high = hole.behind.last_offset if hole.behind else 2**63 - 1
    for segment in copy.segments:
        beyond = segment.next_base_offset is not None and segment.next_base_offset <= low
        if beyond or segment.base_offset > high:
            continue
        yield from _of_segment(segment, low, high)


def _of_segment(segment: Segment, low: int, high: int) -> Iterator[FillRange]:
    torn = False
    with segment.log.open() as log:
        for chunk in segment.batches(SectorTolerantFile(log), payload=False):
            if chunk.damage:
                torn = True
                continue
            table = chunk.table
            rows = np.flatnonzero((table.last_offset >= low) & (table.base_offset <= high))
            if len(rows):
                yield FillRange(segment.log.path, take(table, rows), torn)
                torn = False


def _proved(
    hole: Hole, stretches: Sequence[FillRange], epochs: Rows, end: int | None, acked: int
) -> tuple[list[FillRange], str | None]:
    """Return the batches of another copy that fill a hole, and the proof; or none, and the reason.

    Behind our last batch the epochs prove only offsets below `end`, if it is given, and bytes that
    are left prove the batches that they are of. Without epochs, all copies are equal below `acked`.
    """
    edges = [_edges(stretch, hole) for stretch in stretches]
    inner = [_between(stretch, hole) for stretch in stretches]
    inner = [stretch for stretch in inner if len(stretch.table)]
    if not inner:
        return [], None
    before = hole.before is None or any(edge[0] for edge in edges)
    behind = any(edge[1] for edge in edges)
    if hole.behind is not None and behind and before:
        return inner, "the batches before and after it are the same in both copies"
    if hole.behind is not None or not before:
        return [], "the batches around it differ in that copy"
    agreed = _agreeing(hole, inner)
    vouched = hole.before is not None or epochs
    taken = list(_of_our_epochs(hole.before, inner, epochs)) if vouched else []
    proof = "the leader epochs agree, and the batches before it are the same in both copies"
    lacks = "no leader epoch here shows that the batches of that copy belong to the same log"
    if not epochs and all(epoch < 0 for epoch in _first_epochs(hole, inner)):
        taken = list(_without_epochs(inner, acked))
        proof = (
            "it has no leader epochs, but that copy's high watermark shows that it was acknowledged"
        )
        lacks = "it has no leader epochs, and that copy's high watermark does not show that it was "
        lacks += (
            "acknowledged"
            if hole.before
            else "acknowledged, or does not show that it is the same log"
        )
    if end is not None and hole.behind is None:
        agreed, taken = _left_of(hole, agreed, epochs), _below(taken, end)
    if _count(agreed) > _count(taken):
        return agreed, "the remaining bytes agree with that copy"
    if not taken:
        return [], lacks
    return taken, proof


def _first_epochs(hole: Hole, inner: Sequence[FillRange]) -> Iterator[int]:
    """Yield the leader epochs of our last batch and of the first one of a copy; -1 for none."""
    if hole.before:
        yield hole.before.leader_epoch
    yield int(inner[0].table.leader_epoch[0])


def _below(stretches: Sequence[FillRange], end: int) -> list[FillRange]:
    counts = (int((one.table.base_offset < end).sum()) for one in stretches)
    return list(_first(stretches, sum(counts)))


def _left_of(hole: Hole, agreed: Sequence[FillRange], epochs: Rows) -> list[FillRange]:
    """Return the first batches of which bytes are left that do not contradict the leader epoch.

    No CRC covers the epoch: a batch that was sent to two leaders may differ in nothing else.
    """
    if not agreed:
        return []
    ours = _left(hole)
    known = [(start, epoch) for epoch, start in epochs]
    count = position = 0
    for stretch in agreed:
        table = stretch.table
        for row in range(len(table)):
            epoch = int(table.leader_epoch[row])
            at = bisect_right(known, (int(table.base_offset[row]), 2**31))
            head = ours[position : position + _HEADER]
            if position >= len(ours) or (at and known[at - 1][1] != epoch >= 0):
                return list(_first(agreed, count))
            same = head[:8] == int(table.base_offset[row]).to_bytes(8, "big")
            same &= head[17:] == int(table.crc[row]).to_bytes(4, "big")
            if same and epoch >= 0 and head[12:16] != epoch.to_bytes(4, "big"):
                return list(_first(agreed, count))
            position, count = position + int(table.size[row]), count + 1
    return list(agreed)


def _count(stretches: Sequence[FillRange]) -> int:
    return sum(len(stretch.table) for stretch in stretches)


def _edges(stretch: FillRange, hole: Hole) -> tuple[bool, bool]:
    """Return whether the batches before and behind a hole are in a stretch."""

    def holds(edge: BatchKey | None) -> bool:
        if edge is None:
            return False
        rows = np.flatnonzero(stretch.table.last_offset == edge.last_offset).tolist()
        return any(ranges.edge(stretch.table, row) == edge for row in rows)

    return holds(hole.before), holds(hole.behind)


def _between(stretch: FillRange, hole: Hole) -> FillRange:
    table = stretch.table
    high = hole.behind.base_offset if hole.behind else 2**63 - 1
    rows = np.flatnonzero((table.base_offset > hole.low) & (table.last_offset < high))
    return replace(stretch, table=take(table, rows))


def _of_our_epochs(
    last: BatchKey | None, inner: Sequence[FillRange], epochs: Rows
) -> Iterator[FillRange]:
    """Yield the batches behind our last one whose epochs our log had at these offsets."""
    known = [(start, epoch) for epoch, start in epochs]
    end, own = (last.last_offset + 1, last.leader_epoch) if last else (0, -1)
    for stretch in inner:
        table, good = stretch.table, 0
        for row in range(len(table)):
            at = bisect_right(known, (int(table.base_offset[row]), 2**31))
            epoch = known[at - 1][1] if at else own
            if int(table.leader_epoch[row]) != epoch or epoch < 0:
                break
            if int(table.base_offset[row]) < end:
                break
            end, good = int(table.last_offset[row]) + 1, row + 1
        if good:
            yield replace(stretch, table=take(table, np.arange(good)))
        if good < len(table):
            return


def _without_epochs(inner: Sequence[FillRange], acked: int) -> Iterator[FillRange]:
    """Yield the first batches without a leader epoch whose offsets are all below `acked`."""
    for stretch in inner:
        table = stretch.table
        wrong = np.flatnonzero((table.leader_epoch >= 0) | (table.last_offset >= acked))
        good = int(wrong[0]) if len(wrong) else len(table)
        if good:
            yield replace(stretch, table=take(table, np.arange(good)))
        if good < len(table):
            return


def _agreeing(hole: Hole, inner: Sequence[FillRange]) -> list[FillRange]:
    """Return the batches of another copy that agree with the damaged bytes.

    These are all, if they are as long and more than half of the bytes are equal. Else they are
    those up to the last one whose header (offset, size and CRC) is still in its place.
    """
    size = sum(one.length for one in hole.rejects)
    if not _LEAST_COMPARED <= size <= _MOST_COMPARED:
        return []
    ours = _left(hole)
    theirs = b"".join(
        _bytes(stretch.path, extent.position, extent.size)
        for stretch in inner
        for extent in _divided(stretch, ())
    )
    torn = hole.behind is None and len(theirs) > size
    least = min(size, len(theirs))
    one, other = (np.frombuffer(data[:least], np.uint8) for data in (ours, theirs))
    if (len(theirs) == size or torn) and int((one == other).sum()) * 2 > size:
        return list(inner)
    sizes = np.concatenate([stretch.table.size for stretch in inner])
    starts = (np.cumsum(sizes) - sizes).tolist()
    same = [at for at in starts if _same_header(ours, theirs, at)]
    return list(_first(inner, starts.index(same[-1]) + 1)) if same else []


def _same_header(ours: bytes, theirs: bytes, at: int) -> bool:
    return len(ours) >= at + _HEADER and ours[at : at + _HEADER] == theirs[at : at + _HEADER]


def _first(inner: Sequence[FillRange], count: int) -> Iterator[FillRange]:
    """Yield the first `count` batches of stretches."""
    for stretch in inner:
        if count <= 0:
            return
        yield replace(stretch, table=take(stretch.table, np.arange(min(count, len(stretch.table)))))
        count -= len(stretch.table)


def _left(hole: Hole) -> bytes:
    """Return the bytes of the rejects of a hole; zeros for a log that cannot be read."""
    return b"".join(
        _bytes(one.path, one.position, one.length) if one.is_given else bytes(one.length)
        for one in hole.rejects
    )


def _bytes(path: Path, position: int, size: int) -> bytes:
    from logtool.disk.files import LogFile

    if not size:
        return b""
    with LogFile(path) as log:
        data = bytearray(size)
        count = SectorTolerantFile(log).read_into(memoryview(data), position)
        return bytes(data[:count]) + bytes(size - count)


def _divided(stretch: FillRange, bases: Sequence[int]) -> Iterator[Kept]:
    """Yield the extents of a stretch: none reaches over the base of a segment."""
    table = stretch.table
    apart = table.position[1:] != (table.position + table.size)[:-1]
    for base in bases:
        apart = apart | ((table.base_offset[1:] >= base) & (table.base_offset[:-1] < base))
    for rows in np.split(np.arange(len(table)), np.flatnonzero(apart) + 1):
        yield ranges.extent(stretch.path, take(table, rows), filled=True)
