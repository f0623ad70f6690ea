"""Logs that are salvaged together: those of a partition dir, or those waiting for deletion."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import names
from logtool.formats.names import (
    DirectoryKind,
    FileKind,
    FileState,
    PartitionDirectory,
    TopicPartition,
)
from logtool.lazy_dataclass import dataclass
from logtool.loading import epochs, old_segments
from logtool.loading.kafka_reading import OfflineError, StartFailsError
from logtool.loading.result import Zombie
from logtool.loading.segments import LoadedSegment
from logtool.loading.shadow import Shadow, ShadowFile
from logtool.log import inputs, opening
from logtool.log.dir import LogDir, Partition
from logtool.log.file import File
from logtool.log.flavour import Flavour
from logtool.log.inputs import PathKind
from logtool.log.selection import Selection
from logtool.metadata.releases import NEWEST
from logtool.node.identity import cluster_id_of, topic_id_of

_OF_TODAY = (DirectoryKind.LIVE, DirectoryKind.STRAY)


@dataclass(frozen=True, slots=True)
class DamagedLog:
    """One log to be salvaged."""

    listed: Partition
    log_start: int
    deleted: bool = False
    """True if its segments that wait for their deletion are meant."""

    @property
    def key(self) -> TopicPartition:
        """Return topic and partition, from the name of the directory."""
        return self.listed.topic or "", self.listed.number or 0

    @property
    def name(self) -> str:
        """Return the name of its directory in the output."""
        return "{}-{}".format(*self.key)

    @property
    def logs(self) -> list[tuple[int, File]]:
        """Return the logs by base offset."""
        if not self.deleted or _is_deleted_dir(self.listed):
            live = [(one.base_offset, one.log) for one in self.listed.segments]
        else:
            live = []
        gone = [
            (file.name.offset or 0, file)
            for file in (self.listed.leftovers if self.deleted else ())
            if file.name.kind is FileKind.LOG and file.name.state is FileState.DELETED
        ]
        return sorted({base: (base, file) for base, file in (*gone, *live)}.values(), key=_base)

    @property
    def bases(self) -> list[int]:
        """Return the base offsets of all segments, also of those with a lost log."""
        return sorted({*(base for base, _ in self.logs), *self.lost_logs})

    @property
    def size(self) -> int:
        """Return the bytes of the logs."""
        return sum(file.size for _, file in self.logs)

    @property
    def lost_logs(self) -> list[int]:
        """Return the base offsets of logs that are gone, by indexes that are left of them."""
        if self.deleted:
            return []
        return sorted({file.name.offset or 0 for file in self.listed.orphans})

    def epochs(self) -> list[tuple[int, int]]:
        """Return the rows of ``leader-epoch-checkpoint``; no rows if it cannot be read."""
        file = self.listed.fixed.get(FileKind.LEADER_EPOCH_CHECKPOINT)
        if file is None:
            return []
        try:
            return epochs.read(ShadowFile(file, file.size).read()).rows
        except (UnreadableError, OfflineError, StartFailsError):
            return []

    def zombies(self) -> dict[int, Zombie]:
        """Return the segments that a truncation had removed, by base offset."""
        if self.deleted:
            return {}
        shadow = Shadow(self.listed.path, self.listed.files())
        segments = [
            LoadedSegment(shadow=shadow, base_offset=base, state=FileState.LIVE, kafka=NEWEST)
            for base, _ in self.logs
        ]
        try:
            return old_segments.find(shadow, segments, self.epochs())[0]
        except UnreadableError:
            return {}


def sources(
    paths: Sequence[Path],
    selection: Selection,
    *,
    deleted: bool,
    flavour: Flavour | None = None,
) -> Iterator[DamagedLog | UnreadableError]:
    """Yield the logs of log dirs and partition dirs, and errors for those that cannot be listed."""
    for path in paths:
        try:
            kind = inputs.kind_of(path, flavour, lacking="Redpanda keeps no deleted files")
            if kind is PathKind.LOG_DIR:
                yield from _of_log_dir(path, selection, flavour, deleted=deleted)
            else:
                yield from _of_partition(path, flavour, deleted=deleted)
        except UnreadableError as error:
            yield error


def _of_log_dir(
    path: Path, selection: Selection, flavour: Flavour | None, *, deleted: bool
) -> Iterator[DamagedLog | UnreadableError]:
    home = opening.open_log_dir(path, flavour)
    starts = _log_starts(home)
    for folder, directory in home.partitions:
        wanted = directory.kind is DirectoryKind.DELETE if deleted else False
        if not selection.takes(directory) or (directory.kind not in _OF_TODAY and not wanted):
            continue
        try:
            listed = opening.open_partition(folder, home.flavour)
            yield from _kept(DamagedLog(listed, _start(starts, directory), deleted))
        except UnreadableError as error:
            if not files.has_vanished(error):
                yield error


def _of_partition(
    path: Path, flavour: Flavour | None, *, deleted: bool
) -> Iterator[DamagedLog | UnreadableError]:
    if not path.is_dir():
        raise UnreadableError(path, "is not a log dir and not a partition dir")
    listed = opening.open_partition(path, flavour)
    if not isinstance(listed.directory, PartitionDirectory):
        raise UnreadableError(path, "does not have a name of the form TOPIC-PARTITION")
    yield from _kept(DamagedLog(listed, log_start_of(listed), deleted))


def _kept(source: DamagedLog) -> Iterator[DamagedLog]:
    # A log dir that was formatted and never started has a metadata snapshot, but no log.
    may_lack = source.deleted or source.key[0] == names.CLUSTER_METADATA
    if source.logs or source.lost_logs or not may_lack:
        yield source


def _start(starts: dict[TopicPartition, int], directory: PartitionDirectory) -> int:
    return starts.get((directory.topic, directory.partition), 0)


def log_start_of(listed: Partition) -> int:
    """Return the log start offset in the checkpoint next to a partition dir; 0 without one."""
    if not isinstance(listed.directory, PartitionDirectory):
        return 0
    try:
        home = opening.open_log_dir(listed.path.resolve().parent, listed.flavour)
    except UnreadableError:  # it may have been taken out of its log dir
        return 0
    return max(0, _start(_log_starts(home), listed.directory))


def _log_starts(home: LogDir) -> dict[TopicPartition, int]:
    try:
        rows = home.broker_offsets(FileKind.LOG_START_CHECKPOINT)
    except UnreadableError:
        return {}
    return rows if isinstance(rows, dict) else {}


def _base(item: tuple[int, File]) -> int:
    return item[0]


def _is_deleted_dir(listed: Partition) -> bool:
    return getattr(listed.directory, "kind", None) is DirectoryKind.DELETE


def copies(name: str, dirs: Sequence[Path]) -> list[Path]:
    """Return the partition dirs with a name among `dirs`, or in these as log dirs."""
    found = []
    for path in dirs:
        directory = names.parse_directory(path.resolve().name)
        own = isinstance(directory, PartitionDirectory) and path.resolve().name == name
        folder = path if own else path / name
        if folder.is_dir():
            found.append(folder)
    return found


def usable(
    ours: Partition, name: str, dirs: Sequence[Path]
) -> Iterator[Partition | str | UnreadableError]:
    """Yield the copies that may be used, and the reasons or errors for the others."""
    for place in dirs:
        there = copies(name, [place])
        for path in there:
            try:
                copy = opening.open_partition(path, ours.flavour)
                why = _not_of_this(ours, copy)
                yield f"{path} {why}" if why else copy
            except UnreadableError as error:
                yield error
        if not there:
            yield f"{place} has no {name}"


def _not_of_this(ours: Partition, copy: Partition) -> str | None:
    """Return the reason why a partition dir is not a copy of ours; None if it may be one."""
    if copy.path.resolve() == ours.path.resolve():
        return "is the damaged log itself"
    ids = [topic_id_of(one.path) for one in (ours, copy)]
    clusters = [cluster_id_of(one.path.resolve().parent) for one in (ours, copy)]
    for (own, other), what in ((ids, "topic id"), (clusters, "cluster")):
        if own and other and own != other:
            return f"has another {what}: {other}, but this log has {own}"
    return None
