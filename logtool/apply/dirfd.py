"""A directory held open: files below it are reached from its descriptor, and no link is followed.

A user who may write in a log dir could put a link in place of a partition dir between a check and
the call that relies on it. So there is no such check: each call opens one directory after the other
with ``O_NOFOLLOW`` and names the file in the last of them, and a link on the way is an error.
"""

import errno
import os
import pwd
import stat
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logtool.disk.files import translated
from logtool.errors import RefusedError, UnreadableError

BLOCK = 1 << 17
"""Bytes read and written at once."""
ZEROS = bytes(BLOCK)
MOST_MODE = 0o777
"""A file that is changed, or put back, has no set-user-id, set-group-id or sticky bit."""
_ON_THE_WAY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class OpenDir:
    """An open directory: it stays the same directory even if its name leads elsewhere later."""

    def __init__(self, path: Path, parent: "OpenDir | None" = None) -> None:
        """Open `path`, which is absolute and resolved, below `parent` or from the root."""
        self.path = path
        if parent:
            with parent.reach(path) as (fd, name), translated(path):
                self.fd = os.open(name, _DIRECTORY, dir_fd=fd)
        else:
            root = os.open("/", _ON_THE_WAY)
            with translated(path), _descended(root, Path("/"), path.parts[1:]) as fd:
                self.fd = os.open(".", _DIRECTORY, dir_fd=fd)
        self._closing = weakref.finalize(self, os.close, self.fd)

    @contextmanager
    def reach(self, path: Path) -> Iterator[tuple[int, str]]:
        """Yield the descriptor of the directory that `path` lies in, and its name in there.

        RefusedError for a path that leads out of this directory or through a link,
        FileNotFoundError where a directory on the way is not there.
        """
        if not path.is_relative_to(self.path) or ".." in path.parts:
            raise RefusedError(f"{path}: is not inside {self.path}")
        *way, name = path.relative_to(self.path).parts or (".",)
        with _descended(os.dup(self.fd), self.path, way) as fd:
            yield fd, name

    def look(self, path: Path) -> os.stat_result | None:
        """Return the status of a file, None if it is missing; RefusedError if it is not a file."""
        try:
            with self.reach(path) as (fd, name):
                status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnreadableError(path, error.strerror or str(error)) from error
        if not stat.S_ISREG(status.st_mode):
            raise RefusedError(f"{path}: is not a regular file")
        return status

    def names(self) -> list[str]:
        """Return the names in this directory, sorted."""
        with translated(self.path), os.scandir(self.fd) as entries:
            return sorted(entry.name for entry in entries)

    def close(self) -> None:
        """Close the directory now, and not only when this object is deleted."""
        self._closing()


class OpenFile:
    """A regular file that was opened for reading; use as a context manager."""

    def __init__(self, home: OpenDir, path: Path) -> None:
        """Open `path` below `home`; UnreadableError or RefusedError name it."""
        self.path = path
        with home.reach(path) as (fd, name), translated(path):
            self.fd = os.open(name, _READ, dir_fd=fd)
        self.status = os.fstat(self.fd)
        if not stat.S_ISREG(self.status.st_mode):
            os.close(self.fd)
            raise RefusedError(f"{path}: is not a regular file")

    def blocks(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes from `start` on, fewer where the file ends; holes are not read."""
        size = os.fstat(self.fd).st_size
        end = size if end is None else min(size, end)
        data = -1
        while start < end:
            count = min(BLOCK, end - start)
            with translated(self.path):
                if data <= start:
                    data = _next_data(self.fd, start, size)
                block = ZEROS[:count] if start + count <= data else os.pread(self.fd, count, start)
            if not block:
                return
            yield block
            start += len(block)

    def __enter__(self) -> "OpenFile":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)


def check_trusted(path: Path, fd: int) -> None:
    """Raise RefusedError if another user than the caller or root owns a file or may write to it."""
    status = os.fstat(fd)
    if status.st_uid not in (0, os.geteuid()):
        raise RefusedError(
            f"{path}: belongs to {_user(status.st_uid)}, neither to you nor to root; logtool "
            "does not trust it"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise RefusedError(
            f"{path}: users other than its owner may write there (mode "
            f"{stat.S_IMODE(status.st_mode):04o}); logtool does not trust it"
        )


@contextmanager
def _descended(fd: int, path: Path, way: "list[str] | tuple[str, ...]") -> Iterator[int]:
    """Yield the descriptor of the directory at the end of `way`, from `fd` on; close `fd`."""
    try:
        for name in way:
            path /= name
            try:
                below = os.open(name, _ON_THE_WAY, dir_fd=fd)
            except OSError as error:
                # The system returns these for a link in place of a directory.
                if error.errno in (errno.ENOTDIR, errno.ELOOP):
                    text = f"{path}: is not a directory; logtool follows no symbolic links here"
                    raise RefusedError(text) from error
                error.filename = str(path)
                raise
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def _next_data(fd: int, position: int, size: int) -> int:
    """Return the position of the next byte that is not in a hole; `size` if only a hole follows."""
    try:
        return os.lseek(fd, position, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return size
        return position  # a file system that does not report holes: everything is read


def _user(number: int) -> str:
    try:
        return f"user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"user {number}"
