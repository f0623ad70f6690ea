"""Times: milliseconds since 1970 as text, and back."""

import re
from datetime import UTC, datetime, timedelta

from logtool.lazy_dataclass import dataclass

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_TIME, LAST_TIME = -62_135_596_800_000, 253_402_300_799_999
"""Milliseconds of the first and the last moment that a calendar has: years 1 to 9999."""
DAY_MS = 86_400_000
_NUMBER = re.compile(r"-?[0-9]{1,19}")
_AGO = re.compile(r"-([0-9]{1,9})([smhdw])")
_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": DAY_MS, "w": 7 * DAY_MS}
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_WITHOUT_TIME = re.compile(r"[^T ]*")
_DAYS = {"today": 0, "yesterday": 1}


def rfc3339(milliseconds: int | None) -> str | None:
    """Return a Kafka timestamp in UTC, or None where a calendar has no such time."""
    if milliseconds is None:
        return None
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def shown(milliseconds: int) -> str:
    """Return a time for people: as `rfc3339`, or its milliseconds where a calendar has no date."""
    return rfc3339(milliseconds) or str(milliseconds)


EXPECTED = (
    "milliseconds, a time such as 2026-11-22T10:30:00Z (UTC without a zone), a date, -2h, now, "
    "today or yesterday"
)
"""Description of the texts that `parse_moment` takes."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A time as a person gave it, in milliseconds since 1970."""

    first: int
    last: int
    """The last millisecond that is meant: that of the day for a date, else the same as `first`."""
    is_ago: bool = False
    """True if it is relative to the present, as ``-2h`` and ``now`` are."""
    is_assumed: bool = False
    """True if it is UTC only because no zone was given, or depends on the present."""


def parse_moment(text: str, now_ms: int) -> Moment | None:
    """Return the time that a text means, or None if it is not a time; `now_ms` is the present.

    It may be milliseconds, RFC 3339, RFC 3339 without a zone, which is taken as UTC, a date, which
    is a day of UTC, ``today``, ``yesterday``, ``now``, or a time before now: ``-90s``, ``-30m``,
    ``-2h``, ``-1d``, ``-1w``.
    """
    if _NUMBER.fullmatch(text):
        return Moment(int(text), int(text))
    if text == "now":
        return Moment(now_ms, now_ms, is_ago=True, is_assumed=True)
    if match := _AGO.fullmatch(text):
        then = now_ms - int(match.group(1)) * _UNITS[match.group(2)]
        return Moment(then, then, is_ago=True, is_assumed=True)
    if text in _DAYS:
        return _day(now_ms // DAY_MS * DAY_MS - _DAYS[text] * DAY_MS)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if _DATE.fullmatch(text):
        return _day((moment.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1))
    if _WITHOUT_TIME.fullmatch(text):
        return None  # ISO 8601 has more ways to write a date; as a moment they would surprise
    has_zone = moment.tzinfo is not None
    ms = ((moment if has_zone else moment.replace(tzinfo=UTC)) - _EPOCH) // timedelta(
        milliseconds=1
    )
    return Moment(ms, ms, is_assumed=not has_zone)


def _day(first: int) -> Moment:
    return Moment(first, first + DAY_MS - 1, is_assumed=True)
