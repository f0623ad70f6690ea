"""The live logs of log dirs and partition dirs, with what their broker knows of each at its start.

Only live partition dirs count, and none that the metadata log does not know: a broker neither
deletes segments of such a log nor cleans it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats.names import DirectoryKind, FileKind, PartitionDirectory, TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.dir import LogDir, Partition
from logtool.log.flavour import Flavour
from logtool.log.inputs import OpenedPath
from logtool.log.kafka import KAFKA
from logtool.log.selection import Selection
from logtool.metadata.image import MetadataImage
from logtool.node.identity import identify
from logtool.node.log_dir_state import LogDirState
from logtool.node.node import Node
from logtool.node.options import StartOptions
from logtool.retention import resting, segments
from logtool.retention.segments import CheckpointedOffsets, LogSegments
from logtool.running.run import Run
from logtool.running.workers import OutOfTimeError, Pace

_IN_SYNC = "min.insync.replicas"
ROWS = (
    FileKind.RECOVERY_POINT_CHECKPOINT, FileKind.LOG_START_CHECKPOINT,
    FileKind.REPLICATION_CHECKPOINT,
)  # fmt: skip
"""The offset checkpoints that the columns of a log depend on."""


@dataclass(frozen=True)
class LiveLog:
    """One log, its segments, and its log dir."""

    path: Path
    directory: PartitionDirectory
    home: LogDirState
    log: LogSegments
    partition: Partition | None
    """The files that `log` was read from; None if they were read without a listing."""

    @cached_property
    def listed(self) -> Partition:
        """Return the files of the partition dir, with the segments of `log`; UnreadableError."""
        if self.partition is not None:
            return self.partition
        listed = opening.open_partition(self.path, KAFKA)
        if [one.base_offset for one in listed.segments] != list(self.log.columns.base_offset):
            raise UnreadableError(self.path, "its segments have changed since they were listed")
        return listed

    @property
    def key(self) -> TopicPartition:
        """Return topic and number."""
        return self.directory.topic, self.directory.partition


class LiveLogs:
    """The logs that paths lead to: `open` lists log dirs, then `each` yields the logs."""

    def __init__(
        self,
        paths: Sequence[Path],
        static: Mapping[str, str],
        *,
        selection: Selection | None = None,
        run: Run | None = None,
        flavour: Flavour | None = None,
        node: Node | None = None,
    ) -> None:
        """Take the paths; with a `node` of these log dirs the metadata log is not read again."""
        self._paths, self._static, self._flavour = paths, static, flavour
        self._given_node = node
        self._selection = selection or Selection()
        self._run = run or Run()
        self._opened: list[OpenedPath] = []
        self._is_open = False
        self.passed = 0
        """Number of live logs whose topic is not wanted."""
        self.roots: dict[Path, LogDir] = {}
        """The log dirs by path."""
        self.node = Node([], None, static)
        self.image: MetadataImage | None = None
        """The metadata of the node; None if there is no metadata log, or a damaged one."""

    def open(self) -> Iterator[UnreadableError]:
        """List the log dirs, and read the metadata log; yields the errors.

        The second call does nothing: two runs may share the logs.
        """
        if self._is_open:
            return
        self._is_open = True
        for one in inputs.open_each(self._paths, self._flavour):
            if isinstance(one, UnreadableError):
                yield one
            else:
                self._opened.append(one)
        for one in self._opened:
            try:
                self.roots.setdefault(one.log_dir, one.read())
            except UnreadableError as error:
                yield error
        self.node = self._given_node or Node(
            [identify(root) for root in self.roots.values()], None, self._static
        )
        image = self.node.image
        self.image = image if image and not image.damage else None

    @property
    def pace(self) -> Pace:
        """Return the pace of the run."""
        return self._run.budget.pace

    def directories(self) -> Iterator[tuple[Path, PartitionDirectory]]:
        """Yield the partition dirs of the selection, of every kind; call `open` first."""
        for one in self._opened:
            if one.log_dir in self.roots:
                yield from one.chosen(self._selection)

    def each(
        self,
        wanted: Callable[[str], bool] = lambda _: True,
        rows: Sequence[FileKind] = ROWS,
    ) -> Iterator[LiveLog | UnreadableError]:
        """Yield the logs of the topics that are `wanted`, and errors.

        `rows` are the offset checkpoints whose errors are reported.
        """
        states: dict[Path, LogDirState] = {}
        for one in self._opened:
            root = self.roots.get(one.log_dir)
            if root is None:
                continue
            if root.path not in states:
                options = StartOptions(static=self._static)
                states[root.path] = LogDirState(root, options, self.node)
                yield from states[root.path].lacking(*rows)
            for folder, directory in one.chosen(self._selection):
                if directory.kind is not DirectoryKind.LIVE:
                    continue
                if not wanted(directory.topic):
                    self.passed += 1
                    continue
                if self.node.is_stray(folder, directory):
                    # A directory that cannot be listed shows no topic id.
                    listed = opening.try_partition(folder, KAFKA)
                    if isinstance(listed, UnreadableError) and not files.has_vanished(listed):
                        yield listed
                    continue
                try:
                    self._run.budget.pace.spend(0)
                except OutOfTimeError:
                    return
                yield from self._log(folder, directory, states[root.path])

    def _log(
        self, folder: Path, directory: PartitionDirectory, home: LogDirState
    ) -> Iterator[LiveLog | UnreadableError]:
        state = self._state((directory.topic, directory.partition), home)
        plain = resting.read(folder, state)
        if plain is not None:
            yield LiveLog(folder, directory, home, plain, None)
            return
        for is_last in (False, True):
            listed = opening.try_partition(folder, KAFKA)
            if not isinstance(listed, Partition):
                if not files.has_vanished(listed):
                    yield listed
                return
            log = segments.read(listed, state)
            if is_last or not any(map(files.has_vanished, log.unread)):
                yield from log.unread
                yield LiveLog(folder, directory, home, log, listed)
                return

    def _state(self, key: TopicPartition, home: LogDirState) -> CheckpointedOffsets:
        return CheckpointedOffsets(
            clean=home.clean,
            recovery_point=home.rows(FileKind.RECOVERY_POINT_CHECKPOINT).get(key, 0),
            log_start=home.rows(FileKind.LOG_START_CHECKPOINT).get(key, 0),
            high_watermark=home.rows(FileKind.REPLICATION_CHECKPOINT).get(key, 0),
            leads_alone=_leads_alone(self.image, key, home.node_id),
        )


def _leads_alone(image: MetadataImage | None, key: TopicPartition, node: int | None) -> bool:
    """Return whether no other replica is in sync, and none is needed to raise the watermark.

    After a stop in order the ISR may be empty, and the broker in the ELR instead. Source:
    ``Partition.makeLeader``, ``maybeIncrementLeaderHW``, ``effectiveMinIsr`` (Kafka 3.9).
    """
    topic_id = image.topics.get(key[0]) if image else None
    state = image.partition(topic_id, key[1]) if image and topic_id else None
    if image is None or state is None or node is None:
        return False
    if (node,) not in (tuple(state.replicas), tuple(state.isr) or tuple(state.elr)):
        return False
    return min(image.topic_number(key[0], _IN_SYNC, 1, node), len(state.replicas)) <= 1
