"""What the host gives a broker: disk space, open files, maps."""

import os
import re
import resource
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from logtool.doctor.answers import Disk, Limit
from logtool.sanity.listing import Listing, most_maps

FILES_OF_A_SEGMENT = 3
"""The log, its offset index and its time index."""
_OPEN_FILES = re.compile(r"^Max open files +(\S+) +(\S+)", re.MULTILINE)


def disks(homes: Sequence[Listing]) -> Iterator[Disk]:
    """Yield the file systems of log dirs, each once; nothing of one that does not tell."""
    together: dict[int, list[Listing]] = {}
    for home in homes:
        with suppress(OSError):
            together.setdefault(home.path.stat().st_dev, []).append(home)
    for some in together.values():
        with suppress(OSError):
            yield disk(some)


def disk(homes: Sequence[Listing]) -> Disk:
    """Return the file system that log dirs share; OSError where it does not tell."""
    system = os.statvfs(homes[0].path)
    unit = system.f_frsize
    return Disk(
        paths=[home.path for home in homes],
        total=system.f_blocks * unit,
        used=(system.f_blocks - system.f_bfree) * unit,
        available=system.f_bavail * unit,
        inodes=system.f_files,
        free_inodes=system.f_favail,
        read_only=bool(system.f_flag & os.ST_RDONLY),
        logs=sum(file.size for home in homes for one in home.partitions for file in one.files()),
    )


def limits(homes: Sequence[Listing], pid: int | None) -> Iterator[Limit]:
    """Yield what a broker needs of open files and maps against what it may have.

    `pid` is that of the running broker, whose limit is then read. Without it the limit is that of
    this process, which a broker that is started from here inherits. A Java machine raises its soft
    limit of open files to the hard one, so the hard one counts.
    """
    described = [home.described() for home in homes]
    files = FILES_OF_A_SEGMENT * sum(one.segments for one in described)
    limit = pid and open_files_of(pid)
    if limit:
        yield Limit("open-files", files, limit[1], pid)
    else:
        yield Limit("open-files", files, open_files()[1])
    yield Limit("max-map-count", sum(one.maps for one in described), most_maps())


def open_files() -> tuple[int | None, int | None]:
    """Return the soft and the hard limit of open files of this process; None: there is none."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    return None if soft == unlimited else soft, None if hard == unlimited else hard


def open_files_of(pid: int) -> tuple[int | None, int | None] | None:
    """Return the limits of another process likewise; None where the system does not tell."""
    with suppress(OSError):
        found = _OPEN_FILES.search(Path(f"/proc/{pid}/limits").read_text())
        if found:
            soft, hard = (int(one) if one.isdigit() else None for one in found.groups())
            return soft, hard
    return None
