"""Copies are identical if they have the same batches and ends, and no damage."""

from dataclasses import replace
from typing import Any

import pytest

from logtool.copies.batches import DamagedRange
from logtool.copies.copy import BatchTotals, Copy
from logtool.copies.pair import CopyPair, Status
from logtool.copies.verdict import CopiesVerdict

LEFT = Copy(
    topic="orders", partition=0, path="a/orders-0", node=1, topic_id=None, log_start=0,
    log_end=100, segments=1, bytes=1000, high_watermark=None, cleaner_offset=None,
    epochs=((0, 0),), tally=BatchTotals(), damages=(), label="1",
)  # fmt: skip
DAMAGE = DamagedRange(0, 900, 100, "crc", "expected another CRC", 90, 99)
TAIL = DamagedRange(0, 1000, 10, "incomplete", "10 bytes are left", 100, None, tail=True)


def verdict(status: Status = Status.SAME, **changes: Any) -> CopiesVerdict:
    right = replace(LEFT, path="b/orders-0", node=2, label="2", **changes)
    return CopiesVerdict(
        copies=(LEFT, right), pairs=(CopyPair(LEFT, right, status),), wounds=(), status=status,
        superset=(), behind=(),
    )  # fmt: skip


def test_copies_with_equal_batches_and_ends_are_identical() -> None:
    assert verdict().identical


@pytest.mark.parametrize(
    "changes",
    [{"log_start": 1}, {"log_end": 101}, {"epochs": ((0, 0), (1, 50))}, {"damages": (DAMAGE,)},
     {"damages": (TAIL,)}],
)  # fmt: skip
def test_another_end_another_epoch_or_damage_makes_a_difference(changes: dict) -> None:
    assert not verdict(**changes).identical


@pytest.mark.parametrize("status", [one for one in Status if one is not Status.SAME])
def test_copies_with_other_batches_are_not_identical(status: Status) -> None:
    assert not verdict(status).identical


def test_an_unfinished_append_is_not_damage_that_a_person_must_act_on() -> None:
    assert verdict(damages=(DAMAGE, TAIL)).damaged == ("2",)
    assert verdict(damages=(TAIL,)).damaged == ()


@pytest.mark.parametrize(
    ("runs", "end", "stuck"),
    [
        ([(0, 0), (17, 40), (2, 60)], 40, True),
        ([(0, 0), (17, 40), (2, 60)], 50, True),
        ([(0, 0), (17, 40), (2, 60)], 60, False),
        ([(0, 0), (17, 40)], 40, False),
        ([(0, 0), (1, 40), (2, 60)], 40, False),
        ([(0, 0), (-1, 40), (2, 60)], 40, False),
        ([(0, 0), (17, 40), (-1, 60), (2, 80)], 40, True),
    ],
)
def test_a_follower_does_not_pass_a_leader_epoch_above_that_of_later_batches(
    runs: list[tuple[int, int]], end: int, stuck: bool
) -> None:
    leader = replace(LEFT, tally=BatchTotals())
    leader.tally.epochs = runs
    follower = replace(LEFT, path="b/orders-0", node=2, label="2", log_end=end)
    both = replace(verdict(Status.BEHIND), copies=(leader, follower), behind=("2",))
    assert both.stuck == (("2",) if stuck else ())
    assert replace(both, behind=()).stuck == ()
