"""Values of a dump as JSON-ready values: bytes, times, ranges."""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass
from logtool.times import EXPECTED, parse_moment, shown

_NUMBER = re.compile(r"-?[0-9]{1,19}")


class Values(StrEnum):
    """Forms in which keys, values and headers are shown."""

    UTF8 = "utf8"
    HEX = "hex"
    BASE64 = "base64"
    LEN = "len"


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `first` to `last`, both included; None means no limit."""

    first: int | None = None
    last: int | None = None

    def overlaps(self, first: int, last: int) -> bool:
        """Return whether some number of ``first..last`` lies in the range."""
        return (self.first is None or last >= self.first) and (
            self.last is None or first <= self.last
        )


EVERYTHING = Range()


def show_bytes(data: bytes | None, values: Values) -> dict[str, Any] | None:
    """Return bytes as an object with the encoding as key, or None for null.

    ``{"size": 2, "utf8": "hi"}``, ``{"size": 1, "base64": "/w=="}`` if bytes are not UTF-8 (or as
    asked), ``{"size": 2, "hex": "6869"}``, ``{"size": 2}`` for `Values.LEN`.
    """
    if data is None:
        return None
    shown: dict[str, Any] = {"size": len(data)}
    if values is Values.HEX:
        shown["hex"] = data.hex()
    elif values is Values.UTF8:
        try:
            shown["utf8"] = data.decode("utf-8")
        except UnicodeDecodeError:
            shown["base64"] = base64.b64encode(data).decode("ascii")
    elif values is Values.BASE64:
        shown["base64"] = base64.b64encode(data).decode("ascii")
    return shown


def show_record(obj: Mapping[str, Any], values: Values) -> Mapping[str, Any]:
    """Return an object of a dump ready for JSON: only records hold bytes."""
    if obj["type"] not in ("record", "bad-record"):
        return obj
    shown = {name: value for name, value in obj.items() if name != "decoded"}
    decoded = obj.get("decoded")
    for name in ("key", "value"):
        content = getattr(decoded, name, None)
        if content is None:
            shown[name] = show_bytes(obj[name], values)
        else:
            shown[name] = {"size": len(obj[name]), "json": content}
    shown["headers"] = show_headers(obj["headers"], values)
    return shown


def show_headers(
    headers: Sequence[tuple[bytes, bytes | None]], values: Values
) -> list[dict[str, Any]]:
    """Return the headers of a record ready for JSON."""
    return [
        {"key": show_bytes(key, values), "value": show_bytes(value, values)}
        for key, value in headers
    ]


def or_null(value: int) -> int | None:
    """Return None for -1, with which Kafka marks a missing number."""
    return None if value == -1 else value


def parse_offsets(text: str) -> Range:
    """Parse ``A..B``, ``A..``, ``..B`` or ``A`` of offsets, both ends included."""
    first, last = _ends(text, "--offset", _parse_number, "numbers")
    return _range(text, "--offset", first, last)


def parse_timestamps(text: str, now_ms: int) -> tuple[Range, str | None]:
    """Parse a range of times like `parse_offsets`, each end as in `parse_moment`.

    A day lasts from its first to its last millisecond; ``-2h`` alone is ``-2h..``. Return the range
    in ms, and a line that shows it, or None if it does not depend on UTC or the present time.
    """
    option = "--timestamp"
    first, last = _ends(text, option, lambda end: parse_moment(end, now_ms), EXPECTED)
    if ".." not in text and last and last.is_ago:
        last = None
    found = _range(
        text, option, None if first is None else first.first, None if last is None else last.last
    )
    if not any(moment and moment.is_assumed for moment in (first, last)):
        return found, None
    return found, f"{option} {text} means {_described(found)}, in UTC"


def _described(times: Range) -> str:
    parts = [
        f"{word} {shown(end)}"
        for word, end in (("from", times.first), ("through", times.last))
        if end is not None
    ]
    return " ".join(parts)


End = TypeVar("End")


def _ends(
    text: str, option: str, parse: Callable[[str], End | None], what: str
) -> tuple[End | None, End | None]:
    """Return both ends of a range, None for one left out; `what` describes a valid end."""
    first, dots, last = text.partition("..")
    given = [first, last] if dots else [first, first]
    ends = [parse(end) if end else None for end in given]
    if not any(given) or any(end and value is None for end, value in zip(given, ends, strict=True)):
        raise UsageError(f"{option} {text}: expected A..B, A.., ..B or A, with {what}")
    return ends[0], ends[1]


def _range(text: str, option: str, first: int | None, last: int | None) -> Range:
    if first is not None and last is not None and first > last:
        raise UsageError(f"{option} {text}: the range is empty")
    return Range(first, last)


def _parse_number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None
