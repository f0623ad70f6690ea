"""Location of an offset or a timestamp: by the indexes as a broker does, and by reading the log.

The rules are those of ``UnifiedLog.fetchOffsetByTimestamp``, ``LogSegment.findOffsetByTimestamp``
and ``LogSegment.read`` (Kafka 3.9 and 4.3). For a timestamp a broker takes the first segment whose
largest timestamp is late enough, the entry of its time index at or before the time, the entry of
its offset index at or before that offset, and from there on the first record that is late enough.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

import numpy as np

from logtool.errors import BatchTooLargeError, NothingMatchedError, UnreadableError, UsageError
from logtool.formats import compression, wording
from logtool.formats.names import DirectoryKind, FileKind
from logtool.formats.record_batch import NO_TIMESTAMP, Column
from logtool.formats.redpanda.record_batch import RAFT_DATA
from logtool.lazy_dataclass import dataclass
from logtool.loading.kafka_reading import StartFailsError
from logtool.log import inputs, kafka_offsets, opening
from logtool.log.chunk import Chunk
from logtool.log.dir import Partition, Segment
from logtool.log.flavour import Flavour
from logtool.log.inputs import PathKind
from logtool.log.record_table import Unread
from logtool.log.records import batch_records
from logtool.log.redpanda import REDPANDA
from logtool.log.selection import Selection
from logtool.lookup import indexes
from logtool.metadata.log_start import is_tiered, log_start
from logtool.node import settings
from logtool.running.run import Progress
from logtool.running.summary import Summary
from logtool.times import rfc3339

Matcher = Callable[[Column, Column], Column]
"""Function from offsets and timestamps of records to a mask of those that are wanted."""


@dataclass(frozen=True, slots=True)
class Location:
    """Location of a record, of a batch, or of the log end; None for fields that do not apply."""

    path: Path | None = None
    """The log; None if nothing was found."""
    segment: int | None = None
    """Base offset of the segment."""
    position: int | None = None
    size: int | None = None
    base_offset: int | None = None
    last_offset: int | None = None
    leader_epoch: int | None = None
    record: int | None = None
    """Number of the record in the batch, from 0; None if the batch has no wanted record."""
    offset: int | None = None
    """Offset of that record; the log end offset for `LookupTarget.LATEST`."""
    timestamp_ms: int | None = None
    problem: str | None = None
    """Reason why the search stopped, or could not read the records; None if it did neither."""

    @property
    def timestamp(self) -> str | None:
        """Return its time as text; None if it has no time, or it is out of range of a date."""
        return rfc3339(self.timestamp_ms)


def find_in_batch(
    segment: Segment,
    chunk: Chunk,
    row: int,
    wanted: Matcher,
    limit: int = compression.DEFAULT_LIMIT,
) -> Location:
    """Return one batch and the first record in it that is wanted.

    BatchTooLargeError if the batch decompresses to more than `limit` bytes.
    """
    batch = chunk.table.row(row)
    location = Location(
        path=segment.log.path,
        segment=segment.base_offset,
        position=batch["position"],
        size=batch["size"],
        base_offset=batch["base_offset"],
        last_offset=batch["last_offset"],
        leader_epoch=batch["leader_epoch"],
    )
    before = 0
    first = location
    for part in batch_records(chunk, row, limit=limit):
        if isinstance(part, Unread):
            if part.beyond_limit:
                raise BatchTooLargeError(segment.log.path, batch["position"], limit) from part.error
            large = f"batch of {wording.size(part.size)} is too large to decode"
            reason = part.reason if part.in_memory else large
            return replace(location, problem=f"its records cannot be read: {reason}")
        numbers = np.flatnonzero(wanted(part.offset, part.timestamp))
        if first is location and len(numbers):
            number = int(numbers[0])
            stamp = int(part.timestamp[number])
            first = replace(
                location,
                record=before + number,
                offset=int(part.offset[number]),
                timestamp_ms=None if stamp == NO_TIMESTAMP else stamp,
            )
        before += len(part.offset)
    return first


class LookupTarget(StrEnum):
    """Kind of value that is looked up."""

    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    EARLIEST = "earliest"
    """The log start offset."""
    LATEST = "latest"
    """The log end offset."""


# This occurs in compacted logs: a batch that compaction emptied, and its entry, keep its time.
_NO_FURTHER = (
    "the first segment that is new enough by its time index holds no such record, and a "
    "broker searches no further segment"
)


@dataclass(frozen=True, slots=True)
class FoundPlace:
    """A location, and the way in which it was found."""

    by: str
    """`index` or `scan`."""
    location: Location


@dataclass(frozen=True, slots=True)
class LookupResult:
    """Both locations, and the ends of the log."""

    partition: Partition
    asked: LookupTarget
    value: int | None
    """The offset, or the timestamp in ms, that was looked up; None for an end of the log."""
    log_start: int
    local_start: int
    """First offset of the local segments; segments below are in remote storage."""
    log_end: int | None
    """Log end offset that a broker finds when it loads the log; None if it cannot."""
    by_index: Location
    by_scan: Location
    kafka_offset: int | None = None
    """Kafka offset of `by_scan` in a log of Redpanda; None if it is not known, or has none."""

    @property
    def is_there(self) -> bool:
        """Return whether anything was found by reading the log."""
        return self.by_scan.path is not None

    @property
    def agree(self) -> bool:
        """Return whether both locations are the same record."""
        return _key(self.by_index) == _key(self.by_scan)

    @property
    def places(self) -> tuple[FoundPlace, FoundPlace]:
        """Return both locations, each with the way in which it was found."""
        return FoundPlace("index", self.by_index), FoundPlace("scan", self.by_scan)


_MOST_NAMED = 3


def partition_of(
    path: Path, topic: str | None, number: int | None, flavour: Flavour | None = None
) -> Path:
    """Return the directory of the selected partition.

    A path that is no log dir is returned unchanged. UsageError if several partitions of a log dir
    match, NothingMatchedError if no partition does, UnreadableError if it cannot be listed.
    """
    if inputs.kind_of(path, flavour, redpanda=True) is not PathKind.LOG_DIR:
        if topic is not None or number is not None:
            raise UsageError("--topic and --partition need a log dir, but PATH is not a log dir")
        return path
    selection = Selection(
        topics=() if topic is None else (topic,), partitions=() if number is None else (number,)
    )
    listed = opening.open_log_dir(path, flavour)
    chosen = [
        (folder, directory.unlisted)
        for folder, directory in listed.partitions
        if directory.kind is not DirectoryKind.DELETE and selection.takes(directory)
    ]
    # A folder that could not be listed may hold the partition, if no listed one matches.
    least = min((unlisted for _, unlisted in chosen), default=False)
    found = [folder for folder, unlisted in chosen if unlisted == least]
    if len(found) == 1:
        return found[0]
    if not found:
        raise NothingMatchedError(path, f"nothing matched {selection}".rstrip())
    # Redpanda's partition folders have the same names in each topic.
    above = [f"{one.parent.name}/" if listed.flavour is REDPANDA else "" for one in found]
    texts = [f"{topic}{one.name}" for topic, one in zip(above, found, strict=True)]
    shown = ", ".join(texts[:_MOST_NAMED])
    more = ", ..." if len(found) > _MOST_NAMED else ""
    raise UsageError(
        f"{path}: is a log dir with {len(found)} matching partitions ({shown}{more}); "
        "choose one with --topic and --partition"
    )


class Lookup:
    """Lookup in one partition directory; reading fills `summary`."""

    def __init__(
        self,
        path: Path,
        summary: Summary,
        progress: Progress | None = None,
        *,
        limit: int = compression.DEFAULT_LIMIT,
        flavour: Flavour | None = None,
    ) -> None:
        """List the directory; UnreadableError if it is no partition dir, or has no log."""
        if inputs.kind_of(path, flavour, redpanda=True) is not PathKind.PARTITION_DIR:
            raise UnreadableError(path, "expected a partition dir")
        self._partition = opening.open_partition(path, flavour)
        self._in_raft = self._partition.flavour.has_raft_offsets
        if not self._partition.segments:
            raise UnreadableError(path, "holds no log")
        self._local_start = self._partition.segments[0].base_offset
        row = _checkpointed_start(self._partition)
        tiered = row < self._local_start and _is_tiered(self._partition)
        self._start = log_start(self._local_start, row, tiered=tiered)
        self._summary = summary
        self._limit = limit
        self._progress = progress or Progress()
        self._progress.bytes_total = sum(segment.log.size for segment in self._partition.segments)

    def find(self, asked: LookupTarget, value: int | None = None) -> LookupResult:
        """Look up an offset, a timestamp in ms, or an end of the log."""
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
            # A broker answers OFFSET_OUT_OF_RANGE, or reads from remote storage.
            below = offset < max(self._start, self._local_start)
            by_index = Location() if below else _stopped(lambda: self._offset_by_index(offset))
            by_scan = Location() if below else self._offset_by_scan(offset)
        return LookupResult(
            partition=self._partition,
            asked=asked,
            value=value,
            log_start=self._start,
            local_start=max(self._start, self._local_start),
            log_end=end,
            by_index=by_index,
            by_scan=by_scan,
            kafka_offset=self._kafka_offset(by_scan),
        )

    def _kafka_offset(self, found: Location) -> int | None:
        """Return the Kafka offset of a location in a log of Redpanda; None if not known."""
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
        if self._in_raft:  # Redpanda replays the last segment at its start
            return self._latest_by_scan().offset or 0
        return indexes.reader_of(self._partition.segments[-1]).next_offset()

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
                start = indexes.base_index_position(segment, offset)
                found = self._first_at(segment, indexes.batches_from(segment, start), offset)
                if found:
                    return found
                continue
            reader = indexes.reader_of(segment)
            position = reader.find(offset)
            if position is not None:
                # No chunk if the file has shrunk meanwhile.
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
        """Return the first batch that ends at or after an offset; None without one."""
        for chunk in chunks:
            rows = np.flatnonzero(chunk.table.last_offset >= offset)
            if len(rows):
                return self._in_batch(segment, chunk, int(rows[0]), _from(offset))
        return None

    def _from_floor(self, offset: int) -> Iterable[Segment]:
        """Return the segment that an offset belongs to, and the segments after it."""
        return (
            segment
            for segment in self._partition.segments
            if segment.next_base_offset is None or segment.next_base_offset > offset
        )

    def _time_by_index(self, stamp: int) -> Location:
        for segment in self._partition.segments:
            if self._in_raft:
                largest = indexes.base_index_timestamp(segment)
                if largest is None or largest >= stamp:
                    start = indexes.base_index_position_of_time(segment, stamp)
                    if late := self._first_late(
                        segment, indexes.batches_from(segment, start), stamp
                    ):
                        return late
                continue
            reader, index = indexes.reader_of(segment), indexes.time_index_of(segment)
            if indexes.largest_timestamp(segment, reader, index) < stamp:
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
        """Return the first record at or after a timestamp, or an unreadable batch before it."""

        def late(offsets: Column, stamps: Column) -> Column:
            column: Column = (stamps >= stamp) & (offsets >= self._start)
            return column

        for chunk in chunks:
            table = chunk.table
            rows = (table.max_timestamp >= stamp) & (table.last_offset >= self._start)
            rows &= table.batch_type <= RAFT_DATA  # the times of other types are those of brokers
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
    """Return a matcher for records from an offset on."""
    return lambda offsets, _: offsets >= offset


def _checkpointed_start(partition: Partition) -> int:
    """Return the log start offset in the checkpoint of a partition's log dir; 0 without one."""
    try:
        home = opening.open_log_dir(
            inputs.log_dir_of(partition.path, partition.flavour)[0], partition.flavour
        )
        rows = home.rows(FileKind.LOG_START_CHECKPOINT)
    except UnreadableError:
        return 0  # a partition dir without a log dir
    row = rows.get((partition.topic or "", -1 if partition.number is None else partition.number))
    return row.offset if row else 0


def _is_tiered(partition: Partition) -> bool:
    """Return whether the metadata log next to a partition puts its topic into remote storage."""
    if partition.flavour.has_raft_offsets:
        return False
    return is_tiered(settings.around(partition.path).image, partition.topic)


def _stopped(search: Callable[[], Location]) -> Location:
    """Return the location that a search finds, or one with the reason why it stopped."""
    try:
        return search()
    except StartFailsError as error:
        return Location(problem=str(error))


def _key(location: Location) -> tuple[int | None, int | None, int | None]:
    return location.segment, location.position, location.offset
