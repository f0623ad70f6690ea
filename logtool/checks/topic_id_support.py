"""Detection of log dirs whose brokers keep a topic id in every partition.

With KRaft a broker writes ``partition.metadata`` before the first record of a partition. With
ZooKeeper, brokers before 2.8 never wrote it, and later ones write it when the controller has sent
them the id; none of them needs it (``Log``, ``Partition`` of Kafka 2.8; ``LogManager`` of 3.9).
"""

from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import meta_properties
from logtool.formats.meta_properties import MetaProperties
from logtool.formats.names import CLUSTER_METADATA, FileKind
from logtool.log.dir import LogDir


def needs_topic_ids(home: LogDir, meta: MetaProperties | None) -> bool:
    """Return whether each partition of a log dir must have a ``partition.metadata``.

    Without meta.properties (`meta` None) the result is True if any partition has one.
    """
    if any(directory.topic == CLUSTER_METADATA for _, directory in home.partitions):
        return True
    if meta is not None:
        return not _is_of_zookeeper(meta)
    return any(_holds_topic_id(path) for path, _ in home.partitions)


def needs_topic_id(partition: Path) -> bool:
    """Return whether a partition dir needs a ``partition.metadata``, by the log dir around it."""
    home = partition.absolute().parent if not files.is_remote(partition) else partition.parent
    try:
        names = {entry.name for entry in files.list_dir(home)}
        if FileKind.META_PROPERTIES.value not in names or f"{CLUSTER_METADATA}-0" in names:
            return True
        data = files.read_small(home / FileKind.META_PROPERTIES.value)
    except UnreadableError:
        return True
    return not _is_of_zookeeper(meta_properties.parse(data))


def _is_of_zookeeper(meta: MetaProperties) -> bool:
    """Return whether only a broker with ZooKeeper can have written the file last.

    KRaft writes version 1, but a log dir keeps version 0 when its cluster moves from ZooKeeper to
    KRaft. From 3.7 on such a log dir has a directory id, and only these releases treat a partition
    without a topic id as stray.
    """
    return meta.version == 0 and meta.directory_id is None and "node.id" not in meta.properties


def _holds_topic_id(partition: Path) -> bool:
    try:
        entries = files.list_dir(partition)
    except UnreadableError:
        return False
    return any(entry.name == FileKind.PARTITION_METADATA.value for entry in entries)
