"""The gaps of a log as columns of one length: there may be as many gaps as batches."""

from collections.abc import Sequence
from dataclasses import fields
from enum import IntEnum, StrEnum
from functools import cache
from typing import Self

import numpy as np

from logtool.formats.record_batch import Column
from logtool.lazy_dataclass import dataclass


class GapPlace(IntEnum):
    """Place of a gap; its `label` is printed."""

    HEAD = 0
    """Before the first batch."""
    BATCHES = 1
    """Between two batches of one segment."""
    SEGMENTS = 2
    """After the last batch of a segment: a boundary of segments lies in it or at its end."""
    RECORDS = 3
    """Inside a batch."""
    END = 4
    """After the last batch that can be read; its end is not known."""
    LOST_END = 5
    """Behind the log end, up to the offset that the log is proved to have reached."""

    @property
    def label(self) -> str:
        """Return the name in the output."""
        return (
            "head", "between-batches", "between-segments", "in-batch", "end", "lost-end",
        )[self]  # fmt: skip


class GapReason(StrEnum):
    """Reason of missing offsets."""

    COMPACTION = "compaction"
    RETENTION = "retention"
    """Below the log start: deleted on purpose."""
    REMOTE = "remote"
    """Below the first local segment of a tiered topic: consumers read it from remote storage."""
    CONTROL = "control-batch"
    """The offset of a marker, which no consumer gets."""
    ABORTED = "aborted"
    """Records of an aborted transaction, which `read_committed` leaves out."""
    SEGMENT_MISSING = "segment-missing"
    END_MISSING = "end-missing"
    """A checkpoint, or a file of the partition, shows that the log reached further."""
    TRUNCATION_HOLE = "truncation-hole"
    """A log that was truncated, or rolled at a later offset, in a topic that is not compacted."""
    DAMAGE = "damage"
    UNKNOWN = "unknown"

    @property
    def is_loss(self) -> bool:
        """Return whether it may mean lost records."""
        return self in (
            GapReason.SEGMENT_MISSING,
            GapReason.END_MISSING,
            GapReason.TRUNCATION_HOLE,
            GapReason.DAMAGE,
            GapReason.UNKNOWN,
        )

    @property
    def is_missing(self) -> bool:
        """Return whether it counts as missing: above the log start, and not on disk."""
        return self not in (
            GapReason.RETENTION,
            GapReason.REMOTE,
            GapReason.CONTROL,
            GapReason.ABORTED,
        )


@dataclass(frozen=True, slots=True)
class GapTable:
    """Gaps by offset, int64 columns of one length; -1 where a value is not known."""

    first_offset: Column
    last_offset: Column
    """Last offset; -1 if it is not known."""
    missing: Column
    """Number of offsets without a record; less than the range if only the number is known."""
    kind: Column
    """A `GapPlace`."""
    before_segment: Column
    """Base offset of the segment with the batch before."""
    after_segment: Column
    """Base offset of the segment with the batch after it."""
    position: Column
    """Byte position of the batch after it, or of the batch that it lies in."""
    epoch: Column
    """Leader epoch of the batch after it."""
    before_epoch: Column
    before_ms: Column
    """Largest timestamp of the batch before."""
    after_ms: Column
    damaged: Column
    """1 if bytes that are no sound batch lie in it."""

    def __len__(self) -> int:
        return len(self.first_offset)

    def __getitem__(self, which: slice | Column) -> Self:
        """Return the rows that a slice, a mask or an index array selects."""
        return type(self)(*(getattr(self, name)[which] for name in _FIELDS))


_FIELDS = tuple(field.name for field in fields(GapTable))


def make(count: int, **given: Column | int) -> GapTable:
    """Return a table of `count` rows; a number fills a column, and an absent column is -1.

    By default `missing` is the number of offsets of the range, and `damaged` is 0.
    """
    columns = {
        name: np.broadcast_to(np.asarray(given.get(name, -1), np.int64), count) for name in _FIELDS
    }
    if "missing" not in given:
        columns["missing"] = columns["last_offset"] - columns["first_offset"] + 1
    if "damaged" not in given:
        columns["damaged"] = np.zeros(count, np.int64)
    return GapTable(**columns)


@cache
def empty() -> GapTable:
    """Return a table without gaps."""
    return make(0)


def concat(tables: Sequence[GapTable]) -> GapTable:
    """Return the rows of all tables in order."""
    tables = [table for table in tables if len(table)]
    if len(tables) < 2:
        return tables[0] if tables else empty()
    return GapTable(*(np.concatenate([getattr(t, name) for t in tables]) for name in _FIELDS))
