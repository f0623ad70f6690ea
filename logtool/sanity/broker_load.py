"""Estimate of the time that a broker takes to load logs that were stopped in order.

A broker does more than check indexes: it lists each directory, opens each log, reads leader epochs,
topic ids and producer snapshots, and logs some lines for each partition. The time for that was
measured with brokers of 2.2.2, 3.9.2 and 4.3.1 which loaded 100 to 6,000 logs of 1 to 30 segments,
files in the page cache, one thread. The least is the processor time of that thread. The most is the
longest time of such a start on a host with far more work than processors, plus the time for opening
the same files here, in which a slow disk shows. A log without a producer snapshot gets up to three
at its first start, and the disk has to make each of them durable. The starts and the errors of the
estimates are in ``tests/broker/reports/loads.md``; ``make loads`` repeats them.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition
from logtool.running.workers import Pace
from logtool.sanity import measuring
from logtool.sanity.indexes import Cost, Item
from logtool.sanity.results import Mode

_SMALL = (FileKind.LEADER_EPOCH_CHECKPOINT, FileKind.PARTITION_METADATA)
SNAPSHOT_SECONDS = (0.5e-3, 10e-3)
"""Seconds for each producer snapshot that a start writes: least and most."""
RELEASES = {Mode.EAGER: "up to 2.2", Mode.LAZY: "since 2.3"}


@dataclass(frozen=True, slots=True)
class LoadCosts:
    """Processor time, in seconds, of the thread that loads."""

    once: float
    log: float
    segment: float
    busy: float
    """Factor by which the slowest start took longer, on a host that had other work."""


RATES = {
    Mode.EAGER: LoadCosts(once=0.5, log=1.1e-3, segment=0.045e-3, busy=11.0),
    Mode.LAZY: LoadCosts(once=0.15, log=0.55e-3, segment=0.13e-3, busy=7.0),
}


@dataclass(frozen=True, slots=True)
class Load:
    """The load of a broker of one kind."""

    path: Path
    mode: Mode
    partitions: int
    segments: int
    threads: int
    snapshots: int
    """Producer snapshots that the start writes, for logs that have none."""
    seconds_low: float
    seconds_high: float
    check_seconds: float
    """Seconds measured here for the index checks of such a start."""
    open_seconds: float
    """Seconds measured here for opening logs and reading epochs, topic ids and snapshots."""

    @property
    def releases(self) -> str:
        """Return the Kafka releases that start this way."""
        return RELEASES[self.mode]


def seconds(
    mode: Mode, partitions: float, segments: float, *, threads: int, snapshots: int = 0
) -> tuple[float, float]:
    """Return the least and the most seconds of a load with all files in the page cache.

    `snapshots` is the number that the start writes. In the best case, threads divide the time by
    their number; in the worst case, when they wait for each other, they gain nothing.
    """
    rates, (least, most) = RATES[mode], SNAPSHOT_SECONDS
    work = rates.log * partitions + rates.segment * segments
    low = rates.once + (work + least * snapshots) / threads
    return low, rates.busy * (rates.once + work) + most * snapshots


def estimate(
    path: Path, mode: Mode, partitions: Sequence[Partition], *, threads: int, check: float,
    opening: float,
) -> Load:  # fmt: skip
    """Return the estimate for partitions; `check` and `opening` are the seconds measured here."""
    segments = sum(len(one.segments) for one in partitions)
    snapshots = sum(map(_snapshots_written, partitions))
    low, high = seconds(mode, len(partitions), segments, threads=threads, snapshots=snapshots)
    return Load(
        path=path,
        mode=mode,
        partitions=len(partitions),
        segments=segments,
        threads=threads,
        snapshots=snapshots,
        seconds_low=low,
        seconds_high=high + check + opening,
        check_seconds=check,
        open_seconds=opening,
    )


def _snapshots_written(partition: Partition) -> int:
    """Return how many snapshots an orderly start writes for a log that has none.

    One at the beginning of each of the last two segments and one at the end, none at offset 0.
    Source: ``UnifiedLog.rebuildProducerState``, ``ProducerStateManager.takeSnapshot``.
    """
    if partition.snapshots or not partition.segments:
        return 0
    bases = [segment.base_offset for segment in partition.segments[-2:]]
    return sum(base > 0 for base in bases) + (partition.segments[-1].log.size > 0)


def opening(partitions: Sequence[Partition], threads: int, pace: Pace) -> measuring.TimedStart:
    """Open the files other than indexes that every start opens; OutOfTimeError."""
    return measuring.run(_open_others, partitions, threads, pace)


def _open_others(partition: Partition, cost: Cost) -> list[Item]:
    """Open the logs of a partition, and read the small files next to them."""
    items: list[Item] = []
    small = [partition.fixed[kind] for kind in _SMALL if kind in partition.fixed]
    for file in (*(one.log for one in partition.segments), *small, *partition.snapshots[-1:]):
        try:
            fd = files.open_readonly(file.path)
        except UnreadableError as error:
            items.append(error)
            continue
        try:
            cost.files += 1
            if file.name.kind is not FileKind.LOG:
                with files.translated(file.path):
                    cost.bytes += len(os.pread(fd, file.size, 0))
        except UnreadableError as error:
            items.append(error)
        finally:
            os.close(fd)
    return items
