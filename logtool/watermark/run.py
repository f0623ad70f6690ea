"""Progress of each replica of a partition: high watermarks, log ends, leader epochs.

Each path is one broker's log dir. A replica is loaded on a shadow of its directory as its broker
would load it, so its log end is that after recovery; nothing is written.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from types import MappingProxyType

from logtool.actions import Action
from logtool.checks import absence
from logtool.checks.fast_path import LARGEST
from logtool.checks.leader_epochs import check_epochs
from logtool.errors import UnreadableError
from logtool.findings import Finding, Severity
from logtool.formats import names
from logtool.formats.java_text import parse_int
from logtool.formats.messages.cluster_metadata import PartitionRecord
from logtool.formats.names import (
    CLUSTER_METADATA,
    DirectoryKind,
    PartitionDirectory,
    TopicPartition,
)
from logtool.log import inputs, opening, redpanda_dir
from logtool.log.flavour import Flavour
from logtool.log.inputs import NodeDir, PathKind
from logtool.log.kafka import KAFKA
from logtool.log.redpanda import REDPANDA
from logtool.log.selection import Selection
from logtool.metadata import releases
from logtool.metadata.image import MetadataImage
from logtool.metadata.log_start import is_tiered, log_start
from logtool.node.claims import has_list
from logtool.node.identity import LogDirIdentity, identify, stopped_epoch
from logtool.node.node import Node
from logtool.node.options import StartOptions
from logtool.running.run import Run
from logtool.running.summary import ActionSummary
from logtool.running.workers import OutOfTimeError
from logtool.startup.log_dir_start import LogDirStart
from logtool.startup.plain_partition import PlainLooks
from logtool.watermark.election import choices
from logtool.watermark.listed import (
    ListedLogDir,
    ReplicaRequest,
    checkpoints,
    load_replica,
    new_logs,
    violations,
)
from logtool.watermark.replica import SOUND, Replica, bytes_ahead
from logtool.watermark.replica_group import Choice, ReplicaGroup, group_replicas

Found = Replica | ReplicaGroup | Finding | Action
Item = Found | UnreadableError
_Chosen = list[tuple[Path, PartitionDirectory]]
_ELR = "eligible.leader.replicas.version"
_MIN_IN_SYNC = "min.insync.replicas"
_KVSTORE = "kvstore"
_GONE = "checkpoint/high-watermark-beyond-end"
_END_LOST = frozenset({_GONE, "checkpoint/recovery-point-beyond-end"})
_HELD_SINCE = (3, 7)
"""From this release on a high watermark does not rise where fewer are in sync (KAFKA-15583)."""


class Watermarks:
    """One run over log dirs. Iterating over it yields replicas, findings and replica groups.

    With `leader`, the replica on that node counts as the leader, if the partition has one there.
    `homes` has log dirs that are open already, by path. Their nodes have the image of the
    controllers, which counts before their own, and every replica is judged as a leader, also an
    empty log that a node makes because it has no copy.
    """

    def __init__(
        self,
        places: Sequence[NodeDir],
        settings: StartOptions,
        *,
        selection: Selection | None = None,
        leader: int | None = None,
        run: Run | None = None,
        flavour: Flavour | None = None,
        summary: ActionSummary | None = None,
        homes: Mapping[Path, LogDirStart] = MappingProxyType({}),
    ) -> None:
        self._flavour = flavour
        self._homes = homes
        self._places = _each_once(places)
        self._settings = settings
        self._selection = selection or Selection()
        self._leader = leader
        self._run = run or Run()
        self._images: list[MetadataImage] = []
        """The newest first, once all places are open; before them, that of the controllers."""
        self._brokers: list[ListedLogDir] = []
        self._ends: dict[int, dict[TopicPartition, int]] = {}
        """Result of `proven_ends`, by the id of the node object."""
        self.summary = summary or ActionSummary()
        self.summary.pace = self._run.budget.pace
        self.keeps_watermarks = True
        """False where some of it is of Redpanda, which keeps no high watermark."""

    def __iter__(self) -> Iterator[Item]:
        try:
            for item in self._all():
                self.summary.bytes = self._run.bytes_done
                if isinstance(item, Finding | UnreadableError):
                    self.summary.add(item)
                yield item
        finally:
            self.summary.bytes = self._run.bytes_done

    def _all(self) -> Iterator[Item]:
        work: list[ReplicaRequest] = []
        whole: list[LogDirIdentity] = []
        for place in self._places:
            try:
                broker, chosen, notes = self._open(place)
            except UnreadableError as error:
                yield error
                continue
            self._brokers.append(broker)
            if broker.identity:
                whole.append(broker.identity)
            yield from broker.home.unread
            # A kvstore that cannot be read says where logs begin: that is unknown.
            stops = {"refuse", "unknown"} if broker.home.log_dir.flavour is REDPANDA else {"refuse"}
            self.summary.to_do |= any(note.action in stops for note in notes)
            yield from notes
            work += [ReplicaRequest(broker, *one) for one in chosen]
        self._images.sort(key=_age, reverse=True)
        self._images[:0] = [one.image for one in self._homes.values() if one.image][:1]
        homes = [one.home for one in self._brokers if one.home.log_dir.flavour.has_checkpoints]
        is_listed = any(not image.damage for image in self._images) if homes else None
        self.summary.partition_list = is_listed or has_list(one.node for one in homes)
        yield from self._absences(whole)
        work.sort(key=lambda one: one.key)
        for one in work:
            one.bytes_ahead = bytes_ahead(one.path)
        self._run.bytes_total = sum(one.bytes_ahead for one in work)
        looks = None if self._run.budget.pace.bytes_per_second else PlainLooks()
        # A rate limits all that is read. A small replica is read as fast as a thread takes it.
        size = sum(one.bytes_ahead for one in work if one.bytes_ahead > LARGEST)
        with self._run.workers(partial(load_replica, looks=looks), size) as workers:
            # One thread works in order, so that no result has to wait for another.
            results = workers.run(work, lambda one: -one.bytes_ahead if workers.jobs > 1 else 0)
            pairs = zip(work, results, strict=True)
            for _, members in groupby(pairs, lambda pair: pair[0].key):
                yield from self._partition(members)
        yield from self._without_copy({one.key for one in work})

    def _open(self, place: NodeDir) -> tuple[ListedLogDir, _Chosen, list[Action]]:
        if home := self._homes.get(place.path):
            return *self._listed(place, home, whole=True), []  # its notes are known
        if opening.flavour_at(place.path, self._flavour) is REDPANDA:
            return self._open_redpanda(place)
        kind = inputs.kind_of(place.path, self._flavour)
        if kind is PathKind.FILE:
            raise UnreadableError(place.path, "expected a log dir or a partition dir")
        whole = kind is PathKind.LOG_DIR
        root_dir = opening.open_log_dir(place.path if whole else place.path.resolve().parent, KAFKA)
        home = LogDirStart(root_dir, self._settings)
        return *self._listed(place, home, whole=whole), home.notes

    def _listed(
        self, place: NodeDir, home: LogDirStart, *, whole: bool
    ) -> tuple[ListedLogDir, _Chosen]:
        """Return a log dir with its selected partitions; not `whole`: with the one at the path."""
        name, root_dir = place.path.resolve().name, home.log_dir
        node = home.node_id if place.node is None else place.node
        own = home.node.own_image
        self._images += [own] if own else []
        chosen = [
            (path, directory)
            for path, directory in root_dir.partitions
            # Its high watermark is not checkpointed: the controllers agree on it.
            if directory.topic != CLUSTER_METADATA
            and directory.kind is DirectoryKind.LIVE
            and self._selection.takes(directory)
            and (whole or path.name == name)
        ]
        identity = replace(identify(root_dir), given_node=place.node) if whole else None
        broker = ListedLogDir(home, node, checkpoints(root_dir), stopped_epoch(root_dir), identity)
        return broker, chosen

    def _absences(self, whole: Sequence[LogDirIdentity]) -> Iterator[Finding]:
        """Yield findings above info about partitions and metadata logs that are absent."""
        members: dict[tuple[str | None, str | None, Path | None], list[LogDirIdentity]] = {}
        for one in whole:
            cluster = one.meta.cluster_id if one.meta else None
            alone = one.path if one.node is None else None
            members.setdefault((cluster, one.node, alone), []).append(one)
        kafka, static = self._settings.kafka, self._settings.static
        nodes = [Node(log_dirs, kafka, static) for log_dirs in members.values()]
        if self._homes:
            nodes = list({id(one.node): one.node for one in self._homes.values()}.values())
        for node in nodes:
            known = [one for one in nodes if one.metadata_log and one.cluster_id == node.cluster_id]
            if node.metadata_log is None and known and not self._homes:
                newest = max(known, key=lambda one: _age(one.image) if one.image else (-1, -1))
                node = Node(node.log_dirs, kafka, static, elsewhere=newest)
            for finding, _, _ in absence.check(node):
                is_selected = self._is_selected(finding.topic, finding.partition)
                if finding.severity is not Severity.INFO and is_selected:
                    yield finding

    def _is_selected(self, topic: str | None, number: int | None) -> bool:
        """Return whether a partition is selected; True for None, a log dir."""
        directory = names.parse_directory(f"{topic}-{number}")
        return not isinstance(directory, PartitionDirectory) or self._selection.takes(directory)

    def _open_redpanda(self, place: NodeDir) -> tuple[ListedLogDir, _Chosen, list[Action]]:
        """Open a data directory of Redpanda, or a folder in one; a kvstore is no log of Raft's."""
        self.keeps_watermarks = False
        data_dir, meant = redpanda_dir.data_dir_of(place.path)
        home = LogDirStart(opening.open_log_dir(data_dir, REDPANDA), self._settings)
        chosen = [
            (path, directory)
            for path, directory in home.log_dir.latest
            if directory.topic != _KVSTORE
            and self._selection.takes(directory)
            and (meant in (data_dir, path) or meant in path.parents)
        ]
        return ListedLogDir(home, place.node, {}, None), chosen, home.notes

    def _partition(
        self, members: Iterator[tuple[ReplicaRequest, Replica | UnreadableError | OutOfTimeError]]
    ) -> Iterator[Item]:
        """Yield all that is to be said of one partition."""
        replicas: list[Replica] = []
        whole = True
        for work, result in members:
            self._run.path = work.path
            if isinstance(result, OutOfTimeError):
                whole = False
            elif isinstance(result, UnreadableError):
                yield result
            else:
                against = list(violations(work, result))
                lost_end = [one.code for one in against if one.code in _END_LOST]
                lost = (result.checkpointed or 0) - result.log_end if _GONE in lost_end else 0
                if result.usable and result.keeps_watermark:
                    home = work.broker.home.log_dir
                    against += check_epochs(
                        home, [one for one in self._images if not one.damage], work.key, result
                    )
                tiered = is_tiered(self._newest(result)[0], result.topic)
                replicas.append(
                    replace(
                        result,
                        log_start=log_start(result.local_log_start, work.log_start, tiered=tiered),
                        alone=_was_alone(
                            result, work.broker, self._settings.kafka or releases.KNOWN[-1]
                        ),
                        acknowledged_gone=max(lost, result.acknowledged_gone),
                        tail=lost_end[0] if lost_end and result.tail == SOUND else result.tail,
                    )
                )
                self.summary.to_do |= not result.usable
                # Nothing on the disk says whether they were acknowledged.
                self.summary.to_do |= not result.keeps_watermark and result.lost_records > 0
                yield replicas[-1]
                yield from result.findings
                yield from against
        self.summary.partitions += bool(replicas)
        if not replicas or not whole:
            return
        if replicas[0].keeps_watermark:
            replicas += self._made_new(replicas)
            group = group_replicas(replicas, *self._known(replicas[0]), self._leader)
        else:
            # Here and below, because Kafka's replicas have no need of it.
            from logtool.watermark import raft

            group = raft.group(replicas, self._leader)
        if group:
            # The cost of leading is not reported for a single replica, unless --leader names it.
            asked = len(group.replicas) > 1 or self._leader == group.assumed.node
            asked |= bool(self._homes)
            if group.in_question and not asked:
                group = replace(group, in_question=False)
            self.summary.to_do |= group.acknowledged_lost > 0 or bool(group.other_topic)
            self.summary.to_do |= group.may_be_lost != 0
            if group.in_question and (group.from_metadata or self._homes):
                group = replace(group, choices=self._choices(group))
            yield group

    def _without_copy(self, seen: set[TopicPartition]) -> Iterator[ReplicaGroup]:
        """Yield the partitions of which no log dir has a copy, but nodes make empty logs, by name.

        `seen` are those with a copy.
        """
        image = self._images[0] if self._homes and self._images else None
        if image is None or image.damage:
            return
        states = {
            (image.names[topic_id], number): state
            for topic_id, of_topic in image.partitions.items()
            for number, state in of_topic.items()
        }
        for key in sorted({*states} - seen):
            made = []
            if self._is_selected(*key):
                made = new_logs(self._brokers, self._ends, key, states[key], set())
            if group := group_replicas(made, *self._known(made[0])) if made else None:
                yield replace(group, choices=self._choices(group))

    def _made_new(self, replicas: Sequence[Replica]) -> list[Replica]:
        """Return the empty logs that nodes make because they have no usable copy of a partition."""
        state = self._newest(replicas[0])[1] if self._homes else None
        if state is None:
            return []
        having = {one.node for one in replicas if one.topic_id in (None, state.topic_id)}
        key = replicas[0].topic, replicas[0].partition
        return new_logs(self._brokers, self._ends, key, state, having)

    @property
    def controllers_not_given(self) -> list[int]:
        """Return the voters of the metadata log, if the log dirs of none of them were given."""
        nodes = [one.home.node for one in self._brokers if one.home.node.voters]
        if not nodes or any(one.node_id in one.voters for one in nodes):
            return []
        return sorted({*chain.from_iterable(one.voters for one in nodes)})

    def _choices(self, group: ReplicaGroup) -> tuple[Choice, ...]:
        """Return the requirements and the cost of the leadership of each replica."""
        image, state = self._newest(group.replicas[0])
        known, least = self._known(group.replicas[0])
        if image is None or state is None or known is None:
            return ()
        stops: dict[int, bool] = {}
        for broker in self._brokers if image.features.get(_ELR, 0) else ():
            node = broker.node
            if node is not None and node in image.brokers:
                unclean = broker.epoch != image.brokers[node]["brokerEpoch"]
                # All log dirs of a broker must say the same.
                stops[node] = stops.get(node, False) or unclean
        return tuple(choices(group, state, known, least, stops))

    def _newest(self, replica: Replica) -> tuple[MetadataImage | None, PartitionRecord | None]:
        """Return the newest image that has the partition, and what it says of it."""
        for image in self._images:
            if state := _state(image, replica):
                return image, state
        return None, None

    def _known(self, replica: Replica) -> tuple[PartitionRecord | None, int]:
        """Return the newest record of the partition, and the least ISR size for the high watermark.

        None and 1 if no metadata log has the partition.

        The replicas last in sync count as in sync: 4.x removes even the last one once its broker
        is gone. Then the metadata log of a broker that stopped earlier shows them, unless the
        partition has changed again since.
        """
        states = [(image, state) for image in self._images if (state := _state(image, replica))]
        if not states:
            return None, 1
        image, state = states[0]
        before = (state.topic_id, state.partition_epoch - 1)
        older = (one.isr for _, one in states if (one.topic_id, one.partition_epoch) == before)
        # With eligible leader replicas the same record that takes out the last one says who it was.
        in_sync = state.isr or state.elr or next(older, ())
        least = least_in_sync(
            image, state, replica.topic, state.leader, self._settings.kafka or releases.KNOWN[-1]
        )
        return replace(state, isr=in_sync), least


def _age(image: MetadataImage) -> tuple[int, int]:
    """Return a key by which the newest metadata image is the largest."""
    return image.epoch, image.offset


def least_in_sync(
    image: MetadataImage, state: PartitionRecord, topic: str, node: int, kafka: tuple[int, int]
) -> int:
    """Return how many must be in sync for the high watermark to rise (`Partition.effectiveMinIsr`).

    What server.properties says is not in the metadata log: then it is taken to be one.
    """
    if kafka < _HELD_SINCE:
        return 1
    for text in image.topic_values(topic, _MIN_IN_SYNC, node):
        value = parse_int(text)
        if value is not None and value >= 0:
            return min(value, len(state.replicas))
    return 1


def _state(image: MetadataImage | None, replica: Replica) -> PartitionRecord | None:
    topic_id = image.topics.get(replica.topic) if image else None
    return image.partition(topic_id, replica.partition) if image and topic_id else None


def _was_alone(replica: Replica, broker: ListedLogDir, kafka: tuple[int, int]) -> bool:
    """Return whether a replica led, by its own broker's metadata log, and alone was in sync.

    Below min.insync.replicas a high watermark does not rise.
    """
    image, node = broker.home.node.own_image, broker.node
    state = _state(image, replica)
    return (
        image is not None
        and state is not None
        and node is not None
        and (state.leader, state.isr) == (node, (node,))
        and replica.last_epoch <= state.leader_epoch
        and least_in_sync(image, state, replica.topic, node, kafka) <= 1
    )


def _each_once(places: Sequence[NodeDir]) -> list[NodeDir]:
    """Return the places without those that lead to the same directory as one before."""
    return list({os.path.realpath(one.path): one for one in reversed(places)}.values())[::-1]
