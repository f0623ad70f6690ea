"""Rules for a bucket of AutoMQ, and for the bucket and the metadata log of its cluster together.

Without a metadata log each object is checked alone. With it, the objects that the log has must be
in the bucket with their sizes, and the offsets of each stream must follow each other, first in
objects and then in the WAL of the node that has the stream open. Objects, and then partitions, are
checked one by one, in this process or in executors of Spark.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

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
from logtool.log.automq_bucket import Bucket, StoredObject, WholeObject, open_all
from logtool.log.buckets import is_bucket
from logtool.log.selection import Selection
from logtool.metadata import automq_tree
from logtool.metadata import image as metadata_image
from logtool.metadata.automq_partitions import AutomqCluster
from logtool.metadata.automq_tree import PartitionTree
from logtool.metadata.state import MetadataImage
from logtool.metadata.streams import ObjectState
from logtool.running.summary import Summary

Item = Finding | UnreadableError
_One = TypeVar("_One")
_Result = TypeVar("_Result")


class Each(Protocol):
    """A function that calls another one for each item of a sequence, here or elsewhere."""

    def __call__(
        self, function: Callable[[_One], _Result], items: Sequence[_One], what: str
    ) -> Iterable[_Result]:
        """Return the results in order; `what` describes the job."""


def here(
    function: Callable[[_One], _Result], items: Sequence[_One], what: str
) -> Iterable[_Result]:
    """Call the function in this process when its result is asked for."""
    del what
    return map(function, items)


class BucketVerification:
    """Findings of the buckets among the given paths, which are counted in a summary.

    `each` checks objects and partitions. With `counts` False the summary counts no bytes, segments,
    partitions and batches: the caller reads the same partitions and counts them.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        summary: Summary,
        *,
        selection: Selection,
        reads_blocks: bool,
        each: Each = here,
        counts: bool = True,
    ) -> None:
        self.summary = summary
        self._paths = paths
        self._selection = selection
        self._reads_blocks = reads_blocks
        self._each = each
        self._counts = counts

    def __iter__(self) -> Iterator[Item]:
        """Yield the findings of each bucket; a path that cannot be read is an error."""
        images: dict[Path, MetadataImage] = {}
        buckets: list[Bucket] = []
        for path in self._paths:
            try:
                if is_bucket(path):
                    buckets += open_all(path)
                elif metadata_image.has_log(path):
                    images[path] = metadata_image.read_any(path)
            except UnreadableError as error:
                yield self._counted(error)
        for bucket in buckets:
            known = (
                automq_tree.tree_of(bucket, path, image)
                for path, image in images.items()
                if image.streams.has_cluster(bucket.cluster_id)
            )
            for item in self._check(bucket, next(known, None)):
                yield self._counted(item)

    def _check(self, bucket: Bucket, tree: PartitionTree | None) -> Iterator[Item]:
        stored = [*bucket.objects.values(), *bucket.others]
        wals = [file for wal in bucket.wals.values() for file in wal]
        check = partial(_object_items, reads_blocks=self._reads_blocks)
        for items in self._each(check, [*stored, *wals], "checking objects"):
            yield from items
        if self._counts:
            self.summary.segments += sum(file.name.kind is ObjectKind.DATA for file in stored)
            self.summary.bytes += sum(file.size for file in (*stored, *wals))
        if tree is None:
            return
        yield from _against_metadata(tree.cluster)
        yield from _links(tree.cluster)
        for node_id in sorted(bucket.wals):
            yield from _wal_gap(tree.cluster, node_id)
        if not self._reads_blocks:
            return
        chosen = tree.chosen(self._selection)
        judge = partial(_partition, tree, counts=self._counts)
        for found, batches, records in self._each(judge, chosen, "checking partitions"):
            if self._counts:
                self.summary.partitions += 1
                self.summary.batches += batches
                self.summary.records += records
            yield from found

    def _counted(self, item: Item) -> Item:
        self.summary.add(item)
        return item


def _object_items(file: StoredObject, *, reads_blocks: bool) -> list[Item]:
    """Return the broken rules of one object alone."""
    return list(object_findings(file, reads_blocks=reads_blocks))


def object_findings(file: StoredObject, *, reads_blocks: bool) -> Iterator[Item]:
    """Yield the broken rules of one object alone."""
    try:
        with file.open() as opened:
            match file.name.kind:
                case ObjectKind.DATA:
                    found = _data_object(opened, file.size, reads_blocks=reads_blocks)
                case ObjectKind.WAL:
                    parsed = wal_object.parse(opened.read(0, file.size))
                    found = wal_object.check(
                        parsed,
                        start_offset=file.name.start_offset,
                        node_id=file.name.node_id,
                        epoch=file.name.epoch,
                    )
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


def _links(cluster: AutomqCluster) -> Iterator[Item]:
    """Yield the links of composite objects to objects that are missing or have other entries."""
    bucket = cluster.bucket
    for object_id, known in sorted(cluster.image.streams.objects.items()):
        file = bucket.objects.get(object_id)
        if not (file and known.is_live and known.is_composite):
            continue
        indexes = {}
        try:
            with file.open() as opened:
                parsed = composite_object.parse(opened.read(0, file.size))
            for linked, _ in parsed.linked():
                if linked not in bucket.objects:
                    yield Finding(
                        "automq-bucket/missing-object",
                        f"object {linked}, which this object links, is missing in the bucket",
                        path=file.path,
                    )
                    continue
                with suppress(FormatError):  # the object is reported on its own
                    indexes[linked] = bucket.indexed(linked)[0].entries
        except UnreadableError as error:
            yield error
            continue
        for found in composite_object.check_linked(parsed, indexes):
            yield found.placed(file.path)


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


def _partition(tree: PartitionTree, name: str, *, counts: bool) -> tuple[list[Item], int, int]:
    """Return the offsets of a partition that are in no object and in no WAL.

    With `counts`, its numbers of batches and of records, too.
    """
    partition = tree.cluster.partition(*tree.keys[name])
    found: list[Item] = []
    for fault in partition.faults:
        if fault.first_offset is None or fault.end_offset is None or fault.path is not None:
            continue  # the object is reported on its own
        found.append(
            Finding(
                "automq-stream/hole",
                f"a stream of {partition.topic}-{partition.number} lacks "
                f"{wording.offsets(fault.first_offset, fault.end_offset - 1)}: {fault.text}",
                topic=partition.topic,
                partition=partition.number,
            )
        )
    batches = records = 0
    with suppress(FormatError, UnreadableError):  # the object is reported on its own
        for segment in partition.segments if counts else ():
            for chunk in segment.batches():
                batches += chunk.batches
                records += chunk.records
    return found, batches, records
