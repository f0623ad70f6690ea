"""The schedule of a run over segments: their order and their threads. Reports come in order."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from logtool.checks import segment_part
from logtool.checks.report import SegmentReport, SegmentTask
from logtool.checks.segment_part import SegmentPart
from logtool.checks.segment_ranges import PieceReport, check_tasks, cut, join
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition
from logtool.log.file import File
from logtool.log.flavour import Flavour
from logtool.running.budget import WORTH_A_POOL
from logtool.running.run import Run
from logtool.running.windows import WINDOW
from logtool.running.workers import OnBytes, OutOfTimeError, Workers

if TYPE_CHECKING:
    from logtool.running.resume import Memory

_UNIT_BYTES, _UNIT_SEGMENTS = 8 * 1024 * 1024, 64
"""Limits of the small segments that go to a thread together: bytes and number."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_Report = SegmentReport | PieceReport | None
"""The report of a task; None if time ran out."""

Unit = Sequence[SegmentTask]
"""Whole segments, or one piece of a segment."""
Reports = list[SegmentReport | PieceReport]
_Turn = tuple[float, str, int]


class Runner(Protocol):
    """A pool that checks units: `Workers` of this process, or executors elsewhere."""

    jobs: int

    def run(
        self, work: Sequence[Sequence[SegmentTask]], order: Callable[[Sequence[SegmentTask]], Any]
    ) -> Iterator[list[SegmentReport | PieceReport] | OutOfTimeError]:
        """Yield the reports of each unit, in the order given."""

    def again(
        self, piece: Sequence[SegmentTask]
    ) -> list[SegmentReport | PieceReport] | OutOfTimeError:
        """Return the reports of a unit whose bytes were counted before."""


class Engine(Protocol):
    """A place other than this process where segments are checked."""

    window: int
    """Number of segments that are planned ahead."""

    def piece_bytes(self, total: int) -> int:
        """Return the approximate size of the pieces of a segment, if `total` bytes are checked."""

    def partitions(
        self, paths: Sequence[Path], flavour: Flavour | None = None
    ) -> Iterator[Partition | UnreadableError]:
        """Yield the result of `logtool.log.opening.try_partition` for each path."""

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item], what: str
    ) -> Sequence[_Result]:
        """Return the results of a function for each item, in order; `what` describes the job."""

    def runner(self, on_bytes: OnBytes) -> AbstractContextManager[Runner]:
        """Return the runner of units, which reports the bytes it has read to `on_bytes`."""


class EarlierReports(Protocol):
    """The reports of an earlier run, whose segments are not checked again."""

    def known(self, tasks: Sequence[SegmentTask]) -> Sequence[SegmentReport | None]:
        """Return the reports of tasks whose segments are still the same; None for any other."""

    def remember(self, task: SegmentTask, report: SegmentReport) -> None:
        """Keep the report of a segment that was checked in this run."""


@dataclass(slots=True)
class PartitionJob:
    """The tasks for the segments of one partition; `subject` is an object of the caller."""

    path: Path
    tasks: Sequence[SegmentTask]
    subject: Any

    @property
    def bytes(self) -> int:
        """Return the bytes of its logs."""
        return sum(task.segment.log.size for task in self.tasks)


@dataclass(frozen=True, slots=True)
class ResumeCoverage:
    """The segments that runs with one memory have checked, at the end of a run."""

    segments: int
    """Segments with data."""
    unchecked: int
    """Segments with data that no run has checked as they are now."""
    unchecked_bytes: int
    """Bytes of these segments."""
    oldest_s: float
    """Time of the check that is longest ago, in s since 1970; 0 if a segment was never checked."""
    unreached: int
    """Log dirs and other paths for which there was no time; the other counts leave them out."""
    next_path: Path
    """The log with which the next run goes on, or the path with which it begins."""


class Schedule:
    """A context manager that runs jobs within the budget of a run.

    With an `engine` segments are checked elsewhere; threads and pace of the budget do not count.
    Segments that an `earlier` run knows are not checked again.
    """

    def __init__(
        self, run: Run, *, engine: Engine | None = None, earlier: EarlierReports | None = None
    ) -> None:
        self._budget = run.budget
        self._on_bytes = run.advance
        self._engine = engine
        self._earlier = earlier
        self._path = Path()
        self._stack = ExitStack()
        self._workers: Runner | None = None
        self._parallel = engine is not None
        self._piece_bytes: int | None = None
        self.out_of_time = False
        """True if some segment was not checked because time ran out."""
        self._first_finished: _Turn | None = None
        """With a memory: the earliest turn of the segments that were read to their end."""
        self._left: list[SegmentTask] = []
        """With a memory: tasks of started jobs for which time ran out."""
        self.read_in_part: dict[Path, int] = {}
        """With a memory: logs that were read further, and the byte at which the next run goes on"""
        self._partial: dict[Path, SegmentReport] = {}
        """Reports of logs that were not read to their end, until the job has taken them."""
        self.reached: set[Path] = set()
        """The paths of the run that were begun, as the caller notes them."""
        self._logs: list[File] = []
        """With a memory: the logs of all jobs."""
        self.too_large: list[File] = []
        """With a memory, at the end: the logs for which the whole time of the run was too short."""

    def __enter__(self) -> "Schedule":
        self._stack.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)
        if memory := self._budget.memory:
            turns = sorted(((self._order([task]), task) for task in self._left), key=itemgetter(0))
            ahead = [
                task.segment.log
                for turn, task in turns
                if self._first_finished is None or turn < self._first_finished
            ]
            ahead = ahead[: self._budget.jobs]
            self.too_large = [log for log in ahead if log.path not in self.read_in_part]
            for log in self.too_large:
                memory.give_up(log)
            memory.save()

    def coverage(self, paths: Iterable[Path]) -> ResumeCoverage | None:
        """Return the coverage of this run and earlier ones; None without a memory, or without data.

        `paths` are those of the run, in `reached` so far as there was time for them.
        """
        memory, logs = self._budget.memory, [log for log in self._logs if log.size]
        unreached = [path for path in paths if path not in self.reached]
        if memory is None or not (logs or unreached):
            return None
        unchecked = [log for log in logs if not memory.checked_s(log)]
        turns = sorted((memory.age_key(log), str(log.path), log.path) for log in logs)
        return ResumeCoverage(
            segments=len(logs),
            unchecked=len(unchecked),
            unchecked_bytes=sum(log.size for log in unchecked),
            oldest_s=min(map(memory.checked_s, logs), default=0.0),
            unreached=len(unreached),
            next_path=memory.in_turn(paths)[0] if unreached else turns[0][2],
        )

    def spend(self, count: int, path: Path) -> None:
        """Count bytes that were read outside of a job; OutOfTimeError if time ran out."""
        self._on_bytes(count, path)
        self._budget.pace.spend(count)

    def count(self, size: int, path: Path) -> None:
        """Count bytes that were read outside of a job and keep to no limit."""
        self._on_bytes(size, path)

    def run(
        self, jobs: Iterable[PartitionJob]
    ) -> Iterator[tuple[PartitionJob, Iterator[SegmentReport]]]:
        """Yield each job with the reports of its tasks, in their order.

        The jobs come in the order given, or with a memory the least recently checked first. Once
        time ran out, reports of unchecked segments have `skipped` set, and no further job comes.
        """
        for window in self._windows(jobs):
            known = self._known_before(window)
            left = [[task for task in job.tasks if id(task) not in known] for job in window]
            self._start(sum(task.segment.log.size for tasks in left for task in tasks))
            units = [unit for tasks in left for unit in self._units(tasks)]
            results = self._reports(units)
            for job in window:
                self._path = job.path
                reports = _merged(job.tasks, known, results)
                yield job, reports
                for _ in reports:
                    pass  # reports that the caller did not take must not go to the next job
                if self.out_of_time:
                    return

    def _windows(self, jobs: Iterable[PartitionJob]) -> Iterator[list[PartitionJob]]:
        if self._budget.memory:
            jobs = sorted(jobs, key=lambda job: min(map(self._age, job.tasks), default=0.0))
            self._logs += [task.segment.log for job in jobs for task in job.tasks]
        elif self._budget.jobs == 1 and not self._engine:
            for job in jobs:
                yield [job]
            return
        window: list[PartitionJob] = []
        segments, most = 0, self._engine.window if self._engine else WINDOW
        for job in jobs:
            window.append(job)
            segments += max(len(job.tasks), 1)
            # What is not reached is not listed either.
            if segments >= most or self._budget.pace.is_over:
                yield window
                window, segments = [], 0
        yield window

    def _known_before(self, window: Sequence[PartitionJob]) -> dict[int, SegmentReport]:
        """Return the reports of an earlier run, by the `id` of their tasks."""
        if not self._earlier:
            return {}
        tasks = [task for job in window for task in job.tasks]
        reports = self._earlier.known(tasks)
        found = {id(task): one for task, one in zip(tasks, reports, strict=True) if one}
        self._on_bytes(sum(task.segment.log.size for task in tasks if id(task) in found), Path())
        return found

    def _start(self, total: int) -> None:
        """Start threads if there are enough bytes; once started, they stay."""
        budget = self._budget
        if self._engine:
            self._piece_bytes = self._engine.piece_bytes(total)
            if self._workers is None:
                runner = self._engine.runner(lambda n: self._on_bytes(n, self._path))
                self._workers = self._stack.enter_context(runner)
            return
        self._parallel |= budget.jobs > 1 and total >= WORTH_A_POOL
        wanted = budget.jobs if self._parallel else 1
        if self._workers is None or self._workers.jobs < wanted:
            workers: Workers[Unit, Reports] = Workers(
                function=check_tasks,
                jobs=wanted,
                pace=budget.pace,
                on_progress=lambda n: self._on_bytes(n, self._path),
            )
            self._workers = self._stack.enter_context(workers)

    def _units(self, tasks: Sequence[SegmentTask]) -> Iterator[list[SegmentTask]]:
        """Yield the tasks in units: large segments in pieces, small segments together."""
        if memory := self._budget.memory:
            tasks = [_continued(task, memory) for task in tasks]
            self._on_bytes(sum(task.part.position for task in tasks if task.part), self._path)
        if not self._parallel:
            yield from ([task] for task in tasks)
            return
        unit: list[SegmentTask] = []
        size = 0
        for task in tasks:
            # Of a segment in pieces no part is kept.
            pieces = [task] if memory else cut(task, self._piece_bytes)
            if len(pieces) > 1:
                if unit:
                    yield unit
                yield from ([piece] for piece in pieces)
                unit, size = [], 0
                continue
            unit.append(task)
            size += task.segment.log.size
            if size >= _UNIT_BYTES or len(unit) >= _UNIT_SEGMENTS:
                yield unit
                unit, size = [], 0
        if unit:
            yield unit

    def _reports(self, units: Sequence[list[SegmentTask]]) -> Iterator[SegmentReport]:
        results = self._workers.run(units, self._order) if self._workers else iter(())
        pieces: list[_Report] = []
        for unit, result in zip(units, results, strict=True):
            if isinstance(result, OutOfTimeError):
                self._keep(unit, result.part)
                for task in unit:
                    part = result.partial
                    if part and part.base_offset == task.segment.base_offset:
                        self._note(task, part, part.findings)
            reports = [None] * len(unit) if isinstance(result, OutOfTimeError) else result
            for task, report in zip(unit, reports, strict=True):
                if not task.piece:
                    yield self._known(task, report)
                    continue
                pieces.append(report)
                if task.piece.stop == task.segment.log.size:
                    yield self._known(task, self._joined(replace(task, piece=None), pieces))
                    pieces = []

    def _keep(self, unit: Sequence[SegmentTask], part: SegmentPart | None) -> None:
        """Keep the part that was read of a segment of the unit until time ran out."""
        memory = self._budget.memory
        if memory is None or part is None:
            return
        for task in unit:
            before = task.part.position if task.part else 0
            if task.segment.base_offset == part.report.base_offset and part.position > before:
                memory.keep(task.segment.log, segment_part.basis(task), part.encode())
                self.read_in_part[task.segment.log.path] = part.position

    def _joined(self, task: SegmentTask, pieces: Sequence[_Report]) -> _Report:
        """Return the report of a segment, joined from its pieces; None if time ran out."""
        done = [piece for piece in pieces if isinstance(piece, PieceReport)]
        if len(done) == len(pieces) and self._workers:
            if report := join(task, done):
                return report
            again = self._workers.again([task])
            if not isinstance(again, OutOfTimeError):
                return again[0]
        for piece in done:
            self._note(task, piece.report, piece.damage)
        return None

    def _note(
        self,
        task: SegmentTask,
        part: SegmentReport,
        findings: Sequence[Finding | UnreadableError] = (),
    ) -> None:
        """Note the part that was read of a segment until time ran out, with its findings."""
        segment = task.segment
        none = SegmentReport(segment.base_offset, skipped=True)
        report = self._partial.setdefault(segment.log.path, none)
        report.findings += findings
        report.batches += part.batches
        report.records += part.records
        report.bytes += part.bytes

    def _known(self, task: SegmentTask, report: _Report) -> SegmentReport:
        """Return the report of a task, and note whether there was time for it."""
        if not isinstance(report, SegmentReport):
            self.out_of_time = True
            if self._budget.memory:
                self._left.append(task)
            none = SegmentReport(task.segment.base_offset, skipped=True)
            return self._partial.pop(task.segment.log.path, none)
        if self._budget.memory and report.scanned:
            turn = self._order([task])
            self._first_finished = min(turn, self._first_finished or turn)
            self._budget.memory.remember(task.segment.log)
        if self._earlier:
            self._earlier.remember(task, report)
        return report

    def _order(self, unit: Sequence[SegmentTask]) -> _Turn:
        """Return the turn of a unit: the largest first.

        With a memory it is the least recently checked first, segment by segment: a segment counts
        as checked once all of its pieces are.
        """
        if self._budget.memory:
            first = min(unit, key=self._age)
            start = first.piece.start if first.piece else 0
            return self._age(first), str(first.segment.log.path), start
        return 0.0, "", -sum(task.segment.log.size for task in unit) if self._parallel else 0

    def _age(self, task: SegmentTask) -> float:
        memory = self._budget.memory
        return memory.age_key(task.segment.log) if memory else 0.0


def _continued(task: SegmentTask, memory: "Memory") -> SegmentTask:
    """Return the task with the part of its segment that an earlier run has read."""
    known = memory.part_of(task.segment.log, segment_part.basis(task))
    part = segment_part.parse(known, task) if known else None
    return replace(task, part=part, keeps_part=True)


def _merged(
    tasks: Sequence[SegmentTask],
    known: Mapping[int, SegmentReport],
    results: Iterator[SegmentReport],
) -> Iterator[SegmentReport]:
    """Yield the report of each task: one that was known before, or the next result."""
    for task in tasks:
        report = known.get(id(task))
        yield report if report else next(results)
