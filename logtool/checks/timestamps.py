"""Timestamps that cannot be meant: far in the future, or in another unit than milliseconds.

Kafka takes any time from a producer, unless ``message.timestamp.after.max.ms`` forbids (one hour
since 4.0, no bound before). Times in the past are legal in any order. What is judged is only what
is clearly wrong: more than a day behind the moment at which the log was last written, or a number
that is a plausible time in seconds, microseconds or nanoseconds and no plausible one in
milliseconds. That moment is the modification time of the file, so that the answer does not depend
on the clock; a copy without time stamps is younger, and only says less.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from logtool.disk.partition import File
from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.record_batch import BatchTable, Column
from logtool.times import rfc3339

AHEAD_MS = 24 * 3600 * 1000
"""How far a timestamp may be ahead of the last write: a day, however wrong the zone of a clock."""
_YEAR_MS = 365 * 24 * 3600 * 1000
_PAST_MS = 20 * _YEAR_MS
"""How old a time is at most that is taken for one in another unit."""
_OLDEST_WRITE_MS = 40 * _YEAR_MS
"""A file that was last written before 2010 has a time that somebody has set."""
UNITS = {"seconds": (1000, 1), "microseconds": (1, 1000), "nanoseconds": (1, 1_000_000)}
"""By unit: what to multiply and then to divide by, for milliseconds."""


@dataclass(slots=True)
class _Odd:
    """The batches of one segment with one kind of odd timestamp."""

    batches: int = 0
    timestamp: int = 0
    """Of the first of them, as are position and offsets."""
    position: int = 0
    length: int = 0
    first_offset: int = 0
    last_offset: int = 0
    producer_id: int = -1


class TimestampRules:
    """Judges the batches of one log, chunk by chunk; `finish` says what there was."""

    def __init__(self, log: File) -> None:
        self._written_ms = log.mtime_ns // 1_000_000
        self._known = self._written_ms >= _OLDEST_WRITE_MS
        self._odd: dict[str, _Odd] = {}

    @property
    def has_odd(self) -> bool:
        """Return whether some batch so far has an odd timestamp."""
        return bool(self._odd)

    def feed(self, table: BatchTable) -> None:
        """Take the next sound batches."""
        if not self._known or not len(table):
            return
        newest = table.max_timestamp
        latest = self._written_ms + AHEAD_MS
        seconds_end = latest // 1000
        low = (newest > 0) & (newest <= seconds_end)
        ahead = newest > latest
        if not (ahead.any() or low.any()):
            return
        units = {name: self._is_in(newest, *factors) for name, factors in UNITS.items()}
        units["seconds"] &= low
        units["microseconds"] &= ahead
        units["nanoseconds"] &= ahead
        future = ahead & ~units["microseconds"] & ~units["nanoseconds"]
        for name, bad in {**units, "future": future}.items():
            self._add(name, table, np.flatnonzero(bad))

    def _is_in(self, stamps: Column, times: int, by: int) -> Column:
        """Return which timestamps are a plausible time once they are converted."""
        earliest, latest = self._written_ms - _PAST_MS, self._written_ms + AHEAD_MS
        found: Column = (stamps >= earliest * by // times) & (stamps <= latest * by // times)
        return found

    def _add(self, name: str, table: BatchTable, rows: Column) -> None:
        if not len(rows):
            return
        first = int(rows[0])
        odd = self._odd.setdefault(name, _Odd(
            timestamp=int(table.max_timestamp[first]),
            position=int(table.position[first]),
            length=int(table.size[first]),
            first_offset=int(table.base_offset[first]),
            last_offset=int(table.last_offset[first]),
            producer_id=int(table.producer_id[first]),
        ))  # fmt: skip
        odd.batches += len(rows)

    def finish(self) -> Iterator[Finding]:
        """Yield a finding for each kind of odd timestamp."""
        for name, odd in self._odd.items():
            more = (
                f" (and {wording.count(odd.batches - 1, 'more batch', 'more batches')})"
                if odd.batches > 1
                else ""
            )
            who = f" of producer {odd.producer_id}" if odd.producer_id >= 0 else ""
            text = f"batch at offset {odd.first_offset}{who}: timestamp {odd.timestamp} "
            if name == "future":
                code = "batch/timestamp-future"
                text += f"is {rfc3339(odd.timestamp) or 'beyond the year 9999'}, but the log was "
                text += f"last written at {rfc3339(self._written_ms)}"
            else:
                code = "batch/timestamp-unit"
                times, by = UNITS[name]
                text += f"is no time in milliseconds, but {rfc3339(odd.timestamp * times // by)} "
                text += f"in {name}"
            yield Finding(
                code,
                text + more,
                position=odd.position,
                length=odd.length,
                first_offset=odd.first_offset,
                last_offset=odd.last_offset,
            )
