"""Volumes whose meta.properties does not name their node: those that lost it, and empty ones.

The metadata log gives each replica to a log dir by its directory.id. If the partitions of a volume
are exactly those of one directory.id that no other volume has, the volume is that log dir, and its
meta.properties can be written again. It has to be there at the first start: a broker gives a log
dir without directory.id a new one, and the controller then counts its replicas as offline. An empty
directory is a new disk: a broker starts on it once it is formatted, with empty logs.
Source: ``MetaPropertiesEnsemble``, ``ReplicationControlManager.isAcceptableLeader`` (Kafka 4.3).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from logtool.cluster.partitions import PartitionOutlook
from logtool.cluster.volumes import GivenVolume, Volume
from logtool.dirs import unnamed
from logtool.formats import meta_properties
from logtool.formats.messages.cluster_metadata import PartitionRecord
from logtool.formats.names import DirectoryKind, TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.metadata.image import MetadataImage

_TWICE = (
    "has exactly the partitions of a log dir that no other volume is, and so has another volume "
    "here: they are copies of one log dir; compare them with 'logtool diff', and give one"
)
_UNIDENTIFIED = "is an unidentified volume, of which no node is known: give it as ID=DIR"


def named(
    given: Sequence[GivenVolume], image: MetadataImage | None, voters: Iterable[int]
) -> list[GivenVolume]:
    """Return the volumes, with the nodes of those that name none, as far as the image shows them.

    A volume whose node is not known takes no part in the start.
    """
    if image is None or image.damage:
        return [*given]
    cluster_id = _cluster_id(given)
    metas = [one.identity.meta for one in given]
    absent = unnamed.absent([meta.directory_id for meta in metas if meta], image)
    found: list[GivenVolume] = []
    wanted = Counter(
        unnamed.place_of(one.identity, absent, image) for one in given if _is_nameless(one)
    )
    for one in given:
        if not _is_nameless(one):
            found.append(one)
            continue
        place = unnamed.place_of(one.identity, absent, image)
        if place and wanted[place] > 1:
            found.append(replace(one, others=("unidentified", _TWICE)))
        elif place and not _has_log_twice(one, place[0], given):
            absent.remove(place)
            found.append(_restored(one, place, cluster_id))
        elif one.identity.node_id is None:
            found.append(replace(one, others=("unidentified", _UNIDENTIFIED)))
        else:
            found.append(one)
    having = {one.identity.node_id for one in found if one.identity.has_metadata_log}
    lacking = {node for node, _ in absent} | ({*voters} - having)
    alone = lacking.pop() if len(lacking) == 1 else None
    return [
        _formatted(one, alone, cluster_id, number, image) if one.is_empty else one
        for number, one in enumerate(found)
    ]


def _is_nameless(one: GivenVolume) -> bool:
    """Return whether the meta.properties of a volume does not identify it."""
    meta = one.identity.meta
    is_known = meta is not None and meta.node_id is not None and bool(meta.directory_id)
    return not (one.others or one.is_empty or is_known)


def _cluster_id(given: Sequence[GivenVolume]) -> str | None:
    metas = (one.identity.meta for one in given if not one.others)
    return next((meta.cluster_id for meta in metas if meta and meta.cluster_id), None)


def _has_log_twice(one: GivenVolume, node: int, given: Sequence[GivenVolume]) -> bool:
    """Return whether another volume of the node has a metadata log too."""
    others = [it.identity for it in given if it is not one and it.identity.node_id == node]
    return one.identity.has_metadata_log and any(it.has_metadata_log for it in others)


def _restored(one: GivenVolume, place: unnamed.Place, cluster_id: str | None) -> GivenVolume:
    """Return a volume with the meta.properties that it should have."""
    lines = unnamed.lines(place, cluster_id)
    meta = meta_properties.parse("".join(f"{line}\n" for line in lines).encode())
    return replace(one, identity=replace(one.identity, meta=meta, wrong=()), restored=lines)


def _formatted(
    one: GivenVolume, alone: int | None, cluster_id: str | None, number: int, image: MetadataImage
) -> GivenVolume:
    """Return an empty volume as it is once it is formatted, for the only node that lacks one.

    The directory of a controller alone takes no part: its node starts last.
    """
    node = alone if one.given_node is None else one.given_node
    if node is None:
        return replace(one, others=("unidentified", f"is empty, and {_UNIDENTIFIED[3:]}"))
    lines = unnamed.lines((node, f"new{number:019}"), cluster_id)
    meta = meta_properties.parse("".join(f"{line}\n" for line in lines).encode())
    found = replace(one, identity=replace(one.identity, meta=meta, given_node=node))
    return found if node in image.brokers else replace(found, others=("empty", "is empty"))


@dataclass(frozen=True, slots=True)
class Unseen:
    """The partitions of volumes that are absent or not identified."""

    unidentified: frozenset[TopicPartition]
    absent: frozenset[tuple[int | None, str | None]]
    """Nodes with their directory ids; None for the id: all of the node."""

    @classmethod
    def of(cls, given: Sequence[GivenVolume], volumes: Sequence[Volume]) -> "Unseen":
        """Return those of a run; `volumes` are as reported."""
        return cls(
            unidentified=frozenset(
                (directory.topic, directory.partition)
                for one in given
                if one.others and one.others[0] == "unidentified"
                for _, directory in one.identity.root.partitions
                if directory.kind is DirectoryKind.LIVE
            ),
            absent=frozenset(
                (one.node, one.directory_id) for one in volumes if one.status == "absent"
            ),
        )

    def marked(self, one: PartitionOutlook, image: MetadataImage | None) -> PartitionOutlook:
        """Return a partition with the mark that such a volume may hold a longer copy of it."""
        state = image.partition(one.topic_id, one.partition) if image and one.topic_id else None
        is_longer = (one.topic, one.partition) in self.unidentified
        is_longer |= state is not None and any(self._is_absent(state, node) for node in one.missing)
        return replace(one, may_be_longer=is_longer) if is_longer else one

    def _is_absent(self, state: PartitionRecord, node: int) -> bool:
        assigned = unnamed.assigned_to(state, node) if node in state.replicas else None
        ids = [directory_id for number, directory_id in self.absent if number == node]
        return bool(ids) and (assigned is None or None in ids or assigned in ids)
