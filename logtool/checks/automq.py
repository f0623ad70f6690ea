"""Rules for a bucket of AutoMQ, and for the bucket and the metadata log of its cluster together.

Without a metadata log each object is checked alone. With it, the objects that the log has must be
in the bucket with their sizes, and the offsets of each stream must follow each other, first in
objects and then in the WAL of the node that has the stream open.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from logtool.disk.files import LogFile
from logtool.errors import FormatError, UnreadableError
from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.automq import (
    composite_object,
    data_object,
    range_index,
    reservation,
    wal_object,
)
from logtool.formats.automq.data_object import FOOTER
from logtool.formats.automq.names import ObjectKind
from logtool.formats.automq.wal_object import WalRecords
from logtool.formats.names import DirectoryKind, PartitionDirectory
from logtool.log.automq_bucket import Bucket, StoredObject, WholeObject, open_all
from logtool.log.inputs import is_bucket
from logtool.log.selection import Selection
from logtool.metadata import image as metadata_image
from logtool.metadata.automq_partitions import AutomqCluster, StreamPartition
from logtool.metadata.state import MetadataImage
from logtool.metadata.streams import ObjectState
from logtool.running.summary import Summary

Item = Finding | UnreadableError


class BucketVerification:
    """Findings of the buckets among the given paths, which are counted in a summary."""

    def __init__(
        self, paths: Sequence[Path], summary: Summary, *, selection: Selection, reads_blocks: bool
    ) -> None:
        self.summary = summary
        self._paths = paths
        self._selection = selection
        self._reads_blocks = reads_blocks

    def __iter__(self) -> Iterator[Item]:
        """Yield the findings of each bucket; a path that cannot be read is an error."""
        images = []
        buckets: list[Bucket] = []
        for path in self._paths:
            try:
                if is_bucket(path):
                    buckets += open_all(path)
                elif metadata_image.has_log(path):
                    images.append(metadata_image.read_any(path))
            except UnreadableError as error:
                yield self._counted(error)
        for bucket in buckets:
            own = next((one for one in images if one.streams.has_cluster(bucket.cluster_id)), None)
            for item in _check(bucket, own, self._selection, self.summary, self._reads_blocks):
                yield self._counted(item)

    def _counted(self, item: Item) -> Item:
        self.summary.add(item)
        return item


def _check(
    bucket: Bucket,
    image: MetadataImage | None,
    selection: Selection,
    summary: Summary,
    reads_blocks: bool,
) -> Iterator[Item]:
    for file in (*bucket.objects.values(), *bucket.others):
        yield from object_findings(file, reads_blocks=reads_blocks)
        summary.segments += file.name.kind is ObjectKind.DATA
        summary.bytes += file.size
    for wal in bucket.wals.values():
        for file in wal:
            yield from object_findings(file, reads_blocks=True)
            summary.bytes += file.size
    if image is None:
        return
    cluster = AutomqCluster(image, bucket)
    yield from _against_metadata(cluster)
    for node_id in sorted(bucket.wals):
        yield from _wal_gap(cluster, node_id)
    if not reads_blocks:
        return
    for partition in cluster.partitions():
        key = partition.topic, partition.number
        directory = PartitionDirectory("", DirectoryKind.LIVE, *key, None, exact=True)
        if selection.takes(directory):
            summary.partitions += 1
            yield from _partition(partition, summary)


def object_findings(file: StoredObject, *, reads_blocks: bool) -> Iterator[Item]:
    """Yield the broken rules of one object alone."""
    try:
        with file.open() as opened:
            match file.name.kind:
                case ObjectKind.DATA:
                    found = _data_object(opened, file.size, reads_blocks=reads_blocks)
                case ObjectKind.WAL:
                    parsed = wal_object.parse(opened.read(0, file.size))
                    found = wal_object.check(parsed, start_offset=file.name.start_offset)
                case ObjectKind.RANGE_INDEX:
                    found = range_index.check(range_index.parse(opened.read(0, file.size)))
                case _:
                    owner = reservation.parse(opened.read(0, file.size))
                    found = reservation.check(owner, node_id=file.name.node_id)
            for one in found:
                yield one.placed(file.path)
    except UnreadableError as error:
        yield error


def _data_object(
    opened: LogFile | WholeObject, size: int, *, reads_blocks: bool
) -> Iterator[Finding]:
    """Yield the broken rules of a data object, which is read block by block."""
    footer = data_object.parse_footer(opened.read(max(0, size - FOOTER.size), FOOTER.size))
    if footer is not None and footer.magic == composite_object.MAGIC:
        yield from composite_object.check(composite_object.parse(opened.read(0, size)))
        return
    damaged = list(data_object.check_footer(footer, size, data_object.MAGIC))
    yield from damaged
    if damaged or footer is None:
        return
    entries = data_object.parse_entries(opened.read(footer.index_position, footer.index_size))
    yield from data_object.check_entries(entries, footer.index_position)
    for row in range(len(entries) if reads_blocks else 0):
        start, length = int(entries["position"][row]), int(entries["size"][row])
        if 0 <= start <= start + length <= footer.index_position:
            yield from data_object.check_entry(entries, row, opened.read(start, length))


def _against_metadata(cluster: AutomqCluster) -> Iterator[Finding]:
    """Yield the objects that are missing, have another size, or that no record needs."""
    bucket, objects = cluster.bucket, cluster.image.streams.objects
    for object_id, known in sorted(objects.items()):
        file = bucket.objects.get(object_id)
        if known.state == ObjectState.COMMITTED and file is None:
            yield Finding(
                "automq-bucket/missing-object",
                f"object {object_id} of {wording.size(known.size)} is committed in the metadata "
                "log and missing in the bucket",
                path=bucket.path,
            )
        elif known.is_live and file and not known.is_composite and file.size != known.size:
            yield Finding(
                "automq-bucket/size",
                f"expected {known.size} bytes as in the metadata log, found {file.size}",
                path=file.path,
            )
        elif known.state in (ObjectState.MARKED_DESTROYED, ObjectState.DESTROYED) and file:
            yield Finding(
                "automq-bucket/marked",
                f"object {object_id} of {wording.size(file.size)} is marked for deletion",
                path=file.path,
            )
    for object_id, file in sorted(bucket.objects.items()):
        if object_id not in objects and object_id not in cluster.linked:
            yield Finding(
                "automq-bucket/not-referenced",
                f"object {object_id} of {wording.size(file.size)} is not in the metadata log, and "
                "no composite object links it",
                path=file.path,
            )


def _wal_gap(cluster: AutomqCluster, node_id: int) -> Iterator[Item]:
    """Yield a finding if recovery of the WAL drops records that are in no object."""
    streams = cluster.image.streams
    by_key = {one.name.key: one for one in cluster.bucket.wals[node_id]}
    for name in cluster.wal(node_id).order.behind_gap:
        file = by_key[name.key]
        try:
            with file.open() as opened:
                read = wal_object.records(wal_object.parse(opened.read(0, file.size)))
        except UnreadableError as error:
            yield error
            continue
        lost = _needed(read, streams.end_offsets)
        if lost:
            yield Finding(
                "automq-wal/gap",
                f"recovery drops {wording.count(lost, 'record')} of this object without an error: "
                "an object before it is missing",
                path=file.path,
            )


def _needed(read: WalRecords, end_offsets: dict[int, int]) -> int:
    """Return how many records are behind the end offset of their stream in the metadata log."""
    columns = (read.records.stream_id.tolist(), read.records.end_offset.tolist())
    return sum(
        end > end_offsets[stream] for stream, end in zip(*columns, strict=True)
        if stream in end_offsets
    )  # fmt: skip


def _partition(partition: StreamPartition, summary: Summary) -> Iterator[Finding]:
    """Yield the offsets of a partition that are in no object and in no WAL."""
    for fault in partition.faults:
        if fault.first_offset is None or fault.end_offset is None or fault.path is not None:
            continue  # the object is reported on its own
        yield Finding(
            "automq-stream/hole",
            f"a stream of {partition.topic}-{partition.number} lacks "
            f"{wording.offsets(fault.first_offset, fault.end_offset - 1)}: {fault.text}",
            topic=partition.topic,
            partition=partition.number,
        )
    for segment in partition.segments:
        try:
            for chunk in segment.batches():
                summary.batches += chunk.batches
                summary.records += chunk.records
        except (FormatError, UnreadableError):
            return
