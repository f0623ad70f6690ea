"""The gaps of log dirs, partition dirs and single logs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from logtool.disk.log_dir import Selection
from logtool.errors import BatchTooLargeError, UnreadableError, UsageError
from logtool.gaps.coverage import Coverage, Look, look
from logtool.gaps.ledger import Ledger, build
from logtool.gaps.subjects import GapOptions, Subject, indexed, subjects
from logtool.running.run import Run
from logtool.running.workers import OnBytes, OutOfTimeError

__all__ = ["GapOptions", "Gaps", "Part", "Result"]


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
        self,
        paths: Sequence[Path],
        wanted: GapOptions,
        *,
        selection: Selection | None = None,
        run: Run | None = None,
    ) -> None:
        self._paths = paths
        self._wanted = wanted
        self._selection = selection or Selection()
        self._run = run or Run()
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
        for one in self._chosen:
            yield from [one] if isinstance(one, UnreadableError) else one.unread
        wanted = [one for one in self._chosen if isinstance(one, Subject)]
        tasks = [task for one in wanted for task in one.looks(self._wanted)]
        sizes = {
            segment.log.path: segment.log.size
            for one in wanted
            for segment in one.partition.segments
        }
        self._run.bytes_total = sum(sizes[task.path] for task in tasks)
        turns = {id(task): turn for turn, task in enumerate(tasks)}
        with self._run.workers(_look) as workers:
            # In their order: what is done early waits in memory.
            results = workers.run(tasks, lambda task: turns[id(task)])
            for one in wanted:
                self._run.path = one.partition.path
                looked = [next(results) for _ in one.looks(self._wanted)]
                yield from self._result(one, looked)

    def log_end_of(self, path: Path) -> int:
        """Return where the log of another replica ends; UnreadableError, UsageError for no log."""
        other = Gaps([path], self._wanted, run=Run(budget=self._run.budget))
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
        self, subject: Subject, looked: list[Coverage | UnreadableError | OutOfTimeError]
    ) -> Iterator[Result | UnreadableError]:
        problems = [one for one in looked if isinstance(one, UnreadableError)]
        segments = [one for one in looked if isinstance(one, Coverage)]
        yield from problems
        for one, task in zip(looked, subject.looks(self._wanted), strict=True):
            for position in sorted(one.too_large) if isinstance(one, Coverage) else ():
                yield BatchTooLargeError(task.path, position, task.limit)
        if any(isinstance(one, OutOfTimeError) for one in looked):
            self.out_of_time = True
        elif not problems:
            looks = subject.looks(self._wanted)
            segments = _without_overlaps(looks, segments)
            facts = indexed(subject, segments, problems.append)
            yield from problems
            ledger = build(segments, facts, isolation=self._wanted.isolation)
            yield Result(
                subject=replace(subject, facts=facts),
                ledger=ledger,
                segments=len(subject.partition.segments),
                records=sum(one.records for one in segments),
                bytes=sum(one.bytes for one in segments),
                first_base=next(
                    (one.first_base for one in segments if one.first_base is not None),
                    ledger.log_start,
                ),
                parts=tuple(
                    Part(task.path, task.base_offset, tuple(one.stretches))
                    for task, one in zip(looks, segments, strict=True)
                ),
            )


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
