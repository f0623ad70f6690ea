"""Truncation of followers: the rules of KIP-101 and KIP-279, offset by offset."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtool.watermark.simulation.truncation import (
    Cut,
    LogState,
    by_high_watermark,
    by_leader_epoch,
    end_offset_for,
)

CACHE = [(2, 5), (4, 9), (7, 12)]


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(7, (7, 20)), (8, None), (4, (4, 12)), (5, (4, 12)), (3, (2, 9)), (2, (2, 9)), (1, (1, 5))],
)
def test_an_epoch_ends_where_the_next_known_one_starts(
    epoch: int, answer: tuple[int, int] | None
) -> None:
    assert end_offset_for(CACHE, 20, epoch) == answer


def test_without_epochs_nothing_is_known() -> None:
    assert end_offset_for([], 20, 0) is None


def test_a_high_watermark_beyond_the_log_end_cuts_nothing() -> None:
    assert by_high_watermark(LogState([], 7, 9)) == Cut(7, 0)
    assert by_high_watermark(LogState([], 7, 3)) == Cut(3, 0)


def test_a_follower_keeps_all_that_the_leader_has_of_the_same_epoch() -> None:
    follower = LogState([(0, 0)], 2, 1)
    leader = LogState([(0, 0), (1, 2)], 2, 1)
    assert by_leader_epoch(follower, leader) == Cut(2, 1)


def test_a_follower_that_is_longer_is_cut_to_where_the_leader_took_over() -> None:
    follower = LogState([(0, 0)], 10, 3)
    leader = LogState([(0, 0), (1, 6)], 8, 3)
    assert by_leader_epoch(follower, leader) == Cut(6, 1)


def test_epochs_that_the_leader_never_saw_are_asked_for_one_after_the_other() -> None:
    """The leader led epochs 0, 3 and 4; the follower led 1 and 2 in between."""
    follower = LogState([(0, 0), (1, 10), (2, 15)], 20, 5)
    leader = LogState([(0, 0), (3, 12), (4, 18)], 18, 5)
    # Of epoch 2 the leader knows only that 0 ended at 12; the follower left 0 at 10.
    assert by_leader_epoch(follower, leader) == Cut(10, 1)
    between = LogState([(0, 0), (2, 10), (3, 15)], 18, 5)
    # Asked for 3 it answers with 1: that the follower never saw, so it goes back to the end of 0.
    assert by_leader_epoch(between, LogState([(0, 0), (1, 8), (4, 12)], 12, 5)) == Cut(8, 2)


def test_a_leader_that_knows_no_epoch_leaves_the_high_watermark_to_decide() -> None:
    assert by_leader_epoch(LogState([(0, 0)], 10, 4), LogState([], 8, 8)) == Cut(4, 1, unknown=True)
    assert by_leader_epoch(LogState([], 10, 4), LogState(CACHE, 8, 8)) == Cut(4, 0, unknown=True)


def test_logs_with_no_epoch_in_common_are_not_distinguished() -> None:
    """Kafka takes a follower that knows no older epoch for one that never kept them."""
    assert by_leader_epoch(LogState([(7, 0)], 1, 0), LogState([(6, 0), (8, 1)], 1, 0)).offset == 1


def test_a_follower_that_knows_only_newer_epochs_takes_the_end_that_the_leader_names() -> None:
    assert by_leader_epoch(LogState([(5, 3)], 10, 4), LogState([(2, 0), (7, 6)], 8, 8)) == Cut(6, 1)


@st.composite
def two_logs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Return the epochs of the records of two logs that are the same up to some offset.

    An epoch has one leader, so behind that offset no epoch is in both.
    """
    common = sorted(draw(st.lists(st.integers(0, 4), min_size=1, max_size=6)))
    rest = draw(st.lists(st.tuples(st.integers(5, 9), st.booleans()), max_size=10))
    first_is_odd = draw(st.booleans())
    one = sorted(e for e, _ in rest if (e % 2 == 1) is first_is_odd)
    other = sorted(e for e, _ in rest if (e % 2 == 1) is not first_is_odd)
    return common + one, common + other


def log(records: list[int]) -> LogState:
    starts = [(e, i) for i, e in enumerate(records) if i == 0 or records[i - 1] != e]
    return LogState(starts, len(records), 0)


@given(two_logs())
def test_the_cut_is_where_two_logs_part(logs: tuple[list[int], list[int]]) -> None:
    follower, leader = logs
    state = log(leader)
    led = LogState([*state.epochs, (10, len(leader))], len(leader), 0)
    same = 0
    while same < min(len(follower), len(leader)) and follower[same] == leader[same]:
        same += 1
    assert by_leader_epoch(log(follower), led).offset == same
