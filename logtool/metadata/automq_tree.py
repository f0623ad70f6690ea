"""A bucket of AutoMQ and the metadata log of its cluster as the log dir that Kafka would have.

======================================  ============================================================
``TOPIC-N/BASE.log``                    batches of a segment: the payloads of its log stream
``TOPIC-N/BASE.timeindex``              bytes of its time stream
``TOPIC-N/BASE.txnindex``               bytes of its transaction stream
``TOPIC-N/OFFSET.snapshot``             producer snapshots, as the meta stream holds them
``TOPIC-N/leader-epoch-checkpoint``     leader epochs in the meta stream
``TOPIC-N/partition.metadata``          the topic id
``log-start-offset-checkpoint``         the log start offset of each partition in the meta streams
``recovery-point-offset-checkpoint``    the recovery point of each partition there
``.kafka_cleanshutdown``                there if every partition was closed in order
``meta.properties``                     the file in the log dir of the metadata log
``__cluster_metadata-0/``               the metadata log
======================================  ============================================================

The partitions are as AutoMQ finds them after the recovery of the WAL: see
`logtool.metadata.automq_partitions`. Kafka's offset index has no counterpart.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import cast

from logtool.disk import files
from logtool.disk.assembled import AssembledFile, AssembledPath, AssembledTree, Entries
from logtool.errors import UnreadableError
from logtool.formats import leader_epoch_checkpoint, offset_checkpoint, partition_metadata, wording
from logtool.formats.names import CLUSTER_METADATA, FileKind
from logtool.log.automq_bucket import Extents, ExtentSource, open_all, open_bucket
from logtool.log.file import size_of
from logtool.log.inputs import GivenPaths, is_bucket
from logtool.metadata import image as metadata_image
from logtool.metadata.automq_partitions import AutomqCluster, StreamPartition

_META_LOG = f"{CLUSTER_METADATA}-0"


class PartitionTree(AssembledTree):
    """The log dir of a cluster; partitions are read when they are listed.

    `bucket` is the bucket or the prefix, `meta` the log dir of the metadata log or the directory of
    that log, and `cluster_id` the cluster in the bucket.
    """

    def __init__(self, bucket: Path, meta: Path, cluster_id: str) -> None:
        self._bucket, self._meta, self._cluster_id = bucket, meta, cluster_id
        self._partitions: dict[str, StreamPartition] = {}
        self._listed: set[str] = set()
        """Directories of partitions that were listed."""

    def __reduce__(self) -> tuple[type, tuple[Path, Path, str]]:
        return PartitionTree, (self._bucket, self._meta, self._cluster_id)

    @property
    def places(self) -> tuple[Path, Path]:
        """Return the bucket, and the log dir of the metadata log."""
        return self._bucket, self._meta

    @cached_property
    def cluster(self) -> AutomqCluster:
        """Return the cluster; its objects are listed at the first call."""
        image = metadata_image.read_any(self._meta)
        return AutomqCluster(image, open_bucket(self._bucket, self._cluster_id))

    @cached_property
    def _ids(self) -> dict[str, tuple[str, int]]:
        """Topic id and number of each partition, by the name of its directory."""
        image = self.cluster.image
        return {
            f"{image.names.get(topic_id, topic_id)}-{number}": (topic_id, number)
            for topic_id, number in image.streams.meta_streams
        }

    def partition(self, name: str) -> StreamPartition:
        """Return a partition by the name of its directory; KeyError."""
        if name not in self._partitions:
            self._partitions[name] = self.cluster.partition(*self._ids[name])
        return self._partitions[name]

    def entries(self, folder: str) -> Entries:
        """Return the files of the log dir, of a partition or of the metadata log."""
        if not folder:
            return self._top
        if folder == _META_LOG:
            return self._metadata_log
        if folder in self._ids:
            self._listed.add(folder)
            return _files(self.partition(folder))
        raise FileNotFoundError

    def problems(self) -> Iterator[UnreadableError]:
        """Yield, once for each, why offsets are missing in the partitions that were listed."""
        if image_damage := self.cluster.image.damage:
            yield UnreadableError(self._meta, image_damage)
        seen = set()
        for name in sorted(self._listed):
            partition = self.partition(name)
            place = cast(Path, AssembledPath(self, str(self._bucket), name))
            for fault in partition.faults:
                text, path = fault.text, fault.path or place
                if fault.first_offset is not None and fault.end_offset is not None:
                    span = wording.offsets(fault.first_offset, fault.end_offset - 1)
                    text = f"{text}: {span} of a stream of {name}"
                if (path, text) not in seen:
                    seen.add((path, text))
                    yield UnreadableError(path, text)

    @cached_property
    def _top(self) -> Entries:
        partitions = {name: self.partition(name) for name in sorted(self._ids)}
        found: dict[str, AssembledFile | None] = dict.fromkeys([*partitions, _META_LOG])
        for kind, column in (
            (FileKind.LOG_START_CHECKPOINT, "start_offset"),
            (FileKind.RECOVERY_POINT_CHECKPOINT, "recovery_point"),
        ):
            offsets = {
                (one.topic, one.number): getattr(one.meta, column) for one in partitions.values()
            }
            content = offset_checkpoint.encode(offset_checkpoint.build(offsets))
            found[kind.value] = AssembledFile(content, len(content))
        if all(one.meta.clean_shutdown for one in partitions.values()):
            found[FileKind.CLEAN_SHUTDOWN.value] = AssembledFile(b"", 0)
        if self._log_dir:
            name = FileKind.META_PROPERTIES.value
            for entry in files.list_dir(self._log_dir):
                if entry.name == name:
                    found[name] = AssembledFile(self._log_dir / name, size_of(entry))
        return found

    @cached_property
    def _log_dir(self) -> Path | None:
        """The log dir with the metadata log; None if only the metadata log was given."""
        return self._meta if files.has_dir(self._meta / metadata_image.DIRECTORY) else None

    @cached_property
    def _metadata_log(self) -> Entries:
        home = self._meta / metadata_image.DIRECTORY if self._log_dir else self._meta
        return {
            entry.name: AssembledFile(home / entry.name, size_of(entry))
            for entry in files.list_dir(home)
            if entry.is_file(follow_symlinks=False)
        }


def join(given: GivenPaths) -> GivenPaths:
    """Return the paths with one in place of each bucket and the metadata log of its cluster.

    A bucket without a metadata log, and any path that cannot be read, stays as it is.
    """
    paths, images = list(given.paths), {}
    for path in paths:
        with suppress(UnreadableError):
            if metadata_image.has_log(path):
                images[path] = metadata_image.read_any(path)
    for path in [one for one in paths if is_bucket(one)]:
        with suppress(UnreadableError):
            for bucket in open_all(path):
                metas = (
                    one for one in images if images[one].streams.has_cluster(bucket.cluster_id)
                )
                meta = next(metas, None)
                if meta in paths:
                    tree = PartitionTree(path, meta, bucket.cluster_id)
                    tree.cluster = AutomqCluster(images[meta], bucket)
                    paths[paths.index(path)] = cast(Path, AssembledPath(tree, str(path)))
                    paths.remove(meta)
    return replace(given, paths=paths)


def clusters(given: GivenPaths) -> Iterator[AutomqCluster]:
    """Yield the cluster of each bucket among joined paths."""
    for path in given.paths:
        tree: object = getattr(path, "tree", None)
        if isinstance(tree, PartitionTree):
            yield tree.cluster


def _files(partition: StreamPartition) -> Entries:
    """Return the files of a partition dir."""
    found: dict[str, AssembledFile | None] = {}

    def put(name: str, content: bytes | Extents, mtime_ms: int = 0) -> None:
        source = content if isinstance(content, bytes) else ExtentSource(content)
        size = len(source) if isinstance(source, bytes) else source.size
        found[name] = AssembledFile(source, size, mtime_ms)

    for segment in partition.segments:
        base, when = f"{segment.base_offset:020d}", segment.mtime_ms
        put(base + FileKind.LOG, segment.content, when)
        put(base + FileKind.TIME_INDEX, segment.time_index, when)
        if len(segment.transaction_index):
            put(base + FileKind.TRANSACTION_INDEX, segment.transaction_index, when)
    for offset, data in partition.snapshots.items():
        put(f"{offset:020d}{FileKind.PRODUCER_SNAPSHOT}", data)
    epochs = leader_epoch_checkpoint.build(partition.leader_epochs)
    put(FileKind.LEADER_EPOCH_CHECKPOINT, leader_epoch_checkpoint.encode(epochs))
    own_id = partition_metadata.build(partition.topic_id)
    put(FileKind.PARTITION_METADATA, partition_metadata.encode(own_id))
    return found
