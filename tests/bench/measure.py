"""Times two jobs in turns; the result is the ratio of their speeds.

Other processes may disturb the machine unevenly, so A and B run in turns (A B A B ...), and the
result is the median of the ratios of the pairs.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from statistics import median

PAIRS = 5
_PEAK = (
    "import resource, subprocess, sys; "
    "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); "
    "print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
)
Job = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Seconds of two jobs, pair by pair."""

    ours: list[float]
    theirs: list[float]

    @property
    def ratios(self) -> list[float]:
        """Return how many times our job is as fast as theirs, pair by pair."""
        return [b / a for a, b in zip(self.ours, self.theirs, strict=True)]


def timed(job: Job) -> float:
    """Return the seconds that one run takes."""
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def pairs(
    ours: Job, theirs: Job, count: int = PAIRS, *, warm: bool = True, before: Job = lambda: None
) -> Timing:
    """Time both jobs `count` times in turns, after one run of each that does not count.

    `before` is called before each run, and is not timed.
    """
    if warm:
        ours()
        theirs()
    timing = Timing([], [])
    for _ in range(count):
        for job, seconds in ((ours, timing.ours), (theirs, timing.theirs)):
            before()
            seconds.append(timed(job))
    return timing


def runs(job: Job, count: int = PAIRS) -> list[float]:
    """Return the seconds of `count` runs, after one that does not count."""
    job()
    return [timed(job) for _ in range(count)]


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Return median, smallest and largest."""
    return median(values), min(values), max(values)


def run(command: Sequence[str]) -> None:
    """Run a command to its end with its output thrown away; it must exit with 0."""
    done = subprocess.run(
        command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    if done.returncode:
        sys.stderr.write(done.stderr.decode(errors="replace"))
        done.check_returncode()


def seconds_of(command: Sequence[str]) -> tuple[float, float]:
    """Return the seconds that a command took, and those of them that a processor worked for it."""
    began = os.times()
    run(command)
    ended = os.times()
    worked = ended.children_user + ended.children_system
    return ended.elapsed - began.elapsed, worked - began.children_user - began.children_system


def peak_memory(command: Sequence[str], statuses: Collection[int] = (0,)) -> int:
    """Return the bytes of the largest resident set of a command, which exits with one of these.

    A child begins with what its parent holds, so a small process stands between.
    """
    done = subprocess.run(
        [sys.executable, "-S", "-c", _PEAK, *command],
        env=environment(), stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    status, kib = map(int, done.stdout.split())
    if status not in statuses:
        raise subprocess.CalledProcessError(status, list(command))
    return kib * 1024


_NOT_INHERITED = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
"""Variables of the harness: its path, and one that makes Python compile our modules each time."""


def environment() -> dict[str, str]:
    """Return the environment for a process that is measured, as a user has it without settings."""
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    return kept | {"LOGTOOL_CONFIG": ""}
