"""The effects of retention and of the log cleaner soon after a start, as sums for one screen.

`after_start` reads only names, sizes and ends of indexes, and the headers that a start reads as
well. Without a metadata log there is no answer: the settings of topics are not known then.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from logtool.cleaner.rules import CleaningObstacle
from logtool.cleaner.run import CleanerOptions, CleanerRun, PartitionCleaning
from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass
from logtool.log.flavour import Flavour
from logtool.log.selection import Selection
from logtool.node.node import Node
from logtool.retention.logs import LiveLogs
from logtool.retention.rules import DeletionRule, Obstacle
from logtool.retention.run import PartitionRetention, RetentionOptions, RetentionRun
from logtool.retention.settings import CLEANER, LOCAL_BYTES, LOCAL_MS
from logtool.running.run import Run

MOST_LOGS = 5000
"""Partitions beyond which the look takes too long for one line: 2 s for this many."""
_DAY_MS = 86_400_000


@dataclass(slots=True)
class FirstRound:
    """The segments that the first round of retention deletes."""

    segments: int = 0
    bytes: int = 0
    """Bytes of their .log files."""
    partitions: int = 0
    copied: int = 0
    """Number of segments that go by local retention: they stay in remote storage."""
    oldest: str | None = None
    """Topic and number of the partition with the oldest of them."""
    _oldest_ms: int = 0

    def add(self, of: PartitionRetention) -> None:
        """Add the segments of a partition."""
        path, segments, oldest_ms = of.path, of.first_segments, of.oldest_ms
        if not segments:
            return
        if self.oldest is None or oldest_ms < self._oldest_ms:
            self.oldest, self._oldest_ms = path.name, oldest_ms
        self.segments += segments
        self.bytes += of.first_bytes
        limits, by_local = of.limits, 0
        for rule in of.forecast.rule[:segments]:
            limit = limits.ms if rule is DeletionRule.TIME else limits.bytes
            by_local += rule is not DeletionRule.LOG_START and limit.name in (LOCAL_MS, LOCAL_BYTES)
        self.copied += by_local
        self.partitions += 1


@dataclass(frozen=True, slots=True)
class AfterStart:
    """The first round of retention, and the partitions that stay as they are."""

    delay_ms: int
    """Time from the start to that round."""
    first: FirstRound
    kept: tuple[PartitionCleaning, ...]
    """Compacted partitions that an open transaction keeps dirty."""
    future_stamped: tuple[PartitionRetention, ...]
    """Partitions that a timestamp more than a day in the future keeps from retention."""
    early: tuple[PartitionRetention, ...]
    """Partitions that lose segments too early, because their timestamps are in seconds."""


def after_start(
    paths: Sequence[Path],
    node: Node,
    start_ms: int,
    static: Mapping[str, str],
    *,
    selection: Selection | None = None,
    run: Run | None = None,
    flavour: Flavour | None = None,
) -> AfterStart | None:
    """Return the effects after a start at `start_ms`; None if the settings are not known.

    `static` are the settings in the broker's own file. Errors of reading are left out: the
    caller reads the same files, and reports them.
    """
    if node.image is None or node.image.damage:
        return None
    logs = LiveLogs(paths, static, selection=selection, run=run, flavour=flavour, node=node)
    round_of = RetentionRun(logs, RetentionOptions(start_ms, static=static, with_stamps=False))
    first, stamped, early = FirstRound(), [], []
    for one in round_of:
        if not isinstance(one, UnreadableError):
            first.add(one)
            if _is_future_stamped(one, start_ms):
                stamped.append(one)
            if one.early:
                early.append(one)
    kept = [
        one
        for one in CleanerRun(logs, CleanerOptions(start_ms, static=static, with_contents=False))
        if not isinstance(one, UnreadableError) and one.obstacle is CleaningObstacle.TRANSACTION
    ]
    delay_ms = round_of.rounds.first_ms - start_ms
    return AfterStart(delay_ms, first, tuple(kept), tuple(stamped), tuple(early))


def given_up(
    paths: Sequence[Path],
    node: Node,
    start_ms: int,
    static: Mapping[str, str],
    selection: Selection,
    run: Run,
) -> Iterator[PartitionCleaning]:
    """Yield the compacted partitions of a selection that the cleaner gives up because of damage.

    If `static` switches the cleaner off, they are those that it gives up once it is switched on.
    The logs are read as far as a cleaning reads them. Nothing is yielded without a metadata log.
    """
    if node.image is None or node.image.damage:
        return
    logs = LiveLogs(paths, static, selection=selection, run=run, node=node)
    switched_on = {CLEANER: "true"}
    for one in CleanerRun(logs, CleanerOptions(start_ms, changed=switched_on, static=static)):
        if not isinstance(one, UnreadableError) and one.obstacle is CleaningObstacle.DAMAGE:
            yield one


def _is_future_stamped(of: PartitionRetention, start_ms: int) -> bool:
    """Return whether a timestamp in the future keeps the oldest segment that stays."""
    if of.obstacle is not Obstacle.FUTURE:
        return False
    return of.log.columns.timestamp[of.first_segments] > start_ms + _DAY_MS
