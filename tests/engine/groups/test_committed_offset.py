"""A committed offset lies in the log, below its start or beyond its end."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from logtool.groups.committed_offset import CommittedOffset
from logtool.groups.ends import LogEnds

ENDS = LogEnds(
    path=Path("orders-0"), topic_id=None, log_start=20, log_end=50, last_stable=40, leader_epoch=1
)
COMMITTED = CommittedOffset(
    group="readers", topic="orders", partition=0, offset=20, record_offset=7, leader_epoch=None,
    metadata="", commit_ms=1000, member=None, expires_ms=None, topic_id=None, topic_is="unknown",
    extent=ENDS, epoch_today=None, pending=False, expired=False,
)  # fmt: skip


@pytest.mark.parametrize(
    ("offset", "place", "lag", "stable_lag", "codes"),
    [
        (19, "below-start", 31, 21, ["group/offset-below-start"]),
        (20, "in", 30, 20, []),
        (40, "in", 10, 0, []),
        (50, "in", 0, 0, []),
        (51, "beyond-end", -1, 0, ["group/offset-beyond-end"]),
    ],
)
def test_an_offset_may_be_anything_from_the_log_start_to_the_log_end(
    offset: int, place: str, lag: int, stable_lag: int, codes: list[str]
) -> None:
    one = replace(COMMITTED, offset=offset)
    assert (one.place, one.lag, one.stable_lag) == (place, lag, stable_lag)
    assert [finding.code for finding in one.findings()] == codes


def test_without_the_partition_nothing_is_known() -> None:
    one = replace(COMMITTED, extent=None)
    assert (one.place, one.lag, one.stable_lag) == ("unknown", None, None)
    assert list(one.findings()) == []


EPOCHS = ((0, 20), (2, 30), (3, 30), (6, 45))
AHEAD, ENDED = "group/epoch-ahead", "group/epoch-ended"


@pytest.mark.parametrize(
    ("epoch", "offset", "today", "codes"),
    [
        (0, 30, 6, []),
        (0, 31, 6, [ENDED]),
        (1, 31, 6, [ENDED]),
        (3, 45, 6, []),
        (3, 46, 6, [ENDED]),
        (5, 46, None, [ENDED]),
        (6, 50, 6, []),
        (7, 50, 7, []),  # a leader that has written nothing yet
        (7, 50, None, []),
        (7, 50, 6, [AHEAD]),
        (17, 19, 1, [AHEAD, "group/offset-below-start"]),
        (None, 46, 6, []),
    ],
)
def test_the_leader_epoch_of_a_commit_and_those_of_the_log(
    epoch: int | None, offset: int, today: int | None, codes: list[str]
) -> None:
    extent = replace(ENDS, epochs=EPOCHS)
    one = replace(COMMITTED, offset=offset, leader_epoch=epoch, epoch_today=today, extent=extent)
    assert [finding.code for finding in one.findings()] == codes


@pytest.mark.parametrize(
    ("epoch", "offset", "today", "goes_on"),
    [
        (None, 19, None, [20, 50, 40]),
        (None, 51, None, [20, 50, 40]),
        (6, 19, 6, [20, 50, 40]),
        (7, 19, 7, [20, 50, 40]),
        (0, 51, 6, [30, 0]),  # a Java consumer asks for the end of the epoch first
        (3, 51, None, [45, 3]),
        (6, 51, 6, [50, 6]),
        (7, 51, 7, [50, 7]),
        # A consumer ignores a leader whose epoch is below that of the commit.
        (7, 19, 6, []),
        (7, 19, None, []),
        (7, 51, None, []),
    ],
)
def test_where_a_consumer_goes_on_that_begins_outside_of_the_log(
    epoch: int | None, offset: int, today: int | None, goes_on: list[int]
) -> None:
    extent = replace(ENDS, epochs=EPOCHS)
    one = replace(COMMITTED, offset=offset, leader_epoch=epoch, epoch_today=today, extent=extent)
    assert where_it_goes_on(one) == goes_on


@pytest.mark.parametrize(
    ("offset", "epoch", "goes_on"),
    [(19, 1, [20, 50, 40]), (19, 2, []), (51, 1, [50, 1]), (51, 0, []), (51, None, [20, 50, 40])],
)
def test_without_the_epochs_of_a_log_only_the_last_one_is_known(
    offset: int, epoch: int | None, goes_on: list[int]
) -> None:
    assert where_it_goes_on(replace(COMMITTED, offset=offset, leader_epoch=epoch)) == goes_on


def test_readers_of_committed_records_go_on_at_the_last_stable_offset_only_where_it_differs() -> (
    None
):
    one = replace(COMMITTED, offset=19, extent=replace(ENDS, last_stable=50))
    assert where_it_goes_on(one) == [20, 50]


def where_it_goes_on(one: CommittedOffset) -> list[int]:
    """Return the numbers behind the semicolon of the finding about its place."""
    (finding,) = (found for found in one.findings() if "/offset-" in found.code)
    return [int(number) for number in re.findall(r"\d+", finding.message.partition(";")[2])]


def test_an_epoch_of_a_deleted_topic_says_nothing() -> None:
    one = replace(COMMITTED, leader_epoch=9, epoch_today=1, topic_id="A", topic_is="other")
    assert [finding.code for finding in one.findings()] == ["group/other-topic-id"]
