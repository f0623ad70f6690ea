"""The records that a majority of the replicas of Redpanda has are committed."""

from pathlib import Path

import pytest

from logtool.loading.result import Outcome
from logtool.watermark import raft
from logtool.watermark.replica import Replica


def replica(node: int, end: int, term: int = 1) -> Replica:
    return Replica(
        path=Path(f"{node}/kafka/orders/0_1"), topic="orders", partition=0, node=node,
        outcome=str(Outcome.LOADS), log_end=end, epochs=((term, 0),), keeps_watermark=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ends", "majority", "committed"),
    [
        ([9], 1, None),
        ([9, 7], 2, 7),
        ([9, 7, 5], 2, 7),
        ([9, 7, 5, 3], 3, 5),
        ([9, 7, 5, 3, 1], 3, 5),
    ],
)
def test_more_than_half_of_the_replicas_are_a_majority(
    ends: list[int], majority: int, committed: int | None
) -> None:
    group = raft.group([replica(node, end) for node, end in enumerate(ends)], None)
    assert (group.least_in_sync, group.high_watermark) == (majority, committed)
    assert group.furthest.log_end == ends[0]


def test_a_longer_log_of_an_older_term_is_not_furthest() -> None:
    group = raft.group([replica(0, 9, term=1), replica(1, 5, term=2), replica(2, 5, term=2)], None)
    assert (group.furthest.node, group.high_watermark) == (1, 5)


def test_the_leader_that_is_asked_for_is_assumed() -> None:
    replicas = [replica(0, 9), replica(1, 7), replica(2, 5)]
    assert raft.group(replicas, 1).assumed.node == 1
    assert raft.group(replicas, 8).assumed.node == 0
