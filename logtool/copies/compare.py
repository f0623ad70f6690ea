"""Comparison of two copies of a partition: the same, behind, compacted, or diverged.

Compaction keeps the offsets, leader epoch, producer and sequence of a batch of magic 2, and leaves
it fewer records, or a delete horizon (``MemoryRecords.filterTo``); it may also remove a whole
batch. Any other difference at an equal offset is divergence: two leaders wrote the batches, or one
is damaged in a way that its CRC does not show.
"""

from collections.abc import Sequence
from dataclasses import field, replace
from itertools import combinations
from typing import Protocol

import numpy as np

from logtool.copies.batches import NOTHING, CopyBatch, CopyBatches, DamagedRange
from logtool.copies.copy import Copy, CopyReading, Epochs, WholeCopy
from logtool.copies.pair import CopyPair, Lacks, Status
from logtool.formats.record_batch import (
    CONTROL,
    DELETE_HORIZON,
    MAGIC,
    TIMESTAMP_TYPE,
    TRANSACTIONAL,
    Column,
)
from logtool.lazy_dataclass import dataclass

_KEPT = ("last_offset", "leader_epoch", "magic", "producer_id", "producer_epoch", "base_sequence")
_KEPT_ATTRIBUTES = TIMESTAMP_TYPE | TRANSACTIONAL | CONTROL


def compare(left: WholeCopy, right: WholeCopy) -> CopyPair:
    """Compare two copies of a partition."""
    comparing = Comparing(left, right)
    comparing.add(left.batches, right.batches, (left.log_end, right.log_end))
    return comparing.finish(left, right)


class Side(Protocol):
    """A copy, or a copy that is being read, as far as it is known."""

    @property
    def topic_id(self) -> str | None:
        """Return the id of its topic."""

    @property
    def log_start(self) -> int:
        """Return its log start offset."""

    @property
    def damages(self) -> Sequence[DamagedRange]:
        """Return its damage."""

    @property
    def compaction_hints(self) -> Sequence[str]:
        """Return the signs that it was compacted."""


@dataclass(slots=True)
class _Lacking:
    """Batches that one copy lacks below a divergence, as counts."""

    fewer: int = 0
    """Batches that have fewer records in it."""
    lost: int = 0
    """Batches that it does not have, and whose absence no damage explains."""
    damaged: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)
    """The offset ranges of the lost batches; cleared once a copy is known to be compacted."""

    def add_span(self, first: int, last: int) -> None:
        if self.spans and self.spans[-1][1] + 1 == first:
            first = self.spans.pop()[0]
        self.spans.append((first, last))


@dataclass(slots=True)
class _Found:
    """Counts of the comparison of two copies below a divergence."""

    equal: int = 0
    rewritten: int = 0
    lacking: tuple[_Lacking, _Lacking] = field(default_factory=lambda: (_Lacking(), _Lacking()))

    def copy(self) -> "_Found":
        left, right = (replace(one, spans=list(one.spans)) for one in self.lacking)
        return replace(self, lacking=(left, right))


class _Divergence:
    """The offset at which two copies diverge, and the first batch of each from there on."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.batches: list[CopyBatch | None] = [None, None]
        self.different = [0, 0]
        """Numbers of batches from there on that the other copy does not have, by the copy."""
        self._last = at
        """Largest base offset of these batches so far."""
        self.meets_at: int | None = None
        """First batch behind the last of these that both copies have; None without one."""

    def look(self, *sides: CopyBatches) -> None:
        """Compare the next batches of both copies, from the divergence on."""
        first = [int(np.searchsorted(table.last_offset, self.at)) for table in sides]
        a, b = (table[row:] for table, row in zip(sides, first, strict=True))
        for number, table in enumerate((a, b)):
            if self.batches[number] is None and len(table):
                self.batches[number] = table.batch(0)
        in_a, in_b = _in_both(a.base_offset, b.base_offset)
        both = (a, b) if isinstance(in_a, slice) else (a[in_a], b[in_b])
        alike = np.logical_or.reduce(_match(*both))
        common = both[0].base_offset
        others = [_rest(a, in_a).base_offset, _rest(b, in_b).base_offset]
        for number, rest in enumerate(others):
            self.different[number] += int((~alike).sum()) + len(rest)
        ends = [int(some.max()) for some in (common[~alike], *others) if len(some)]
        if ends:
            self._last, self.meets_at = max(ends), None
        behind = common[alike & (common > self._last)]
        if self.meets_at is None and len(behind):
            self.meets_at = int(behind[0])


class Comparing:
    """Comparison of two copies range by range, as their offsets rise.

    Batches older than magic 2 with different sizes are a divergence unless a copy is known to be
    compacted, which may show later: the results for both cases are kept until then.
    """

    def __init__(self, left: Side, right: Side) -> None:
        self._sides = left, right
        self._start = max(left.log_start, right.log_start)
        self._before = [0, 0]
        self._behind = [0, 0]
        """Numbers of batches from the log end on that only the other copy has, by the copy."""
        self._found = _Found()
        self._parted: _Divergence | None = None
        self._found_unless_compacted: _Found | None = None
        self._parted_unless_compacted: _Divergence | None = None

    @property
    def is_possible(self) -> bool:
        """Return whether they are copies of one topic."""
        ids = {side.topic_id for side in self._sides if side.topic_id}
        return len(ids) < 2

    def add(self, a: CopyBatches, b: CopyBatches, ends: tuple[int | None, int | None]) -> None:
        """Add the next batches of both: all up to an offset that lies inside no batch of either.

        `ends` are the log ends of the copies; None for a copy that continues after these batches.
        """
        if not self.is_possible:
            return
        self._count_outside((b, a), ends)
        a, b = (_within(table, self._start, ends) for table in (a, b))
        for parted in (self._parted, self._parted_unless_compacted):
            if parted:
                parted.look(a, b)
        if self._parted is None:
            self._hold(a, b)

    def finish(self, left: Copy, right: Copy) -> CopyPair:
        """Return the result of the comparison; `left` and `right` are the copies after reading."""
        if not self.is_possible:
            return CopyPair(left=left, right=right, status=Status.OTHER_TOPIC)
        hinted = bool(left.compaction_hints or right.compaction_hints)
        found, parted = self._found, self._parted
        if not hinted and self._found_unless_compacted:
            found, parted = self._found_unless_compacted, self._parted_unless_compacted
        left_lacks, right_lacks = (
            Lacks(
                compacted=one.fewer + (one.lost if hinted else 0),
                damaged=one.damaged,
                missing=() if hinted else tuple(one.spans),
                before=before,
                behind=behind if parted is None else 0,
            )
            for one, before, behind in zip(found.lacking, self._before, self._behind, strict=True)
        )
        start, end = self._start, min(left.log_end, right.log_end)
        left_batch, right_batch = parted.batches if parted else (None, None)
        common_epoch, epochs_diverge_at = _epochs_agree(left, right, start)
        return CopyPair(
            left=left,
            right=right,
            status=_readable(
                _status(
                    parted is not None, start < end, left_lacks, right_lacks, found.rewritten > 0
                ),
                left,
                right,
            ),
            common=(start, end) if start < end else None,
            equal=found.equal,
            rewritten=found.rewritten,
            diverges_at=parted.at if parted else None,
            left_batch=left_batch,
            right_batch=right_batch,
            left_different=parted.different[0] if parted else 0,
            right_different=parted.different[1] if parted else 0,
            meets_at=parted.meets_at if parted else None,
            left_lacks=left_lacks,
            right_lacks=right_lacks,
            common_epoch=common_epoch,
            epochs_diverge_at=epochs_diverge_at,
        )

    def _count_outside(
        self, others: tuple[CopyBatches, CopyBatches], ends: tuple[int | None, int | None]
    ) -> None:
        """Count batches of the other copy below the start and from the end on, for each copy."""
        starts = [side.log_start for side in self._sides]
        for number, (table, end) in enumerate(zip(others, ends, strict=True)):
            own, its = starts[number], starts[1 - number]
            if own > its and len(table) and table.base_offset[0] < own:
                below = (table.base_offset < own) & (table.last_offset >= its)
                self._before[number] += int(below.sum())
            if end is not None:
                self._behind[number] += int((table.base_offset >= end).sum())

    def _hold(self, a: CopyBatches, b: CopyBatches) -> None:
        """Compare the batches of both, up to a divergence."""
        in_a, in_b = _in_both(a.base_offset, b.base_offset)
        both = (a, b) if isinstance(in_a, slice) else (a[in_a], b[in_b])
        same, rewritten, doubtful = _match(*both)
        offsets = both[0].base_offset
        alone = _rest(a, in_a), _rest(b, in_b)
        different = [_overlapping(alone[0], b), _overlapping(alone[1], a)]
        if not same.all():
            different.append(offsets[~(same | rewritten | doubtful)])
        at = min((int(some.min()) for some in different if len(some)), default=None)
        if doubtful.any() and self._found_unless_compacted is None:
            first = int(offsets[doubtful][0])
            if at is None or first < at:
                self._found_unless_compacted = self._found.copy()
                self._add(self._found_unless_compacted, both, same, rewritten, alone, first)
                self._parted_unless_compacted = _Divergence(first)
                self._parted_unless_compacted.look(a, b)
        # Batches after a divergence belong to another history, and are not compared.
        self._add(self._found, both, same, rewritten | doubtful, alone, at)
        if at is not None:
            self._parted = _Divergence(at)
            self._parted.look(a, b)

    def _add(
        self,
        found: _Found,
        both: tuple[CopyBatches, CopyBatches],
        same: Column,
        rewritten: Column,
        alone: tuple[CopyBatches, CopyBatches],
        end: int | None,
    ) -> None:
        """Count the batches below `end` that both have, and those that only one has."""
        if end is not None:
            counts = both[0].base_offset < end
            same, rewritten = same & counts, rewritten & counts
        found.equal += int(same.sum())
        if rewritten.any():
            more = both[0].record_count - both[1].record_count
            found.rewritten += int(rewritten.sum())
            found.lacking[0].fewer += int((rewritten & (more < 0)).sum())
            found.lacking[1].fewer += int((rewritten & (more > 0)).sum())
        for side, lacking, gone in zip(self._sides, found.lacking, alone[::-1], strict=True):
            if end is not None:
                gone = gone[gone.base_offset < end]
            if len(gone):
                self._add_gone(lacking, gone, side.damages)

    def _add_gone(
        self, lacking: _Lacking, gone: CopyBatches, damages: Sequence[DamagedRange]
    ) -> None:
        damaged = np.zeros(len(gone), np.bool_)
        first, last = int(gone[:1].first_offset[0]), int(gone.last_offset[-1])
        for damage in list(damages):
            if damage.first_offset <= last and (
                damage.last_offset is None or first <= damage.last_offset
            ):
                damaged |= damage.overlaps(gone.first_offset, gone.last_offset)
        lost = gone[~damaged]
        lacking.damaged += int(damaged.sum())
        lacking.lost += len(lost)
        if any(side.compaction_hints for side in self._sides):
            lacking.spans.clear()
            return
        for span in _spans(lost):
            lacking.add_span(*span)


def _within(batches: CopyBatches, start: int, ends: Sequence[int | None]) -> CopyBatches:
    """Return the batches from an offset on that begin before all ends that are known."""
    end = min((end for end in ends if end is not None), default=None)
    base = batches.base_offset
    first = int(np.searchsorted(base, start))
    stop = len(base) if end is None else int(np.searchsorted(base, max(start, end)))
    return batches if (first, stop) == (0, len(base)) else batches[first:stop]


def _in_both(a: Column, b: Column) -> tuple[Column | slice, Column | slice]:
    """Return the rows of the common offsets in each of them."""
    if np.array_equal(a, b):
        return slice(None), slice(None)
    _, in_a, in_b = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    return in_a, in_b


def _rest(table: CopyBatches, matched: Column | slice) -> CopyBatches:
    if isinstance(matched, slice):
        return NOTHING
    rest = np.ones(len(table), np.bool_)
    rest[matched] = False
    return table[rest]


def _match(a: CopyBatches, b: CopyBatches) -> tuple[Column, Column, Column]:
    """Return masks of the batches that are the same, that compaction rewrote, and in doubt.

    A batch in doubt was rewritten if one of the copies is compacted, else it is different: a
    wrapper of magic 0 or 1 does not count its messages.
    """
    alike = (*_KEPT, "attributes", "crc", "size")
    nothing = np.zeros(len(a), np.bool_)
    if all(np.array_equal(getattr(a, name), getattr(b, name)) for name in alike):
        return ~nothing, nothing, nothing
    kept = (a.attributes ^ b.attributes) & _KEPT_ATTRIBUTES == 0
    for name in _KEPT:
        kept &= getattr(a, name) == getattr(b, name)
    same = kept & (a.crc == b.crc) & (a.size == b.size)
    horizon = (a.attributes | b.attributes) & DELETE_HORIZON != 0
    modern = ((a.record_count != b.record_count) | horizon) & (a.magic >= MAGIC)
    legacy = (a.size != b.size) & (a.magic < MAGIC)
    return same, kept & ~same & modern, kept & ~same & legacy


def _overlapping(a: CopyBatches, b: CopyBatches) -> Column:
    """Return the base offsets of the batches of `a` that overlap a batch of `b`."""
    if not len(a) or not len(b):
        return a.base_offset[:0]
    behind = np.searchsorted(b.last_offset, a.base_offset)
    there = behind < len(b)
    overlapping: Column = there & (b.base_offset[np.minimum(behind, len(b) - 1)] <= a.last_offset)
    return a.base_offset[overlapping]


def _spans(batches: CopyBatches) -> list[tuple[int, int]]:
    """Return the offset ranges of batches; adjacent ranges become one."""
    if not len(batches):
        return []
    firsts = batches.first_offset
    adjoins = np.concatenate(([False], firsts[1:] == batches.last_offset[:-1] + 1))
    starts = np.flatnonzero(~adjoins)
    ends = np.concatenate((starts[1:] - 1, [len(batches) - 1]))
    return list(zip(firsts[starts].tolist(), batches.last_offset[ends].tolist(), strict=True))


def _status(diverged: bool, common: bool, left: Lacks, right: Lacks, rewritten: bool) -> Status:
    if diverged:
        return Status.DIVERGED
    if left.damaged or right.damaged:
        return Status.DAMAGED
    if left.missing or right.missing:
        return Status.MISSING
    if rewritten or left.compacted or right.compacted:
        return Status.COMPACTED
    if left or right:
        return Status.BEHIND if common else Status.DISJOINT
    return Status.SAME


def _readable(status: Status, left: Copy, right: Copy) -> Status:
    """Return the status; `UNREAD` where nothing is wrong but that a part cannot be read."""
    wrong = [one for one in (left, right) if one.real_damages]
    is_unread = bool(wrong) and all(one.is_unread for one in wrong)
    is_said = status in (Status.OTHER_TOPIC, Status.DIVERGED, Status.MISSING)
    return Status.UNREAD if is_unread and not is_said else status


def _epochs_agree(left: Copy, right: Copy, start: int) -> tuple[tuple[int, int] | None, int | None]:
    """Return the last common entry of the epoch chains, and the offset from which they differ."""
    files = bool(left.epochs and right.epochs)
    a, b = (_from(copy.epochs if files else copy.batch_epochs, start) for copy in (left, right))
    shared = None
    for one, other in zip(a, b, strict=False):
        if one != other:
            return shared, min(one[1], other[1])
        shared = one
    longer = (a if len(a) > len(b) else b)[min(len(a), len(b)) :]
    shorter_end = right.log_end if len(a) > len(b) else left.log_end
    # The other log has not reached an epoch that begins at its end.
    differs = longer and longer[0][1] < shorter_end
    return shared, longer[0][1] if differs else None


def _from(epochs: Sequence[tuple[int, int]], start: int) -> Epochs:
    """Return a chain from an offset on; the entry in force at the offset starts there."""
    later = [entry for entry in epochs if entry[1] > start]
    current = [entry for entry in epochs if entry[1] <= start][-1:]
    return tuple([(epoch, start) for epoch, _ in current] + later)


class Pairs:
    """Comparison of each two of all copies of a partition, while they are read."""

    def __init__(self, readings: Sequence[CopyReading]) -> None:
        self._readings = readings
        self._comparing = {
            (left, right): Comparing(readings[left], readings[right])
            for left, right in combinations(range(len(readings)), 2)
        }

    def add(self, tables: Sequence[CopyBatches], over: Sequence[bool]) -> None:
        """Add the next batches of all copies; `over` is True for each copy that has ended."""
        ends = [
            reading.log_end if done else None
            for reading, done in zip(self._readings, over, strict=True)
        ]
        for (left, right), one in self._comparing.items():
            one.add(tables[left], tables[right], (ends[left], ends[right]))

    def finish(self, copies: Sequence[Copy]) -> dict[tuple[int, int], CopyPair]:
        """Return the results by the numbers of both copies, the lower number first."""
        return {
            (left, right): one.finish(copies[left], copies[right])
            for (left, right), one in self._comparing.items()
        }
