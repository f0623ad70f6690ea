"""One pass over the batches of a log, which adds up a report chunk after chunk."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from logtool.checks import old_formats
from logtool.checks.batches import BatchRules, with_next
from logtool.checks.records import check_records
from logtool.checks.report import Level, SegmentReport, SegmentTask
from logtool.checks.timestamps import TimestampRules
from logtool.disk.files import LogFile
from logtool.findings import Finding
from logtool.formats.record_batch import BatchTable, concat
from logtool.formats.redpanda.record_batch import RAFT_DATA, BatchType
from logtool.log import producer_state
from logtool.log.chunk import Chunk, Inspect, PlainTotals
from logtool.running.workers import OutOfTimeError

_CHUNKS_OF_ROWS = 64
"""Number of chunks whose producer rows are kept apart before they are merged into one table."""


class LogPass:
    """A `logtool.log.chunk.ChunkConsumer` that adds up a report of a log, or of a piece of it.

    The caller feeds it every chunk and then calls `finish`.
    """

    def __init__(self, task: SegmentTask, report: SegmentReport) -> None:
        self.rules = BatchRules(task.segment.base_offset)
        self.timestamps = TimestampRules(task.segment.log.mtime_ns, task.ahead_ms)
        self.findings: list[Finding] = []
        """Findings of the batches, still without the path of the log."""
        self._task, self._report = task, report
        self._rows: list[BatchTable] = []
        self._in_raft = task.segment.flavour.has_raft_offsets
        self._expected = task.segment.base_offset
        self._part: SegmentReport | None = None
        """The part of the log that an earlier run has read."""

    @property
    def inspect(self) -> Inspect | None:
        """Return the function that checks records during the scan; None below that level."""
        if self._task.level is not Level.RECORDS:
            return None
        return lambda chunk: list(check_records(chunk, self._task.limit))

    def begin_behind(self, part: SegmentReport) -> None:
        """Take a part of the log for read: its totals, and the findings of its batches."""
        report, self._part = self._report, part
        self.findings = [one for one in part.findings if isinstance(one, Finding)]
        self.rules.begin_behind(part)
        report.batches, report.records = part.batches, part.records
        report.end_position, report.largest_batch = part.end_position, part.largest_batch
        report.epochs, report.old_formats = list(part.epochs), part.old_formats
        self._rows = [part.producer_rows]

    def so_far(self) -> SegmentReport:
        """Return the report of what was fed so far, once, with the findings of the batches."""
        report, found = self._report, [*self.findings]
        self.finish()
        report.findings = [*found]
        report.producer_rows = producer_state.significant(report.producer_rows, self._task.cuts)
        return report

    def partial(self) -> SegmentReport:
        """Return the findings and totals so far, for a log that was not read to its end."""
        report, segment = self._report, self._task.segment
        path, before = segment.log.path, self._part or SegmentReport(segment.base_offset)
        damage = self.rules.judge_damage(
            active=segment.is_active, clean=self._task.clean, whole=False
        )
        odd = self.timestamps.finish(path)
        found = (replace(one, path=path) for one in (*self.findings, *odd, *damage))
        return SegmentReport(
            segment.base_offset,
            findings=[with_next(one, path) for one in found],
            skipped=True,
            batches=report.batches - before.batches,
            records=report.records - before.records,
            bytes=report.bytes,
        )

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk."""
        self.findings += self.rules.judge(chunk)
        self.findings += chunk.inspected
        misplaced, foreign = chunk.misplaced, self.rules.foreign_epoch
        placed = chunk.table if misplaced is None else chunk.table[~misplaced]
        if self._task.level is not Level.QUICK:
            self.timestamps.add(chunk.table, chunk.plain)
            if chunk.plain is None:
                self._add_formats(chunk.table)
        if self._in_raft:
            self._add_holes(chunk.table)
            placed = placed[placed.batch_type == RAFT_DATA]
        if len(placed):
            self._add_rows(placed, chunk.plain)
        _count(self._report, chunk)
        if foreign is not None:
            trusted = ~foreign if misplaced is None else ~(misplaced | foreign)
            placed = chunk.table[trusted]
        _add_epochs(self._report, placed, chunk.plain)

    def _add_formats(self, table: BatchTable) -> None:
        """Add the batches of old message formats to those of the report."""
        found = old_formats.extents(table)
        if found:
            self._report.old_formats = old_formats.merged((*self._report.old_formats, *found))

    def _add_rows(self, table: BatchTable, plain: PlainTotals | None) -> None:
        """Keep the rows of producers."""
        cuts = self._task.cuts
        self._rows.append(producer_state.significant(table, cuts, plain))
        if len(self._rows) >= _CHUNKS_OF_ROWS:
            self._rows = [producer_state.significant(concat(self._rows), cuts)]

    def _add_holes(self, table: BatchTable) -> None:
        """Note the missing offsets of Raft, and whether batches show that the log was compacted."""
        if not len(table):
            self._expected = -1  # damage: the offsets in it are reported with the damage
            return
        ends = np.maximum.accumulate(table.last_offset) + 1
        before = np.concatenate(([self._expected], ends[:-1]))
        for row in np.flatnonzero((table.base_offset > before) & (before >= 0)).tolist():
            hole = int(before[row]), int(table.base_offset[row]), int(table.position[row])
            self._report.holes.append(hole)
        self._expected = max(self._expected, int(ends[-1]))
        fewer = table.record_count < table.last_offset - table.base_offset + 1
        data = table.batch_type == RAFT_DATA
        placeholders = table.batch_type == BatchType.COMPACTION_PLACEHOLDER
        self._report.compacted |= bool(((fewer & data) | placeholders).any())

    def leave(self, log: LogFile, at: int, chunk: Chunk, on_bytes: Callable[[int], None]) -> int:
        """Report the bytes from `at` to the end of a chunk as done, and return that end.

        OutOfTimeError with the report so far once the time is over.
        """
        end = chunk.end_position
        self._report.bytes += end - at
        if self._task.drop_cache:
            log.forget(at, end - at)
        try:
            on_bytes(end - at)
        except OutOfTimeError as error:
            error.partial = self.partial()
            raise
        return end

    def finish(self) -> None:
        """Complete `findings`, and all fields of the report except its findings."""
        report, rules, segment = self._report, self.rules, self._task.segment
        self.findings += self.timestamps.finish(segment.log.path)
        self.findings += rules.judge_damage(active=segment.is_active, clean=self._task.clean)
        report.producer_rows = concat(self._rows)
        report.first_offset, report.last_offset = rules.first_offset, rules.last_offset
        report.gaps, report.damaged = rules.gaps, rules.damaged
        report.with_holes, report.horizons = rules.with_holes, rules.horizons
        report.end_known = rules.end_known


def _count(report: SegmentReport, chunk: Chunk) -> None:
    table, plain = chunk.table, chunk.plain
    if not len(table):
        return
    report.batches += chunk.batches
    report.records += chunk.records
    report.end_position = chunk.end_position
    largest = plain.largest_batch if plain else int(table.size.max())
    report.largest_batch = max(report.largest_batch, largest)


def _add_epochs(report: SegmentReport, table: BatchTable, plain: PlainTotals | None) -> None:
    if not len(table):
        return
    epochs = table.leader_epoch
    if plain and epochs[0] == epochs[-1]:
        report.add_epoch(int(epochs[0]), int(table.base_offset[0]), int(table.last_offset[-1]))
        return
    edges = (np.flatnonzero(epochs[1:] != epochs[:-1]) + 1).tolist()
    for first, end in pairwise([0, *edges, len(table)]):
        report.add_epoch(
            int(epochs[first]), int(table.base_offset[first]), int(table.last_offset[end - 1])
        )
