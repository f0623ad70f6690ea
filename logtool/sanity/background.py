"""The proposal of KIP-263: active segments are checked at the start, the others later.

Before the broker serves clients, it checks the active segment of each partition. Then threads in
the background check the inactive ones; a reader that needs one before them checks it itself. If a
segment is bad, every earlier one of its partition is checked before anyone else gets access to the
partition. Kafka did not build this; instead, it no longer checks at all.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from logtool.findings import Finding
from logtool.log.dir import Partition, Segment
from logtool.running.workers import OutOfTimeError, Pace, Workers
from logtool.sanity.indexes import Cost, Item, Opener
from logtool.sanity.measuring import Readers, Stopwatch, TimedStart
from logtool.sanity.starts import readers

Check = Callable[[Segment, Cost], list[Item]]


class GuardedPartition:
    """A partition whose segments are checked once, when they are first needed."""

    def __init__(self, partition: Partition, check: Check) -> None:
        self._segments = partition.segments
        self._check = check
        self._lock = threading.Lock()
        self._checked: set[int] = set()
        self.cost = Cost()
        self.found: list[Item] = []
        self.forced = 0
        """Segments checked because a later one was bad."""

    def access(self, at: int) -> None:
        """Return once the segment at position `at` may be read."""
        # Waits also for a segment that was checked: a later one may just have been found bad.
        with self._lock:
            if at in self._checked or not self._is_bad(at):
                return
            for earlier in range(at):
                if earlier not in self._checked:
                    self.forced += 1
                    self._is_bad(earlier)

    def access_active(self) -> None:
        """Check the segment that a broker would append to."""
        if self._segments:
            self.access(len(self._segments) - 1)

    def access_all(self) -> None:
        """Check the segments not checked yet, the newest first, which readers need soonest."""
        for at in reversed(range(len(self._segments))):
            self.access(at)

    def become_leader(self) -> None:
        """Check the inactive segments not checked yet, the newest first."""
        for at in reversed(range(len(self._segments) - 1)):
            self.access(at)

    def _is_bad(self, at: int) -> bool:
        self._checked.add(at)
        items = self._check(self._segments[at], self.cost)
        self.found += items
        return any(isinstance(item, Finding) for item in items)


def run(
    opener: Opener,
    partitions: Sequence[Partition],
    *,
    threads: int,
    background_threads: int,
    reader_count: int,
    pace: Pace,
) -> TimedStart:
    """Run the whole start, with readers during the background checks; OutOfTimeError."""
    guarded = {
        partition.path: GuardedPartition(partition, opener.check_segment)
        for partition in partitions
    }
    everyone = list(guarded.values())
    wanted = [(guarded[partition.path], at) for partition, at in readers(partitions, reader_count)]

    def check_active(guarded: GuardedPartition, on_bytes: Callable[[int], None]) -> None:
        guarded.access_active()

    def check_rest(guarded: GuardedPartition) -> None:
        pace.spend(0)
        guarded.access_all()

    watch = Stopwatch()
    with Workers(function=check_active, jobs=threads, pace=pace) as workers:
        for result in workers.run(everyone, order=lambda _: 0):
            if isinstance(result, OutOfTimeError):
                raise result
    service_seconds = watch.seconds
    with ThreadPoolExecutor(background_threads) as pool:
        try:
            pending = [pool.submit(check_rest, guarded_partition) for guarded_partition in everyone]
            waited = wait_as_readers(wanted)
            for future in pending:
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    done = watch.stop()
    for guarded_partition in everyone:
        done.cost.add(guarded_partition.cost)
        done.found += guarded_partition.found
    done.service_seconds, done.readers = service_seconds, waited
    done.forced = sum(guarded_partition.forced for guarded_partition in everyone)
    return done


def become_leader(
    opener: Opener, partitions: Sequence[Partition], count: int, pace: Pace
) -> TimedStart:
    """Check all that a lazy start has left unchecked, one partition after the other, as new leader.

    The active segments count as checked. `TimedStart.readers` has the time for each partition.
    """
    led = [GuardedPartition(one, opener.check_segment) for one in partitions[:count]]
    waits = []
    watch = Stopwatch()
    for guarded in led:
        pace.spend(0)
        began = time.perf_counter()
        guarded.become_leader()
        waits.append(time.perf_counter() - began)
    done = watch.stop()
    for guarded in led:
        done.cost.add(guarded.cost)
        done.found += guarded.found
    done.readers = Readers(len(waits), sum(waits), max(waits)) if waits else None
    done.forced = sum(guarded.forced for guarded in led)
    return done


def wait_as_readers(wanted: Sequence[tuple[GuardedPartition, int]]) -> Readers | None:
    """Access one segment after another; return the waiting times. None without readers."""
    waits = []
    for one, at in wanted:
        began = time.perf_counter()
        one.access(at)
        waits.append(time.perf_counter() - began)
    return Readers(len(waits), sum(waits), max(waits)) if waits else None
