"""Timestamps that cannot be meant: far in the future, or in another unit than milliseconds.

Kafka takes any time from a producer, unless ``message.timestamp.after.max.ms`` forbids (one hour
since 4.0, no bound before). Where the metadata log in the log dir says what a topic is set to, that
is the rule for what a producer has stamped: a batch further ahead of the moment at which the log
was last written was never taken with that setting. Elsewhere, and of what brokers stamp, only a day
ahead of that moment is too much. Besides, a number is judged that is a plausible time in seconds,
microseconds or nanoseconds and no plausible one in milliseconds.

That moment is the modification time of the file, so that the answer does not depend on the clock; a
copy without time stamps is younger, and only says less. Times in the past are legal in any order:
``message.timestamp.before.max.ms`` has no bound unless it is set, and a log does not tell when a
batch came, only that it came before that moment. So nothing can be held against that setting.
Source: ``LogValidator.validateTimestamp``, ``ServerLogConfigs`` (Kafka 3.9.2 and 4.3.1).
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from logtool.checks.batches import with_next
from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.record_batch import BatchTable, Column
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import PlainTotals
from logtool.times import rfc3339

AHEAD_MS = 24 * 3600 * 1000
"""How far a timestamp may be ahead of the last write: a day, however wrong the zone of a clock."""
_YEAR_MS = 365 * 24 * 3600 * 1000
_PAST_MS = 20 * _YEAR_MS
"""How old a time is at most that is taken for one in another unit."""
_OLDEST_WRITE_MS = 40 * _YEAR_MS
"""A file that was last written before 2010 has a time that somebody has set."""
_LONGEST = 2**63 - 1
UNITS = {"seconds": (1000, 1), "microseconds": (1, 1000), "nanoseconds": (1, 1_000_000)}
"""By unit: what to multiply and then to divide by, for milliseconds."""


def ordinary(mtime_ns: int, ahead_ms: int | None) -> tuple[int, int] | None:
    """Return between which timestamps nothing can be odd, both exclusive; None: not known.

    `mtime_ns` is when the log was last written, `ahead_ms` what its topic allows.
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
    """Of the first of them, as are position and offsets."""
    position: int = 0
    length: int = 0
    first_offset: int = 0
    last_offset: int = 0
    producer_id: int = -1


class TimestampRules:
    """Judges the batches of one log, chunk by chunk; `finish` says what there was."""

    def __init__(self, mtime_ns: int, ahead_ms: int | None = None) -> None:
        """Take when the log was last written, and what its topic allows; None: not known."""
        self._written_ms = mtime_ns // 1_000_000
        self._ahead_ms = ahead_ms
        self._ordinary = ordinary(mtime_ns, ahead_ms)
        self._odd: dict[str, _Odd] = {}

    @property
    def has_odd(self) -> bool:
        """Return whether some batch so far has an odd timestamp."""
        return bool(self._odd)

    def add(self, table: BatchTable, plain: PlainTotals | None = None) -> None:
        """Take the next sound batches, and what they come to if they are plain."""
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
            first_offset=int(table.base_offset[first]),
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
                text += f"is no time in milliseconds, but {rfc3339(odd.timestamp * times // by)} "
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
