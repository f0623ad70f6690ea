"""All leaders of a partition lose from one offset: the highest that anything shows acknowledged."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from logtool.commands.views.watermark_plan import plan_lines
from logtool.formats.messages.cluster_metadata import PartitionRecord
from logtool.watermark.election import choices
from logtool.watermark.replica import Replica
from logtool.watermark.replica_group import ReplicaGroup, group_replicas

STATE = PartitionRecord("id", 0, (2, 3, 4), (2, 3, 4), 3, 5, 9, (), (), ())
STOPS = dict.fromkeys((2, 3, 4), True)


def replica(
    node: int, end: int, row: int, epochs: Sequence[tuple[int, int]] = ((0, 0),)
) -> Replica:
    return Replica(
        path=Path(f"/mnt/{node}/booking-1"), topic="booking", partition=1, node=node,
        outcome="loads", log_end=end, checkpointed=row, high_watermark=min(row, end),
        acknowledged_gone=max(0, row - end), epochs=tuple(epochs), topic_id="id",
    )  # fmt: skip


def grouped(*replicas: Replica) -> ReplicaGroup:
    group = group_replicas(replicas, STATE, 2)
    assert group is not None
    return replace(group, choices=tuple(choices(group, STATE, STATE, 2, STOPS)))


def losses(group: ReplicaGroup) -> dict[int | None, tuple[int, int | None]]:
    return {
        one.replica.node: (one.acknowledged_lost, one.may_be_lost) for one in group.choices
    }  # fmt: skip


LOST_A_SEGMENT = (replica(2, 1518, 1510), replica(3, 1187, 1666), replica(4, 1360, 1311))


def test_what_no_replica_has_counts_for_every_leader() -> None:
    """The ends and high watermarks of a real cluster whose volumes were copied while it ran."""
    found = grouped(*LOST_A_SEGMENT)
    assert (found.nowhere, found.committed, found.committed_from) == (148, 1518, "checkpoint")
    assert losses(found) == {2: (148, 0), 4: (148 + 158, 0), 3: (148 + 331, 0)}
    assert (found.best_leader, {*found.keep_stopped}) == (2, {3, 4})


def test_two_replicas_with_the_same_log_lose_the_same() -> None:
    found = grouped(*LOST_A_SEGMENT[:1], replica(3, 1518, 1666), *LOST_A_SEGMENT[2:])
    assert losses(found) == {2: (148, 0), 3: (148, 0), 4: (306, 0)}
    assert found.keep_stopped == (4,)


def test_a_replica_in_sync_that_lacks_acknowledged_offsets_may_lack_all_that_another_has() -> None:
    found = grouped(replica(2, 1488, 1485), replica(3, 1683, 1644), replica(4, 1315, 1278))
    assert found.nowhere == 0
    assert losses(found) == {3: (0, 0), 2: (156, 39), 4: (329, 39)}


def test_an_older_end_is_not_acknowledged_by_a_high_watermark_that_diverges_from_it() -> None:
    epochs = ((0, 0), (1, 100))
    newer = replica(3, 150, 140, epochs)
    older = replica(2, 130, 100)
    found = grouped(newer, older)
    assert (found.nowhere, losses(found)[3]) == (0, (0, 0))
    assert losses(found)[2][0] == 40


def test_of_several_partitions_there_is_one_plan(tmp_path: Path) -> None:
    one = grouped(*LOST_A_SEGMENT)
    other = grouped(replica(2, 10, 10), replica(3, 20, 20), replica(4, 5, 5))
    both = [*plan_lines([one, other], [])]
    assert both[-1].endswith("logtool cluster")
    assert not any("kafka-leader-election.sh" in line for line in both)
    same = [*plan_lines([other, replace(other, partition=2)], [])]
    elections = [line for line in same if "kafka-leader-election.sh" in line]
    assert len(elections) == 2
    assert all("--bootstrap-server HOST:9092" in line for line in elections)
    assert not [*plan_lines([], [])]


@pytest.mark.parametrize("gone", [0, 148])
def test_a_leader_that_loses_only_what_no_replica_has_is_no_loss_that_can_be_avoided(
    gone: int,
) -> None:
    found = grouped(replica(2, 1518, 1518 + gone), replica(3, 1518, 1518))
    assert (found.nowhere, found.keep_stopped) == (gone, ())


def test_a_log_in_sync_that_lacks_acknowledged_offsets_puts_the_others_in_doubt() -> None:
    """The ends and high watermarks of volumes that were copied minutes apart."""
    found = grouped(replica(2, 200, 200), replica(3, 350, 300), replica(4, 300, 300))
    assert losses(found) == {2: (100, 50), 3: (0, 0), 4: (0, 50)}
    assert (found.best_leader, {*found.keep_stopped}) == (3, {2, 4})
