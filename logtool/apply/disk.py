"""Every call that changes something on disk, each through `change`: a test stops or fails the n-th.

An error of the system becomes an `UnwritableError` that names the file. Files are reached through
an `OpenDir`, so that no link is followed anywhere. A new file gets its owner, mode and times
through the descriptor that wrote it: its name could lead to another file by then.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from logtool.apply.dirfd import ZEROS, OpenDir, OpenFile
from logtool.apply.steps import FileAttributes
from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.errors import LogtoolError, RefusedError, UnreadableError, UnwritableError
from logtool.formats.crc import crc32c

_BLOCK = 1024 * 1024
_PAGE = 1 << 12
"""Bytes of the smallest hole that is made."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_LINK = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS)
_NO_COPY = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EIO)
"""Errors with which the system's own copying fails: it is not possible, or not between these two
files, or a sector cannot be read."""
_ACL = "system.posix_acl_access"
_USER = "user."
"""Attributes that a copy gets. Others are the system's, such as capabilities, which would let a
program do more: a copy never gets them."""


def change(path: Path, call: Callable[..., Any], *arguments: Any) -> Any:
    """Call `call(*arguments)`, which changes something; an error names `path`."""
    try:
        return call(*arguments)
    except OSError as error:
        raise UnwritableError(path, error.strerror or str(error)) from error


def make_dir(home: OpenDir, path: Path) -> OpenDir:
    """Make a directory that only its owner may enter, durably; its parent is there."""
    with home.reach(path) as (fd, name):
        change(path, lambda: os.mkdir(name, 0o700, dir_fd=fd))
    try:
        sync_dir(home, path.parent)
        return OpenDir(path, home)
    except BaseException:
        with suppress(LogtoolError, OSError):
            remove_dir(home, path)
        raise


def create(home: OpenDir, path: Path, mode: int) -> int:
    """Make a file that does not exist yet, and return its descriptor, open for writing."""
    return _open(home, path, _NEW, mode)


def write_new(
    home: OpenDir,
    path: Path,
    blocks: Iterable[bytes],
    look: FileAttributes | None = None,
    like: OpenFile | None = None,
) -> tuple[int, int]:
    """Write a file that does not exist yet, make it durable, and return its size and CRC-32C.

    It gets mode, owner and mtime of `look`, or else only its owner may use it; and the access
    control list and the user's extended attributes of `like`. Pages of zeros become holes: a
    pre-allocated index of 10 MiB, or a log that a power loss left with a long hole, stays small.
    """
    fd = _open(home, path, _NEW, 0o600)
    try:
        size, crc = _write(path, fd, blocks, 0)
        change(path, os.ftruncate, fd, size)
        if look:
            _dress(path, fd, look)
        if like:
            _copy_attributes(path, like.fd, fd)
        if look:
            _set_time(path, fd, look.mtime_ns)
        change(path, os.fsync, fd)
    finally:
        os.close(fd)
    return size, crc


class CopiedRange(NamedTuple):
    """A stretch of an open file that is copied as it is."""

    file: LogFile
    position: int
    size: int


def copy_new(
    home: OpenDir, path: Path, runs: Iterable[CopiedRange], look: FileAttributes | None = None
) -> None:
    """Write a file that does not exist yet from stretches of others, and make it durable.

    If it can, the system copies them by itself; a file system that shares blocks between files
    takes no space for them. UnreadableError if a stretch is gone.
    """
    fd = _open(home, path, _NEW, 0o600)
    try:
        end = 0
        for run in runs:
            _copy(path, fd, run, end)
            end += run.size
        if look:
            _dress(path, fd, look)
            _set_time(path, fd, look.mtime_ns)
        change(path, os.fsync, fd)
    finally:
        os.close(fd)


def cut(home: OpenDir, path: Path, size: int, mtime_ns: int) -> bool:
    """Truncate a file in place to `size` bytes, durably; False if it has other names, too."""
    return append(home, path, size, (), mtime_ns)


def append(
    home: OpenDir, path: Path, position: int, blocks: Iterable[bytes], mtime_ns: int | None = None
) -> bool:
    """Replace the end of a file, from byte `position` on, with `blocks`, durably.

    Return False, and change nothing, for a file that has other names, too.
    """
    fd = _open(home, path, _WRITE)
    try:
        if not _is_alone(path, fd):
            return False
        size, _ = _write(path, fd, blocks, position)
        change(path, os.ftruncate, fd, position + size)
        if mtime_ns is not None:
            _set_time(path, fd, mtime_ns)
        change(path, os.fsync, fd)
    finally:
        os.close(fd)
    return True


def link(source_home: OpenDir, source: Path, home: OpenDir, target: Path) -> bool:
    """Give a file a second name; False where the file system cannot, or may not, do that."""
    with source_home.reach(source) as (from_fd, from_name), home.reach(target) as (fd, name):

        def call() -> None:
            os.link(from_name, name, src_dir_fd=from_fd, dst_dir_fd=fd, follow_symlinks=False)

        try:
            change(target, call)
        except UnwritableError as error:
            cause = error.__cause__
            if isinstance(cause, OSError) and cause.errno in _NO_LINK:
                return False
            raise
    return True


def rename(home: OpenDir, source: Path, target: Path) -> None:
    """Give a file another name; the directory is not made durable yet."""
    with home.reach(source) as (from_fd, from_name), home.reach(target) as (fd, name):
        change(source, lambda: os.rename(from_name, name, src_dir_fd=from_fd, dst_dir_fd=fd))


def remove(home: OpenDir, path: Path) -> None:
    """Remove a file, if it is there."""
    with home.reach(path) as (fd, name):
        try:
            os.stat(name, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            return
        change(path, lambda: os.unlink(name, dir_fd=fd))


def remove_dir(home: OpenDir, path: Path) -> None:
    """Remove an empty directory."""
    with home.reach(path) as (fd, name):
        change(path, lambda: os.rmdir(name, dir_fd=fd))


def remove_tree(home: OpenDir, path: Path) -> None:
    """Remove a file, or a directory with all that it holds; no link is followed."""
    with home.reach(path) as (fd, name):
        is_dir = stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
    if not is_dir:
        remove(home, path)
        return
    folder = OpenDir(path, home)
    for name in folder.names():
        remove_tree(folder, path / name)
    folder.close()
    remove_dir(home, path)


def set_dir_time(home: OpenDir, path: Path, mtime_ns: int) -> None:
    """Give a directory its mtime back."""
    directory = _directory(home, path)
    _set_time(path, directory.fd, mtime_ns)


def sync_dir(home: OpenDir, path: Path) -> None:
    """Make the names in a directory durable."""
    directory = _directory(home, path)
    change(path, os.fsync, directory.fd)


def sync_file(home: OpenDir, path: Path) -> None:
    """Make the content of a file durable."""
    with OpenFile(home, path) as file:
        change(path, os.fsync, file.fd)


def sync(paths: Iterable[Path]) -> None:
    """Make the content of files durable."""
    for path in paths:
        fd = files.open_readonly(path)
        try:
            change(path, os.fsync, fd)
        finally:
            os.close(fd)


def _open(home: OpenDir, path: Path, flags: int, mode: int = 0) -> int:
    with home.reach(path) as (fd, name):
        opened = int(change(path, lambda: os.open(name, flags, mode, dir_fd=fd)))
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise RefusedError(f"{path}: is not a regular file")
    return opened


def _directory(home: OpenDir, path: Path) -> OpenDir:
    return home if path == home.path else OpenDir(path, home)


def _is_alone(path: Path, fd: int) -> bool:
    """Return whether a file has one name only: to change it in place changes nothing else.

    A file outside of the log dir that somebody linked into it has two names.
    """
    return os.fstat(fd).st_nlink == 1


def _write(path: Path, fd: int, blocks: Iterable[bytes], position: int) -> tuple[int, int]:
    """Write blocks behind the content, from byte `position` on; return their size and CRC."""
    size = crc = 0
    for block in blocks:
        for start, end in _data(block):
            _write_at(path, fd, memoryview(block)[start:end], position + size + start)
        size += len(block)
        crc = crc32c(block, crc)
    return size, crc


def _copy(path: Path, fd: int, run: CopiedRange, position: int) -> None:
    """Copy a stretch to a byte of a new file."""
    calls = [] if files.is_remote(run.file.path) else [_by_range, _by_sending]
    done = 0
    while done < run.size:
        rest = CopiedRange(run.file, run.position + done, run.size - done)
        if not calls:
            block = rest.file.read(rest.position, min(rest.size, _BLOCK))
            if not block:
                raise UnreadableError(run.file.path, "became shorter while logtool read it")
            _write_at(path, fd, memoryview(block), position + done)
            done += len(block)
            continue
        try:
            count = change(path, calls[0], fd, rest, position + done)
        except UnwritableError as error:
            cause = error.__cause__
            if not isinstance(cause, OSError) or cause.errno not in _NO_COPY:
                raise
            count = 0
        if not count:
            calls.pop(0)
        done += count


def _by_range(fd: int, run: CopiedRange, position: int) -> int:
    return os.copy_file_range(run.file.fileno(), fd, run.size, run.position, position)


def _by_sending(fd: int, run: CopiedRange, position: int) -> int:
    os.lseek(fd, position, os.SEEK_SET)
    return os.sendfile(fd, run.file.fileno(), run.position, run.size)


def _write_at(path: Path, fd: int, rest: memoryview, position: int) -> None:
    while rest:
        done = change(path, os.pwrite, fd, rest, position)
        rest, position = rest[done:], position + done


def _data(block: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end of each part of a block that is not whole pages of zeros."""
    start = None
    for position in range(0, len(block), _PAGE):
        size = min(_PAGE, len(block) - position)
        if block[position : position + size] != ZEROS[:size]:
            start = position if start is None else start
        elif start is not None:
            yield start, position
            start = None
    if start is not None:
        yield start, len(block)


def _dress(path: Path, fd: int, look: FileAttributes) -> None:
    """Give a file that was just written owner and mode."""
    status = os.fstat(fd)
    if (status.st_uid, status.st_gid) != (look.user, look.group):
        change(path, os.fchown, fd, look.user, look.group)
    if stat.S_IMODE(os.fstat(fd).st_mode) != look.mode:
        change(path, os.fchmod, fd, look.mode)


def _copy_attributes(path: Path, source: int, target: int) -> None:
    """Give a file the access control list and the user's extended attributes of another."""
    wanted, there = _attributes(source), _attributes(target)
    for name in sorted(there.keys() - wanted.keys()):  # of the directory's default list
        change(path, os.removexattr, target, name)
    for name, value in wanted.items():
        if there.get(name) != value:
            try:
                change(path, os.setxattr, target, name, value)
            except UnwritableError as error:
                text = f"cannot get the extended attribute {name}: {error.reason}"
                raise UnwritableError(path, text) from error


def _attributes(fd: int) -> dict[str, bytes]:
    try:
        names = os.listxattr(fd)
    except OSError:  # of a file system that has none
        return {}
    wanted = [name for name in names if name == _ACL or name.startswith(_USER)]
    return {name: os.getxattr(fd, name) for name in wanted}


def _set_time(path: Path, fd: int, mtime_ns: int) -> None:
    if os.fstat(fd).st_mtime_ns != mtime_ns:
        change(path, lambda: os.utime(fd, ns=(os.fstat(fd).st_atime_ns, mtime_ns)))
