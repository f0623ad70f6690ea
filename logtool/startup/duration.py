"""The time a broker takes to load the logs of its log dirs, and the slowest of these logs."""

import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nlargest
from pathlib import Path

from logtool.formats import wording
from logtool.lazy_dataclass import dataclass
from logtool.loading.result import RecoveryReason
from logtool.startup.disks import DiskSample
from logtool.startup.partition import PartitionForecast
from logtool.startup.rates import (
    BATCH_SECONDS,
    COMPILER_SECONDS,
    LEAST,
    LISTED_SECONDS,
    LOG_SECONDS,
    MOST,
    MOST_CROWDING,
    SEGMENT_SECONDS,
    SYNC_SECONDS,
    UNCOMPILED_SECONDS,
    ReadRates,
)

MOST_NAMED = 10
"""Most partitions that are named."""
_FILES = 4
"""Files of each segment: its log, two indexes and a producer snapshot."""


@dataclass(frozen=True, slots=True)
class Slow:
    """The time that one partition takes to load, and the causes."""

    forecast: PartitionForecast
    seconds_low: float
    seconds: float
    seconds_high: float
    processor_seconds: float = 0.0
    """Part of `seconds` in which a processor works."""
    disk_seconds: float = 0.0
    """Part of `seconds` in which a disk reads bytes that are not in the page cache."""

    @property
    def causes(self) -> Iterator[str]:
        """Yield the causes of the time, in words, in the order in which a broker reads."""
        one = self.forecast
        batches = wording.count(one.batches_scanned, "batch", "batches")
        if one.bytes_scanned:
            segments = wording.count(one.recovered, "segment")
            yield f"{wording.size(one.bytes_scanned)} of {segments} in {batches}"
        for why, count in one.why.items():
            if why == RecoveryReason.NO_INDEX:
                yield f"{wording.count(count, 'segment')} without offset index"
            elif why == RecoveryReason.BAD_TRANSACTION_INDEX:
                yield f"{wording.count(count, 'segment')} with a bad transaction index"
        if one.indexes_changed:
            yield f"{wording.count(one.indexes_changed, 'index', 'indexes')} made or changed"
        if one.bytes_replayed:
            yield f"{wording.size(one.bytes_replayed)} read again for producers"
        if one.producers:
            yield wording.count(one.producers, "producer")


@dataclass(frozen=True, slots=True)
class Duration:
    """The time that the logs of all log dirs of a broker take to load."""

    threads: int
    """Threads for each log dir."""
    rates: ReadRates
    """Rates of each thread."""
    bytes: int
    seconds_low: float
    """Least seconds: a share of `seconds` if this machine was calibrated, else seconds at the
    fastest rate, with the least that a broker spends on a batch."""
    seconds: float
    """Seconds at the usual rate."""
    seconds_high: float
    """Most seconds, in the same way."""
    slowest: Sequence[Slow]
    """The partitions that take longest, the slowest first; only those that are read at all."""
    others: tuple[float, float] = (0.0, 0.0)
    """Least and most seconds of all others together, one after the other."""

    @property
    def probe_timeout_s(self) -> int:
        """Return the least seconds that a liveness probe should wait.

        Twice the longest time, and a minute for the rest of the start.
        """
        return math.ceil(2 * self.seconds_high + 60)

    @property
    def critical(self) -> Path | None:
        """Return the partition that takes longest; no number of threads loads faster than that."""
        return self.slowest[0].forecast.request.path if self.slowest else None

    @property
    def critical_seconds(self) -> float:
        """Return the seconds that the partition `critical` takes; 0 without one."""
        return self.slowest[0].seconds if self.slowest else 0.0

    @property
    def disks(self) -> Sequence[DiskSample]:
        """Return the samples of all disks."""
        return list(self.rates.disks.values())


def duration(forecasts: Iterable[PartitionForecast], threads: int, rates: ReadRates) -> Duration:
    """Return the time that a broker needs with so many threads for each log dir.

    The logs of each log dir are dealt out to its threads in their order, as a broker does.
    """
    loads = [_timed(forecast, rates) for forecast in forecasts]
    read = [one for one in loads if one.forecast.bytes_read]
    slowest = nlargest(MOST_NAMED, read, key=lambda one: one.seconds)
    homes: dict[Path, list[Slow]] = defaultdict(list)
    for one in loads:
        homes[one.forecast.request.log_dir].append(one)

    def longest(seconds: Callable[[Slow], float]) -> float:
        return max((_dealt_out(map(seconds, home), threads) for home in homes.values()), default=0)

    seconds = longest(lambda one: one.seconds)
    if rates.is_measured and loads:
        running = sum(min(threads, len(home)) for home in homes.values())
        seconds += _extra_seconds(longest(lambda one: one.processor_seconds), running, rates.strain)
        seconds = max(seconds, _of_disks(loads, rates))
    low, high = longest(lambda one: one.seconds_low), longest(lambda one: one.seconds_high)
    if rates.is_calibrated:
        low, high = _range(seconds)
    return Duration(
        threads=threads,
        rates=rates,
        bytes=sum(one.forecast.bytes_read for one in loads),
        seconds_low=low,
        seconds=seconds,
        seconds_high=max(high, seconds),
        slowest=slowest,
        others=(
            sum(one.seconds_low for one in read) - sum(one.seconds_low for one in slowest),
            sum(one.seconds_high for one in read) - sum(one.seconds_high for one in slowest),
        ),
    )


def _timed(forecast: PartitionForecast, rates: ReadRates) -> Slow:
    size, batches, segments = forecast.bytes_read, forecast.batches_scanned, forecast.recovered
    listed = segments * forecast.segments * _FILES
    low, usual, high = (
        batches * of_batch + segments * of_segment + listed * of_file + (of_log if segments else 0)
        for of_batch, of_log, of_segment, of_file in zip(
            BATCH_SECONDS, LOG_SECONDS, SEGMENT_SECONDS, LISTED_SECONDS, strict=True
        )
    )
    disk = rates.disk_under(forecast.request.log_dir)
    from_disk = disk.seconds(forecast.cold) if disk else 0.0
    processor = usual * rates.strain + size / rates.usual
    seconds = processor + from_disk + segments * SYNC_SECONDS
    low, high = low + size / rates.fast, high + size / rates.slow
    if rates.is_calibrated:
        low, high = _range(seconds)
    return Slow(
        forecast=forecast,
        seconds_low=low,
        seconds=seconds,
        seconds_high=max(high, seconds),
        processor_seconds=processor,
        disk_seconds=from_disk,
    )


def _range(seconds: float) -> tuple[float, float]:
    """Return the ends of the range of a calibrated estimate, in seconds.

    If more processes want a processor than there are, the share of a broker is not known.
    """
    crowding = os.getloadavg()[0] / len(os.sched_getaffinity(0))
    return seconds * LEAST, seconds * MOST * min(max(crowding, 1.0), MOST_CROWDING)


def _extra_seconds(seconds: float, running: int, strain: float) -> float:
    """Return how many seconds longer threads with `seconds` of work take at a broker's start.

    The broker compiles its code meanwhile: at first the threads run it uncompiled, and the compiler
    takes its share of the processors of this machine, as the threads take theirs from each other.
    """
    cores = len(os.sched_getaffinity(0))
    compiling = seconds * max(1, (running + 1) / cores)
    compiled = seconds * max(1, running / cores) + COMPILER_SECONDS * strain / cores
    slowed = min(compiling, compiled)
    return slowed - seconds + (UNCOMPILED_SECONDS * strain if seconds else 0)


def _of_disks(loads: Iterable[Slow], rates: ReadRates) -> float:
    """Return the seconds of the slowest disk, over all log dirs that share it."""
    disks: dict[DiskSample | None, float] = defaultdict(float)
    for one in loads:
        disks[rates.disk_under(one.forecast.request.log_dir)] += one.disk_seconds
    return max(disks.values())


def _dealt_out(times: Iterable[float], threads: int) -> float:
    """Return when the last thread ends; each log goes to the first thread that is free."""
    busy = [0.0] * threads
    for seconds in times:
        busy[busy.index(min(busy))] += seconds
    return max(busy)
