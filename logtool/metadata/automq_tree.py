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

import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import cast

from logtool.disk import files
from logtool.disk.assembled import AssembledFile, AssembledPath, AssembledTree, Entries
from logtool.errors import UnreadableError
from logtool.formats import leader_epoch_checkpoint, offset_checkpoint, partition_metadata, wording
from logtool.formats.names import (
    CLUSTER_METADATA,
    DirectoryKind,
    FileKind,
    PartitionDirectory,
)
from logtool.log.automq_bucket import Bucket, Extents, ExtentSource, open_all, open_bucket
from logtool.log.buckets import is_bucket
from logtool.log.file import size_of
from logtool.log.inputs import GivenPaths
from logtool.log.selection import Selection
from logtool.metadata import image as metadata_image
from logtool.metadata.automq_partitions import AutomqCluster, StreamPartition
from logtool.metadata.state import MetadataImage

_META_LOG = f"{CLUSTER_METADATA}-0"
_MOST_OPENED = 4
"""Trees that a process keeps open."""
_OPENED: dict[str, "PartitionTree"] = {}
"""Trees that came from another process or went to one, by their tokens, the last one used last."""


class PartitionTree(AssembledTree):
    """The log dir of a cluster; partitions are read when they are listed.

    `bucket` is the bucket or the prefix, `meta` the log dir of the metadata log or the directory of
    that log, and `cluster_id` the cluster in the bucket. A process that receives the tree several
    times, such as an executor of Spark, opens it once.
    """

    flavour = "automq"

    def __init__(self, bucket: Path, meta: Path, cluster_id: str) -> None:
        self._bucket, self._meta, self._cluster_id = bucket, meta, cluster_id
        self.places = bucket, meta
        self._token = secrets.token_hex(8)
        self._partitions: dict[str, tuple[StreamPartition, Entries]] = {}
        self._problems: dict[str, Sequence[UnreadableError]] = {}
        """Problems of each directory that was listed."""

    def __reduce__(self) -> tuple[object, tuple[str, Path, Path, str]]:
        _keep(self._token, self)
        return _opened, (self._token, self._bucket, self._meta, self._cluster_id)

    @cached_property
    def cluster(self) -> AutomqCluster:
        """Return the cluster; its objects are listed at the first call."""
        image = metadata_image.read_any(self._meta)
        return AutomqCluster(image, open_bucket(self._bucket, self._cluster_id))

    @cached_property
    def keys(self) -> dict[str, tuple[str, int]]:
        """Topic id and number of each partition by the name of its directory, in their order."""
        image = self.cluster.image
        known = [(image.names.get(key[0], key[0]), key) for key in image.streams.meta_streams]
        ordered = sorted(known, key=lambda one: (one[0], one[1][1]))
        return {f"{topic}-{key[1]}": key for topic, key in ordered}

    def chosen(self, selection: Selection) -> list[str]:
        """Return the names of the partition dirs that a selection takes, in their order."""

        def is_taken(name: str) -> bool:
            key = name.rpartition("-")[0], self.keys[name][1]
            directory = PartitionDirectory("", DirectoryKind.LIVE, *key, None, exact=True)
            return selection.takes(directory)

        return list(filter(is_taken, self.keys))

    def partition(self, name: str) -> StreamPartition:
        """Return a partition by the name of its directory; KeyError."""
        return self._read(name)[0]

    def _read(self, name: str) -> tuple[StreamPartition, Entries]:
        if name not in self._partitions:
            found = self.cluster.partition(*self.keys[name])
            self._partitions[name] = found, _files(found)
        return self._partitions[name]

    def entries(self, folder: str) -> Entries:
        """Return the files of the log dir, of a partition or of the metadata log."""
        if not folder:
            return self._top
        if folder == _META_LOG:
            return self._metadata_log
        if folder in self.keys:
            entries = self._read(folder)[1]
            if folder not in self._problems:
                self._problems[folder] = list(self._problems_of(folder))
            return entries
        raise FileNotFoundError

    def problems(self) -> Iterator[UnreadableError]:
        """Yield, once for each, why offsets are missing in the partitions that were listed."""
        if image_damage := self.cluster.image.damage:
            yield UnreadableError(self._meta, image_damage)
        seen = set()
        for name in sorted(self._problems):
            for problem in self._problems[name]:
                if (problem.path, problem.reason) not in seen:
                    seen.add((problem.path, problem.reason))
                    yield problem

    def problems_of(self, folder: str) -> Sequence[UnreadableError]:
        """Return the problems of a directory that was listed."""
        return self._problems.get(folder, ())

    def note(self, folder: str, problems: Sequence[UnreadableError]) -> None:
        """Take the problems of a directory that another process listed."""
        self._problems[folder] = problems

    def _problems_of(self, name: str) -> Iterator[UnreadableError]:
        place = cast(Path, AssembledPath(self, str(self._bucket), name))
        for fault in self.partition(name).faults:
            text = fault.text
            if fault.first_offset is not None and fault.end_offset is not None:
                span = wording.offsets(fault.first_offset, fault.end_offset - 1)
                text = f"{text}: {span} of a stream of {name}"
            yield UnreadableError(fault.path or place, text)

    @cached_property
    def _top(self) -> Entries:
        # Only meta streams are read here: a partition is read when its own directory is listed.
        own = {name: self.cluster.entries(*key).meta for name, key in self.keys.items()}
        found: dict[str, AssembledFile | None] = dict.fromkeys([*own, _META_LOG])
        for kind, column in (
            (FileKind.LOG_START_CHECKPOINT, "start_offset"),
            (FileKind.RECOVERY_POINT_CHECKPOINT, "recovery_point"),
        ):
            offsets = {
                (name.rpartition("-")[0], self.keys[name][1]): getattr(one, column)
                for name, one in own.items()
            }
            content = offset_checkpoint.encode(offset_checkpoint.build(offsets))
            found[kind.value] = AssembledFile(content, len(content))
        if all(one.clean_shutdown for one in own.values()):
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


def _keep(token: str, tree: PartitionTree) -> PartitionTree:
    """Keep a tree open in this process, in place of the one that was used least recently."""
    _OPENED.pop(token, None)
    _OPENED[token] = tree
    while len(_OPENED) > _MOST_OPENED:
        _OPENED.pop(next(iter(_OPENED)))
    return tree


def _opened(token: str, bucket: Path, meta: Path, cluster_id: str) -> PartitionTree:
    """Return the tree that another process sent."""
    tree = _OPENED.get(token)
    if tree is None:
        tree = PartitionTree(bucket, meta, cluster_id)
        tree._token = token
    return _keep(token, tree)


def tree_of(bucket: Bucket, meta: Path, image: MetadataImage) -> PartitionTree:
    """Return the log dir of a bucket that was listed, and of a metadata log that was read."""
    tree = PartitionTree(bucket.path, meta, bucket.cluster_id)
    tree.cluster = AutomqCluster(image, bucket)
    return tree


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
                    tree = tree_of(bucket, meta, images[meta])
                    paths[paths.index(path)] = cast(Path, AssembledPath(tree, str(path)))
                    paths.remove(meta)
    return replace(given, paths=paths)


def trees(given: GivenPaths) -> Iterator[PartitionTree]:
    """Yield the log dir of each bucket among joined paths."""
    for path in given.paths:
        tree: object = getattr(path, "tree", None)
        if isinstance(tree, PartitionTree):
            yield tree


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
