"""Log dirs whose meta.properties does not identify them, by the partitions that they hold.

The metadata log gives each replica to a log dir by its directory.id. If the partitions in a log dir
are exactly those of one directory.id that no other log dir has, it is that one.
Source: ``DirectoryId``, ``ReplicationControlManager.isAcceptableLeader`` (Kafka 4.3).
"""

from collections.abc import Collection, Iterable

from logtool.formats.messages.cluster_metadata import PartitionRecord
from logtool.formats.names import CLUSTER_METADATA, DirectoryKind
from logtool.metadata.image import MetadataImage
from logtool.node.identity import LogDirIdentity, topic_id_of
from logtool.node.node import NO_LOG_DIRS

Place = tuple[int, str]
"""Node and directory id."""


def absent(known: Collection[str | None], image: MetadataImage) -> list[Place]:
    """Return the log dirs of all brokers in an image whose directory ids are not `known`."""
    return [
        (node, directory_id)
        for node in sorted(image.brokers)
        for directory_id in sorted(image.log_dirs(node) - NO_LOG_DIRS - {*known})
    ]


def place_of(one: LogDirIdentity, places: Iterable[Place], image: MetadataImage) -> Place | None:
    """Return the one of the places whose partitions are exactly those in a log dir.

    None without such a place, or with several. The places of other nodes do not count if its node
    is known.
    """
    content = _live(one)
    wanted = [it for it in places if one.node_id in (None, it[0])]
    known = _known(image) if content and wanted else {}
    found = [it for it in wanted if known.get(it) == content]
    return found[0] if content and len(found) == 1 else None


def lines(place: Place, cluster_id: str | None) -> tuple[str, ...]:
    """Return the lines of the meta.properties of a log dir."""
    of_cluster = (f"cluster.id={cluster_id}",) if cluster_id else ()
    return ("version=1", *of_cluster, f"node.id={place[0]}", f"directory.id={place[1]}")


def assigned_to(state: PartitionRecord, node: int) -> str | None:
    """Return the directory id that a replica is assigned to; None if it is not known."""
    if len(state.directories) != len(state.replicas):
        return None
    assigned = state.directories[state.replicas.index(node)]
    return None if assigned in NO_LOG_DIRS else assigned


def _known(image: MetadataImage) -> dict[Place, set[tuple[str, int]]]:
    """Return topic ids and numbers of the partitions that the image gives to each log dir."""
    found: dict[Place, set[tuple[str, int]]] = {}
    for topic_id, of_topic in image.partitions.items():
        for number, state in of_topic.items():
            for node in state.replicas:
                if assigned := assigned_to(state, node):
                    found.setdefault((node, assigned), set()).add((topic_id, number))
    return found


def _live(one: LogDirIdentity) -> set[tuple[str, int]]:
    """Return topic ids and numbers of the partitions in a log dir; empty if one is not known."""
    found = set()
    for path, directory in one.root.partitions:
        if directory.topic == CLUSTER_METADATA or directory.kind is not DirectoryKind.LIVE:
            continue
        topic_id = topic_id_of(path)
        if topic_id is None:
            return set()
        found.add((topic_id, directory.partition))
    return found
