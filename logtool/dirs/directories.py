"""The log dirs of brokers compared with the metadata log: ids, assignments, futures, strays.

Source: ``DirectoryId``, ``ReplicaAlterLogDirsThread``, ``LogManager.recoverAbandonedFutureLogs``,
``LogManager.isStrayReplica`` (Kafka 3.9 and 4.3).
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from logtool.checks import absence
from logtool.copies.compare import Pairs
from logtool.copies.copy import Copy, CopyReading
from logtool.copies.copy_readers import Blocks, side_by_side
from logtool.copies.merge import stretches
from logtool.copies.pair import CopyPair
from logtool.copies.sources import ListedCopy, find
from logtool.dirs import unnamed
from logtool.dirs.cluster import Cluster
from logtool.dirs.proof import Other, Proof, prove
from logtool.disk import files
from logtool.errors import NothingMatchedError, UnreadableError
from logtool.findings import Finding
from logtool.formats.java_text import uuid_bytes
from logtool.formats.names import CLUSTER_METADATA, DirectoryKind
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.inputs import NodeDir, PathKind
from logtool.log.selection import Selection
from logtool.metadata.image import MetadataImage
from logtool.node.identity import LogDirIdentity, identify, topic_id_of
from logtool.node.node import NO_LOG_DIRS, Node
from logtool.running.run import Run

_RESERVED = {0: "migrating", 1: "unassigned", 2: "lost"}
"""Meaning of the reserved ids of an assignment (``DirectoryId``), by the id as a number."""


@dataclass(frozen=True, slots=True)
class AuditedDir:
    """One log dir that was given, or that is only in the metadata log."""

    node: int | None
    path: Path | None
    """None if it is absent."""
    directory_id: str | None
    status: str
    """``online``, ``cordoned``, ``offline``, ``absent``, ``unregistered``, ``metadata``,
    ``unidentified``, or ``unknown`` if no registration of the broker lists log dirs."""
    partitions: int
    """Number of live partitions in it; for an absent log dir, of partitions assigned to it."""
    deleting: int = 0
    """Number of directories that are marked for deletion."""
    given_as: Path | None = None
    """Log dir with this id that was given as one of another node, for an absent log dir."""
    restored: tuple[str, ...] = ()
    """Lines of the meta.properties that it should have, if its own has no directory id and its
    partitions are exactly those of an absent log dir."""

    @property
    def is_grave(self) -> bool:
        """Return whether an operator should look at it."""
        return self.status in ("absent", "offline", "unidentified")


@dataclass(frozen=True, slots=True)
class Assignment:
    """A live replica in another log dir than the one it is assigned to in the metadata log."""

    node: int
    path: Path
    topic: str
    partition: int
    directory_id: str | None
    """Id of the log dir in which it lies."""
    assigned: str
    status: str
    """``elsewhere``, ``unassigned``, ``lost`` or ``migrating``."""

    @property
    def is_grave(self) -> bool:
        """Return whether an operator should look at it."""
        return self.status in ("elsewhere", "lost")


@dataclass(frozen=True, slots=True)
class FutureCopy:
    """A copy on its way to another log dir, compared with the live copy that it is made from."""

    copy: Copy
    live: Copy | None
    pair: CopyPair | None
    assigned: bool
    """True if the metadata log already assigns the partition to this log dir."""

    @property
    def behind(self) -> int | None:
        """Return the number of offsets that it is behind the live copy; None without one."""
        return None if self.live is None else max(0, self.live.log_end - self.copy.log_end)

    @property
    def ahead(self) -> int | None:
        """Return the number of offsets beyond the end of the live copy; None without one."""
        return None if self.live is None else max(0, self.copy.log_end - self.live.log_end)

    @property
    def superset(self) -> bool | None:
        """Return whether it has every batch of the live copy; None without a live copy."""
        if self.pair is None:
            return None
        whole = not self.copy.real_damages
        return whole and self.pair.comparable and not self.pair.right_lacks

    @property
    def status(self) -> str:
        """Return its state; of several states the gravest."""
        if self.live is None or self.pair is None:
            return "abandoned"
        if not self.pair.comparable:
            return "diverged"
        if self.copy.real_damages:
            return "damaged"
        if self.ahead and not self.assigned:
            return "ahead"
        if self.superset:
            return "caught-up"
        return "catching-up"

    @property
    def is_grave(self) -> bool:
        """Return whether an operator should look at it."""
        return self.status in ("abandoned", "diverged", "damaged", "ahead")

    @property
    def live_path(self) -> str | None:
        """Return the directory of the live copy; None without one."""
        return None if self.live is None else self.live.path

    @property
    def live_log_end(self) -> int | None:
        """Return the log end offset of the live copy; None without one."""
        return None if self.live is None else self.live.log_end

    @property
    def diverges_at(self) -> int | None:
        """Return the first offset at which it diverges from the live copy; None if it does not."""
        return self.pair.diverges_at if self.pair else None


Found = AuditedDir | Assignment | FutureCopy | Proof | Finding
Item = Found | UnreadableError


@dataclass(frozen=True, slots=True)
class _Replica:
    """A copy, its topic id as far as it is needed, and whether it is a stray."""

    copy: ListedCopy
    topic_id: str | None
    is_stray: bool

    @property
    def needs_files(self) -> bool:
        """Return whether the files of the copy are compared with those of other copies."""
        kind = self.copy.kind
        return kind is DirectoryKind.FUTURE or (self.is_stray and kind is not DirectoryKind.DELETE)


class DirsRun:
    """One run over the log dirs of one or several brokers; iterate over it for the results."""

    def __init__(
        self,
        sources: Sequence[NodeDir],
        selection: Selection,
        run: Run,
        static: Mapping[str, str] | None = None,
    ) -> None:
        """Take the log dirs; `static` holds the settings in the own file of one of the brokers."""
        self._sources = sources
        self._selection = selection
        self._run = run
        self._static = static or {}
        self._cluster = Cluster(())

    @property
    def image(self) -> MetadataImage | None:
        """Return the newest metadata image, once the iteration has begun; None without one."""
        return self._cluster.image

    def __iter__(self) -> Iterator[Item]:
        """Yield results and errors; OutOfTimeError once the time of the run is over."""
        log_dirs, copies = [], []
        reported: set[str] = set()
        for source in self._sources:
            try:
                log_dirs.append(_log_dir(source.path, source.node))
                what, kinds = (source.path, source.node, self._selection), tuple(DirectoryKind)
                for one in find(*what, kinds=kinds, files_later=True):
                    if isinstance(one, UnreadableError):
                        reported.add(str(one))
                        yield one
                    elif one.key[0] != CLUSTER_METADATA:
                        copies.append(one)
            except UnreadableError as error:
                yield error
        self._cluster = Cluster(log_dirs, self._static)
        nodes = self._cluster.nodes
        for node in nodes:
            if node.unread and str(node.unread) not in reported:
                reported.add(str(node.unread))
                yield node.unread
        for node in nodes:
            yield from audited(node, self.image, nodes)
            yield from self._cluster.contradictions(node)
            yield from self._lost(node)
        replicas = yield from self._with_files([self._replica(one) for one in copies])
        for node in nodes:
            yield from self._replicas(node, replicas)

    def _lost(self, node: Node) -> Iterator[Finding]:
        """Yield the partitions that only this node can serve and that are in none of its dirs."""
        if self._selection == Selection():
            found = (finding for finding, _, _ in absence.check(node))
            yield from (one for one in found if one.code == "partition/lost")

    def _replica(self, copy: ListedCopy) -> _Replica:
        topic_id = topic_id_of(copy.path) if self.image else None
        stray = copy.kind is DirectoryKind.STRAY or self._cluster.is_stray(copy, topic_id)
        return _Replica(copy, topic_id, stray)

    def _with_files(
        self, replicas: Sequence[_Replica]
    ) -> Generator[UnreadableError, None, list[_Replica]]:
        """Return the copies, with the files of those that are read or compared; yield errors."""
        numbers = {one.copy.key[1] for one in replicas if one.needs_files}
        flavours = {one.path: one.root.flavour for of in self._cluster.nodes for one in of.log_dirs}
        found = []
        for one in replicas:
            copy = one.copy
            try:
                if copy.key[1] in numbers:
                    copy = copy.with_files(flavours[copy.path.parent])
                found.append(replace(one, copy=copy))
            except UnreadableError as error:
                if not files.has_vanished(error):
                    yield error
        return found

    def _replicas(self, of: Node, replicas: Sequence[_Replica]) -> Iterator[Item]:
        image, node = self.image, of.node_id
        homes = {one.path: one for one in of.log_dirs}
        copies = [one.copy for one in replicas]
        own = [one for one in replicas if one.copy.path.parent in homes]
        for one in own:
            copy, kind = one.copy, one.copy.kind
            if kind is DirectoryKind.DELETE:
                continue
            if one.is_stray:
                others, verdict = self._cluster.others(copy, copies), self._cluster.verdict(copy)
                yield from prove(copy, others, self._run.restarted(), verdict)
            elif kind is DirectoryKind.FUTURE:
                assigned = _assigned(image, one.topic_id, copy.key[1], node)
                meta = homes[copy.path.parent].meta
                here = meta is not None and assigned is not None and assigned == meta.directory_id
                yield from self._future(copy, [each.copy for each in own], here=here)
            elif image and one.topic_id and node is not None:
                found = _misplaced(copy, homes[copy.path.parent], image, one.topic_id, node)
                if found:
                    yield found

    def _future(self, copy: ListedCopy, own: Sequence[ListedCopy], *, here: bool) -> Iterator[Item]:
        live = [one for one in own if one.key == copy.key and one.kind is DirectoryKind.LIVE]
        group = [*live[:1], copy]
        found = yield from side_by_side(group, self._run.restarted(), _paired)
        if found and found[0][-1] is copy:
            _, copies, pair = found
            before = copies[0] if pair else None
            yield FutureCopy(copy=copies[-1], live=before, pair=pair, assigned=here)


def audited(
    of: Node, image: MetadataImage | None, nodes: Sequence[Node] = ()
) -> Iterator[AuditedDir]:
    """Yield the log dirs of a node, and those that the image gives to it and that are absent.

    An absent log dir may be one of the other `nodes` that were given.
    """
    node = of.node_id
    registered = image.brokers.get(node) if image and node is not None else None
    online, cordoned = (
        set((registered or {}).get(name) or ()) for name in ("logDirs", "cordonedLogDirs")
    )
    known = image.log_dirs(node) if image and node is not None else set()
    given = set()
    for one in of.log_dirs:
        own = one.meta.directory_id if one.meta else None
        given.add(own)
        kinds = [
            directory.kind
            for _, directory in one.root.partitions
            if directory.topic != CLUSTER_METADATA
        ]
        yield AuditedDir(
            node=node,
            path=one.path,
            directory_id=own,
            status=_status(one, online, cordoned, known),
            partitions=kinds.count(DirectoryKind.LIVE),
            deleting=kinds.count(DirectoryKind.DELETE),
            restored=_restored(one, image, nodes or [of]) if own is None else (),
        )
    if image is None or node is None or image.damage:
        return
    for absent in sorted(image.log_dirs(node) - given - NO_LOG_DIRS):
        count = sum(
            _assigned(image, topic_id, number, node) == absent
            for topic_id, of_topic in image.partitions.items()
            for number in of_topic
        )
        elsewhere = (
            one.path
            for other in nodes
            for one in other.log_dirs
            if one.meta and one.meta.directory_id == absent
        )
        yield AuditedDir(
            node=node, path=None, directory_id=absent, status="absent", partitions=count,
            given_as=next(elsewhere, None),
        )  # fmt: skip


def _restored(
    one: LogDirIdentity, image: MetadataImage | None, nodes: Sequence[Node]
) -> tuple[str, ...]:
    """Return the lines of the meta.properties that a log dir should have; empty if not known."""
    if image is None or image.damage:
        return ()
    metas = [it.meta for node in nodes for it in node.log_dirs if it.meta]
    places = unnamed.absent([meta.directory_id for meta in metas], image)
    place = unnamed.place_of(one, places, image)
    cluster_id = next((meta.cluster_id for meta in metas if meta.cluster_id), None)
    return unnamed.lines(place, cluster_id) if place else ()


def _paired(
    listed: Sequence[ListedCopy], readings: Sequence[CopyReading], blocks: Blocks
) -> tuple[Sequence[ListedCopy], list[Copy], CopyPair | None]:
    """Return one or two copies, and the result of comparing two; None for one."""
    pairs = Pairs(readings)
    for tables, over in stretches(blocks):
        pairs.add(tables, over)
    copies = [reading.copy for reading in readings]
    return listed, copies, pairs.finish(copies).get((0, 1))


def listed(
    paths: Sequence[Path],
) -> Generator[UnreadableError, None, tuple[Cluster, list[ListedCopy]]]:
    """Return the cluster of log dirs or partition dirs, with the copies in them; yield errors."""
    log_dirs: list[LogDirIdentity] = []
    copies: list[ListedCopy] = []
    for path in paths:
        try:
            if (
                inputs.kind_of(path, lacking="Redpanda has no KRaft metadata log")
                is PathKind.LOG_DIR
            ):
                log_dirs.append(_log_dir(path))
            for one in find(path, None, Selection(), kinds=tuple(DirectoryKind)):
                if isinstance(one, UnreadableError):
                    yield one
                else:
                    copies.append(one)
        except UnreadableError as error:
            yield error
    return Cluster(log_dirs), copies


def candidates(target: ListedCopy, paths: Sequence[Path]) -> Iterator[Other | UnreadableError]:
    """Yield the directories in log dirs, or partition dirs, that may be copies of a partition."""
    cluster, copies = yield from listed(paths)
    yield from cluster.others(target, copies)


def _log_dir(path: Path, node: int | None = None) -> LogDirIdentity:
    if inputs.kind_of(path, lacking="Redpanda has no KRaft metadata log") is not PathKind.LOG_DIR:
        raise NothingMatchedError(path, "is not a log dir")
    return replace(identify(opening.open_log_dir(path)), given_node=node)


def _status(log_dir: LogDirIdentity, online: set[str], cordoned: set[str], known: set[str]) -> str:
    """Return the state of a log dir; `known` are the ids in the registration and in assignments."""
    own = log_dir.meta.directory_id if log_dir.meta else None
    if own in cordoned:
        return "cordoned"
    if not online:
        # No log dir of a broker before 3.7, or with ZooKeeper, has an id.
        return "unknown"
    if own in online:
        return "online"
    if own in known:
        return "offline"
    if log_dir.has_only_metadata_log:
        return "metadata"
    return "unidentified" if own is None else "unregistered"


def _assigned(
    image: MetadataImage | None, topic_id: str | None, number: int, node: int | None
) -> str | None:
    """Return the id of the log dir that a replica is assigned to; None if it is not known."""
    state = image.partition(topic_id, number) if image and topic_id else None
    if state is None or node not in state.replicas:
        return None
    if len(state.directories) != len(state.replicas):
        return None
    return state.directories[state.replicas.index(node)]


def _misplaced(
    copy: ListedCopy, home: LogDirIdentity, image: MetadataImage, topic_id: str, node: int
) -> Assignment | None:
    assigned = _assigned(image, topic_id, copy.key[1], node)
    own = home.meta.directory_id if home.meta else None
    if assigned is None or assigned == own:
        return None
    number = int.from_bytes(uuid_bytes(assigned), "big")
    return Assignment(
        node=node,
        path=copy.path,
        topic=copy.key[0],
        partition=copy.key[1],
        directory_id=own,
        assigned=assigned,
        status=_RESERVED.get(number, "elsewhere"),
    )
