"""The batch whose timestamp keeps a segment, or lets it go too early."""

from dataclasses import replace
from enum import StrEnum

import numpy as np

from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Segment
from logtool.times import rfc3339

_DAY_MS = 86_400_000
_PAST_MS = 20 * 365 * _DAY_MS
"""Largest age of a time that is recognised in another unit."""


class Unit(StrEnum):
    """Units of timestamps that are not in milliseconds."""

    SECONDS = "seconds"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"


_UNITS = {Unit.SECONDS: (1000, 1), Unit.MICROSECONDS: (1, 1000), Unit.NANOSECONDS: (1, 1_000_000)}
"""Factor and divisor of each unit: multiply, then divide, to get milliseconds."""


def unit_of(timestamp: int, now_ms: int) -> Unit | None:
    """Return the unit of a number that is a recent time in it, but no recent time in ms."""
    if now_ms - _PAST_MS <= timestamp <= now_ms + _DAY_MS:
        return None
    for unit, (times, by) in _UNITS.items():
        if now_ms - _PAST_MS <= timestamp * times // by <= now_ms + _DAY_MS:
            return unit
    return None


def meaning_ms(timestamp: int, unit: Unit | None) -> int:
    """Return the time that a number means in a unit, in ms; a `unit` of None is milliseconds."""
    times, by = _UNITS[unit] if unit else (1, 1)
    return timestamp * times // by


def meaning(timestamp: int, unit: Unit | None) -> str | None:
    """Return the time in UTC that a number means in a unit; a `unit` of None is milliseconds."""
    return rfc3339(meaning_ms(timestamp, unit))


@dataclass(frozen=True, slots=True)
class WrongTimestamp:
    """The first batch with the largest timestamp of a segment."""

    base_offset: int
    """Base offset of the segment."""
    timestamp: int
    """Largest timestamp of the batch, as it is stored."""
    unit: Unit | None
    """None for a time in ms."""
    first_offset: int | None = None
    """First offset of the batch; None if the log does not have a batch with that timestamp."""
    last_offset: int | None = None
    producer_id: int | None = None
    """None for a producer without an id, too."""
    unread: UnreadableError | None = None
    counts: bool = True
    """False if the start does not know it: the batch came after the clean-shutdown marker."""

    @property
    def meant(self) -> str | None:
        """Return the time in UTC that the number means in its unit."""
        return meaning(self.timestamp, self.unit)


def find_uncounted(segment: Segment, known: int, now_ms: int) -> WrongTimestamp | None:
    """Return the batch with the largest timestamp, if that is larger than the `known` one.

    None for one that is neither in the future nor in another unit, or if the log is not readable.
    """
    try:
        chunks = segment.batches(payload=False)
        largest = max((int(one.table.max_timestamp.max(initial=0)) for one in chunks), default=0)
    except UnreadableError:
        return None
    if largest <= max(known, now_ms):
        return None
    return replace(find(segment, largest, now_ms), counts=False)


def find(segment: Segment, timestamp: int, now_ms: int) -> WrongTimestamp:
    """Return the batch with the largest timestamp of a segment; headers alone are read."""
    unit = unit_of(timestamp, now_ms)
    try:
        for chunk in segment.batches(payload=False):
            rows = np.flatnonzero(chunk.table.max_timestamp >= timestamp)
            if len(rows):
                table, row = chunk.table, int(rows[0])
                producer = int(table.producer_id[row])
                return WrongTimestamp(
                    base_offset=segment.base_offset,
                    timestamp=int(table.max_timestamp[row]),
                    unit=unit,
                    first_offset=int(table.base_offset[row]),
                    last_offset=int(table.last_offset[row]),
                    producer_id=producer if producer >= 0 else None,
                )
    except UnreadableError as error:
        return WrongTimestamp(segment.base_offset, timestamp, unit, unread=error)
    return WrongTimestamp(segment.base_offset, timestamp, unit)
