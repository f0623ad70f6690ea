"""The share of the bytes that was checked, by the age of the last check and by topic."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import field, fields

from logtool.checks.report import Level
from logtool.lazy_dataclass import dataclass
from logtool.scrub.due import KnownSegment
from logtool.scrub.state import RunRow
from logtool.times import DAY_MS

_LAST_RUNS = 3
"""Number of runs whose pace counts."""


@dataclass(slots=True)
class Amount:
    """A number of segments and the bytes of their logs."""

    segments: int = 0
    bytes: int = 0

    def add(self, size: int) -> None:
        """Add a segment."""
        self.segments += 1
        self.bytes += size


@dataclass(slots=True)
class CheckAges:
    """Segments by the age of their last check, each in one class."""

    day: Amount = field(default_factory=Amount)
    """Checked within a day."""
    week: Amount = field(default_factory=Amount)
    """Else within a week."""
    cycle: Amount = field(default_factory=Amount)
    """Else within the cycle."""
    older: Amount = field(default_factory=Amount)
    """Longer ago."""
    never: Amount = field(default_factory=Amount)
    """Never, or at a lower level."""

    def items(self) -> list[tuple[str, Amount]]:
        """Return the names and the amounts."""
        return [(one.name, getattr(self, one.name)) for one in fields(self)]


@dataclass(slots=True)
class CheckCoverage:
    """The segments of a topic, or of all topics, by the age of their last check."""

    scope: str = "all"
    """"all", or "topic"."""
    topic: str | None = None
    """None for all topics, and where a directory has no name of a partition."""
    ages: CheckAges = field(default_factory=CheckAges)
    oldest_ms: int = 0
    """Age of the segment that was checked the longest ago, or never since it was first seen."""

    @property
    def segments(self) -> int:
        """Return the number of segments."""
        return sum(one.segments for _, one in self.ages.items())

    @property
    def bytes(self) -> int:
        """Return the bytes of the logs."""
        return sum(one.bytes for _, one in self.ages.items())

    @property
    def share(self) -> float:
        """Return the part of the bytes that was checked within the cycle; 1 without bytes."""
        ages = self.ages
        within = ages.day.bytes + ages.week.bytes + ages.cycle.bytes
        return within / self.bytes if self.bytes else float(not ages.never.segments)

    @property
    def oldest_s(self) -> float:
        """Return `oldest_ms` in seconds."""
        return self.oldest_ms / 1000

    def add(self, segment: KnownSegment, age: str, age_ms: int) -> None:
        """Add a segment."""
        getattr(self.ages, age).add(segment.size)
        self.oldest_ms = max(self.oldest_ms, age_ms)


def coverage_of(
    segments: Iterable[KnownSegment], *, now_ms: int, cycle_ms: int, level: Level
) -> list[CheckCoverage]:
    """Return the coverage of all segments, then that of each topic, the least covered first.

    A check at a lower level than `level` does not count.
    """
    whole = CheckCoverage()
    topics: dict[str | None, CheckCoverage] = {}
    levels = [str(one) for one in Level]
    enough = levels[levels.index(str(level)) :]
    for one in segments:
        topic = None if one.topic is None else os.fsdecode(one.topic)
        age_ms = max(now_ms - one.since_ms, 0)
        age = _class_of(age_ms, cycle_ms)
        if one.checked_ms is None or one.level not in enough:
            age = "never"
        for found in (whole, topics.setdefault(topic, CheckCoverage("topic", topic))):
            found.add(one, age, age_ms)
    by_topic = sorted(topics.values(), key=lambda one: (one.share, -one.oldest_ms, one.topic or ""))
    return [whole, *by_topic]


def _class_of(age_ms: int, cycle_ms: int) -> str:
    limits = {"day": DAY_MS, "week": 7 * DAY_MS, "cycle": cycle_ms}
    if age_ms > cycle_ms:
        return "older"
    return next(name for name, limit in limits.items() if age_ms <= limit)


def complete_in_ms(whole: CheckCoverage, runs: Sequence[RunRow], now_ms: int) -> int | None:
    """Return the time until every byte was checked within the cycle, at the pace of the last runs.

    Runs in which nothing was due do not count. 0 if everything was checked, None if these runs
    checked nothing.
    """
    left = whole.ages.older.bytes + whole.ages.never.bytes
    if not left:
        return 0
    with_work = [one for one in runs if one.due_bytes]
    done = sum(one.bytes for one in with_work[-_LAST_RUNS:])
    if not done:
        return None
    # A run also stands for the time before it: what it checks became due since the one before.
    begun_ms = with_work[-_LAST_RUNS - 1 :][0].start_ms
    passed = max(now_ms - begun_ms, DAY_MS)
    return left * passed // done
