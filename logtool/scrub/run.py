"""One run of `scrub`: the segments that are due, and the small files of every partition."""

import os
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from logtool.checks.partition import Item
from logtool.checks.report import Level
from logtool.exits import Exit
from logtool.findings import Finding, Severity
from logtool.formats import compression
from logtool.lazy_dataclass import dataclass
from logtool.log.flavour import Flavour
from logtool.log.selection import Selection
from logtool.running.run import Progress
from logtool.running.summary import Summary
from logtool.scrub.coverage import CheckCoverage, coverage_of
from logtool.scrub.due import Pacing, choose
from logtool.scrub.listing import list_segments
from logtool.scrub.open import FindingsOfRun, is_below, open_codes
from logtool.scrub.reports import SegmentsOfRun, TurnsOfRun, homes_of
from logtool.scrub.state import RunRow, ScrubState
from logtool.verify import Budget, Verification


@dataclass(frozen=True, slots=True)
class ScrubOptions:
    """The options of a run."""

    now_ms: int
    """Start of the run, in ms since 1970."""
    cycle_ms: int
    """Time in which every segment is checked once, in ms."""
    level: Level = Level.BATCHES
    limit: int = compression.DEFAULT_LIMIT
    """Bytes that one batch may decompress to."""


@dataclass(slots=True)
class ScrubSummary(Summary):
    """The totals of a run, with the findings of earlier runs that are still open."""

    still_open: Counter[Severity] = field(default_factory=Counter)
    """Open findings that this run did not look at."""

    def exit_status(self, fail_on: Severity = Severity.WARNING) -> Exit:
        """Return the exit status of the contract, by the findings of earlier runs too."""
        # By name: a class with slots is made a second time, so that super() has no cell to use.
        status = Summary.exit_status(self, fail_on)
        grave = any(n and one.weight >= fail_on.weight for one, n in self.still_open.items())
        return Exit.FINDINGS if status in (Exit.OK, Exit.BUDGET) and grave else status


class ScrubRun:
    """One run: iterate over it for the findings, then read `row`, `summary` and `coverage`.

    Everything that was checked is in the state file once the iteration has ended, also where an
    interrupt or the time limit ended it.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        state: ScrubState,
        options: ScrubOptions,
        *,
        selection: Selection | None = None,
        budget: Budget | None = None,
        static: Mapping[str, str] | None = None,
        flavour: Flavour | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        """Take absolute paths of log dirs and partition dirs, and an open state file."""
        self._paths = paths
        self._state = state
        self._options = options
        self._selection = selection or Selection()
        self._flavour = flavour
        self.row = RunRow(options.now_ms, options.cycle_ms, str(options.level))
        """The row of the run in the state file."""
        self.segments = SegmentsOfRun(state, options.now_ms, options.level)
        self._turns = TurnsOfRun(state.path, segments=self.segments)
        self._job = Verification(
            paths,
            level=options.level,
            selection=self._selection,
            limit=options.limit,
            budget=replace(budget or Budget(), memory=self._turns),
            on_progress=on_progress,
            static=static,
            flavour=flavour,
            earlier=self.segments,
        )
        self.summary = ScrubSummary(pace=self._job.summary.pace)
        self._job.summary = self.summary
        self._findings: FindingsOfRun | None = None

    def __iter__(self) -> Generator[Item, None, None]:
        self._begin()
        found = self._findings
        ended = False
        try:
            for item in self._job:
                if isinstance(item, Finding) and found:
                    found.saw(item)
                yield item
            ended = True
        finally:
            self._end(ended=ended)

    def _begin(self) -> None:
        """List the segments, choose those that are due, and note that a run began."""
        state, options = self._state, self._options
        listing = list_segments(self._paths, self._selection, self._flavour)
        state.sync(listing, options.now_ms)
        runs = state.runs()
        complete = [one.start_ms for one in runs if one.complete]
        pacing = Pacing(
            now_ms=options.now_ms,
            cycle_ms=options.cycle_ms,
            begun_ms=runs[0].start_ms if runs else options.now_ms,
            last_complete_ms=complete[-1] if complete else None,
        )
        listed = {one.path for partition in listing.partitions for one in partition.segments}
        due = choose([one for one in state.segments() if one.path in listed], pacing)
        self.segments.due = {one.path: turn for turn, one in enumerate(due)}
        self._turns.homes = homes_of(self.segments.due)
        self._turns.begun_before = {one.path for one in due if one.begun_ms}
        self.row.due_segments, self.row.due_bytes = len(due), sum(one.size for one in due)
        state.begin_run(self.row)
        state.commit()
        self._findings = FindingsOfRun(state, listing, options.now_ms)
        self.segments.on_checked = self._count

    def _count(self) -> None:
        """Note the totals so far, which become durable with the marks."""
        self.row.segments, self.row.bytes = len(self.segments.fresh), self.segments.bytes
        self._state.update_run(self.row)

    def _end(self, *, ended: bool) -> None:
        """Note which findings are gone, and the totals."""
        summary = self.summary
        done = ended and not summary.out_of_time
        self.row.complete = done
        if self._findings:
            self._findings.settle(self.segments, complete=done and not summary.unreadable)
            summary.still_open = self._findings.unseen(self._below)
        self._count()
        self._state.commit()

    def finish(self, status: int) -> None:
        """Note the exit status and the end of the run."""
        self.row.status = status
        self.row.end_ms = self._options.now_ms + round(self.summary.elapsed_s * 1000)
        self._state.update_run(self.row)
        self._state.commit()

    @property
    def too_large(self) -> Sequence[Path]:
        """Return the logs for which the whole time of the run was too short, at the end of it."""
        return [log.path for log in self._job.too_large]

    @property
    def read_in_part(self) -> Mapping[Path, int]:
        """Return the logs that were read further, and the byte at which the next run goes on."""
        return self._job.read_in_part

    @property
    def progress(self) -> Progress:
        """Return how far it is."""
        return self._job.progress

    @property
    def _below(self) -> list[bytes]:
        return [os.fsencode(one) for one in self._paths]

    def open_codes(self) -> Counter[str]:
        """Return how many findings of each code are open after the run."""
        return open_codes(self._state, self._below)

    def coverage(self) -> list[CheckCoverage]:
        """Return the coverage of the paths after the run, as `coverage_of` does."""
        known = [one for one in self._state.segments() if is_below(one.home, self._below)]
        options = self._options
        return coverage_of(
            known, now_ms=options.now_ms, cycle_ms=options.cycle_ms, level=options.level
        )
