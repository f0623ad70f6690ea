"""Copies that keep holes: a broker preallocates indexes of 10 MiB, which take no room on a disk."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

_BLOCK = 65536


def copy(source: str | Path, target: str | Path) -> str | Path:
    """Copy a file with its times as `shutil.copy2` does, without its holes; return its path."""
    source, target = Path(source), Path(target)
    status = source.stat()
    size = status.st_size
    if size <= _BLOCK:
        if target.is_dir():
            return Path(shutil.copy2(source, target))
        # Most files are small: what `copy2` asks for besides takes most of its time.
        target.write_bytes(source.read_bytes())
        target.chmod(stat.S_IMODE(status.st_mode))
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
        return target
    target = target / source.name if target.is_dir() else target
    with source.open("rb", buffering=0) as given, target.open("wb", buffering=0) as made:
        at = 0
        while at < size:
            try:
                at = os.lseek(given.fileno(), at, os.SEEK_DATA)
            except OSError:  # only a hole follows
                break
            end = os.lseek(given.fileno(), at, os.SEEK_HOLE)
            given.seek(at)
            made.seek(at)
            while at < end:
                at += made.write(given.read(min(end - at, 1 << 20)))
        made.truncate(size)
    shutil.copystat(source, target)
    return target


def copytree(source: Path, target: Path) -> Path:
    """Copy a directory as `shutil.copytree` does, without the holes of its files."""
    return shutil.copytree(source, target, copy_function=copy)


def punch(home: Path) -> None:
    """Make holes of the blocks of zeros in the large files of a directory; their times stay."""
    for path in home.rglob("*"):
        if path.is_file() and path.stat().st_size > _BLOCK and not path.is_symlink():
            _punch_file(path)


def _punch_file(path: Path) -> None:
    at = path.stat()
    data = path.read_bytes()
    blocks = [data[begin : begin + _BLOCK] for begin in range(0, len(data), _BLOCK)]
    if all(block.strip(b"\0") for block in blocks):
        return
    with path.open("r+b") as file:
        file.truncate(0)
        for number, block in enumerate(blocks):
            if block.strip(b"\0"):
                file.seek(number * _BLOCK)
                file.write(block)
        file.truncate(len(data))
    os.utime(path, ns=(at.st_atime_ns, at.st_mtime_ns))
