"""The checks of all given paths: iterate over the results, then read `summary`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path

from logtool.disk.log_dir import Selection
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.running.summary import ActionSummary
from logtool.running.workers import OutOfTimeError, Pace
from logtool.sanity import background, judging, listing, measuring, model
from logtool.sanity.indexes import Opener
from logtool.sanity.judging import Seen, SeenBy
from logtool.sanity.listing import Listing
from logtool.sanity.measuring import Run, Start
from logtool.sanity.model import Model, Projection, Target
from logtool.sanity.results import Directory, Measurement, Mode
from logtool.sanity.starts import Eager, Lazy, first_access

Said = Directory | Measurement | Model | Projection | Seen | UnreadableError


@dataclass(frozen=True, slots=True)
class Procedure:
    """What is to be measured."""

    modes: tuple[Mode, ...] = (Mode.EAGER, Mode.LAZY)
    threads: int = 1
    repeat: int = 1
    """Runs of each kind; the one of median time counts."""
    cold: bool = False
    """Whether the page cache is asked to forget the indexes before each run."""
    readers: int = 0
    """First readers of inactive segments."""
    background_threads: int = 0
    targets: tuple[Target, ...] = ()
    """Sizes to project to."""


class Sanity:
    """One run of `sanity` over log dirs and partition dirs."""

    def __init__(
        self,
        paths: Sequence[Path],
        settings: Procedure,
        *,
        selection: Selection | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._paths = paths
        self._settings = settings
        self._selection = selection or Selection()
        self._pace = pace or Pace()
        self.summary = ActionSummary()

    def __iter__(self) -> Iterator[Said]:
        for path in dict.fromkeys(self._paths):
            try:
                for item in self._path(path):
                    self._count(item)
                    yield item
            except UnreadableError as error:
                self._count(error)
                yield error
            except OutOfTimeError:
                self.summary.out_of_budget = True
                return

    def _count(self, item: Said) -> None:
        summary = self.summary
        if isinstance(item, UnreadableError):
            summary.add(item)
        elif isinstance(item, Seen):
            summary.add(item.finding)
            # Whatever its severity: a broker that checks recovers the segment.
            summary.to_do |= item.by is not SeenBy.NEITHER
        elif isinstance(item, Directory):
            summary.partitions += item.partitions
            summary.segments += item.segments
        elif isinstance(item, Measurement):
            summary.bytes += item.run.cost.bytes

    def _path(self, path: Path) -> Iterator[Said]:
        listed = listing.read(path, self._selection, self._pace)
        yield listed.described()
        yield from listed.unread
        runs = {
            mode: self._median(once, listed)
            for mode, once in self._wanted(listed)
            if listed.partitions
        }
        judged = self._judged(listed, runs)
        yield from self._measurements(listed, runs, judged)
        models = [
            fitted
            for mode in (Mode.EAGER, Mode.LAZY)
            if mode in runs and (fitted := model.fit(listed.path, mode, runs[mode]))
        ]
        yield from models
        yield from (one.at(target) for target in self._settings.targets for one in models)
        yield from judged

    def _wanted(self, listed: Listing) -> Iterator[tuple[Mode, Callable[[], Run]]]:
        """Yield what is to be measured, in order."""
        settings, pace = self._settings, self._pace
        opener, partitions = Opener(mapped=not listed.in_use), listed.partitions
        # Lazy first: it leaves less in the page cache for the other than vice versa.
        starts: dict[Mode, Start] = {Mode.LAZY: Lazy(opener), Mode.EAGER: Eager(opener)}
        for mode, start in starts.items():
            if mode in settings.modes:
                yield mode, partial(measuring.run, start, partitions, settings.threads, pace)
        if settings.readers:
            yield (
                Mode.FIRST_ACCESS,
                partial(first_access, opener, partitions, settings.readers, pace),
            )
        if settings.background_threads:
            yield (
                Mode.BACKGROUND,
                partial(
                    background.run,
                    opener,
                    partitions,
                    threads=settings.threads,
                    background_threads=settings.background_threads,
                    reader_count=settings.readers,
                    pace=pace,
                ),
            )

    def _median(self, once: Callable[[], Run], listed: Listing) -> Run:
        """Return the run of median time; of an even number the quicker one in the middle."""
        runs = []
        for _ in range(self._settings.repeat):
            if self._settings.cold:
                measuring.drop_cache(listed.partitions)
            runs.append(once())
        return sorted(runs, key=attrgetter("seconds"))[(len(runs) - 1) // 2]

    def _judged(self, listed: Listing, runs: dict[Mode, Run]) -> list[Seen | UnreadableError]:
        """Return what each start sees, and after an eager one what neither sees."""
        by_path = {partition.path: partition for partition in listed.partitions}
        said: dict[tuple[Path | None, str], Seen | UnreadableError] = {}
        failed: dict[Path, set[int]] = {}
        for item in (item for run in runs.values() for item in run.found):
            if isinstance(item, UnreadableError):
                said.setdefault((item.path, "unreadable"), item)
            elif item.path and item.segment is not None:
                partition = by_path[item.path.parent]
                failed.setdefault(partition.path, set()).add(item.segment)
                seen = Seen(judging.placed(item, partition), judging.seen_by(item))
                said.setdefault((item.path, item.code), seen)
        for partition in listed.partitions if Mode.EAGER in runs else ():
            self._pace.spend(0)
            bad = failed.get(partition.path, set())
            for item in judging.passed_over(partition, bad, clean=listed.clean):
                if isinstance(item, Finding):
                    said[(item.path, f"{item.code} {item.position}")] = Seen(item, SeenBy.NEITHER)
                else:
                    said.setdefault((item.path, "unreadable"), item)
        return list(said.values())

    def _measurements(
        self, listed: Listing, runs: dict[Mode, Run], judged: Sequence[Seen | UnreadableError]
    ) -> Iterator[Measurement]:
        by = [item.by for item in judged if isinstance(item, Seen)]
        eager = runs.get(Mode.EAGER)
        for mode in (mode for mode in Mode if mode in runs):
            run = runs[mode]
            seen = sum(isinstance(item, Finding) for item in run.found)
            if mode is Mode.EAGER:
                # What it did not get to in a bad segment is made anew with the rest.
                seen = len(by) - by.count(SeenBy.NEITHER)
            served = run.service_seconds
            yield Measurement(
                path=listed.path,
                mode=mode,
                threads=self._settings.threads,
                repeat=self._settings.repeat,
                run=run,
                cache=run.cache if self._settings.cold else None,
                speed_up=eager.seconds / served if eager and served else None,
                seen=seen,
                missed=len(by) - seen if eager and mode is not Mode.FIRST_ACCESS else None,
            )
