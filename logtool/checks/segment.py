"""One segment: its log in one pass, and its indexes against it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

import numpy as np

from logtool import scan, transactions
from logtool.checks.batches import BatchRules, with_next
from logtool.checks.indexes import OffsetIndexRules, TimeIndexRules
from logtool.checks.records import check_records
from logtool.errors import UnreadableError
from logtool.files import LogFile
from logtool.findings import Finding
from logtool.formats import compression
from logtool.formats.names import FileKind
from logtool.formats.record_batch import MAGIC, MAX_SEGMENT_SIZE, BatchTable, concat, empty_table
from logtool.partition import File, Segment

R = TypeVar("R", OffsetIndexRules, TimeIndexRules)

_CHUNKS_OF_ROWS = 64
"""Chunks whose producer rows are kept apart before they are reduced to one."""
_TAIL_CODES = ("log/torn-tail", "log/torn-tail-clean", "log/truncated")


class Level(StrEnum):
    """How deep `verify` looks."""

    QUICK = "quick"
    """Names, indexes, checkpoints, and the tail of each active segment."""
    BATCHES = "batches"
    """And every batch: framing, CRC, header; indexes, snapshots and epochs against the log."""
    RECORDS = "records"
    """And every record: decompressed and decoded."""


@dataclass(slots=True)
class SegmentReport:
    """What one pass over a segment found: plain data, so that it can come from another process."""

    base_offset: int
    findings: list[Finding | UnreadableError] = field(default_factory=list)
    skipped: bool = False
    """Whether time ran out before it was looked at."""
    scanned: bool = False
    """Whether the log was read from its start to its end."""
    changed: bool = False
    """Whether it is not any more what the directory listing showed."""
    batches: int = 0
    records: int = 0
    bytes: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    """Largest; None for a segment without a sound batch that was looked at."""
    has_gaps: bool = False
    """Whether it shows what compaction leaves."""
    damaged: bool = False
    end_known: bool = True
    """Whether the log ends where its last sound batch does."""
    end_position: int = 0
    """Byte behind the last sound batch."""
    largest_batch: int = 0
    """Bytes."""
    indexed_offset: int = -1
    """Largest offset that one of its indexes names."""
    epochs: list[tuple[int, int, int]] = field(default_factory=list)
    """(leader epoch, first offset, last offset) of each run of batches of one epoch."""
    producer_rows: BatchTable = field(default_factory=empty_table)
    """The `transactions.significant` rows."""

    @property
    def next_offset(self) -> int:
        """Return the offset behind the segment's last batch, or its base."""
        return self.base_offset if self.last_offset is None else self.last_offset + 1


@dataclass(frozen=True, slots=True)
class Task:
    """What to look at in one segment, and how."""

    segment: Segment
    level: Level = Level.BATCHES
    clean: bool = False
    """Whether the log dir holds a clean-shutdown marker."""
    cuts: tuple[int, ...] = ()
    """Offsets inside the segment at which the producer state is wanted."""
    limit: int = compression.DEFAULT_LIMIT
    """Bytes that one batch may decompress to."""
    drop_cache: bool = False
    """Whether the page cache may forget what was read."""


def check_segment(task: Task, on_bytes: Callable[[int], None] = lambda _: None) -> SegmentReport:
    """Look at one segment; `on_bytes` is told how many more bytes of log were dealt with."""
    report = SegmentReport(task.segment.base_offset)
    offset_rules = _open(OffsetIndexRules, task.segment, FileKind.OFFSET_INDEX, report)
    time_rules = _open(TimeIndexRules, task.segment, FileKind.TIME_INDEX, report)
    judged = False
    if task.level is not Level.QUICK or task.segment.is_active:
        try:
            judged = _read_log(task, report, offset_rules, time_rules, on_bytes)
        except UnreadableError as error:
            report.findings.append(vanished(error) if error.missing else error)
    if offset_rules and judged:
        entries = time_rules.entries if time_rules else 0
        report.findings += offset_rules.joined(entries, report.batches, clean=task.clean)
        report.findings += offset_rules.sparse(report.end_position, report.largest_batch)
    elif offset_rules:
        report.findings += offset_rules.alone(clean=task.clean)
        if not task.segment.is_active:
            report.findings += offset_rules.sparse(task.segment.log.size)
    if time_rules and judged:
        report.findings += time_rules.joined(damaged=report.damaged, clean=task.clean)
    elif time_rules:
        report.findings += time_rules.alone()
    return report


def check_segments(tasks: Sequence[Task], on_bytes: Callable[[int], None]) -> list[SegmentReport]:
    """Look at several segments, one after the other: one piece of work for `workers`."""
    return [check_segment(task, on_bytes) for task in tasks]


def vanished(error: UnreadableError) -> Finding:
    """Return the finding for a file that was listed and then was not there any more."""
    return Finding("partition/changed", "was deleted while it was checked", path=error.path)


def _open(
    rules: Callable[[Segment, File], R], segment: Segment, kind: FileKind, report: SegmentReport
) -> R | None:
    file = segment.indexes.get(kind)
    if not file:
        return None
    try:
        return rules(segment, file)
    except UnreadableError as error:
        report.findings.append(vanished(error) if error.missing else error)
        return None


def _read_log(
    task: Task, report: SegmentReport, offset_rules: OffsetIndexRules | None,
    time_rules: TimeIndexRules | None, on_bytes: Callable[[int], None],
) -> bool:  # fmt: skip
    """Read the log once; returns whether its indexes can be held against it."""
    segment = task.segment
    batch_rules = BatchRules(segment.base_offset)
    found: list[Finding] = []
    with LogFile(segment.log.path) as log:
        start = _tail_start(log, segment, offset_rules) if task.level is Level.QUICK else 0
        rows = []
        at = start
        on_bytes(start)
        payload = task.level is Level.RECORDS
        for chunk in scan.scan(log, base_offset=segment.base_offset, start=start, payload=payload):
            found += batch_rules.feed(chunk)
            if payload:
                found += check_records(chunk, task.limit)
            if start == 0:
                for rules in (offset_rules, time_rules):
                    if rules:
                        rules.feed(chunk, batch_rules.misplaced)
            misplaced, foreign = batch_rules.misplaced, batch_rules.foreign_epoch
            placed = chunk.table if misplaced is None else chunk.table[~misplaced]
            rows.append(transactions.significant(placed, task.cuts))
            if len(rows) >= _CHUNKS_OF_ROWS:
                rows = [transactions.significant(concat(rows), task.cuts)]
            _count(report, chunk.table)
            if foreign is not None:
                trusted = ~foreign if misplaced is None else ~(misplaced | foreign)
                placed = chunk.table[trusted]
            _add_epochs(report, placed)
            end = chunk.end_position
            if task.drop_cache:
                log.forget(at, end - at)
            on_bytes(end - at)
            at = end
        report.changed = log.size_now() != segment.log.size
        report.bytes = log.size - start
    found += batch_rules.finish(active=segment.is_active, clean=task.clean)
    report.findings += _placed(found, segment, changed=report.changed and batch_rules.torn)
    report.producer_rows = concat(rows)
    report.first_offset, report.last_offset = batch_rules.first_offset, batch_rules.last_offset
    report.has_gaps, report.damaged = batch_rules.has_gaps, batch_rules.damaged
    report.end_known = batch_rules.end_known
    report.scanned = start == 0 and task.level is not Level.QUICK
    if log.size > MAX_SEGMENT_SIZE:
        text = f"{log.size} bytes, a broker opens at most {MAX_SEGMENT_SIZE}"
        report.findings.append(Finding("log/too-large", text, path=segment.log.path))
    report.indexed_offset = max(
        (rules.last_offset for rules in (offset_rules, time_rules) if rules), default=-1
    )
    return report.scanned and not report.changed


def _tail_start(log: LogFile, segment: Segment, rules: OffsetIndexRules | None) -> int:
    """Return a position near the end where a sound batch stands, by the index; 0 without one."""
    start = rules.last_position if rules else 0
    if not 0 < start < log.size:
        return 0
    chunk = next(scan.scan(log, base_offset=segment.base_offset, start=start), None)
    return start if chunk and len(chunk.table) else 0


def _count(report: SegmentReport, table: BatchTable) -> None:
    if not len(table):
        return
    report.batches += len(table)
    report.end_position = int(table.position[-1] + table.size[-1])
    report.largest_batch = max(report.largest_batch, int(table.size.max()))
    report.records += int(np.maximum(table.record_count, 0).sum())
    report.records += int((table.magic < MAGIC).sum())


def _add_epochs(report: SegmentReport, table: BatchTable) -> None:
    if not len(table):
        return
    epochs = table.leader_epoch
    starts = np.concatenate(([0], np.flatnonzero(epochs[1:] != epochs[:-1]) + 1))
    for first, end in zip(starts, [*starts[1:], len(table)], strict=True):
        run = int(epochs[first]), int(table.base_offset[first]), int(table.last_offset[end - 1])
        if report.epochs and report.epochs[-1][0] == run[0]:
            run = run[0], report.epochs.pop()[1], run[2]
        report.epochs.append(run)


def _placed(found: list[Finding], segment: Segment, *, changed: bool) -> Iterator[Finding]:
    path = segment.log.path
    for finding in found:
        if changed and finding.code in _TAIL_CODES:
            # A broker was in the middle of an append, or has cut the file meanwhile.
            text = "changed while it was read; its tail was not judged"
            finding = Finding("partition/changed", text, position=finding.position)
        yield with_next(replace(finding, path=path), path)
