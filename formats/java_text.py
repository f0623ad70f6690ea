r"""Text as Kafka's Java reads it: lines, white space, numbers, UUIDs, JSON.

Every text file of a log directory is read through a handful of JDK calls, and their small print
decides what a broker accepts. They are imitated here and nowhere else:

==========================  =================================================================
`split_lines`               ``BufferedReader.readLine``: ``\n``, ``\r``, ``\r\n`` end a line
`Line.text`                 ``Files.newBufferedReader``: bytes that are not UTF-8 are an error
`split`                     ``Pattern.split``: empty strings at the end are dropped
`parse_int`, `parse_long`   ``Integer.parseInt``, ``Long.parseLong``: no space, ``+`` allowed
`parse_uuid`                ``org.apache.kafka.common.Uuid.fromString``
`hash_code`                 ``String.hashCode``
`parse_json_object`         Jackson with its defaults: what follows the object is ignored
==========================  =================================================================

Java also takes decimal digits of other scripts as digits; here only 0 to 9 are.
"""

import base64
import json
import re
import struct
from typing import Any

from logtool.lazy_dataclass import dataclass

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
SPACE = r"[ \t\n\x0b\f\r]"
"""Java's ``\\s``: ASCII white space only."""
NOT_SPACE = r"[^ \t\n\x0b\f\r]"
"""Java's ``\\S``."""
ZERO_UUID = "A" * 22

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_NUMBER = re.compile(r"[+-]?[0-9]+")
_UUID = re.compile(r"([A-Za-z0-9_-]{22})(?:==)?")
_QUOTE_SIZE = 60
_SURE_DIGITS = 9
"""Digits of a number that is below 2^31 in any case."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a text file, with its end."""

    number: int
    """Counted from 1."""
    position: int
    """Byte position in the file."""
    raw: bytes
    """The bytes, line end included."""

    @property
    def text(self) -> str | None:
        """Return the line without its end; None where it is not UTF-8, which Kafka refuses."""
        try:
            return self.raw.rstrip(b"\r\n").decode("utf-8")
        except UnicodeDecodeError:
            return None

    @property
    def quoted(self) -> str:
        """Return the line fit for a one-line message: printable, and cut when long."""
        text = ascii(self.raw.rstrip(b"\r\n").decode("utf-8", "backslashreplace"))
        return text if len(text) <= _QUOTE_SIZE else f"{text[:_QUOTE_SIZE]}..."


def split_lines(data: bytes) -> tuple[Line, ...]:
    """Split `data` into lines; joining their `raw` gives `data` back."""
    return tuple(
        Line(number, match.start(), match.group())
        for number, match in enumerate(_LINE.finditer(data), start=1)
    )


def split(text: str, pattern: re.Pattern[str]) -> list[str]:
    """Split as Java does: empty strings at the end are dropped, one at the start is kept."""
    if not pattern.search(text):
        return [text]
    parts = pattern.split(text)
    while parts and not parts[-1]:
        parts.pop()
    return parts


def parse_int(text: str) -> int | None:
    """Return the 32-bit number, or None where ``Integer.parseInt`` throws."""
    return _parse(text, INT_MAX)


def parse_long(text: str) -> int | None:
    """Return the 64-bit number, or None where ``Long.parseLong`` throws."""
    return _parse(text, LONG_MAX)


def parse_uuid(text: str) -> str | None:
    """Return the UUID in the 22 characters Kafka prints, or None where ``Uuid.fromString`` throws.

    Padding is accepted, and so are stray low bits in the last character, which Kafka drops.
    """
    match = _UUID.fullmatch(text)
    if not match:
        return None
    return format_uuid(base64.urlsafe_b64decode(match.group(1) + "=="))


def format_uuid(value: bytes) -> str:
    """Return 16 big-endian bytes as Kafka prints a UUID: base64url without padding."""
    return base64.urlsafe_b64encode(value).decode("ascii").rstrip("=")


def uuid_bytes(text: str) -> bytes:
    """Return the 16 big-endian bytes of a UUID that `parse_uuid` returned."""
    return base64.urlsafe_b64decode(text + "==")


def hash_code(text: str) -> int:
    """Return the hash of a text as Java computes it: from its UTF-16 units, in 32 bits."""
    data = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for (unit,) in struct.iter_unpack(">H", data):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - 2**32 if value > INT_MAX else value


def partition_of(key: str, count: int) -> int:
    """Return the partition that the coordinator of a key reads; its topic has `count` partitions.

    The key is the name of a group, or ``group:topic id:partition`` for the share coordinator
    (``SharePartitionKey``). The hash whose absolute value is too large for 32 bits counts as 0
    (``Utils.abs``).
    """
    value = hash_code(key)
    return 0 if value == -(2**31) else abs(value) % count


def parse_json_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object `text` begins with, or None; what follows it is ignored."""
    try:
        value, _ = _JSON.raw_decode(text.lstrip(" \t\r\n"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def json_int(value: Any) -> int | None:
    """Return a JSON value that is a 32-bit whole number, else None."""
    return _whole(value, INT_MAX)


def json_long(value: Any) -> int | None:
    """Return a JSON value that is a 64-bit whole number, else None."""
    return _whole(value, LONG_MAX)


def _parse(text: str, largest: int) -> int | None:
    if len(text) <= _SURE_DIGITS and text.isascii() and text.isdigit():
        return int(text)
    # The digits are counted first: int() refuses thousands of them with an exception.
    if not _NUMBER.fullmatch(text) or len(text.lstrip("+-").lstrip("0")) > len(str(largest)):
        return None
    sign, digits = (text[0], text[1:]) if text[0] in "+-" else ("", text)
    number = int(sign + (digits.lstrip("0") or "0"))
    return number if -largest - 1 <= number <= largest else None


def _whole(value: Any, largest: int) -> int | None:
    if type(value) is not int:  # A bool is an int, but not in JSON.
        return None
    return value if -largest - 1 <= value <= largest else None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_JSON = json.JSONDecoder(parse_constant=_refuse_constant)
