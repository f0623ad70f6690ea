"""File systems for tests: mounted where this user may, else made up with what comes nearest."""

import errno
import gc
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path

from changes import failing


@cache
def may_mount() -> bool:
    """Return whether this user may mount a file system, as root of a machine of its own may."""
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    try:
        return os.geteuid() == 0 and not subprocess.run(command, capture_output=True).returncode
    except FileNotFoundError:
        return False


def _mount(*words: object) -> None:
    subprocess.run(["mount", *map(str, words)], check=True, capture_output=True)


@contextmanager
def _unmounted(path: Path) -> Iterator[Path]:
    try:
        yield path
    finally:
        subprocess.run(["umount", "--recursive", str(path)], check=True)


@contextmanager
def small_disk(path: Path, size: int) -> Iterator[Path]:
    """Yield a directory that is a file system of `size` bytes, where that may be mounted."""
    path.mkdir()
    if not may_mount():
        yield path
        return
    _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", path)
    with _unmounted(path):
        yield path


@contextmanager
def limited_disk(path: Path, kind: str, room: int) -> Iterator[None]:
    """Mount a file system with a limit: `kind` is ``size``, in bytes, or ``nr_inodes``."""
    path.mkdir()
    _mount("-t", "tmpfs", "-o", f"{kind}={room}", "tmpfs", path)
    with _unmounted(path):
        yield
        gc.collect()  # An exception may hold a directory open.


@contextmanager
def grown(path: Path) -> Iterator[None]:
    """Give a file system of `limited_disk` more room than any test takes."""
    _mount("-o", "remount,size=200m,nr_inodes=100000", path)
    yield


@contextmanager
def full(disk: Path, room: int, call: int) -> Iterator[None]:
    """Let a disk have room for `room` more bytes; a plain folder fails at the n-th change."""
    if not os.path.ismount(disk):
        with _failing(call, errno.ENOSPC):
            yield
        return
    filler = disk / "filler"
    with filler.open("wb") as file:
        state = os.statvfs(disk)
        file.write(bytes(max(0, state.f_bavail * state.f_frsize - room)))
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Let a directory be a read-only mount of itself; without mounts, let every change fail."""
    if not may_mount():
        with _failing(1, errno.EROFS):
            yield
        return
    _mount("--bind", path, path)
    with _unmounted(path):
        _mount("-o", "remount,bind,ro", path)
        yield


@contextmanager
def copies_share_blocks(home: Path) -> Iterator[tuple[Path, str]]:
    """Yield a directory whose files may be cloned, and by which file system; else a plain one."""
    image, path = home / "image", home / "cloning"
    path.mkdir()
    made = None
    for kind, size, command in (
        ("xfs", 320 << 20, ["mkfs.xfs", "-q"]),
        ("btrfs", 128 << 20, ["mkfs.btrfs", "-q"]),
    ):
        if may_mount() and shutil.which(command[0]):
            with image.open("wb") as file:
                file.truncate(size)
            subprocess.run([*command, str(image)], check=True, capture_output=True)
            done = subprocess.run(["mount", "-o", "loop", str(image), str(path)], check=False,
                                  capture_output=True)  # fmt: skip
            if done.returncode == 0:
                made = kind
                break
            image.unlink()
    if made is None:
        yield path, "none"
        return
    with _unmounted(path):
        yield path, made
    image.unlink()


def clone(source: Path, target: Path, kind: str) -> None:
    """Copy a directory, with shared blocks where the file system can."""
    how = "never" if kind == "none" else "always"
    subprocess.run(["cp", "-a", f"--reflink={how}", str(source), str(target)], check=True)


def _failing(call: int, code: int) -> AbstractContextManager[object]:
    def fail() -> None:
        raise OSError(code, os.strerror(code))

    return failing(call, fail)
