"""The replicas of one partition together: who may lead, and what the others would then cut."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from logtool.formats.messages.cluster_metadata import NO_LEADER, PartitionRecord
from logtool.lazy_dataclass import dataclass
from logtool.watermark.replica import Replica
from logtool.watermark.simulation.truncation import LogState, by_high_watermark, by_leader_epoch


@dataclass(frozen=True, slots=True)
class FollowerTruncation:
    """Truncation of one follower that follows if a replica leads."""

    follower: Replica
    leader: Replica
    by_high_watermark: int
    """Offset to which a broker before Kafka 0.11 would truncate."""
    by_leader_epoch: int
    """Offset to which a broker since Kafka 0.11 truncates."""
    requests: int
    unknown: bool
    """True if the leader epochs of one of the two are missing, so that they do not decide."""
    committed: int
    """Offset below which what the follower has was committed."""

    @property
    def acknowledged_lost(self) -> int:
        """Return how many committed offsets of the follower the leader does not have."""
        common = self.leader.log_end if self.unknown else self.by_leader_epoch
        return max(0, self.committed - common)

    @property
    def diverges_from(self) -> int | None:
        """Return from where on the two would differ if the high watermark decided; None if not."""
        diverges = not self.unknown and self.by_high_watermark > self.by_leader_epoch
        return self.by_leader_epoch if diverges else None

    def committed_at_most(self, watermark: int | None) -> int:
        """Return how many offsets below `watermark` the follower has and the leader does not."""
        common = self.leader.log_end if self.unknown else self.by_leader_epoch
        end = self.follower.log_end
        return max(0, (end if watermark is None else min(end, watermark)) - common)

    @property
    def removed_by_high_watermark(self) -> int:
        """Return how many offsets the follower cuts by its high watermark."""
        return self.follower.log_end - self.by_high_watermark

    @property
    def removed_by_leader_epoch(self) -> int:
        """Return how many offsets the follower cuts by leader epochs."""
        return self.follower.log_end - self.by_leader_epoch


class Election(StrEnum):
    """Ways in which a replica can become leader."""

    CLEAN = "clean"
    LAST_KNOWN_LEADER = "last-known-leader"
    """Elected automatically once no replica is left that can be elected clean."""
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True)
class Electability:
    """Standing of one node, by the partition's record and the clean markers of the brokers."""

    node: int | None
    in_sync: bool
    eligible: bool
    """True if the node is among the eligible leader replicas."""
    loses_it: bool
    """True if the next start removes the node from the ISR and the eligible replicas, because its
    last stop was unclean."""
    election: Election


@dataclass(frozen=True, slots=True)
class Choice:
    """One replica as a leader."""

    replica: Replica
    standing: Electability
    acknowledged_lost: int
    may_be_lost: int | None
    """Same meaning as `ReplicaGroup.may_be_lost`."""
    truncations: tuple[FollowerTruncation, ...] = ()
    """Truncation of each other replica if the replica leads."""


@dataclass(frozen=True, slots=True)
class ReplicaGroup:
    """The replicas of a partition with which a broker would start, compared with each other."""

    topic: str
    partition: int
    replicas: tuple[Replica, ...]
    in_sync: tuple[int | None, ...]
    """Node ids."""
    from_metadata: bool
    """True if a metadata log names the replicas in sync; otherwise all are taken to be in sync."""
    least_in_sync: int
    """With fewer in sync the high watermark stays where it is."""
    high_watermark: int | None
    """High watermark up to which the replicas in sync agree, or the highest that they checkpointed
    if they are too few for it to rise; None if none of them was read."""
    committed: int
    """Offset below which records are known to have been committed, and a replica has them."""
    leader: int | None
    """Node id of the leader in the metadata log."""
    assumed: Replica
    """The replica that is taken to lead next."""
    furthest: Replica
    """The replica with the most records of the newest leader epoch."""
    truncations: tuple[FollowerTruncation, ...]
    topic_id: str | None = None
    """Topic id of the replicas that are compared; None if none of them has one, or if as many
    replicas have another id and no metadata log says which is right."""
    other_topic: tuple[Replica, ...] = ()
    """Replicas of another topic of that name, deleted or created since; not part of this group."""
    unusable: tuple[int | None, ...] = ()
    """Node ids of the replicas that were given and that no broker comes up with."""
    elr: tuple[int, ...] = ()
    """Node ids of the eligible leader replicas, which have all that was acknowledged."""
    choices: tuple[Choice, ...] = ()
    """Condition and cost of each replica as leader, as far as a metadata log shows."""
    members: tuple[int, ...] = ()
    """Node ids of all replicas in the metadata log; empty without one."""
    in_question: bool = True
    """True if the cost of a leader is reported; False for a single replica by default."""
    nowhere: int = 0
    """Acknowledged offsets that no replica has, by the checkpointed high watermarks."""

    @property
    def acknowledged_lost(self) -> int:
        """Return how many acknowledged offsets go if the assumed leader leads.

        Those that no replica has are lost with every leader, and count for every leader. Those that
        its log lacks between two segments are lost for its consumers, and for replicas made later.
        """
        cut = max((one.acknowledged_lost for one in self.truncations), default=0)
        at_end = max(self.assumed.acknowledged_gone, cut + self.nowhere)
        return at_end + self.assumed.missing_below(self.committed)

    @property
    def best_leader(self) -> int | None:
        """Return the node whose leadership loses least; None without a metadata log."""
        best = min(self.choices, key=loss_of, default=None)
        return best.replica.node if best else None

    @property
    def keep_stopped(self) -> tuple[int | None, ...]:
        """Return the nodes that controllers may elect and that lose records, if another loses none.

        Empty if every leader loses some that a replica has: these are different records, and a
        person has to choose.
        """
        if all(map(self.loses_more, self.choices)):
            return ()
        return tuple(
            one.replica.node
            for one in self.choices
            if one.standing.election is not Election.UNCLEAN and self.loses_more(one)
        )

    def loses_more(self, choice: Choice) -> bool:
        """Return whether a choice loses, or may lose, more than what no replica has."""
        return loss_of(choice) > (float(self.nowhere), self.nowhere)

    @property
    def not_looked_at(self) -> tuple[int | None, ...]:
        """Return the nodes in sync of which there is no replica to look at."""
        here = self.nodes
        return tuple(node for node in self.in_sync if node not in here)

    @property
    def not_given(self) -> tuple[int, ...]:
        """Return the nodes with a replica in the metadata log of which no copy was given."""
        given = (*self.nodes, *self.nodes_of_other_topic, *self.unusable)
        return tuple(node for node in self.members if node not in given)

    @property
    def is_uncompared(self) -> bool:
        """Return whether the result rests on one copy, or on none in sync, without a known loss."""
        if self.in_question and (len(self.replicas) > 1 or self.may_be_lost != 0):
            return False
        return bool(self.not_looked_at or (len(self.replicas) == 1 and self.not_given))

    @property
    def committed_from(self) -> str:
        """Return the source of `committed`: a checkpoint, or replicas that prove more.

        ``alone``: a replica led and was alone in the ISR; ``in-sync``: all replicas in sync have
        the offsets; ``majority``: a majority of the replicas has them (Redpanda).
        """
        if not self.replicas[0].keeps_watermark:
            return "majority"
        if self.committed <= max(one.checkpointed or one.high_watermark for one in self.replicas):
            return "checkpoint"
        alone = any(one.alone and one.log_end == self.committed for one in self.replicas)
        return "alone" if alone else "in-sync"

    @property
    def may_be_lost(self) -> int | None:
        """Return how many offsets the assumed leader lacks that may have been acknowledged.

        Each log in sync has every acknowledged record. So a leader that is in sync or eligible
        lacks nothing, unless it lacks acknowledged offsets that another one has: then the replicas
        are of different moments, and all that it lacks may have been acknowledged. If another log
        in sync lacks such offsets, so may all have been that follows a leader's end. Any other
        leader may lack offsets that the replicas in sync agree on, as far as these were read. None:
        no replica in sync was read, so that the number is unknown.
        """
        if not self.in_question:
            return 0
        trusted, end = (*self.in_sync, *self.elr), self.assumed.log_end
        known = max((one.acknowledged_lost for one in self.truncations), default=0)
        if known and self.assumed.node in trusted:
            cut = max((one.removed_by_leader_epoch for one in self.truncations), default=0)
            return max(0, cut - known)
        if any(one.node in trusted and one.log_end < self.committed for one in self.replicas):
            behind = (one for one in self.truncations if one.by_leader_epoch >= end)
            cut = max((one.removed_by_leader_epoch for one in behind), default=0)
            return max(0, cut - known)
        if self.assumed.node in trusted or not self.not_looked_at:
            return 0
        ends = [
            truncation.committed_at_most(self.high_watermark)
            for truncation in self.truncations
            if truncation.follower.node in self.in_sync
        ]
        return max(ends, default=None)

    @property
    def nodes(self) -> list[int | None]:
        """Return the node ids of the replicas."""
        return [replica.node for replica in self.replicas]

    @property
    def nodes_of_other_topic(self) -> list[int | None]:
        """Return the node ids of the replicas of another topic of that name."""
        return [replica.node for replica in self.other_topic]

    @property
    def in_sync_from(self) -> str:
        """Return where it stands who is in sync: in a metadata log, or all are taken to be."""
        return "metadata" if self.from_metadata else "all"


def group_replicas(
    replicas: Sequence[Replica],
    known: PartitionRecord | None,
    least_in_sync: int = 1,
    wanted: int | None = None,
) -> ReplicaGroup | None:
    """Return the group of the replicas of one partition; None if no replica is usable.

    `known` is what the newest metadata log says. The leader is the one `wanted`, that of the
    metadata log, or the furthest in sync. If the metadata log names no replica in sync, as in 4.x
    once all of them are gone, all replicas count as in sync.
    """
    loading = [replica for replica in replicas if replica.usable]
    if not loading:
        return None
    topic_id, is_sure = _topic_id(loading, known)
    usable = tuple(replica for replica in loading if replica.topic_id in (None, topic_id))
    if known and known.topic_id != topic_id and topic_id:
        known = None  # it speaks of another topic
    in_sync = known.isr if known and known.isr else tuple(replica.node for replica in usable)
    leader = known.leader if known and known.leader != NO_LEADER else None
    here = [replica for replica in usable if replica.node in in_sync]
    named = [
        replica
        for node in (wanted, leader)
        if node is not None
        for replica in usable
        if replica.node == node
    ]
    assumed = named[0] if named else furthest_of(here or usable)
    epoch = (
        max([replica.last_epoch for replica in usable] + [known.leader_epoch if known else -1]) + 1
    )
    enough = len(in_sync) >= least_in_sync
    watermark = _agreed(here, epoch) if enough else _checkpointed(here)
    committed = {replica.path: replica.committed for replica in usable}
    if known and known.isr and len(here) == len(in_sync):
        # All in sync have it: so it was committed, however old the checkpoints are.
        committed |= {replica.path: max(replica.committed, watermark or 0) for replica in here}
    furthest = furthest_of(usable)
    acknowledged = _acknowledged(usable, furthest, epoch, committed)
    return ReplicaGroup(
        topic=usable[0].topic,
        partition=usable[0].partition,
        replicas=usable,
        in_sync=in_sync,
        from_metadata=bool(known and known.isr),
        least_in_sync=least_in_sync,
        high_watermark=watermark,
        committed=max(committed.values()),
        leader=leader,
        assumed=assumed,
        furthest=furthest,
        truncations=tuple(truncations_of(usable, assumed, epoch, committed)),
        topic_id=topic_id if is_sure else None,
        other_topic=tuple(replica for replica in loading if replica not in usable),
        elr=known.elr if known else (),
        unusable=tuple(replica.node for replica in replicas if not replica.usable),
        members=known.replicas if known else (),
        nowhere=max(0, acknowledged - max(replica.log_end for replica in usable)),
    )


def shown_end(replica: Replica) -> int:
    """Return the highest offset that a log or a file next to it shows as acknowledged."""
    gone = replica.log_end + replica.acknowledged_gone if replica.acknowledged_gone else 0
    return max(replica.committed, replica.checkpointed or 0, gone)


def _acknowledged(
    replicas: Sequence[Replica], furthest: Replica, epoch: int, committed: dict[Path, int]
) -> int:
    """Return the highest offset that a replica or a checkpoint shows as acknowledged.

    `committed` is raised to it for each replica, as far as its log is the same as that of the
    `furthest`: so the loss with each leader counts from one offset. It is left as it is if the
    replica that shows the offset diverges from the furthest below it.
    """
    shown = {one.path: max(committed[one.path], shown_end(one)) for one in replicas}
    witness = max(replicas, key=lambda one: shown[one.path])
    offset = shown[witness.path]
    ends = agreed_ends(replicas, furthest, epoch)
    if ends[witness.path] >= min(witness.log_end, offset):
        for one in replicas:
            committed[one.path] = max(committed[one.path], min(offset, ends[one.path]))
    return offset


def loss_of(choice: Choice) -> tuple[float, int]:
    """Return a key by which the choice that loses least is the smallest."""
    may_be_lost = float("inf") if choice.may_be_lost is None else choice.may_be_lost
    return choice.acknowledged_lost + may_be_lost, choice.acknowledged_lost


def _topic_id(
    replicas: Sequence[Replica], known: PartitionRecord | None
) -> tuple[str | None, bool]:
    """Return the topic id to compare, and True if it is known that this id is the right one.

    It is the id that the metadata log has, if any replica has it, else that of most replicas. If as
    many replicas have another id, the right one is not known, and the smaller one is taken, for
    every order of the replicas.
    """
    topic_ids = [replica.topic_id for replica in replicas if replica.topic_id]
    if known and known.topic_id in topic_ids:
        return known.topic_id, True
    ranked = sorted({(-topic_ids.count(one), one) for one in topic_ids})
    if not ranked:
        return None, True
    return ranked[0][1], len(ranked) < 2 or ranked[0][0] < ranked[1][0]


def _agreed(replicas: Sequence[Replica], epoch: int) -> int | None:
    """Return where the first of the logs ends, or they differ by their leader epochs."""
    if not replicas:
        return None
    return min(agreed_ends(replicas, furthest_of(replicas), epoch).values())


def agreed_ends(replicas: Sequence[Replica], leader: Replica, epoch: int) -> dict[Path, int]:
    """Return how far each log is the same as that of `leader`, by their leader epochs."""
    ends = {leader.path: leader.log_end}
    for one in truncations_of(replicas, leader, epoch, {}):
        ends[one.follower.path] = one.follower.log_end if one.unknown else one.by_leader_epoch
    return ends


def _checkpointed(replicas: Sequence[Replica]) -> int | None:
    return max((replica.high_watermark for replica in replicas), default=None)


def furthest_of(replicas: Sequence[Replica]) -> Replica:
    """Return the longest of those with the newest leader epoch.

    What is longer and of an older epoch ends in records that a leader change has taken back.
    """
    return max(replicas, key=lambda replica: (replica.last_epoch, replica.log_end))


def truncations_of(
    replicas: Sequence[Replica], leader: Replica, epoch: int, committed: Mapping[Path, int]
) -> Iterator[FollowerTruncation]:
    """Yield the truncation of each other replica after `leader` began an epoch at its log end."""
    epochs = [*leader.epochs, (epoch, leader.log_end)]
    leading = LogState(epochs, leader.log_end, leader.high_watermark)
    # Without its older epochs a leader takes every log of a follower for its own.
    blind = leader.log_end > 0 and not leader.epochs
    for replica in replicas:
        if replica is not leader:
            cut = by_leader_epoch(replica.log, leading)
            old = by_high_watermark(replica.log).offset
            unknown = cut.unknown or blind
            done = committed.get(replica.path, replica.committed)
            yield FollowerTruncation(
                follower=replica,
                leader=leader,
                by_high_watermark=old,
                by_leader_epoch=cut.offset,
                requests=cut.requests,
                unknown=unknown,
                committed=done,
            )
