"""The batches of a copy of a partition as columns, and its damage: plain data."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Self

import numpy as np

from logtool.formats.record_batch import Column, first_offsets
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CopyBatches:
    """The batches of a copy as int64 columns of one length, their offsets rising."""

    segment: Column
    """Base offset of the segment."""
    position: Column
    size: Column
    base_offset: Column
    last_offset: Column
    leader_epoch: Column
    magic: Column
    crc: Column
    attributes: Column
    max_timestamp: Column
    producer_id: Column
    producer_epoch: Column
    base_sequence: Column
    record_count: Column

    def __len__(self) -> int:
        return len(self.position)

    @property
    def first_offset(self) -> Column:
        """Return the first offset of each batch; see `logtool.formats.record_batch`."""
        return first_offsets(self.base_offset, self.last_offset, self.record_count, self.magic)

    def __getitem__(self, which: Column | slice) -> Self:
        """Return the rows that a mask, an index array or a slice selects."""
        if isinstance(which, np.ndarray) and which.dtype == np.bool_:
            which = np.flatnonzero(which)
            if len(which) == len(self):
                return self  # the usual case, and there may be millions of rows
        return type(self)(*(getattr(self, name)[which] for name in COLUMNS))

    def row(self, index: int) -> dict[str, int]:
        """Return one batch as plain integers."""
        return {name: int(getattr(self, name)[index]) for name in COLUMNS}

    def batch(self, index: int) -> "CopyBatch":
        """Return one batch."""
        return CopyBatch(*(int(getattr(self, field.name)[index]) for field in fields(CopyBatch)))


COLUMNS = tuple(field.name for field in fields(CopyBatches))


def joined(parts: Sequence[CopyBatches]) -> CopyBatches:
    """Return the rows of all parts in order."""
    if len(parts) < 2:
        return parts[0] if parts else NOTHING
    return CopyBatches(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS)
    )


NOTHING = CopyBatches(*(np.empty(0, np.int64) for _ in COLUMNS))


@dataclass(frozen=True, slots=True)
class CopyBatch:
    """The columns of one batch of a copy that are shown."""

    segment: int
    """Base offset of the segment."""
    position: int
    size: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    record_count: int


@dataclass(frozen=True, slots=True)
class DamagedRange:
    """Bytes of a log that hold no sound batch, and the offsets that are missing because of them."""

    segment: int
    position: int
    length: int
    reason: str
    message: str
    first_offset: int
    last_offset: int | None
    """None: to the end of the log, which is unknown; below the first: no offset is missing."""
    tail: bool = False
    """True for an unfinished append at the end of the active segment."""

    @property
    def loses(self) -> bool:
        """Return whether offsets are missing because of it."""
        return self.last_offset is None or self.last_offset >= self.first_offset

    def overlaps(self, first: Column, last: Column) -> Column:
        """Return a mask of the offset ranges that overlap the offsets which may be missing."""
        overlapping: Column = last >= self.first_offset
        return (
            overlapping if self.last_offset is None else overlapping & (first <= self.last_offset)
        )


@dataclass(frozen=True, slots=True)
class CopyPart:
    """The batches and the damage that a segment, or a part of it, adds to a copy."""

    batches: CopyBatches
    damages: tuple[DamagedRange, ...] = ()
    size: int = 0
    """Number of bytes of the log that were read for it."""
