"""The rules by which a broker deletes the oldest segments of a log, and the round of each.

In each round a broker applies three rules in their order: log start offset, size, time. Each walks
from the oldest segment and stops at the first that stays, so that one segment keeps all behind it.
No segment goes that ends above the high watermark, nor an empty active segment. An active segment
with records may go: the broker rolls a new one first. Size and time count only with
``cleanup.policy=delete``.

``LogManager.cleanupLogs`` runs ``log.initial.task.delay.ms`` after a start, then once in each
``log.retention.check.interval.ms``, but passes over compacted topics: for these the thread of the
log cleaner applies the same rules between its passes, ``log.cleaner.backoff.ms`` apart.

Source: ``UnifiedLog.deleteOldSegments``, ``deletableSegments`` and the three rules below them,
``LogManager.startupWithConfigOverrides``, ``LogCleaner.cleanFilthiestLog`` (Kafka 3.9 and 4.2,
whose rules are the same but for an empty policy).
"""

from bisect import bisect_right
from collections.abc import Sequence
from enum import StrEnum

from logtool.lazy_dataclass import dataclass
from logtool.retention.settings import TopicRetention

NEVER = 2**63 - 1
"""The number of the round of a segment that no rule deletes."""


class DeletionRule(StrEnum):
    """The rules that delete segments, in the order of a round."""

    LOG_START = "log-start"
    SIZE = "size"
    TIME = "time"


class Obstacle(StrEnum):
    """The reasons for which a segment stays."""

    HIGH_WATERMARK = "high-watermark"
    EMPTY = "empty-active"
    POLICY = "policy"
    NO_LIMIT = "no-limit"
    WITHIN_SIZE = "within-size"
    FUTURE = "future-timestamp"
    AGE = "age"
    OLDER = "older-segment"
    CLEANER = "cleaner-disabled"


@dataclass(frozen=True, slots=True)
class SegmentColumns:
    """The segments of one log as columns of equal length, the oldest first.

    They are lists of numbers, because most logs have few segments: arrays took three times as long.
    """

    base_offset: Sequence[int]
    size: Sequence[int]
    """Bytes of the .log file."""
    timestamp: Sequence[int]
    """Largest timestamp as the broker has it, in ms: from the index or the file's mtime."""
    log_start: int = 0
    log_end: int | None = None
    """Offset behind the last record; None if the high watermark is known to reach it."""
    high_watermark: int | None = None
    """None: it reaches the log end."""

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.base_offset)


@dataclass(frozen=True, slots=True)
class Rounds:
    """The times at which a broker looks for segments to delete."""

    first_ms: int
    every_ms: int

    def number(self, due_ms: int) -> int:
        """Return the number of the first round at or after a time, from 1 on; NEVER stays."""
        if due_ms >= NEVER:
            return NEVER
        return -(-max(0, due_ms - self.first_ms) // self.every_ms) + 1

    def time_ms(self, number: int) -> int:
        """Return the time of a round, in ms."""
        return self.first_ms + (number - 1) * self.every_ms


@dataclass(frozen=True, slots=True)
class DeletionForecast:
    """The round in which each segment of a log goes, its rule, and what keeps it."""

    round: Sequence[int]
    """NEVER for a segment that no rule deletes."""
    rule: Sequence[DeletionRule | None]
    obstacle: Sequence[Obstacle | None]
    """Why a segment stays after the first round; None for one that goes in it."""
    held_by: Sequence[int]
    """Row of the older segment whose time decides; -1 where it is the segment's own."""
    rounds: Rounds

    @property
    def first(self) -> int:
        """Return how many segments go in the first round."""
        return self.round.count(1)


def forecast(
    log: SegmentColumns,
    limits: TopicRetention,
    rounds: Rounds,
    now_ms: int,
    *,
    cleans: bool = True,
) -> DeletionForecast:
    """Return the round of each segment of a log to which no record is appended.

    `now_ms` is the time of the start. Without the log cleaner (`cleans` False) a compacted topic
    keeps everything.
    """
    count = len(log)
    number = [NEVER] * count
    rule: list[DeletionRule | None] = [None] * count
    holder = [-1] * count
    is_seen = cleans or not limits.compacts
    free = _free(log) if is_seen else 0
    start = _below_start(log, free)
    sized = start
    if limits.deletes:
        sized += _over_size(log.size[start:], limits.bytes.number, free - start)
        if limits.ms.number >= 0:
            latest = oldest = -1
            for row in range(sized, count):
                due = log.timestamp[row] + limits.ms.number + 1
                if due >= latest:
                    latest, oldest = due, row
                holder[row] = -1 if oldest == row else oldest
                if row < free:
                    number[row], rule[row] = rounds.number(latest), DeletionRule.TIME
    for row in range(sized):
        number[row], rule[row] = 1, DeletionRule.LOG_START if row < start else DeletionRule.SIZE
    if limits.is_copied and count and number[-1] != NEVER:
        number[-1] += 1  # The active segment is rolled in one round, and deleted in a later one.
    obstacles = [
        None
        if number[row] == 1
        else _obstacle(log, limits, row, free, holder[row], now_ms, is_seen)
        for row in range(count)
    ]
    rule = [None if at == NEVER else one for at, one in zip(number, rule, strict=True)]
    return DeletionForecast(number, rule, obstacles, holder, rounds)


def _free(log: SegmentColumns) -> int:
    """Return how many of the oldest segments end at or below the high watermark and have bytes.

    An empty active segment does not count; an empty closed one does.
    """
    count = len(log)
    free = count - (1 if count and not log.size[-1] else 0)
    if log.high_watermark is None:
        return free
    ends = [*log.base_offset[1:], log.log_end or 0]
    return min(free, bisect_right(ends, log.high_watermark))


def _below_start(log: SegmentColumns, free: int) -> int:
    """Return how many segments the log start offset deletes."""
    return min(free, bisect_right(log.base_offset[1:], log.log_start))


def _over_size(sizes: Sequence[int], limit: int, free: int) -> int:
    """Return how many segments of these sizes the limit of the size deletes."""
    excess = sum(sizes) - limit
    if limit < 0 or excess < 0:
        return 0
    gone = 0
    while gone < free and excess >= sizes[gone]:
        excess -= sizes[gone]
        gone += 1
    return gone


def _obstacle(
    log: SegmentColumns,
    limits: TopicRetention,
    row: int,
    free: int,
    holder: int,
    now_ms: int,
    is_seen: bool,
) -> Obstacle:
    """Return why a segment stays after the first round."""
    if not is_seen:
        return Obstacle.CLEANER
    if not limits.deletes:
        return Obstacle.POLICY
    if row >= free:
        is_empty = row == len(log) - 1 and not log.size[row]
        return Obstacle.EMPTY if is_empty else Obstacle.HIGH_WATERMARK
    if limits.ms.number < 0:
        return Obstacle.NO_LIMIT if limits.bytes.number < 0 else Obstacle.WITHIN_SIZE
    if holder >= 0:
        return Obstacle.OLDER
    return Obstacle.FUTURE if log.timestamp[row] > now_ms else Obstacle.AGE
