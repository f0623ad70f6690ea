"""The space of the log dirs of one node: topics, file systems, and steps that free bytes."""

import os
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import count
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import names, record_batch
from logtool.formats.names import DirectoryKind
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, records
from logtool.log.selection import Selection
from logtool.metadata.log_start import is_tiered
from logtool.metadata.setting_values import SettingValue
from logtool.node.node import Node
from logtool.retention.logs import LiveLogs
from logtool.retention.run import PartitionRetention, RetentionOptions, RetentionRun
from logtool.retention.settings import CLEANER, CLEANER_BUFFERS, CLEANER_MAP, FILE_DELAY
from logtool.running.run import Run
from logtool.running.workers import OutOfTimeError
from logtool.space import freeing, growth, usage
from logtool.space.freeing import CandidateSegment, FreeingStep
from logtool.space.growth import NOT_DELETED, GrowthForecast, SegmentTimes
from logtool.space.start import StartRoom
from logtool.space.usage import FREE_OF_COST, ActiveIndexes, Bytes, DirectoryUsage, SpaceKind
from logtool.times import rfc3339


@dataclass(slots=True)
class TopicSpace:
    """The bytes of one topic in all log dirs; without a topic, of the files outside of topics."""

    topic: str | None
    partitions: int = 0
    """Partition dirs, also those that wait to be deleted."""
    kinds: dict[SpaceKind, Bytes] = field(default_factory=lambda: defaultdict(Bytes))
    unlimited_bytes: int = 0
    """Bytes of .log files that no limit of retention deletes."""
    delete_delay: SettingValue | None = None
    """``file.delete.delay.ms``; None if no file waits for it."""

    @property
    def bytes(self) -> int:
        """Return the bytes by the sizes of the files."""
        return sum(one.size for one in self.kinds.values())

    @property
    def disk_bytes(self) -> int:
        """Return the bytes of the blocks that the files take."""
        return sum(one.disk for one in self.kinds.values())

    @property
    def by_kind(self) -> dict[str, int]:
        """Return the bytes of blocks of each kind that is there."""
        return {str(kind): self.kinds[kind].disk for kind in SpaceKind if kind in self.kinds}

    @property
    def leftover_bytes(self) -> int:
        """Return the bytes of blocks that the broker frees by itself when it starts."""
        return sum(self.kinds[kind].disk for kind in FREE_OF_COST if kind in self.kinds)

    def add(self, directory: DirectoryUsage) -> None:
        """Add one partition dir."""
        self.partitions += directory.topic is not None
        for kind, found in directory.kinds.items():
            self.kinds[kind].add(found)


@dataclass(slots=True)
class FileSystemSpace:
    """One file system that has log dirs, and when it is full."""

    paths: list[Path]
    capacity_bytes: int
    free_bytes: int
    """Bytes that a user other than root can still write."""
    disk_bytes: int = 0
    forecast: GrowthForecast | None = None
    room: StartRoom = field(default_factory=StartRoom)
    """The bytes that a start takes."""

    @property
    def full_ms(self) -> int | None:
        """Return the time at which no byte is free, in ms; None if it is more than a year away."""
        return self.forecast.full_ms if self.forecast else None

    @property
    def full(self) -> str | None:
        """Return that time in UTC."""
        return rfc3339(self.full_ms)

    @property
    def newest_ms(self) -> int | None:
        """Return the largest timestamp that is not in the future, in ms; None without a record."""
        return self.forecast.newest_ms if self.forecast else None

    @property
    def newest(self) -> str | None:
        """Return that timestamp in UTC."""
        return rfc3339(self.newest_ms)


@dataclass(frozen=True, slots=True)
class SpaceOptions:
    """The moment, the bytes that are wanted, and the settings in the broker's own file."""

    at_ms: int
    free_bytes: int | None = None
    static: Mapping[str, str] = field(default_factory=dict)


class SpaceRun:
    """One run over log dirs: iterate over topics, file systems, steps, and errors of reading."""

    def __init__(
        self,
        paths: Sequence[Path],
        options: SpaceOptions,
        *,
        selection: Selection | None = None,
        run: Run | None = None,
        node: Node | None = None,
    ) -> None:
        """Take the paths; with a `node` of these log dirs the metadata log is not read again."""
        self._node = node
        self._paths, self._options = paths, options
        self._selection = selection or Selection()
        self._run = run or Run()
        self._topics: dict[str | None, TopicSpace] = {}
        self._systems: dict[int, FileSystemSpace] = {}
        self._usages: list[DirectoryUsage] = []
        """Directories with bytes that cost no record."""
        self._logs: list[PartitionRetention] = []
        """Logs with segments that may be freed, if bytes are wanted."""
        self._candidates: list[CandidateSegment] = []
        self._times: dict[int, SegmentTimes] = {}
        self._active: dict[str, ActiveIndexes] = {}
        """The indexes of the active segment of each partition dir."""
        self.preallocated_bytes = 0
        """Bytes of blocks that hold no entry yet, in indexes of active segments."""
        self.cleaner_heap_bytes = 0
        """Bytes of the heap that the buffers of the log cleaner take."""
        self.steps: list[FreeingStep] = []

    @property
    def stray_bytes(self) -> int:
        """Return the bytes of blocks of stray partition dirs."""
        kinds = (one.kinds.get(SpaceKind.STRAY) for one in self._topics.values())
        return sum(found.disk for found in kinds if found)

    def __iter__(self) -> Iterator[TopicSpace | FileSystemSpace | FreeingStep | UnreadableError]:
        reported = set()
        try:
            for error in (*self._directories(), *self._retention()):
                if (error.path, str(error)) not in reported:
                    reported.add((error.path, str(error)))
                    yield error
        except OutOfTimeError:
            return
        key = _most_first
        yield from sorted(self._topics.values(), key=key)
        for device, system in self._systems.items():
            times = self._times.get(device) or _no_segments()
            system.forecast = growth.forecast(times, system.free_bytes, self._options.at_ms)
            yield system
        self.steps = self._steps()
        yield from self.steps

    def _directories(self) -> Iterator[UnreadableError]:
        seen: set[Path] = set()
        for one in inputs.open_each(self._paths):
            if isinstance(one, UnreadableError):
                yield one
                continue
            try:
                root, chosen = one.read(), one.chosen(self._selection, metadata_log=True)
            except UnreadableError as error:
                yield error
                continue
            whole = self._selection == Selection() and one.name is None
            listed = root.partitions if whole else chosen
            for folder, directory in listed:
                if folder not in seen:
                    seen.add(folder)
                    self._run.budget.pace.spend(0)
                    yield from self._directory(folder, directory.topic, directory.kind)
            if whole and root.path not in seen:
                seen.add(root.path)
                yield from self._rest(root.path, [folder for folder, _ in root.partitions])

    def _directory(self, path: Path, topic: str, kind: DirectoryKind) -> Iterator[UnreadableError]:
        try:
            self._add(path.parent, usage.read(path, topic, kind))
        except UnreadableError as error:
            yield error

    def _rest(self, root: Path, partitions: Sequence[Path]) -> Iterator[UnreadableError]:
        try:
            self._add(root, usage.read_rest(root, partitions))
        except UnreadableError as error:
            yield error

    def _add(self, root: Path, found: DirectoryUsage) -> None:
        self._topics.setdefault(found.topic, TopicSpace(found.topic)).add(found)
        system = self._systems.get(found.device)
        if system is None:
            disk = shutil.disk_usage(root)
            system = FileSystemSpace([], disk.total, disk.free)
            self._systems[found.device] = system
        if root not in system.paths:
            system.paths.append(root)
            system.room.log_dirs += 1
        if found.active is not None:
            self._active[os.fspath(found.path)] = found.active
        self.preallocated_bytes += found.preallocated
        system.disk_bytes += sum(one.disk for one in found.kinds.values())
        if any(kind in found.kinds for kind in FREE_OF_COST):
            self._usages.append(found)

    def _retention(self) -> Iterator[UnreadableError]:
        static = self._options.static
        options = RetentionOptions(self._options.at_ms, static=static)
        logs = LiveLogs(
            self._paths, static, selection=self._selection, run=self._run, node=self._node
        )
        job = RetentionRun(logs, options)
        numbers = count()
        for item in job:
            if isinstance(item, UnreadableError):
                yield item
                continue
            number = next(numbers)
            limits, topic = item.limits, self._topics.get(item.directory.topic)
            if topic and limits.deletes and max(limits.ms.number, limits.bytes.number) < 0:
                topic.unlimited_bytes += item.bytes
            device = os.lstat(item.path).st_dev
            if device in self._systems:
                active = self._active.get(os.fspath(item.path))
                self._systems[device].room.add(item, active, job.settings)
            if self._options.free_bytes is not None:
                self._logs.append(item)
                if not is_tiered(logs.image, item.directory.topic):
                    try:
                        self._candidates += freeing.candidates(number, item)
                    except UnreadableError as error:
                        yield error
            yield from self._segments(number, device, item)
        for name, topic in self._topics.items():
            if name is not None and SpaceKind.DELETED in topic.kinds:
                topic.delete_delay = job.settings.value(name, FILE_DELAY)
        buffers = (job.settings.of_broker(name) for name in (CLEANER_MAP, CLEANER_BUFFERS))
        has_cleaner = job.settings.of_broker(CLEANER).is_true
        self.cleaner_heap_bytes = sum(one.number for one in buffers) if has_cleaner else 0

    def _segments(
        self, number: int, device: int, log: PartitionRetention
    ) -> Iterator[UnreadableError]:
        columns, rows = log.log.columns, len(log.log.columns)
        if not rows:
            return
        begin = [-1, *columns.timestamp[:-1]]
        if rows == 1 and columns.size[0]:
            try:
                begin[0] = _first_time(log)
            except UnreadableError as error:
                yield error
        times = self._times.setdefault(device, _no_segments())
        rounds = log.forecast.rounds
        deleted = (
            NOT_DELETED if segment.round is None else rounds.time_ms(segment.round)
            for segment in log.segments
        )
        for column, values in (
            (times.log, [number] * rows), (times.size, columns.size), (times.begin_ms, begin),
            (times.timestamp_ms, columns.timestamp), (times.deleted_ms, deleted),
        ):  # fmt: skip
            column.extend(values)

    def _steps(self) -> list[FreeingStep]:
        wanted = self._options.free_bytes
        if wanted is None:
            return []
        steps: list[FreeingStep] = []
        for step in freeing.leftovers(self._usages):
            if wanted > 0:
                steps.append(step)
                wanted -= step.bytes
        return steps + freeing.segment_steps(self._logs, self._candidates, wanted)


def _no_segments() -> SegmentTimes:
    return SegmentTimes([], [], [], [], [])


def _most_first(topic: TopicSpace) -> tuple[bool, int, str]:
    return topic.topic is None, -topic.disk_bytes, topic.topic or ""


def _first_time(log: PartitionRetention) -> int:
    """Return the timestamp of the first batch of a log, in ms; -1 without a batch."""
    path = log.path / f"{names.format_offset(log.log.columns.base_offset[0])}.log"
    try:
        head, _ = files.glance(str(path), record_batch.HEADER_SIZE)
    except OSError as error:
        raise UnreadableError(path, error.strerror or str(error)) from error
    if len(head) < record_batch.HEADER_SIZE:
        return -1
    return int(records.one_batch(memoryview(head)).table.base_timestamp[0])
