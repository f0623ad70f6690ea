"""Reports of earlier runs in place of segments that are not due.

Findings across segments need the report of each segment. A segment that is not due has the report
of its last check, if its files and the options of the check are still the same. Of an active
segment that has grown, the end is read, as `verify --level quick` does. Any other segment counts as
not read; what is said of the partition then claims nothing from it.
"""

import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import field, replace
from math import inf
from pathlib import Path
from typing import Any

from logtool import __version__
from logtool.checks import kept_report
from logtool.checks.report import Level, SegmentReport, SegmentTask
from logtool.checks.segment import check_segment
from logtool.errors import UnreadableError
from logtool.findings import Finding, Severity
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Segment
from logtool.log.file import File
from logtool.running.resume import Memory
from logtool.scrub.listing import ListedSegment, home_of, identity_of
from logtool.scrub.state import CheckedSegment, KeptRow, ScrubState

_MOST_ROWS = 1 << 20
"""Bytes of the largest compressed rows of producers that are kept of a segment."""
COMMIT_BYTES, COMMIT_SEGMENTS = 64 << 20, 256
"""Bytes of log and number of segments that a kill may make a later run read again."""


@dataclass(slots=True)
class SegmentsOfRun:
    """The segments of one run: those that are due, and the reports of the others.

    A `logtool.checks.schedule.EarlierReports`.
    """

    state: ScrubState
    now_ms: int
    level: Level
    due: Mapping[bytes, int] = field(default_factory=dict)
    """The turn of each segment that is due, by its path."""
    fresh: set[bytes] = field(default_factory=set)
    """Paths of the segments that were checked in this run."""
    partial: set[bytes] = field(default_factory=set)
    """Partition dirs with a segment that was neither checked nor has a report that holds."""
    bytes: int = 0
    """Bytes of the logs that were checked."""
    on_checked: Callable[[], None] = lambda: None
    """Called after each segment that was checked, and before its mark is durable."""
    _waiting: list[int] = field(default_factory=list)

    def known(self, tasks: Sequence[SegmentTask]) -> list[SegmentReport | None]:
        """Return the report of each segment that is not due; None for one that is."""
        return [None if path_of(one.segment) in self.due else self._earlier(one) for one in tasks]

    def _earlier(self, task: SegmentTask) -> SegmentReport:
        segment = task.segment
        path = path_of(segment)
        row = self.state.kept(path, identity_of(segment))
        report = _report_of(row) if row else None
        holds = row is not None and row.asked == _asked(task) and row.producer_rows is not None
        if not holds and segment.is_active:
            report, holds = check_segment(replace(task, level=Level.QUICK)), True
        if report and holds:
            # What the run has read is counted from the segments that were due.
            report.skipped, report.batches, report.records, report.bytes = True, 0, 0, 0
            return report
        self.partial.add(home_of(path))
        findings = report.findings if report else []
        return SegmentReport(segment.base_offset, findings=findings, skipped=True)

    def remember(self, task: SegmentTask, report: SegmentReport) -> None:
        """Note the report of a segment that was checked in this run."""
        segment = task.segment
        path = path_of(segment)
        if not report.scanned or (report.changed and not segment.is_active):
            self.partial.add(home_of(path))
            return
        errors = any(isinstance(one, UnreadableError) for one in report.findings)
        bad = sum(isinstance(one, UnreadableError) or _is_bad(one) for one in report.findings)
        listed = ListedSegment(
            path, segment.base_offset, segment.log.size, identity_of(segment), segment.is_active
        )
        kept = None if errors or report.changed else _kept(task, report)
        checked = CheckedSegment(listed, home_of(path), str(self.level), bad, kept)
        self.state.mark(checked, self.now_ms)
        self.fresh.add(path)
        self.bytes += segment.log.size
        self.on_checked()
        self._waiting.append(segment.log.size)
        if len(self._waiting) >= COMMIT_SEGMENTS or sum(self._waiting) >= COMMIT_BYTES:
            self.commit()

    def commit(self) -> None:
        """Make the marks durable."""
        self.state.commit()
        self._waiting.clear()


@dataclass(slots=True)
class TurnsOfRun(Memory):
    """The turns of the segments of one run: the memory that the schedule asks.

    Partitions without a segment that is due come first, because only their small files are read.
    Then each partition has the turn of its first segment, so that reports come in the order in
    which they are made, and a kill costs little. A segment in which the time of an earlier run ran
    out has its own turn.
    """

    segments: SegmentsOfRun | None = None
    homes: Mapping[bytes, int] = field(default_factory=dict)
    """The turn of each partition dir with segments that are due."""
    begun_before: Set[bytes] = frozenset()
    """Paths of the segments that are due in which the time of an earlier run ran out."""

    def age_key(self, log: File) -> float:
        """Return the turn of a log; infinite for a log that is not due in a partition with some."""
        path = os.fsencode(log.path)
        due = self.segments.due if self.segments else {}
        if path in self.begun_before:
            return due[path]
        turn = self.homes.get(home_of(path), -1)
        return turn if turn < 0 or path in due else inf

    def in_turn(self, paths: Iterable[Path]) -> list[Path]:
        """Return paths in the order of the first segments below each that are due.

        A path with segments in which time ran out has the turn of the first of these: so they do
        not keep the other paths from theirs.
        """
        due = self.segments.due if self.segments else {}
        turns: dict[Path, int] = {}
        for path in paths:
            start = os.fsencode(path).rstrip(b"/") + b"/"
            below = [one for one in due if one.startswith(start)]
            begun = [one for one in below if one in self.begun_before]
            turns[path] = min((due[one] for one in begun or below), default=-1)
        return sorted(turns, key=lambda path: turns[path])

    def remember(self, log: File) -> None:
        """Do nothing: `SegmentsOfRun` notes what was checked, with its report."""

    def give_up(self, log: File) -> None:
        """Note that the time of this run ran out in the log."""
        if self.segments:
            self.segments.state.give_up(os.fsencode(log.path), self.segments.now_ms)

    def part_of(self, log: File, basis: list[Any]) -> dict[str, Any] | None:
        """Return the part that an earlier run has read of the log as it is now; None without."""
        if not self.segments:
            return None
        found = self.segments.state.part(os.fsencode(log.path), _basis_of(log, basis))
        try:
            part = json.loads(zlib.decompress(found)) if found else None
        except (ValueError, zlib.error):
            return None
        return part if isinstance(part, dict) else None

    def keep(self, log: File, basis: list[Any], part: dict[str, Any]) -> None:
        """Note the part that was read of the log until time ran out: others come before it now."""
        if self.segments:
            self.give_up(log)
            content = zlib.compress(json.dumps(part).encode("ascii"), 1)
            self.segments.state.keep_part(os.fsencode(log.path), _basis_of(log, basis), content)

    def save(self) -> None:
        """Make the marks durable."""
        if self.segments:
            self.segments.commit()


def path_of(segment: Segment) -> bytes:
    """Return the path of the log, which identifies the segment."""
    return os.fsencode(segment.log.path)


def homes_of(due: Mapping[bytes, int]) -> dict[bytes, int]:
    """Return the least turn of each partition dir."""
    found: dict[bytes, int] = {}
    for path, turn in due.items():
        home = home_of(path)
        found[home] = min(turn, found.get(home, turn))
    return found


def _basis_of(log: File, basis: list[Any]) -> str:
    return json.dumps([log.size, log.mtime_ns, basis])


def _is_bad(item: Finding | UnreadableError) -> bool:
    return isinstance(item, Finding) and item.severity is not Severity.INFO


def _asked(task: SegmentTask) -> str:
    """Return the release and the options by which a segment is checked.

    The clean-shutdown marker is not among them: it comes and goes with each stop of the broker, and
    a closed segment is judged in the same way.
    """
    options = [str(task.level), list(task.cuts), task.limit, task.ahead_ms, task.index_interval]
    return json.dumps([__version__, *options, task.segment.next_base_offset])


def _kept(task: SegmentTask, report: SegmentReport) -> KeptRow:
    rows: bytes | None = zlib.compress(kept_report.columns_of(report.producer_rows), 1)
    if rows is not None and len(rows) > _MOST_ROWS:
        rows = None
    content = zlib.compress(kept_report.as_text(report).encode("ascii"), 1)
    return KeptRow(_asked(task), content, rows)


def _report_of(row: KeptRow) -> SegmentReport | None:
    """Return the report of a row; without rows of producers where these were too large."""
    none = kept_report.columns_of(SegmentReport(0).producer_rows)
    try:
        text = zlib.decompress(row.content).decode("ascii")
        rows = none if row.producer_rows is None else zlib.decompress(row.producer_rows)
        return kept_report.parse(text, rows)
    except (*kept_report.NOT_WRITTEN, zlib.error):
        return None
