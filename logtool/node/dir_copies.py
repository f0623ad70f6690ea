"""Log dirs that are copies of one log dir, made at different times: a log dir and its backup."""

from collections.abc import Iterable
from pathlib import Path

from logtool.errors import UnreadableError
from logtool.formats.names import CLUSTER_METADATA, DirectoryKind, TopicPartition
from logtool.log import opening
from logtool.node.identity import LogDirIdentity, identify


def identity_of(path: Path) -> LogDirIdentity | None:
    """Return the identity of a log dir of Kafka; None for any other path."""
    try:
        root = opening.open_log_dir(path)
    except UnreadableError:
        return None
    return identify(root) if root.flavour.has_checkpoints else None


def are_copies(one: LogDirIdentity, other: LogDirIdentity) -> bool:
    """Return whether two log dirs are copies of one log dir.

    They have the same directory id, or the same node and cluster. And they share most partitions:
    the log dirs of one broker share none, even where meta.properties was copied by mistake. Log
    dirs with different ids must both have a metadata log, of which a node has only one.
    """
    ids = [log_dir.meta.directory_id if log_dir.meta else None for log_dir in (one, other)]
    has_same_id = ids[0] is not None and ids[0] == ids[1]
    if not has_same_id and not _are_of_one_node(one, other):
        return False
    mine, others = _live(one), _live(other)
    shared = mine & others
    have_logs = one.has_metadata_log and other.has_metadata_log
    have_other_ids = None not in ids and not has_same_id
    if 2 * len(shared) > min(len(mine), len(others)):
        return has_same_id or have_logs or (len(shared) > 1 and not have_other_ids)
    return have_logs and not (mine and others) and not have_other_ids


def apart(paths: Iterable[Path]) -> list[list[Path]]:
    """Return log dirs of one node in groups, so that no group has two copies of one log dir.

    Those in one directory belong together.
    """
    groups: list[list[tuple[Path, LogDirIdentity | None]]] = []
    given = list(paths)
    for path in given:
        found = identity_of(path) if len(given) > 1 else None
        free = [
            group
            for group in groups
            if not any(found and other and are_copies(found, other) for _, other in group)
        ]
        if not free:
            groups.append([(path, found)])
            continue
        near = (one for one in free if any(it.parent == path.parent for it, _ in one))
        next(near, free[0]).append((path, found))
    return [[path for path, _ in group] for group in groups]


def _are_of_one_node(one: LogDirIdentity, other: LogDirIdentity) -> bool:
    if not one.meta or not other.meta or None in (one.meta.node_id, one.meta.cluster_id):
        return False
    here, there = ((meta.node_id, meta.cluster_id) for meta in (one.meta, other.meta))
    return here == there


def _live(log_dir: LogDirIdentity) -> frozenset[TopicPartition]:
    return frozenset(
        (directory.topic, directory.partition)
        for _, directory in log_dir.root.partitions
        if directory.kind is DirectoryKind.LIVE and directory.topic != CLUSTER_METADATA
    )
