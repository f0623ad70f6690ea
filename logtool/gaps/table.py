"""The gaps of a log as columns of one length: there may be as many of them as batches."""

from collections.abc import Sequence
from dataclasses import fields
from enum import IntEnum, StrEnum
from typing import Self

import numpy as np

from logtool.formats.record_batch import Column
from logtool.lazy_dataclass import dataclass


class GapPlace(IntEnum):
    """Where a gap is; `label` is what is printed."""

    HEAD = 0
    """Before the first batch."""
    BATCHES = 1
    """Between two batches of one segment."""
    SEGMENTS = 2
    """Behind the last batch of a segment: a boundary of segments lies in it or at its end."""
    RECORDS = 3
    """Inside a batch."""
    END = 4
    """Behind the last batch that can be read; where it ends is not known."""

    @property
    def label(self) -> str:
        """Return the name in the output."""
        return ("head", "between-batches", "between-segments", "in-batch", "end")[self]


class GapReason(StrEnum):
    """Why offsets are missing."""

    COMPACTION = "compaction"
    RETENTION = "retention"
    """Below the log start: deleted on purpose."""
    CONTROL = "control-batch"
    """The offset of a marker, which no consumer is given."""
    ABORTED = "aborted"
    """Records of an aborted transaction, which `read_committed` leaves out."""
    SEGMENT_MISSING = "segment-missing"
    TRUNCATION_HOLE = "truncation-hole"
    """A log that was cut or rolled further on, in a topic that is not compacted."""
    DAMAGE = "damage"
    UNKNOWN = "unknown"

    @property
    def is_loss(self) -> bool:
        """Return whether records may be lost here that should be there."""
        return self in (
            GapReason.SEGMENT_MISSING,
            GapReason.TRUNCATION_HOLE,
            GapReason.DAMAGE,
            GapReason.UNKNOWN,
        )

    @property
    def is_missing(self) -> bool:
        """Return whether it counts as missing: above the log start, and not on disk."""
        return self not in (GapReason.RETENTION, GapReason.CONTROL, GapReason.ABORTED)


@dataclass(frozen=True, slots=True)
class GapTable:
    """Gaps by offset, int64 columns of one length; -1 where there is nothing to tell."""

    first_offset: Column
    last_offset: Column
    """-1 where the end is not known."""
    missing: Column
    """Offsets without a record; fewer than the range has where only their number is known."""
    kind: Column
    """A `GapPlace`."""
    before_segment: Column
    """Base offset of the segment with the batch before."""
    after_segment: Column
    """Base offset of the segment with the batch behind."""
    position: Column
    """Byte position of the batch behind, or of the batch that it lies in."""
    epoch: Column
    """Leader epoch of the batch behind."""
    before_epoch: Column
    before_ms: Column
    """Largest timestamp of the batch before."""
    after_ms: Column
    damaged: Column
    """1 where bytes that are no sound batch lie in it."""

    def __len__(self) -> int:
        return len(self.first_offset)

    def __getitem__(self, which: slice | Column) -> Self:
        """Return the rows that a slice, a mask or an index array selects."""
        return type(self)(*(getattr(self, name)[which] for name in _FIELDS))


_FIELDS = tuple(field.name for field in fields(GapTable))


def make(count: int, **given: Column | int) -> GapTable:
    """Return a table of `count` rows; a number stands for a whole column, what is left out is -1.

    `missing` is by default the whole range, `damaged` 0.
    """
    columns = {
        name: np.broadcast_to(np.asarray(given.get(name, -1), np.int64), count) for name in _FIELDS
    }
    if "missing" not in given:
        columns["missing"] = columns["last_offset"] - columns["first_offset"] + 1
    if "damaged" not in given:
        columns["damaged"] = np.zeros(count, np.int64)
    return GapTable(**columns)


def empty() -> GapTable:
    """Return the table of no gaps."""
    return make(0)


def concat(tables: Sequence[GapTable]) -> GapTable:
    """Return the rows of all tables in order."""
    tables = [table for table in tables if len(table)]
    if len(tables) < 2:
        return tables[0] if tables else empty()
    return GapTable(*(np.concatenate([getattr(t, name) for t in tables]) for name in _FIELDS))
