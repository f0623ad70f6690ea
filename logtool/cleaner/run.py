"""The cleaning of compacted partitions in log dirs and partition dirs, one by one.

A partition with a future copy is not cleaned: the broker pauses that while it moves the replica.
Source: ``ReplicaManager.maybeAddLogDirFetchers`` (Kafka 3.9 and 4.x).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path

from logtool.cleaner import reading, rules, sizes, transactions
from logtool.cleaner.reading import CleaningContents, CleaningFault
from logtool.cleaner.roll import SegmentRoll, of_active_segment
from logtool.cleaner.rules import (
    NO_LAG,
    CleanerLimits,
    CleaningObstacle,
    DirtySource,
    Extent,
    Stable,
)
from logtool.cleaner.sizes import CleanedSizes
from logtool.cleaner.transactions import OldestTransaction
from logtool.errors import UnreadableError
from logtool.formats.names import DirectoryKind, FileKind, PartitionDirectory, TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.metadata.setting_values import SettingValue
from logtool.retention import settings, stamp
from logtool.retention.logs import ROWS, LiveLog, LiveLogs
from logtool.retention.segments import LogSegments, StampSource
from logtool.retention.settings import RetentionSettings
from logtool.retention.stamp import WrongTimestamp
from logtool.times import rfc3339

_CLEANED = FileKind.CLEANER_CHECKPOINT
_UNTOUCHED = (CleaningObstacle.DISABLED, CleaningObstacle.CHECKPOINT, CleaningObstacle.FUTURE)
"""Obstacles with which the cleaner does not even correct the row."""


@dataclass(frozen=True, slots=True)
class CleanerOptions:
    """The moment and the settings of a forecast."""

    now_ms: int
    """Time of the round, in ms."""
    changed: Mapping[str, str] = field(default_factory=dict)
    """Settings of a planned change."""
    static: Mapping[str, str] = field(default_factory=dict)
    """Settings in the broker's own file."""
    with_contents: bool = True
    """False if the logs that are cleaned are not read; no fault in them is found then."""
    with_records: bool = False
    """True if all records that a cleaning reads are read, not only those of damaged batches."""
    with_sizes: bool = False
    """True if the records and bytes that a cleaning leaves are counted."""


@dataclass(frozen=True)
class PartitionCleaning:
    """One compacted partition: its range to clean, and why it is not cleaned."""

    path: Path
    """The partition dir."""
    directory: PartitionDirectory
    log: LogSegments
    limits: CleanerLimits
    checkpoint: int | None
    """The row in ``cleaner-offset-checkpoint``; None for no row."""
    extent: Extent
    stable: Stable
    transaction: OldestTransaction | None
    obstacle: CleaningObstacle | None
    due_ms: int | None
    contents: CleaningContents | None
    """None if the log was not read, because it is not to be cleaned."""
    early_fault: CleaningFault | None = None
    """A fault in a first batch, at which the broker stops before it cleans and writes a row."""
    future_copy: Path | None = None
    sizes: CleanedSizes | None = None
    """None if they were not asked for, or the log is not cleaned."""
    roll: SegmentRoll | None = None
    """When the active segment ends; None unless it is the obstacle."""
    stamp: WrongTimestamp | None = None
    """The timestamp in the future that makes a segment too young; None for none."""

    @property
    def settings(self) -> tuple[SettingValue, ...]:
        """Return the settings that count."""
        return self.limits.settings

    @property
    def segments(self) -> int:
        """Return the number of segments."""
        return len(self.log.columns)

    @property
    def bytes(self) -> int:
        """Return the bytes of the .log files."""
        return sum(self.log.columns.size)

    @property
    def is_cleaned(self) -> bool:
        """Return whether the cleaner takes the log, and gets to the end of the range."""
        return self.obstacle is None

    @property
    def due(self) -> str | None:
        """Return `due_ms` in UTC."""
        return rfc3339(self.due_ms)

    @property
    def producer_id(self) -> int | None:
        """Return the producer id of the oldest open transaction; None for none."""
        return self.transaction.producer_id if self.transaction else None

    @property
    def transaction_first_offset(self) -> int | None:
        """Return the first offset of the oldest open transaction; None for none."""
        return self.transaction.first_offset if self.transaction else None

    @property
    def horizons(self) -> int | None:
        """Return how many batches have a delete horizon; None if the log was not read."""
        return self.contents.horizons if self.contents else None

    @property
    def horizons_due(self) -> int | None:
        """Return how many delete horizons have passed; None if the log was not read."""
        return self.contents.due if self.contents else None

    @property
    def old_formats(self) -> int | None:
        """Return how many batches of magic 0 and 1 are read; None if the log was not read."""
        return self.contents.old_formats if self.contents else None

    @property
    def without_key(self) -> int | None:
        """Return how many records have no key; None if no records were read."""
        return self.contents.without_key if self.contents else None

    @property
    def _fault(self) -> CleaningFault | None:
        return self.contents.fault if self.contents else self.early_fault

    @property
    def fault_path(self) -> Path | None:
        """Return the log that stops the cleaning; None for none."""
        return self._fault.path if self._fault else None

    @property
    def fault_position(self) -> int | None:
        """Return the byte at which the cleaning stops; None for none."""
        return self._fault.position if self._fault else None

    @property
    def is_repairable(self) -> bool:
        """Return whether a sound copy of the log mends what stops the cleaning."""
        return self.obstacle is CleaningObstacle.DAMAGE and bool(
            self._fault and self._fault.is_damage
        )

    @property
    def fault(self) -> str | None:
        """Return the fault at that byte; None for no fault."""
        return self._fault.message if self._fault else None

    @property
    def checkpoint_after(self) -> int | None:
        """Return the row after the round; None for no row."""
        found = self.extent
        if self.is_cleaned:
            return found.first_uncleanable_offset
        if self.contents is not None and self.contents.fault is not None:
            return found.first_dirty_offset
        if self.obstacle in _UNTOUCHED:
            return self.checkpoint
        is_reset = found.source in (DirtySource.BELOW_START, DirtySource.ABOVE_END)
        return found.first_dirty_offset if is_reset else self.checkpoint


class CleanerRun:
    """One run over paths: iterate over compacted partitions, and errors of reading."""

    def __init__(self, logs: LiveLogs, options: CleanerOptions) -> None:
        self._logs = logs
        self._options = options
        self._settings = RetentionSettings()
        self._limits: dict[str, CleanerLimits] = {}
        self.knows_topics = False
        """True if a metadata log says the settings of topics."""

    def __iter__(self) -> Iterator[PartitionCleaning | UnreadableError]:
        yield from self._logs.open()
        options, image = self._options, self._logs.image
        self.knows_topics = image is not None
        self._settings = RetentionSettings(
            image, self._logs.node.node_id, options.static, options.changed
        )
        rows = (*ROWS, _CLEANED)
        for one in self._logs.each(lambda topic: self._of(topic).compacts, rows):
            if isinstance(one, UnreadableError):
                yield one
            elif len(one.log.columns):
                yield from self._partition(one)

    @property
    def not_compacted(self) -> int:
        """Return how many of the selected logs are not compacted."""
        return self._logs.passed

    @property
    def broker_settings(self) -> tuple[SettingValue, ...]:
        """Return the settings of the broker that the cleaner depends on."""
        names = (settings.CLEANER, settings.BACKOFF)
        return tuple(self._settings.of_broker(name) for name in names)

    def _of(self, topic: str) -> CleanerLimits:
        if topic not in self._limits:
            names = (settings.POLICY, settings.DIRTY_RATIO, settings.MIN_LAG, settings.MAX_LAG,
                     settings.DELETE_RETENTION)  # fmt: skip
            self._limits[topic] = CleanerLimits(
                *(self._settings.value(topic, name) for name in names)
            )
        return self._limits[topic]

    @cached_property
    def _future_copies(self) -> dict[TopicPartition, Path]:
        return {
            (directory.topic, directory.partition): folder
            for root in self._logs.roots.values()
            for folder, directory in root.partitions
            if directory.kind is DirectoryKind.FUTURE
        }

    def _partition(self, one: LiveLog) -> Iterator[PartitionCleaning | UnreadableError]:
        log, limits, now = one.log, self._of(one.directory.topic), self._options.now_ms
        columns = log.columns
        row = one.home.rows(_CLEANED).get(one.key)
        end = log.end
        if row is not None and row > end:
            # The checkpoints and snapshots of a copy may be missing: only the log itself is sure.
            try:
                end = max(end, reading.log_end(one.listed.segments[-1]))
            except UnreadableError as error:
                yield error
        dirty = rules.first_dirty(row, columns.log_start, end)
        oldest = transactions.oldest(one)
        if isinstance(oldest, UnreadableError):
            yield oldest
            oldest = None
        stable = _stable(log, oldest)
        found = rules.extent(columns, dirty, stable, limits.min_lag.number, now)
        free = found
        if found.bound is not CleaningObstacle.ACTIVE:
            free = rules.extent(columns, dirty, Stable(log.end), 0, now)
        contents = None
        try:
            earliest, fault = NO_LAG, None
            if found.dirty:
                earliest, fault = reading.first_batches(one.listed, found.dirty, NO_LAG)
            why = rules.obstacle(found, free, limits, earliest, now)
            stops = self._stops(one)
            if fault is not None:
                why = CleaningObstacle.DAMAGE
            elif why is None and stops is None and self._options.with_contents:
                contents = reading.read(
                    one.listed,
                    found.uncleanable_row,
                    now,
                    self._logs.pace,
                    with_records=self._options.with_records,
                )
                why = contents.obstacle
            roll = measured = wrong = None
            if why is CleaningObstacle.MIN_LAG and stops is None:
                wrong = self._stamp(one, found)
            if why is CleaningObstacle.ACTIVE and stops is None:
                roll = of_active_segment(one.listed, self._settings, columns.size[-1])
            if why is None and stops is None and self._options.with_sizes:
                measured = sizes.measure(one.listed, found, now, self._logs.pace)
        except UnreadableError as error:
            yield error
            return
        yield PartitionCleaning(
            path=one.path,
            directory=one.directory,
            log=log,
            limits=limits,
            checkpoint=row,
            extent=found,
            stable=stable,
            transaction=oldest,
            obstacle=stops or why,
            due_ms=_due(found, why, limits, earliest, columns.timestamp),
            contents=contents,
            early_fault=fault,
            future_copy=self._future_copies.get(one.key),
            sizes=measured,
            roll=roll,
            stamp=wrong,
        )

    def _stamp(self, one: LiveLog, found: Extent) -> WrongTimestamp | None:
        """Return the timestamp in the future that makes a segment too young; None for none.

        UnreadableError.
        """
        row, now = found.lag_row, self._options.now_ms
        if row is None or not self._options.with_contents:
            return None
        largest, source = one.log.columns.timestamp[row], one.log.sources[row]
        if largest <= now or source is StampSource.MTIME:
            return None
        return stamp.find(one.listed.segments[row], largest, now)

    def _stops(self, one: LiveLog) -> CleaningObstacle | None:
        """Return the reason that no rule about the log can change; None without one."""
        if not self._settings.of_broker(settings.CLEANER).is_true:
            return CleaningObstacle.DISABLED
        if _CLEANED in one.home.refused:
            return CleaningObstacle.CHECKPOINT
        return CleaningObstacle.FUTURE if one.key in self._future_copies else None


def _stable(log: LogSegments, oldest: OldestTransaction | None) -> Stable:
    watermark = log.columns.high_watermark
    end = log.end if watermark is None else min(watermark, log.end)
    if oldest is not None and oldest.first_offset < end:
        return Stable(oldest.first_offset, CleaningObstacle.TRANSACTION)
    return Stable(end, CleaningObstacle.WATERMARK if end < log.end else None)


def _due(
    found: Extent,
    why: CleaningObstacle | None,
    limits: CleanerLimits,
    earliest: int,
    stamps: Sequence[int],
) -> int | None:
    """Return when a log that waits becomes cleanable by time alone; None for never."""
    if why is CleaningObstacle.MIN_LAG and found.lag_row is not None:
        return stamps[found.lag_row] + limits.min_lag.number
    if why is CleaningObstacle.RATIO and found.cleanable_bytes and earliest < NO_LAG:
        return earliest + max(0, limits.max_lag.number) + 1
    return None
