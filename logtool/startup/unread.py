"""A look for damage that a start does not notice, and for segments that are absent.

It is in segments that a start opens without reading them, and in those that it recovers: recovery
compares CRCs, and no offsets but those in the entries of indexes.

No broker compares a segment with the next one. So the end of each closed segment is read here, from
the batch that its last index entry names: a few kilobytes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from logtool.actions import Action
from logtool.checks import continuity
from logtool.checks.compaction import NOT_KNOWN, CompactionEvidence
from logtool.checks.report import Level, SegmentReport, SegmentTask
from logtool.checks.segment import check_segment
from logtool.errors import UnreadableError
from logtool.findings import Finding, Severity
from logtool.loading.index_building import INDEX_INTERVAL
from logtool.loading.result import LoadResult
from logtool.log.dir import OF_TODAY, Partition, Segment
from logtool.node.identity import listed_topic_id
from logtool.node.settings import Settings
from logtool.startup.request import LoadRequest

_PROVEN = frozenset({"segment/missing", "segment/gap"})
"""Codes that further batches do not change."""


def looked_at(segments: Sequence[Segment], request: LoadRequest) -> list[SegmentReport]:
    """Return the reports of segments that are not read: their indexes, and the ends of the logs."""
    level = Level.BATCHES if request.assumed.verify else Level.QUICK
    return [check_segment(_task(segment, request, level)) for segment in segments]


def unnoticed(reports: Sequence[SegmentReport]) -> Iterator[Action]:
    """Yield an action for each bad index or log of segments that a broker does not read."""
    for report in reports:
        for item in report.findings:
            if isinstance(item, UnreadableError):
                raise item
            if item.severity is not Severity.INFO and item.path:
                yield Action(
                    action="unnoticed",
                    path=item.path,
                    reason=f"stays as it is, and no broker notices: {item.message}",
                    segment=report.base_offset,
                    position=item.position,
                    length=item.length,
                )


def left(listed: Partition, loaded: LoadResult, request: LoadRequest) -> Iterator[Action]:
    """Yield an action for each error in a log that recovery reads and leaves as it is.

    Only a log with an odd batch is read again.
    """
    sizes = {
        one.base_offset: one.valid_size
        for one in loaded.recovered
        if one.is_odd and one.base_offset not in loaded.removed
    }
    for segment in listed.segments:
        size = sizes.get(segment.base_offset, 0)
        if not size:
            continue
        report = check_segment(_task(segment, request, Level.BATCHES))
        for item in report.findings:
            if isinstance(item, UnreadableError):
                raise item
            is_left = item.path == segment.log.path and (item.position or 0) < size
            if is_left and item.severity is Severity.ERROR:
                yield Action(
                    action="unnoticed",
                    path=segment.log.path,
                    reason=f"is read and stays as it is, and no broker notices: {item.message}",
                    segment=segment.base_offset,
                    position=item.position,
                    length=item.length,
                )


def absent_segments(
    listed: Partition, loaded: LoadResult, request: LoadRequest, looked: Sequence[SegmentReport]
) -> Iterator[Action]:
    """Yield an action for offsets between two segments that the log has lost.

    `looked` are the reports of the segments that are not read.
    """
    for finding in missing_segments(listed, loaded, request, looked):
        path = finding.path or listed.path
        text = finding.message
        yield Action(action="lacks", path=path, reason=text, segment=finding.segment)


def missing_segments(
    listed: Partition, loaded: LoadResult, request: LoadRequest, looked: Sequence[SegmentReport]
) -> Iterator[Finding]:
    """Yield the findings above info about offsets between two segments that the log has lost.

    `looked` are the reports of the segments that are not read. The rules are those of `verify`.
    """
    is_judged = getattr(listed.directory, "kind", None) in OF_TODAY
    if not is_judged or listed.is_metadata_log:
        return
    known = {report.base_offset: _edge(report) for report in looked}
    for one in loaded.recovered:
        last = one.next_offset - 1 if one.batches else None
        known[one.base_offset] = SegmentReport(one.base_offset, scanned=True, last_offset=last)
    segments = tuple(one for one in listed.segments if one.base_offset in known)
    kept = replace(listed, segments=segments)
    reports = [known[segment.base_offset] for segment in segments]
    found = list(_holes(kept, reports, request))
    if any(one.code not in _PROVEN for one in found):
        reports = _with_traces(kept, reports, request, found)
        found = list(_holes(kept, reports, request))
    yield from (finding for finding in found if finding.severity is not Severity.INFO)


def _task(segment: Segment, request: LoadRequest, level: Level) -> SegmentTask:
    interval = max(request.start.index_interval, INDEX_INTERVAL)
    clean = request.start.clean
    return SegmentTask(segment, level, clean=clean, index_interval=interval, needs_end=True)


def _edge(report: SegmentReport) -> SegmentReport:
    """Return a report with the facts at the end of a segment; `scanned` if that end was read."""
    return SegmentReport(
        report.base_offset,
        scanned=report.has_end,
        changed=report.changed,
        last_offset=report.last_offset,
        with_holes=report.with_holes,
        horizons=report.horizons,
        damaged=report.damaged,
        indexed_offset=report.indexed_offset,
    )


def _holes(
    partition: Partition, reports: Sequence[SegmentReport], request: LoadRequest
) -> Iterator[Finding]:
    """Yield the findings about offsets missing between segments."""
    cleaning = request.cleaning or NOT_KNOWN

    @cache
    def judged() -> CompactionEvidence:
        """Return whether the log was compacted; called at the first gap."""
        from logtool.checks.partition import CheckRequest, judge  # of which few logs have need

        known = CheckRequest(cleaning=cleaning, settings=request.settings or Settings())
        return judge(reports, known, listed_topic_id(partition))

    start = request.start.log_start
    for finding in continuity.check_segments(partition, reports, cleaning, judged, start):
        if finding.code != "segment/overlap":  # An overlap has an action of its own.
            yield finding


def _with_traces(
    partition: Partition,
    reports: Sequence[SegmentReport],
    request: LoadRequest,
    found: Sequence[Finding],
) -> list[SegmentReport]:
    """Return the reports, with the traces of compaction in the segments that decide.

    These are the segments next to a hole and, if the log is compacted, those that the cleaner has
    not come to.
    """
    cleaned = request.cleaning.offset if request.cleaning else None
    holes = {one.segment for one in found if one.code not in _PROVEN}
    traced = []
    for index, (segment, report) in enumerate(zip(partition.segments, reports, strict=True)):
        before = reports[index - 1].base_offset if index else None
        is_near = report.base_offset in holes or before in holes
        if is_near or (cleaned is not None and report.next_offset > cleaned):
            whole = check_segment(_task(segment, request, Level.BATCHES))
            report = replace(
                report, gaps=whole.gaps, with_holes=whole.with_holes, horizons=whole.horizons
            )
        traced.append(report)
    return traced
