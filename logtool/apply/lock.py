"""A broker's own lock on a log dir, Kafka's or Redpanda's, taken as the broker takes it."""

import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from logtool.apply import disk
from logtool.apply.dirfd import OpenDir
from logtool.disk import in_use
from logtool.errors import RefusedError, UnreadableError, UnwritableError
from logtool.log import opening
from logtool.log.flavour import Flavour
from logtool.log.kafka import KAFKA

_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OURS = re.compile(rb"logtool (-?[0-9]{1,19})\n")
"""Content of a ``.lock`` that `locked` made: the mtime that its directory had before, in ns. A
broker's lock is empty, and a broker does not read it. A later `locked` removes one that a kill left
behind."""

_AT_ONCE = 100_000_000
"""Tolerance in ns: the mtime of a directory and the ctime of a new file in it differ by less."""


@contextmanager
def locked(log_dir: Path, flavour: Flavour | None = None) -> Iterator[None]:
    """Hold the ``.lock`` of `log_dir`; RefusedError names the process that has it.

    In a data directory of Redpanda it is the ``pid.lock``; `flavour` overrules the names. A lock
    that was not there is removed again, and the directory keeps its mtime. It is a POSIX record
    lock, as ``FileLock`` of Kafka: this process would lose it as soon as it closed any other
    descriptor of that file, so `in_use.holder` knows of it. May be nested.
    """
    if in_use.is_locked_here(log_dir):
        yield
        return
    path = log_dir / _name_in(log_dir, flavour)
    home = _opened(log_dir, path)
    fd = _open(home, path)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise RefusedError(f"{path}: is not a regular file")
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RefusedError(
                f"{path}: is locked by {_who(log_dir)}; stop that process first"
            ) from error
        except OSError as error:
            raise UnwritableError(path, error.strerror or str(error)) from error
        mtime_ns = _made_by_us(home, fd)
        with in_use.locked_here(log_dir):
            try:
                if mtime_ns is not None:
                    disk.set_dir_time(home, home.path, mtime_ns)
                yield
            finally:
                # Before it is unlocked, so that no other process can have taken it.
                if mtime_ns is not None:
                    _remove(home, path.name)
    finally:
        os.close(fd)


def _name_in(log_dir: Path, flavour: Flavour | None) -> str:
    with suppress(UnreadableError):
        return opening.flavour_at(log_dir, flavour).lock
    return KAFKA.lock


def _opened(log_dir: Path, path: Path) -> OpenDir:
    try:
        return OpenDir(log_dir.resolve())
    except UnreadableError as error:
        reason = "there is no such directory" if error.missing else error.reason
        raise UnwritableError(path, reason) from error


def _open(home: OpenDir, path: Path) -> int:
    """Return a descriptor of the lock file, which is made if it does not exist."""
    name = path.name
    try:
        return os.open(name, _FLAGS, dir_fd=home.fd)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise UnwritableError(path, error.strerror or str(error)) from error
    folder = os.fstat(home.fd)
    fd, named = _nameless(home, path)
    try:
        try:
            os.write(fd, b"logtool %d\n" % folder.st_mtime_ns)
        except OSError as error:
            if named:
                _remove(home, name)
            raise UnwritableError(path, error.strerror or str(error)) from error
        # After a kill it stays: the broker's own user must be able to open it then.
        with suppress(OSError):
            os.fchown(fd, folder.st_uid, folder.st_gid)
            os.fchmod(fd, stat.S_IMODE(folder.st_mode) & 0o666)
        if not named:
            disk.change(path, lambda: os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=home.fd))
    except BaseException:
        os.close(fd)
        raise
    return fd


def _nameless(home: OpenDir, path: Path) -> tuple[int, bool]:
    """Return the descriptor of a new file, and whether it has its name already.

    If the file system can do so, the file has no name yet, so that a kill leaves no part of one.
    """
    flags = os.O_RDWR | os.O_CLOEXEC
    try:
        return os.open(".", flags | os.O_TMPFILE, 0o600, dir_fd=home.fd), False
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            raise UnwritableError(path, error.strerror or str(error)) from error
    flags |= os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    fd = disk.change(path, lambda: os.open(path.name, flags, 0o600, dir_fd=home.fd))
    return int(fd), True


def _made_by_us(home: OpenDir, fd: int) -> int | None:
    """Return the mtime of the directory before the lock was made, None for a broker's lock.

    If a kill left the lock behind, the directory has the time of the lock. If the directory was
    changed since then, its present mtime is returned.
    """
    mark = _OURS.fullmatch(os.pread(fd, 64, 0))
    if not mark:
        return None
    now = os.fstat(home.fd).st_mtime_ns
    return int(mark[1]) if abs(now - os.fstat(fd).st_ctime_ns) < _AT_ONCE else now


def _remove(home: OpenDir, name: str) -> None:
    mtime_ns = os.fstat(home.fd).st_mtime_ns
    with suppress(UnwritableError, OSError):
        disk.remove(home, home.path / name)
        disk.set_dir_time(home, home.path, mtime_ns)


def _who(log_dir: Path) -> str:
    holder = in_use.holder(log_dir)
    if holder is None or not holder.pid:
        return "another process"
    return f"{holder.command or 'a process'} (pid {holder.pid})"
