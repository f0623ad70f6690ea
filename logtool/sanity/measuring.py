"""Time, page faults and bytes from the disk of a run over many partitions.

The system counts page faults and bytes from the disk for the whole process, so nothing else may run
meanwhile. Bytes from the disk also prove that the page cache was cold.
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
"""Least share of the pages that come from the disk if the page cache was dropped."""

Start = Callable[[Partition, Cost], list[Item]]
"""The work of a start on one partition."""


class Cache(StrEnum):
    """State of the page cache after it was asked to drop the indexes."""

    DROPPED = "dropped"
    PARTLY = "partly"
    KEPT = "kept"
    """The file system drops nothing, as one in memory."""
    UNKNOWN = "unknown"
    """The system does not count the bytes that came from the disk."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The counters of the system for this process so far."""

    minor_faults: int
    major_faults: int
    disk_bytes: int | None
    """Bytes read from disks; None if the system does not count them."""

    @classmethod
    def now(cls) -> "Usage":
        """Read the counters of the system."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        return cls(used.ru_minflt, used.ru_majflt, _disk_bytes())

    def since(self, before: "Usage") -> "Usage":
        """Return the difference from an earlier reading."""
        known = self.disk_bytes is not None and before.disk_bytes is not None
        disk = (self.disk_bytes or 0) - (before.disk_bytes or 0) if known else None
        return Usage(
            self.minor_faults - before.minor_faults, self.major_faults - before.major_faults, disk
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """The measurement of one partition in a run."""

    segments: int
    bytes: int
    """Bytes of indexes that were looked at."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Readers:
    """Waiting times of the first readers of inactive segments."""

    count: int
    seconds: float
    """Sum over all readers."""
    longest: float


@dataclass(slots=True)
class TimedStart:
    """One start over all partitions, or the work that follows a start."""

    seconds: float
    usage: Usage
    cost: Cost = field(default_factory=Cost)
    found: list[Item] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    service_seconds: float | None = None
    """Seconds until clients could be served; None for work that follows a start."""
    readers: Readers | None = None
    forced: int | None = None
    """Segments checked at once because a later one was found bad."""

    @property
    def cache(self) -> Cache:
        """Return the state of the page cache, by the bytes that came from the disk."""
        if self.usage.disk_bytes is None:
            return Cache.UNKNOWN
        share = self.usage.disk_bytes / (self.cost.filled * PAGE) if self.cost.filled else 1.0
        if share >= _NEARLY_ALL:
            return Cache.DROPPED
        return Cache.PARTLY if share else Cache.KEPT


class Stopwatch:
    """Stopwatch that takes time and usage between its creation and `stop`."""

    def __init__(self) -> None:
        _disk_bytes()  # loads psutil, which is not to be counted
        self._before, self._began = Usage.now(), time.perf_counter()

    @property
    def seconds(self) -> float:
        """Return the seconds so far."""
        return time.perf_counter() - self._began

    def stop(self) -> TimedStart:
        """Return a run with the time and usage so far."""
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
    """Ask the system to drop the indexes from the page cache; it keeps pages not yet written."""
    for partition in partitions:
        for segment in partition.segments:
            for file in segment.indexes.values():
                with suppress(UnreadableError):  # reported when the index is opened to check it
                    fd = files.open_readonly(file.path)
                    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                    os.close(fd)


def _disk_bytes() -> int | None:
    """Return the bytes that this process has fetched from disks; None if they are not counted."""
    try:
        return int(_process().io_counters().read_bytes)
    except (OSError, AttributeError):  # psutil has no counters where the system has none
        return None


@cache
def _process() -> "psutil.Process":
    import psutil  # here, because it takes a while to load

    return psutil.Process()
