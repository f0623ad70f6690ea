"""Everything about the paths given: iterate for what is to be said, then read `summary`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path

from logtool.data_dir import Selection
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.sanity import homes, judging, measuring
from logtool.sanity.homes import Home
from logtool.sanity.indexes import Opener
from logtool.sanity.judging import Seen, SeenBy
from logtool.sanity.measuring import Run, Start
from logtool.sanity.results import Directory, Measurement, Mode
from logtool.sanity.starts import Eager, Lazy
from logtool.summary import ActionSummary
from logtool.workers import OutOfTimeError, Pace

Said = Directory | Measurement | Seen | UnreadableError


@dataclass(frozen=True, slots=True)
class Settings:
    """What is to be measured."""

    modes: tuple[Mode, ...] = (Mode.EAGER, Mode.LAZY)
    threads: int = 1
    repeat: int = 1
    """Runs of each kind; the one of median time counts."""
    cold: bool = False
    """Whether the page cache is asked to forget the indexes before each run."""


class Sanity:
    """One run of `sanity` over log dirs and partition dirs."""

    def __init__(
        self, paths: Sequence[Path], settings: Settings, *, selection: Selection | None = None,
        pace: Pace | None = None,
    ) -> None:  # fmt: skip
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
        else:
            summary.bytes += item.run.cost.bytes

    def _path(self, path: Path) -> Iterator[Said]:
        home = homes.read(path, self._selection, self._pace)
        yield home.described()
        yield from home.unread
        opener = Opener(mapped=not home.in_use)
        # Lazy first: it leaves less in the page cache for the other than vice versa.
        starts: dict[Mode, Start] = {Mode.LAZY: Lazy(opener), Mode.EAGER: Eager(opener)}
        runs = {
            mode: self._median(partial(self._run, start, home), home)
            for mode, start in starts.items()
            if mode in self._settings.modes
        }
        judged = self._judged(home, runs)
        yield from self._measurements(home, runs, judged)
        yield from judged

    def _run(self, start: Start, home: Home) -> Run:
        return measuring.run(start, home.partitions, self._settings.threads, self._pace)

    def _median(self, once: Callable[[], Run], home: Home) -> Run:
        """Return the run of median time; of an even number the quicker one in the middle."""
        runs = []
        for _ in range(self._settings.repeat):
            if self._settings.cold:
                measuring.drop_cache(home.partitions)
            runs.append(once())
        return sorted(runs, key=attrgetter("seconds"))[(len(runs) - 1) // 2]

    def _judged(self, home: Home, runs: dict[Mode, Run]) -> list[Seen | UnreadableError]:
        """Return what each start sees, and after an eager one what neither sees."""
        by_path = {found.path: found for found in home.partitions}
        said: dict[tuple[Path | None, str], Seen | UnreadableError] = {}
        failed: dict[Path, set[int]] = {}
        for item in (item for run in runs.values() for item in run.found):
            if isinstance(item, UnreadableError):
                said.setdefault((item.path, "unreadable"), item)
            elif item.path and item.segment is not None:
                found = by_path[item.path.parent]
                failed.setdefault(found.path, set()).add(item.segment)
                seen = Seen(judging.placed(item, found), judging.seen_by(item))
                said.setdefault((item.path, item.code), seen)
        for found in home.partitions if Mode.EAGER in runs else ():
            self._pace.spend(0)
            bad = failed.get(found.path, set())
            for item in judging.passed_over(found, bad, clean=home.clean):
                if isinstance(item, Finding):
                    said[(item.path, f"{item.code} {item.position}")] = Seen(item, SeenBy.NEITHER)
                else:
                    said.setdefault((item.path, "unreadable"), item)
        return list(said.values())

    def _measurements(
        self, home: Home, runs: dict[Mode, Run], judged: Sequence[Seen | UnreadableError]
    ) -> Iterator[Measurement]:
        by = [item.by for item in judged if isinstance(item, Seen)]
        lazy, neither = by.count(SeenBy.LAZY), by.count(SeenBy.NEITHER)
        eager = runs.get(Mode.EAGER)
        for mode in (mode for mode in (Mode.EAGER, Mode.LAZY) if mode in runs):
            run = runs[mode]
            seen = len(by) - neither if mode is Mode.EAGER else lazy
            yield Measurement(
                home.path, mode, self._settings.threads, self._settings.repeat, run,
                cache=run.cache if self._settings.cold else None,
                service_seconds=run.seconds,
                speed_up=eager.seconds / run.seconds if eager else None,
                seen=seen,
                missed=len(by) - seen if eager else None,
            )  # fmt: skip
