"""Retention of the partitions in log dirs and partition dirs, one partition after the other.

Only live partition dirs count: a broker applies no retention to a log that its metadata log does
not know, nor to one that waits for deletion, and a future copy follows its live one. The metadata
log has a retention of its own, by snapshots. `logtool.retention.logs` chooses the logs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path

from logtool.checks.root import last_clean_ns
from logtool.errors import UnreadableError
from logtool.formats.names import PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.dir import Partition, Segment
from logtool.log.kafka import KAFKA
from logtool.metadata.setting_values import SettingValue
from logtool.retention import rules, segments, settings, stamp
from logtool.retention.early import EarlyDeletion, deleted_offsets, early_deletion
from logtool.retention.logs import LiveLog, LiveLogs
from logtool.retention.rules import NEVER, DeletionForecast, DeletionRule, Obstacle, Rounds
from logtool.retention.segments import LogSegments, StampSource
from logtool.retention.settings import RetentionSettings, TopicRetention
from logtool.retention.stamp import WrongTimestamp
from logtool.times import rfc3339


@dataclass(frozen=True, slots=True)
class RetentionOptions:
    """The moment and the settings of a forecast."""

    start_ms: int
    """Time at which the broker starts, in ms."""
    changed: Mapping[str, str] = field(default_factory=dict)
    """Settings of a planned change."""
    static: Mapping[str, str] = field(default_factory=dict)
    """Settings in the broker's own file."""
    with_stamps: bool = True
    """False if no log is to be read for the batch with a wrong timestamp."""


@dataclass(frozen=True)
class SegmentRetention:
    """One segment and its end."""

    of: "PartitionRetention"
    row: int

    @property
    def path(self) -> Path:
        """Return the path of the .log file."""
        return self.of.path / f"{self.base_offset:020d}.log"

    @property
    def base_offset(self) -> int:
        """Return the base offset."""
        return self.of.log.columns.base_offset[self.row]

    @property
    def size(self) -> int:
        """Return the bytes of the .log file."""
        return self.of.log.columns.size[self.row]

    @property
    def is_active(self) -> bool:
        """Return whether the broker appends to it."""
        return self.row == len(self.of.log.columns) - 1

    @property
    def timestamp_ms(self) -> int:
        """Return the largest timestamp as the broker has it, in ms."""
        return self.of.log.columns.timestamp[self.row]

    @property
    def timestamp(self) -> str | None:
        """Return that timestamp in UTC; None where a calendar has no such time."""
        return rfc3339(self.timestamp_ms)

    @property
    def timestamp_source(self) -> StampSource:
        """Return the place from which the timestamp comes."""
        return self.of.log.sources[self.row]

    @property
    def rule(self) -> DeletionRule | None:
        """Return the rule that deletes it; None for none."""
        return self.of.forecast.rule[self.row]

    @property
    def round(self) -> int | None:
        """Return the number of the round after the start that deletes it; None for none."""
        number = self.of.forecast.round[self.row]
        return None if number == NEVER else number

    @property
    def deleted_ms(self) -> int | None:
        """Return the time of that round, in ms."""
        return None if self.round is None else self.of.forecast.rounds.time_ms(self.round)

    @property
    def deleted(self) -> str | None:
        """Return the time of that round in UTC."""
        return rfc3339(self.deleted_ms)

    @property
    def obstacle(self) -> Obstacle | None:
        """Return why it stays after the first round; None if it does not."""
        return self.of.forecast.obstacle[self.row]

    @property
    def held_by(self) -> int | None:
        """Return the base offset of the older segment that keeps it; None for none."""
        row = self.of.forecast.held_by[self.row]
        is_held = self.obstacle is Obstacle.OLDER and row >= 0
        return self.of.log.columns.base_offset[row] if is_held else None


@dataclass(frozen=True)
class PartitionRetention:
    """One partition: the forecast for each segment, and what keeps the rest."""

    path: Path
    """The partition dir."""
    directory: PartitionDirectory
    log: LogSegments
    limits: TopicRetention
    forecast: DeletionForecast
    before: DeletionForecast | None
    """The forecast without the planned change; None if none is planned."""
    stamp: WrongTimestamp | None
    """The timestamp that keeps the log, or that is in another unit; None for an ordinary one."""
    start_ms: int
    """Assumed start of the broker, in ms."""
    last_clean_ns: int | None = None
    """Modification time up to which a log is not younger than the clean-shutdown marker."""
    end: int | None = None
    """Offset behind the last record; None if it is not known, or a segment stays."""

    @cached_property
    def listed(self) -> Partition:
        """Return the files of the partition dir; UnreadableError."""
        return opening.open_partition(self.path, KAFKA)

    @property
    def settings(self) -> tuple[SettingValue, ...]:
        """Return policy, longest age and largest size."""
        return self.limits.settings

    @property
    def segments(self) -> tuple[SegmentRetention, ...]:
        """Return its segments, the oldest first."""
        return tuple(SegmentRetention(self, row) for row in range(len(self.log.columns)))

    @property
    def count(self) -> int:
        """Return the number of segments."""
        return len(self.log.columns)

    @property
    def bytes(self) -> int:
        """Return the bytes of the .log files."""
        return sum(self.log.columns.size)

    @cached_property
    def first_segments(self) -> int:
        """Return how many segments go in the first round."""
        return self.forecast.first

    @property
    def oldest_ms(self) -> int:
        """Return the largest timestamp of the oldest segment, in ms; 0 without a segment."""
        return next(iter(self.log.columns.timestamp), 0)

    @property
    def first_bytes(self) -> int:
        """Return the bytes of the .log files that go in the first round."""
        return sum(self.log.columns.size[: self.first_segments])

    @property
    def first_offsets(self) -> int | None:
        """Return the offsets that the first round deletes, those below the log start left out.

        None for a log that goes as a whole and whose end is not known. A compacted log has fewer
        records than offsets.
        """
        if self._deleted is None:
            return 0
        first, last = self._deleted
        return None if last is None else last + 1 - first

    @cached_property
    def _deleted(self) -> tuple[int, int | None] | None:
        return deleted_offsets(self.log.columns, range(self.first_segments), self.end)

    @property
    def deleted_first_offset(self) -> int | None:
        """Return the first offset that the first round deletes; None for none."""
        return self._deleted[0] if self._deleted else None

    @property
    def deleted_last_offset(self) -> int | None:
        """Return the last offset that the first round deletes; None for none, or if not known."""
        return self._deleted[1] if self._deleted else None

    @cached_property
    def early(self) -> EarlyDeletion | None:
        """The segments that the first round deletes too early; None for none."""
        limit_ms = self.limits.ms.number
        return early_deletion(self.log, self.forecast, limit_ms, self.start_ms, self.end)

    @property
    def freed_bytes(self) -> int | None:
        """Return the bytes that the first round frees because of the planned change."""
        if self.before is None:
            return None
        return self.first_bytes - sum(self.log.columns.size[: self.before.first])

    @cached_property
    def _blocked(self) -> SegmentRetention | None:
        """The first segment that stays after the first round."""
        count = self.first_segments
        return SegmentRetention(self, count) if count < len(self.log.columns) else None

    @property
    def obstacle(self) -> Obstacle | None:
        """Return why the oldest segment that stays does so; None if every segment goes."""
        return self._blocked.obstacle if self._blocked else None

    @property
    def blocked_at(self) -> int | None:
        """Return the base offset of the oldest segment that stays; None if every segment goes."""
        return self._blocked.base_offset if self._blocked else None

    @cached_property
    def behind(self) -> SegmentRetention | None:
        """Return the next segment with a timestamp in the future, behind one that keeps the log.

        None without one.
        """
        if self.obstacle is not Obstacle.FUTURE:
            return None
        stamps = self.log.columns.timestamp
        rows = range(self.first_segments + 1, len(stamps))
        found = next((row for row in rows if stamps[row] > self.start_ms), None)
        return None if found is None else SegmentRetention(self, found)

    @property
    def next_ms(self) -> int | None:
        """Return the time at which the oldest segment that stays goes; None for never."""
        return self._blocked.deleted_ms if self._blocked else None

    @property
    def next(self) -> str | None:
        """Return that time in UTC."""
        return rfc3339(self.next_ms)

    @property
    def high_watermark(self) -> int | None:
        """Return the high watermark that counts; None if it reaches the log end."""
        return self.log.columns.high_watermark

    @property
    def by_mtime(self) -> int:
        """Return how many segments with records have no timestamp in an index."""
        pairs = zip(self.log.sources, self.log.columns.size, strict=True)
        return sum(source is StampSource.MTIME and size > 0 for source, size in pairs)

    @property
    def after_marker(self) -> int:
        """Return how many segments changed after the clean-shutdown marker was written.

        The start trusts the marker, and takes the timestamps of their time indexes.
        """
        return len(_behind_marker(self.log, self.last_clean_ns))


def _behind_marker(log: LogSegments, last_clean_ns: int | None) -> list[int]:
    """Return the rows of the segments that changed after the clean-shutdown marker was written."""
    if last_clean_ns is None:
        return []
    pairs = zip(log.sources, log.mtimes_ns, strict=True)
    return [
        row
        for row, (source, mtime_ns) in enumerate(pairs)
        if mtime_ns > last_clean_ns and source is not StampSource.BATCHES
    ]


class RetentionRun:
    """One run over paths: iterate over partitions in the order given, and errors of reading."""

    def __init__(self, logs: LiveLogs, options: RetentionOptions) -> None:
        self._logs = logs
        self._options = options
        self.settings = RetentionSettings()
        """The settings of all topics, once the run began."""
        self._before: RetentionSettings | None = None
        self._last_clean_ns: dict[Path, int | None] = {}
        """Result of `last_clean_ns`, by log dir."""
        self.knows_topics = False
        """True if a metadata log says the settings of topics."""

    def __iter__(self) -> Iterator[PartitionRetention | UnreadableError]:
        yield from self._logs.open()
        self._set()
        for one in self._logs.each():
            try:
                yield one if isinstance(one, UnreadableError) else self._partition(one)
            except UnreadableError as error:
                yield error

    @property
    def broker_settings(self) -> tuple[SettingValue, ...]:
        """Return the settings of the broker that set the time of the rounds."""
        names = (settings.FIRST_DELAY, settings.INTERVAL)
        return tuple(self.settings.of_broker(name) for name in names)

    @cached_property
    def rounds(self) -> Rounds:
        """Return the rounds for topics that are not compacted."""
        delay, interval = self.broker_settings
        return Rounds(self._options.start_ms + max(0, delay.number), max(1, interval.number))

    def _set(self) -> None:
        image, node_id = self._logs.image, self._logs.node.node_id
        options = self._options
        self.knows_topics = image is not None
        self.settings = RetentionSettings(image, node_id, options.static, options.changed)
        if options.changed:
            self._before = RetentionSettings(image, node_id, options.static)

    def _partition(self, one: LiveLog) -> PartitionRetention:
        topic = one.directory.topic
        limits = self.settings.of(topic)
        before = self._forecast(one.log, self._before.of(topic)) if self._before else None
        found = self._forecast(one.log, limits)
        root = one.home.log_dir
        if root.path not in self._last_clean_ns:
            self._last_clean_ns[root.path] = last_clean_ns(root)
        wrong = self._stamp(one, found) if self._options.with_stamps else None
        return PartitionRetention(
            path=one.path,
            directory=one.directory,
            log=one.log,
            limits=limits,
            forecast=found,
            before=before,
            stamp=wrong,
            start_ms=self._options.start_ms,
            last_clean_ns=self._last_clean_ns[root.path],
            end=self._end(one) if found.first == len(one.log.columns) > 0 else None,
        )

    def _end(self, one: LiveLog) -> int | None:
        """Return the offset behind the last record of a log; None if it is not known.

        UnreadableError.
        """
        log, last = one.log, len(one.log.columns) - 1
        is_late = last in _behind_marker(log, self._last_clean_ns[one.home.log_dir.path])
        if log.end > log.columns.base_offset[last] and not is_late:
            return log.end
        segment = _segment(one, last) if self._options.with_stamps else None
        return segments.end_of(segment) if segment else None

    @cached_property
    def _cleaner_rounds(self) -> Rounds | None:
        """The rounds of the log cleaner; None without the cleaner."""
        if not self.settings.of_broker(settings.CLEANER).is_true:
            return None
        pause = max(1, self.settings.of_broker(settings.BACKOFF).number)
        return Rounds(self._options.start_ms + pause, pause)

    def _forecast(self, log: LogSegments, limits: TopicRetention) -> DeletionForecast:
        cleaner = self._cleaner_rounds if limits.compacts else None
        start, cleans = self._options.start_ms, self._cleaner_rounds is not None
        return rules.forecast(log.columns, limits, cleaner or self.rounds, start, cleans=cleans)

    def _stamp(self, one: LiveLog, found: DeletionForecast) -> WrongTimestamp | None:
        """Return the timestamp that keeps the log, else the first in another unit that counts.

        Else the first that a clean-shutdown marker hides from the start. UnreadableError.
        """
        log = one.log
        start, stamps = self._options.start_ms, log.columns.timestamp
        for row in range(len(log.columns)):
            if log.sources[row] is StampSource.MTIME:
                continue
            early = found.rule[row] is DeletionRule.TIME and stamp.unit_of(stamps[row], start)
            is_odd = found.obstacle[row] is Obstacle.FUTURE or early
            if is_odd and (segment := _segment(one, row)):
                return stamp.find(segment, stamps[row], start)
        for row in _behind_marker(log, self._last_clean_ns[one.home.log_dir.path]):
            segment = _segment(one, row)
            if segment and (hidden := stamp.find_uncounted(segment, stamps[row], start)):
                return hidden
        return None


def _segment(one: LiveLog, row: int) -> Segment | None:
    base = one.log.columns.base_offset[row]
    return next((each for each in one.listed.segments if each.base_offset == base), None)
