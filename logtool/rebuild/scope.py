"""The partitions that paths name, and the settings of their log dir for building indexes."""

import os
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

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
from logtool.loading.index_building import INDEX_INTERVAL, MAX_INDEX_SIZE
from logtool.log import inputs, opening, redpanda_dir
from logtool.log.dir import Partition
from logtool.log.flavour import Flavour
from logtool.log.inputs import PathKind
from logtool.log.kafka import KAFKA
from logtool.log.selection import Selection
from logtool.node.log_dir_state import LogDirState
from logtool.rebuild import producer_states
from logtool.rebuild.targets import FileKey


@dataclass(frozen=True, slots=True)
class PartitionSettings:
    """Settings of one partition, from the log dir or the command line."""

    clean: bool
    """True if a broker will take the log as it is."""
    log_start: int = 0
    index_interval: int = INDEX_INTERVAL
    max_index_size: int = MAX_INDEX_SIZE


@dataclass(slots=True)
class Scope:
    """A partition dir, and the files of it that are meant; None for all."""

    path: Path
    only: frozenset[FileKey] | None = None
    directory: PartitionDirectory | BadDirectory | None = None
    """Parsed name of the directory; None if it was not parsed yet."""


@dataclass(frozen=True, slots=True)
class Indexing:
    """Settings for all topics; None: those of each topic in the metadata log, else defaults."""

    interval: int | None = None
    """Bytes, ``index.interval.bytes``."""
    max_size: int | None = None
    """Bytes, ``segment.index.bytes``."""
    static: Mapping[str, str] = field(default_factory=dict)
    """Settings of the broker's own file, for those that the metadata log does not have."""


def directory_of(scope: Scope) -> PartitionDirectory | BadDirectory:
    """Return the parsed name of a partition dir."""
    return scope.directory or names.parse_directory(scope.path.resolve().name)


def partition_settings(
    home: LogDirState, directory: PartitionDirectory | BadDirectory, indexing: Indexing
) -> PartitionSettings:
    """Return the settings of a partition; `indexing` overrules those of the topic."""
    interval, size = indexing.interval, indexing.max_size
    if not isinstance(directory, PartitionDirectory):
        return PartitionSettings(
            clean=home.clean,
            log_start=0,
            index_interval=home.index_interval("", interval),
            max_index_size=home.max_index_size("", size),
        )
    # The metadata log is recovered at every start, also after a clean shutdown.
    clean = home.clean and directory.topic != names.CLUSTER_METADATA
    key = directory.topic, directory.partition
    live = directory.kind is DirectoryKind.LIVE
    start = home.rows(FileKind.LOG_START_CHECKPOINT).get(key, 0) if live else 0
    return PartitionSettings(
        clean=clean,
        log_start=start,
        index_interval=home.index_interval(directory.topic, interval),
        max_index_size=home.max_index_size(directory.topic, size),
    )


def scope_of(path: Path, flavour: Flavour | None = None) -> tuple[Path, Scope | None]:
    """Return the log dir that a path belongs to, and its scope; None for all partitions.

    A missing index may be named if its log exists. UnreadableError for other paths,
    NothingMatchedError for those of Redpanda.
    """
    name = names.parse_partition_file(path.name)
    known = name.kind in (*names.SEGMENT_KINDS, FileKind.PRODUCER_SNAPSHOT)
    exact = name.state is FileState.LIVE and name.reception is Reception.EXACT
    if known and exact and not path.is_dir():
        log = path.with_suffix(FileKind.LOG.value)
        if not (os.path.lexists(path) or log.exists()):
            raise UnreadableError(path, "No such file or directory", missing=True)
        base = name.offset or 0
        kinds = [name.kind]
        if name.kind is FileKind.LOG:
            kinds = [*names.INDEX_KINDS, FileKind.PRODUCER_SNAPSHOT]
        only = frozenset((kind, base) for kind in kinds)
        return path.parent.resolve().parent, Scope(path.parent, only)
    kind = inputs.kind_of(path, flavour)
    if kind is PathKind.FILE and redpanda_dir.place(path):
        text = "has the name of a Redpanda segment or index, which --flavour kafka excludes"
        raise NothingMatchedError(path, text)
    if kind is PathKind.FILE:
        raise UnreadableError(path, "is not a log, an index or a producer snapshot")
    if kind is PathKind.LOG_DIR:
        return path, None
    return path.resolve().parent, Scope(path)


def scopes(home: LogDirState, given: list[Scope | None], selection: Selection) -> list[Scope]:
    """Return the partitions of a log dir that are meant, each once."""
    merged: dict[Path, Scope] = {}
    for named in given:
        for item in [named] if named else _chosen(home, selection):
            where = item.path.resolve()
            before = merged.get(where)
            if before is None:
                merged[where] = item
            elif before.only is None or item.only is None:
                before.only = None
            else:
                before.only |= item.only
    return list(merged.values())


def _chosen(home: LogDirState, selection: Selection) -> list[Scope]:
    """Return the partitions of a log dir that are selected, without those being deleted."""
    return [
        Scope(path, directory=directory)
        for path, directory in home.log_dir.partitions
        if directory.kind is not DirectoryKind.DELETE and selection.takes(directory)
    ]


def read(scope: Scope, log_start: int) -> Partition:
    """List a partition dir, without the segments that its scope does not need.

    Offset and time indexes need only their own log. For the others the producers must be known,
    which needs the log from the nearest producer snapshot on.
    """
    listed = opening.open_partition(scope.path, KAFKA)
    if not scope.only or not listed.segments:
        return listed
    wanted = {offset for _, offset in scope.only}
    alone = {kind for kind, _ in scope.only} <= {FileKind.OFFSET_INDEX, FileKind.TIME_INDEX}
    last = max(wanted)
    first = min(wanted) if alone else _begin(listed, scope.only, log_start)
    segments = tuple(
        segment
        for segment in listed.segments
        if segment.base_offset <= last
        and (segment.next_base_offset is None or segment.next_base_offset > first)
    )
    snapshots = tuple(file for file in listed.snapshots if (file.name.offset or 0) <= last)
    return replace(listed, segments=segments, snapshots=snapshots)


def _begin(listed: Partition, only: frozenset[FileKey], log_start: int) -> int:
    """Return an offset at which the producers are known, below all that is to be built."""
    least = min(offset - (kind is FileKind.PRODUCER_SNAPSHOT) for kind, offset in only)
    for file in reversed(listed.snapshots):
        offset = file.name.offset or 0
        if log_start < offset <= least and producer_states.read(file) is not None:
            return offset
    return 0
