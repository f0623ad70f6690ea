"""Timestamps that are surely mistakes: far in the future, or in another unit than milliseconds.

A broker accepts any time from a producer, unless ``message.timestamp.after.max.ms`` forbids it (one
hour since 4.0, no limit before). The setting of the topic in the metadata log is the limit for
timestamps from producers: with it, the broker rejects a batch that is further ahead of the time at
which the log was last written. Without a known setting, and for timestamps from brokers, the limit
is one day ahead of that time. A number is also reported if it is a plausible time in seconds,
microseconds or nanoseconds, but not in milliseconds.

The time of the last write is the modification time of the file, so that the result does not depend
on the clock; a copy without time stamps is younger, and only gives fewer findings. Times in the
past are valid in any order: ``message.timestamp.before.max.ms`` has no limit unless it is set, and
a log does not show when a batch was appended, only that it was before the last write. So that
setting is not checked. Source: ``LogValidator.validateTimestamp``, ``ServerLogConfigs`` (Kafka
3.9.2 and 4.3.1).
"""

from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from logtool.checks.batches import with_next
from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.record_batch import BatchTable, Column
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import PlainTotals
from logtool.times import rfc3339

AHEAD_MS = 24 * 3600 * 1000
"""Limit for timestamps ahead of the last write: a day, because a clock may have a wrong zone."""
_YEAR_MS = 365 * 24 * 3600 * 1000
_PAST_MS = 20 * _YEAR_MS
"""Largest age of a time that is recognised in another unit."""
_OLDEST_WRITE_MS = 40 * _YEAR_MS
"""A file that was last written before 2010 has a time that somebody has set."""
_LONGEST = 2**63 - 1
UNITS = {"seconds": (1000, 1), "microseconds": (1, 1000), "nanoseconds": (1, 1_000_000)}
"""Factor and divisor of each unit: multiply, then divide, to get milliseconds."""


def ordinary(mtime_ns: int, ahead_ms: int | None) -> tuple[int, int] | None:
    """Return two bounds, both exclusive, between which no timestamp is odd; None: not known.

    `mtime_ns` is the time of the last write of the log, `ahead_ms` the limit of its topic.
    """
    written_ms = mtime_ns // 1_000_000
    if written_ms < _OLDEST_WRITE_MS:
        return None
    ahead = AHEAD_MS if ahead_ms is None else min(ahead_ms, AHEAD_MS)
    return (written_ms + AHEAD_MS) // 1000, written_ms + ahead + 1


@dataclass(slots=True)
class _Odd:
    """The batches of one segment with one kind of odd timestamp."""

    batches: int = 0
    timestamp: int = 0
    """Timestamp of the first of these batches; the fields below are of that batch too."""
    position: int = 0
    length: int = 0
    first_offset: int = 0
    last_offset: int = 0
    producer_id: int = -1


class TimestampRules:
    """Rules for the timestamps of one log, fed chunk by chunk; `finish` yields the findings."""

    def __init__(self, mtime_ns: int, ahead_ms: int | None = None) -> None:
        """Take the time of the last write and the limit of the topic; None: not known."""
        self._written_ms = mtime_ns // 1_000_000
        self._ahead_ms = ahead_ms
        self._ordinary = ordinary(mtime_ns, ahead_ms)
        self._odd: dict[str, _Odd] = {}

    def odd_so_far(self) -> dict[str, Any]:
        """Return the odd timestamps so far as JSON, for `take_odd`."""
        return {name: astuple(odd) for name, odd in self._odd.items()}

    def take_odd(self, value: dict[str, Any]) -> None:
        """Take the odd timestamps of the batches before, as `odd_so_far` has them."""
        self._odd = {name: _Odd(*map(int, odd)) for name, odd in value.items()}

    @property
    def has_odd(self) -> bool:
        """Return whether some batch so far has an odd timestamp."""
        return bool(self._odd)

    def add(self, table: BatchTable, plain: PlainTotals | None = None) -> None:
        """Take the next sound batches, with their totals if they are plain."""
        if not self._ordinary or not len(table):
            return
        least, most = self._ordinary
        if plain and least < plain.min_timestamp and plain.max_timestamp < most:
            return
        newest = table.max_timestamp
        latest = self._written_ms + AHEAD_MS
        seconds_end = latest // 1000
        low = (newest > 0) & (newest <= seconds_end)
        ahead = newest > latest
        beyond = self._beyond(table, ahead)
        if not (beyond.any() or ahead.any() or low.any()):
            return
        units = {name: self._is_in(newest, *factors) for name, factors in UNITS.items()}
        units["seconds"] &= low
        units["microseconds"] &= ahead
        units["nanoseconds"] &= ahead
        future = beyond & ~units["microseconds"] & ~units["nanoseconds"]
        for name, bad in {**units, "future": future}.items():
            self._add(name, table, np.flatnonzero(bad))

    def _beyond(self, table: BatchTable, ahead: Column) -> Column:
        """Return which timestamps are too far ahead; `ahead` are those of more than a day."""
        if self._ahead_ms is None:
            return ahead
        limit = min(self._written_ms + self._ahead_ms, _LONGEST)
        own: Column = table.is_log_append_time | table.is_control
        beyond: Column = np.where(own, ahead, table.max_timestamp > limit)
        return beyond

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
            first_offset=int(table[first : first + 1].first_offset[0]),
            last_offset=int(table.last_offset[first]),
            producer_id=int(table.producer_id[first]),
        ))  # fmt: skip
        odd.batches += len(rows)

    def finish(self, log: Path) -> Iterator[Finding]:
        """Yield a finding for each kind of odd timestamp of `log`, with the command to run next."""
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
                if self._ahead_ms is not None:
                    allowed = wording.duration(self._ahead_ms / 1000)
                    text += f" and message.timestamp.after.max.ms is {allowed}"
            else:
                code = "batch/timestamp-unit"
                times, by = UNITS[name]
                text += (
                    f"is not a time in milliseconds, but is {rfc3339(odd.timestamp * times // by)} "
                )
                text += f"in {name}"
            finding = Finding(
                code,
                text + more,
                position=odd.position,
                length=odd.length,
                first_offset=odd.first_offset,
                last_offset=odd.last_offset,
                path=log,
            )
            yield with_next(finding, log)
