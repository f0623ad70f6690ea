"""One partition directory: its segments in order and the files beside them."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from logtool.disk import files, redpanda_dir
from logtool.disk.files import LogFile
from logtool.disk.flavour import Flavour, forced
from logtool.errors import UnreadableError
from logtool.formats import names
from logtool.formats.names import (
    BadDirectory,
    FileKind,
    FileName,
    FileState,
    PartitionDirectory,
    Reception,
)
from logtool.lazy_dataclass import dataclass

MOST_LOOKS = 5
"""Times that a partition is looked at of which a broker takes away files meanwhile."""
_LISTINGS = 32
"""Directories behind URLs that are listed at once."""
_BLOCK = 512
"""Bytes of the unit in which the system counts blocks, whatever the file system's own is."""


@dataclass(frozen=True, slots=True)
class File:
    """A file as the directory listing showed it."""

    path: Path
    name: FileName
    size: int
    mtime_ns: int
    """Behind a URL: when it was stored there; 0 where that is not known."""
    identity: int | str | None = None
    """The number of its inode; behind a URL its ETag, where the store tells one."""
    allocated: int | None = field(default=None, compare=False)
    """Bytes of the blocks that it takes up; None where that is not known, as behind a URL."""

    def open(self) -> LogFile:
        """Open the file to read it; UnreadableError where that fails, then or later."""
        return LogFile(self.path, self.size)

    def open_listed(self) -> LogFile:
        """Open it, as `open` does, for who holds it against other files of the same listing.

        UnreadableError, as for one that is gone, where another file has its name by now: a broker
        that cleans a log puts new segments in the place of old ones.
        """
        file = self.open()
        if not files.is_remote(self.path):
            now = os.fstat(file.fileno())
            # Some file systems number a file anew at each look: alone it tells nothing.
            known = self.identity in (None, now.st_ino)
            if not known and now.st_mtime_ns != self.mtime_ns:
                file.close()
                raise UnreadableError(self.path, "was replaced by another file", missing=True)
        return file

    def read_listed(self) -> bytes:
        """Return the whole content of a small file, which is opened as by `open_listed`."""
        if files.is_remote(self.path):
            return files.read_small(self.path)
        with self.open_listed() as file:
            files.hold_to_limit(self.path, file.size)
            return file.read(0, file.size)


@dataclass(frozen=True, slots=True)
class Segment:
    """The files that share one base offset; `log` is there, an index may be missing."""

    base_offset: int
    log: File
    indexes: dict[FileKind, File]
    next_base_offset: int | None
    """Base offset of the segment behind it; None for the active segment."""

    @property
    def is_active(self) -> bool:
        """Return whether a broker would append to this segment."""
        return self.next_base_offset is None


@dataclass(frozen=True, slots=True)
class Partition:
    """What a partition directory holds."""

    path: Path
    directory: PartitionDirectory | BadDirectory
    segments: tuple[Segment, ...]
    """By base offset."""
    orphans: tuple[File, ...]
    """Index files with no log of their base offset, by that offset."""
    snapshots: tuple[File, ...]
    """Producer snapshots by offset."""
    kraft_snapshots: tuple[File, ...]
    fixed: dict[FileKind, File]
    """The files whose whole name is fixed, such as leader-epoch-checkpoint."""
    leftovers: tuple[File, ...]
    """``.deleted``, ``.cleaned``, ``.swap``, ``.part`` and ``.tmp`` files."""
    strangers: tuple[File, ...]
    """Files whose name Kafka does not write."""
    odd_entries: tuple[Path, ...]
    """Directories, pipes, devices, links of other names: nothing that a broker reads."""
    is_redpanda: bool = False
    """Whether Redpanda wrote it: then offsets are Raft's, and epochs are terms."""
    others: tuple[File, ...] = ()
    """Of Redpanda: snapshots, compaction indexes and segments that a start has given up."""

    @property
    def topic(self) -> str | None:
        """Return the topic, if the directory's name tells it."""
        return getattr(self.directory, "topic", None)

    @property
    def number(self) -> int | None:
        """Return the partition number, if the directory's name tells it."""
        return getattr(self.directory, "partition", None)

    @property
    def is_metadata_log(self) -> bool:
        """Return whether this is the KRaft metadata log."""
        return self.topic == names.CLUSTER_METADATA

    def files(self) -> Iterator[File]:
        """Yield every regular file, segment by segment and then the rest."""
        for segment in self.segments:
            yield segment.log
            yield from segment.indexes.values()
        for group in (self.orphans, self.snapshots, self.kraft_snapshots, self.leftovers):
            yield from group
        yield from self.fixed.values()
        yield from self.strangers
        yield from self.others


def read(path: Path) -> Partition:
    """List a partition directory; UnreadableError when that is not possible."""
    return files.at_one_moment(path, partial(_described, path))


def _described(path: Path, entries: Sequence[files.Entry]) -> Partition:
    """Return what the entries of a directory are."""
    directory = names.parse_directory(_own_name(path))
    metadata_log = getattr(directory, "topic", None) == names.CLUSTER_METADATA

    def name_of(text: str) -> FileName:
        return names.parse_partition_file(text, metadata_log=metadata_log)

    listed, odd = _listed(path, entries, name_of)
    found = [entry.name for entry in entries]
    of_kafka = any(file.name.kind is FileKind.LOG and is_exact(file) for file in listed)
    of_kafka &= not redpanda_dir.is_surely_partition(path, found)
    if flavour := forced():
        of_kafka = flavour is Flavour.KAFKA
    if not of_kafka and redpanda_dir.is_partition(path, found):
        listed, odd = _listed(path, entries, redpanda_dir.file_name)
        directory = redpanda_dir.directory(path) or directory
        listing = _arrange(path, directory, listed, odd)
        others = [f for f in listed if f.name.kind is FileKind.UNKNOWN and is_exact(f)]
        others = [f for f in others if f.name.state is FileState.LIVE]
        return replace(listing, is_redpanda=True, others=tuple(others))
    return _arrange(path, directory, listed, odd)


def is_exact(file: File) -> bool:
    """Return whether its name is one that a broker writes."""
    return file.name.reception is Reception.EXACT


def _listed(
    path: Path, entries: Sequence[files.Entry], name_of: Callable[[str], FileName]
) -> tuple[list[File], tuple[Path, ...]]:
    """Return the files among entries, and what is no file."""
    listed: list[File] = []
    odd = []
    for entry in entries:
        name = name_of(entry.name)
        if not is_file(entry, name):
            odd.append(path / entry.name)
            continue
        file = describe(path, entry, name)
        if file:
            listed.append(file)
    return listed, tuple(odd)


def read_or_error(path: Path) -> Partition | UnreadableError:
    """List a partition directory, or return why that is not possible."""
    try:
        return read(path)
    except UnreadableError as error:
        return error


def read_each(paths: Sequence[Path]) -> Iterator[Partition | UnreadableError]:
    """List partition directories in order; behind URLs several at once, ahead of who asks.

    A listing there is little more than its way there and back.
    """
    if not any(map(files.is_remote, paths)):
        yield from map(read_or_error, paths)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_LISTINGS) as pool:
        for at in range(0, len(paths), _LISTINGS):
            yield from pool.map(read_or_error, paths[at : at + _LISTINGS])


def is_file(entry: files.Entry, name: FileName) -> bool:
    """Return whether it is a file, or a link in the place of one.

    A broker follows links. Here they are not followed: whoever opens one says that it is unread.
    """
    known = name.kind is not FileKind.UNKNOWN and name.reception is Reception.EXACT
    return entry.is_file(follow_symlinks=False) or (entry.is_symlink() and known)


def describe(parent: Path, entry: files.Entry, name: FileName) -> File | None:
    """Return the file of a directory entry, or None if it vanished since the listing.

    Of a link, size and time are those of what it leads to.
    """
    if not isinstance(entry, os.DirEntry):
        return File(
            path=parent / entry.name,
            name=name,
            size=entry.size,
            mtime_ns=entry.mtime_ns,
            identity=entry.etag,
        )
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    if entry.is_symlink():
        with suppress(OSError):
            status = entry.stat()
    return File(
        path=parent / entry.name,
        name=name,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        identity=status.st_ino,
        allocated=status.st_blocks * _BLOCK,
    )


def _own_name(path: Path) -> str:
    """Return the directory's name, also for ``.`` and for a path that ends in ``..``."""
    return path.name if path.name not in ("", "..") else path.resolve().name


def _arrange(
    path: Path,
    directory: PartitionDirectory | BadDirectory,
    listed: list[File],
    odd: tuple[Path, ...],
) -> Partition:
    def of(*kinds: FileKind) -> list[File]:
        chosen = [
            f
            for f in listed
            if f.name.kind in kinds
            and f.name.state is FileState.LIVE
            and f.name.reception is Reception.EXACT
        ]
        return sorted(chosen, key=lambda f: (*_key(f), f.name.name))

    logs = of(FileKind.LOG)
    indexes: dict[tuple[int, int], dict[FileKind, File]] = {}
    for file in of(*names.INDEX_KINDS, FileKind.REDPANDA_BASE_INDEX):
        indexes.setdefault(_key(file), {})[file.name.kind] = file
    bases = [log.name.offset or 0 for log in logs]
    segments = tuple(
        Segment(
            base_offset=base, log=log, indexes=indexes.pop(_key(log), {}), next_base_offset=after
        )
        for base, log, after in zip(bases, logs, [*bases[1:], None], strict=bool(bases))
    )
    return Partition(
        path=path,
        directory=directory,
        segments=segments,
        orphans=tuple(file for _, group in sorted(indexes.items()) for file in group.values()),
        snapshots=tuple(of(FileKind.PRODUCER_SNAPSHOT)),
        kraft_snapshots=tuple(of(FileKind.KRAFT_SNAPSHOT)),
        fixed={
            f.name.kind: f
            for f in of(
                FileKind.LEADER_EPOCH_CHECKPOINT, FileKind.PARTITION_METADATA, FileKind.QUORUM_STATE
            )
        },
        leftovers=tuple(
            f
            for f in listed
            if f.name.state is not FileState.LIVE and f.name.reception is Reception.EXACT
        ),
        strangers=tuple(f for f in listed if f.name.reception is not Reception.EXACT),
        odd_entries=odd,
    )


def _key(file: File) -> tuple[int, int]:
    """Return what the files of one segment share: its base offset, and Redpanda's its term."""
    return file.name.offset or 0, file.name.epoch or 0
