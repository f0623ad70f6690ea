"""Every call that changes something on disk, each through `change`: a test stops or fails the n-th.

An error of the system becomes an `UnwritableError` that names the file. Nothing follows a symbolic
link in the last component.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import crc32c

from logtool import files
from logtool.errors import UnwritableError

BLOCK = 1 << 17
"""Bytes read and written at once; small enough to find the holes of a sparse index."""
_ZEROS = bytes(BLOCK)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LINK = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS)


def change(path: Path, call: Callable[..., Any], *arguments: Any) -> Any:
    """Do `call(*arguments)`, which changes something; `path` is what an error names."""
    try:
        return call(*arguments)
    except OSError as error:
        raise UnwritableError(path, error.strerror or str(error)) from error


def make_dir(path: Path) -> None:
    """Make a directory that only its owner may enter; its parent is there."""
    change(path, os.mkdir, path, 0o700)
    sync_dir(path.parent)


def write_new(path: Path, blocks: Iterable[bytes]) -> tuple[int, int]:
    """Write a file that is not there yet and make it durable; returns its size and CRC-32C.

    Blocks of zeros become holes: a pre-allocated index of 10 MiB stays as small as it was.
    """
    fd = change(path, os.open, path, _NEW, 0o600)
    try:
        size = crc = 0
        for block in blocks:
            if block != _ZEROS[: len(block)]:
                write_at(path, fd, block, size)
            size += len(block)
            crc = crc32c.crc32c(block, crc)
        change(path, os.ftruncate, fd, size)
        change(path, os.fsync, fd)
    finally:
        os.close(fd)
    return size, crc


def write_at(path: Path, fd: int, data: bytes, position: int) -> None:
    """Write all of `data` at byte `position`."""
    rest = memoryview(data)
    while rest:
        done = change(path, os.pwrite, fd, rest, position)
        rest, position = rest[done:], position + done


def cut(path: Path, size: int, mtime_ns: int) -> None:
    """Cut a file in place to `size` bytes, durably."""
    fd = _open_writable(path)
    try:
        change(path, os.ftruncate, fd, size)
        _set_time(path, fd, mtime_ns)
        change(path, os.fsync, fd)
    finally:
        os.close(fd)


def append(path: Path, position: int, blocks: Iterable[bytes], mtime_ns: int | None = None) -> None:
    """Let a file go on, and end, with `blocks` from byte `position` on, durably."""
    fd = _open_writable(path)
    try:
        for block in blocks:
            write_at(path, fd, block, position)
            position += len(block)
        change(path, os.ftruncate, fd, position)
        if mtime_ns is not None:
            _set_time(path, fd, mtime_ns)
        change(path, os.fsync, fd)
    finally:
        os.close(fd)


def link(source: Path, target: Path) -> bool:
    """Give a file a second name; False where the file system cannot, or may not, do that."""
    try:
        change(target, lambda: os.link(source, target, follow_symlinks=False))
    except UnwritableError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in _NO_LINK:
            return False
        raise
    return True


def rename(source: Path, target: Path) -> None:
    """Give a file another name; the directory is not made durable yet."""
    change(source, os.rename, source, target)


def remove(path: Path) -> None:
    """Remove a file, if it is there."""
    if os.path.lexists(path):
        change(path, os.unlink, path)


def remove_dir(path: Path) -> None:
    """Remove an empty directory."""
    change(path, os.rmdir, path)


def dress(path: Path, mode: int, owner: tuple[int, int], mtime_ns: int) -> None:
    """Give a file mode, owner (user, group) and mtime where they differ, durably."""
    fd = files.open_readonly(path)
    try:
        status = os.fstat(fd)
        if (status.st_uid, status.st_gid) != owner:
            change(path, os.fchown, fd, *owner)
        # A change of owner may have taken bits away.
        if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
            change(path, os.fchmod, fd, mode)
        if status.st_mtime_ns != mtime_ns:
            _set_time(path, fd, mtime_ns)
        change(path, os.fsync, fd)
    finally:
        os.close(fd)


def set_dir_time(path: Path, mtime_ns: int) -> None:
    """Give a directory its mtime back."""
    if path.stat().st_mtime_ns != mtime_ns:
        change(path, lambda: os.utime(path, ns=(path.stat().st_atime_ns, mtime_ns)))


def sync_dir(path: Path) -> None:
    """Make the names in a directory durable."""
    fd = change(path, os.open, path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        change(path, os.fsync, fd)
    finally:
        os.close(fd)


def sync(paths: Iterable[Path]) -> None:
    """Make the content of files durable."""
    for path in paths:
        sync_file(path)


def sync_file(path: Path) -> None:
    """Make the content of a file durable."""
    fd = files.open_readonly(path)
    try:
        change(path, os.fsync, fd)
    finally:
        os.close(fd)


def read_blocks(path: Path, start: int = 0) -> Iterator[bytes]:
    """Yield the bytes of a file from `start` on."""
    with files.LogFile(path) as source:
        buffer = bytearray(BLOCK)
        while count := source.read_into(memoryview(buffer), start):
            yield bytes(buffer[:count])
            start += count


def _open_writable(path: Path) -> int:
    flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    return int(change(path, os.open, path, flags))


def _set_time(path: Path, fd: int, mtime_ns: int) -> None:
    change(path, lambda: os.utime(fd, ns=(os.fstat(fd).st_atime_ns, mtime_ns)))
