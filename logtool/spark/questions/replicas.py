"""Copies of partitions compared batch by batch, with the rules of `logtool diff`.

Only live directories of partitions that lie in more than one log dir are compared. First the
digests of ranges of offsets are compared (`digests`): where those of all copies agree, so do their
batches, which are not read. In the other ranges all batches that begin at one offset become one
row: the copies that have such a batch, as bits, and whether their batches are the same.

Two copies of a batch are the same if their bytes are. They are one batch before and after
compaction if everything that compaction keeps is the same (`logtool.copies.compare`), and the
number of records differs or one has a delete horizon. Anything else is divergence, and so are
batches that overlap without beginning at the same offset.

Results may differ from those of `logtool diff` in these cases: `logtool diff` takes offsets below
the checkpointed log start for gone, and knows from checkpoints that a log of magic 0 or 1 was
compacted. With more than two copies of one batch, some of them compacted, it finds those that
differ in other ways, too.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import reduce
from itertools import combinations
from operator import or_
from typing import Any, Final, NamedTuple

import numpy as np

from logtool.formats.record_batch import MAGIC, Column
from logtool.lazy_dataclass import dataclass
from logtool.spark.questions.digests import SPAN_BITS, Ranges

MOST_COPIES: Final = 62
"""Most copies of one partition that are compared: each is one bit of an int64."""


class ComparedColumns(NamedTuple):
    """The values of batches that are compared, by rows; every column is of int64."""

    base_offset: Column
    last_offset: Column
    magic: Column
    record_count: Column
    kept: Column
    """Digest of the fields that compaction does not change; see `logtool.copies.compare`."""
    content: Column
    """Digest of CRC and size."""
    cleaned: Column
    """1 for a batch with a delete horizon."""


@dataclass(slots=True)
class CopySummary:
    """One copy of a partition, from its stretches in the order of the log."""

    log_start: int
    log_end: int
    batches: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    last_leader_epoch: int | None = None
    ranges: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Batches and digest of each range, by its number."""

    @classmethod
    def of(cls, edges: Sequence[dict[str, Any]], ranges: Ranges) -> "CopySummary":
        """Add up the stretches of a copy; there must be at least one."""
        copy = cls(log_start=edges[0]["segment"], log_end=edges[-1]["segment"])
        for edge in edges:
            copy.batches += edge["sound_batches"]
            first, last = edge["sound_first_offset"], edge["sound_last_offset"]
            if first is not None:
                before = copy.first_offset
                copy.first_offset = first if before is None else min(first, before)
            if last is not None:
                before = copy.last_offset
                copy.last_offset = last if before is None else max(last, before)
                copy.log_end = max(copy.log_end, last + 1)
            if edge["sound_batches"]:
                copy.last_leader_epoch = edge["sound_last_leader_epoch"]
        for number, count, digest in zip(*(one.tolist() for one in ranges), strict=True):
            batches, total = copy.ranges.get(number, (0, 0))
            copy.ranges[number] = batches + count, (total + digest) % 2**64
        return copy

    def reaches(self, number: int) -> bool:
        """Return whether a range has offsets between the start and the end of the log."""
        start = number << SPAN_BITS
        return self.log_start < start + (1 << SPAN_BITS) and start < self.log_end


@dataclass(slots=True)
class ReplicaResult:
    """The result for one copy of several."""

    shared_batches: int = 0
    only_here: int = 0
    diverges_at: int | None = None

    def differs(self, offset: int) -> None:
        """Record that the copy differs at an offset; the least one stays."""
        self.diverges_at = min(offset, offset if self.diverges_at is None else self.diverges_at)


def compare(
    copies: Sequence[CopySummary], look: Callable[[int, Column], ComparedColumns]
) -> list[ReplicaResult]:
    """Return the result for each copy; `look` returns batches of a copy in ranges of offsets.

    `look` is called only if digests differ, with the place of the copy in `copies` and the numbers
    of ranges. Copies after the first `MOST_COPIES` are not compared.
    """
    results = [ReplicaResult() for _ in copies]
    some = list(copies[:MOST_COPIES])
    every = sorted(frozenset[int]().union(*(copy.ranges for copy in some)))
    odd = []
    for number in every:
        found = {copy.ranges[number] for copy in some if number in copy.ranges}
        missing = [copy for copy in some if number not in copy.ranges]
        if len(found) > 1 or any(copy.reaches(number) for copy in missing):
            odd.append(number)
        elif not missing and len(copies) == len(some):
            for one in results:
                one.shared_batches += some[0].ranges[number][0]
    if odd:
        _look_closer(some, results, [look(at, np.array(odd)) for at in range(len(some))])
    return results


@dataclass(frozen=True, slots=True)
class _Offsets:
    """One row for each offset at which a batch of any copy begins, by rising offsets."""

    base_offset: Column
    last_offset: Column
    holders: Column
    """Bits of the copies that have a batch at the offset."""
    wanted: Column
    """Bits of the copies whose log covers the offset."""
    same: Column
    differs: Column

    @classmethod
    def of(cls, copies: Sequence[CopySummary], batches: Sequence[ComparedColumns]) -> "_Offsets":
        rows = ComparedColumns(*(np.concatenate(columns) for columns in zip(*batches, strict=True)))
        bits = np.repeat(1 << np.arange(len(batches)), [len(one.magic) for one in batches])
        order = np.argsort(rows.base_offset, kind="stable")
        rows, bits = ComparedColumns(*(column[order] for column in rows)), bits[order]
        base = rows.base_offset
        starts = np.flatnonzero(np.concatenate(([True], base[1:] != base[:-1])))

        def least(column: Column) -> Column:
            return np.minimum.reduceat(column, starts)

        def largest(column: Column) -> Column:
            return np.maximum.reduceat(column, starts)

        def alike(column: Column) -> Column:
            found: Column = least(column) == largest(column)
            return found

        kept, cleaned = alike(rows.kept), largest(rows.cleaned) > 0
        same = kept & alike(rows.content)
        rewritten = kept & (~alike(rows.record_count) | cleaned) & (least(rows.magic) >= MAGIC)
        base = base[starts]
        inside = [
            ((base >= copy.log_start) & (base < copy.log_end)).astype(np.int64) << at
            for at, copy in enumerate(copies)
        ]
        return cls(
            base_offset=base,
            last_offset=largest(rows.last_offset),
            holders=np.bitwise_or.reduceat(bits, starts),
            wanted=reduce(or_, inside),
            same=same,
            differs=~same & ~rewritten,
        )


def _look_closer(
    copies: Sequence[CopySummary], results: list[ReplicaResult], batches: Sequence[ComparedColumns]
) -> None:
    """Add the results of comparing single batches."""
    if not sum(len(one.magic) for one in batches):
        return
    rows = _Offsets.of(copies, batches)
    every = (1 << len(results)) - 1
    shared = (rows.holders == every) & rows.same
    for at, one in enumerate(results[: len(copies)]):
        here = (rows.holders & (1 << at)) != 0
        one.shared_batches += int((here & shared).sum())
        one.only_here += int(((rows.holders == 1 << at) & (rows.wanted == every)).sum())
        differs = np.flatnonzero(here & rows.differs)
        if len(differs):
            one.differs(int(rows.base_offset[differs[0]]))
    for low, high in combinations(range(len(copies)), 2):
        offset = _overlap(rows, low, high)
        if offset is not None:
            results[low].differs(offset)
            results[high].differs(offset)


def _overlap(rows: _Offsets, low: int, high: int) -> int | None:
    """Return the least offset at which a batch of one of two copies overlaps one of the other.

    The two batches begin at different offsets, so each is missing in the other copy.
    """
    bits = (1 << low) | (1 << high)
    holders = rows.holders & bits
    candidates = np.flatnonzero(
        (holders != 0) & (holders != bits) & (rows.wanted & bits & ~holders != 0)
    )
    if len(candidates) < 2:
        return None
    base, last = rows.base_offset[candidates], rows.last_offset[candidates]
    own, reach = holders[candidates], np.maximum.accumulate(last)
    # Of the rows before each row, the one that reaches the largest offset; of two the later one.
    furthest = np.maximum.accumulate(np.where(last == reach, np.arange(len(last)), 0))[:-1]
    over = (last[furthest] >= base[1:]) & (own[furthest] != own[1:])
    found: Iterable[int] = base[furthest[over]].tolist()
    return min(found, default=None)
