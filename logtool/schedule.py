"""Which segments are looked at when, and in how many processes; the reports come in order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from logtool.checks.segment import SegmentReport, Task, check_segments
from logtool.resume import Memory
from logtool.workers import OutOfTimeError, Pace, Workers

WORTH_A_POOL = 64 * 1024 * 1024
"""Bytes of log from which on several processes are quicker than one that need not start them."""
WINDOW = 4096
"""Segments that are planned ahead, so that the largest of them can start first."""
_UNIT_BYTES, _UNIT_SEGMENTS = 8 * 1024 * 1024, 64
"""How much of small segments goes to a process at once."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of the machine a verification may take."""

    jobs: int = 1
    """Processes."""
    pace: Pace = field(default_factory=Pace)
    drop_cache: bool = False
    """Whether pages of the page cache are given back once they are read."""
    memory: Memory | None = None
    """What was checked in earlier runs: the least recently checked comes first."""


@dataclass(slots=True)
class Job:
    """The segments of one partition; `subject` is whatever the caller knows of it."""

    path: Path
    tasks: Sequence[Task]
    subject: Any

    @property
    def bytes(self) -> int:
        """Return the bytes of its logs."""
        return sum(task.segment.log.size for task in self.tasks)


class Schedule:
    """Runs jobs within a budget; use as a context manager."""

    def __init__(self, budget: Budget, on_bytes: Callable[[int, Path], None]) -> None:
        self._budget = budget
        self._on_bytes = on_bytes
        self._path = Path()
        self._stack = ExitStack()
        self._workers: Workers[Sequence[Task], list[SegmentReport]] | None = None
        self._parallel = False
        self.out_of_time = False
        """Whether some segment was not looked at because time was over."""

    def __enter__(self) -> "Schedule":
        self._stack.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)
        if self._budget.memory:
            self._budget.memory.save()

    def spend(self, count: int, path: Path) -> None:
        """Count bytes read outside of a job; OutOfTimeError once time is over."""
        self._on_bytes(count, path)
        self._budget.pace.spend(count)

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Iterator[SegmentReport]]]:
        """Yield each job with the reports of its tasks, in their order.

        The jobs come in the order given, or with a memory the least recently checked first. Once
        time is over, the reports of what was not looked at say `skipped`, and no further job comes.
        """
        for window in self._windows(jobs):
            self._start(window)
            units = [unit for job in window for unit in self._units(job.tasks)]
            results = self._reports(units)
            for job in window:
                self._path = job.path
                reports = islice(results, len(job.tasks))
                yield job, reports
                for _ in reports:
                    pass  # what the caller did not ask for must not become the next job's
                if self.out_of_time:
                    return

    def _windows(self, jobs: Iterable[Job]) -> Iterator[list[Job]]:
        if self._budget.memory:
            jobs = sorted(jobs, key=lambda job: min(map(self._age, job.tasks), default=0.0))
        elif self._budget.jobs == 1:
            for job in jobs:
                yield [job]
            return
        window: list[Job] = []
        segments = 0
        for job in jobs:
            window.append(job)
            segments += len(job.tasks)
            if segments >= WINDOW:
                yield window
                window, segments = [], 0
        yield window

    def _start(self, window: Sequence[Job]) -> None:
        """Start processes where there is enough to do; once started they stay."""
        budget = self._budget
        self._parallel |= budget.jobs > 1 and sum(job.bytes for job in window) >= WORTH_A_POOL
        wanted = budget.jobs if self._parallel else 1
        if self._workers is None or self._workers.jobs < wanted:
            workers = Workers(
                check_segments, wanted, budget.pace, lambda n: self._on_bytes(n, self._path)
            )
            self._workers = self._stack.enter_context(workers)

    def _units(self, tasks: Sequence[Task]) -> Iterator[list[Task]]:
        """Yield the tasks in pieces of work: one by one, or small ones together for a process."""
        unit: list[Task] = []
        size = 0
        for task in tasks:
            unit.append(task)
            size += task.segment.log.size
            if not self._parallel or size >= _UNIT_BYTES or len(unit) >= _UNIT_SEGMENTS:
                yield unit
                unit, size = [], 0
        if unit:
            yield unit

    def _reports(self, units: Sequence[list[Task]]) -> Iterator[SegmentReport]:
        results = self._workers.run(units, self._order) if self._workers else iter(())
        for unit, result in zip(units, results, strict=True):
            if isinstance(result, OutOfTimeError):
                self.out_of_time = True
                for task in unit:
                    yield SegmentReport(task.segment.base_offset, skipped=True)
                continue
            for task, report in zip(unit, result, strict=True):
                if self._budget.memory and report.scanned:
                    self._budget.memory.remember(task.segment.log)
                yield report

    def _order(self, unit: Sequence[Task]) -> tuple[float, int]:
        """Return the turn of a unit: the least recently checked first, then the largest."""
        if not self._parallel and not self._budget.memory:
            return 0.0, 0
        size = sum(task.segment.log.size for task in unit)
        return min(map(self._age, unit)), -size

    def _age(self, task: Task) -> float:
        memory = self._budget.memory
        return memory.age_key(task.segment.log) if memory else 0.0
