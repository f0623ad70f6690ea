"""Whose a log dir is: its `meta.properties`, what is wrong with it, and what a start makes of that.

Source: ``MetaPropertiesEnsemble`` (Kafka 3.7 to 4.3), ``BrokerMetadataCheckpoint`` (before 3.7).
"""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from logtool.checks import small_files
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats import partition_metadata
from logtool.formats.meta_properties import MetaProperties
from logtool.formats.names import CLUSTER_METADATA, FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import LogDir, Partition

_READ_VERSIONS = (0, 1)
"""Of meta.properties, by every release up to 4.3."""
_META = FileKind.META_PROPERTIES.value


class Effect(StrEnum):
    """What a start makes of a finding; the words are those of `logtool.actions`."""

    REFUSE = "refuse"
    """The broker does not start."""
    OFFLINE = "offline"
    """It starts, and does without the log dir."""


@dataclass(frozen=True, slots=True)
class Member:
    """One log dir and its identity."""

    root: LogDir
    meta: MetaProperties | None
    """None where there is no such file, where it is a folder, or where it cannot be read."""
    wrong: tuple[Finding, ...] = ()
    """What is wrong with the file by itself."""
    is_folder: bool = False
    unread: UnreadableError | None = None
    """Why the file could not be read: then nothing is known of it, and nothing held against it."""
    told_node: int | None = None
    """Whose it is by the command line, whatever the file says."""

    @property
    def path(self) -> Path:
        """Return the log dir."""
        return self.root.path

    @property
    def has_metadata_log(self) -> bool:
        """Return whether there is a directory for a metadata log, be it empty."""
        return any(directory.topic == CLUSTER_METADATA for _, directory in self.root.partitions)

    @property
    def node(self) -> str | None:
        """Return the id of the broker as it is written."""
        if self.told_node is not None:
            return str(self.told_node)
        return node_of(self.meta) if self.meta else None

    @property
    def node_id(self) -> int | None:
        """Return the id of the broker as a number; None where it is none."""
        if self.told_node is not None:
            return self.told_node
        return self.meta.node_id if self.meta else None


def member(root: LogDir) -> Member:
    """Read the identity of a log dir, as far as that is possible."""
    file = root.files.get(FileKind.META_PROPERTIES)
    if file is None:
        is_folder = any(path.name == _META for path, _ in root.bad_directories)
        return Member(root, None, is_folder=is_folder)
    try:
        value, findings = small_files.check_file(file)
    except UnreadableError as error:
        return Member(root, None, unread=error)
    return Member(root=root, meta=value, wrong=tuple(findings))


def node_of(meta: MetaProperties) -> str | None:
    """Return the id of the broker that the log dir belongs to, as it is written."""
    return meta.properties.get("node.id", meta.properties.get("broker.id"))


def topic_id_of(path: Path) -> str | None:
    """Return what partition.metadata of a partition dir says; None where it cannot be read."""
    try:
        return _topic_id(path / FileKind.PARTITION_METADATA.value)
    except UnreadableError:
        return None


def listed_topic_id(listed: Partition) -> str | None:
    """Return what partition.metadata says; None where there is none; else UnreadableError."""
    file = listed.fixed.get(FileKind.PARTITION_METADATA)
    return _topic_id(file.path) if file else None


def _topic_id(path: Path) -> str | None:
    return partition_metadata.parse(files.read_small(path)).topic_id


def faults(member: Member, *, has_ids: bool, is_kraft: bool) -> list[tuple[Finding, Effect]]:
    """Return what makes a file unreadable, and what that does to one log dir of several.

    `has_ids` says that the release reads directory ids, `is_kraft` that the broker keeps a
    metadata log.
    """
    path = member.path / _META
    if member.is_folder:
        text = "is a folder, and not a file"
        return [(Finding("meta-properties/malformed", text, path=path), Effect.OFFLINE)]
    meta = member.meta
    if meta is None:
        return []
    unread = Effect.OFFLINE if has_ids else Effect.REFUSE
    faults = []
    for finding in member.wrong:
        of_directory_id = _key_at(meta, finding) == "directory.id"
        if of_directory_id and not has_ids:
            continue
        is_reserved = finding.code == "meta-properties/reserved-directory-id"
        faults.append((finding, Effect.REFUSE if is_reserved else unread))
    if not faults and meta.version is not None and meta.version not in _READ_VERSIONS:
        text = f"expected version 0 or 1, found {meta.version}"
        faults.append((Finding("meta-properties/version", text, path=path), unread))
    if not faults and meta.version == 0 and is_kraft:
        missing = [
            key
            for key, value in (("broker.id", meta.node_id), ("cluster.id", meta.cluster_id))
            if value is None
        ]
        if missing:
            text = f"expected {' and '.join(missing)} in a file of version 0, found none"
            finding = Finding("meta-properties/missing-key", text, path=path)
            faults.append((finding, Effect.REFUSE))
        elif not has_ids:
            text = "expected version 1, found 0"
            faults.append((Finding("meta-properties/version", text, path=path), Effect.REFUSE))
    return faults


def differences(
    right: MetaProperties, meta: MetaProperties, *, all_keys: bool
) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield the keys whose values must be the same and are not, with both.

    Before 3.7 these are `all_keys`; since then the cluster's and the node's ids.
    """
    if all_keys:
        first, second = right.properties, meta.properties
        for key in sorted({*first, *second}):
            if first.get(key) != second.get(key):
                yield key, second.get(key), first.get(key)
        return
    for key, wanted, value in (
        ("cluster.id", right.cluster_id, meta.cluster_id),
        ("node.id", right.node_id, meta.node_id),
    ):
        if wanted is not None and value is not None and wanted != value:
            yield key, str(value), str(wanted)


def _key_at(meta: MetaProperties, finding: Finding) -> str | None:
    return next(
        (element.key for element in meta.elements if element.line.position == finding.position),
        None,
    )
