"""The outlook of a partition, and the order in which nodes start, from what leaders cost."""

import json
from pathlib import Path

import pytest

from logtool.cluster.partitions import LeaderOutlook, PartitionOutlook
from logtool.cluster.steps import steps, waves

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
        leaders=leaders, missing=missing, strays=strays, nowhere=nowhere,
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
