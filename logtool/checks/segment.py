"""The check of one segment: its log in one pass, and its indexes against the log."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from logtool.checks.batches import with_next
from logtool.checks.edge_walk import plain_pass
from logtool.checks.indexes import LONGEST_STRETCH, OffsetIndexRules, TimeIndexRules
from logtool.checks.log_pass import LogPass
from logtool.checks.report import Level, SegmentReport, SegmentTask
from logtool.checks.segment_part import read_so_far
from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.findings import Finding, Severity
from logtool.formats.names import FileKind
from logtool.formats.record_batch import MAX_SEGMENT_SIZE
from logtool.log.chunk import ChunkConsumer
from logtool.log.dir import Segment
from logtool.log.file import File
from logtool.running.workers import OutOfTimeError

__all__ = [
    "IndexRules", "Level", "SegmentReport", "SegmentTask", "check_segment", "finish_log",
    "judge_indexes", "open_indexes", "vanished",
]  # fmt: skip

if TYPE_CHECKING:
    from logtool.checks.base_index import BaseIndexRules

R = TypeVar("R", OffsetIndexRules, TimeIndexRules, "BaseIndexRules")

_TAIL_CODES = ("log/torn-tail", "log/torn-tail-clean", "log/truncated")


class IndexRules(NamedTuple):
    """The rules of the indexes of a segment; None for one that it lacks or that is unreadable."""

    offset: OffsetIndexRules | None
    time: TimeIndexRules | None
    base: "BaseIndexRules | None" = None
    """The rules of the base index, which only Redpanda has."""


def check_segment(
    task: SegmentTask, on_bytes: Callable[[int], None] = lambda _: None, *more: ChunkConsumer
) -> SegmentReport:
    """Check one segment; `on_bytes` gets the bytes of log that were read since its last call.

    `more` are further consumers of the chunks; they are finished even if the log cannot be read.
    """
    report = SegmentReport(task.segment.base_offset)
    indexes = open_indexes(task.segment, report)
    judged = False
    if task.level is not Level.QUICK or task.segment.is_active or _needs_end(task, indexes):
        try:
            judged = _read_log(task, report, indexes, on_bytes, more)
        except UnreadableError as error:
            report.findings.append(vanished(error))
    for consumer in more:
        consumer.finish()
    judge_indexes(task, report, indexes, judged=judged)
    return report


def open_indexes(segment: Segment, report: SegmentReport) -> IndexRules:
    """Return the rules of a segment's indexes; an index that cannot be read is reported."""
    return IndexRules(
        _open(OffsetIndexRules, segment, FileKind.OFFSET_INDEX, report),
        _open(TimeIndexRules, segment, FileKind.TIME_INDEX, report),
        _open(_base_index_rules, segment, FileKind.REDPANDA_BASE_INDEX, report),
    )


def judge_indexes(
    task: SegmentTask, report: SegmentReport, indexes: IndexRules, *, judged: bool
) -> None:
    """Report the faults of the indexes: against the log if that was `judged`, else alone.

    An index alone is judged by the size of the log. So its faults do not count if another log has
    the name of the log by now: the index may belong to that one.
    """
    found = list(_index_faults(task, report, indexes, judged=judged))
    if not judged and any(one.severity is not Severity.INFO for one in found):
        try:
            task.segment.log.open_listed().close()
        except UnreadableError as error:
            if files.has_vanished(error):
                found = []
                if not any(one.path == error.path for one in report.findings):
                    report.findings.append(vanished(error))
    report.findings += found


def _index_faults(
    task: SegmentTask, report: SegmentReport, indexes: IndexRules, *, judged: bool
) -> Iterator[Finding]:
    offset_rules, time_rules, base_rules = indexes
    if base_rules:
        yield from base_rules.alone()
        if judged:
            yield from base_rules.joined(report)
    if offset_rules and judged:
        entries = time_rules.entries if time_rules else 0
        yield from offset_rules.joined(
            entries,
            report.batches,
            report.largest_batch,
            task.index_interval,
            clean=task.clean,
        )
        yield from offset_rules.sparse(report.end_position, report.largest_batch)
    elif offset_rules:
        yield from offset_rules.alone(clean=task.clean)
        if not task.segment.is_active:
            yield from offset_rules.sparse(task.segment.log.size)
    if time_rules and judged:
        yield from time_rules.joined(damaged=report.damaged, clean=task.clean)
    elif time_rules:
        yield from time_rules.alone(clean=task.clean)


def vanished(
    error: UnreadableError, text: str = "was deleted or replaced while logtool checked it"
) -> Finding | UnreadableError:
    """Return the finding for a file that has vanished; any other error is returned unchanged."""
    if not files.has_vanished(error):
        return error
    return Finding("partition/changed", text, path=error.path)


def _base_index_rules(segment: Segment, file: File) -> "BaseIndexRules":
    from logtool.checks.base_index import BaseIndexRules  # of which Kafka's have no need

    return BaseIndexRules(segment, file)


def _open(
    rules: Callable[[Segment, File], R], segment: Segment, kind: FileKind, report: SegmentReport
) -> R | None:
    file = segment.indexes.get(kind)
    if not file:
        return None
    try:
        return rules(segment, file)
    except UnreadableError as error:
        report.findings.append(vanished(error))
        return None


def _read_log(
    task: SegmentTask,
    report: SegmentReport,
    indexes: IndexRules,
    on_bytes: Callable[[int], None],
    more: Sequence[ChunkConsumer],
) -> bool:
    """Read the log once and return whether its indexes can be compared with it."""
    segment = task.segment
    log_pass = LogPass(task, report)
    offsets = indexes.offset.join if indexes.offset else None
    times = indexes.time.join if indexes.time else None
    with segment.log.open_listed() as log:
        start = _tail_start(log, segment, indexes.offset) if task.level is Level.QUICK else 0
        on_bytes(start)
        # If only the tail is read, the indexes are judged by themselves.
        joined = [index for index in indexes if index] if start == 0 else []
        part = None if more else task.part
        if part:
            start = part.position
            part.apply(log_pass, offsets, times)
        at = start
        consumers: tuple[ChunkConsumer, ...] = (log_pass, *joined, *more)
        for chunk in segment.batches(
            log,
            start=start,
            payload=task.payload,
            limit=task.limit,
            inspect=log_pass.inspect,
            plain_walk=None if more else plain_pass(task, log_pass.rules, offsets, times),
            last_offset=part.last_offset if part else None,
        ):
            for consumer in consumers:
                consumer.feed(chunk)
            try:
                at = log_pass.leave(log, at, chunk, on_bytes)
            except OutOfTimeError as error:
                if task.keeps_part and not more:
                    error.part = read_so_far(
                        task, log_pass, chunk.end_position, indexes.offset, indexes.time
                    )
                raise
        segment.hold_to_store()
        size = log.size_now()
        report.changed = size != segment.log.size
        report.bytes = max(min(log.size, size) - start, 0)
        if report.changed and files.is_remote(segment.log.path):
            text = f"is listed with {segment.log.size} bytes, but ends after {size}"
            report.findings.append(UnreadableError(segment.log.path, text))
    for consumer in (log_pass, *joined):
        consumer.finish()
    torn = log_pass.rules.torn
    report.findings += _placed(log_pass.findings, segment, changed=report.changed and torn)
    report.scanned = task.level is not Level.QUICK and (start == 0 or part is not None)
    report.has_end = True
    finish_log(report, segment, indexes)
    return report.scanned and not report.changed


def finish_log(report: SegmentReport, segment: Segment, indexes: IndexRules) -> None:
    """Report the size of the log if it is too large, and the largest offset in its indexes."""
    size = segment.log.size
    if size > MAX_SEGMENT_SIZE:
        text = f"{size:,} bytes; a broker opens at most {MAX_SEGMENT_SIZE:,}"
        report.findings.append(Finding("log/too-large", text, path=segment.log.path))
    report.indexed_offset = max((rules.last_offset for rules in indexes if rules), default=-1)


def _needs_end(task: SegmentTask, indexes: IndexRules) -> bool:
    """Return whether the end of the log is wanted, and the offset index shows where it begins.

    It is not read if an index reaches the next segment, as the closing time entry mostly does.
    """
    segment = task.segment
    if not task.needs_end or segment.next_base_offset is None:
        return False
    reached = max((rules.last_offset for rules in indexes if rules), default=-1) + 1
    start = indexes.offset.last_position if indexes.offset else 0
    is_open = reached < segment.next_base_offset or not segment.log.size
    return is_open and segment.log.size - start <= LONGEST_STRETCH


def _tail_start(log: LogFile, segment: Segment, rules: OffsetIndexRules | None) -> int:
    """Return the position of a sound batch near the end, found by the index; 0 without one."""
    start = rules.last_position if rules else 0
    if not 0 < start < log.size:
        return 0
    chunk = next(segment.batches(log, start=start), None)
    return start if chunk and len(chunk.table) else 0


def _placed(findings: list[Finding], segment: Segment, *, changed: bool) -> Iterator[Finding]:
    path = segment.log.path
    for finding in findings:
        if changed and finding.code in _TAIL_CODES:
            # A broker was in the middle of an append, or has cut the file meanwhile.
            text = "changed while logtool read it; its end was not checked"
            finding = Finding("partition/changed", text, position=finding.position)
        yield with_next(replace(finding, path=path), path)
