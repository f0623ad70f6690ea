"""Values as text that is safe to print: escaped, sized, dated. Nothing here prints."""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

# What the engine's messages say in words, views say with the same functions.
from logtool.formats.wording import count as count
from logtool.formats.wording import duration as duration
from logtool.formats.wording import extent as extent
from logtool.formats.wording import offsets as offsets
from logtool.formats.wording import rate as rate
from logtool.formats.wording import share as share
from logtool.formats.wording import size as size
from logtool.formats.wording import span as span
from logtool.formats.wording import through as through

if TYPE_CHECKING:
    from logtool.running.summary import Summary

_ESCAPED_AT_ONCE = 65536
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NAMED_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def some(names: Iterable[str], most: int) -> str:
    """Return the first names, escaped, with the number of the rest."""
    every = [escape(one) for one in names]
    more = len(every) - most
    return ", ".join(every[:most]) + (f" and {more:,} more" if more > 0 else "")


def escape(text: str) -> str:
    r"""Return `text` with every character that is not printable as ``\n``, ``\xNN``, ``\uNNNN``.

    That covers terminal controls, line ends, directional overrides and bytes of a file name that
    are not UTF-8. A backslash stays as it is: use `quote` where the text must be unambiguous.
    """
    if text.isprintable():
        return text
    if len(text) > _ESCAPED_AT_ONCE:
        # What joins characters holds a pointer for each of them meanwhile.
        starts = range(0, len(text), _ESCAPED_AT_ONCE)
        return "".join([escape(text[start : start + _ESCAPED_AT_ONCE]) for start in starts])
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


def delimited(value: str, delimiter: str, *, escaped: bool) -> str:
    r"""Return a value as a cell of CSV or TSV: quoted by the rules of CSV (RFC 4180).

    An `escaped` one has ``\\`` for a backslash and the escapes of `escape`, so that a row is a
    line; TSV has no quotes then.
    """
    if escaped:
        value = escape(value.replace("\\", "\\\\"))
        special = "" if delimiter == "\t" else f'{delimiter}"'
    else:
        special = f'{delimiter}"\r\n'
    if any(one in value for one in special):
        return '"' + value.replace('"', '""') + '"'
    return value


def safe_cell(value: object) -> str:
    """Return the text of a cell that no spreadsheet runs: a text like a formula is quoted by ``'``.

    Numbers stay numbers, negative ones too. Source: "CSV Injection" of OWASP, whose full-width
    signs some spreadsheets take as well.
    """
    text = cell(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text


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
    failed = [
        f"{count(number, noun)} could not be {done}"
        for number, noun, done in (
            (summary.unreadable, "input", "read"), (summary.unwritten, "file", "written"),
        )
        if number
    ]  # fmt: skip
    if summary.missing:
        failed.append(f"{count(summary.missing, 'volume')} missing")
    if failed:
        return f"incomplete, {', '.join(failed)}: "
    return "" if summary.complete else "incomplete, the time limit was reached: "
