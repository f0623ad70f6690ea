"""The bytes of log dirs by topic and kind, from names and sizes.

Of the indexes of active segments a few blocks are read, to find where their entries end.

A broker removes files with the suffix .deleted and dirs with the suffix -delete by itself, also
after its next start, and with them the files of a cleaning that did not end. Source:
``LogLoader.removeTempFilesAndCollectSwapFiles``, ``LogManager.loadLog`` (Kafka 3.9).
"""

import os
import stat
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import names
from logtool.formats.names import CLUSTER_METADATA, DirectoryKind, FileKind, FileName, FileState
from logtool.lazy_dataclass import dataclass

_PAGE = 4096
_WORTH_A_LOOK = 16
"""Pages of an index below which it is not read: a stopped broker leaves indexes that small."""
BLOCK = 512
"""Bytes of a block in ``st_blocks``."""
_KEPT = (FileState.LIVE, FileState.SWAP)
_INDEXES = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)


_parsed = lru_cache(maxsize=4096)(names.parse_partition_file)
"""Parser of file names that keeps its results, since most partitions have files of equal names."""


class SpaceKind(StrEnum):
    """The kinds of bytes in a log dir."""

    LOG = "log"
    """Segments of live partitions; a .swap file that the broker will rename is one."""
    INDEX = "index"
    DELETED = "deleted"
    """Files and partition dirs that wait to be deleted."""
    TEMPORARY = "temporary"
    """Files of a job that did not end, which the broker removes when it starts."""
    STRAY = "stray"
    FUTURE = "future"
    METADATA_LOG = "metadata-log"
    """Segments, snapshots and small files of the metadata log, without its indexes."""
    OTHER = "other"
    """Snapshots, checkpoints, and files that Kafka does not write."""


FREE_OF_COST = (SpaceKind.DELETED, SpaceKind.TEMPORARY)
"""The kinds that a broker removes by itself, without a record that it serves."""
_BY_DIRECTORY = {
    DirectoryKind.DELETE: SpaceKind.DELETED,
    DirectoryKind.STRAY: SpaceKind.STRAY,
    DirectoryKind.FUTURE: SpaceKind.FUTURE,
}


@dataclass(slots=True)
class Bytes:
    """Sizes that are added up."""

    size: int = 0
    """Bytes by the sizes of the files."""
    disk: int = 0
    """Bytes of the blocks that the files take; a preallocated index is larger than these."""
    files: int = 0

    def add(self, other: "Bytes") -> None:
        """Add the files of another."""
        self.size += other.size
        self.disk += other.disk
        self.files += other.files


class ActiveIndexes(NamedTuple):
    """The sizes of the indexes of an active segment, in bytes; 0 for one that is not there."""

    base_offset: int | None
    """None if the directory has no segment."""
    offsets: int
    times: int


@dataclass(frozen=True, slots=True)
class DirectoryUsage:
    """The bytes of one partition dir, or of the files in a log dir outside of partition dirs."""

    path: Path
    topic: str | None
    """None for the files outside of partition dirs."""
    device: int
    """Number of the file system (``st_dev``)."""
    kinds: dict[SpaceKind, Bytes]
    active: ActiveIndexes | None = None
    """None for a directory whose logs a broker does not append to."""
    preallocated: int = 0
    """Bytes of blocks behind the last entry of these indexes, which hold only zeros."""
    unread: tuple[UnreadableError, ...] = ()
    """Errors of directories that could not be listed."""


def read(path: Path, topic: str | None, kind: DirectoryKind = DirectoryKind.LIVE) -> DirectoryUsage:
    """Return the bytes below a local partition dir; UnreadableError if it cannot be listed."""
    kinds: dict[SpaceKind, Bytes] = defaultdict(Bytes)
    found = list(_statuses(path))
    unread = tuple(one for one in found if isinstance(one, UnreadableError))
    if unread and len(unread) == len(found):
        raise unread[0]
    listed = [one for one in found if not isinstance(one, UnreadableError)]
    parsed = [_parsed(name) for name, _ in listed]
    gone = names.uncommitted_swaps(parsed)
    for file, (_, status) in zip(parsed, listed, strict=True):
        _add(kinds[_kind(topic, kind, file, gone)], status)
    sizes = {name: status.st_size for name, status in listed}
    active = _active(sizes, parsed) if kind is DirectoryKind.LIVE else None
    stem = names.format_offset(active.base_offset or 0) if active else ""
    indexes = {f"{stem}.index", f"{stem}.timeindex"}
    free = sum(_preallocated(path / name, one) for name, one in listed if name in indexes)
    return DirectoryUsage(path, topic, os.lstat(path).st_dev, dict(kinds), active, free, unread)


def read_rest(root: Path, partitions: Iterable[Path]) -> DirectoryUsage:
    """Return the bytes of a log dir outside of its partition dirs; UnreadableError."""
    inside = {path.name for path in partitions}
    kinds: dict[SpaceKind, Bytes] = defaultdict(Bytes)
    unread = []
    for one in _statuses(root, inside):
        if isinstance(one, UnreadableError):
            unread.append(one)
        else:
            _add(kinds[SpaceKind.OTHER], one[1])
    return DirectoryUsage(root, None, os.lstat(root).st_dev, dict(kinds), unread=tuple(unread))


def _preallocated(path: Path, status: os.stat_result) -> int:
    """Return the bytes of blocks behind the entries of an index; 0 if it cannot be read.

    Entries come before zeros, so that a binary search finds the first block of zeros.
    """
    count = min(status.st_size, status.st_blocks * BLOCK) // _PAGE
    if count < _WORTH_A_LOOK:
        return 0
    try:
        with files.LogFile(path) as file:
            used = bisect_left(
                range(count), True, key=lambda page: not any(file.read(page * _PAGE, _PAGE))
            )
    except UnreadableError:
        return 0
    return (count - used) * _PAGE


def _active(sizes: Mapping[str, int], parsed: Iterable[FileName]) -> ActiveIndexes:
    """Return the indexes of the last segment."""
    logs = (one.offset for one in parsed if one.kind is FileKind.LOG and one.state in _KEPT)
    base = max((offset for offset in logs if offset is not None), default=None)
    stem = names.format_offset(base or 0)
    offsets, times = sizes.get(f"{stem}.index", 0), sizes.get(f"{stem}.timeindex", 0)
    return ActiveIndexes(base, offsets, times)


def _kind(topic: str | None, kind: DirectoryKind, file: FileName, gone: set[str]) -> SpaceKind:
    if kind in _BY_DIRECTORY:
        return _BY_DIRECTORY[kind]
    if file.state is FileState.DELETED:
        return SpaceKind.DELETED
    if file.state not in _KEPT or file.name in gone:
        return SpaceKind.TEMPORARY
    if file.kind in _INDEXES:
        return SpaceKind.INDEX
    if topic == CLUSTER_METADATA:
        return SpaceKind.METADATA_LOG
    return SpaceKind.LOG if file.kind is FileKind.LOG else SpaceKind.OTHER


def _add(bytes_: Bytes, status: os.stat_result) -> None:
    bytes_.size += status.st_size
    bytes_.disk += status.st_blocks * BLOCK
    bytes_.files += 1


def _statuses(
    place: Path, left_out: Container[str] = ()
) -> Iterator[tuple[str, os.stat_result] | UnreadableError]:
    """Yield name and status of the files below a directory; links are not followed."""
    try:
        entries = files.list_dir(place)
    except UnreadableError as error:
        yield error
        return
    folder = os.fspath(place)
    for entry in entries:
        if entry.name in left_out:
            continue
        try:
            status = os.lstat(f"{folder}/{entry.name}")
        except FileNotFoundError:
            continue  # A broker that runs removed it.
        except OSError as error:
            yield UnreadableError(place / entry.name, error.strerror or str(error))
            continue
        if stat.S_ISDIR(status.st_mode):
            yield from _statuses(place / entry.name)
        else:
            yield entry.name, status
