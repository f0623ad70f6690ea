"""The segments that are due, and their turns."""

from typing import Any

import pytest

from logtool.scrub.due import KnownSegment, Pacing, choose
from logtool.times import DAY_MS

NOW, CYCLE = 100, 30


def segment(name: str, **more: Any) -> KnownSegment:
    """Return a closed segment of 10 bytes; days in place of ms."""
    values: dict[str, Any] = {
        "size": 10, "active": False, "first_seen": 0, "checked": 90, "findings": 0, "begun": None,
        **more,
    }  # fmt: skip
    days = {name: values.pop(name) for name in ("first_seen", "checked", "begun")}
    return KnownSegment(
        path=name.encode(), home=b"t-0", topic=b"t", level="batches",
        unchecked_ms=days["first_seen"] * DAY_MS,
        **{f"{name}_ms": None if day is None else day * DAY_MS for name, day in days.items()},
        **values,
    )  # fmt: skip


def turns(*segments: KnownSegment, last: int | None = NOW - 1, begun: int = 0) -> list[str]:
    pacing = Pacing(
        NOW * DAY_MS, CYCLE * DAY_MS, begun * DAY_MS, None if last is None else last * DAY_MS
    )
    return [one.path.decode() for one in choose(segments, pacing)]


def test_each_kind_has_its_turn() -> None:
    found = turns(
        segment("old", checked=80), segment("young", checked=99), segment("late", checked=70),
        segment("new", checked=None, first_seen=100), segment("bad", findings=1, checked=99),
        segment("later", checked=60), segment("oldest", checked=79),
    )  # fmt: skip
    assert found == ["bad", "new", "later", "late"]


def test_the_oldest_fill_the_share() -> None:
    rows = [segment(f"s{number:02}", checked=97 - number % 20) for number in range(60)]
    found = turns(*rows)
    assert found == ["s19", "s39"]
    assert turns(*rows, last=NOW - 3) == ["s19", "s39", "s59", "s18", "s38", "s58"]


def test_many_new_segments_take_one_share_and_do_not_hold_up_the_old_ones() -> None:
    new = [segment(f"n{number:02}", checked=None, first_seen=100) for number in range(60)]
    old = [segment(f"o{number:02}", checked=90) for number in range(60)]
    found = turns(*new, *old)
    assert found == ["n00", "n01", "n02", "n03", "o00", "o01", "o02", "o03"]


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        (["s"], {"checked": 70}), (["s"], {"checked": None, "first_seen": 60}),
        (["s"], {"checked": None, "first_seen": 60, "active": True}), (["s"], {"size": 0}),
    ],
)  # fmt: skip
def test_a_segment_alone_is_due(chosen: list[str], why: dict[str, Any]) -> None:
    assert turns(segment("s", **why)) == chosen


def test_an_active_segment_is_due_by_its_age_alone() -> None:
    rows = [segment(f"s{number:02}", checked=80) for number in range(30)]
    active = segment("active", active=True, checked=None, first_seen=99)
    assert turns(*rows, active) == ["s00", "s01"]


def test_what_was_there_at_the_first_run_is_not_new() -> None:
    rows = [segment(f"s{number:02}", checked=None, first_seen=NOW) for number in range(60)]
    assert turns(*rows, last=None, begun=NOW) == ["s00", "s01"]


def test_a_segment_that_needs_more_than_a_run_comes_last() -> None:
    rows = [segment("bad", findings=3, begun=99), segment("late", checked=60, begun=98)]
    assert turns(*rows, segment("later", checked=65)) == ["later", "late", "bad"]


def test_after_a_long_pause_everything_is_due() -> None:
    rows = [segment(f"s{number}", checked=40) for number in range(9)]
    assert len(turns(*rows, last=40)) == 9


def test_a_segment_in_which_time_ran_out_takes_nothing_of_the_share() -> None:
    large = segment("large", size=600, checked=None, first_seen=99, begun=99)
    rows = [segment(f"s{number:02}", checked=None, first_seen=99) for number in range(60)]
    due = [f"s{number:02}" for number in range(8)]
    assert turns(large, *rows, last=None, begun=99) == [*due, "large"]


def test_segments_that_were_checked_since_time_ran_out_in_another_come_behind_it() -> None:
    rows = [
        segment("begun", checked=None, begun=98), segment("since", checked=99, findings=1),
        segment("before", checked=97, findings=1), segment("never", checked=None, findings=1),
    ]  # fmt: skip
    assert turns(*rows) == ["never", "before", "begun", "since"]
