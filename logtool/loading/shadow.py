"""A picture of a partition directory, which the steps of loading change instead of the disk.

A file of it is a file on disk, cut at `size`, or bytes that would be written. `Shadow.changes`
returns the changes that would turn the directory on disk into the picture.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from logtool.actions import Change, FileChange, Stamp
from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.disk.joined import Joined
from logtool.formats import names
from logtool.formats.names import FileKind, FileState
from logtool.lazy_dataclass import dataclass
from logtool.log.file import File

_SNAPSHOT = ".snapshot"


@dataclass(frozen=True, slots=True)
class ShadowFile:
    """One file of the picture."""

    origin: File | None
    """The file on disk; None for a file that would be new."""
    size: int
    content: bytes | None = None
    """Bytes that would be written; None if the bytes on disk stay, or `joined` is written."""
    joined: Joined | None = None
    """A log that would be put together from pieces of others."""

    def read(self, start: int = 0, size: int | None = None) -> bytes:
        """Return the bytes from `start` on; UnreadableError where the file cannot be read.

        Without a `size` the whole file is read into memory, for which it must not be too large.
        """
        end = self.size if size is None else min(start + size, self.size)
        if self.joined is None and (self.content is not None or self.origin is None):
            return (self.content or b"")[start:end]
        if size is None and self.origin:
            files.hold_to_limit(self.origin.path, self.size)
        with self.open() as file:
            data = memoryview(bytearray(max(end - start, 0)))
            return bytes(data[: file.read_into(data, start)])

    def read_entries(self) -> bytes:
        """Return the bytes of an index without most of the zeros at its end."""
        if self.origin is None or self.content is not None or self.joined is not None:
            return self.read()
        files.hold_to_limit(self.origin.path, self.size)
        with self.origin.open() as file:
            return file.read_unpadded(self.size)

    def open(self) -> "LogFile | Joined | _Memory":
        """Open a log, as long as it would be, to be scanned."""
        if self.joined is not None:
            return self.joined
        if self.content is not None or self.origin is None:
            return _Memory(self.content or b"")
        file = self.origin.open()
        file.size = min(file.size, self.size)
        return file


class _Memory:
    """A log that is not on disk, read like one that is."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the number of bytes that were read."""
        piece = self._data[position : position + len(buffer)]
        buffer[: len(piece)] = piece
        return len(piece)

    def __enter__(self) -> "_Memory":
        return self

    def __exit__(self, *error: object) -> None:
        pass


class Snapshots:
    """The names of producer snapshots by their offsets."""

    def __init__(self, found: dict[int, str]) -> None:
        self._names = found
        self.offsets = sorted(found)
        """Offsets in ascending order."""

    def __bool__(self) -> bool:
        return bool(self.offsets)

    def __getitem__(self, offset: int) -> str:
        return self._names[offset]

    def get(self, offset: int) -> str | None:
        """Return the name of the snapshot of an offset, None without one."""
        return self._names.get(offset)

    def add(self, offset: int, name: str) -> None:
        """Add a snapshot; it replaces one of the same offset."""
        if offset not in self._names:
            insort(self.offsets, offset)
        self._names[offset] = name

    def remove(self, offset: int) -> None:
        """Remove the snapshot of an offset, if there is one."""
        if self._names.pop(offset, None) is not None:
            del self.offsets[bisect_left(self.offsets, offset)]

    def copy(self) -> "Snapshots":
        """Return a listing that later changes of this one do not alter."""
        made = Snapshots({})
        made._names, made.offsets = self._names.copy(), self.offsets.copy()
        return made


class OccupiedError(Exception):
    """A file cannot be written: an I/O error in the eyes of a broker."""


class Shadow:
    """The files of one directory by name."""

    def __init__(self, path: Path, files: Iterable[File], occupied: Iterable[str] = ()) -> None:
        self.path = path
        self._occupied = frozenset(occupied)
        """Names of entries that are no files."""
        self.before = {file.path.name: file for file in files}
        self.files = {name: ShadowFile(file, file.size) for name, file in self.before.items()}
        self._snapshots: Snapshots | None = None

    def __contains__(self, name: str) -> bool:
        return name in self.files

    def __iter__(self) -> Iterator[str]:
        """Yield the names in the order in which a broker looks at them."""
        return iter(sorted(self.files))

    def write(self, name: str, content: bytes) -> None:
        """Give a file other bytes, or make it; OccupiedError where something else has the name."""
        if name in self._occupied:
            raise OccupiedError(f"{name} is not a file")
        origin = self.before.get(name)
        if origin and content == _unchanged(origin, len(content)):
            self.files[name] = ShadowFile(origin, origin.size)
        else:
            self.files[name] = ShadowFile(None, len(content), content)
        self._follow(name)

    def truncate(self, name: str, size: int) -> None:
        """Cut a file that is longer."""
        file = self.files[name]
        if size < file.size:
            content = None if file.content is None else file.content[:size]
            joined = None if file.joined is None else file.joined.cut(size)
            self.files[name] = replace(file, size=size, content=content, joined=joined)

    def join(self, name: str, joined: Joined) -> None:
        """Give a log bytes that come from other files."""
        if name in self._occupied:
            raise OccupiedError(f"{name} is not a file")
        self.files[name] = ShadowFile(None, joined.size, joined=joined)

    def remove(self, name: str) -> None:
        """Remove a file from the shadow."""
        del self.files[name]
        self._follow(name)

    def rename(self, name: str, target: str) -> None:
        """Give a file another name; one of that name is gone afterwards."""
        self.files[target] = self.files.pop(name)
        self._follow(name)
        self._follow(target)

    def snapshots(self, *, copied: bool = True) -> Snapshots:
        """Return a listing of the producer snapshots; if `copied`, later changes do not alter it.

        Where two names have one offset, such as ``1.snapshot``, the last one counts.
        """
        if self._snapshots is None:
            by_offset = ((_snapshot_offset(name), name) for name in self)
            self._snapshots = Snapshots({o: name for o, name in by_offset if o is not None})
        return self._snapshots.copy() if copied else self._snapshots

    def _follow(self, name: str) -> None:
        """Update the listing of snapshots after a change of `name`."""
        offset = _snapshot_offset(name)
        if offset is None or self._snapshots is None:
            return
        listed, there = self._snapshots.get(offset), name in self.files
        if listed not in (None, name) or name != _snapshot_name(offset):
            self._snapshots = None  # two names of one offset
        elif there:
            self._snapshots.add(offset, name)
        elif listed:
            self._snapshots.remove(offset)

    def changes(self) -> list[Change]:
        """Return the changes that turn the directory on disk into this one, in a valid order."""
        stays = {f.origin.path.name: name for name, f in self.files.items() if f.origin}
        gone = [
            Change(kind=FileChange.REMOVE, path=file.path, seen=_stamp(file))
            for name, file in sorted(self.before.items())
            if name not in stays and not self._is_rewritten(name, stays)
        ]
        cuts, renames, writes = [], [], []
        for name in self:
            file = self.files[name]
            origin, path = file.origin, self.path / name
            if origin is None:
                old = self.before.get(name)
                rewritten = old and self._is_rewritten(name, stays)
                kind = FileChange.REPLACE if rewritten else FileChange.CREATE
                seen = _stamp(old) if old and kind is FileChange.REPLACE else None
                writes.append(
                    Change(
                        kind=kind,
                        path=path,
                        seen=seen,
                        content=None if file.joined else file.content or b"",
                        blocks=file.joined,
                    )
                )
                continue
            if file.size < origin.size:
                cuts.append(
                    Change(
                        kind=FileChange.TRUNCATE,
                        path=origin.path,
                        seen=_stamp(origin),
                        size=file.size,
                    )
                )
            if origin.path.name != name:
                # A cut before it leaves another stamp.
                seen = _stamp(origin) if file.size == origin.size else None
                renames.append(
                    Change(kind=FileChange.RENAME, path=origin.path, seen=seen, target=path)
                )
        return [*gone, *cuts, *renames, *writes]

    def _is_rewritten(self, name: str, stays: Mapping[str, str]) -> bool:
        """Return whether the file of this name on disk gets other bytes and keeps its name."""
        file = self.files.get(name)
        return bool(file and file.origin is None and name in self.before and name not in stays)


def _snapshot_offset(name: str) -> int | None:
    """Return the offset of a producer snapshot, None for any other file."""
    if not name.endswith(_SNAPSHOT):
        return None
    parsed = names.parse_partition_file(name)
    is_one = parsed.kind is FileKind.PRODUCER_SNAPSHOT and parsed.state is FileState.LIVE
    return (parsed.offset or 0) if is_one else None


def _snapshot_name(offset: int) -> str:
    return names.format_partition_file(offset, FileKind.PRODUCER_SNAPSHOT)


def _unchanged(origin: File, size: int) -> bytes | None:
    """Return the bytes on disk where there are `size` of them."""
    return ShadowFile(origin, origin.size).read() if origin.size == size else None


def _stamp(file: File) -> Stamp:
    return Stamp(file.size, file.mtime_ns)
