"""The local engine: one function over many pieces of work, in this process or in several.

Results come back in the order of the work, whatever finished first, so that nothing a command
prints depends on timing. Work is started largest first. The processes take CPU affinity and the
container's CPU quota as they are.
"""

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from logtool.errors import LogtoolError

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

Work = TypeVar("Work")
Result = TypeVar("Result")

OnBytes = Callable[[int], None]

_POLL_SECONDS = 0.1
_CGROUP_QUOTA = Path("/sys/fs/cgroup/cpu.max")


class OutOfTimeError(Exception):
    """The time allowed is over; what is under way is given up."""


@dataclass(slots=True)
class Pace:
    """How fast and how long this process may read; `spend` is called with every stretch read."""

    bytes_per_second: float | None = None
    deadline: float | None = None
    """On the clock of `time.monotonic`, which all processes of a machine share."""
    _free_at: float = 0.0

    @classmethod
    def starting_now(cls, bytes_per_second: float | None, seconds: float | None) -> "Pace":
        """Return the pace for a run of so many seconds from now on."""
        return cls(bytes_per_second, None if seconds is None else time.monotonic() + seconds)

    def spend(self, count: int) -> None:
        """Wait until `count` bytes more keep to the rate; OutOfTimeError once time is over."""
        now = time.monotonic()
        if self.bytes_per_second:
            self._free_at = max(self._free_at, now) + count / self.bytes_per_second
            last = self._free_at if self.deadline is None else min(self._free_at, self.deadline)
            time.sleep(max(0.0, last - now))
            now = time.monotonic()
        if self.deadline is not None and now >= self.deadline:
            raise OutOfTimeError


def available_cpus() -> int:
    """Return how many processors this process may use: affinity and container quota."""
    count = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):
        quota, period = _CGROUP_QUOTA.read_text().split()
        if quota != "max":
            count = min(count, max(1, math.ceil(int(quota) / int(period))))
    return count


class Workers(Generic[Work, Result]):
    """Runs `function(work, on_bytes)` for pieces of work; use as a context manager.

    `function` calls `on_bytes` with every stretch of bytes it has dealt with: that is what keeps to
    the pace, and what `on_progress` is told of, here, in this process. With one job everything
    runs in this process, when its result is asked for.
    """

    def __init__(
        self, function: Callable[[Work, OnBytes], Result], jobs: int, pace: Pace,
        on_progress: OnBytes = lambda _: None,
    ) -> None:  # fmt: skip
        self._function = function
        self.jobs = jobs
        self._pace = pace
        self._on_progress = on_progress
        self._pool: ProcessPoolExecutor | None = None
        self._counter: Any = None
        self._seen = 0

    def __enter__(self) -> "Workers[Work, Result]":
        if self.jobs > 1:
            # Here, because one process needs none of it and they take a while to load.
            import multiprocessing
            from concurrent.futures import ProcessPoolExecutor

            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload([self._function.__module__])
            self._counter = context.Value("q", 0)
            rate = self._pace.bytes_per_second
            pace = Pace(rate / self.jobs if rate else None, self._pace.deadline)
            self._pool = ProcessPoolExecutor(
                self.jobs, context, _start, (self._function, pace, self._counter)
            )
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._pool:
            self._pool.shutdown(wait=kind is None, cancel_futures=True)
            if kind is not None:
                import multiprocessing

                for process in multiprocessing.active_children():
                    process.terminate()

    def run(
        self, work: Sequence[Work], order: Callable[[Work], Any]
    ) -> Iterator[Result | OutOfTimeError]:
        """Yield the result of each piece, in the order given; the least by `order` starts first.

        Where time ran out before a piece was done its result is the error.
        """
        turns = sorted(range(len(work)), key=lambda number: order(work[number]))
        if self._pool:
            pending = {number: self._pool.submit(_in_worker, work[number]) for number in turns}
            for number in range(len(work)):
                yield self._result(pending.pop(number))
            return
        done: dict[int, Result | OutOfTimeError] = {}
        wanted = 0
        for number in turns:
            done[number] = self._here(work[number])
            while wanted in done:
                yield done.pop(wanted)
                wanted += 1

    def _here(self, piece: Work) -> Result | OutOfTimeError:
        def on_bytes(count: int) -> None:
            self._on_progress(count)
            self._pace.spend(count)

        try:
            self._pace.spend(0)
            return self._function(piece, on_bytes)
        except OutOfTimeError as error:
            return error

    def _result(self, future: "Future[Result]") -> Result | OutOfTimeError:
        from concurrent.futures.process import BrokenProcessPool

        while True:
            with suppress(TimeoutError):
                try:
                    return future.result(timeout=_POLL_SECONDS)
                except OutOfTimeError as error:
                    return error
                except BrokenProcessPool as error:
                    raise LogtoolError(
                        "a worker process was killed (memory?); try again with -j 1"
                    ) from error
                finally:
                    done = self._counter.value
                    self._on_progress(done - self._seen)
                    self._seen = done


def _start(function: Callable[[Any, OnBytes], Any], pace: Pace, counter: Any) -> None:
    """Prepare a worker process; Ctrl-C is the parent's to handle."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _worker.update(function=function, pace=pace, counter=counter)


def _in_worker(piece: Any) -> Any:
    def on_bytes(count: int) -> None:
        with _worker["counter"].get_lock():
            _worker["counter"].value += count
        _worker["pace"].spend(count)

    _worker["pace"].spend(0)
    return _worker["function"](piece, on_bytes)


_worker: dict[str, Any] = {}
"""What `_start` was given, in a worker process."""
