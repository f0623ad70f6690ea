"""Output that is not complete yet: its locks, and the rest that a killed run left.

`logtool.disk.unfinished` has its names. A run holds a lock on its output: what no process locks is
left of a run that was killed, and the next run in the same place removes it.
"""

import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from logtool.apply import disk
from logtool.apply.dirfd import OpenDir
from logtool.disk.unfinished import ENDING
from logtool.errors import LogtoolError, RefusedError, UnreadableError, UnwritableError


@contextmanager
def new_file(target: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Yield a new file that gets the name `target` when the context ends without an error.

    RefusedError if `target` exists then; UnwritableError if the file cannot be written.
    """
    target = target.parent.resolve() / target.name
    try:
        home = OpenDir(target.parent)
    except (OSError, UnreadableError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise UnwritableError(target, reason) from error
    discard(home)
    path, fd = _begun(home, mode)
    try:
        with os.fdopen(fd, "wb", closefd=False) as file:
            yield file
        disk.change(path, os.fsync, fd)
        _name(home, path, target)
    finally:
        with suppress(LogtoolError):  # The next run removes it, too.
            disk.remove(home, path)
        os.close(fd)
    disk.sync_dir(home, home.path)


def discard(home: OpenDir) -> None:
    """Remove the files in a directory that killed runs left unfinished."""
    for name in home.names():
        if not (name.startswith(".") and name.endswith(ENDING)):
            continue
        with suppress(OSError, LogtoolError):
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=home.fd)
            try:
                status = os.fstat(fd)
                is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
                if is_ours and lock(fd):
                    disk.remove(home, home.path / name)
            finally:
                os.close(fd)


def lock(fd: int) -> bool:
    """Lock a file or directory until its descriptor is closed; False if another run holds it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _begun(home: OpenDir, mode: int) -> tuple[Path, int]:
    """Return the name and the descriptor of a new file that this process has locked."""
    while True:
        path = home.path / f".{secrets.token_hex(8)}{ENDING}"
        fd = disk.create(home, path, mode)
        if lock(fd) and os.fstat(fd).st_nlink:
            return path, fd
        os.close(fd)  # Another run has just taken it for one of a killed run.


def _name(home: OpenDir, path: Path, target: Path) -> None:
    """Give a complete file its name; unlike a rename, a link replaces no file of that name."""
    if os.path.lexists(target):
        raise RefusedError(f"{target}: already exists; logtool does not overwrite it")
    if not disk.link(home, path, home, target):
        disk.rename(home, path, target)
