"""The partitions of AutoMQ: the image of a metadata log and the objects of a bucket together.

A partition has no directory. Its meta stream names its segments, and each segment is a slice of a
log stream, whose payloads are Kafka's batches. A stream is read from its stream objects, from all
stream set objects, and behind its end offset in the metadata log from the WAL of the node that has
it open. Source: ``ElasticLog``, ``ElasticLogSegment``, ``MetaStream``, ``S3Storage``,
``WALRecovery`` (AutoMQ f1ce98ec8981, 2026-08-21).
"""

from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from pathlib import Path

import numpy as np

from logtool.errors import FormatError, UnreadableError
from logtool.formats.automq import meta_stream
from logtool.formats.automq.meta_stream import LogMeta, PartitionMeta, StreamSlice
from logtool.lazy_dataclass import dataclass
from logtool.log.automq_bucket import (
    Bucket,
    Extents,
    ExtentSource,
    IndexedBlocks,
    NodeWalRecords,
    block_extents,
    join_extents,
    read_wal,
)
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk
from logtool.metadata.state import MetadataImage

LOG_STREAM, TIME_STREAM, TRANSACTION_STREAM = "log", "tim", "txn"
"""Names of the streams of a partition, before the suffix of a segment."""


@dataclass(frozen=True, slots=True)
class StreamFault:
    """A reason why offsets of a stream are missing."""

    text: str
    first_offset: int | None = None
    """First missing offset of the stream; None if it is not known."""
    end_offset: int | None = None
    path: Path | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class StreamContent:
    """The records of one stream from its start offset on, without gaps and duplicates hidden."""

    stream_id: int
    start_offset: int
    end_offset: int
    """End offset after recovery: that of the metadata log, or the end of the WAL behind it."""
    extents: Extents
    faults: tuple[StreamFault, ...]
    dropped: int
    """Records of the WAL behind a gap, which recovery drops."""
    recovered: int = 0
    """Records that only the WAL has."""


@dataclass(frozen=True, slots=True, eq=False)
class StreamSegment:
    """One segment of a partition."""

    base_offset: int
    content: Extents
    """Records of the log stream in its slice."""
    start: int = 0
    """Start of the slice."""
    mtime_ms: int = 0
    time_index: Extents = field(default_factory=lambda: join_extents([]))
    """Bytes of Kafka's time index."""
    transaction_index: Extents = field(default_factory=lambda: join_extents([]))
    """Bytes of Kafka's transaction index."""

    def batches(self) -> Iterator[Chunk]:
        """Yield the batches of the segment and damage, as those of a file are yielded."""
        yield from read_batches(ExtentSource(self.content), base_offset=self.base_offset)


@dataclass(frozen=True, slots=True, eq=False)
class StreamPartition:
    """One partition."""

    topic: str
    number: int
    topic_id: str
    log_start_offset: int
    log_end_offset: int
    segments: tuple[StreamSegment, ...]
    log: LogMeta
    meta: PartitionMeta
    leader_epochs: tuple[tuple[int, int], ...]
    snapshots: dict[int, bytes]
    """Kafka's producer snapshots by offset."""
    faults: tuple[StreamFault, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PartitionEntries:
    """The entries in the meta stream of a partition."""

    log: LogMeta
    meta: PartitionMeta
    leader_epochs: tuple[tuple[int, int], ...]
    snapshots: dict[int, bytes]
    """Kafka's producer snapshots by offset."""
    faults: tuple[StreamFault, ...]


class AutomqCluster:
    """Reads the partitions of a cluster; index blocks and WALs are read once."""

    def __init__(self, image: MetadataImage, bucket: Bucket) -> None:
        self.image = image
        self.bucket = bucket
        self._wals: dict[int, NodeWalRecords] = {}
        self._blocks: dict[int, list[IndexedBlocks] | FormatError] = {}

    def partitions(self) -> Iterator[StreamPartition]:
        """Yield every partition whose meta stream is known, by topic and number."""
        names = self.image.names
        for topic_id, number in sorted(
            self.image.streams.meta_streams, key=lambda key: (names.get(key[0], key[0]), key[1])
        ):
            yield self.partition(topic_id, number)

    def partition(self, topic_id: str, number: int) -> StreamPartition:
        """Read the meta stream of a partition, and where its segments are."""
        own = self.entries(topic_id, number)
        faults = list(own.faults)
        segments, end = self._segments(own.log, faults)
        return StreamPartition(
            topic=self.image.names.get(topic_id, topic_id),
            number=number,
            topic_id=topic_id,
            log_start_offset=own.meta.start_offset,
            log_end_offset=max(end, own.meta.start_offset),
            segments=tuple(segments),
            log=own.log,
            meta=own.meta,
            leader_epochs=own.leader_epochs,
            snapshots=own.snapshots,
            faults=tuple(faults),
        )

    def entries(self, topic_id: str, number: int) -> PartitionEntries:
        """Read the meta stream of a partition, and nothing of its other streams.

        A partition that never was opened has no meta stream with entries: it is empty.
        """
        meta = self.stream(self.image.streams.meta_streams[topic_id, number])
        faults = list(meta.faults)
        values: dict[str, bytes] = {}
        source, at = ExtentSource(meta.extents), 0
        for size in meta.extents.size.tolist():
            payload = bytearray(size)
            source.read_into(memoryview(payload), at)
            at += size
            try:
                entry = meta_stream.parse(bytes(payload))
            except FormatError as error:
                faults.append(StreamFault(error.reason))
                continue
            values[entry.key] = entry.value
        log = meta_stream.LogMeta({}, ())
        own = meta_stream.PartitionMeta(0, 0, 0, clean_shutdown=True)
        epochs: list[tuple[int, int]] = []
        snapshots: dict[int, bytes] = {}
        try:
            if meta_stream.LOG in values:
                log = meta_stream.log_meta(values[meta_stream.LOG])
            if meta_stream.PARTITION in values:
                own = meta_stream.partition_meta(values[meta_stream.PARTITION])
            if meta_stream.LEADER_EPOCHS in values:
                epochs = meta_stream.leader_epochs(values[meta_stream.LEADER_EPOCHS])
            if meta_stream.PRODUCER_SNAPSHOTS in values:
                stored = values[meta_stream.PRODUCER_SNAPSHOTS]
                snapshots = meta_stream.producer_snapshots(stored)
        except FormatError as error:
            faults.append(StreamFault(error.reason))
        return PartitionEntries(
            log=log,
            meta=own,
            leader_epochs=tuple(epochs),
            snapshots=snapshots,
            faults=tuple(faults),
        )

    def _segments(self, log: LogMeta, faults: list[StreamFault]) -> tuple[list[StreamSegment], int]:
        """Return the segments of a partition and its log end offset."""
        known: dict[int, StreamContent] = {}

        def slice_of(name: str, where: StreamSlice) -> tuple[StreamContent, int, int] | None:
            """Return a stream, and start and end of a slice of it; None if it has no byte."""
            stream_id = log.streams.get(name, -1)
            if stream_id < 0 or where.start < 0:
                return None
            if stream_id not in known:
                known[stream_id] = self.stream(stream_id)
                faults.extend(known[stream_id].faults)
            content = known[stream_id]
            return content, where.start, content.end_offset if where.end < 0 else where.end

        def bytes_of(name: str, where: StreamSlice) -> Extents:
            found = slice_of(name, where)
            return found[0].extents.bytes_between(*found[1:]) if found else join_extents([])

        segments, log_end = [], 0
        for one in log.segments:
            found = slice_of(LOG_STREAM + one.suffix, one.log)
            log_end = one.base_offset + (found[2] - found[1] if found else 0)
            segments.append(
                StreamSegment(
                    one.base_offset,
                    found[0].extents.between(*found[1:]) if found else join_extents([]),
                    one.log.start,
                    one.last_modified_ms,
                    bytes_of(TIME_STREAM + one.suffix, one.time),
                    bytes_of(TRANSACTION_STREAM + one.suffix, one.transactions),
                )
            )
        return segments, log_end

    def stream(self, stream_id: int) -> StreamContent:
        """Read where the records of a stream are, as AutoMQ finds them after recovery."""
        streams = self.image.streams
        known = streams.streams.get(stream_id)
        start = known.start_offset if known else 0
        in_log = streams.end_offsets.get(stream_id, start)
        parts, faults = self._from_objects(stream_id)
        found = join_extents(parts)
        found = found[np.argsort(found.base_offset, kind="stable")]
        found = found[found.end_offset > start]
        rows, expected = [], start
        for row, (base, end) in enumerate(
            zip(found.base_offset.tolist(), found.end_offset.tolist(), strict=True)
        ):
            if end <= expected:
                continue  # an object has it, too
            if base > expected:
                faults.append(StreamFault("no object has these offsets", expected, base))
            rows.append(row)
            expected = end
        kept = [found[np.array(rows, np.int64)]]
        if expected < in_log:
            faults.append(StreamFault("no object has these offsets", expected, in_log))
        end, dropped, recovered = in_log, 0, 0
        if known and known.is_open:
            wal, end, dropped = self._from_wal(stream_id, in_log)
            kept.append(wal)
            recovered = len(wal)
        return StreamContent(
            stream_id, start, end, join_extents(kept), tuple(faults), dropped, recovered
        )

    def _from_wal(self, stream_id: int, expected: int) -> tuple[Extents, int, int]:
        """Find the records that recovery adds to an open stream, its end, and the dropped ones."""
        node_id = self.node_of(stream_id)
        if node_id is None:
            return join_extents([]), expected, 0
        found = self.wal(node_id).extents(stream_id)
        rows, dropped = [], 0
        for row, (base, end) in enumerate(
            zip(found.base_offset.tolist(), found.end_offset.tolist(), strict=True)
        ):
            if base == expected:
                rows.append(row)
                expected = end
            elif base > expected:
                dropped += 1
        return found[np.array(rows, np.int64)], expected, dropped

    def node_of(self, stream_id: int) -> int | None:
        """Return the node that wrote the last range of a stream; None if it has no range."""
        ranges = self.image.streams.ranges.get(stream_id, {})
        return ranges[max(ranges)].node_id if ranges else None

    def wal(self, node_id: int) -> NodeWalRecords:
        """Return the records of the WAL of a node."""
        if node_id not in self._wals:
            self._wals[node_id] = read_wal(self.bucket, node_id)
        return self._wals[node_id]

    def _from_objects(self, stream_id: int) -> tuple[list[Extents], list[StreamFault]]:
        """Return the records of a stream in its objects, and the objects that cannot be read."""
        streams = self.image.streams
        parts: list[Extents] = []
        faults: list[StreamFault] = []
        own = streams.stream_objects.get(stream_id, {})
        for object_id in (*own, *streams.set_objects):
            blocks = self._indexed(object_id)
            if isinstance(blocks, FormatError):
                one = own.get(object_id)
                faults.append(
                    StreamFault(
                        blocks.reason,
                        one.start_offset if one else None,
                        one.end_offset if one else None,
                        blocks.path,
                        blocks.position,
                    )
                )
                continue
            for some in blocks:
                if (some.entries["stream_id"] != stream_id).all():
                    continue
                try:
                    found, damaged = block_extents(some, stream_id)
                except UnreadableError as error:
                    faults.append(StreamFault(error.reason, path=error.path))
                    continue
                parts.append(found)
                faults += (
                    StreamFault(one.reason, path=one.path, position=one.position) for one in damaged
                )
        return parts, faults

    def _indexed(self, object_id: int) -> list[IndexedBlocks] | FormatError:
        if object_id not in self._blocks:
            try:
                self._blocks[object_id] = self.bucket.indexed(object_id)
            except FormatError as error:
                self._blocks[object_id] = error
            except UnreadableError as error:
                self._blocks[object_id] = FormatError(error.reason, 0, error.path)
        return self._blocks[object_id]

    @cached_property
    def linked(self) -> set[int]:
        """Return the objects that composite objects link: they are not in the metadata log."""
        found = set()
        for one in self.image.streams.objects.values():
            blocks = self._indexed(one.object_id) if one.is_composite else []
            if not isinstance(blocks, FormatError):
                found |= {some.file.name.object_id for some in blocks}
        return {one for one in found if one is not None}
