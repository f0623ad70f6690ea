"""Removal of the oldest segments of logs whose broker is stopped, in whole segments.

The files that go, and the files that change with them, are those of a broker that deletes segments:
``.log``, indexes and producer snapshots below the new log start offset; leader-epoch-checkpoint
begins at that offset; a recovery point below it is raised to it. The row of the log start offset is
written as well, although a broker writes none for the base offset of a segment: with it, a start
does not take segments for lost. A log that a kill leaves half trimmed loads, because the oldest
segment goes first. Source: ``UnifiedLog.deleteSegments``, ``maybeIncrementLogStartOffset``,
``updateLogStartOffset``, ``LeaderEpochFileCache.truncateFromStart``,
``ReplicaManager.deleteRecordsOnLocalLog`` (Kafka 4.0.0-SNAPSHOT, 1eb7644349c).
"""

from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from logtool import apply
from logtool.actions import Action, Change, FileChange, Stamp
from logtool.apply import Journal
from logtool.disk import files, shell
from logtool.errors import (
    LogtoolError,
    NothingMatchedError,
    RefusedError,
    UnreadableError,
    UsageError,
)
from logtool.formats import names, offset_checkpoint
from logtool.formats.names import (
    CLUSTER_METADATA,
    INTERNAL_TOPICS,
    DirectoryKind,
    FileKind,
    FileState,
    TopicPartition,
)
from logtool.lazy_dataclass import dataclass
from logtool.loading import epochs
from logtool.loading.kafka_reading import OfflineError, StartFailsError
from logtool.log import inputs, opening
from logtool.log.dir import Partition
from logtool.log.file import File
from logtool.log.inputs import OpenedPath
from logtool.log.kafka import KAFKA
from logtool.log.selection import Selection
from logtool.metadata.log_start import is_tiered
from logtool.node.log_dir_state import LogDirState
from logtool.retention.logs import ROWS, LiveLog, LiveLogs
from logtool.retention.settings import RetentionSettings
from logtool.space import freeing
from logtool.space.freeing import HIGH_WATERMARK, FreeingStep, StepKind
from logtool.space.run import SpaceOptions, SpaceRun, TopicSpace


@dataclass(frozen=True, slots=True)
class TrimOptions:
    """The segments to remove, and the changes that the user allows."""

    at_ms: int
    """Time from which on retention counts, for the order of segments."""
    free_bytes: int | None = None
    """Bytes to free; None if `offsets` name the records."""
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    """For each partition, the offset below which whole segments go."""
    static: Mapping[str, str] = field(default_factory=dict)
    """Settings in the broker's own file."""
    apply: bool = False
    accepted: frozenset[TopicPartition] = frozenset()
    """Partitions that may lose records."""
    undo_dir: Path | None = None
    """Directory for the undo data; None for one next to the log dir."""
    command: str = "logtool trim"


@dataclass(frozen=True, slots=True)
class TrimmedDirectory:
    """The files to remove from one partition dir."""

    kind: StepKind
    path: Path
    topic: str
    partition: int
    segments: int
    files: int
    """Files to remove."""
    bytes: int
    """Bytes of the blocks that these files take."""
    log_start_offset: int | None
    """Log start offset before; None for leftovers."""
    new_log_start_offset: int | None
    """Log start offset with which a broker starts afterwards; None for leftovers."""
    changes: tuple[Change, ...] = ()

    @property
    def lost_offsets(self) -> int:
        """Return how many offsets are lost; compaction and transactions leave fewer records."""
        if self.log_start_offset is None or self.new_log_start_offset is None:
            return 0
        return self.new_log_start_offset - self.log_start_offset

    @property
    def first_offset(self) -> int | None:
        """Return the first offset that is lost; None for none."""
        return self.log_start_offset if self.lost_offsets else None

    @property
    def last_offset(self) -> int | None:
        """Return the last offset that is lost; None for none."""
        last = self.new_log_start_offset
        return last - 1 if last is not None and self.lost_offsets else None

    @property
    def key(self) -> TopicPartition:
        """Return topic and number."""
        return self.topic, self.partition


TrimItem = TrimmedDirectory | Action | LogtoolError


class TrimRun:
    """One run: iterate over the dirs that lose files, an earlier unfinished plan, and errors.

    With `apply` the files are gone when the iteration ends, unless there was a RefusedError.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        options: TrimOptions,
        selection: Selection | None = None,
        steps: Sequence[FreeingStep] | None = None,
    ) -> None:
        """Take the paths, and the steps that free the bytes if a run of `space` has found them."""
        self._paths, self._options, self._steps = paths, options, steps
        self._selection = selection or Selection()
        self._homes: dict[Path, LogDirState] = {}
        self._reported: set[tuple[Path, str]] = set()
        self.undo_dirs: list[Path] = []
        """Directories from which the log dir can be restored."""
        self.partitions = 0
        """Partitions that were looked at."""
        self.is_done = False
        """True if files were removed."""
        self.command = options.command
        """The command line of the run."""

    def __iter__(self) -> Iterator[TrimItem]:
        found: list[TrimmedDirectory] = []
        refused = False
        try:
            # A second trim after the rest of the first would remove more than was asked for.
            if (yield from self._finish_earlier()):
                return
            for item in self._directories():
                refused |= isinstance(item, RefusedError)
                if isinstance(item, TrimmedDirectory):
                    found.append(item)
                yield item
            if self._options.apply and found and not refused:
                self._carry_out(found)
        except LogtoolError as error:
            if isinstance(error, UsageError):
                raise
            yield error

    def losing(self, found: Iterable[TrimmedDirectory]) -> list[str]:
        """Return the partitions that lose records without consent."""
        return [
            f"{one.topic}-{one.partition}"
            for one in found
            if one.lost_offsets and one.key not in self._options.accepted
        ]

    def _finish_earlier(self) -> Generator[Action, None, bool]:
        """Finish, or only name, plans that a kill interrupted; returns whether there was one."""
        options, count = self._options, 0
        opened = [one for one in inputs.open_each(self._paths) if isinstance(one, OpenedPath)]
        for log_dir in dict.fromkeys(one.log_dir for one in opened):
            if not apply.find_unfinished(log_dir, options.undo_dir):
                continue
            if not options.apply:
                for action in apply.finish_earlier(log_dir, options.undo_dir, dry_run=True):
                    count += 1
                    yield action
                continue
            with apply.locked(log_dir):
                for action in apply.finish_earlier(log_dir, options.undo_dir):
                    count += 1
                    self.undo_dirs.append(action.path)
                    yield action
        return count > 0

    def _directories(self) -> Iterator[TrimmedDirectory | LogtoolError]:
        options = self._options
        logs = LiveLogs(self._paths, options.static, selection=self._selection)
        yield from self._news(logs.open())
        wanted = dict(options.offsets)
        if options.free_bytes is not None:
            if self._steps is None:
                space = SpaceRun(
                    self._paths, SpaceOptions(options.at_ms, options.free_bytes, options.static),
                    selection=self._selection, node=logs.node,
                )  # fmt: skip
                for one in space:
                    if isinstance(one, UnreadableError):
                        yield from self._news([one])
                    elif isinstance(one, TopicSpace):
                        self.partitions += one.partitions
                self._steps = space.steps
            for step in self._steps:
                if step.kind is StepKind.LEFTOVERS and step.topic != CLUSTER_METADATA:
                    yield from _leftovers(step)
                elif step.before_offset is not None:
                    wanted[step.topic or "", step.partition or 0] = step.before_offset
        if wanted:
            narrowed = replace(self._selection, keys=frozenset(wanted))
            chosen = LiveLogs(self._paths, options.static, selection=narrowed, node=logs.node)
            yield from self._news(chosen.open())
            yield from self._segments(chosen, wanted)

    def _news(self, errors: Iterable[UnreadableError]) -> Iterator[UnreadableError]:
        """Yield the errors that were not yielded before."""
        for error in errors:
            if (error.path, str(error)) not in self._reported:
                self._reported.add((error.path, str(error)))
                yield error

    def _segments(
        self, logs: LiveLogs, wanted: Mapping[TopicPartition, int]
    ) -> Iterator[TrimmedDirectory | LogtoolError]:
        settings = RetentionSettings(logs.image, logs.node.node_id, self._options.static)
        seen = set()
        for one in logs.each(rows=ROWS):
            if isinstance(one, UnreadableError):
                yield from self._news([one])
                continue
            seen.add(one.key)
            if logs.image is None:
                yield RefusedError(
                    "the settings of the topics are not known, and records of compacted topics "
                    f"must stay; give the {CLUSTER_METADATA}-0 directory of this broker as well"
                )
                return
            try:
                reason = _hindrance(one, logs, settings)
                if reason:
                    yield RefusedError(f"{one.path}: {reason}")
                    continue
                before = self._limit(one, wanted[one.key])
                if trimmed := _trimmed(one, before):
                    self._homes[one.path.parent] = one.home
                    yield trimmed
            except (RefusedError, UnreadableError) as error:
                yield error
        self.partitions = self.partitions or len(seen)
        for topic, number in sorted(wanted.keys() - seen):
            yield NothingMatchedError(self._paths[0], f"nothing matched {topic}-{number}")

    def _limit(self, log: LiveLog, before: int) -> int:
        """Return the offset below which records may go; RefusedError for one that is too high."""
        watermark = log.home.rows(FileKind.REPLICATION_CHECKPOINT).get(log.key, 0)
        if before == HIGH_WATERMARK:
            return watermark
        if before > watermark and self._options.free_bytes is None:
            text = f"offset {before} lies above the high watermark {watermark} of the partition"
            raise RefusedError(f"{log.path}: {text}; no broker deletes records above it")
        return min(before, watermark)

    def _carry_out(self, found: Sequence[TrimmedDirectory]) -> None:
        """Remove the files; RefusedError, or UnwritableError with the way to go on."""
        options = self._options
        log_dirs = list(dict.fromkeys(one.path.parent for one in found))
        if losing := self.losing(found):
            accept = " ".join(shell.option("--accept-loss", name) for name in losing)
            raise RefusedError(f"records would be lost; to accept this loss: {accept}")
        if len(log_dirs) > 1:
            raise RefusedError(
                f"{len(log_dirs)} log dirs would be changed, and an undo directory is for one; "
                "trim one log dir after the other"
            )
        log_dir = log_dirs[0]
        place = options.undo_dir or apply.default_undo_dir(log_dir)
        apply.check_place(place, log_dir)
        if is_same_disk(place, log_dir):
            raise RefusedError(
                f"{place}: is on the disk of the log dir, so that no space would become free; use "
                "--undo-dir DIR on another disk"
            )
        with apply.locked(log_dir):
            journal = Journal.begin(place, log_dir, options.command)
            starts = {
                one.key: one.new_log_start_offset
                for one in found
                if one.new_log_start_offset is not None
            }
            root = _root_changes(log_dir, self._homes.get(log_dir), starts)
            journal.stage([*(change for one in found for change in one.changes), *root])
            journal.commit()
            self.undo_dirs.append(journal.undo_dir)
            journal.carry_out()
        self.is_done = True


def is_same_disk(place: Path, log_dir: Path) -> bool:
    """Return whether a directory, which may not exist yet, is on the file system of a log dir."""
    there = place if place.exists() else place.absolute().parent
    return files.device_of(there) == files.device_of(log_dir)


def _hindrance(log: LiveLog, logs: LiveLogs, settings: RetentionSettings) -> str | None:
    """Return why the log must keep its segments; None if it need not."""
    topic = log.directory.topic
    if topic in INTERNAL_TOPICS:
        return "is of an internal topic, whose records must stay"
    if not settings.of(topic).deletes:
        return "is of a topic without delete in cleanup.policy, whose records must stay"
    if is_tiered(logs.image, topic):
        return "is of a topic with remote storage; retention alone deletes its local segments"
    for kind in ROWS:
        if kind in log.home.refused or log.home.lacking(kind):
            return f"needs {kind.value}, which cannot be read; see logtool checkpoint rebuild"
    if any(file.name.state is FileState.SWAP for file in log.listed.leftovers):
        return "has .swap files, which the broker makes segments of at its start"
    return None


def _trimmed(log: LiveLog, before: int) -> TrimmedDirectory | None:
    """Return the files of the segments that end at or below an offset; None without one."""
    partition = log.listed
    bases = [segment.base_offset for segment in partition.segments]
    count = bisect_right(bases[1:], before)
    if not count:
        return None
    row = max(0, log.home.rows(FileKind.LOG_START_CHECKPOINT).get(log.key, 0))
    base, start = bases[count], max(row, bases[0])
    gone = [file for files_ in freeing.removed_files(partition)[:count] for file in files_]
    new_start = max(start, base)
    return TrimmedDirectory(
        kind=StepKind.SEGMENTS,
        path=log.path,
        topic=log.directory.topic,
        partition=log.directory.partition,
        segments=count,
        files=len(gone),
        bytes=freeing.blocks(gone),
        log_start_offset=start,
        new_log_start_offset=new_start,
        changes=(*map(_removal, gone), *_epoch_change(partition, new_start)),
    )


def _epoch_change(partition: Partition, start: int) -> Iterator[Change]:
    """Yield the change of leader-epoch-checkpoint, if there is one; RefusedError."""
    file = partition.fixed.get(FileKind.LEADER_EPOCH_CHECKPOINT)
    if file is None:
        return
    data = files.read_small(file.path)
    try:
        cache = epochs.read(data)
    except (OfflineError, StartFailsError) as error:
        raise RefusedError(
            f"{file.path}: a broker cannot read it ({error}); see logtool checkpoint rebuild"
        ) from error
    cache.truncate_from_start(start)
    if cache.encode() != data:
        stamp = Stamp(file.size, file.mtime_ns)
        yield Change(FileChange.REPLACE, file.path, stamp, cache.encode())


def _leftovers(step: FreeingStep) -> Iterator[TrimmedDirectory | LogtoolError]:
    """Yield the files of a step that a broker removes by itself when it starts."""
    directory = names.parse_directory(step.path.name)
    partition = opening.try_partition(step.path, KAFKA)
    if isinstance(partition, UnreadableError):
        yield partition
        return
    if not isinstance(directory, names.PartitionDirectory):
        return
    if directory.kind is DirectoryKind.DELETE:
        gone = list(partition.files())
    else:
        listed = [one.name for one in partition.leftovers]
        swaps = names.uncommitted_swaps(listed)
        gone = [one for one in partition.leftovers if _is_removed(one, swaps)]
    if gone:
        yield TrimmedDirectory(
            kind=StepKind.LEFTOVERS,
            path=step.path,
            topic=directory.topic,
            partition=directory.partition,
            segments=0,
            files=len(gone),
            bytes=freeing.blocks(gone),
            log_start_offset=None,
            new_log_start_offset=None,
            changes=tuple(map(_removal, gone)),
        )


def _is_removed(file: File, uncommitted: set[str]) -> bool:
    """Return whether a broker removes a file at its start."""
    state = file.name.state
    return state in (FileState.DELETED, FileState.CLEANED) or file.name.name in uncommitted


def _root_changes(
    log_dir: Path, home: LogDirState | None, starts: Mapping[TopicPartition, int]
) -> Iterator[Change]:
    """Yield the changes of the checkpoints of log starts and recovery points."""
    if home is None:
        return
    begins = home.rows(FileKind.LOG_START_CHECKPOINT)
    points = home.rows(FileKind.RECOVERY_POINT_CHECKPOINT)
    raised = {key: max(row, starts.get(key, row)) for key, row in points.items()}
    for kind, before, after in (
        (FileKind.LOG_START_CHECKPOINT, begins, {**begins, **starts}),
        (FileKind.RECOVERY_POINT_CHECKPOINT, points, raised),
    ):
        if before != after:
            file = home.log_dir.files.get(kind)
            yield Change(
                FileChange.REPLACE if file else FileChange.CREATE,
                log_dir / kind.value,
                Stamp(file.size, file.mtime_ns) if file else None,
                offset_checkpoint.encode(offset_checkpoint.build(after)),
            )


def _removal(file: File) -> Change:
    return Change(FileChange.REMOVE, file.path, Stamp(file.size, file.mtime_ns))
