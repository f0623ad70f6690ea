"""The outlook of a partition, and the order in which nodes start, from what leaders cost."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logtool.cluster.order import waves
from logtool.cluster.partitions import LeaderOutlook, PartitionOutlook, outlook
from logtool.cluster.steps import steps
from logtool.formats.messages.cluster_metadata import PartitionRecord
from logtool.metadata.state import MetadataImage
from logtool.watermark.comeback import leaders_after
from logtool.watermark.election import choices
from logtool.watermark.replica import Replica
from logtool.watermark.replica_group import group_replicas

SAFE, MAYBE, LOSES, UNKNOWN = (0, 0), (0, 5), (3, 2), (0, None)


def leader(node: int, cost: tuple[int, int | None], *, elected: bool = True) -> LeaderOutlook:
    return LeaderOutlook(
        node=node,
        path=Path(f"/mnt/{node}/orders-0"),
        election="clean" if elected else "unclean",
        may_be_elected=elected,
        log_end=100 - (cost[1] or 0),
        high_watermark=None,
        acknowledged_lost=cost[0],
        may_be_lost=cost[1],
        cuts=(),
        open_transaction=None,
    )


def partition(
    *leaders: LeaderOutlook, topic: str = "orders", missing: tuple[int, ...] = (),
    in_sync: tuple[int, ...] = (1, 2, 3), strays: tuple[int, ...] = (), nowhere: int = 0,
) -> PartitionOutlook:  # fmt: skip
    return PartitionOutlook(
        topic=topic, partition=0, topic_id="id", image_leader=1, in_sync=in_sync, eligible=(),
        leaders=leaders, missing=missing, away=missing, strays=strays, nowhere=nowhere,
        may_be_leaderless=bool({*in_sync} & {*missing}),
    )  # fmt: skip


STATUSES = {
    "all have everything": (partition(leader(1, SAFE), leader(2, SAFE)), "in-order", False),
    "one lacks what may count": (partition(leader(1, SAFE), leader(2, MAYBE)), "may-lose", True),
    "each lacks what may count":
        (partition(leader(1, MAYBE), leader(2, MAYBE)), "may-lose", False),
    "one lacks an unknown number":
        (partition(leader(1, SAFE), leader(2, UNKNOWN)), "may-lose", True),
    "one lacks what was acknowledged":
        (partition(leader(1, SAFE), leader(2, LOSES)), "loses", True),
    "one that is not elected lacks it":
        (partition(leader(1, SAFE), leader(2, LOSES, elected=False)), "in-order", False),
    "one that is not elected is better":
        (partition(leader(1, LOSES), leader(2, SAFE, elected=False)), "loses", True),
    "none is elected": (partition(leader(1, SAFE, elected=False)), "leaderless", True),
    "no copy has all": (partition(leader(1, SAFE), nowhere=4), "loses", False),
    "one in sync is missing":
        (partition(leader(1, SAFE), missing=(3,)), "may-be-leaderless", True),
    "one out of sync is missing":
        (partition(leader(1, SAFE), missing=(3,), in_sync=(1,)), "in-order", False),
    "one is a stray": (partition(leader(1, SAFE), strays=(2,), in_sync=(1,)), "stray", False),
    "all are strays": (partition(strays=(1, 2)), "stray", False),
    "there is no copy": (partition(missing=(1, 2)), "no-copy", False),
}  # fmt: skip


@pytest.mark.parametrize("name", STATUSES)
def test_the_status_is_the_gravest_that_may_happen(name: str) -> None:
    found, status, is_disputed = STATUSES[name]
    assert (found.status, found.is_disputed) == (status, is_disputed)
    assert bool(waves([found])) == is_disputed


ELR = "eligible.leader.replicas.version"
ELECTIONS = {
    "any replica in sync may be the last one":
        (0, (1, 2, 3), (), 1, (1, 2, 3), {1, 2, 3}, False),
    "the last one may be missing": (0, (1, 2, 3), (), 2, (1, 2), {1, 2}, True),
    "a replica out of sync is not elected": (0, (1, 2), (), 1, (2, 3), {2}, True),
    "all in sync are missing": (0, (1,), (), 1, (2, 3), set(), True),
    "with ELR the last leader is elected": (1, (1, 2, 3), (), 2, (1, 2, 3), {1, 2, 3}, False),
    "a missing one is fenced first": (1, (1, 2, 3), (), 2, (1, 2), {1, 2}, True),
    "a missing one stays eligible": (1, (1, 2), (), 2, (1, 3), set(), True),
    "with one in sync at least, a missing one is fenced first":
        (1, (1, 2), (), 1, (1, 3), {1}, True),
    "a missing eligible one stays eligible": (1, (1,), (2,), 2, (1, 3), set(), True),
    "an eligible one may be fenced after the last leader registers":
        (1, (1,), (2,), 2, (1, 2), {1, 2}, False),
    "the last two may be there": (1, (1, 2, 3), (), 2, (2, 3), {2, 3}, True),
    "the one in sync may be there alone": (1, (1, 2, 3), (), 1, (3,), {3}, True),
}  # fmt: skip
"""ELR level, ISR, ELR, least in sync, nodes that start; nodes that may lead; perhaps none leads."""


@pytest.mark.parametrize("name", ELECTIONS)
def test_the_order_of_the_fencing_decides_who_may_lead(name: str) -> None:
    level, isr, elr, least, nodes, elected, may_be_leaderless = ELECTIONS[name]
    state = PartitionRecord("id", 0, (1, 2, 3), isr, isr[0], 5, 9, (), elr, ())
    image = MetadataImage(
        topics={"orders": "id"}, names={"id": "orders"}, partitions={"id": {0: state}},
        features={ELR: level},
    )  # fmt: skip
    replicas = [replica(node) for node in nodes]
    group = group_replicas(replicas, state, least)
    assert group is not None
    stops = dict.fromkeys(nodes, True) if level else {}
    group = replace(group, choices=tuple(choices(group, state, state, least, stops)))
    found = outlook(replicas, group, image)
    assert {*found.elected_nodes} == elected
    assert found.may_be_leaderless == may_be_leaderless


CLEAN_STOPS = {
    "one that stopped cleanly leads": ((1, 2, 3), (), 2, {2}, {1, 2, 3}, {1, 2, 3}, False),
    "an eligible one that stopped cleanly leads": ((1,), (2,), 2, {2}, {1, 2}, {2}, False),
    "of two last ones one stopped cleanly": ((1, 2), (), 2, {1}, {1, 2}, {1}, False),
    "a missing one does not matter then": ((1, 2), (), 2, {1}, {1}, {1}, False),
    "the last leader comes back": ((), (), 2, set(), {1, 3}, {3}, False),
    "the last leader is missing": ((), (), 2, set(), {1, 2}, set(), True),
    "an eligible one is missing": ((), (2,), 2, set(), {1, 3}, set(), True),
}  # fmt: skip
"""ISR, ELR, least in sync, nodes that stopped cleanly; those that start; who may lead; none may."""


@pytest.mark.parametrize("name", CLEAN_STOPS)
def test_an_eligible_node_that_stopped_cleanly_comes_before_the_last_leader(name: str) -> None:
    isr, elr, least, clean, nodes, elected, may_be_leaderless = CLEAN_STOPS[name]
    leader, last = (isr[0], ()) if isr else (-1, (3,))
    state = PartitionRecord("id", 0, (1, 2, 3), isr, leader, 5, 9, (), elr, last)
    image = MetadataImage(
        topics={"orders": "id"}, names={"id": "orders"}, partitions={"id": {0: state}},
        features={ELR: 1},
    )  # fmt: skip
    replicas = [replica(node) for node in sorted(nodes)]
    group = group_replicas(replicas, state, least)
    assert group is not None
    stops = {node: node not in clean for node in nodes}
    group = replace(group, choices=tuple(choices(group, state, state, least, stops)))
    found = outlook(replicas, group, image)
    assert ({*found.elected_nodes}, found.may_be_leaderless) == (elected, may_be_leaderless)


def test_an_eligible_node_that_is_fenced_already_cannot_lead_in_the_meantime() -> None:
    # A start of 4.3.1 from volumes elected node 12, which was not fenced, with ISR [13], ELR [12].
    state = PartitionRecord("id", 0, (12, 13), (13,), 13, 5, 9, (), (12,), ())
    both = frozenset((12, 13))

    def leaders(*fenced: int) -> frozenset[int]:
        return leaders_after(
            state, 2, has_elr=True, coming=both, unclean=both, fenced=frozenset(fenced)
        )

    assert leaders() == {12, 13}
    assert leaders(12) == {13}


def replica(node: int, end: int = 10) -> Replica:
    return Replica(
        path=Path(f"/mnt/{node}/orders-0"), topic="orders", partition=0, node=node,
        outcome="loads", log_end=end, epochs=((0, 0),), topic_id="id",
    )  # fmt: skip


def test_an_empty_log_that_leads_costs_all() -> None:
    state = PartitionRecord("id", 0, (1, 2), (1, 2), 1, 5, 9, (), (), ())
    image = MetadataImage(topics={"orders": "id"}, partitions={"id": {0: state}})
    whole = replace(replica(1), checkpointed=8, high_watermark=8)
    new = replace(replica(2, 0), epochs=(), is_new=True)
    group = group_replicas([whole, new], state)
    assert group is not None
    group = replace(group, choices=tuple(choices(group, state, state, 1, {})))
    found = outlook([whole], group, image)
    assert (found.status, found.missing, found.away, found.best_node) == ("loses", (2,), (), 1)
    (worst,) = (one for one in found.elected if one.node == 2)
    assert (worst.is_new, worst.acknowledged_lost, worst.may_be_lost) == (True, 8, 2)
    assert [(cut.node, cut.offset, cut.offsets) for cut in worst.cuts] == [(1, 0, 10)]


def test_the_node_that_is_best_for_most_partitions_starts_first() -> None:
    mine = [
        partition(leader(1, MAYBE), leader(2, SAFE), topic="a"),
        partition(leader(1, LOSES), leader(2, SAFE), topic="b"),
        partition(leader(1, SAFE), leader(2, MAYBE), topic="c"),
        partition(leader(3, SAFE), leader(4, MAYBE), topic="d"),
        partition(leader(1, SAFE), leader(2, SAFE), topic="e"),
    ]
    found = [
        (wave.node, [one.topic for one in wave.leads], [one.topic for one in wave.gives_up])
        for wave in waves(mine)
    ]
    assert found == [(2, ["a", "b"], ["c"]), (3, ["d"], [])]


def test_the_steps_elect_the_partitions_that_the_node_shall_lead() -> None:
    mine = [partition(leader(1, MAYBE), leader(2, SAFE), topic="a b")]
    found = steps((), None, (), mine)
    assert [one.number for one in found] == list(range(1, len(found) + 1))
    (elects,) = (one for one in found if one.file)
    assert elects.file is not None
    assert json.loads(elects.file) == {"partitions": [{"topic": "a b", "partition": 0}]}
    assert elects.command is not None
    assert elects.command.endswith(f"--path-to-json-file {elects.file_name}")


@pytest.mark.parametrize(
    ("lost", "others", "sources"),
    [(0, (0, 0), []), (5, (0, 0), [2]), (5, (3, 0), [3]), (5, (3, 3), [])],
)
def test_a_replica_that_loses_sound_records_is_filled_from_the_furthest_whole_copy(
    lost: int, others: tuple[int, int], sources: list[int]
) -> None:
    state = PartitionRecord("id", 0, (1, 2, 3), (1, 2, 3), 1, 5, 9, (), (), ())
    ends = zip((20, 15), others, strict=True)
    replicas = [
        replace(replica(1, 10), lost_records=lost),
        *(replace(replica(n, end), lost_records=gone) for n, (end, gone) in enumerate(ends, 2)),
    ]
    group = group_replicas(replicas, state, 2)
    assert group is not None
    found = outlook(replicas, group, None)
    mine = [one for one in found.repairs if one.node == 1]
    assert [(one.source_node, one.records) for one in mine] == [(n, lost) for n in sources]
    commands = [one.command for one in steps((), None, (), [found]) if one.command]
    for one in found.repairs:
        assert f"logtool recover --apply --fill-from {one.source} {one.path}" in commands


def test_a_replica_that_has_lost_its_end_is_filled_before_any_step_of_the_start() -> None:
    state = PartitionRecord("id", 0, (1, 2, 3), (1, 2, 3), 1, 5, 9, (), (), ())
    image = MetadataImage(
        topics={"orders": "id"}, names={"id": "orders"}, partitions={"id": {0: state}}
    )
    short = replace(replica(1, 10), checkpointed=25, high_watermark=10, acknowledged_gone=15)
    replicas = [short, replica(2, 20), replica(3, 15)]
    group = group_replicas(replicas, state, 2)
    assert group is not None
    group = replace(group, choices=tuple(choices(group, state, state, 2, {})))
    found = outlook(replicas, group, image)
    assert (found.nowhere, found.status) == (5, "loses")
    assert {one.node: one.acknowledged_lost for one in found.leaders} == {2: 5, 3: 10, 1: 15}
    (repair,) = found.repairs
    assert (repair.node, repair.source_node, repair.records, repair.offsets) == (1, 2, 0, 10)
    made = steps((), None, (), [found])
    fill = f"logtool recover --apply --fill-from {repair.source} {repair.path}"
    assert [one.command for one in made if one.command] == [fill]
    assert not any(one.starts for one in made)


@pytest.mark.parametrize(
    ("copy", "sources"),
    [
        ({}, [2]),
        ({"missing": ((4, 4),)}, []),
        ({"log_start": 5}, []),
        ({"log_end": 5}, []),
        ({"lost_records": 1}, []),
    ],
)
def test_a_replica_that_lacks_segments_is_filled_from_a_copy_that_has_them(
    copy: dict[str, Any], sources: list[int]
) -> None:
    state = PartitionRecord("id", 0, (1, 2), (1, 2), 1, 5, 9, (), (), ())
    replicas = [replace(replica(1, 10), missing=((3, 6),)), replace(replica(2, 10), **copy)]
    group = group_replicas(replicas, state, 2)
    assert group is not None
    group = replace(group, choices=tuple(choices(group, state, state, 2, {})))
    found = outlook(replicas, group, None)
    mine = [one for one in found.repairs if one.node == 1 and one.missing]
    assert [(one.source_node, one.missing, one.records) for one in mine] == [
        (source, 4, 0) for source in sources
    ]


def test_offsets_below_the_log_start_are_not_missing() -> None:
    one = replace(replica(1, 10), missing=((1, 2), (4, 6)))
    assert (one.missing_below(10), one.missing_below(6)) == (5, 4)
    assert replace(one, log_start=5).missing_below(10) == 2
    assert replace(one, log_start=8).missing_below(10) == 0


def test_offsets_between_two_segments_are_lost_if_their_replica_leads() -> None:
    state = PartitionRecord("id", 0, (1, 2), (1, 2), 1, 5, 9, (), (), ())
    image = MetadataImage(topics={"orders": "id"}, partitions={"id": {0: state}})
    replicas = [
        replace(one, checkpointed=8, high_watermark=8)
        for one in (replace(replica(1, 10), missing=((3, 6),)), replica(2, 10))
    ]
    group = group_replicas(replicas, state, 2)
    assert group is not None
    group = replace(group, choices=tuple(choices(group, state, state, 2, {})))
    found = outlook(replicas, group, image)
    assert {one.node: (one.acknowledged_lost, one.may_be_lost) for one in found.leaders} == {
        1: (4, 0), 2: (0, 0),
    }  # fmt: skip
    assert (found.status, found.best_node) == ("loses", 2)


def test_a_lost_log_without_any_other_copy_loses_what_a_checkpoint_shows() -> None:
    state = PartitionRecord("id", 0, (1,), (1,), 1, 5, 9, (), (), ())
    image = MetadataImage(topics={"orders": "id"}, partitions={"id": {0: state}})
    new = replace(replica(1, 0), epochs=(), is_new=True, acknowledged_gone=25)
    group = group_replicas([new], state)
    assert group is not None
    group = replace(group, choices=tuple(choices(group, state, state, 1, {})))
    found = outlook([new], group, image)
    assert (found.status, found.nowhere, found.elected[0].acknowledged_lost) == ("no-copy", 25, 25)
