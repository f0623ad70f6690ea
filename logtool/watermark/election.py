"""Candidates for the leadership of a partition, and the cost of each choice.

With eligible leader replicas (KIP-966, ``eligible.leader.replicas.version`` 1, by default since
4.1) a replica that leaves the ISR while the ISR is smaller than ``min.insync.replicas`` stays
eligible: the high watermark no longer rises, so that the replica has every acknowledged record.
When a broker registers after an unclean stop, as its clean marker shows, the controller removes it
from both the ISR and the eligible replicas. When both are empty, the controller elects the last
known leader by itself, though unclean; it elects any other replica only if unclean elections are
allowed or requested.
Source: ``PartitionChangeBuilder.electAnyLeader``, ``maybePopulateTargetElr``,
``ClusterControlManager.registerBroker``, ``ReplicationControlManager.handleUncleanBrokerShutdown``
(Kafka 4.0 to 4.3).
"""

from collections.abc import Mapping, Sequence

from logtool.formats.messages.cluster_metadata import PartitionRecord
from logtool.watermark.comeback import leaders_after
from logtool.watermark.replica_group import (
    Choice,
    Electability,
    Election,
    ReplicaGroup,
    group_replicas,
)


def standings(
    known: PartitionRecord,
    nodes: Sequence[int | None],
    unclean_stops: Mapping[int, bool],
    least_in_sync: int = 1,
) -> list[Electability]:
    """Return the electability of each node, if all replicas come back.

    `unclean_stops` maps a node to True if its last stop was unclean; a node that is not in the
    mapping keeps its standing.
    """
    members = {*known.isr, *known.elr}
    left = {node for node in members if not unclean_stops.get(node, False)}
    last: frozenset[int] = frozenset()
    if not left:
        last = leaders_after(
            known,
            least_in_sync,
            has_elr=True,
            coming=frozenset(known.replicas),
            unclean=frozenset(node for node, is_unclean in unclean_stops.items() if is_unclean),
        )
    found = []
    for node in nodes:
        election = Election.UNCLEAN
        if node in left:
            election = Election.CLEAN
        elif node in last:
            election = Election.LAST_KNOWN_LEADER
        found.append(
            Electability(
                node=node,
                in_sync=node in known.isr,
                eligible=node in known.elr,
                loses_it=node in members and node not in left,
                election=election,
            )
        )
    return found


def choices(
    group: ReplicaGroup,
    state: PartitionRecord,
    known: PartitionRecord,
    least_in_sync: int,
    unclean_stops: Mapping[int, bool],
) -> list[Choice]:
    """Return every replica of a group as a leader, those first that may be elected clean.

    `state` is what the metadata log says, and `known` the same with those in sync who last were.
    """
    found = []
    nodes = [replica.node for replica in group.replicas]
    for replica, standing in zip(
        group.replicas, standings(state, nodes, unclean_stops, least_in_sync), strict=True
    ):
        led = group_replicas(group.replicas, known, least_in_sync, replica.node)
        if led is not None and led.assumed is replica:
            found.append(
                Choice(
                    replica=replica,
                    standing=standing,
                    acknowledged_lost=led.acknowledged_lost,
                    may_be_lost=led.may_be_lost,
                    truncations=led.truncations,
                )
            )
    order = list(Election)
    return sorted(found, key=lambda one: order.index(one.standing.election))
