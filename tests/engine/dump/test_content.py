"""The content by which records are selected."""

from typing import Any

import pytest

from logtool.dump.selecting import ANY_CONTENT, parse_content


def record(**changes: Any) -> dict[str, Any]:
    found = {"key": b"k", "value": b"v", "headers": [(b"name", b"x")], "control": False}
    return found | changes


@pytest.mark.parametrize(
    ("content", "matches"),
    [
        (parse_content(["k"], [], [], [], []), True),
        (parse_content(["j", "k"], [], [], [], []), True),
        (parse_content(["j"], [], [], [], []), False),
        (parse_content(["k"], ["w"], [], [], []), False),
        (parse_content([], ["v"], ["name"], [], []), True),
        (parse_content([], [], ["name=y"], [], []), False),
        (parse_content([], [], [], ["k|v"], []), True),
        (parse_content([], [], [], ["k", "z"], []), False),
    ],
)
def test_every_part_must_match_and_no_control_record_does(content, matches: bool) -> None:
    assert content.holds(record()) == matches
    assert not content.holds(record(control=True))


def test_a_null_is_not_an_empty_key() -> None:
    null, empty = (parse_content([text], [], [], [], []) for text in ("null:", ""))
    assert [null.holds(record(key=key)) for key in (None, b"")] == [True, False]
    assert [empty.holds(record(key=key)) for key in (None, b"")] == [False, True]


def test_without_content_each_record_matches() -> None:
    assert ANY_CONTENT.holds(record(control=True, key=None, value=None, headers=[]))
