"""Rules for missing offsets in a partition, and for the leader epochs of its batches."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from logtool.checks.batches import with_next
from logtool.checks.compaction import Cleaning, CompactionEvidence, Traces
from logtool.checks.producers import last_batch_within
from logtool.checks.report import SegmentReport
from logtool.disk import shell
from logtool.findings import Finding, Remedy
from logtool.formats import wording
from logtool.formats.leader_epoch_checkpoint import LeaderEpochCheckpoint
from logtool.log.dir import Partition, Segment
from logtool.log.file import File

_OFFSETS = frozenset({"batch/offset-order", "batch/offset-range", "batch/last-offset"})

Run = tuple[int, int, int]
"""(leader epoch, first offset, last offset) of neighbouring batches of one epoch."""


def traces(reports: Sequence[SegmentReport]) -> Traces:
    """Return the traces of compaction in the batches of segments."""
    return Traces(
        horizons=sum(report.horizons for report in reports),
        with_holes=sum(report.with_holes for report in reports),
        inner_gaps=sum(report.gaps.count for report in reports),
    )


def check_inside(
    segment: Segment,
    report: SegmentReport,
    judged: Callable[[], CompactionEvidence],
    log_start: int,
) -> Iterator[Finding]:
    """Yield the offsets missing between the batches of a segment, unless compaction explains it."""
    gaps = report.gaps
    if not gaps.first or gaps.end <= log_start or report.changed:
        return
    if any(isinstance(item, Finding) and item.code in _OFFSETS for item in report.findings):
        return  # a wrong offset looks like a gap, and is reported itself
    if judged().is_compacted:
        return
    first, end, position = gaps.first
    text = f"no batch holds {wording.offsets(first, end - 1)}"
    if gaps.count > 1:
        more = wording.count(gaps.count - 1, "more gap")
        text += f" (and {more}, {wording.count(gaps.missing, 'offset')} in all)"
    text += f": {judged().evidence}"
    finding = Finding("batch/hole", text, position, None, first, end - 1, segment.log.path)
    yield with_next(finding, segment.log.path)


def check_segments(
    partition: Partition,
    reports: Sequence[SegmentReport],
    cleaning: Cleaning,
    judged: Callable[[], CompactionEvidence],
    log_start: int,
    covered: int = 0,
) -> Iterator[Finding]:
    """Yield overlaps of neighbouring segments, and offsets missing between them.

    `judged` says whether compaction explains gaps; below the log start nothing counts as missing.
    A KRaft snapshot covers the offsets below `covered`.
    """
    for segment, (left, right) in zip(partition.segments, pairwise(reports), strict=False):
        if not left.scanned or left.changed:
            continue
        end = left.next_offset
        if end > right.base_offset:
            text = (
                f"ends at offset {left.last_offset}, but the next segment begins at "
                f"{right.base_offset}"
            )
            span = (right.base_offset, left.last_offset)
            yield _at(partition, segment, Finding("segment/overlap", text, None, None, *span))
        elif end < right.base_offset and right.base_offset > log_start and not left.damaged:
            dirty = _is_contiguous(reports, left.next_offset, cleaning)
            hole = _covered(left, right.base_offset, covered) or _hole(
                partition, left, right.base_offset, cleaning, judged, dirty=dirty
            )
            yield _at(partition, segment, hole)


def check_epochs(
    file: File | None,
    checkpoint: LeaderEpochCheckpoint,
    runs: Sequence[Run],
    *,
    log_start: int,
    log_end: int | None,
    may_begin_later: bool = True,
) -> Iterator[Finding]:
    """Compare leader-epoch-checkpoint with the epochs of the batches from `log_start` on.

    After DeleteRecords a broker removes the rows below the new log start at once, and moves the
    last of them up to it (``LeaderEpochFileCache.truncateFromStart``), but it writes
    log-start-offset-checkpoint once a minute. Killed in between, it has batches below the first
    row, of the same epoch and of earlier ones, and no later start or stop adds their rows. At its
    next start the epoch of the new leader takes the place of a row at the log end.
    `may_begin_later` is False for a log without DeleteRecords: the metadata log.

    A message of magic 0 or 1 that is appended clears the file (``Log.append`` of 2.8): batches in
    front of one have no row where ``message.format.version`` was lowered and raised again.
    """
    rows = sorted(
        ((row.leader_epoch, row.start_offset) for row in checkpoint.rows), key=lambda row: row[1]
    )
    starts = [start for _, start in rows]
    known = {epoch for epoch, _ in rows}
    cleared_at = max((last for epoch, _, last in runs if epoch < 0), default=-1)
    earlier: list[Run] = []
    for epoch, first, last in runs:
        first = max(first, log_start)
        if epoch < 0 or first > last:
            continue
        if last < cleared_at and not any(start <= last for start in starts):
            continue
        if may_begin_later and rows and last < starts[0] and epoch <= rows[0][0]:
            if epoch < rows[0][0]:
                earlier.append((epoch, first, last))
            continue
        if not rows:
            code = "leader-epoch/missing-epoch" if file else "leader-epoch/missing"
            text = (
                f"batches from offset {first} onwards have leader epoch {epoch}, but there is "
                f"no {'row' if file else 'file'}"
            )
            yield Finding(code, text, first_offset=first, last_offset=last)
            return
        if epoch not in known:
            text = f"batches at {wording.offsets(first, last)} have epoch {epoch}, which has no row"
            # Recovery adds an epoch only above all those of the file.
            remedy = Remedy.NONE if epoch < max(known) else None
            yield Finding(
                "leader-epoch/missing-epoch",
                text,
                first_offset=first,
                last_offset=last,
                remedy_override=remedy,
            )
            continue
        behind = bisect_right(starts, first)
        at = rows[behind - 1] if behind else None
        later = rows[behind : bisect_right(starts, last)]
        if at is None and later and later[0][0] == epoch:
            at, later = later[0], later[1:]
        if at is None or at[0] != epoch or later:
            other = later[0] if at and at[0] == epoch else at
            says = (
                f"epoch {other[0]} from offset {other[1]} on"
                if other
                else ("no epoch at these offsets")
            )
            where = wording.offsets(first, last)
            text = f"batches at {where} have epoch {epoch}, but the file has {says}"
            yield Finding("leader-epoch/mismatch", text, first_offset=first, last_offset=last)
    if earlier:
        span = (earlier[0][1], earlier[-1][2])
        text = (
            f"the first row, epoch {rows[0][0]}, starts at offset {starts[0]}: "
            f"{wording.count(len(earlier), 'epoch')} of the batches at {wording.offsets(*span)} "
            "have no row"
        )
        yield Finding("leader-epoch/begins-later", text, None, None, *span)
    for row in checkpoint.rows:
        if log_end is not None and row.start_offset > log_end:
            text = (
                f"line {row.line.number}: epoch {row.leader_epoch} starts at offset "
                f"{row.start_offset}, but the log ends at {log_end}"
            )
            yield Finding(
                "leader-epoch/beyond-end",
                text,
                position=row.line.position,
                first_offset=row.start_offset,
            )


def merge_runs(reports: Sequence[SegmentReport]) -> list[Run]:
    """Return the runs of all segments, joined where an epoch goes on in the next segment."""
    merged: list[Run] = []
    for epoch, first, last in (run for report in reports for run in report.epochs):
        if merged and merged[-1][0] == epoch:
            first = merged.pop()[1]
        merged.append((epoch, first, last))
    return merged


def _covered(left: SegmentReport, begin: int, covered: int) -> Finding | None:
    """Return the finding about a hole that a KRaft snapshot covers; None if it does not."""
    if begin > covered:
        return None
    text = f"no segment holds {wording.offsets(left.next_offset, begin - 1)}"
    text += f"; a KRaft snapshot covers the offsets below {covered}"
    return Finding("segment/gap", text, None, None, left.next_offset, begin - 1)


def _hole(
    partition: Partition,
    left: SegmentReport,
    begin: int,
    cleaning: Cleaning,
    judged: Callable[[], CompactionEvidence],
    *,
    dirty: bool,
) -> Finding:
    end = left.next_offset
    span = (end, begin - 1)
    text = f"no segment holds {wording.offsets(end, begin - 1)}"
    if end <= left.indexed_offset < begin:
        text += (
            f", but the indexes of segment {left.base_offset} reach offset {left.indexed_offset}"
        )
        return Finding("segment/missing", text, None, None, *span)
    swap = _swap(partition, range(end, begin))
    if swap:
        text += f"; {swap.name.name} takes their place at the next start"
        return Finding("segment/gap", text, None, None, *span)
    judgement = judged()
    compacted = judgement.is_compacted
    snapshots, orphans = partition.snapshots, partition.orphans
    inside = snapshots[
        bisect_right(snapshots, end, key=_offset) : bisect_left(snapshots, begin, key=_offset)
    ]
    witnesses = [
        *orphans[bisect_left(orphans, end, key=_offset) : bisect_left(orphans, begin, key=_offset)],
        *(epoch for epoch in inside if not compacted or cleaning.spared(_offset(epoch))),
    ]
    if witnesses:
        text += f", and {witnesses[0].name.name} shows that a segment is lost"
        return Finding("segment/missing", text, None, None, *span)
    if compacted and dirty:
        text += f", and the cleaner has cleaned offsets below {cleaning.offset} only"
        return Finding("segment/uncleaned-hole", text, None, None, *span)
    if compacted:
        text += f"; compaction leaves such gaps: {judgement.evidence}"
        return Finding("segment/gap", text, None, None, *span)
    named = last_batch_within(snapshots, begin, range(end, begin))
    if named and cleaning.offset is None:
        text += f", but {named[0].name.name} names a batch that ends at offset {named[1]}"
        return Finding("segment/missing", text, None, None, *span)
    return Finding("segment/hole", f"{text}: {judgement.evidence}", None, None, *span)


def _is_contiguous(reports: Sequence[SegmentReport], end: int, cleaning: Cleaning) -> bool:
    """Return whether the batches from `end` on should follow each other without a gap."""
    cleaned = cleaning.offset or 0
    return cleaning.is_contiguous(
        end, lambda: traces([one for one in reports if one.next_offset > cleaned])
    )


def _swap(partition: Partition, offsets: range) -> File | None:
    """Return the output of a compaction inside `offsets` that waits for its last rename."""
    return next((file for file in partition.coming_logs() if file.name.offset in offsets), None)


def _offset(file: File) -> int:
    return file.name.offset or 0


def _at(partition: Partition, segment: Segment, finding: Finding) -> Finding:
    command = f"logtool gaps {shell.path(partition.path)}"
    if finding.code == "segment/overlap":
        command = f"logtool dump {shell.path(partition.path)} --offset {finding.first_offset}.."
    return finding.placed(segment.log.path, segment=segment.base_offset, next_command=command)
