"""The identity of a log dir: the node and the cluster it belongs to, by ``meta.properties``.

Source: ``MetaPropertiesEnsemble`` (Kafka 3.7 to 4.3), ``BrokerMetadataCheckpoint`` (before 3.7).
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError, UsageError
from logtool.findings import Finding
from logtool.formats import clean_shutdown, meta_properties, partition_metadata
from logtool.formats.meta_properties import MetaProperties
from logtool.formats.names import CLUSTER_METADATA, FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log import opening, small_files
from logtool.log.dir import LogDir, Partition

_META = FileKind.META_PROPERTIES.value


@dataclass(frozen=True, slots=True)
class LogDirIdentity:
    """One log dir and its identity."""

    root: LogDir
    meta: MetaProperties | None
    """None where there is no such file, where it is a folder, or where it cannot be read."""
    wrong: tuple[Finding, ...] = ()
    """The findings of the file by itself."""
    is_folder: bool = False
    unread: UnreadableError | None = None
    """The error where the file could not be read; then no rule applies to it."""
    given_node: int | None = None
    """The node id from the command line, which counts before that in the file."""

    @property
    def path(self) -> Path:
        """Return the log dir."""
        return self.root.path

    @property
    def has_metadata_log(self) -> bool:
        """Return whether the log dir has a directory for a metadata log, even an empty one."""
        return any(directory.topic == CLUSTER_METADATA for _, directory in self.root.partitions)

    @property
    def has_only_metadata_log(self) -> bool:
        """Return whether the log dir holds the metadata log and no other partition.

        A metadata.log.dir outside of log.dirs is such a log dir; a broker does not register its id.
        """
        return self.has_metadata_log and len(self.root.partitions) == 1

    @property
    def node(self) -> str | None:
        """Return the id of the broker as the file spells it."""
        if self.given_node is not None:
            return str(self.given_node)
        return node_of(self.meta) if self.meta else None

    @property
    def node_id(self) -> int | None:
        """Return the id of the broker as a number; None where it is not a number."""
        if self.given_node is not None:
            return self.given_node
        return self.meta.node_id if self.meta else None


def identify(root: LogDir) -> LogDirIdentity:
    """Read the identity of a log dir, as far as that is possible."""
    file = root.files.get(FileKind.META_PROPERTIES)
    if file is None:
        is_folder = any(path.name == _META for path, _ in root.bad_directories)
        return LogDirIdentity(root, None, is_folder=is_folder)
    try:
        value, findings = small_files.check_file(file)
    except UnreadableError as error:
        return LogDirIdentity(root, None, unread=error)
    return LogDirIdentity(root=root, meta=value, wrong=tuple(findings))


def ids_of(path: Path) -> tuple[int | None, str | None]:
    """Return node id and directory id in meta.properties of a log dir; None where not known."""
    try:
        meta = identify(opening.open_log_dir(path)).meta
    except UnreadableError:
        return None, None
    return (meta.node_id, meta.directory_id) if meta else (None, None)


def node_of(meta: MetaProperties) -> str | None:
    """Return the id of the broker that the log dir belongs to, as the file spells it."""
    return meta.properties.get("node.id", meta.properties.get("broker.id"))


def topic_id_of(path: Path) -> str | None:
    """Return the topic id in partition.metadata of a partition dir; None if it cannot be read."""
    try:
        return _topic_id(path / FileKind.PARTITION_METADATA.value)
    except UnreadableError:
        return None


def listed_topic_id(listed: Partition) -> str | None:
    """Return the topic id in partition.metadata; None without that file.

    Raises UnreadableError where the file cannot be read.
    """
    file = listed.fixed.get(FileKind.PARTITION_METADATA)
    return _topic_id(file.path) if file else None


def _topic_id(path: Path) -> str | None:
    return partition_metadata.parse(files.read_small(path)).topic_id


def cluster_id_of(log_dir: Path) -> str | None:
    """Return the id of the cluster of a log dir; None where meta.properties lacks it or is missing.

    Raises UnreadableError where the file exists and cannot be read.
    """
    try:
        content = files.read_small(log_dir / FileKind.META_PROPERTIES.value)
    except UnreadableError as error:
        if error.missing:
            return None
        raise
    return meta_properties.parse(content).properties.get("cluster.id")


def refuse_several_clusters(paths: Iterable[Path]) -> None:
    """Raise UsageError where paths (log dirs, or files in them) belong to different clusters.

    The contents are joined by names that are unique only within one cluster. A file that does not
    exist or cannot be read is not compared here: `verify` reports it.
    """
    first: tuple[Path, str] | None = None
    for path in paths:
        found = _cluster_id_around(path)
        if found is None:
            continue
        if first is None:
            first = path, found
        elif found != first[1]:
            text = (
                f"{path} belongs to cluster {found}, but {first[0]} belongs to cluster {first[1]}"
            )
            raise UsageError(f"{text}: give paths of only one cluster")


def _cluster_id_around(path: Path) -> str | None:
    """Return the cluster id of a log dir, or of the log dir around a partition dir or a file."""
    for place in (path, *path.resolve().parents[:2]):
        with suppress(UnreadableError):
            if found := cluster_id_of(place):
                return found
    return None


def stopped_epoch(root_dir: LogDir) -> int | None:
    """Return the broker epoch in the marker of a clean stop; None without one."""
    marker = root_dir.files.get(FileKind.CLEAN_SHUTDOWN)
    if marker is None:
        return None
    with suppress(UnreadableError):
        return clean_shutdown.parse(files.read_small(marker.path)).broker_epoch
    return None
