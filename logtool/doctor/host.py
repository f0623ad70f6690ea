"""What the host gives a broker: disk space, open files, maps."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from logtool.doctor.answers import DiskAnswer, Limit
from logtool.node import host_limits
from logtool.sanity.listing import Listing

_OPEN_FILES = re.compile(r"^Max open files +(\S+) +(\S+)", re.MULTILINE)


def disks(homes: Sequence[Listing]) -> Iterator[DiskAnswer]:
    """Yield the file systems of log dirs, each once; nothing of one that does not tell."""
    together: dict[int, list[Listing]] = {}
    for home in homes:
        with suppress(OSError):
            together.setdefault(home.path.stat().st_dev, []).append(home)
    for some in together.values():
        with suppress(OSError):
            yield disk(some)


def disk(homes: Sequence[Listing]) -> DiskAnswer:
    """Return the file system that log dirs share; OSError where it does not tell."""
    system = os.statvfs(homes[0].path)
    unit = system.f_frsize
    return DiskAnswer(
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
    limit of open files to the hard one, so the hard one counts. Of maps it is what a broker has
    once every index was needed.
    """
    needed = sum((home.needs for home in homes), host_limits.Needs())
    limits = host_limits.of_host()
    limit = pid and open_files_of(pid)
    if limit:
        yield Limit("open-files", needed.open_files, limit[1], pid)
    else:
        yield Limit("open-files", needed.open_files, limits.open_files)
    yield Limit("max-map-count", needed.most_maps, limits.maps)


def open_files_of(pid: int) -> tuple[int | None, int | None] | None:
    """Return the limits of another process likewise; None where the system does not tell."""
    with suppress(OSError):
        found = _OPEN_FILES.search(Path(f"/proc/{pid}/limits").read_text())
        if found:
            soft, hard = (int(one) if one.isdigit() else None for one in found.groups())
            return soft, hard
    return None
