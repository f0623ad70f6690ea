"""The engine of `verify` on Spark: executors run the function that local threads run elsewhere.

A window of segments is one job. Its units go to tasks of about the same number of bytes, the
largest first, and the executors return reports: plain data, no rows. All segments of a partition in
a bucket of AutoMQ go to one task, because it reads all streams of the partition to find one.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from logtool.checks.schedule import Reports, Unit
from logtool.checks.segment_ranges import PIECE_BYTES, check_tasks
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.log import opening
from logtool.log.dir import Partition
from logtool.log.flavour import Flavour
from logtool.running.workers import OnBytes
from logtool.spark import connect
from logtool.spark.session import SparkError, job_failed

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from logtool.disk.assembled import AssembledPath

Item = TypeVar("Item")
Result = TypeVar("Result")
WINDOW = 65536
"""Segments in one job: enough to make the fixed cost of a job negligible, few enough for the driver
to hold their reports."""
TASK_BYTES = 1024**3
"""Approximate bytes in one task: enough to make its fixed cost of 20 ms negligible, few enough that
a slow or lost task delays the job little."""
_LIST_AT_ONCE = 4096
"""Directories in a job that lists them."""
_WORTH_A_JOB = 64
"""Directories from which on executors list them."""
_POLL_SECONDS = 0.1

TaskWork = Callable[[list[tuple[int, Unit]]], Iterable[tuple[int, Any]]]
"""Function that an executor runs on one task: it takes numbered units and yields numbered
results."""


def check_units(units: list[tuple[int, Unit]]) -> Iterator[tuple[int, Reports]]:
    """Check units as a thread of the local engine does, and yield the reports of each."""
    for number, unit in units:
        yield number, check_tasks(unit, lambda _: None)


class SparkEngine:
    """The `logtool.checks.schedule.Engine` of a Spark session."""

    window = WINDOW

    def __init__(self, spark: "SparkSession", work: TaskWork = check_units) -> None:
        if connect.is_connect(spark):
            raise SparkError(connect.REFUSAL)
        self._context = spark.sparkContext
        self._work = work

    @property
    def cores(self) -> int:
        """Return the cores of the cluster, as far as the driver knows."""
        return max(1, int(self._context.defaultParallelism))

    def piece_bytes(self, total: int) -> int:
        """Return the size of pieces: two to a task, never below the local engine's."""
        return max(PIECE_BYTES, total // (2 * _task_count(total, self.cores)))

    def partitions(
        self, paths: Sequence[Path], flavour: Flavour | None = None
    ) -> Iterator[Partition | UnreadableError]:
        """List partition dirs, in executors where there are many or each takes long."""
        listing = partial(_listed, flavour=flavour)
        if len(paths) < _WORTH_A_JOB and not any(map(files.is_assembled, paths)):
            for path in paths:
                yield opening.try_partition(path, flavour)
            return
        for at in range(0, len(paths), _LIST_AT_ONCE):
            some = paths[at : at + _LIST_AT_ONCE]
            what = f"listing {len(some):,} partition dirs"
            for path, (found, problems) in zip(some, self.map(listing, some, what), strict=True):
                if problems:
                    cast("AssembledPath", path).tree.note(path.name, problems)
                yield found

    def map(
        self, function: Callable[[Item], Result], items: Sequence[Item], what: str
    ) -> list[Result]:
        """Return the results of a function for each item, in order; `what` describes the job.

        SparkError if the job fails.
        """
        if not items:
            return []
        self._context.setJobDescription(f"logtool: {what}")
        slices = min(len(items), 4 * self.cores)
        try:
            found: list[Result] = self._context.parallelize(items, slices).map(function).collect()
        except Exception as error:
            raise job_failed(error) from error
        return found

    @contextmanager
    def runner(self, on_bytes: OnBytes) -> Iterator["SparkRunner"]:
        """Yield the runner of the units; at the end cancel the job that is under way."""
        runner = SparkRunner(
            context=self._context, cores=self.cores, work=self._work, on_bytes=on_bytes
        )
        try:
            yield runner
        finally:
            runner.stop()


class SparkRunner:
    """The `logtool.checks.schedule.Runner` of a Spark session."""

    def __init__(
        self, context: "SparkContext", cores: int, work: TaskWork, on_bytes: OnBytes
    ) -> None:
        self.jobs = cores
        self._context = context
        self._work = work
        self._on_bytes = on_bytes
        self._group = f"logtool-{id(self)}"
        # py4j answers in the thread that asked; this one stays free for progress and Ctrl-C.
        self._thread = ThreadPoolExecutor(1)
        self._future: Future[list[tuple[int, Any]]] | None = None

    def run(self, work: Sequence[Unit], order: Callable[[Unit], Any]) -> Iterator[Reports]:
        """Yield the reports of each unit, in the order given; SparkError if the job fails."""
        del order  # The largest first, always.
        if not work:
            return
        results: list[Reports | None] = [None] * len(work)
        for number, result in self._job(_shared_out(work, self.jobs)):
            if number < 0:
                self.take_task(result)
            else:
                results[number] = self.take(work[number], result)
        for number, reports in enumerate(results):
            results[number] = None
            if reports is None:
                raise SparkError("Spark lost the result of a task without an error")
            yield reports

    def again(self, piece: Unit) -> Reports:
        """Return the reports of one unit, whose bytes were counted before."""
        reports: Reports = []
        for number, result in self._job([[(0, piece)]], count=False):
            if number < 0:
                self.take_task(result)
            else:
                reports = self.take(piece, result)
        return reports

    def take(self, unit: Unit, result: Any) -> Reports:
        """Return the reports in the result of `work` for one unit."""
        reports: Reports = result
        return reports

    def take_task(self, result: Any) -> None:
        """Take a result of `work` for a task as a whole, which has a number below 0."""

    def stop(self) -> None:
        """Cancel the job that is under way."""
        # Spark cannot cancel a job that has not reached it yet: ask again until the job ends.
        while self._future and not self._future.done():
            with suppress(Exception):  # A broken connection must not hide what broke it.
                self._context.cancelJobGroup(self._group)
            wait([self._future], _POLL_SECONDS)
        self._thread.shutdown()

    def _job(
        self, tasks: list[list[tuple[int, Unit]]], *, count: bool = True
    ) -> list[tuple[int, Any]]:
        """Run one job and return all its results; report the bytes read meanwhile."""
        work = self._work
        total = sum(_size(unit) for task in tasks for _, unit in task) if count else 0
        future = self._future = self._thread.submit(self._collect, tasks, work)
        done = 0
        while not wait([future], _POLL_SECONDS).done:
            share = total * self._finished() // max(1, len(tasks))
            self._on_bytes(max(0, share - done))  # Also 0: the bar shows that it is alive.
            done = max(done, share)
        try:
            results = future.result()
        except Exception as error:
            raise job_failed(error) from error
        self._on_bytes(total - done)
        return results

    def _collect(
        self, tasks: list[list[tuple[int, Unit]]], work: TaskWork
    ) -> list[tuple[int, Any]]:
        count = sum(len(task) for task in tasks)
        self._context.setJobGroup(
            self._group, f"logtool: reading {count:,} pieces of logs", interruptOnCancel=True
        )
        found: list[tuple[int, Any]] = (
            self._context.parallelize(tasks, len(tasks))
            .mapPartitions(lambda some: (one for task in some for one in work(task)))
            .collect()
        )
        return found

    def _finished(self) -> int:
        """Return how many tasks of the job are done."""
        with suppress(Exception):  # Where the connection is broken the job ends, and says so.
            tracker = self._context.statusTracker()
            stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
            return max((stage.numCompletedTasks for stage in stages if stage), default=0)
        return 0


def _task_count(total: int, cores: int) -> int:
    """Return the number of tasks for `total` bytes: a multiple of the number of cores."""
    return cores * max(1, -(-total // (cores * TASK_BYTES)))


def _shared_out(work: Sequence[Unit], cores: int) -> list[list[tuple[int, Unit]]]:
    """Return the numbered units as tasks of about the same size, each with its largest first."""
    groups: dict[object, list[int]] = {}
    for number, unit in enumerate(work):
        groups.setdefault(_kept_together(unit) or number, []).append(number)
    # A unit costs something even when there is nothing in it.
    costs = {key: sum(_size(work[one]) + 65536 for one in group) for key, group in groups.items()}
    count = _task_count(sum(map(_size, work)), cores)
    tasks: list[list[tuple[int, Unit]]] = [[] for _ in range(min(count, len(groups)))]
    free = [(0, number) for number in range(len(tasks))]
    for key in sorted(groups, key=lambda key: -costs[key]):
        size, least = free[0]
        tasks[least] += [(number, work[number]) for number in groups[key]]
        heapq.heapreplace(free, (size + costs[key], least))
    return tasks


def _kept_together(unit: Unit) -> Path | None:
    """Return the partition dir whose units are all in one task; None for a unit on its own."""
    path = unit[0].segment.log.path
    return path.parent if files.is_assembled(path) else None


def _listed(
    path: Path, flavour: Flavour | None
) -> tuple[Partition | UnreadableError, Sequence[UnreadableError]]:
    """List a partition dir, and return why parts of it are missing."""
    found = opening.try_partition(path, flavour)
    if not files.is_assembled(path):
        return found, ()
    return found, cast("AssembledPath", path).tree.problems_of(path.name)


def _size(unit: Unit) -> int:
    return sum(len(task.piece) if task.piece else task.segment.log.size for task in unit)
