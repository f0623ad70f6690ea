"""Output that is not complete yet: its names, its locks, and the rest that a killed run left.

A file is written under the name ``.TOKEN.logtool-unfinished`` next to its place, and gets its own
name when it is complete. A directory of output has a folder ``logtool-unfinished`` until the run
that writes it ends (`output_tree`). A run holds a lock on both: what no process locks is left of a
run that was killed, and the next run in the same place removes it.
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
from logtool.errors import LogtoolError, RefusedError, UnreadableError, UnwritableError

WORK = "logtool-unfinished"
"""Name of the folder in which a run collects what is not complete."""
_ENDING = f".{WORK}"


def is_unfinished(name: str) -> bool:
    """Return whether a file or folder has the name of output that is not complete."""
    return name == WORK or (name.startswith(".") and name.endswith(_ENDING))


def near(path: Path) -> Path | None:
    """Return the unfinished output that a path lies in or holds; None if all is complete.

    The folder of a run lies up to four levels above a partition dir that the run makes.
    """
    named = next((one for one in (path, *path.parents) if is_unfinished(one.name)), None)
    if named:
        return named
    with suppress(OSError):
        if inside := next((one for one in path.iterdir() if is_unfinished(one.name)), None):
            return inside
    above = path.absolute().parents[:4]
    with suppress(OSError):
        return next((one / WORK for one in above if (one / WORK).is_dir()), None)
    return None


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
        if not (name.startswith(".") and name.endswith(_ENDING)):
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
        path = home.path / f".{secrets.token_hex(8)}{_ENDING}"
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
