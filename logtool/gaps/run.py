"""The gaps of log dirs, partition dirs and single logs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from logtool.data_dir import Selection
from logtool.errors import UnreadableError, UsageError
from logtool.gaps.coverage import Coverage, Look, look
from logtool.gaps.ledger import Ledger, build
from logtool.gaps.subjects import Subject, Wanted, indexed, subjects
from logtool.schedule import WORTH_A_POOL
from logtool.workers import OnBytes, OutOfTimeError, Pace, Workers

__all__ = ["Gaps", "Part", "Result", "Wanted"]


@dataclass(frozen=True, slots=True)
class Part:
    """One segment that was read, and the bytes of it that are batches which count."""

    path: Path
    base_offset: int
    stretches: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Result:
    """One partition and its gaps."""

    subject: Subject
    ledger: Ledger
    segments: int
    records: int
    bytes: int
    first_base: int
    """Base offset of the first batch, which may lie below the log start; else the log start."""
    parts: tuple[Part, ...]


class Gaps:
    """One run over paths: iterate for the results, partition by partition."""

    def __init__(
        self, paths: Sequence[Path], wanted: Wanted, *, selection: Selection | None = None,
        jobs: int = 1, pace: Pace | None = None,
        on_progress: Callable[[int, int, Path], None] = lambda *_: None,
    ) -> None:  # fmt: skip
        self._paths = paths
        self._wanted = wanted
        self._selection = selection or Selection()
        self._jobs = jobs
        self._pace = pace or Pace()
        self._on_progress = on_progress
        self._done = self._total = 0
        self._path = Path()
        self.out_of_time = False

    @cached_property
    def _chosen(self) -> list[Subject | UnreadableError]:
        return [
            one
            for path in dict.fromkeys(self._paths)
            for one in subjects(path, self._wanted, self._selection)
        ]

    @property
    def partitions(self) -> int:
        """Return how many partitions are to be read."""
        return sum(isinstance(one, Subject) for one in self._chosen)

    def __iter__(self) -> Iterator[Result | UnreadableError]:
        yield from (one for one in self._chosen if isinstance(one, UnreadableError))
        wanted = [one for one in self._chosen if isinstance(one, Subject)]
        tasks = [task for one in wanted for task in one.looks(self._wanted)]
        sizes = {segment.log.path: segment.log.size for one in wanted
                 for segment in one.found.segments}  # fmt: skip
        self._total = sum(sizes[task.path] for task in tasks)
        jobs = self._jobs if self._total >= WORTH_A_POOL else 1
        turns = {id(task): turn for turn, task in enumerate(tasks)}
        with Workers(_look, jobs, self._pace, self._advance) as workers:
            # In their order: what is done early waits in memory.
            results = workers.run(tasks, lambda task: turns[id(task)])
            for one in wanted:
                self._path = one.found.path
                found = [next(results) for _ in one.looks(self._wanted)]
                yield from self._result(one, found)

    def log_end_of(self, path: Path) -> int:
        """Return where the log of another replica ends; UnreadableError, UsageError for no log."""
        other = Gaps([path], self._wanted, jobs=self._jobs, pace=self._pace)
        ends = []
        for item in other:
            if isinstance(item, UnreadableError):
                raise item
            ends.append(item.ledger.log_end)
        if other.out_of_time:
            raise UnreadableError(path, "there was no time to read it")
        if len(ends) != 1:
            raise UsageError(f"{path}: expected one partition, found {len(ends)}")
        return ends[0]

    def _result(
        self, subject: Subject, found: list[Coverage | UnreadableError | OutOfTimeError]
    ) -> Iterator[Result | UnreadableError]:
        problems = [one for one in found if isinstance(one, UnreadableError)]
        segments = [one for one in found if isinstance(one, Coverage)]
        yield from problems
        if any(isinstance(one, OutOfTimeError) for one in found):
            self.out_of_time = True
        elif not problems:
            looks = subject.looks(self._wanted)
            segments = _without_overlaps(looks, segments)
            facts = indexed(subject, segments)
            ledger = build(segments, facts, isolation=self._wanted.isolation)
            yield Result(
                replace(subject, facts=facts), ledger, len(subject.found.segments),
                sum(one.records for one in segments), sum(one.bytes for one in segments),
                next((one.first_base for one in segments if one.first_base is not None),
                     ledger.log_start),
                tuple(Part(task.path, task.base_offset, tuple(one.stretches))
                      for task, one in zip(looks, segments, strict=True)),
            )  # fmt: skip

    def _advance(self, count: int) -> None:
        self._done += count
        self._on_progress(self._done, self._total, self._path)


def _look(task: Look, on_bytes: OnBytes) -> Coverage | UnreadableError:
    try:
        return look(task, on_bytes)
    except UnreadableError as error:
        return error


def _without_overlaps(tasks: Sequence[Look], segments: list[Coverage]) -> list[Coverage]:
    """Look again at what begins below the end of the segment before it, from that end on."""
    end, result = 0, []
    for task, one in zip(tasks, segments, strict=True):
        if one.first and one.first.offset < end:
            one = look(replace(task, start=end))
            one.overlaps += 1
        end = max(end, one.last.offset + 1) if one.last else end
        result.append(one)
    return result
