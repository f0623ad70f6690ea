"""The checks of all given paths: iterate over the results, then read `summary`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import partial
from operator import attrgetter
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.findings import Finding, Severity
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.dir import Partition
from logtool.log.flavour import Flavour
from logtool.log.redpanda import REDPANDA
from logtool.log.selection import Selection
from logtool.node import host_limits
from logtool.node.host_limits import Limits, Needs
from logtool.running.summary import ActionSummary
from logtool.running.workers import OutOfTimeError, Pace
from logtool.sanity import (
    background,
    broker_load,
    judging,
    listing,
    measuring,
    model,
)
from logtool.sanity.broker_load import Load
from logtool.sanity.indexes import Cost, Item, Opener
from logtool.sanity.judging import Seen, SeenBy
from logtool.sanity.listing import Listing
from logtool.sanity.measuring import Start, TimedStart
from logtool.sanity.model import Model, Projection, Target
from logtool.sanity.results import MeasuredDir, Measurement, Mode
from logtool.sanity.starts import Eager, Lazy, first_access

Result = MeasuredDir | Measurement | Load | Model | Projection | Seen
Said = Result | UnreadableError


_LATER = (Mode.FIRST_ACCESS, Mode.BECOME_LEADER)
"""Work that follows a lazy start and looks only at a part of the segments."""


@dataclass(frozen=True, slots=True)
class Procedure:
    """The measurements to make."""

    modes: tuple[Mode, ...] = (Mode.EAGER, Mode.LAZY)
    threads: int = 1
    repeat: int = 1
    """Runs of each kind; the one of median time counts."""
    cold: bool = False
    """True if the page cache is asked to drop the indexes before each run."""
    readers: int = 0
    """First readers of inactive segments."""
    new_leaders: int = 0
    """Partitions that the broker becomes leader of after a lazy start."""
    background_threads: int = 0
    verify: bool = True
    """True if the rules of `verify` look for faults that an eager start misses."""
    limits: Limits = field(default_factory=host_limits.of_host)
    """Limits of a process on the host on which the broker is to start."""
    targets: tuple[Target, ...] = ()
    """Sizes to project to."""
    brokers: int | None = None
    """Brokers of a projected size that are restarted one after the other."""


class Sanity:
    """One run of `sanity` over log dirs and partition dirs."""

    def __init__(
        self,
        paths: Sequence[Path],
        settings: Procedure,
        *,
        selection: Selection | None = None,
        pace: Pace | None = None,
        flavour: Flavour | None = None,
    ) -> None:
        self._paths, self._flavour = paths, flavour
        self._settings = settings
        self._selection = selection or Selection()
        self._pace = pace or Pace()
        self._needed: dict[Path, Needs] = {}
        self._is_at_work = False
        """True if a broker holds the log dir that is looked at."""
        self.in_use: list[Finding] = []
        """Findings for log dirs that a running broker holds."""
        self.summary = ActionSummary(pace=self._pace)

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
                return
        for seen in self._short_of():
            self._count(seen)
            yield seen

    def _short_of(self) -> Iterator[Seen]:
        """Yield the shortages of the host for the given logs, taken as the logs of one broker."""
        settings, first = self._settings, next(iter(self._needed), None)
        if first is None:
            return
        needed = sum(self._needed.values(), Needs())
        eager = settings.modes == (Mode.EAGER,)
        for finding in host_limits.judge(needed, settings.limits, first, eager=eager):
            at_start = finding.code in ("host/open-files", "host/maps")
            by = SeenBy.EAGER if eager else SeenBy.LAZY
            yield Seen(finding, by if at_start else SeenBy.NEITHER)

    def _count(self, item: Said) -> None:
        summary = self.summary
        if isinstance(item, UnreadableError):
            summary.add(item)
        elif isinstance(item, Seen):
            summary.add(item.finding)
            # The severity does not matter: a broker that checks recovers the segment. One that is
            # at work puts the indexes to which it appends in order when it stops.
            at_work = item.finding.severity is Severity.INFO and self._is_at_work
            summary.to_do |= item.by is not SeenBy.NEITHER and not at_work
        elif isinstance(item, MeasuredDir):
            summary.partitions += item.partitions
            summary.segments += item.segments
        elif isinstance(item, Measurement):
            summary.bytes += item.run.cost.bytes

    def _path(self, path: Path) -> Iterator[Said]:
        listed = listing.read(path, self._selection, self._pace, self._flavour)
        self._is_at_work = listed.in_use is not None
        self.in_use += [listed.in_use] if listed.in_use else []
        if listed.flavour is REDPANDA:
            yield from self._redpanda(listed)
            return
        self._needed[path] = listed.needs
        yield listed.described()
        yield from listed.unread
        runs = {
            mode: self._median(once, listed)
            for mode, once in self._wanted(listed)
            if listed.partitions
        }
        judged = self._judged(listed, runs)
        yield from self._measurements(listed, runs, judged)
        starts = [mode for mode in (Mode.EAGER, Mode.LAZY) if mode in runs]
        yield from self._loads(listed, {mode: runs[mode] for mode in starts})
        settings = self._settings
        models = [
            fitted
            for mode in starts
            if (fitted := model.fit(listed.path, mode, runs[mode], settings.threads))
        ]
        yield from models
        targets = settings.targets
        yield from (one.at(target, settings.brokers) for target in targets for one in models)
        yield from judged

    def _redpanda(self, listed: Listing) -> Iterator[Said]:
        """Yield the results for a log dir of Redpanda, which has one kind of start."""
        from logtool.sanity import redpanda  # imported here: no log dir of Kafka needs it

        yield listed.described()
        yield from listed.unread
        if not listed.partitions:
            return
        threads = self._settings.threads
        once = partial(measuring.run, redpanda.start, listed.partitions, threads, self._pace)
        run = self._median(once, listed)
        by_path = {one.path: one for one in listed.partitions}
        said: list[Seen | UnreadableError] = []
        for item in run.found:
            if isinstance(item, Finding) and item.path:
                placed = judging.placed(item, by_path[item.path.parent])
                said.append(Seen(placed, SeenBy.LAZY))
            elif isinstance(item, UnreadableError):
                said.append(item)
        seen = sum(isinstance(item, Seen) for item in said)
        if self._settings.verify:
            for finding, home in redpanda.passed_over(self._paced(listed.partitions)):
                said.append(Seen(judging.placed(finding, home), SeenBy.NEITHER))
        found = sum(isinstance(item, Seen) for item in said)
        yield Measurement(
            path=listed.path,
            mode=Mode.EAGER,
            threads=threads,
            repeat=self._settings.repeat,
            run=run,
            cache=run.cache if self._settings.cold else None,
            seen=seen,
            missed=found - seen if self._settings.verify else None,
        )
        yield from said

    def _loads(
        self, listed: Listing, runs: dict[Mode, TimedStart]
    ) -> Iterator[Load | UnreadableError]:
        """Yield errors of opening files, then the estimated load for each kind of start."""
        threads = self._settings.threads
        if not runs:
            return
        opened = broker_load.opening(listed.partitions, threads, self._pace)
        for item in opened.found:
            if isinstance(item, UnreadableError) and not (listed.in_use and item.missing):
                yield item
        for mode, run in runs.items():
            yield broker_load.estimate(
                listed.path,
                mode,
                listed.partitions,
                threads=threads,
                check=run.seconds,
                opening=opened.seconds,
            )

    def _wanted(self, listed: Listing) -> Iterator[tuple[Mode, Callable[[], TimedStart]]]:
        """Yield the measurements to make, in order."""
        settings, pace = self._settings, self._pace
        opener, partitions = self._opener(listed), listed.partitions
        # Lazy first: it leaves less in the page cache for the eager start than vice versa.
        starts: dict[Mode, Start] = {Mode.LAZY: Lazy(opener), Mode.EAGER: Eager(opener)}
        for mode, start in starts.items():
            if mode in settings.modes:
                yield mode, partial(measuring.run, start, partitions, settings.threads, pace)
        if settings.readers:
            yield (
                Mode.FIRST_ACCESS,
                partial(first_access, opener, partitions, settings.readers, pace),
            )
        if settings.new_leaders:
            count = settings.new_leaders
            yield (
                Mode.BECOME_LEADER,
                partial(background.become_leader, opener, partitions, count, pace),
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

    def _median(self, once: Callable[[], TimedStart], listed: Listing) -> TimedStart:
        """Return the run of median time; of an even number, the quicker middle one."""
        runs = []
        for _ in range(self._settings.repeat):
            if self._settings.cold:
                measuring.drop_cache(listed.partitions)
            runs.append(once())
        return sorted(runs, key=attrgetter("seconds"))[(len(runs) - 1) // 2]

    def _judged(
        self, listed: Listing, runs: dict[Mode, TimedStart]
    ) -> list[Seen | UnreadableError]:
        """Return the faults that starts see, and after an eager one those that neither sees."""
        eager = Mode.EAGER in runs
        found = [item for run in runs.values() for item in run.found]
        said = self._said(listed, listed.partitions, found, eager=eager)
        if not listed.in_use:
            return said
        by_path = {one.path: one for one in listed.partitions}
        of_each: dict[Path, list[Seen | UnreadableError]] = {path: [] for path in by_path}
        for item in said:
            path = item.path if isinstance(item, UnreadableError) else item.finding.path
            assert path
            of_each[path if path in by_path else path.parent].append(item)
        return [
            item
            for path, items in of_each.items()
            for item in self._settled(listed, by_path[path], items, eager=eager)
        ]

    def _settled(
        self,
        listed: Listing,
        before: Partition,
        items: list[Seen | UnreadableError],
        *,
        eager: bool,
    ) -> list[Seen | UnreadableError]:
        """Return the items of a partition once it no longer changes, or none of them is an alarm.

        A broker that cleans a log, or rolls or deletes segments, removes files that were listed,
        and replaces some of them.
        """
        path, opener = before.path, self._opener(listed)
        for _ in range(opening.MOST_LOOKS):
            if not any(map(_is_alarm, items)):
                break
            try:
                now = opening.open_partition(path, before.flavour)
            except UnreadableError as error:
                gone = files.has_vanished(error) and path != listed.path
                return [] if gone else [error]
            if now == before:
                break
            before, starts = now, (Lazy(opener), Eager(opener))[: 1 + eager]
            found = [item for start in starts for item in start(now, Cost())]
            items = self._said(listed, [now], found, eager=eager)
        return items

    def _said(
        self,
        listed: Listing,
        partitions: Sequence[Partition],
        found: Sequence[Item],
        *,
        eager: bool,
    ) -> list[Seen | UnreadableError]:
        """Return the findings of starts, and after an eager one those of the rules as well."""
        by_path = {one.path: one for one in partitions}
        said: dict[tuple[Path | None, str], Seen | UnreadableError] = {}
        failed: dict[Path, set[int]] = {}
        for item in found:
            if isinstance(item, UnreadableError):
                said.setdefault((item.path, "unreadable"), item)
            elif item.path and item.segment is not None:
                home = by_path[item.path.parent]
                failed.setdefault(home.path, set()).add(item.segment)
                seen = Seen(judging.placed(item, home), judging.seen_by(item))
                said.setdefault((item.path, item.code), seen)
        if eager and self._settings.verify:
            paced = self._paced(partitions)
            for item in judging.passed_over(paced, failed, clean=listed.clean):
                if isinstance(item, Finding):
                    said[(item.path, f"{item.code} {item.position}")] = Seen(item, SeenBy.NEITHER)
                else:
                    said.setdefault((item.path, "unreadable"), item)
        return list(said.values())

    def _opener(self, listed: Listing) -> Opener:
        return Opener(mapped=listed.in_use is None)

    def _paced(self, partitions: Sequence[Partition]) -> Iterator[Partition]:
        for one in partitions:
            self._pace.spend(0)
            yield one

    def _measurements(
        self,
        listed: Listing,
        runs: dict[Mode, TimedStart],
        judged: Sequence[Seen | UnreadableError],
    ) -> Iterator[Measurement]:
        by = [item.by for item in judged if isinstance(item, Seen)]
        eager = runs.get(Mode.EAGER)
        knows_all = eager is not None and self._settings.verify
        for mode in (mode for mode in Mode if mode in runs):
            run = runs[mode]
            seen = sum(isinstance(item, Finding) for item in run.found)
            if mode is Mode.EAGER:
                # Indexes that it did not reach in a bad segment are rebuilt with the rest.
                seen = len(by) - by.count(SeenBy.NEITHER)
            elif mode is Mode.LAZY:
                seen = by.count(SeenBy.LAZY)
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
                missed=len(by) - seen if knows_all and mode not in _LATER else None,
            )


def _is_alarm(item: Seen | UnreadableError) -> bool:
    """Return whether an item is more than a running broker always causes."""
    if isinstance(item, UnreadableError):
        return True
    return item.finding.severity is not Severity.INFO or item.finding.code == "partition/changed"
