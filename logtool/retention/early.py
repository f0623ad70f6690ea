"""Segments that the first round deletes too early, because their timestamps are in seconds.

A timestamp in seconds is one of January 1970 for a broker, so that such a segment is older than any
``retention.ms``. Columns of the segments suffice: nothing is read.
"""

from logtool.lazy_dataclass import dataclass
from logtool.retention import stamp
from logtool.retention.rules import DeletionForecast, DeletionRule, SegmentColumns
from logtool.retention.segments import LogSegments, StampSource
from logtool.times import rfc3339


@dataclass(frozen=True, slots=True)
class EarlyDeletion:
    """The segments of a log that go in the first round, though their records are young enough."""

    segments: int
    bytes: int
    """Bytes of their .log files."""
    first_offset: int
    last_offset: int | None
    """None if the log goes as a whole, and its end is not known."""
    newest_ms: int
    """Time that the largest of their timestamps means, in ms."""
    age_ms: int
    """Age of that record at the start, in ms; 0 for one that is younger."""

    @property
    def newest(self) -> str | None:
        """Return `newest_ms` in UTC."""
        return rfc3339(self.newest_ms)


def deleted_offsets(
    log: SegmentColumns, rows: range, end: int | None
) -> tuple[int, int | None] | None:
    """Return the first and the last offset in some segments, those below the log start left out.

    `end` is the offset behind the log, None if it is not known: then the last offset of the active
    segment is None. None for segments without such offsets.
    """
    if not rows:
        return None
    after = log.base_offset[rows.stop] if rows.stop < len(log) else end
    first = max(log.base_offset[rows.start], log.log_start)
    if after is None:
        return first, None
    return (first, after - 1) if after > first else None


def early_deletion(
    segments: LogSegments, forecast: DeletionForecast, limit_ms: int, start_ms: int, end: int | None
) -> EarlyDeletion | None:
    """Return the segments that the first round deletes too early; None for none.

    `limit_ms` is the longest age, `start_ms` the time of the start, and `end` the offset behind the
    log, None if it is not known.
    """
    log, rows, newest_ms = segments.columns, [], 0
    for row in range(forecast.first):
        is_stamped = segments.sources[row] is not StampSource.MTIME
        if forecast.rule[row] is not DeletionRule.TIME or not is_stamped:
            continue
        unit = stamp.unit_of(log.timestamp[row], start_ms)
        meant_ms = stamp.meaning_ms(log.timestamp[row], unit)
        if unit is not None and meant_ms + limit_ms >= forecast.rounds.first_ms:
            rows.append(row)
            newest_ms = max(newest_ms, meant_ms)
    found = deleted_offsets(log, range(rows[0], rows[-1] + 1), end) if rows else None
    if found is None:
        return None
    return EarlyDeletion(
        segments=len(rows),
        bytes=sum(log.size[row] for row in rows),
        first_offset=found[0],
        last_offset=found[1],
        newest_ms=newest_ms,
        age_ms=max(0, start_ms - newest_ms),
    )
