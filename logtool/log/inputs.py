"""Paths on a command line: the kind of each, its log dir, and the node that it belongs to."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeAlias

from logtool.disk import files, shell
from logtool.errors import NothingMatchedError, UnreadableError
from logtool.formats import names, wording
from logtool.formats.names import CLUSTER_METADATA, PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.log import redpanda_dir
from logtool.log.automq import AUTOMQ
from logtool.log.buckets import is_bucket, is_tier
from logtool.log.dir import LogDir
from logtool.log.flavour import Flavour
from logtool.log.kafka import KAFKA, holds_partition_files, is_root_file
from logtool.log.opening import detect, flavour_at, flavour_of_file, open_log_dir
from logtool.log.redpanda import REDPANDA
from logtool.log.selection import Selection

_OF_REDPANDA = "nothing matched: this is a Redpanda {}; {}"
_MOST_NAMED = 8
"""Log dirs that a message names."""
_WITH_NODE = re.compile(r"([0-9]{1,10})=(.+)", re.DOTALL)


class PathKind(StrEnum):
    """The kinds of paths on a command line."""

    LOG_DIR = "log dir"
    PARTITION_DIR = "partition dir"
    FILE = "file"


class NamedBy(Protocol):
    """A file that names log dirs."""

    @property
    def warnings(self) -> Sequence[str]:
        """Return the warnings about the file, a line each."""

    def summary_line(self) -> str:
        """Return the line that sums up the values taken from the file."""

    def source_of(self, path: Path) -> str | None:
        """Return the place where the file names `path`; None if it does not name it."""


Opened: TypeAlias = LogDir | PathKind | UnreadableError
"""A path as it was opened: a log dir, another kind of path, or the error."""


@dataclass(frozen=True, slots=True)
class GivenPaths:
    """The paths of a command line, and the partitions of them that are selected."""

    paths: Sequence[Path]
    selection: Selection = Selection()
    files_select: bool = False
    """True if the selection also applies inside the given files, as it does for digests."""
    config: NamedBy | None = None
    """The broker's own file, where one was given."""
    flavour: Flavour | None = None
    """The value of ``--flavour``, which overrules the names; None: each directory by its names."""

    @property
    def output_flavour(self) -> str | None:
        """Return the name of the flavour of the first path that is not Kafka's; None for Kafka."""
        for path in self.paths:
            if AUTOMQ.holds(path, ()):
                return str(AUTOMQ.name)
            with suppress(UnreadableError):
                if not files.is_remote(path) and flavour_at(path, self.flavour) is REDPANDA:
                    return str(REDPANDA.name)
        return None

    @property
    def has_bucket_and_more(self) -> bool:
        """Return whether a bucket of AutoMQ is given with another path; only names are read."""
        return len(self.paths) > 1 and any(map(is_bucket, self.paths))

    @property
    def has_tier(self) -> bool:
        """Return whether objects of tiered storage are given; see `is_tier`."""
        return any(map(is_tier, self.paths))

    @property
    def places_of_buckets(self) -> list[Path]:
        """Return the local directories that assembled paths are made of, such as buckets."""
        trees = [path.tree for path in self.paths if files.is_assembled(path)]  # type: ignore[attr-defined]
        return [place for tree in trees for place in tree.places if not files.is_remote(place)]

    def late_problems(self) -> Iterator[UnreadableError]:
        """Yield why parts of the partitions of a bucket are missing, once they were read."""
        for path in self.paths:
            if files.is_assembled(path):
                yield from path.tree.problems()  # type: ignore[attr-defined]

    def unmatched(self) -> Iterator[NothingMatchedError]:
        """Yield, path by path, why a run found no partition to look at.

        Nothing is yielded if the run had something else to look at: a file, or all of a log dir
        that holds no partition. A path that cannot be read is reported elsewhere.
        """
        problems = []
        for path in files.each_once(self.paths):
            try:
                kind = kind_of(path, self.flavour, redpanda=True)
            except UnreadableError:
                continue
            is_file = kind is PathKind.FILE and not self.files_select
            if is_file or (kind is not PathKind.PARTITION_DIR and self.selection == Selection()):
                return
            if self.selection.sample and self._has_other_samples(path):
                return
            chosen = f" {self.selection}" if kind is not PathKind.PARTITION_DIR else ""
            problems.append(NothingMatchedError(path, f"nothing matched{chosen}"))
        yield from problems

    def _has_other_samples(self, path: Path) -> bool:
        """Return whether the selection takes a partition that is in another sample."""
        whole = replace(self.selection, sample=None)
        return any(map(whole.takes, _directories(path, self.flavour)))

    def problems_of_all(self) -> list[UnreadableError]:
        """Return why no path has a partition that is selected; empty if one may have some.

        Only names are read: a job that takes long to start asks before it starts.
        """
        problems: list[UnreadableError] = []
        for path in files.each_once(self.paths):
            try:
                kind = kind_of(path, self.flavour, redpanda=True)
                if kind is not PathKind.LOG_DIR or self.selection == Selection():
                    return []
                if any(map(self.selection.takes, _directories(path, self.flavour))):
                    return []
                if self.selection.sample and self._has_other_samples(path):
                    return []
                problems.append(NothingMatchedError(path, f"nothing matched {self.selection}"))
            except UnreadableError as error:
                problems.append(error)
        return problems

    def require(self) -> None:
        """Raise the first of `unmatched`, for a run that must not end as if all were well."""
        for problem in self.unmatched():
            raise problem


@dataclass(frozen=True, slots=True)
class NodeDir:
    """A log dir, a partition dir or a file, and the broker that it belongs to."""

    path: Path
    node: int | None = None
    """The id of the broker; None: the id in meta.properties."""


@dataclass(frozen=True, slots=True)
class OpenedPath:
    """The log dir that a path leads to, and the part of it that is meant."""

    log_dir: Path
    name: str | None
    """The name of the one partition dir that is meant; None: the whole log dir is."""
    contents: LogDir | UnreadableError
    """The log dir, or the error where it cannot be listed."""
    within: Path | None = None
    """The namespace, topic or partition that is meant in a data directory of Redpanda."""
    flavour: Flavour | None = None
    """The value of ``--flavour``; None: the names of the files decide."""

    @property
    def is_whole(self) -> bool:
        """Return whether the whole log dir is meant."""
        return self.name is None and self.within is None

    def read(self) -> LogDir:
        """Return the log dir; UnreadableError where it cannot be listed."""
        if isinstance(self.contents, UnreadableError):
            raise self.contents
        return self.contents

    def chosen(
        self, selection: Selection, *, metadata_log: bool = False
    ) -> list[tuple[Path, PartitionDirectory]]:
        """Return the partitions that are meant; UnreadableError as for `read`.

        With `metadata_log`, the metadata log may be one of them.
        """
        return [
            (folder, directory)
            for folder, directory in self.read().partitions
            if (metadata_log or directory.topic != CLUSTER_METADATA)
            and selection.takes(directory)
            and self._means(folder)
        ]

    def _means(self, folder: Path) -> bool:
        if self.within is not None:
            # A folder above it that could not be listed stands for all that lies in it.
            above = folder in self.within.parents
            return folder == self.within or self.within in folder.parents or above
        return self.name in (None, folder.name)

    def again(self) -> "OpenedPath":
        """List the log dir once more."""
        return replace(self, contents=_open(self.log_dir, self.flavour))


def kind_of(
    path: Path,
    flavour: Flavour | None = None,
    *,
    redpanda: bool = False,
    lacking: str = "this command does not read Redpanda files",
) -> PathKind:
    """Return the kind of `path`; NothingMatchedError if a broker writes nothing like it.

    `flavour` overrules the names. `redpanda` is True for a caller that also reads what Redpanda
    writes. For any other caller, `lacking` is the end of the message: the reason.
    """
    if not files.leads_to_dir(path):
        if not redpanda and flavour_of_file(path, flavour) is REDPANDA:
            raise NothingMatchedError(path, _OF_REDPANDA.format("file", lacking))
        return PathKind.FILE
    entries = files.list_dir(path)
    found = [entry.name for entry in entries]
    if detect(path, found, flavour) is REDPANDA:
        if not redpanda:
            raise NothingMatchedError(path, _OF_REDPANDA.format("directory", lacking))
        is_log = redpanda_dir.is_partition(path, found)
        return PathKind.PARTITION_DIR if is_log else PathKind.LOG_DIR
    if holds_partition_files(found):
        return PathKind.PARTITION_DIR
    if any(map(is_root_file, found)):
        return PathKind.LOG_DIR
    folders = [path / e.name for e in entries if files.is_dir(e)]
    if folders and files.is_assembled(path):  # It holds nothing but partitions.
        return PathKind.LOG_DIR
    if log_dirs := _log_dirs_among(folders):
        shown = " ".join(shell.path(folder) for folder in log_dirs[:_MOST_NAMED])
        more = " ..." if len(log_dirs) > _MOST_NAMED else ""
        count = wording.count(len(log_dirs), "log dir")
        text = f"nothing matched: this is not a log dir, but holds {count}; give instead: "
        raise NothingMatchedError(path, f"{text}{shown}{more}")
    if any(_is_like_partition(folder) for folder in folders):
        return PathKind.LOG_DIR
    # A dot has no name of its own.
    name = path.resolve().name if path.name in ("", "..") else path.name
    directory = names.parse_directory(name)
    if isinstance(directory, PartitionDirectory) and directory.exact and _is_in_log_dir(path):
        return PathKind.PARTITION_DIR
    if is_bucket(path):
        raise NothingMatchedError(
            path,
            "nothing matched: this is a bucket of AutoMQ; only dump, gaps, groups, lookup, plan, "
            "salvage, scan, stat, txns and verify read it, given with the log dir of its metadata "
            "log",
        )
    if is_tier(path):
        raise NothingMatchedError(
            path,
            "nothing matched: below this directory are objects of tiered storage; only dump, gaps, "
            "groups, lookup, salvage, stat and txns read them as logs, and verify and 'logtool "
            "remote verify' check them",
        )
    for folder in folders:
        files.list_dir(folder)  # one that cannot be listed may be the log dir
    what = "is empty" if not entries else "has no file that a Kafka broker writes"
    text = f"nothing matched: the directory {what}; expected a log dir, a partition dir or a file"
    raise NothingMatchedError(path, text)


def _directories(path: Path, flavour: Flavour | None) -> Iterator[PartitionDirectory]:
    return (directory for _, directory in open_log_dir(path, flavour).partitions)


def root_of(path: Path, flavour: Flavour | None = None) -> Path:
    """Return the log dir or the data directory that a path is, or lies in; UnreadableError."""
    if flavour_at(path, flavour) is REDPANDA:
        return redpanda_dir.data_dir_of(path)[0]
    return log_dir_of(path, flavour)[0]


def log_dir_of(path: Path, flavour: Flavour | None = None) -> tuple[Path, bool]:
    """Return the log dir of a path, and whether the path is that; UnreadableError for a file."""
    kind = kind_of(path, flavour)
    if kind is PathKind.FILE:
        raise UnreadableError(path, "expected a log dir or a partition dir")
    if kind is PathKind.LOG_DIR:
        return path, True
    # The path as given, unless it is a dot or a link, which hides the real place.
    real = path.resolve()
    is_real = path.name == real.name and path.parent.resolve() == real.parent
    return path.parent if is_real else real.parent, False


def containing(path: Path, flavour: Flavour | None = None) -> LogDir | None:
    """Return the log dir of Kafka that contains a partition dir; None for a copy elsewhere.

    A parent without any file of a log dir does not count: a partition dir may be copied anywhere.
    """
    try:
        home = open_log_dir(log_dir_of(path, flavour)[0], flavour)
    except UnreadableError:  # it cannot be listed, or is of Redpanda
        return None
    return home if home.files and home.flavour.has_checkpoints else None


def new_disk(path: Path, given: Sequence[Path], flavour: Flavour | None = None) -> LogDir | None:
    """Return an empty directory as a log dir if a log dir of Kafka is `given` with it; else None.

    A new disk is empty, and so is a mount point without its disk. ``lost+found`` does not count. A
    name such as kafka-2 is that of a partition only within a log dir.
    """
    if len(given) < 2 or flavour is REDPANDA or files.is_remote(path):
        return None
    try:
        names_there = {entry.name for entry in files.list_dir(path)}
        around = files.list_dir(path.resolve().parent)
    except UnreadableError:
        return None
    if not names_there <= {"lost+found"} or any(is_root_file(entry.name) for entry in around):
        return None
    is_one_of_several = any(_is_log_dir(one) for one in given if one != path)
    return KAFKA.log_dir(path, []) if is_one_of_several else None


def open_path(path: Path, given: Sequence[Path], flavour: Flavour | None = None) -> Opened:
    """Return a path as it is, a log dir with its listing; an error is returned, not raised.

    It is one of the paths that are `given`.
    """
    if empty := new_disk(path, given, flavour):
        return empty
    try:
        kind = kind_of(path, flavour, redpanda=True)
        return open_log_dir(path, flavour) if kind is PathKind.LOG_DIR else kind
    except UnreadableError as error:
        return error


def _is_log_dir(path: Path) -> bool:
    try:
        return not files.is_remote(path) and kind_of(path) is PathKind.LOG_DIR
    except UnreadableError:
        return False


def open_each(
    paths: Iterable[Path], flavour: Flavour | None = None
) -> Iterator[OpenedPath | UnreadableError]:
    """Yield the log dir that each path leads to, or the error; no log dir is listed twice.

    `flavour` overrules what the names of files and directories say.
    """
    known: dict[Path, LogDir | UnreadableError] = {}
    paths = list(paths)
    for path in paths:
        within = None
        if empty := new_disk(path, paths, flavour):
            yield OpenedPath(path, None, empty, None, flavour)
            continue
        try:
            if flavour_at(path, flavour) is REDPANDA:
                log_dir, within = redpanda_dir.data_dir_of(path)
                is_whole = log_dir == within
            else:
                log_dir, is_whole = log_dir_of(path, flavour)
        except UnreadableError as error:
            yield error
            continue
        if log_dir not in known:
            known[log_dir] = _open(log_dir, flavour)
        name = None if is_whole else path.resolve().name
        yield OpenedPath(log_dir, name, known[log_dir], None if is_whole else within, flavour)


def parse_node_dir(text: str, path_of: Callable[[str], Path] = files.path_of) -> NodeDir:
    """Return the path that a text names, and its node; a text that is an existing path has none.

    `path_of` makes the path, and raises UsageError for one that the command does not take.
    """
    named = _WITH_NODE.fullmatch(text)
    if named and not Path(text).exists():
        return NodeDir(path_of(named.group(2)), int(named.group(1)))
    return NodeDir(path_of(text))


def log_dirs_in(path: Path) -> list[Path]:
    """Return the log dirs among the folders of a directory; none if it cannot be listed."""
    try:
        entries = files.list_dir(path)
        return _log_dirs_among([path / one.name for one in entries if files.is_dir(one)])
    except UnreadableError:
        return []


def _log_dirs_among(folders: Sequence[Path]) -> list[Path]:
    """Return the log dirs among folders; none if one of them is a partition dir with files."""
    log_dirs = []
    for folder in folders:
        try:
            entries = files.list_dir(folder)
        except UnreadableError:
            continue
        if holds_partition_files([entry.name for entry in entries]):
            return []
        inner = (folder / entry.name for entry in entries if files.is_dir(entry))
        is_root = any(is_root_file(entry.name) for entry in entries)
        if is_root or any(map(_is_like_partition, inner)):
            log_dirs.append(folder)
    return sorted(log_dirs)


def _is_in_log_dir(path: Path) -> bool:
    """Return whether a directory lies in a log dir: others have names of partitions (broker-1)."""
    try:
        entries = [] if files.is_remote(path) else files.list_dir(path.resolve().parent)
    except UnreadableError:  # it can be entered
        return True
    return not entries or any(is_root_file(one.name) for one in entries)


def _is_like_partition(path: Path) -> bool:
    """Return whether a directory is a partition dir: others have such names, too (dbus-1)."""
    if not isinstance(names.parse_directory(path.name), PartitionDirectory):
        return False
    try:
        entries = files.list_dir(path)
    except UnreadableError:
        return True  # The error is reported when it is read.
    return not entries or holds_partition_files([entry.name for entry in entries])


def _open(log_dir: Path, flavour: Flavour | None) -> LogDir | UnreadableError:
    try:
        return open_log_dir(log_dir, flavour)
    except UnreadableError as error:
        return error
