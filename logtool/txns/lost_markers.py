"""The offsets of a log at which damage, or absent batches, may hide a marker.

A damaged batch hides none if its header still names a batch of data that fills the offsets between
the sound batches around it.
"""

from collections.abc import Iterator, Sequence

from logtool.checks.report import SegmentReport
from logtool.errors import UnreadableError
from logtool.findings import Severity
from logtool.log.dir import Partition, Segment
from logtool.log.lost_data import lost_data


def lost_at(partition: Partition, reports: Sequence[SegmentReport]) -> tuple[int, ...]:
    """Return the offsets at which damage may hide a marker, in their order.

    Only damaged segments are read again. UnreadableError.
    """
    lost: list[int] = []
    segments = {one.base_offset: one for one in partition.segments}
    for report in reports:
        if not _is_damaged(report):
            continue
        segment = segments.get(report.base_offset)
        lost += [report.base_offset] if segment is None else _lost_in(segment)
    return tuple(lost)


def absent(partition: Partition, reports: Sequence[SegmentReport]) -> tuple[range, ...]:
    """Return the offsets before the log end that no sound batch has, range by range."""
    segments = {one.base_offset: one for one in partition.segments}
    found: list[range] = []
    for number, report in enumerate(reports):
        segment = segments.get(report.base_offset)
        if report.gaps.first is not None and segment is not None:
            found += _gaps_in(segment)
        later = reports[number + 1 : number + 2]
        if later and report.next_offset < later[0].base_offset:
            found.append(range(report.next_offset, later[0].base_offset))
    return tuple(found)


def _gaps_in(segment: Segment) -> Iterator[range]:
    """Yield the offsets between the batches of a segment that none of them has."""
    end = None
    for chunk in segment.batches(payload=False):
        bases, lasts = chunk.table.base_offset.tolist(), chunk.table.last_offset.tolist()
        for base, last in zip(bases, lasts, strict=True):
            if end is not None and base > end:
                yield range(end, base)
            end = last + 1


def _lost_in(segment: Segment) -> list[int]:
    """Return the offsets of a damaged segment at which a marker may be lost."""
    end, damage, is_seen, lost = segment.base_offset, None, False, []
    with segment.log.open() as log:
        for chunk in segment.batches(log):
            table = chunk.table
            if len(table):
                if damage:
                    place = range(damage.position, damage.position + damage.length)
                    if lost_data(log, place, range(end, int(table.base_offset[0]))) is None:
                        lost.append(end)
                end, damage = max(end, int(table.last_offset.max()) + 1), None
            if chunk.damage:
                if damage:
                    lost.append(end)
                damage, is_seen = chunk.damage, True
    # Without damage between its batches the batches themselves are at odds.
    return lost + [end] * bool(damage) if is_seen else [segment.base_offset]


def _is_damaged(report: SegmentReport) -> bool:
    """Return whether damage stands in the segment where a marker may have been."""
    grave = (
        isinstance(item, UnreadableError)
        or (item.code.startswith(("log/", "batch/")) and item.severity is not Severity.INFO)
        for item in report.findings
    )
    return report.scanned and report.damaged and any(grave)
