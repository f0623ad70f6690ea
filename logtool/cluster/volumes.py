"""The volumes of a cluster, and the node that each of them belongs to.

``meta.properties`` decides the node of a volume, and not the id that was given with it: a node that
finds the id of another node on its volume does not start. Of two volumes of one node with the same
directory id, or with a metadata log each, only one may start; the one whose metadata log is newer
is taken. A controller refuses a broker with a directory id that another broker has registered.

A broker cuts its metadata log to that of the controllers, but keeps its snapshots, and begins with
the newest one even if no controller has come that far. It then leads and follows by a state that
the controllers do not know. If the metadata log has the voters (KIP-853), it forgets with the cut
those that the snapshot had. Then it finds no controller, unless it registered before the cut, and a
broker ends after initial.broker.registration.timeout.ms. With an empty metadata log it would be no
better: it counts as caught up with the part that it fetched first, and puts partitions of later
topics aside as strays. Of several controllers that may win, each may be the one that lacks a
snapshot.
Source: ``MetaPropertiesEnsemble``, ``ClusterControlManager.registerBroker``, ``KafkaRaftClient``,
``VoterSetHistory.truncateNewEntries``, ``RaftControllerNodeProvider``,
``KafkaMetadataLog.truncateToEndOffset``, ``MetadataLoader.stillNeedToCatchUp`` (Kafka 3.9, 4.3).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path

from logtool.dirs.directories import AuditedDir, audited
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import wording
from logtool.formats.names import DirectoryKind
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.inputs import NodeDir, PathKind
from logtool.log.kafka import KAFKA
from logtool.metadata import releases
from logtool.metadata.image import MetadataImage
from logtool.node.identity import LogDirIdentity, identify
from logtool.node.node import Node
from logtool.quorum.copy import MetadataCopy
from logtool.quorum.voters import Voter

WRONG = frozenset(
    {"other-cluster", "swapped", "doubled", "moved", "absent", "offline", "unidentified", "ahead"}
)
"""States of volumes that a person has to look at before the start."""
_OF_CLUSTER = ("unidentified",)
"""States of volumes that take no part, but whose metadata log may be one of the cluster."""
_LOST_AND_FOUND = "lost+found"
_NO_IMAGE = (-1, -1)
_AHEAD = {
    False: "begins with a state that no controller knows",
    True: "may not find the controllers, and then a broker ends after a minute",
}
"""Behaviour of a node that is ahead, by whether the metadata log has the voters."""


@dataclass(frozen=True, slots=True)
class GivenVolume:
    """One log dir that was given."""

    identity: LogDirIdentity
    given_node: int | None
    """The id on the command line; None without one."""
    image: MetadataImage | None
    """The image of the metadata log in it; None without one that can be read."""
    others: tuple[str, str] | None = None
    """State and detail if the volume takes no part in the start; None if it does."""
    double_of: Path | None = None
    """The volume of the same node that takes part in its place; None if it takes part itself."""
    is_empty: bool = False
    """True for a directory without a file: a new disk, which is not formatted."""
    restored: tuple[str, ...] = ()
    """Lines of the meta.properties that it should have; empty if its own counts."""

    @property
    def age(self) -> tuple[int, int]:
        """Return a key by which the volume with the newest metadata log is the largest."""
        return (self.image.epoch, self.image.offset) if self.image else _NO_IMAGE


@dataclass(frozen=True, slots=True)
class Volume:
    """One volume: a log dir that was given, or one that a node lacks."""

    path: Path | None
    """None if it was not given."""
    given_node: int | None
    node: int | None
    cluster_id: str | None
    directory_id: str | None
    status: str
    """State as in `dirs`, or a state that only several volumes together show."""
    detail: str | None = None
    """Reason of the state; None if the state says all."""
    partitions: int = 0
    clean: bool | None = None
    """True if its node stopped cleanly; None if it was not given."""
    kafka: str | None = None
    """Release with which its node registered last; None if it is not known."""
    metadata_end: int | None = None
    """End of its metadata log; None without one."""
    metadata_epoch: int | None = None
    metadata_ms: int | None = None
    """Time of the last record of its metadata log, by the clock of the controller, in ms; None if
    the log has no time (-1 or 0)."""
    double_of: Path | None = None
    """The volume of the same node that takes part in its place; None for other states."""
    ahead_of: tuple[int, ...] = ()
    """Controllers that may win the election and do not come as far as its newest snapshot."""
    restored: tuple[str, ...] = ()
    """Lines of the meta.properties that it should have; empty if its own counts."""

    @property
    def is_wrong(self) -> bool:
        """Return whether a person has to look at it before the start."""
        return self.status in WRONG


@dataclass(slots=True)
class Volumes:
    """All volumes that were given, and those of them that take part in the start."""

    given: list[GivenVolume] = field(default_factory=list)

    @property
    def taking_part(self) -> list[GivenVolume]:
        """Return the volumes of the cluster, each log dir of a node once."""
        return [one for one in self.given if one.others is None]

    @property
    def with_metadata_log(self) -> list[NodeDir]:
        """Return the volumes of the cluster with a metadata log, also those of an unknown node."""
        return [
            NodeDir(one.identity.path, one.identity.node_id)
            for one in self.given
            if one.identity.has_metadata_log and (one.others or ("unidentified",))[0] in _OF_CLUSTER
        ]

    @property
    def spares(self) -> list[NodeDir]:
        """Return the volumes that take no part, but may hold copies of the cluster.

        Another volume of their node takes part in their place, or their node is not known.
        """
        return [
            NodeDir(one.identity.path, one.identity.node_id)
            for one in self.given
            if one.double_of is not None or (one.others and one.others[0] in _OF_CLUSTER)
        ]

    @property
    def deleted(self) -> list[Path]:
        """Return the directories that the brokers delete after the start."""
        return [
            path
            for one in self.taking_part
            for path, directory in one.identity.root.partitions
            if directory.kind is DirectoryKind.DELETE
        ]

    def open(self, places: Iterable[NodeDir]) -> Iterator[UnreadableError]:
        """Open the places; yield errors of those that are no log dirs, or cannot be read."""
        found: list[GivenVolume] = []
        # The same directory twice is one volume.
        once = {files.real(one.path): one for one in reversed([*places])}
        for place in reversed(once.values()):
            try:
                found.append(_opened(place))
            except UnreadableError as error:
                yield error
        self.given = _without_doubles(_of_one_cluster(found))

    def nodes(self, image: MetadataImage | None, kafka: tuple[int, int] | None) -> list[Node]:
        """Return the nodes of the volumes that take part; they start with an image, if given."""
        groups: dict[int | Path, list[LogDirIdentity]] = {}
        for one in self.taking_part:
            node = one.identity.node_id
            key = one.identity.path if node is None else node
            groups.setdefault(key, []).append(one.identity)
        return [Node(group, kafka, fetched=image) for group in groups.values()]

    def report(
        self,
        nodes: Sequence[Node],
        image: MetadataImage | None,
        voters: Sequence[Voter],
        may_win: Sequence[MetadataCopy] = (),
    ) -> Iterator[Volume]:
        """Yield each volume with its state, then those that nodes lack."""
        states = {
            one.path: one for node in nodes for one in audited(node, image) if one.path is not None
        }
        for one in self.given:
            found = _volume(one, states.get(one.identity.path), image)
            if one.is_empty and one.identity.node_id is not None:
                detail = self._empty(one, nodes, image)
                found = replace(found, status="empty", detail=detail, directory_id=None, clean=None)
            end = one.image.snapshot_offset if one.image else 0
            ahead_of = [it.node for it in may_win if it.log_end < end and it.node is not None]
            yield found if one.others else replace(found, ahead_of=tuple(ahead_of))
        here = {node.node_id for node in nodes}
        here |= {one.identity.node_id for one in self.given if one.is_empty}
        for node in nodes:
            for absent in self._lost(node, image):
                if not self._is_replaced(node, image):
                    yield _absent(absent.node, absent.directory_id, absent.partitions)
        if image is None or image.damage:
            return
        for number in sorted({*image.brokers, *(one.node for one in voters)} - here):
            ids: list[str | None] = [*image.broker_log_dirs(number)]
            ids = ids or [one.directory_id for one in voters if one.node == number]
            count = sum(
                number in state.replicas
                for of_topic in image.partitions.values()
                for state in of_topic.values()
            )
            for directory_id in ids or [None]:
                yield _absent(number, directory_id, count)

    def _lost(self, node: Node, image: MetadataImage | None) -> list[AuditedDir]:
        """Return the log dirs that a node lacks."""
        return [one for one in audited(node, image) if one.path is None]

    def _is_replaced(self, node: Node, image: MetadataImage | None) -> bool:
        """Return whether there is a new disk for each log dir that a node lacks."""
        new = [one for one in self.given if one.is_empty and one.identity.node_id == node.node_id]
        return len(new) >= len(self._lost(node, image))

    def _empty(self, one: GivenVolume, nodes: Sequence[Node], image: MetadataImage | None) -> str:
        """Return the text on the disk that an empty volume replaces."""
        number = one.identity.node_id
        parts = ["is empty"]
        for node in nodes:
            if node.node_id == number and self._is_replaced(node, image):
                parts += [
                    f"directory id {it.directory_id} is taken to be lost, with "
                    f"{wording.count(it.partitions, 'replica')}"
                    for it in self._lost(node, image)
                ]
        voters = [it["voterId"] for it in (image and image.voters) or ()]
        has_log = any(
            it.identity.has_metadata_log and it.identity.node_id == number for it in self.given
        )
        if number in voters and not has_log:
            parts.append(f"node {number}, which votes, has lost its metadata log")
        return "; ".join(parts)


def is_new_disk(path: Path) -> bool:
    """Return whether a path is a directory without a file; UnreadableError."""
    return files.leads_to_dir(path) and all(
        entry.name == _LOST_AND_FOUND for entry in files.list_dir(path)
    )


def _opened(place: NodeDir) -> GivenVolume:
    is_empty = is_new_disk(place.path)
    if not is_empty and inputs.kind_of(place.path) is not PathKind.LOG_DIR:
        raise UnreadableError(place.path, "expected a log dir: a cluster is judged by whole ones")
    identity = identify(opening.open_log_dir(place.path, KAFKA if is_empty else None))
    if identity.unread:
        raise identity.unread
    if identity.node_id is None and place.node is not None:
        identity = replace(identity, given_node=place.node)
    image = Node([identity], None).image if identity.has_metadata_log else None
    return GivenVolume(identity, place.node, image, is_empty=is_empty)


def _of_one_cluster(found: Sequence[GivenVolume]) -> list[GivenVolume]:
    """Mark the volumes of another cluster than most volumes."""
    ids = Counter(one.identity.meta.cluster_id for one in found if one.identity.meta)
    if len([one for one in ids if one]) < 2:
        return list(found)
    right = max((one for one in ids if one), key=lambda one: ids[one])
    marked = []
    for one in found:
        own = one.identity.meta.cluster_id if one.identity.meta else None
        if own not in (None, right):
            text = f"belongs to cluster {own}; most volumes belong to {right}"
            one = replace(one, others=("other-cluster", text))
        marked.append(one)
    return marked


def _without_doubles(found: Sequence[GivenVolume]) -> list[GivenVolume]:
    """Mark all but the newest of volumes that cannot both be of one node."""
    kept: list[GivenVolume] = []
    doubles: dict[Path, GivenVolume] = {}
    for one in sorted(found, key=lambda one: one.age, reverse=True):
        other = None if one.others else next((it for it in kept if _collide(one, it)), None)
        if other is None:
            kept.append(one)
            continue
        what = "directory id" if _directory_id(one) == _directory_id(other) else "metadata log"
        text = (
            f"has the same node id {one.identity.node_id} and {what} as {other.identity.path}, "
            "whose metadata log is newer or as new: start the node with one of the two"
        )
        doubles[one.identity.path] = replace(
            one, others=("doubled", text), double_of=other.identity.path
        )
    return [doubles.get(one.identity.path, one) for one in found]


def _collide(one: GivenVolume, other: GivenVolume) -> bool:
    if other.others or one.identity.node_id != other.identity.node_id:
        return False
    if one.identity.node_id is None:
        return False
    both = one.identity.has_metadata_log and other.identity.has_metadata_log
    same = _directory_id(one)
    return both or (same is not None and same == _directory_id(other))


def _directory_id(one: GivenVolume) -> str | None:
    return one.identity.meta.directory_id if one.identity.meta else None


def _volume(one: GivenVolume, state: AuditedDir | None, image: MetadataImage | None) -> Volume:
    identity, node = one.identity, one.identity.node_id
    status, detail = one.others or _status(one, state, image)
    shown = Node([identity], None, fetched=image).shown_kafka
    return Volume(
        path=identity.path,
        given_node=one.given_node,
        node=node,
        cluster_id=identity.meta.cluster_id if identity.meta else None,
        directory_id=_directory_id(one),
        status=status,
        detail=detail,
        double_of=one.double_of,
        partitions=state.partitions if state else _partitions(identity),
        clean=identity.root.is_clean,
        kafka=releases.text(shown) if shown else None,
        restored=one.restored,
        metadata_end=one.image.offset if one.image else None,
        metadata_epoch=one.image.epoch if one.image else None,
        metadata_ms=one.image.timestamp_ms if one.image and one.image.timestamp_ms > 0 else None,
    )


def _status(
    one: GivenVolume, state: AuditedDir | None, image: MetadataImage | None
) -> tuple[str, str | None]:
    """Return the state of a volume that takes part, and its reason."""
    node, own = one.identity.node_id, _directory_id(one)
    if one.restored:
        text = (
            "its meta.properties does not identify it; its partitions are exactly those of "
            f"directory id {own} of node {node}, which no other volume has"
        )
        return "unidentified", text
    if one.given_node is not None and one.given_node != node:
        text = (
            f"has node id {node}, and was given as node {one.given_node}, which does not start "
            f"with it: give it to node {node}"
        )
        return "swapped", text
    registered = image.brokers if image else {}
    owner = next(
        (it for it in registered if own and own in registered[it].get("logDirs", ())), None
    )
    if owner is not None and owner != node:
        return "moved", f"the metadata log knows directory id {own} of node {owner}"
    end = one.image.snapshot_offset if one.image else 0
    if image and end > image.offset:
        text = (
            f"has a snapshot of the metadata log that ends at {end}, but the controllers have "
            f"{image.offset}: the node {_AHEAD[image.kraft_version > 0]}"
        )
        return "ahead", text
    if state is None:
        return "unknown", None
    if state.status == "unknown" and one.identity.has_metadata_log and node not in registered:
        return "metadata", None  # a controller alone
    return state.status, None


def _partitions(identity: LogDirIdentity) -> int:
    return len(identity.root.partitions) - identity.has_metadata_log


def _absent(node: int | None, directory_id: str | None, partitions: int) -> Volume:
    return Volume(
        path=None,
        given_node=None,
        node=node,
        cluster_id=None,
        directory_id=directory_id,
        status="absent",
        detail="was not given",
        partitions=partitions,
    )
