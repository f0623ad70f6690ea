"""Show a case file, and expand it into a directory.

An expanded log has holes in the place of payload. It takes as much of the disk as the blocks of the
file system that hold a header: for batches of 16 KiB about a quarter of its size.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath

import numpy as np

from logtool.case import manifest
from logtool.case.archive import ArchiveReader, CaseMember
from logtool.case.manifest import CaseManifest
from logtool.disk import expanded as in_answers
from logtool.disk.files import CHANGED
from logtool.errors import FormatError, UnreadableError, UnwritableError
from logtool.lazy_dataclass import dataclass

ENDING = ".tar.zst"
"""Ending of the names of case files; other files are not looked at."""
_BLOCK = 4096
"""Bytes of a block of most file systems: the unit of holes."""


@dataclass(frozen=True, slots=True)
class OpenedCase:
    """A case file that was expanded into a directory."""

    path: Path
    """The case file."""
    home: Path
    """The directory; it is removed when the process ends."""
    manifest: CaseManifest


def is_case(path: Path) -> bool:
    """Return whether a path has the name of a case file and is a file."""
    return path.name.endswith(ENDING) and path.is_file()


def place_in(path: Path) -> tuple[Path, str]:
    """Return the case file and the place in it of ``CASE.tar.zst:/PLACE``; no place for others."""
    for above in path.parents:
        case = above.with_name(above.name.removesuffix(":")) if above.name else above
        if above.name.endswith(f"{ENDING}:") and is_case(case):
            return case, str(path.relative_to(above))
    return path, ""


def read_manifest(path: Path) -> CaseManifest:
    """Return the manifest of a case file, whose other members are not read; UnreadableError."""
    try:
        with path.open("rb") as file:
            reader = ArchiveReader(file)
            return _manifest(reader, next(iter(reader.members()), None))
    except FormatError as error:
        raise _no_case(path, error) from error
    except OSError as error:
        raise UnreadableError(path, error.strerror or str(error)) from error


def expanded(path: Path) -> OpenedCase:
    """Return a case file expanded into a temporary directory, once for one file.

    UnreadableError for a file that is no whole case file; UnwritableError without room.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise UnreadableError(path, error.strerror or str(error)) from error
    return _expanded(path, status.st_ino, status.st_mtime_ns)


@lru_cache(maxsize=64)
def _expanded(path: Path, inode: int, mtime_ns: int) -> OpenedCase:
    home = Path(tempfile.mkdtemp(prefix="logtool-case-")).resolve()
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    found = OpenedCase(path, home, expand(path, home))
    in_answers.add(home, path)
    return found


def expand(path: Path, home: Path) -> CaseManifest:
    """Write the members of a case file below an empty directory; return its manifest.

    UnreadableError and UnwritableError as for `expanded`.
    """
    try:
        with path.open("rb") as file:
            reader = ArchiveReader(file)
            members = reader.members()
            found = _manifest(reader, next(members, None))
            _write_all(reader, members, found, home)
            (home / manifest.NAME).write_bytes(manifest.encode(found))
    except FormatError as error:
        raise _no_case(path, error) from error
    except OSError as error:
        raise UnwritableError(home, error.strerror or str(error)) from error
    return found


def manifest_above(path: Path) -> CaseManifest | None:
    """Return the manifest of the case file that a directory was expanded from, or None."""
    for home in path.parents[1:3]:
        with suppress(OSError, FormatError):
            return manifest.parse((home / manifest.NAME).read_bytes())
    return None


def _no_case(path: Path, error: FormatError) -> UnreadableError:
    return UnreadableError(path, f"is no whole case file: {error.reason}")


def _manifest(reader: ArchiveReader, first: CaseMember | None) -> CaseManifest:
    """Return the manifest, which is the first member; FormatError."""
    if first is None or first.place != manifest.NAME or first.size > manifest.LARGEST:
        raise FormatError("it does not begin with a manifest")
    return manifest.parse(b"".join(map(bytes, reader.blocks())))


def _write_all(
    reader: ArchiveReader, members: Iterator[CaseMember], found: CaseManifest, home: Path
) -> None:
    """Write every member, but for those that the manifest calls absent; FormatError."""
    folders: set[str] = set()
    absent = {one.path for one in found.absent}
    tops = {one.place for one in found.dirs}
    count = size = 0
    for member in members:
        place = PurePosixPath(member.place)
        above = str(place.parent)
        if member.is_dir and member.place in tops:
            (home / above).mkdir(parents=True, exist_ok=True)
        elif above not in folders:
            raise FormatError(f"{member.place[:80]!a} is in no directory of the case file")
        target = home / member.place
        if member.is_dir:
            target.mkdir()
            folders.add(member.place)
            continue
        if member.place in absent:
            continue  # zeros from the byte on that could not be read
        count, size = count + 1, size + member.size
        if count > found.files or size > found.bytes:
            raise FormatError("it holds more than its manifest says")
        _write(reader, member, target)
    if (count, size) != (found.files, found.bytes):
        raise FormatError("it holds less than its manifest says")


def _write(reader: ArchiveReader, member: CaseMember, target: Path) -> None:
    """Write a file with holes in the place of blocks of zeros."""
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        os.ftruncate(fd, member.size)
        at = 0
        for block in reader.blocks():
            for start, end in _filled(block, at):
                os.pwrite(fd, block[start:end], at + start)
            at += len(block)
        if member.changed_ns is not None:
            with suppress(OSError):  # a file system without attributes: the file looks like a copy
                os.setxattr(fd, CHANGED, str(member.changed_ns).encode("ascii"))
        os.utime(fd, ns=(member.mtime_ns, member.mtime_ns))
    finally:
        os.close(fd)


def _filled(data: memoryview, position: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of `data` in whose blocks some byte is not zero; it begins at `position`."""
    first = -position % _BLOCK
    edges = [0, *range(first if first else _BLOCK, len(data), _BLOCK), len(data)]
    raw = np.frombuffer(data, np.uint8)
    if not len(raw):
        return
    filled = np.maximum.reduceat(raw, edges[:-1]) != 0
    changes = np.flatnonzero(np.diff(filled, prepend=False, append=False))
    for start, end in changes.reshape(-1, 2).tolist():
        yield edges[start], edges[end]
