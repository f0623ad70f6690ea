"""One entry of ``log.dirs``, its partitions and checkpoints; and what a given path is."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Protocol

from logtool.disk import files, partition, redpanda_dir, shell
from logtool.disk.flavour import Flavour, forced
from logtool.disk.partition import File
from logtool.errors import NothingMatchedError, UnreadableError
from logtool.formats import names
from logtool.formats.names import (
    BadDirectory,
    DirectoryKind,
    FileKind,
    FileState,
    PartitionDirectory,
    Reception,
)
from logtool.lazy_dataclass import dataclass

OFFSET_CHECKPOINTS = (
    FileKind.RECOVERY_POINT_CHECKPOINT,
    FileKind.REPLICATION_CHECKPOINT,
    FileKind.LOG_START_CHECKPOINT,
    FileKind.CLEANER_CHECKPOINT,
)

OF_TODAY = (DirectoryKind.LIVE, DirectoryKind.FUTURE)
"""Partition directories that a broker writes to; their rows bear the plain name."""


_OF_REDPANDA = "nothing matched: it is of Redpanda, which "
_MOST_NAMED = 8
"""Log dirs that a message names."""


class PathKind(StrEnum):
    """What a path on the command line is."""

    LOG_DIR = "log dir"
    PARTITION_DIR = "partition dir"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which partitions of a log dir are meant; empty means all."""

    topics: tuple[str, ...] = ()
    """Globs of topics to take."""
    exclude_topics: tuple[str, ...] = ()
    """Globs of topics to leave out; these win."""
    partitions: tuple[int, ...] = ()
    keys: frozenset[tuple[str, int]] = frozenset()
    """Exact (topic, partition)."""

    def takes(self, directory: PartitionDirectory) -> bool:
        """Return whether the partition is among those meant.

        What lies in a folder that could not be listed is not known, so that it always is: whoever
        reads it says why not.
        """
        if directory.unlisted:
            return True
        topic = directory.topic
        return (
            (not self.topics or any(fnmatchcase(topic, glob) for glob in self.topics))
            and not any(fnmatchcase(topic, glob) for glob in self.exclude_topics)
            and (not self.partitions or directory.partition in self.partitions)
            and (not self.keys or (topic, directory.partition) in self.keys)
        )

    def __str__(self) -> str:
        """Return the options that say the same."""
        words = [
            *(shell.option("--topic", glob) for glob in self.topics),
            *(shell.option("--exclude-topic", glob) for glob in self.exclude_topics),
            *(f"--partition {number}" for number in self.partitions),
            *(f"{topic}-{number}" for topic, number in sorted(self.keys)),
        ]
        return " ".join(words)


class NamedBy(Protocol):
    """A file that names log dirs."""

    @property
    def warnings(self) -> Sequence[str]:
        """Return what is odd in it, a line each."""

    def told(self) -> str:
        """Return the line that says what was taken from it."""

    def source_of(self, path: Path) -> str | None:
        """Return where it names a path; None where it does not."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a command line asks a command to look at."""

    paths: Sequence[Path]
    selection: Selection = Selection()
    files_select: bool = False
    """Whether the selection holds inside the files given too, as it does for digests."""
    config: NamedBy | None = None
    """The broker's own file, where one was given."""

    @property
    def flavour(self) -> str | None:
        """Return ``redpanda`` where one of the paths is of Redpanda; None where all are Kafka's."""
        for path in self.paths:
            with suppress(UnreadableError):
                if not files.is_remote(path) and is_redpanda(path):
                    return "redpanda"
        return None

    def unmatched(self) -> Iterator[NothingMatchedError]:
        """Yield, path by path, why a run found no partition to look at.

        Nothing is to be said where it had something else to look at: a file, or all of a log dir
        that holds no partition. A path that cannot be read says so itself.
        """
        problems = []
        for path in files.each_once(self.paths):
            try:
                kind = classify(path, redpanda=True)
            except UnreadableError:
                continue
            is_file = kind is PathKind.FILE and not self.files_select
            if is_file or (kind is not PathKind.PARTITION_DIR and self.selection == Selection()):
                return
            chosen = f" {self.selection}" if kind is not PathKind.PARTITION_DIR else ""
            problems.append(NothingMatchedError(path, f"nothing matched{chosen}"))
        yield from problems

    def require(self) -> None:
        """Raise the first of `unmatched`, for a run that must not end as if all were well."""
        for problem in self.unmatched():
            raise problem


@dataclass(frozen=True, slots=True)
class DataDir:
    """What a log dir holds."""

    path: Path
    partitions: tuple[tuple[Path, PartitionDirectory], ...]
    """By topic and partition."""
    bad_directories: tuple[tuple[Path, BadDirectory], ...]
    """Directories that stop a broker."""
    files: dict[FileKind, File]
    """The files of the root that Kafka writes."""
    leftovers: tuple[File, ...]
    """``.tmp`` files of an interrupted rewrite."""
    strangers: tuple[File, ...]
    odd_entries: tuple[Path, ...]
    """Links, devices and the like."""
    is_redpanda: bool = False
    """Whether it is a data directory of Redpanda, or a namespace or topic of one."""

    @property
    def is_clean(self) -> bool:
        """Return whether the clean-shutdown marker is there."""
        return FileKind.CLEAN_SHUTDOWN in self.files


def classify(
    path: Path, *, redpanda: bool = False, lacking: str = "this command does not read"
) -> PathKind:
    """Return what `path` is; NothingMatchedError when it is nothing that a broker writes.

    `redpanda` says that the caller reads what Redpanda writes, too. For one that does not,
    `lacking` says in the words behind "which" why.
    """
    if not files.leads_to_dir(path):
        if not redpanda and is_redpanda(path):
            raise NothingMatchedError(path, f"{_OF_REDPANDA}{lacking}")
        return PathKind.FILE
    entries = files.list_dir(path)
    found = [entry.name for entry in entries]
    if _is_redpanda(path, found):
        if not redpanda:
            raise NothingMatchedError(path, f"{_OF_REDPANDA}{lacking}")
        is_log = redpanda_dir.is_partition(path, found)
        return PathKind.PARTITION_DIR if is_log else PathKind.LOG_DIR
    if _holds_partition_files(found):
        return PathKind.PARTITION_DIR
    if any(names.parse_root_file(e.name).kind is not FileKind.UNKNOWN for e in entries):
        return PathKind.LOG_DIR
    folders = [path / e.name for e in entries if files.is_dir(e)]
    if log_dirs := _log_dirs_among(folders):
        shown = " ".join(shell.path(folder) for folder in log_dirs[:_MOST_NAMED])
        more = " ..." if len(log_dirs) > _MOST_NAMED else ""
        text = f"nothing matched: it is no log dir but holds {len(log_dirs)}; name them instead: "
        raise NothingMatchedError(path, f"{text}{shown}{more}")
    if any(_is_like_partition(folder) for folder in folders):
        return PathKind.LOG_DIR
    # A dot has no name of its own.
    name = path.resolve().name if path.name in ("", "..") else path.name
    directory = names.parse_directory(name)
    if isinstance(directory, PartitionDirectory) and directory.exact:
        return PathKind.PARTITION_DIR
    what = "is empty" if not entries else "holds nothing that a Kafka broker writes"
    text = f"nothing matched: it {what}; expected a log dir, a partition dir or a file"
    raise NothingMatchedError(path, text)


def is_redpanda(path: Path) -> bool:
    """Return whether Redpanda wrote what lies at `path`, by the names alone.

    A directory with files that Kafka writes is Kafka's, whatever else lies in it, but for a
    partition of Redpanda by its name and a segment. NothingMatchedError for a directory that is
    to be taken for Redpanda's, and holds nothing of it.
    """
    if not files.leads_to_dir(path):
        return forced() is not Flavour.KAFKA and redpanda_dir.place(path) is not None
    return _is_redpanda(path, [entry.name for entry in files.list_dir(path)])


def _is_redpanda(path: Path, entries: list[str]) -> bool:
    if forced() is Flavour.REDPANDA:
        of_redpanda = redpanda_dir.is_data_dir(entries) or redpanda_dir.is_partition(path, entries)
        if not of_redpanda and not redpanda_dir.holds_partitions(path):
            text = "nothing matched: it holds nothing that Redpanda writes; expected a data "
            text += "directory, a namespace, a topic, a partition or a file"
            raise NothingMatchedError(path, text)
        return True
    if forced() is Flavour.KAFKA:
        return False
    if redpanda_dir.is_data_dir(entries) or redpanda_dir.is_surely_partition(path, entries):
        return True
    if _holds_partition_files(entries) or any(
        names.parse_root_file(name).kind is not FileKind.UNKNOWN for name in entries
    ):
        return False
    return redpanda_dir.is_partition(path, entries) or redpanda_dir.holds_partitions(path)


def read(path: Path) -> DataDir:
    """List a log dir; UnreadableError when that is not possible."""
    return files.at_one_moment(path, partial(_described, path))


def _described(path: Path, entries: Sequence[files.Entry]) -> DataDir:
    """Return what the entries of a log dir are."""
    if _is_redpanda(path, [entry.name for entry in entries]):
        return DataDir(
            path,
            partitions=tuple(redpanda_dir.partitions(path)),
            bad_directories=(),
            files={},
            leftovers=(),
            strangers=(),
            odd_entries=(),
            is_redpanda=True,
        )
    good, bad, kept, odd = [], [], [], []
    for entry in entries:
        name = names.parse_root_file(entry.name)
        if files.is_dir(entry):
            directory = names.parse_directory(entry.name)
            if entry.name == names.REMOTE_INDEX_CACHE:
                continue
            if isinstance(directory, BadDirectory):
                bad.append((path / entry.name, directory))
            else:
                good.append((path / entry.name, directory))
        elif partition.is_file(entry, name):
            file = partition.describe(path, entry, name)
            kept += [file] if file else []
        else:
            odd.append(path / entry.name)
    exact = [f for f in kept if f.name.reception is Reception.EXACT]
    return DataDir(
        path,
        partitions=tuple(sorted(good, key=_directory_order)),
        bad_directories=tuple(bad),
        files={f.name.kind: f for f in exact if f.name.state is FileState.LIVE},
        leftovers=tuple(f for f in exact if f.name.state is not FileState.LIVE),
        strangers=tuple(f for f in kept if f.name.reception is not Reception.EXACT),
        odd_entries=tuple(odd),
    )


def _directory_order(item: tuple[Path, PartitionDirectory]) -> tuple[str, int, int, str]:
    directory = item[1]
    return (
        directory.topic,
        directory.partition,
        list(DirectoryKind).index(directory.kind),
        directory.name,
    )


def _log_dirs_among(folders: Sequence[Path]) -> list[Path]:
    """Return those that are log dirs, where none is a partition's that holds something."""
    log_dirs = []
    for folder in folders:
        try:
            entries = files.list_dir(folder)
        except UnreadableError:
            continue
        if _holds_partition_files([entry.name for entry in entries]):
            return []
        partitions = (
            entry
            for entry in entries
            if files.is_dir(entry)
            and isinstance(names.parse_directory(entry.name), PartitionDirectory)
        )
        if any(
            names.parse_root_file(entry.name).kind is not FileKind.UNKNOWN for entry in entries
        ) or any(_is_like_partition(folder / entry.name) for entry in partitions):
            log_dirs.append(folder)
    return sorted(log_dirs)


def _is_like_partition(path: Path) -> bool:
    """Return whether a directory is one of a partition: others bear such names too (dbus-1)."""
    if not isinstance(names.parse_directory(path.name), PartitionDirectory):
        return False
    try:
        entries = files.list_dir(path)
    except UnreadableError:
        return True  # Whoever looks at it says why.
    return not entries or _holds_partition_files([entry.name for entry in entries])


def _holds_partition_files(entries: list[str]) -> bool:
    kinds = (
        *names.SEGMENT_KINDS,
        FileKind.PRODUCER_SNAPSHOT,
        FileKind.PARTITION_METADATA,
        FileKind.LEADER_EPOCH_CHECKPOINT,
    )
    parsed = map(names.parse_partition_file, entries)
    # A .log without an offset for a name is what many programs write: alone it tells nothing.
    return any(
        name.kind in kinds and name.reception is not Reception.STOPS_BROKER for name in parsed
    )
