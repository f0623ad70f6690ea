"""The totals of a command, its findings by severity, and its completeness: its last line."""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path
from typing import Protocol

from logtool.errors import NothingMatchedError, UnreadableError
from logtool.exits import Exit
from logtool.findings import Finding, Severity
from logtool.lazy_dataclass import dataclass
from logtool.running.workers import Pace


class Counts(Protocol):
    """Totals of what was read of a partition."""

    segments: int
    batches: int
    records: int
    bytes: int


@dataclass(frozen=True, slots=True)
class SeverityCounts:
    """Findings by severity."""

    error: int
    warning: int
    info: int


@dataclass(slots=True)
class Summary:
    """Counts, added up while a command runs."""

    partitions: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    severities: Counter[Severity] = field(default_factory=Counter)
    next: dict[str, None] = field(default_factory=dict)
    """Commands to run next, each once, in the order found."""
    unreadable: int = 0
    """Inputs that could not be read; any makes the result incomplete."""
    unmatched: int = 0
    """Unreadable inputs at which nothing matched."""
    missing: int = 0
    """Inputs that other inputs name and that were not given; any makes the result incomplete."""
    unwritten: int = 0
    """Outputs that could not be written; any makes the result incomplete."""
    unfinished: bool = False
    """True if changes of files were stopped of which some may be made."""
    partition_list: bool | None = None
    """True if a file that was given names the partitions that should exist, so that absent ones are
    found; None if the command does not look for absent partitions."""
    found: int | None = None
    """Records that a search by content found; None if the command does not search."""
    refused: bool = False
    """True if something was refused for safety."""
    ended_by: int = 0
    """Number of the signal that ended the command (SIGINT, SIGTERM, SIGHUP); 0: none did."""
    pace: Pace = field(default_factory=Pace, repr=False, compare=False)
    """The pace of the run, which knows whether its time ran out."""
    started: float = field(default_factory=time.monotonic)
    _counted: dict[int, UnreadableError] = field(default_factory=dict, repr=False, compare=False)
    """The errors that are counted in `unreadable`, by identity."""

    @property
    def out_of_time(self) -> bool:
        """Return whether time was over before everything was read."""
        return self.pace.ran_out

    @property
    def interrupted(self) -> bool:
        """Return whether a signal ended the command."""
        return self.ended_by != 0

    @property
    def complete(self) -> bool:
        """Return whether everything that was asked for was looked at."""
        failed = self.unreadable or self.unwritten or self.missing
        return not (failed or self.interrupted or self.out_of_time)

    @property
    def has_no_partition(self) -> bool:
        """Return whether a run came to its end without a partition that it was to look at."""
        stopped = self.interrupted or self.out_of_time
        ended = not (stopped or self.refused or self.unwritten)
        return ended and not self.partitions and self.unreadable == self.unmatched

    @property
    def nothing_matched(self) -> bool:
        """Return whether nothing that was asked for is there, so that nothing can be said."""
        return self.unmatched > 0 and self.has_no_partition

    def nothing_read(self, paths: Iterable[Path] | None) -> bool:
        """Return whether each given path could not be read; without paths, whether any input."""
        failed = {str(error.path.absolute()) for error in self._counted.values()}
        return bool(failed) and failed.issuperset(str(path.absolute()) for path in paths or ())

    @property
    def elapsed_s(self) -> float:
        """Return the seconds since the command began, to the millisecond."""
        return round(time.monotonic() - self.started, 3)

    def add(self, item: Finding | UnreadableError) -> None:
        """Count one finding, or one input that could not be read; the same error counts once.

        A job counts the errors that it yields, and the report counts those that it prints.
        """
        if isinstance(item, UnreadableError):
            if id(item) not in self._counted:
                self._counted[id(item)] = item
                self.unreadable += 1
                self.unmatched += isinstance(item, NothingMatchedError)
            return
        self.codes[item.code] += 1
        self.severities[item.severity] += 1
        if item.next and item.severity is not Severity.INFO:
            self.next.setdefault(item.next)

    def count(self, counts: Counts, partitions: int = 1) -> None:
        """Add the totals of a partition, or of several that are one to the caller."""
        self.partitions += partitions
        self.segments += counts.segments
        self.batches += counts.batches
        self.records += counts.records
        self.bytes += counts.bytes

    def exit_status(self, fail_on: Severity = Severity.WARNING) -> Exit:
        """Return the exit status of the contract."""
        if self.interrupted:
            return Exit.of_signal(self.ended_by)
        if self.unreadable or self.unwritten or self.missing:
            return Exit.INCOMPLETE
        if any(n and s.weight >= fail_on.weight for s, n in self.severities.items()):
            return Exit.FINDINGS
        return Exit.BUDGET if self.out_of_time else Exit.OK

    @property
    def severity_counts(self) -> SeverityCounts:
        """Return the findings by severity."""
        return SeverityCounts(*(self.severities[one] for one in reversed(Severity)))

    @property
    def code_counts(self) -> dict[str, int]:
        """Return the findings by code, in the order of the codes."""
        return dict(sorted(self.codes.items()))


@dataclass(slots=True)
class ActionSummary(Summary):
    """The summary of a command that plans or changes something."""

    to_do: bool = False
    """True if a dry run found something to do, or a forecast something grave."""

    def exit_status(self, fail_on: Severity = Severity.WARNING) -> Exit:
        """Return the exit status of the contract."""
        if self.interrupted:
            return Exit.of_signal(self.ended_by)
        if self.refused:
            return Exit.REFUSED
        # By name: a class with slots is made a second time, so that super() has no cell to use.
        status = Summary.exit_status(self, fail_on)
        return Exit.FINDINGS if status in (Exit.OK, Exit.BUDGET) and self.to_do else status
