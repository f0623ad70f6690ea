"""The producers at points of a log, from the sound snapshots and from the batches between them.

Expired producers are included: a broker leaves them out when it reads a snapshot.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from logtool.checks.report import SegmentReport
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.findings import Severity
from logtool.loading.producers import decode
from logtool.log.dir import Partition
from logtool.log.file import File
from logtool.log.producer_state import Producer, ProducerState

Producers = Mapping[int, Producer]


def read_sound(
    snapshots: Iterable[File], bad: Iterable[int], log_start: int
) -> dict[int, Producers]:
    """Return the producers of each snapshot that a broker would read and that is not bad.

    A broker deletes snapshots at or below the start of the log before it reads any.
    """
    sound: dict[int, Producers] = {}
    excluded = set(bad)
    for file in snapshots:
        offset = file.name.offset or 0
        if offset > log_start and offset not in excluded:
            producers = read(file)
            if producers is not None:
                sound[offset] = producers
    return sound


def read(file: File) -> Producers | None:
    """Return the producers of one snapshot, None if it cannot be read or decoded."""
    try:
        return decode(files.read_small(file.path))
    except UnreadableError:
        return None


def at(
    partition: Partition,
    reports: Sequence[SegmentReport],
    sound: Mapping[int, Producers],
    offsets: Iterable[int],
) -> dict[int, Producers]:
    """Return the producers before each of `offsets`, without those that damage hides.

    The producers come from the nearest sound snapshot at or below an offset, and the log behind it.
    Each offset is that of a segment or a snapshot, or the end of the log.
    """
    state = ProducerState()
    known = True
    wanted = set(offsets)
    points = sorted(wanted | set(sound))
    found: dict[int, Producers] = {}
    for segment, report in zip(partition.segments, reports, strict=True):
        rows, done = report.producer_rows, 0
        end = segment.next_base_offset
        for point in points:
            if point < segment.base_offset or (end is not None and point >= end):
                continue
            stop = max(done, int((rows.base_offset < point).sum()))
            state.apply(rows[done:stop])
            done = stop
            if point > segment.base_offset:
                known = known and not _is_hidden(report)
            if point in sound:
                state.producers = _copy(sound[point])
                known = True
            if known and point in wanted:
                found[point] = _copy(state.producers)
        state.apply(rows[done:])
        known = known and report.scanned and not report.damaged
    return found


def _is_hidden(report: SegmentReport) -> bool:
    """Return whether bytes between sound batches are unknown; a torn tail is behind them."""
    return not report.scanned or any(
        not isinstance(item, UnreadableError)
        and item.code.startswith("batch/")
        and item.severity is Severity.ERROR
        for item in report.findings
    )


def _copy(producers: Producers) -> dict[int, Producer]:
    return {producer_id: replace(producer) for producer_id, producer in producers.items()}
