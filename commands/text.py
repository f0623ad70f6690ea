"""Values as text that is safe to print: escaped, sized, dated. Nothing here prints."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logtool.summary import Summary

_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_NAMED_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape(text: str) -> str:
    r"""Return `text` with every character that is not printable as ``\n``, ``\xNN``, ``\uNNNN``.

    That covers terminal controls, line ends, directional overrides and bytes of a file name that
    are not UTF-8. A backslash stays as it is: use `quote` where the text must be unambiguous.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape_one(c) for c in text)


def quote(text: str) -> str:
    """Return `text` in double quotes, escaped so that it can be read back."""
    return '"' + escape(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def to_json(obj: Mapping[str, Any]) -> str:
    """Return one line of JSON in ASCII alone, so that no terminal control can be in it."""
    # json.dumps leaves DEL as it is; outside of strings it cannot occur.
    return json.dumps(obj, ensure_ascii=True, allow_nan=False).replace("\x7f", "\\u007f")


def cell(value: object) -> str:
    """Return a value of a JSON object as the text of one table cell, unescaped."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def size(count: float) -> str:
    """Return a number of bytes in a unit that gives a short number."""
    for unit in _BYTE_UNITS:
        if count < 1024 or unit == _BYTE_UNITS[-1]:
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


def duration(seconds: float) -> str:
    """Return a duration as a person says it."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 batch``, ``2 batches``: the number with its noun."""
    word = noun if number == 1 else plural or f"{noun}s"
    return f"{number:,} {word}"


def _escape_one(char: str) -> str:
    code = ord(char)
    if char in _NAMED_ESCAPES:
        return _NAMED_ESCAPES[char]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def state(summary: "Summary") -> str:
    """Return how the last line of a command begins that did not come to its end, else nothing."""
    if summary.interrupted:
        return "interrupted: "
    if summary.unreadable:
        return f"incomplete, {count(summary.unreadable, 'input')} could not be read: "
    return "" if summary.complete else "incomplete, the time is over: "
