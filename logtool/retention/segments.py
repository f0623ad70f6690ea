"""The columns of the segments of a log that the rules of retention need, with little reading.

The largest timestamp of a segment is the last entry of its time index as a broker loads it, with no
look at the log: after a stop in order the index of the active segment is complete, too. An index
without entries gives -1, and then the modification time of the .log file counts. After a kill the
broker recovers the segments from the recovery point on: here, the batches behind the last entry of
their offset index are read, and the larger timestamp counts. Zeros at the end of a closed index are
an entry for the broker: such a segment is of 1970.

Source: ``LogSegment.largestTimestamp``, ``readMaxTimestampAndOffsetSoFar``, ``LogSegment.recover``,
``TimeIndex.lastEntry``, ``LogLoader.recoverLog`` (Kafka 3.9 and 4.2).
"""

from collections.abc import Sequence
from enum import StrEnum
from struct import Struct
from typing import NamedTuple

from logtool.errors import UnreadableError
from logtool.formats import offset_index, time_index
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition, Segment
from logtool.retention.rules import SegmentColumns

ENTRY = Struct(">qi")
"""An entry of a time index: timestamp and relative offset."""
NO_TIMESTAMP = -1


class StampSource(StrEnum):
    """The places from which the largest timestamp of a segment comes."""

    TIME_INDEX = "time-index"
    BATCHES = "batches"
    MTIME = "mtime"


@dataclass(frozen=True, slots=True)
class CheckpointedOffsets:
    """Facts about one log that stand in the checkpoints and in the metadata log."""

    clean: bool
    recovery_point: int = 0
    log_start: int = 0
    high_watermark: int = 0
    leads_alone: bool = False
    """True if no other replica is in sync, so that the high watermark rises to the log end."""


class SegmentFacts(NamedTuple):
    """One segment."""

    base_offset: int
    size: int
    """Bytes of the .log file that the broker keeps."""
    timestamp: int
    """Largest timestamp as the broker has it, in ms."""
    source: StampSource
    mtime_ns: int
    """Modification time of the .log file."""


@dataclass(frozen=True, slots=True)
class LogSegments:
    """The segments of one log."""

    columns: SegmentColumns
    sources: tuple[StampSource, ...]
    end: int = 0
    """Offset behind the last record, by the checkpoints and the snapshots, or by the batches that a
    start recovers."""
    snapshot: int = 0
    """Offset of the newest producer snapshot; 0 without one."""
    mtimes_ns: tuple[int, ...] = ()
    """Modification times of the .log files."""
    unread: tuple[UnreadableError, ...] = ()
    """Errors of indexes and logs that could not be read; the mtime then counts."""


def read(partition: Partition, state: CheckpointedOffsets) -> LogSegments:
    """Return the columns of a log; files that cannot be read are errors in the result."""
    facts: list[SegmentFacts] = []
    unread: list[UnreadableError] = []
    log_end: int | None = None
    for segment in partition.segments:
        after, size = segment.next_base_offset, segment.log.size
        source = StampSource.TIME_INDEX
        try:
            if _is_recovered(segment, state):
                source = StampSource.BATCHES
                stamp, end, size = _recovered(segment)
                log_end = end if after is None else log_end
            else:
                stamp = _last_entry(segment)
        except UnreadableError as error:
            unread.append(error)
            stamp = NO_TIMESTAMP
        if stamp < 0:
            stamp, source = segment.log.mtime_ns // 1_000_000, StampSource.MTIME
        facts.append(SegmentFacts(segment.base_offset, size, stamp, source, segment.log.mtime_ns))
    newest = next((file.name.offset or 0 for file in partition.snapshots[-1:]), 0)
    return columns(facts, log_end, newest, state, tuple(unread))


def columns(
    facts: Sequence[SegmentFacts],
    log_end: int | None,
    snapshot: int,
    state: CheckpointedOffsets,
    unread: tuple[UnreadableError, ...] = (),
) -> LogSegments:
    """Return segments as columns.

    `log_end` is None if it was not read, and `snapshot` is the offset of the newest producer
    snapshot, 0 without one.
    """
    base = [one.base_offset for one in facts]
    start = max(state.log_start, base[0]) if base else state.log_start
    watermark = None if state.leads_alone else max(state.high_watermark, start)
    end = log_end or 0
    if log_end is None and base:
        # A broker that stops in order flushes its logs to the end, and writes a snapshot there.
        end = max(state.recovery_point, base[-1], snapshot)
    found = SegmentColumns(
        base_offset=base,
        size=[one.size for one in facts],
        timestamp=[one.timestamp for one in facts],
        log_start=start,
        log_end=log_end if watermark is None else end,
        high_watermark=watermark,
    )
    return LogSegments(
        columns=found,
        sources=tuple(one.source for one in facts),
        end=end,
        snapshot=snapshot,
        mtimes_ns=tuple(one.mtime_ns for one in facts),
        unread=unread,
    )


def _is_recovered(segment: Segment, state: CheckpointedOffsets) -> bool:
    """Return whether the start reads the segment again: after a kill, or without an index."""
    if FileKind.OFFSET_INDEX not in segment.indexes:
        return True
    after = segment.next_base_offset
    return not state.clean and (after is None or after > state.recovery_point)


def _last_entry(segment: Segment) -> int:
    """Return the timestamp of the last slot of a time index; -1 for one without a slot."""
    file = segment.indexes.get(FileKind.TIME_INDEX)
    slots = file.size // ENTRY.size if file else 0
    if file is None or not slots:
        return NO_TIMESTAMP
    with file.open() as opened:
        data = opened.read((slots - 1) * ENTRY.size, ENTRY.size)
    return int(ENTRY.unpack(data)[0]) if len(data) == ENTRY.size else NO_TIMESTAMP


def end_of(segment: Segment) -> int:
    """Return the offset behind the last batch of a segment before any damage; UnreadableError."""
    return _recovered(segment)[1]


def _recovered(segment: Segment) -> tuple[int, int, int]:
    """Return the largest timestamp, the end and the bytes of a segment that a broker recovers.

    Bytes from damage on do not count, because the broker cuts them off.
    """
    stamp, position, end = NO_TIMESTAMP, 0, segment.base_offset
    offsets = segment.indexes.get(FileKind.OFFSET_INDEX)
    times = segment.indexes.get(FileKind.TIME_INDEX)
    if offsets is not None and times is not None:
        places = offset_index.parse(*offsets.read_index())
        entries = time_index.parse(*times.read_index())
        if len(places) and len(entries) and int(places.positions[-1]) < segment.log.size:
            position, stamp = int(places.positions[-1]), int(entries.timestamps.max())
    for chunk in segment.batches(start=position, payload=False):
        if chunk.damage is not None:
            break
        if len(chunk.table):
            stamp = max(stamp, int(chunk.table.max_timestamp.max()))
            end = int(chunk.table.last_offset[-1]) + 1
            position = int(chunk.table.position[-1] + chunk.table.size[-1])
    return stamp, end, position
