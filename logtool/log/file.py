"""One file of a log dir, as the listing of its directory showed it."""

import os
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.formats.names import FileKind, FileName, Reception
from logtool.lazy_dataclass import dataclass

_BLOCK = 512
"""Bytes of the unit in which the system counts blocks; file systems may have another one."""
_REPLACED = "was replaced by another file"


@dataclass(frozen=True, slots=True)
class File:
    """A file as the directory listing showed it."""

    path: Path
    name: FileName
    size: int
    mtime_ns: int
    """Behind a URL: when it was stored there; 0 where that is not known."""
    identity: int | str | None = None
    """The number of its inode; behind a URL its ETag, where the store has one."""
    allocated: int | None = field(default=None, compare=False)
    """Bytes of the blocks that it takes up; None where that is not known, as behind a URL."""

    def open(self) -> LogFile:
        """Open the file to read it; UnreadableError where that fails, then or later."""
        return LogFile(self.path, self.size)

    def open_listed(self) -> LogFile:
        """Open it, as `open` does, for who holds it against other files of the same listing.

        UnreadableError, as for one that is gone, where another file has its name by now: a broker
        that cleans a log puts new segments in the place of old ones, often with the time of the old
        ones (``Cleaner.cleanSegments``).
        """
        file = self.open()
        if not files.is_remote(self.path):
            now = os.fstat(file.fileno())
            # Some file systems give a file a new number each time: the number proves nothing.
            known = self.identity in (None, now.st_ino)
            if not known and (now.st_mtime_ns, now.st_size) != (self.mtime_ns, self.size):
                file.close()
                raise UnreadableError(self.path, _REPLACED, missing=True)
        return file

    def hold_to_store(self) -> None:
        """Raise UnreadableError if the file is behind a URL and another has its name by now."""
        if files.is_remote(self.path):
            etag = None if self.identity is None else str(self.identity)
            if files.is_replaced(self.path, self.mtime_ns, etag):
                raise UnreadableError(self.path, _REPLACED, missing=True)

    def read_index(self) -> tuple[bytes, int]:
        """Return the content of an index without most of the zeros at its end, and its size."""
        if files.is_remote(self.path):
            data = files.read_small(self.path)
            return data, len(data)
        with self.open_listed() as file:
            files.hold_to_limit(self.path, file.size)
            return file.read_unpadded(file.size), file.size

    def read_listed(self) -> bytes:
        """Return the whole content of a small file, which is opened as by `open_listed`."""
        if files.is_remote(self.path):
            return files.read_small(self.path)
        with self.open_listed() as file:
            files.hold_to_limit(self.path, file.size)
            return file.read(0, file.size)


def is_exact(file: File) -> bool:
    """Return whether its name is one that a broker writes."""
    return file.name.reception is Reception.EXACT


def is_file(entry: files.Entry, name: FileName) -> bool:
    """Return whether it is a file, or a link in the place of one.

    A broker follows links. Here they are not followed: a link is reported when it is opened.
    """
    known = name.kind is not FileKind.UNKNOWN and name.reception is Reception.EXACT
    return entry.is_file(follow_symlinks=False) or (entry.is_symlink() and known)


def size_of(entry: files.Entry) -> int:
    """Return the size of a directory entry, of a link its own; 0 if it vanished."""
    if not isinstance(entry, os.DirEntry):
        return entry.size
    with suppress(OSError):
        return entry.stat(follow_symlinks=False).st_size
    return 0


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
