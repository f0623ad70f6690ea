"""What a run over many partitions took: time, page faults, what came from the disk.

Page faults and bytes from the disk are counted by the system for the whole process, so nothing else
may run meanwhile. Bytes from the disk are also what proves that the page cache was cold.
"""

import os
import resource
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import field
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition
from logtool.running.workers import OutOfTimeError, Pace, Workers
from logtool.sanity.indexes import Cost, Item

if TYPE_CHECKING:
    import psutil

PAGE = os.sysconf("SC_PAGE_SIZE")
_NEARLY_ALL = 0.9
"""Share of the pages that must come from the disk for a cache to count as dropped."""

Start = Callable[[Partition, Cost], list[Item]]
"""What a start does with one partition."""


class Cache(StrEnum):
    """What became of the page cache when it was asked to forget the indexes."""

    DROPPED = "dropped"
    PARTLY = "partly"
    KEPT = "kept"
    """The file system drops nothing, such as one in memory."""
    UNKNOWN = "unknown"
    """The system does not tell what came from the disk."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What the system has counted for this process so far."""

    minor_faults: int
    major_faults: int
    disk_bytes: int | None
    """None where the system does not tell."""

    @classmethod
    def now(cls) -> "Usage":
        """Ask the system."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        return cls(used.ru_minflt, used.ru_majflt, _disk_bytes())

    def since(self, before: "Usage") -> "Usage":
        """Return what was counted since then."""
        known = self.disk_bytes is not None and before.disk_bytes is not None
        disk = (self.disk_bytes or 0) - (before.disk_bytes or 0) if known else None
        return Usage(
            self.minor_faults - before.minor_faults, self.major_faults - before.major_faults, disk
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """One partition of a run."""

    segments: int
    bytes: int
    """Looked at."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Readers:
    """What the first readers of inactive segments waited for."""

    count: int
    seconds: float
    """All of them together."""
    longest: float


@dataclass(slots=True)
class TimedStart:
    """One start over all partitions, or what came after it."""

    seconds: float
    usage: Usage
    cost: Cost = field(default_factory=Cost)
    found: list[Item] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    service_seconds: float | None = None
    """Until clients could be served; None for what comes after that."""
    readers: Readers | None = None
    forced: int | None = None
    """Segments checked at once because a later one was found bad."""

    @property
    def cache(self) -> Cache:
        """Return whether the files that were opened came from the disk."""
        if self.usage.disk_bytes is None:
            return Cache.UNKNOWN
        share = self.usage.disk_bytes / (self.cost.filled * PAGE) if self.cost.filled else 1.0
        if share >= _NEARLY_ALL:
            return Cache.DROPPED
        return Cache.PARTLY if share else Cache.KEPT


class Stopwatch:
    """Takes time and usage between its beginning and `stop`."""

    def __init__(self) -> None:
        _disk_bytes()  # loads psutil, which is not to be counted
        self._before, self._began = Usage.now(), time.perf_counter()

    @property
    def seconds(self) -> float:
        """Return the time so far."""
        return time.perf_counter() - self._began

    def stop(self) -> TimedStart:
        """Return a run with what was taken."""
        seconds = self.seconds
        return TimedStart(seconds, Usage.now().since(self._before))


def run(start: Start, partitions: Sequence[Partition], threads: int, pace: Pace) -> TimedStart:
    """Do `start` with each partition in so many threads; OutOfTimeError when time is over."""

    def one(
        partition: Partition, on_bytes: Callable[[int], None]
    ) -> tuple[Cost, list[Item], float]:
        cost = Cost()
        began = time.perf_counter()
        items = start(partition, cost)
        return cost, items, time.perf_counter() - began

    with Workers(function=one, jobs=threads, pace=pace) as workers:
        watch = Stopwatch()
        results = list(workers.run(partitions, order=lambda _: 0))
        done = watch.stop()
    done.service_seconds = done.seconds
    for partition, result in zip(partitions, results, strict=True):
        if isinstance(result, OutOfTimeError):
            raise result
        cost, items, seconds = result
        done.cost.add(cost)
        done.found += items
        done.samples.append(Sample(len(partition.segments), cost.bytes, seconds))
    return done


def drop_cache(partitions: Iterable[Partition]) -> None:
    """Ask the system to forget the indexes; what was not yet written to the disk it keeps."""
    for partition in partitions:
        for segment in partition.segments:
            for file in segment.indexes.values():
                with suppress(UnreadableError):  # whoever opens it to check it says so
                    fd = files.open_readonly(file.path)
                    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                    os.close(fd)


def _disk_bytes() -> int | None:
    """Return the bytes that this process had fetched from disks."""
    try:
        return int(_process().io_counters().read_bytes)
    except (OSError, AttributeError):  # psutil has no counters where the system has none
        return None


@cache
def _process() -> "psutil.Process":
    import psutil  # here, because it takes a while to load

    return psutil.Process()
