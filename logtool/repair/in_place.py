"""A log that is repaired in its own place, with batches of another copy in place of damage.

The proofs are those of `logtool.repair.filling`. The batches stay in the log, so the conditions are
stricter than for `salvage`:

* The other copy has the same topic id and the same cluster, as far as both are known.
* Behind our last batch a leader may have truncated batches that another copy still holds. So only
  batches that this log is known to have held are taken: offsets below a high watermark of either
  copy, its own recovery point, its newest producer snapshot or the last entry of its last offset
  index, and batches of which bytes are left.
* A beginning that is lost is filled from its first lost offset on, and not below the copy's log
  start offset: what lies below was deleted, and must not come back.
* A segment that seems to hold batches of another partition is replaced as a whole, by batches of
  which the producer snapshot behind it names one.
* A copy that was cleaned at another time holds other batches. So the batches must be as long as the
  damage; or both copies hold the same batches in the rest of the segment; or neither lacks any
  offset.

A segment below the recovery point is replaced only if none of its damage is left: a broker does not
read it again, and if it did, it would truncate it.
"""

from bisect import bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path

from logtool.checks.foreign_segments import ForeignSegment
from logtool.disk import joined as made
from logtool.disk.joined import Extract, Joined
from logtool.errors import UnreadableError
from logtool.formats import names, offset_index
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.loading.shadow import ShadowFile
from logtool.log.chunk import Chunk
from logtool.log.dir import Partition
from logtool.repair import acknowledged, filling, header_tampering, holes, ranges, reading
from logtool.repair.filling import FillRange, Hole
from logtool.repair.ranges import (
    Kept,
    Part,
    Rejected,
    RejectReason,
    is_dense,
    missing,
    with_gaps,
)
from logtool.repair.salvage import bounded
from logtool.repair.sources import DamagedLog, log_start_of, usable


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """One log that is to be repaired."""

    listed: Partition
    fill_from: Sequence[Path]
    """Log dirs or partition dirs of other copies; the first that helps is taken."""
    end: int
    """The end offset that the log is known to have reached."""
    recovered_from: int | None
    """The recovery point; None if a start recovers no segment."""
    start: int | None = None
    """First offset of a beginning that the log has lost; None if it has lost none."""
    log_start: int = 0
    """The log start offset in the checkpoint, below which a broker serves nothing."""
    foreign: Sequence[ForeignSegment] = ()
    """Segments that seem to hold batches of another partition."""


@dataclass(frozen=True, slots=True)
class RepairedLog:
    """Result of a repair."""

    joined: dict[int, Joined] = field(default_factory=dict)
    """The changed and new logs, by base offset."""
    whole: frozenset[int] = frozenset()
    """Base offsets of the logs in `joined` in which no damage is left."""
    reported: tuple[Rejected, ...] = ()
    """The damaged ranges in order, with the copy that fills them and the proof."""


def replaced(wanted: RepairRequest, on_bytes: Callable[[int], None]) -> RepairedLog:
    """Return the repaired log; UnreadableError if the log itself cannot be read."""
    source = DamagedLog(wanted.listed, 0)
    asked = list(usable(wanted.listed, source.name, wanted.fill_from))
    copies = [one for one in asked if isinstance(one, Partition)]
    refused = [str(one) for one in asked if not isinstance(one, Partition)]
    begin = _begin(wanted, copies)
    bases = source.bases if begin is None else sorted({*source.bases, begin})
    found = list(_found(source, wanted, begin, copies, on_bytes))
    if not any(isinstance(part, Rejected) for part in found):
        return RepairedLog()
    if source.zombies():
        copies, refused = [], ["a truncation had removed segments, but the segments have come back"]
    own = [part for part in found if isinstance(part, Kept)]
    parts: list[Part] = []
    if copies:
        end = max(wanted.end, _indexed_end(source.listed))
        conditions = _InPlaceCondition(end, own, wanted.start, begin or 0, wanted.foreign)
        rows, paths = source.epochs(), [copy.path for copy in copies]
        for item in filling.fill(wanted.listed, found, paths, rows, bases, conditions):
            if isinstance(item, UnreadableError):
                refused.append(str(item))
            else:
                parts.append(item)
    else:
        parts = found
    first = min(bases, default=0)
    parts = list(holes.without_spare_bytes(list(holes.without_repeats(parts, first)), first))
    result = _Assembly(source, parts, wanted, bases).result()
    shown = source.lost_logs if begin is None else [*source.lost_logs, begin]
    return replace(result, reported=tuple(_reported(result.reported, refused, shown)))


def _begin(wanted: RepairRequest, copies: Sequence[Partition]) -> int | None:
    """Return the first offset from which a lost beginning is filled; None without one.

    It may lie within a batch. The whole batch is taken where the checkpoint of the log start hides
    its other records.
    """
    start = wanted.start
    if start is None or start > wanted.log_start:
        return start
    around = [
        int(base)
        for copy in copies
        for chunk in _chunks(copy, start, start)
        for base in chunk.table.base_offset[
            (chunk.table.first_offset <= start) & (chunk.table.last_offset >= start)
        ].tolist()
    ]
    return min([start, *around])


def _reported(
    rejects: Sequence[Rejected], refused: Sequence[str], shown: Sequence[int]
) -> Iterator[Rejected]:
    """Yield the rejects to be reported, with the copies that could not be used.

    Offsets that no copy has, and that no file of ours shows, are not reported here; `shown` has the
    base offsets of missing logs that our files show.
    """
    for one in rejects:
        proof = one.proof or ""
        is_seen = one.kind is not RejectReason.MISSING or _base(one.path) in shown
        if one.filled_from or not (refused or is_seen or proof.endswith(filling.NO_COPY)):
            yield one
        elif is_seen or refused:
            yield one.refused(refused)


def _base(path: Path) -> int:
    return int(path.name.partition(".")[0])


def _found(
    source: DamagedLog,
    wanted: RepairRequest,
    begin: int | None,
    copies: Sequence[Partition],
    on_bytes: Callable[[int], None],
) -> Iterator[Part]:
    """Yield the parts of a log, with rejects for offsets missing between and behind segments."""
    ends = [*(base for base, _ in source.logs[1:]), None]
    foreign = {one.base_offset: one for one in wanted.foreign}
    by_base: dict[int, list[Part]] = {}
    for (base, file), end in zip(source.logs, ends[: len(source.logs)], strict=True):
        read = reading.read(reading.LogToRead(file, base, end, source.listed.flavour), on_bytes)
        if isinstance(read, UnreadableError):
            raise read
        by_base[base] = list(read.found)
        if one := foreign.get(base):
            by_base[base] = [ranges.foreign(file, one.reason, base, one.last_offset)]
    for base in source.lost_logs:
        by_base.setdefault(base, []).append(
            missing(source.listed.path, base, "the log of an index is missing")
        )
    if begin is not None and begin not in by_base:
        text = "the beginning of the log is missing"
        by_base[begin] = [missing(source.listed.path, begin, text)]
    found = [part for base in sorted(by_base) for part in by_base[base]]
    found = list(header_tampering.without_altered(found, source.epochs(), copies))
    first = min(by_base, default=0)
    found = holes.with_holes(found, source.listed, copies, first)
    last = next((part.last for part in reversed(found) if isinstance(part, Kept)), None)
    end = last.last_offset + 1 if last else 0
    if end < wanted.end and not (found and isinstance(found[-1], Rejected)):
        text = f"the log ends at {end}, but earlier reached {wanted.end}"
        found.append(replace(missing(source.listed.path, end, text), path=_last_log(source, end)))
    yield from bounded(list(with_gaps(found, source.listed.path)), first)


def _indexed_end(listed: Partition) -> int:
    """Return the offset behind the last entry of the last offset index; 0 without one."""
    indexes = {one.base_offset: one.indexes.get(FileKind.OFFSET_INDEX) for one in listed.segments}
    indexes |= {
        file.name.offset or 0: file
        for file in listed.orphans
        if file.name.kind is FileKind.OFFSET_INDEX
    }
    base = max(indexes, default=0)
    file = indexes.get(base)
    if file is None:
        return 0
    try:
        entries = offset_index.parse(ShadowFile(file, file.size).read())
    except UnreadableError:
        return 0
    return base + int(entries.relative_offsets.max(initial=-1)) + 1


def _last_log(source: DamagedLog, end: int) -> Path:
    name = names.format_partition_file(end, FileKind.LOG)
    return source.logs[-1][1].path if source.logs else source.listed.path / name


@dataclass(frozen=True, slots=True)
class _InPlaceCondition:
    """Further conditions of the module docstring; see `FillCondition`."""

    known: int
    own: Sequence[Kept]
    lost: int | None = None
    """First offset of a lost beginning; None without one."""
    begin: int = 0
    """First offset of the batch with this offset."""
    foreign: Sequence[ForeignSegment] = ()

    def start(self, copy: Partition) -> int:
        """Return the first offset that may be taken: below a copy's log start all is deleted."""
        if self.lost is None:
            return 0
        deleted = log_start_of(copy)
        return deleted if deleted > self.lost else self.begin

    def end(self, copy: Partition) -> int:
        """Return the offset that the log is known to have reached, also by a copy's checkpoint."""
        return max(self.known, acknowledged.watermark(copy))

    def refusal(self, hole: Hole, copy: Partition, chosen: Sequence[FillRange]) -> str | None:
        """Return the reason why proved batches do not fill a hole after all, or None."""
        tables = [one.table for one in chosen]
        bases = {one.first_offset for one in hole.rejects if one.kind is RejectReason.FOREIGN}
        foreign = (one for one in self.foreign if one.base_offset in bases)
        if not all(one.is_replaced_by(tables) for one in foreign):
            return "that copy lacks the batch that the producer snapshot names"
        size = sum(int(one.table.size.sum()) for one in chosen)
        damaged = sum(one.length for one in hole.rejects)
        if size == damaged:
            return None
        if any(one.torn for one in chosen) or _is_damaged(copy, hole):
            return "that copy is damaged in the same place"
        if all(map(is_dense, self.own)):
            return (
                None
                if self._joins(hole, copy, chosen)
                else "that copy lacks offsets in the same place"
            )
        if size >= damaged and self._same_around(hole, copy):
            return None
        return (
            "that copy lacks offsets in the same place, or was cleaned at another time: "
            "its batches are not as long as the damaged range"
        )

    def _joins(self, hole: Hole, copy: Partition, chosen: Sequence[FillRange]) -> bool:
        """Return whether no offset is missing between the batches of a hole and those around it.

        At the start of our log, none is missing from the first segment of the copy on, nor from its
        first batch above its log start.
        """
        at = hole.low + 1
        if hole.before is None and copy.segments:
            at = max(at, copy.segments[0].base_offset)
            if self.lost is not None and hole.start > self.begin:
                at = int(chosen[0].table.first_offset[0])
        for stretch in chosen:
            table, begins = stretch.table, stretch.table.first_offset
            if at != int(begins[0]):
                return False
            if not (begins[1:] == table.last_offset[:-1] + 1).all():
                return False
            at = int(table.last_offset[-1]) + 1
        return hole.behind is None or at == hole.behind.start

    def _same_around(self, hole: Hole, copy: Partition) -> bool:
        """Return whether a copy holds the same batches as ours in the rest of the segments."""
        edges = {edge for edge in (hole.before, hole.behind) if edge}
        paths = {one.path for one in self.own if edges & {one.first, one.last}}
        around = [one for one in self.own if one.path in paths]
        return bool(around) and all(_holds(copy, one) for one in around)


def _is_damaged(copy: Partition, hole: Hole) -> bool:
    """Return whether a copy is damaged between the batches around a hole."""
    low = hole.low
    high = hole.behind.base_offset if hole.behind else 2**63 - 1
    end, torn = -1, False
    for chunk in _chunks(copy, low, high):
        if chunk.damage:
            torn = True
            continue
        if torn and end < high and int(chunk.table.first_offset[0]) > low + 1:
            return True
        end, torn = int(chunk.table.last_offset[-1]), False
    return torn and hole.behind is not None and end < high


def _holds(copy: Partition, extent: Kept) -> bool:
    """Return whether a copy has as many batches and bytes as an extent, at its offsets."""
    low, high = extent.first.base_offset, extent.last.last_offset
    batches = size = 0
    for chunk in _chunks(copy, low, high):
        table = chunk.table
        rows = (table.last_offset >= low) & (table.base_offset <= high)
        batches, size = batches + int(rows.sum()), size + int(table.size[rows].sum())
    return (batches, size) == (extent.batches, extent.size)


def _chunks(copy: Partition, low: int, high: int) -> Iterator[Chunk]:
    """Yield the chunks of the segments of a copy that may hold offsets of a range."""
    for segment in copy.segments:
        beyond = segment.next_base_offset is not None and segment.next_base_offset <= low
        if beyond or segment.base_offset > high:
            continue
        yield from segment.batches(payload=False)


class _Assembly:
    """Builder of the repaired log from its parts, segment by segment."""

    def __init__(
        self,
        source: DamagedLog,
        parts: Sequence[Part],
        wanted: RepairRequest,
        bases: Sequence[int],
    ) -> None:
        self._source, self._parts, self._wanted = source, parts, wanted
        self._base_of = {file.path: base for base, file in source.logs}
        self._bases = list(bases)
        self._pieces: dict[int, list[Extract]] = {}
        self._changed: set[int] = set()
        self._broken: set[int] = set()
        self._reported: list[tuple[Rejected, int | None]] = []
        """Rejects, each with the base offset of its segment."""

    def result(self) -> RepairedLog:
        """Return the repaired log."""
        last_own = self._last_own()
        end, hole = -1, 0
        waiting: list[Rejected] = []
        inodes: dict[Path, int] = {}

        def piece(path: Path, position: int, size: int) -> Extract:
            if path not in inodes:
                inodes[path] = made.inode(path)
            return Extract(path, position, size, inodes[path])

        for number, part in enumerate(self._parts):
            if isinstance(part, Rejected):
                waiting.append(part)
                continue
            if part.filled:
                base = self._place(part, number, end, last_own)
                self._changed.add(base)
                hole += part.size
            else:
                self._settle(waiting, hole, piece)
                waiting, hole = [], 0
                base = self._base_of[part.path]
            self._pieces.setdefault(base, []).append(piece(part.path, part.position, part.size))
            end = part.last.last_offset
        self._settle(waiting, hole, piece)
        return self._chosen()

    def _last_own(self) -> dict[int, int]:
        """Return the number of the last own part that stays in each segment, by base offset."""
        last: dict[int, int] = {}
        for number, part in enumerate(self._parts):
            stays = not part.filled if isinstance(part, Kept) else part.filled_from is None
            if stays and part.path in self._base_of:
                last[self._base_of[part.path]] = number
        return last

    def _place(self, part: Kept, number: int, end: int, last_own: dict[int, int]) -> int:
        """Return the base offset of the segment that a batch of another copy goes to.

        It is the segment of our log with that offset, or a new one as in the other copy, if our
        own batches of the segment end before it. A beginning that is cut out of a segment of the
        other copy is a segment from its first batch on: a log begins at its first base offset.
        """
        first = part.first.base_offset
        theirs = _base(part.path)
        at = bisect_right(self._bases, first)
        own = self._bases[at - 1] if at else theirs
        is_new = own < theirs <= first and theirs > end and last_own.get(own, -1) < number
        base = theirs if is_new else own
        if end < 0 and self._wanted.start is not None and part.position:
            base = first
        if base not in self._bases:
            insort(self._bases, base)  # Further extents of the file follow.
        return base

    def _settle(
        self, rejects: Sequence[Rejected], filled: int, piece: Callable[[Path, int, int], Extract]
    ) -> None:
        """Add the rejects of a hole: bytes that are not filled stay, behind the batches taken."""
        for one in rejects:
            base = self._base_of.get(one.path)
            if base is not None and one.length:
                if one.filled_from:
                    self._changed.add(base)
                else:
                    gone = min(filled, one.length)
                    filled -= gone
                    rest = piece(one.path, one.position + gone, one.length - gone)
                    self._pieces.setdefault(base, []).append(rest)
                    self._broken.add(base)
            self._reported.append((one, base))

    def _chosen(self) -> RepairedLog:
        """Return the segments to replace: one with damage left only if a start reads it."""
        left = {base for base in self._changed & self._broken if not self._is_recovered(base)}
        if (last := max(self._base_of.values(), default=-1)) in left:
            left |= {base for base in self._changed if base > last}  # They would follow a gap.
        changed = self._changed - left
        text = (
            "other damage in the segment cannot be filled, and no broker reads it at a "
            "start: it stays"
        )
        reported = [
            replace(one, filled_from=None, proof=text) if one.filled_from and base in left else one
            for one, base in self._reported
        ]
        return RepairedLog(
            joined={base: Joined(self._pieces.get(base, ())) for base in sorted(changed)},
            whole=frozenset(changed - self._broken),
            reported=tuple(reported),
        )

    def _is_recovered(self, base: int) -> bool:
        point = self._wanted.recovered_from
        if point is None:
            return False
        below = [one for one in {*self._bases, *self._pieces} if one <= point]
        return base >= max(below, default=point)
