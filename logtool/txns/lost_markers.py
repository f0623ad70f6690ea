"""The offsets of a log at which damage, or absent batches, may hide a marker.

A damaged batch hides none if its header still names a batch of data that fills the offsets between
the sound batches around it.
"""

from collections.abc import Sequence

import numpy as np

from logtool.checks.report import SegmentReport
from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.findings import Severity
from logtool.formats.record_batch import CONTROL, HEADER, HEADER_SIZE, MAGIC
from logtool.log.damage import Damage
from logtool.log.dir import Partition, Segment

_MARKER_SIZE = 78
"""Bytes of a batch with an end-transaction marker."""


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


def absent_from(reports: Sequence[SegmentReport]) -> int | None:
    """Return the first offset that no sound batch has, before the log end; None without one."""
    for number, report in enumerate(reports):
        if report.gaps.first is not None:
            return report.gaps.first[0]
        later = reports[number + 1 : number + 2]
        if later and report.next_offset < later[0].base_offset:
            return report.next_offset
    return None


def _lost_in(segment: Segment) -> list[int]:
    """Return the offsets of a damaged segment at which a marker may be lost."""
    end, damage, is_seen, lost = segment.base_offset, None, False, []
    with segment.log.open() as log:
        for chunk in segment.batches(log):
            table = chunk.table
            if len(table):
                if damage and not _is_data(log, damage, end, int(table.base_offset[0])):
                    lost.append(end)
                end, damage = max(end, int(table.last_offset.max()) + 1), None
            if chunk.damage:
                if damage:
                    lost.append(end)
                damage, is_seen = chunk.damage, True
    # Without damage between its batches the batches themselves are at odds.
    return lost + [end] * bool(damage) if is_seen else [segment.base_offset]


def _is_data(log: LogFile, damage: Damage, start: int, end: int) -> bool:
    """Return whether damage is one batch of data with all offsets from `start` up to `end`."""
    data = bytearray(HEADER_SIZE)
    if not damage.framed or log.read_into(memoryview(data), damage.position) < HEADER_SIZE:
        return False
    header = np.frombuffer(bytes(data), HEADER, 1)[0]
    delta, count = int(header["last_offset_delta"]), int(header["record_count"])
    return bool(
        header["magic"] == MAGIC
        and not int(header["attributes"]) & CONTROL
        and int(header["base_offset"]) == start
        and start + delta + 1 == end
        and count == delta + 1
        and (count > 1 or damage.length != _MARKER_SIZE)
    )


def _is_damaged(report: SegmentReport) -> bool:
    """Return whether damage stands in the segment where a marker may have been."""
    grave = (
        isinstance(item, UnreadableError)
        or (item.code.startswith(("log/", "batch/")) and item.severity is not Severity.INFO)
        for item in report.findings
    )
    return report.scanned and report.damaged and any(grave)
