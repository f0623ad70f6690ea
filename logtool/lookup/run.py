"""Where an offset or a timestamp lives: by the indexes as a broker does, and by reading the log.

The rules are those of ``UnifiedLog.fetchOffsetByTimestamp``, ``LogSegment.findOffsetByTimestamp``
and ``LogSegment.read`` (Kafka 3.9 and 4.3). For a timestamp: the first segment whose largest one is
late enough, the entry of its time index at or before the time, the entry of its offset index at or
before that, and from there on the first record that is late enough.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path

import numpy as np

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import compression, offset_index, time_index
from logtool.formats.names import FileKind
from logtool.formats.record_batch import NO_TIMESTAMP, Column
from logtool.formats.redpanda.record_batch import RAFT_DATA
from logtool.formats.time_index import TimeIndex
from logtool.lazy_dataclass import dataclass
from logtool.loading.kafka_reading import IndexedLog, StartFailsError
from logtool.loading.shadow import ShadowFile
from logtool.log import inputs, kafka_offsets, opening
from logtool.log.chunk import Chunk
from logtool.log.dir import Partition, Segment
from logtool.log.file import File
from logtool.log.flavour import Flavour
from logtool.log.inputs import PathKind
from logtool.lookup import by_base_index
from logtool.lookup.location import Location, Matcher, find_in_batch
from logtool.metadata.releases import NEWEST
from logtool.running.run import Progress
from logtool.running.summary import Summary


class LookupTarget(StrEnum):
    """What is looked for."""

    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    EARLIEST = "earliest"
    """The log start offset."""
    LATEST = "latest"
    """The log end offset."""


# Known of compacted logs: a batch that compaction emptied, and the entry for it, keep its time.
_NO_FURTHER = (
    "the first segment that is new enough by its time index holds no such record, and a broker "
    "looks no further"
)


@dataclass(frozen=True, slots=True)
class FoundPlace:
    """A place with the way in which it was found."""

    by: str
    """`index` or `scan`."""
    location: Location


@dataclass(frozen=True, slots=True)
class LookupResult:
    """Both places, and the ends of the log."""

    partition: Partition
    asked: LookupTarget
    value: int | None
    """The offset or the timestamp in ms that was asked for."""
    log_start: int
    log_end: int | None
    """As a broker finds it when it loads the log; None where it cannot."""
    by_index: Location
    by_scan: Location
    kafka_offset: int | None = None
    """Of Redpanda: what `by_scan` is to a client; None where nothing tells, or it has none."""

    @property
    def is_there(self) -> bool:
        """Return whether there is anything, by reading the log."""
        return self.by_scan.path is not None

    @property
    def agree(self) -> bool:
        """Return whether both lead to the same record."""
        return _key(self.by_index) == _key(self.by_scan)

    @property
    def places(self) -> tuple[FoundPlace, FoundPlace]:
        """Return both places, each with the way in which it was found."""
        return FoundPlace("index", self.by_index), FoundPlace("scan", self.by_scan)


class Lookup:
    """One partition directory in which to look; reading fills `summary`."""

    def __init__(
        self,
        path: Path,
        summary: Summary,
        progress: Progress | None = None,
        *,
        limit: int = compression.DEFAULT_LIMIT,
        flavour: Flavour | None = None,
    ) -> None:
        """List the directory; UnreadableError where it is no partition dir."""
        if inputs.kind_of(path, flavour, redpanda=True) is not PathKind.PARTITION_DIR:
            raise UnreadableError(path, "expected a partition dir")
        self._partition = opening.open_partition(path, flavour)
        self._in_raft = self._partition.flavour.has_raft_offsets
        if not self._partition.segments:
            raise UnreadableError(path, "holds no log")
        self._start = max(
            _checkpointed_start(self._partition), self._partition.segments[0].base_offset
        )
        self._summary = summary
        self._limit = limit
        self._progress = progress or Progress()
        self._progress.bytes_total = sum(segment.log.size for segment in self._partition.segments)

    def find(self, asked: LookupTarget, value: int | None = None) -> LookupResult:
        """Look for an offset, a timestamp in ms, or an end of the log."""
        self._summary.partitions += 1
        end = _stopped(lambda: Location(offset=self._end_by_index())).offset
        if asked is LookupTarget.LATEST:
            by_index = _stopped(self._latest_by_index)
            by_scan = self._latest_by_scan()
        elif asked is LookupTarget.TIMESTAMP:
            stamp = NO_TIMESTAMP if value is None else value
            by_index = _stopped(lambda: self._time_by_index(stamp))
            by_scan = self._time_by_scan(stamp)
        else:
            offset = self._start if value is None else value
            below = offset < self._start  # a broker says that it is out of range
            by_index = Location() if below else _stopped(lambda: self._offset_by_index(offset))
            by_scan = Location() if below else self._offset_by_scan(offset)
        return LookupResult(
            partition=self._partition,
            asked=asked,
            value=value,
            log_start=self._start,
            log_end=end,
            by_index=by_index,
            by_scan=by_scan,
            kafka_offset=self._kafka_offset(by_scan),
        )

    def _kafka_offset(self, found: Location) -> int | None:
        """Return the Kafka offset of a Raft offset that was found in a log of Redpanda."""
        if not self._in_raft or found.path is None or found.offset is None:
            return None
        offsets = kafka_offsets.before(found.path, found.segment or 0)
        (segment,) = (one for one in self._partition.segments if one.log.path == found.path)
        for chunk in segment.batches(payload=False):
            if chunk.damage:
                offsets.lose()
                continue
            first, _ = offsets.add(chunk.table)
            rows = np.flatnonzero(chunk.table.position == found.position)
            if len(rows) and first[rows[0]] != kafka_offsets.NONE:
                return int(first[rows[0]]) + found.offset - (found.base_offset or 0)
        return None

    def _end_by_index(self) -> int:
        if self._in_raft:  # whose start replays the last segment
            return self._latest_by_scan().offset or 0
        return _reader(self._partition.segments[-1]).next_offset()

    def _latest_by_index(self) -> Location:
        last = self._partition.segments[-1]
        return Location(last.log.path, last.base_offset, offset=self._end_by_index())

    def _latest_by_scan(self) -> Location:
        last = self._partition.segments[-1]
        end = last.base_offset
        for chunk in self._sound([last]):
            end = int(chunk.table.last_offset[-1]) + 1
        return Location(last.log.path, last.base_offset, offset=end)

    def _offset_by_index(self, offset: int) -> Location:
        for segment in self._from_floor(offset):
            if self._in_raft:
                start = by_base_index.for_offset(segment, offset)
                found = self._first_at(segment, by_base_index.batches(segment, start), offset)
                if found:
                    return found
                continue
            reader = _reader(segment)
            position = reader.find(offset)
            if position is not None:
                # None where the file has shrunk meanwhile.
                chunk = next(reader.batches(position, segment.log.size), None)
                return self._in_batch(segment, chunk, 0, _from(offset)) if chunk else Location()
        return Location()

    def _offset_by_scan(self, offset: int) -> Location:
        for segment in self._from_floor(offset):
            found = self._first_at(segment, self._sound([segment]), offset)
            if found:
                return found
        return Location()

    def _first_at(self, segment: Segment, chunks: Iterable[Chunk], offset: int) -> Location | None:
        """Return the first batch that holds an offset or what lies behind it."""
        for chunk in chunks:
            rows = np.flatnonzero(chunk.table.last_offset >= offset)
            if len(rows):
                return self._in_batch(segment, chunk, int(rows[0]), _from(offset))
        return None

    def _from_floor(self, offset: int) -> Iterable[Segment]:
        """Return the segment that an offset belongs to and those behind it."""
        return (
            segment
            for segment in self._partition.segments
            if segment.next_base_offset is None or segment.next_base_offset > offset
        )

    def _time_by_index(self, stamp: int) -> Location:
        for segment in self._partition.segments:
            if self._in_raft:
                largest = by_base_index.largest_timestamp(segment)
                if largest is None or largest >= stamp:
                    start = by_base_index.for_time(segment, stamp)
                    if late := self._first_late(
                        segment, by_base_index.batches(segment, start), stamp
                    ):
                        return late
                continue
            reader, index = _reader(segment), _time_index(segment)
            if _largest_timestamp(segment, reader, index) < stamp:
                continue
            entry = int(np.searchsorted(index.timestamps, stamp, "right")) - 1
            offset = segment.base_offset
            if entry >= 0:
                offset = int(index.offsets(segment.base_offset)[entry])
            position = reader.lookup(max(offset, self._start))
            chunks = reader.batches(position, segment.log.size)
            return self._first_late(segment, chunks, stamp) or Location(problem=_NO_FURTHER)
        return Location()

    def _time_by_scan(self, stamp: int) -> Location:
        for segment in self._partition.segments:
            late = self._first_late(segment, self._sound([segment]), stamp)
            if late:
                return late
        return Location()

    def _first_late(self, segment: Segment, chunks: Iterable[Chunk], stamp: int) -> Location | None:
        """Return the first record of a timestamp or a later one, or the batch that hides it."""

        def late(offsets: Column, stamps: Column) -> Column:
            column: Column = (stamps >= stamp) & (offsets >= self._start)
            return column

        for chunk in chunks:
            table = chunk.table
            rows = (table.max_timestamp >= stamp) & (table.last_offset >= self._start)
            rows &= table.batch_type <= RAFT_DATA  # other times are those of brokers
            for row in np.flatnonzero(rows).tolist():
                location = self._in_batch(segment, chunk, row, late)
                if location.record is not None or location.problem:
                    return location
        return None

    def _in_batch(self, segment: Segment, chunk: Chunk, row: int, wanted: Matcher) -> Location:
        return find_in_batch(segment, chunk, row, wanted, self._limit)

    def _sound(self, segments: Sequence[Segment]) -> Iterator[Chunk]:
        """Yield the sound batches of segments, read from the start of each."""
        summary = self._summary
        for segment in segments:
            summary.segments += 1
            with segment.log.open() as log:
                position = 0
                for chunk in segment.batches(log, limit=self._limit):
                    summary.batches += len(chunk.table)
                    size = chunk.end_position - position
                    position = chunk.end_position
                    summary.bytes += size
                    self._progress.advance(size, segment.log.path)
                    if not chunk.damage:
                        yield chunk


def _from(offset: int) -> Matcher:
    """Return what takes records from an offset on."""
    return lambda offsets, _: offsets >= offset


def _reader(segment: Segment) -> IndexedLog:
    """Return the log with its index; one that is missing is made anew by a broker, and empty."""
    file = segment.indexes.get(FileKind.OFFSET_INDEX)
    log = ShadowFile(segment.log, segment.log.size)
    # An active index is as long as it may grow: what is not used yet is no entry.
    used = _used(file) if file else None
    return IndexedLog(
        base_offset=segment.base_offset, log=log, index=used, by_base=NEWEST >= (4, 1)
    )


def _used(file: File) -> ShadowFile:
    data = files.read_small(file.path)
    index = offset_index.parse(data)
    size = len(data) - index.padding - len(index.trailing)
    return ShadowFile(file, size, data)


def _time_index(segment: Segment) -> TimeIndex:
    file = segment.indexes.get(FileKind.TIME_INDEX)
    return time_index.parse(files.read_small(file.path) if file else b"")


def _largest_timestamp(segment: Segment, reader: IndexedLog, index: TimeIndex) -> int:
    """Return what a broker holds for the largest timestamp of a segment, ms.

    The last entry of a segment that is closed says it. Of the active one a running broker knows it
    from its appends; what is behind the last entry is read here.
    """
    largest = int(index.timestamps[-1]) if len(index) else NO_TIMESTAMP
    if segment.is_active:
        start = reader.lookup(int(index.offsets(segment.base_offset)[-1])) if len(index) else 0
        for chunk in reader.batches(start, segment.log.size):
            largest = max(largest, int(chunk.table.max_timestamp.max()))
    return largest if largest >= 0 else segment.log.mtime_ns // 1_000_000


def _checkpointed_start(partition: Partition) -> int:
    """Return the log start offset that the log dir around a partition has for it, or 0."""
    try:
        home = opening.open_log_dir(
            inputs.log_dir_of(partition.path, partition.flavour)[0], partition.flavour
        )
        rows = home.rows(FileKind.LOG_START_CHECKPOINT)
    except UnreadableError:
        return 0  # a partition dir by itself
    row = rows.get((partition.topic or "", -1 if partition.number is None else partition.number))
    return row.offset if row else 0


def _stopped(search: Callable[[], Location]) -> Location:
    """Return what a search finds, or why it stopped."""
    try:
        return search()
    except StartFailsError as error:
        return Location(problem=str(error))


def _key(location: Location) -> tuple[int | None, int | None, int | None]:
    return location.segment, location.position, location.offset
