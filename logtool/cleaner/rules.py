"""The rules by which the log cleaner chooses a log, and the range of it that it cleans.

The range begins at the first dirty offset: the row in ``cleaner-offset-checkpoint``, or the log
start if there is no row, or one below the log start or above the log end. It ends before the first
uncleanable offset: the last stable offset, the active segment, or the first segment that is
younger than ``min.compaction.lag.ms``, whichever comes first. Segments count as a whole: the one
with the last stable offset is not cleaned, and one with the first dirty offset inside it counts
among the clean bytes as well as among the cleanable ones.

A log is cleaned if the cleanable bytes are more than ``min.cleanable.dirty.ratio`` of both, or if
there are some and the first batch of a dirty closed segment is older than
``max.compaction.lag.ms``. One thread cleans one log at a time, the one with the largest ratio
first, and pauses ``log.cleaner.backoff.ms`` if no log is left. The first pass is at the start,
before a high watermark has risen.

Source: ``LogCleanerManager.cleanableOffsets``, ``calculateCleanableBytes``, ``maxCompactionDelay``,
``grabFilthiestCompactedLog``, ``LogToClean``, ``LogSegments.values`` (Kafka 3.9 and 4.x, whose
rules are the same).
"""

from bisect import bisect_left, bisect_right
from enum import StrEnum

from logtool.lazy_dataclass import dataclass
from logtool.metadata.setting_values import SettingValue
from logtool.retention.rules import SegmentColumns

NO_LAG = 2**63 - 1
"""The default of ``max.compaction.lag.ms``."""


class DirtySource(StrEnum):
    """The facts that set the first dirty offset."""

    ROW = "checkpoint"
    NO_ROW = "no-row"
    BELOW_START = "row-below-log-start"
    ABOVE_END = "row-above-log-end"


class CleaningObstacle(StrEnum):
    """The reasons for which a log is not cleaned."""

    DISABLED = "cleaner-disabled"
    CHECKPOINT = "checkpoint-unreadable"
    FUTURE = "future-copy"
    EMPTY = "empty"
    ACTIVE = "active-segment"
    TRANSACTION = "open-transaction"
    WATERMARK = "high-watermark"
    MIN_LAG = "min-lag"
    RATIO = "dirty-ratio"
    DAMAGE = "damaged-batch"
    OVERFLOW = "offset-overflow"


@dataclass(frozen=True, slots=True)
class CleanerLimits:
    """The settings of one topic."""

    policy: SettingValue
    ratio: SettingValue
    min_lag: SettingValue
    max_lag: SettingValue
    delete_retention: SettingValue

    @property
    def compacts(self) -> bool:
        """Return whether the topic is compacted."""
        return "compact" in self.policy.value

    @property
    def settings(self) -> tuple[SettingValue, ...]:
        """Return the settings with their sources."""
        return self.policy, self.ratio, self.min_lag, self.max_lag, self.delete_retention


@dataclass(frozen=True, slots=True)
class Stable:
    """The last stable offset, and what keeps it below the log end."""

    offset: int
    bound: CleaningObstacle | None = None
    """TRANSACTION or WATERMARK; None if it is the log end."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The range of a log that the cleaner may clean."""

    first_dirty_offset: int
    source: DirtySource
    first_uncleanable_offset: int
    """Base offset of a segment: that of the active one, or of one before it."""
    bound: CleaningObstacle
    """The obstacle that sets the first uncleanable offset."""
    dirty: range
    """Rows of the closed segments with dirty offsets."""
    uncleanable_row: int
    """Row of the segment at the first uncleanable offset."""
    clean_bytes: int
    cleanable_bytes: int
    uncleanable_bytes: int
    lag_row: int | None = None
    """Row of the first dirty segment that is younger than ``min.compaction.lag.ms``."""

    @property
    def ratio(self) -> float:
        """Return the share of the cleanable bytes; 0 without any bytes."""
        return self.cleanable_bytes / ((self.clean_bytes + self.cleanable_bytes) or 1)


def first_dirty(row: int | None, log_start: int, log_end: int) -> tuple[int, DirtySource]:
    """Return the first dirty offset, given the row in the checkpoint; None for no row."""
    if row is None:
        return log_start, DirtySource.NO_ROW
    if row < log_start:
        return log_start, DirtySource.BELOW_START
    if row > log_end:
        return log_start, DirtySource.ABOVE_END
    return row, DirtySource.ROW


def extent(
    log: SegmentColumns, dirty: tuple[int, DirtySource], stable: Stable, lag_ms: int, now_ms: int
) -> Extent:
    """Return the range that the cleaner may clean; the log has at least one segment."""
    base, active = log.base_offset, len(log) - 1
    offset, source = dirty
    rows = range(_holder(log, offset), active)
    lag_row = None
    if lag_ms > 0:
        lag_row = next((row for row in rows if log.timestamp[row] > now_ms - lag_ms), None)
    limit, bound = base[active], CleaningObstacle.ACTIVE
    if lag_row is not None:
        limit, bound = base[lag_row], CleaningObstacle.MIN_LAG
    if stable.offset < limit and stable.bound is not None:
        limit, bound = stable.offset, stable.bound
    last = _holder(log, max(offset, limit))
    first = min(_holder(log, offset), last)
    return Extent(
        first_dirty_offset=offset,
        source=source,
        first_uncleanable_offset=base[last],
        bound=bound,
        dirty=rows,
        uncleanable_row=last,
        clean_bytes=sum(log.size[: bisect_left(base, offset)]),
        cleanable_bytes=sum(log.size[first:last]),
        uncleanable_bytes=sum(log.size[last:]),
        lag_row=lag_row,
    )


def _holder(log: SegmentColumns, offset: int) -> int:
    """Return the row of the segment that an offset lies in."""
    return max(0, bisect_right(log.base_offset, offset) - 1)


def is_cleaned(found: Extent, limits: CleanerLimits, earliest_ms: int, now_ms: int) -> bool:
    """Return whether the cleaner takes a log with this range.

    `earliest_ms` is the earliest timestamp of the first batches of the dirty closed segments, those
    of 0 and below left out; `NO_LAG` without one.
    """
    if not found.cleanable_bytes:
        return False
    must = earliest_ms < now_ms - max(0, limits.max_lag.number)
    return must or found.ratio > limits.ratio.fraction


def obstacle(
    found: Extent, free: Extent, limits: CleanerLimits, earliest_ms: int, now_ms: int
) -> CleaningObstacle | None:
    """Return why the cleaner does not take a log; None if it does.

    `free` is the range that could be cleaned if only the active segment set its end. The bound is
    the reason if the log would be cleaned without it, else the ratio.
    """
    if is_cleaned(found, limits, earliest_ms, now_ms):
        return None
    if not free.clean_bytes + free.cleanable_bytes + free.uncleanable_bytes:
        return CleaningObstacle.EMPTY
    if not free.cleanable_bytes:
        return CleaningObstacle.ACTIVE
    if is_cleaned(free, limits, earliest_ms, now_ms):
        return found.bound
    return CleaningObstacle.RATIO
