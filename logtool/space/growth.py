"""The bytes that are produced in a day, and the day on which a file system is full.

The bytes of a segment are spread evenly over the time from the largest timestamp of the segment
before it to its own. A log whose oldest records are younger than the window counts over the time
that it covers, because retention may have deleted what was there before. A short time says little:
the bytes of such logs are also added up apart.
"""

import numpy as np
import numpy.typing as npt

from logtool.lazy_dataclass import dataclass

DAY_MS = 86_400_000
WINDOW_DAYS = 7
"""Days before the newest record over which the growth is measured."""
SHORTEST_MS = 10_000
"""Time over which a log counts at least."""
SHORT_MS = 3_600_000
"""Time that a log covers below which its growth may be no more than a burst."""
LONGEST_DAYS = 365
"""Days that are looked ahead."""


@dataclass(frozen=True, slots=True)
class SegmentTimes:
    """The segments of one file system: parallel columns, the segments of a log in their order."""

    log: list[int]
    """Number of the log."""
    size: list[int]
    """Bytes of the .log file."""
    begin_ms: list[int]
    """Time from which on its records were produced, in ms; -1 if it is not known."""
    timestamp_ms: list[int]
    """Largest timestamp, in ms."""
    deleted_ms: list[int]
    """Time at which retention deletes the segment, in ms; NOT_DELETED for never."""


NOT_DELETED = 2**62


@dataclass(frozen=True, slots=True)
class GrowthForecast:
    """The growth of one file system."""

    newest_ms: int | None
    """Largest timestamp that is not in the future; None without a record."""
    day_bytes: int
    """Bytes of .log files that are produced in a day."""
    short_bytes: int
    """Bytes of these in logs that cover less than `SHORT_MS`."""
    freed_bytes: int
    """Bytes that retention deletes within a day."""
    full_ms: int | None
    """Time at which no byte is free; None if that is more than a year away."""


def forecast(segments: SegmentTimes, free_bytes: int, at_ms: int) -> GrowthForecast:
    """Return the growth, if as much is produced as in the week before the newest record."""
    size = np.asarray(segments.size, np.float64)
    stamp = np.asarray(segments.timestamp_ms, np.int64)
    past = (stamp >= 0) & (stamp <= at_ms)
    newest = int(stamp[past].max()) if past.any() else None
    day_bytes, short_bytes = (0.0, 0.0) if newest is None else _day_bytes(segments, past, newest)
    freed = _by_day(np.asarray(segments.deleted_ms, np.int64), size, at_ms)
    left = free_bytes - day_bytes * np.arange(1, LONGEST_DAYS + 1) + np.cumsum(freed)
    full = np.flatnonzero(left < 0)
    return GrowthForecast(
        newest_ms=newest,
        day_bytes=round(day_bytes),
        short_bytes=round(short_bytes),
        freed_bytes=round(float(freed[0])),
        full_ms=at_ms + (int(full[0]) + 1) * DAY_MS if len(full) else None,
    )


def _day_bytes(
    segments: SegmentTimes, past: npt.NDArray[np.bool_], newest: int
) -> tuple[float, float]:
    """Return the bytes in a day of all logs together, each over the time that it covers.

    The second number is that of the logs that cover less than `SHORT_MS`.
    """
    log, begin, stamp = (
        np.asarray(one, np.int64)
        for one in (segments.log, segments.begin_ms, segments.timestamp_ms)
    )
    window = newest - WINDOW_DAYS * DAY_MS
    known = past & (begin >= 0) & (begin <= stamp) & (stamp > window)
    log, begin, stamp = log[known], begin[known], stamp[known]
    size = np.asarray(segments.size, np.float64)[known]
    inside = np.clip((stamp - window) / np.maximum(stamp - begin, 1), 0, 1)
    count = int(log.max()) + 1 if len(log) else 0
    oldest = np.full(count, newest, np.int64)
    np.minimum.at(oldest, log, np.maximum(begin, window))
    span = np.maximum(newest - oldest, SHORTEST_MS)
    per_day = np.bincount(log, size * inside, minlength=count) / span * DAY_MS
    return float(per_day.sum()), float(per_day[span < SHORT_MS].sum())


def _by_day(
    deleted_ms: npt.NDArray[np.int64], size: npt.NDArray[np.float64], at_ms: int
) -> npt.NDArray[np.float64]:
    """Return the bytes that retention deletes on each day from a moment on."""
    day = np.maximum(deleted_ms - at_ms, 0) // DAY_MS
    near = day < LONGEST_DAYS
    return np.bincount(day[near], size[near], minlength=LONGEST_DAYS).astype(np.float64)
