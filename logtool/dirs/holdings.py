"""The batches of a copy that other copies hold, found while all are read next to each other.

Single batches are not kept, but ranges of batches that the same other copies hold.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from logtool.copies.batches import CopyBatches
from logtool.formats.record_batch import Column
from logtool.lazy_dataclass import dataclass

IDENTITY = ("base_offset", "last_offset", "leader_epoch", "crc", "size")
"""The columns that must be equal for a batch to be the same. The digest of a copy is computed
from them, as big-endian int64 batch by batch."""


@dataclass(frozen=True, slots=True)
class CoveredRange:
    """Consecutive batches of the copy."""

    rows: slice
    """Numbers of the batches in the copy."""
    first: int
    """First offset of the first batch."""
    last: int
    """Last offset of the last batch."""
    others: tuple[bool, ...]
    """True for each other copy that has any batches at these offsets."""

    @property
    def batches(self) -> int:
        """Return the number of batches."""
        return int(self.rows.stop - self.rows.start)


@dataclass(slots=True)
class _OpenRange:
    """Batches that the same other copies hold."""

    stored: tuple[bool, ...]
    first_row: int
    end_row: int
    first: int
    last: int
    before: list[bool]
    """True for each other copy with batches between the batch before and the first batch."""
    inside: list[bool]
    """True for each other copy with batches at the offsets from `first` to `last`."""
    is_taken: bool = False
    """True if a copy that holds them was counted."""


class Holdings:
    """The batches of a copy that other copies hold; `add` all batches first, then use the rest."""

    def __init__(self, others: int) -> None:
        self._stretches: list[_OpenRange] = []
        self._rows = 0
        self._between = [False] * others
        """True for each other copy with batches after the last batch of the copy."""

    def add(self, own: CopyBatches, others: Sequence[CopyBatches]) -> None:
        """Add the next batches of the copy and of the others: see `merge.stretches`."""
        stored = [_same(own, other) for other in others]
        edges = np.zeros(max(len(own) - 1, 0), np.bool_)
        for one in stored:
            edges |= one[1:] != one[:-1]
        bounds = [0, *(np.flatnonzero(edges) + 1).tolist(), len(own)] if len(own) else []
        end = None
        for start, stop in pairwise(bounds):
            self._add(own, others, tuple(bool(one[start]) for one in stored), start, stop, end)
            end = int(own.last_offset[stop - 1]) + 1
        for number, other in enumerate(others):
            behind = len(other) > 0 and (end is None or int(other.last_offset[-1]) >= end)
            self._between[number] = behind or (end is None and self._between[number])
        self._rows += len(own)

    def _add(
        self,
        own: CopyBatches,
        others: Sequence[CopyBatches],
        stored: tuple[bool, ...],
        start: int,
        stop: int,
        end: int | None,
    ) -> None:
        """Add rows that the same others hold; `end` is the end of the row before; None: first."""
        first, last = int(own[start : start + 1].first_offset[0]), int(own.last_offset[stop - 1])
        inside = [
            one or _is_inside(other, first, last) for one, other in zip(stored, others, strict=True)
        ]
        if end is None:
            before = [
                known or _is_inside(other, None, first - 1)
                for known, other in zip(self._between, others, strict=True)
            ]
        else:
            before = [_is_inside(other, end, first - 1) for other in others]
        last_one = self._stretches[-1] if self._stretches else None
        if last_one and last_one.stored == stored:
            last_one.end_row, last_one.last = self._rows + stop, last
            parts = zip(last_one.inside, before, inside, strict=True)
            last_one.inside = [any(part) for part in parts]
            return
        rows = self._rows + start, self._rows + stop
        self._stretches.append(_OpenRange(stored, *rows, first, last, before, inside))

    def taken_by(self, other: int) -> list[CoveredRange]:
        """Return the batches that a copy holds and that are not taken yet, and mark them taken."""
        found = self._spans(lambda one: one.stored[other])
        for one in self._stretches:
            one.is_taken |= one.stored[other]
        return found

    def left(self) -> list[CoveredRange]:
        """Return the batches that no copy has taken."""
        return self._spans(lambda one: True)

    def _spans(self, wanted: Callable[[_OpenRange], bool]) -> list[CoveredRange]:
        return list(_joined(one for one in self._stretches if not one.is_taken and wanted(one)))


def _joined(stretches: Iterator[_OpenRange]) -> Iterator[CoveredRange]:
    """Yield ranges; adjacent ranges become one."""
    span: CoveredRange | None = None
    for one in stretches:
        if span and span.rows.stop == one.first_row:
            parts = zip(span.others, one.before, one.inside, strict=True)
            others = tuple(any(part) for part in parts)
            span = CoveredRange(slice(span.rows.start, one.end_row), span.first, one.last, others)
            continue
        if span:
            yield span
        span = CoveredRange(
            slice(one.first_row, one.end_row), one.first, one.last, tuple(one.inside)
        )
    if span:
        yield span


def _is_inside(table: CopyBatches, first: int | None, last: int) -> bool:
    """Return whether a table has a batch with an offset from `first` to `last`."""
    row = 0 if first is None else int(np.searchsorted(table.last_offset, first))
    return row < len(table) and int(table.base_offset[row]) <= last


def _same(own: CopyBatches, other: CopyBatches) -> Column:
    """Return a mask of the batches that another copy has too."""
    found = np.zeros(len(own), np.bool_)
    if not len(other):
        return found
    at = np.minimum(np.searchsorted(other.base_offset, own.base_offset), len(other) - 1)
    found[:] = True
    for name in IDENTITY:
        found &= getattr(own, name) == getattr(other, name)[at]
    return found
