"""Times: milliseconds since 1970 as text, and back."""

import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_TIME, LAST_TIME = -62_135_596_800_000, 253_402_300_799_999
"""Milliseconds of the first and the last moment that a calendar has: years 1 to 9999."""
_NUMBER = re.compile(r"-?[0-9]{1,19}")


def rfc3339(milliseconds: int | None) -> str | None:
    """Return a Kafka timestamp in UTC, or None where a calendar has no such time."""
    if milliseconds is None:
        return None
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%S.").rjust(20, "0") + f"{milliseconds % 1000:03d}Z"


def parse_time(text: str) -> int | None:
    """Return the ms of a time in milliseconds or RFC 3339 with a time zone, None for neither."""
    if _NUMBER.fullmatch(text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return (moment - _EPOCH) // timedelta(milliseconds=1)
