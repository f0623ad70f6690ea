import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtool.dump.values import Range, Values, parse_offsets, parse_timestamps, show_bytes
from logtool.errors import UsageError
from logtool.times import rfc3339

DECODERS = {
    "utf8": lambda text: text.encode(),
    "hex": bytes.fromhex,
    "base64": lambda text: __import__("base64").b64decode(text, validate=True),
}


@given(st.binary(), st.sampled_from([Values.UTF8, Values.HEX, Values.BASE64]))
def test_bytes_come_back_from_what_is_shown(data, values):
    shown = show_bytes(data, values)
    (encoding,) = set(shown) - {"size"}
    assert DECODERS[encoding](shown[encoding]) == data
    assert shown["size"] == len(data)


def test_null_is_not_empty():
    assert show_bytes(None, Values.UTF8) is None
    assert show_bytes(b"", Values.UTF8) == {"size": 0, "utf8": ""}


@given(st.integers(min_value=-(10**13), max_value=10**14))
def test_a_time_says_its_millisecond(milliseconds):
    moment = datetime.fromisoformat(rfc3339(milliseconds))
    whole, rest = divmod(milliseconds, 1000)
    assert moment == datetime.fromtimestamp(whole, UTC).replace(microsecond=rest * 1000)


@pytest.mark.parametrize("milliseconds", [2**63 - 1, -(2**63), 253402300800000])
def test_a_time_that_no_calendar_has_is_null(milliseconds):
    assert rfc3339(milliseconds) is None


def test_early_years_have_four_digits():
    assert rfc3339(-62135596800000) == "0001-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3..9", Range(3, 9)),
        ("3..", Range(3, None)),
        ("..9", Range(None, 9)),
        ("7", Range(7, 7)),
        ("0..0", Range(0, 0)),
    ],
)
def test_ranges_of_offsets(text, expected):
    assert parse_offsets(text) == expected


@pytest.mark.parametrize(
    "text", ["", "..", "a", "1..b", "9..3", "1...2", "1..2..3", "1e3", "\u0661"]
)
def test_what_is_no_range_is_wrong_usage(text):
    with pytest.raises(UsageError, match="--offset"):
        parse_offsets(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1000..2000", Range(1000, 2000)),
        ("-5..5", Range(-5, 5)),
        ("1970-01-01T00:00:01Z..1970-01-01T01:00:02+01:00", Range(1000, 2000)),
        ("1970-01-01T00:00:00.0019Z", Range(1, 1)),
        ("..1970-01-01T00:00:01Z", Range(None, 1000)),
    ],
)
def test_ranges_of_times_that_need_no_word(text, expected):
    assert parse_timestamps(text, NOW) == (expected, None)


# As `date -u -d ... +%s` gives them.
NOW = 1_795_387_230_500  # 2026-11-22T22:40:30.500Z
MIDNIGHT = 1_795_305_600_000  # of that day
HOUR, DAY = 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-22", Range(MIDNIGHT, MIDNIGHT + DAY - 1)),
        ("today", Range(MIDNIGHT, MIDNIGHT + DAY - 1)),
        ("yesterday", Range(MIDNIGHT - DAY, MIDNIGHT - 1)),
        ("2026-11-21..", Range(MIDNIGHT - DAY, None)),
        ("..2026-11-21", Range(None, MIDNIGHT - 1)),
        ("yesterday..2026-11-22", Range(MIDNIGHT - DAY, MIDNIGHT + DAY - 1)),
        ("2026-11-22T02:00", Range(MIDNIGHT + 2 * HOUR, MIDNIGHT + 2 * HOUR)),
        ("2026-11-22 02:00:00.5..2026-11-22T03:00Z",
         Range(MIDNIGHT + 2 * HOUR + 500, MIDNIGHT + 3 * HOUR)),
        ("-2h", Range(NOW - 2 * HOUR, None)),
        ("-2h..", Range(NOW - 2 * HOUR, None)),
        ("-90m..-3600s", Range(NOW - HOUR * 3 // 2, NOW - HOUR)),
        ("-1w..-1d", Range(NOW - 7 * DAY, NOW - DAY)),
        ("..now", Range(None, NOW)),
    ],
)  # fmt: skip
def test_times_without_a_zone_are_utc_and_the_range_is_shown(text, expected):
    found, shown = parse_timestamps(text, NOW)
    assert found == expected
    assert f"--timestamp {text} " in shown
    assert "UTC" in shown


@pytest.mark.parametrize(
    ("text", "times"),
    [("yesterday", ["2026-11-21T00:00:00.000Z", "2026-11-21T23:59:59.999Z"]),
     ("-2h..", ["2026-11-22T20:40:30.500Z"])],
)  # fmt: skip
def test_a_range_is_shown_with_the_ends_that_it_has(text, times):
    _, shown = parse_timestamps(text, NOW)
    assert re.findall(r"\d{4}-\d\d-\S+Z", shown) == times


@pytest.mark.parametrize(
    "text",
    ["noon", "1..noon", "2026-W47", "2026-11", "2026-02-30", "2h", "-2y", "+2h", "--2h", "-2h..."],
)
def test_what_is_no_time_is_wrong_usage(text):
    with pytest.raises(UsageError, match=r"--timestamp.*-2h.*yesterday"):
        parse_timestamps(text, NOW)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_a_range_overlaps_exactly_when_they_share_a_number(first, last, low, high):
    shared = set(range(first, last + 1)) & set(range(low, high + 1))
    if first <= last and low <= high:
        assert Range(first, last).overlaps(low, high) == bool(shared)
