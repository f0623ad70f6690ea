"""The local engine: one function over many pieces of work, in one thread or in several.

Results come back in the order of the work, and not in the order of completion, so that nothing a
command prints depends on timing. Work is started largest first. Threads take CPU affinity and the
container's CPU quota as they are.

Why threads: reading, CRC and decompression, which are nearly all of the time, run without the
interpreter's lock, and threads need no start, no copies of what is found, and share one pace. With
4 GiB of batches of 16 KiB on 2 cores, whole commands with ``-j 2`` were 1.3 times as fast as with
``-j 1``; a pool of forked processes was 0.99 times as fast. 0.25 s of the 0.87 s were the start of
Python, which no thread shortens; two bare passes in two threads reach 1.85. Kernels that run as
plain Python hold the lock and gain little.
"""

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from logtool.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

Work = TypeVar("Work")
Result = TypeVar("Result")

OnBytes = Callable[[int], None]

_POLL_SECONDS = 0.1
_CREDIT_SECONDS = 0.25
"""Time that was spent on other things, at most, for which bytes may be read without a wait."""
_CGROUP_QUOTA = Path("/sys/fs/cgroup/cpu.max")


class OutOfTimeError(Exception):
    """The time allowed is over; what is under way is given up."""

    part: Any = None
    """The part of the work that was done, if a later run can go on from there; else None."""
    partial: Any = None
    """The report of the part of the work that was done; None without one."""


@dataclass(slots=True)
class Pace:
    """The limit of rate and time of a run; all threads call `spend` with what they read."""

    bytes_per_second: float | None = None
    deadline: float | None = None
    """On the clock of `time.monotonic`."""
    ran_out: bool = False
    """True once time was over while something was still to be read: the run is not complete."""
    _free_at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def starting_now(cls, bytes_per_second: float | None, seconds: float | None) -> "Pace":
        """Return the pace for a run of so many seconds from now on."""
        now = time.monotonic()
        return cls(bytes_per_second, None if seconds is None else now + seconds, _free_at=now)

    @property
    def is_over(self) -> bool:
        """Return whether time is over; nothing is counted."""
        late = self.deadline is not None and time.monotonic() >= self.deadline
        return late or self._over.is_set()

    def spend(self, count: int) -> None:
        """Wait until `count` bytes more keep to the rate; OutOfTimeError once time is over."""
        now = time.monotonic()
        if self.bytes_per_second:
            with self._lock:
                # The bytes took a while to read, which counts as well.
                free = max(self._free_at, now - _CREDIT_SECONDS)
                self._free_at = free + count / self.bytes_per_second
                last = self._free_at
            if self.deadline is not None:
                last = min(last, self.deadline)
            self._over.wait(max(0.0, last - now))
            now = time.monotonic()
        if self._over.is_set() or (self.deadline is not None and now >= self.deadline):
            self.ran_out = True
            raise OutOfTimeError

    def end(self) -> None:
        """End the time now, for all who wait too."""
        self._over.set()


def available_cpus() -> int:
    """Return how many processors this process may use: affinity and container quota."""
    count = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):
        quota, period = _CGROUP_QUOTA.read_text().split()
        if quota != "max":
            count = min(count, max(1, math.ceil(int(quota) / int(period))))
    return count


class Workers(Generic[Work, Result]):
    """A pool that runs `function(work, on_bytes)` for pieces of work; use as a context manager.

    `function` calls `on_bytes` with the size of every stretch of bytes that it has processed. These
    calls keep the pace, and are passed to `on_progress` in the thread that asks for the results.
    With one job, or one piece, everything runs in that thread, when a result is asked for.
    """

    def __init__(
        self,
        function: Callable[[Work, OnBytes], Result],
        jobs: int,
        pace: Pace,
        on_progress: OnBytes = lambda _: None,
    ) -> None:
        self._function = function
        self.jobs = jobs
        self._pace = pace
        self._on_progress = on_progress
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._unseen = 0
        """Processed bytes that `on_progress` has not counted yet."""

    def __enter__(self) -> "Workers[Work, Result]":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._pool:
            if kind is not None:
                self._pace.end()
            self._pool.shutdown(cancel_futures=True)

    def run(
        self, work: Sequence[Work], order: Callable[[Work], Any]
    ) -> Iterator[Result | OutOfTimeError]:
        """Yield the result of each piece, in the order given; the least by `order` starts first.

        Where time ran out before a piece was done its result is the error.
        """
        if self.jobs > 1 and len(work) > 1 and not self._pool:
            # Here, because one thread needs none of it and it takes a while to load.
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self.jobs)
        turns = sorted(range(len(work)), key=lambda number: order(work[number]))
        if self._pool:
            pending = {
                number: self._pool.submit(self._one, work[number], self._count) for number in turns
            }
            for number in range(len(work)):
                yield self._result(pending.pop(number))
            return
        done: dict[int, Result | OutOfTimeError] = {}
        wanted = 0
        for number in turns:
            done[number] = self._one(work[number], self._on_progress)
            while wanted in done:
                yield done.pop(wanted)
                wanted += 1

    def again(self, piece: Work) -> Result | OutOfTimeError:
        """Return the result of a piece whose bytes were counted before, in this thread."""
        return self._one(piece, lambda _: None)

    def _one(self, piece: Work, count: OnBytes) -> Result | OutOfTimeError:
        def on_bytes(size: int) -> None:
            count(size)
            self._pace.spend(size)

        try:
            self._pace.spend(0)
            return self._function(piece, on_bytes)
        except OutOfTimeError as error:
            return error

    def _count(self, size: int) -> None:
        with self._lock:
            self._unseen += size

    def _result(self, future: "Future[Result | OutOfTimeError]") -> Result | OutOfTimeError:
        while True:
            with suppress(TimeoutError):
                try:
                    return future.result(timeout=_POLL_SECONDS)
                finally:
                    with self._lock:
                        size, self._unseen = self._unseen, 0
                    self._on_progress(size)
