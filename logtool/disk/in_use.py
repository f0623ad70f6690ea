"""Check whether a broker uses a directory, without taking a lock and without writing."""

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats.names import FileKind
from logtool.formats.redpanda.names import LOCK as REDPANDA_LOCK
from logtool.lazy_dataclass import dataclass

# struct flock of Linux on 64-bit machines: type, whence, start, length, pid.
_FLOCK = struct.Struct("hhqqi4x")

_locked_here: set[Path] = set()


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a log dir's ``.lock``."""

    pid: int
    """0 if the system does not report it (another container or host)."""
    command: str
    """The program's name, empty when it cannot be found out."""


def holder(log_dir: Path) -> Holder | None:
    """Return the process that holds ``.lock``, or Redpanda's ``pid.lock``, in `log_dir`, or None.

    Kafka's ``FileLock`` is a POSIX record lock, so the question is F_GETLK; the file itself stays
    behind after a kill and proves nothing. None for a lock of this process itself, which would
    lose it if it opened and closed the file.
    """
    if is_locked_here(log_dir):
        return None
    return _holder(log_dir / FileKind.LOCK.value) or _holder(log_dir / REDPANDA_LOCK)


def _holder(lock: Path) -> Holder | None:
    try:
        fd = files.open_readonly(lock)
    except UnreadableError:
        return None
    try:
        question = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, question))
    except OSError:
        return None
    finally:
        os.close(fd)
    if kind == fcntl.F_UNLCK:
        return None
    return Holder(max(pid, 0), _command(pid))


def is_locked_here(log_dir: Path) -> bool:
    """Return whether this process itself holds the lock of `log_dir`."""
    return log_dir.resolve() in _locked_here


@contextmanager
def locked_here(log_dir: Path) -> Iterator[None]:
    """Record that this process holds the lock of `log_dir` inside of the block."""
    path = log_dir.resolve()
    _locked_here.add(path)
    try:
        yield
    finally:
        _locked_here.discard(path)


def _command(pid: int) -> str:
    import psutil  # here, because only a directory in use needs it

    try:
        return str(psutil.Process(pid).name()) if pid > 0 else ""
    except psutil.Error:
        return ""
