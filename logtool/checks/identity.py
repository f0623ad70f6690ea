"""Rules for the ``meta.properties`` of the log dirs of one node, and their effect on its start.

Source: ``MetaPropertiesEnsemble`` (Kafka 3.7 to 4.3), ``BrokerMetadataCheckpoint`` (before 3.7).
"""

from collections.abc import Iterator
from enum import StrEnum

from logtool.findings import Finding
from logtool.formats.meta_properties import MetaProperties
from logtool.formats.names import FileKind
from logtool.node.identity import LogDirIdentity

_READ_VERSIONS = (0, 1)
"""Versions of meta.properties that every release up to 4.3 reads."""
_META = FileKind.META_PROPERTIES.value


class Effect(StrEnum):
    """The effect of a finding on a start; the words are those of `logtool.actions`."""

    REFUSE = "refuse"
    """The broker does not start."""
    OFFLINE = "offline"
    """The broker starts without the log dir."""
    LOST = "lost"
    """Something is absent, and what it held is lost."""
    ABSENT = "absent"
    """Something is absent, and the broker gets it from another node, or begins it empty."""
    LEADERLESS = "leaderless"
    """The broker starts, and some of its replicas lead nothing until the start after the next."""
    IGNORE = "ignore"
    """The broker starts, and something of it does not work."""
    UNKNOWN = "unknown"
    """The behaviour of the broker is not known."""


def faults(
    log_dir: LogDirIdentity, *, has_ids: bool, is_kraft: bool
) -> list[tuple[Finding, Effect]]:
    """Return the faults of a file, each with its effect if the broker has several log dirs.

    `has_ids` says that the release reads directory ids, `is_kraft` that the broker keeps a
    metadata log.
    """
    path = log_dir.path / _META
    if log_dir.is_folder:
        text = "is a directory, not a file"
        return [(Finding("meta-properties/malformed", text, path=path), Effect.OFFLINE)]
    meta = log_dir.meta
    if meta is None:
        return []
    unread = Effect.OFFLINE if has_ids else Effect.REFUSE
    faults = []
    for finding in log_dir.wrong:
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
    """Yield (key, value in `meta`, value in `right`) for each key whose values must not differ.

    Before 3.7 all keys must be the same (`all_keys`); since 3.7 the cluster id and the node id.
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
