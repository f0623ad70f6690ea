"""The start of a node of AutoMQ after a crash: its WAL, then each partition that was not closed.

First the node reads its WAL and appends to each open stream the records behind its end offset in
the metadata log, up to the first gap. Then a partition whose meta says that it was not closed is
replayed. It begins at the segment that contains the recovery point, at the newest producer snapshot
above the log start and not above the recovery point, or at the start of the segment if that is
later; indexes are continued behind their last entries (AKIP-2). Source: ``S3Storage``,
``WALRecovery``, ``ElasticLogLoader``, ``ElasticLogSegment`` (AutoMQ f1ce98ec8981, 2026-08-21).
"""

from collections.abc import Iterator, Mapping, Sequence

from logtool.formats import time_index, transaction_index
from logtool.lazy_dataclass import dataclass
from logtool.log.automq_bucket import Extents, ExtentSource
from logtool.log.selection import Selection
from logtool.metadata.automq_partitions import StreamPartition, StreamSegment
from logtool.metadata.automq_tree import PartitionTree


@dataclass(frozen=True, slots=True)
class WalRecovery:
    """The recovery of the WAL of one node."""

    node_id: int
    trim_offset: int
    objects: int
    skipped_objects: int
    """Objects whose records are all in objects of streams, or that a fenced node wrote late."""
    taken_objects: int
    dropped_objects: int
    """Objects behind a gap, whose records are lost without an error."""
    records: int
    """Records above the trim offset in the objects that are taken."""
    recovered_records: int
    """Records among them that no object of a stream has."""
    fault: str | None
    """The reason why the node does not start; None if it does."""


@dataclass(frozen=True, slots=True)
class StreamRecovery:
    """An open stream before and after the recovery of the WAL."""

    stream_id: int
    node_id: int | None
    topic: str | None
    partition: int | None
    start_offset: int
    metadata_end_offset: int
    end_offset: int
    """End offset after the recovery."""
    recovered_records: int
    seen_end_offset: int
    """Highest end offset in the WAL, or that after the recovery."""

    @property
    def lost_offsets(self) -> int:
        """Return the number of offsets that the WAL had and recovery drops."""
        return self.seen_end_offset - self.end_offset


@dataclass(frozen=True, slots=True)
class PartitionReplay:
    """The replay of one partition when it is opened."""

    topic: str
    partition: int
    clean: bool
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    snapshot: int | None
    """Offset of the producer snapshot that is loaded; None without one."""
    dropped_snapshots: int
    replayed_from: int | None
    """None if nothing is replayed."""
    replayed_bytes: int
    full_replay_from: int | None
    """Base offset of the segment that contains the recovery point."""
    full_replay_bytes: int
    time_index_checkpoint: int | None
    """Offset in the last entry of the time index; None without an entry."""
    transaction_index_checkpoint: int | None
    """Last offset of the last entry of the transaction index; None without an entry."""
    undone_log_start: int | None
    """Log start offset of deleted records that come back; None if none does."""

    @property
    def new_recovery_point(self) -> int:
        """Return the recovery point after the replay."""
        return min(self.recovery_point, self.log_end_offset)


NodeStartItem = WalRecovery | StreamRecovery | PartitionReplay


class NodeStart:
    """The start of the nodes of a cluster: iterate over it for WALs, streams and partitions."""

    def __init__(self, tree: PartitionTree, selection: Selection) -> None:
        self._tree = tree
        self._cluster = tree.cluster
        self._selection = selection

    def __iter__(self) -> Iterator[NodeStartItem]:
        cluster = self._cluster
        streams = cluster.image.streams
        found = [
            self._stream(stream_id, stream.topic_id, stream.partition)
            for stream_id, stream in sorted(streams.streams.items())
            if stream.is_open
        ]
        for node_id in sorted(cluster.bucket.wals):
            own = [one for one in found if one.node_id == node_id]
            yield self._wal(node_id, sum(one.recovered_records for one in own))
        yield from found
        for name in self._tree.chosen(self._selection):
            self._tree.entries(name)  # and notes why parts of it are missing
            yield replay_of(self._tree.partition(name))

    def _wal(self, node_id: int, recovered: int) -> WalRecovery:
        found = self._cluster.wal(node_id)
        order = found.order
        return WalRecovery(
            node_id=node_id,
            trim_offset=order.trim_offset,
            objects=len(self._cluster.bucket.wals[node_id]),
            skipped_objects=len(order.trimmed) + len(order.overlapping),
            taken_objects=len(order.taken),
            dropped_objects=len(order.behind_gap),
            records=sum(len(kept) for _, _, kept in found.parts),
            recovered_records=recovered,
            fault=found.fault,
        )

    def _stream(
        self, stream_id: int, topic_id: str | None, partition: int | None
    ) -> StreamRecovery:
        cluster = self._cluster
        content, node_id = cluster.stream(stream_id), cluster.node_of(stream_id)
        seen: Mapping[int, int] = {}
        if node_id is not None and node_id in cluster.bucket.wals:
            seen = cluster.wal(node_id).seen_ends
        return StreamRecovery(
            stream_id=stream_id,
            node_id=node_id,
            topic=cluster.image.names.get(topic_id or "", topic_id),
            partition=partition,
            start_offset=content.start_offset,
            metadata_end_offset=cluster.image.streams.end_offsets.get(stream_id, 0),
            end_offset=content.end_offset,
            recovered_records=content.recovered,
            seen_end_offset=max(seen.get(stream_id, 0), content.end_offset),
        )


def replay_of(partition: StreamPartition) -> PartitionReplay:
    """Return the replay of a partition when it is opened."""
    meta, segments = partition.meta, partition.segments
    usable = [
        offset for offset in partition.snapshots
        if meta.start_offset < offset <= meta.recovery_point
    ]  # fmt: skip
    snapshot = max(usable, default=None)
    first = max(
        (row for row, one in enumerate(segments) if one.base_offset <= meta.recovery_point),
        default=0,
    )
    read = () if meta.clean_shutdown else segments[first:]
    start = max(snapshot or 0, read[0].base_offset) if read else None
    time, transaction = _checkpoints(segments)
    epochs = partition.leader_epochs
    undone = epochs[0][1] if epochs and epochs[0][1] > meta.start_offset else None
    return PartitionReplay(
        topic=partition.topic,
        partition=partition.number,
        clean=meta.clean_shutdown,
        log_start_offset=partition.log_start_offset,
        log_end_offset=partition.log_end_offset,
        recovery_point=meta.recovery_point,
        snapshot=snapshot,
        dropped_snapshots=len(partition.snapshots) - len(usable),
        replayed_from=start,
        replayed_bytes=sum(_bytes_from(one, start or 0) for one in read),
        full_replay_from=read[0].base_offset if read else None,
        full_replay_bytes=sum(_bytes_from(one, 0) for one in read),
        time_index_checkpoint=time,
        transaction_index_checkpoint=transaction,
        undone_log_start=undone,
    )


def _bytes_from(segment: StreamSegment, offset: int) -> int:
    """Return the bytes of the records of a segment that have an offset from `offset` on."""
    content = segment.content
    ends = segment.base_offset + content.end_offset - segment.start
    return int(content.size[ends > offset].sum())


def _checkpoints(segments: Sequence[StreamSegment]) -> tuple[int | None, int | None]:
    """Return the last offsets that the time indexes and the transaction indexes know."""
    time = transaction = None
    for one in segments:
        times = time_index.parse(_content(one.time_index))
        if len(times):
            time = int(times.offsets(one.base_offset)[-1])
        aborted = transaction_index.parse(_content(one.transaction_index))
        if len(aborted):
            transaction = int(aborted.last_offsets[-1])
    return time, transaction


def _content(extents: Extents) -> bytes:
    source = ExtentSource(extents)
    data = bytearray(source.size)
    return bytes(data[: source.read_into(memoryview(data), 0)])
