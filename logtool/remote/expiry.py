"""The remote segments that retention deletes once a leader runs: the second tier of `retention`.

``retention.ms`` and ``retention.bytes`` count for the log as a whole, its remote segments and those
that are only local. The leader goes through the segments of each leader epoch, the oldest first,
and stops at the first that stays. It deletes a segment below the log start, one whose largest
timestamp is older than the age, and the oldest while the log is too large by the size of the whole
segment. It goes on with deletions that were begun. Source: ``RemoteLogManager.RLMExpirationTask``
(Kafka 3.9 and 4.2), which runs ``remote.log.manager.task.interval.ms`` apart.

Before 4.3.2 a leader that has not looked up yet how much is remote counts its local segments twice
(KAFKA-20732), and deletes segments for a size that the log does not have.
"""

from collections.abc import Iterator, Sequence, Set
from pathlib import Path

from logtool.errors import UnreadableError
from logtool.formats.messages.remote_log import TOPIC, SegmentState
from logtool.formats.names import TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import LogDir
from logtool.metadata.setting_values import SettingValue
from logtool.remote import coverage
from logtool.remote.lineage import PartitionLineage
from logtool.remote.local import LocalCopy
from logtool.remote.run import RemoteLineage
from logtool.remote.segments import RemoteSegment
from logtool.retention import settings as retention
from logtool.retention.rules import DeletionRule
from logtool.retention.settings import RetentionSettings
from logtool.running.run import Run
from logtool.times import rfc3339

Due = Sequence[tuple[RemoteSegment, DeletionRule | None]]
"""Segments that are deleted, each with its rule; None for a deletion that was begun before."""


@dataclass(frozen=True, slots=True)
class RemoteRetention:
    """The remote part of one partition, and what its leader deletes of it at a moment."""

    lineage: PartitionLineage
    settings: tuple[SettingValue, SettingValue]
    """The longest age and the largest size of the whole log."""
    due: Due
    only_local_bytes: int
    """Bytes of the local segments that count besides the remote ones."""
    remote_bytes: int
    """Bytes of the remote segments that count."""
    twice: Due
    """Segments that a leader deletes which counts all local segments besides the remote ones."""
    next_ms: int | None
    """Time at which the oldest remote segment that stays is too old, in ms; None for never."""

    @property
    def path(self) -> Path | None:
        """Return the partition dir."""
        return self.lineage.path

    @property
    def segments(self) -> int:
        """Return the number of remote segments that are not deleted."""
        return len(self.lineage.present)

    @property
    def total_bytes(self) -> int:
        """Return the size of the log, as retention counts it."""
        return self.remote_bytes + self.only_local_bytes

    @property
    def due_segments(self) -> int:
        """Return how many remote segments are deleted."""
        return len(self.due)

    @property
    def due_bytes(self) -> int:
        """Return their bytes."""
        return sum(one.size for one, _ in self.due)

    @property
    def rules(self) -> tuple[DeletionRule, ...]:
        """Return the rules that delete some, in the order of the segments."""
        return tuple(dict.fromkeys(rule for _, rule in self.due if rule is not None))

    @property
    def log_start_offset(self) -> int | None:
        """Return the log start offset after the deletions."""
        moved = [one.end_offset + 1 for one, rule in self.due
                 if rule in (DeletionRule.SIZE, DeletionRule.TIME)]  # fmt: skip
        return max([self.lineage.log_start or 0, *moved])

    @property
    def at_risk_segments(self) -> int:
        """Return how many more a release with KAFKA-20732 deletes."""
        return len(self.twice) - len(self.due)

    @property
    def at_risk_bytes(self) -> int:
        """Return the bytes of these."""
        return sum(one.size for one, _ in self.twice) - self.due_bytes

    @property
    def next(self) -> str | None:
        """Return `next_ms` in UTC."""
        return rfc3339(self.next_ms)


@dataclass(slots=True)
class RemoteRetentionRun:
    """The remote parts of the partitions in log dirs of a broker: iterate for them, and errors."""

    homes: Sequence[LogDir]
    settings: RetentionSettings
    start_ms: int
    wanted: Set[TopicPartition]
    """Tiered partitions that are asked for."""
    run: Run
    unknown: int = 0
    """Partitions of these of which no record is in the log dirs; filled."""

    def __iter__(self) -> Iterator[RemoteRetention | UnreadableError]:
        found = set()
        has_records = any(one.topic == TOPIC for home in self.homes for _, one in home.latest)
        lineage = RemoteLineage([home.path for home in self.homes], run=self.run)
        for item in lineage if has_records and self.wanted else ():
            if isinstance(item, UnreadableError):
                yield item
            elif isinstance(item, PartitionLineage) and item.local is not None:
                key = item.remote.topic, item.remote.number
                if key in self.wanted:
                    found.add(key)
                    yield judge(item, item.local, self._limits(key[0]), self.start_ms)
        self.unknown = len(self.wanted - found)

    def _limits(self, topic: str) -> tuple[SettingValue, SettingValue]:
        ms = self.settings.value(topic, retention.MS)
        return ms, self.settings.value(topic, retention.BYTES)


def judge(
    lineage: PartitionLineage,
    local: LocalCopy,
    limits: tuple[SettingValue, SettingValue],
    now_ms: int,
) -> RemoteRetention:
    """Return the remote part, with the segments that the leader of `local` deletes at a moment."""
    ms, size = (one.number for one in limits)
    counted = [
        one for one in lineage.present
        if one.is_readable and coverage.is_in_lineage(one, local.epochs, local.log_end)
    ]  # fmt: skip
    remote = sum(one.size for one in counted)
    # A broker counts the local segments from the one that holds the last copied offset on.
    only_local = local.bytes_from((lineage.remote_end or 0) - 1)
    due, stays = _due(lineage, local, ms, _excess(size, remote + only_local), now_ms)
    twice, _ = _due(lineage, local, ms, _excess(size, remote + local.bytes_from(0)), now_ms)
    next_ms = stays.max_timestamp_ms + ms if stays and ms >= 0 else None
    return RemoteRetention(lineage, limits, due, only_local, remote, twice, next_ms)


def _excess(limit: int, total: int) -> int:
    """Return the bytes by which a log is larger than its limit; -1 is no limit."""
    return max(0, total - limit) if limit >= 0 else 0


def _due(
    lineage: PartitionLineage, local: LocalCopy, ms: int, excess: int, now_ms: int
) -> tuple[Due, RemoteSegment | None]:
    """Return the segments that are deleted, and the first that stays."""
    epochs = coverage.without_empty(local.epochs)
    due: dict[str, tuple[RemoteSegment, DeletionRule | None]] = {}
    for epoch, _ in epochs:
        for one in lineage.present:
            if one.segment_id in due or epoch not in dict(one.leader_epochs):
                continue
            if one.state is SegmentState.DELETE_STARTED:
                due[one.segment_id] = one, None
                continue
            if one.end_offset < local.log_start and one.leader_epochs[-1][0] <= epochs[0][0]:
                due[one.segment_id] = one, DeletionRule.LOG_START
                continue
            if not coverage.is_in_lineage(one, local.epochs, local.log_end):
                continue
            if ms >= 0 and one.max_timestamp_ms < now_ms - ms:
                excess = max(0, excess - one.size)
                due[one.segment_id] = one, DeletionRule.TIME
            elif 0 < one.size <= excess:
                excess -= one.size
                due[one.segment_id] = one, DeletionRule.SIZE
            else:
                return list(due.values()), one
    return list(due.values()), None
