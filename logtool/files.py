"""Opening and reading files of a data directory: read-only by construction.

Every open is O_RDONLY, does not follow a symbolic link in the last component and never blocks on
a pipe. What cannot be read is an `UnreadableError` with the path and the system's reason.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from logtool.errors import UnreadableError

SMALL_FILE_LIMIT = 64 * 1024 * 1024
"""Bytes of the largest file that is read whole: six times the largest default index."""

_READ_AT_ONCE = 128 * 1024
"""Bytes of a file that is read before reading ahead makes a difference."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def open_readonly(path: Path) -> int:
    """Return a file descriptor for reading a regular file."""
    return _open(path)[0]


def read_small(path: Path, limit: int = SMALL_FILE_LIMIT) -> bytes:
    """Return the whole content of a file of at most `limit` bytes."""
    with LogFile(path) as file:
        if file.size > limit:
            raise UnreadableError(path, f"is {file.size} bytes, more than the limit of {limit}")
        return file.read(0, file.size)


def list_dir(path: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a directory, sorted by name."""
    with _translated(path), os.scandir(path) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def is_dir(entry: os.DirEntry[str]) -> bool:
    """Return whether it is a directory or leads to one; a link that leads nowhere does not."""
    try:
        return entry.is_dir()
    except OSError:
        return False


class LogFile:
    """A file read at positions; survives that it grows or shrinks meanwhile.

    `size` is what it was when opened: what is appended later is not looked at, and where it
    shrank `read_into` returns less than asked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd, self.size = _open(path)
        if self.size > _READ_AT_ONCE:
            os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from byte `position`; returns how many bytes the file still had."""
        done = 0
        with _translated(self.path):
            while done < len(buffer):
                count = os.preadv(self._fd, [buffer[done:]], position + done)
                if count == 0:
                    break
                done += count
        return done

    def read(self, position: int, size: int) -> bytes:
        """Return `size` bytes from byte `position` on, fewer where the file ends."""
        with _translated(self.path):
            return os.pread(self._fd, size, position)

    def forget(self, position: int, size: int) -> None:
        """Tell the system that these bytes will not be read again and need no page cache."""
        os.posix_fadvise(self._fd, position, size, os.POSIX_FADV_DONTNEED)

    def size_now(self) -> int:
        """Return the size at this moment."""
        return os.fstat(self._fd).st_size

    def __enter__(self) -> "LogFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        os.close(self._fd)


def _open(path: Path) -> tuple[int, int]:
    """Return a file descriptor for reading a regular file, and its size."""
    with _translated(path):
        fd = os.open(path, _FLAGS)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise UnreadableError(path, "is not a regular file")
    return fd, status.st_size


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn an OSError into one line that names the file."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnreadableError(path, "is a symbolic link, which is not followed") from error
        missing = error.errno == errno.ENOENT
        raise UnreadableError(path, error.strerror or str(error), missing=missing) from error
