"""The leaders that a partition may get at the start, and the offsets that each of them cuts.

The volumes may be of different moments. Then a replica in sync lacks records that were acknowledged
after its copy was made, and the controllers elect it all the same: as after a kill, they take any
replica in sync. So all that a follower has and the leader lacks may have been acknowledged. It is
proven for offsets below a high watermark.

The brokers come back in an order that no file shows, and it decides who leads
(`logtool.watermark.comeback`). A node whose volume is missing may be the last in sync, or stay
eligible: then the partition has no leader. With unclean.leader.election.enable any replica may
lead.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from logtool.formats import names
from logtool.formats.messages.cluster_metadata import NO_LEADER, PartitionRecord
from logtool.formats.names import PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.log.selection import Selection
from logtool.metadata.image import MetadataImage
from logtool.watermark.comeback import leaders_after
from logtool.watermark.replica import STRAY, Replica
from logtool.watermark.replica_group import Choice, Election, ReplicaGroup, shown_end

_ELR = "eligible.leader.replicas.version"
_UNCLEAN = "unclean.leader.election.enable"


@dataclass(frozen=True, slots=True)
class FollowerCut:
    """The end of a follower's log that it cuts under a leader."""

    node: int | None
    path: Path
    log_end: int
    offset: int
    """First offset that it cuts."""

    @property
    def offsets(self) -> int:
        """Return how many offsets it cuts."""
        return self.log_end - self.offset


@dataclass(frozen=True, slots=True)
class LeaderOutlook:
    """One replica as the leader."""

    node: int | None
    path: Path
    election: str
    """Kind of the election, as in `watermark`."""
    may_be_elected: bool
    """True if controllers may elect it without a person."""
    log_end: int
    high_watermark: int | None
    """Checkpointed high watermark; None without a row."""
    acknowledged_lost: int
    """Acknowledged offsets that are lost if it leads, as far as files prove them, with those that
    no copy has."""
    may_be_lost: int | None
    """Further offsets that may have been acknowledged; None if the number is not known."""
    cuts: tuple[FollowerCut, ...]
    open_transaction: int | None
    """First offset of the oldest transaction that is open at its end; None without one."""
    is_new: bool = False
    """True if the node has no copy: it makes an empty log, and the others cut all they have."""
    unread_bytes: int = 0
    """Bytes of its log below the recovery point, which no start reads, nor this command."""

    @property
    def loses(self) -> bool:
        """Return whether records are lost, or may be lost, if it leads."""
        return self.acknowledged_lost > 0 or self.may_be_lost != 0

    @property
    def cost(self) -> tuple[float, int]:
        """Return a key by which the leader that loses least is the smallest."""
        more = float("inf") if self.may_be_lost is None else self.may_be_lost
        return self.acknowledged_lost + more, self.acknowledged_lost


@dataclass(frozen=True, slots=True)
class Repair:
    """A replica that another copy can fill: behind damage, or at a part that it has lost."""

    node: int | None
    path: Path
    source_node: int | None
    source: Path
    """Partition dir of the copy."""
    records: int
    """Sound records behind damage, which are cut when it is loaded; 0 without damage."""
    offsets: int = 0
    """Offsets of the copy behind the end of the replica."""
    missing: int = 0
    """Offsets that the replica has lost between two segments."""


@dataclass(frozen=True, slots=True)
class PartitionOutlook:
    """One partition at the start of the cluster."""

    topic: str
    partition: int
    topic_id: str | None
    """Topic id in the image; None if the image does not have the partition."""
    image_leader: int | None
    """Leader in the image; None without one."""
    in_sync: tuple[int, ...]
    eligible: tuple[int, ...]
    leaders: tuple[LeaderOutlook, ...]
    """Replicas that may lead, those first that controllers may elect; empty without a copy."""
    missing: tuple[int, ...]
    """Nodes of replicas without a copy that loads."""
    strays: tuple[int | None, ...]
    """Nodes whose copy becomes a stray."""
    away: tuple[int, ...] = ()
    """Missing nodes that have no replica after the start either, not even an empty one."""
    unloaded: tuple[int | None, ...] = ()
    """Nodes whose copy no broker loads, for another reason."""
    nowhere: int = 0
    """Acknowledged offsets that no copy has, by the checkpointed high watermarks."""
    may_be_leaderless: bool = False
    """True if controllers may elect none, because a node that is missing was in sync or eligible
    last."""

    repairs: tuple[Repair, ...] = ()
    """Replicas that another copy can fill before the start."""
    may_be_longer: bool = False
    """True if a volume that is absent, or not identified, may hold a longer copy: until it is
    there, no leader should be elected uncleanly."""

    @property
    def elected(self) -> tuple[LeaderOutlook, ...]:
        """Return the leaders that controllers may elect without a person."""
        return tuple(one for one in self.leaders if one.may_be_elected)

    @property
    def elected_nodes(self) -> tuple[int | None, ...]:
        """Return the nodes of these leaders."""
        return tuple(one.node for one in self.elected)

    @property
    def is_without_copy(self) -> bool:
        """Return whether no volume has a copy that loads."""
        return all(one.is_new for one in self.leaders)

    @property
    def best(self) -> LeaderOutlook | None:
        """Return the leader that loses least; of equal ones that which may be elected first."""
        return min(self.leaders, key=lambda one: one.cost, default=None)

    @property
    def best_node(self) -> int | None:
        """Return the node of the leader that loses least; None without a copy."""
        return self.best.node if self.best else None

    @property
    def is_held_back(self) -> bool:
        """Return whether only an unclean election helps, and a longer copy may turn up."""
        return self.may_be_longer and not (self.best and self.best.may_be_elected)

    @property
    def is_disputed(self) -> bool:
        """Return whether a person decides what is lost: by the order of the start, or a request."""
        if self.best is None or self.is_without_copy:
            return False
        elected = [one.cost for one in self.elected]
        return not elected or max(elected) > self.best.cost or self.may_be_leaderless

    @property
    def status(self) -> str:
        """Return the gravest that may happen."""
        if self.is_without_copy:
            return "stray" if self.strays else "no-copy"
        if not self.elected:
            return "leaderless"
        if self.nowhere or any(one.acknowledged_lost for one in self.elected):
            return "loses"
        if any(one.loses for one in self.elected):
            return "may-lose"
        if self.strays:
            return "stray"
        return "may-be-leaderless" if self.may_be_leaderless else "in-order"


def outlook(
    replicas: Sequence[Replica],
    group: ReplicaGroup | None,
    image: MetadataImage | None,
    spares: Sequence[Replica] = (),
) -> PartitionOutlook:
    """Return the outlook of one partition from its replicas, of which there is at least one.

    `spares` are copies in volumes that take no part in the start.
    """
    topic, number = replicas[0].topic, replicas[0].partition
    topic_id = image.topics.get(topic) if image else None
    state = image.partition(topic_id, number) if image and topic_id else None
    leaders: list[LeaderOutlook] = []
    may_fail = bool(state)
    if group and image and state:
        nodes, may_fail = _electable(group, image, state)
        leaders = [_leader(one, one.replica.node in nodes, group.nowhere) for one in group.choices]
    if group and not leaders:
        # Without an image it is not known who may lead.
        leaders = [_alone(one) for one in group.replicas]
    if all(one.is_new for one in leaders) or (state and _is_standing_empty(state, leaders)):
        leaders = [replace(one, may_be_lost=None) for one in leaders]
    up = {one.node for one in group.replicas} if group else set()
    having = {one.node for one in group.replicas if not one.is_new} if group else set()
    members = state.replicas if state else ()
    ends = [one.log_end for one in ((*group.replicas, *spares) if group else ())]
    acknowledged = max(one.log_end for one in group.replicas) + group.nowhere if group else 0
    return PartitionOutlook(
        topic=topic,
        partition=number,
        topic_id=topic_id if state else None,
        image_leader=state.leader if state and state.leader >= 0 else None,
        in_sync=state.isr if state else (),
        eligible=state.elr if state else (),
        leaders=tuple(sorted(leaders, key=lambda one: (not one.may_be_elected, one.cost))),
        missing=tuple(one for one in members if one not in having),
        away=tuple(one for one in members if one not in up),
        strays=tuple(one.node for one in replicas if one.outcome == STRAY),
        unloaded=tuple(one.node for one in replicas if not one.usable and one.outcome != STRAY),
        nowhere=max(0, acknowledged - max(ends, default=0)) if group and group.nowhere else 0,
        may_be_leaderless=may_fail,
        repairs=tuple(_repairs(group, [*replicas, *spares])) if group else (),
    )


def _is_standing_empty(state: PartitionRecord, leaders: Sequence[LeaderOutlook]) -> bool:
    """Return whether all replicas with the acknowledged records have lost their copies."""
    standing = {*state.isr, *state.elr} or {*state.last_known_elr}
    return bool(standing) and standing <= {one.node for one in leaders if one.is_new}


def _repairs(group: ReplicaGroup, copies: Sequence[Replica]) -> Iterator[Repair]:
    """Yield the replicas that another copy can fill, also one that is no replica any more."""
    others = [it for it in copies if it not in group.replicas and it.topic_id == group.topic_id]
    sources = [*group.replicas, *others]
    for one in group.replicas:
        better = [it for it in sources if not it.lost_records and it.log_end > one.log_end]
        if (one.lost_records or shown_end(one) > one.log_end) and better:
            source = max(better, key=lambda it: (it.last_epoch, it.log_end))
            offsets = source.log_end - one.log_end
            yield Repair(one.node, one.path, source.node, source.path, one.lost_records, offsets)
        elif (missing := one.missing_below(one.log_end)) and (
            whole := [it for it in sources if not it.lost_records and _fills(it, one)]
        ):
            source = max(whole, key=lambda it: (it.last_epoch, it.log_end))
            yield Repair(one.node, one.path, source.node, source.path, 0, 0, missing)


def _fills(source: Replica, replica: Replica) -> bool:
    """Return whether a copy may have what a replica has lost between two segments."""
    (first, _), (_, last) = replica.missing[0], replica.missing[-1]
    is_inside = source.log_start <= max(first, replica.log_start) and last < source.log_end
    return is_inside and not any(a <= last and first <= b for a, b in source.missing)


def _electable(
    group: ReplicaGroup, image: MetadataImage, state: PartitionRecord
) -> tuple[set[int | None], bool]:
    """Return the nodes that controllers may elect by themselves, and whether they may elect none.

    A node without a volume does not come back.
    """
    up = {*group.nodes}
    if image.topic_config(group.topic, _UNCLEAN) == "true":
        return up, not up
    members = {*state.replicas}
    registered = {one for one, broker in image.brokers.items() if not broker["fenced"]}
    found: set[int | None] = {
        *leaders_after(
            state,
            max(1, group.least_in_sync),
            has_elr=bool(image.features.get(_ELR, 0)),
            coming=frozenset(one for one in up if one is not None),
            unclean=frozenset(members - _clean(group)),
            fenced=frozenset(members - registered if image.brokers else ()),
        )
    }
    return found - {NO_LEADER}, NO_LEADER in found


def _clean(group: ReplicaGroup) -> set[int | None]:
    """Return the nodes that keep their standing, because they stopped cleanly."""
    return {one.replica.node for one in group.choices if not one.standing.loses_it}


def _leader(choice: Choice, electable: bool, nowhere: int) -> LeaderOutlook:
    replica = choice.replica
    cuts = tuple(
        FollowerCut(
            node=one.follower.node,
            path=one.follower.path,
            log_end=one.follower.log_end,
            offset=one.by_leader_epoch,
        )
        for one in choice.truncations
        if one.removed_by_leader_epoch > 0
    )
    cut = max((one.offsets for one in cuts), default=0)
    more = max(0, cut + nowhere + replica.missing_below(replica.log_end) - choice.acknowledged_lost)
    return LeaderOutlook(
        node=replica.node,
        path=replica.path,
        election=str(choice.standing.election),
        may_be_elected=electable,
        log_end=replica.log_end,
        high_watermark=replica.checkpointed,
        acknowledged_lost=choice.acknowledged_lost,
        may_be_lost=None if choice.may_be_lost is None else max(more, choice.may_be_lost),
        cuts=cuts,
        open_transaction=replica.open_transaction,
        is_new=replica.is_new,
        unread_bytes=replica.unread_bytes,
    )


def _alone(replica: Replica) -> LeaderOutlook:
    return LeaderOutlook(
        node=replica.node,
        path=replica.path,
        election=str(Election.UNCLEAN),
        may_be_elected=False,
        log_end=replica.log_end,
        high_watermark=replica.checkpointed,
        acknowledged_lost=0,
        may_be_lost=None,
        cuts=(),
        open_transaction=replica.open_transaction,
        unread_bytes=replica.unread_bytes,
    )


def without_copy(
    image: MetadataImage, seen: set[tuple[str, int]], selection: Selection
) -> Iterator[PartitionOutlook]:
    """Yield the selected partitions of an image that were not `seen`, by name.

    They have neither a copy nor a node that makes an empty log.
    """
    missing: list[tuple[str, int, PartitionRecord]] = []
    for topic_id, of_topic in image.partitions.items():
        topic = image.names[topic_id]
        missing += [
            (topic, number, state)
            for number, state in of_topic.items()
            if (topic, number) not in seen and _is_selected(topic, number, selection)
        ]
    for topic, number, state in sorted(missing, key=lambda one: one[:2]):
        yield PartitionOutlook(
            topic=topic,
            partition=number,
            topic_id=state.topic_id,
            image_leader=state.leader if state.leader >= 0 else None,
            in_sync=state.isr,
            eligible=state.elr,
            leaders=(),
            missing=state.replicas,
            away=state.replicas,
            strays=(),
            may_be_leaderless=True,
        )


def _is_selected(topic: str, number: int, selection: Selection) -> bool:
    directory = names.parse_directory(f"{topic}-{number}")
    return isinstance(directory, PartitionDirectory) and selection.takes(directory)


@dataclass(frozen=True, slots=True)
class OtherTopic:
    """A topic id on volumes that is not that of the topic in the image."""

    topic: str
    topic_id: str
    """Topic id in partition.metadata."""
    image_id: str | None
    """Topic id of this name in the image; None if the image has no topic of this name."""
    nodes: tuple[int, ...]
    removed_offset: int | None
    """Offset of the record that removed the topic; None if the image shows none: then the topic was
    removed before its snapshot, or created after its end."""

    @property
    def is_made_again(self) -> bool:
        """Return whether the image has another topic of this name."""
        return self.image_id is not None


def other_topics(
    replicas: Mapping[tuple[str, str], set[int]], image: MetadataImage
) -> Iterator[OtherTopic]:
    """Yield the topic ids that the image does not have; `replicas` has nodes by name and id."""
    for (topic, topic_id), nodes in sorted(replicas.items()):
        if topic_id not in image.names:
            yield OtherTopic(
                topic=topic,
                topic_id=topic_id,
                image_id=image.topics.get(topic),
                nodes=tuple(sorted(nodes)),
                removed_offset=image.removed.get(topic_id),
            )
