"""Kafka's own lock on a log dir, taken the way a broker takes it."""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from logtool import broker
from logtool.apply import disk
from logtool.errors import RefusedError, UnwritableError
from logtool.formats.names import FileKind

_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def locked(log_dir: Path) -> Iterator[None]:
    """Hold the ``.lock`` of `log_dir`; RefusedError names the process that has it.

    A ``.lock`` that was not there is removed again, and the directory keeps its mtime. The lock is
    a POSIX record lock, as ``FileLock`` of Kafka: it would be lost as soon as this process closed
    any other descriptor of that file, which is why `broker.holder` is told of it. May be nested.
    """
    if broker.is_held_here(log_dir):
        yield
        return
    path = log_dir / FileKind.LOCK.value
    fd, made = _open(path)
    try:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RefusedError(f"{path}: {_who(log_dir)} holds it; stop it first") from error
        except OSError as error:
            raise UnwritableError(path, error.strerror or str(error)) from error
        with broker.held_here(log_dir):
            try:
                yield
            finally:
                # Before it is let go, so that nobody else can have taken it.
                if made:
                    with suppress(UnwritableError, OSError), _time_kept(log_dir):
                        disk.remove(path)
    finally:
        os.close(fd)


def _open(path: Path) -> tuple[int, bool]:
    """Return a descriptor of the lock file and whether it was made for it."""
    try:
        return os.open(path, _FLAGS), False
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise UnwritableError(path, "there is no such directory") from None
    except OSError as error:
        raise UnwritableError(path, error.strerror or str(error)) from error
    with _time_kept(path.parent):
        fd = disk.change(path, os.open, path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o644)
        home = path.parent.stat()
        # After a kill it stays: the broker's own user must be able to open it then.
        with suppress(OSError):
            os.fchown(fd, home.st_uid, home.st_gid)
            os.fchmod(fd, stat.S_IMODE(home.st_mode) & 0o666)
    return fd, True


@contextmanager
def _time_kept(directory: Path) -> Iterator[None]:
    before = directory.stat().st_mtime_ns
    yield
    with suppress(UnwritableError, OSError):
        disk.set_dir_time(directory, before)


def _who(log_dir: Path) -> str:
    holder = broker.holder(log_dir)
    if holder is None or not holder.pid:
        return "another process"
    return f"{holder.command or 'a process'} (pid {holder.pid})"
