"""Selection of records by content: keys, values, headers, bytes, places in JSON.

A block is searched as columns: a key is compared byte by byte for all of its records at once.
"""

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from logtool.dump import json_path
from logtool.dump.blocks import Block
from logtool.dump.json_path import JsonPath
from logtool.dump.records import Object
from logtool.errors import UsageError
from logtool.formats import record
from logtool.formats.record import Header, RecordSpans
from logtool.formats.record_batch import Column
from logtool.lazy_dataclass import dataclass
from logtool.log.record_table import RecordTable

Mask = npt.NDArray[np.bool_]
_FORMS = "text, hex:.., base64:.., utf8:.. or null:"
_SPECIAL = frozenset(b".^$*+?{}[]()|\\")
_SCREENED = 32
"""Bytes of a key that are compared for many records at once, before whole comparisons."""


@dataclass(frozen=True, slots=True)
class HeaderWanted:
    """A header that a record must have."""

    name: bytes
    any_value: bool = True
    value: bytes | None = None

    def is_one_of(self, headers: Sequence[Header]) -> bool:
        """Return whether one of the headers matches."""
        return any(
            name == self.name and (self.any_value or value == self.value) for name, value in headers
        )


@dataclass(frozen=True, slots=True)
class RecordContent:
    """Required content of a record: every given part must match. No control record matches."""

    keys: tuple[bytes | None, ...] = ()
    """Possible keys; one of them must be its key."""
    values: tuple[bytes | None, ...] = ()
    headers: tuple[HeaderWanted, ...] = ()
    patterns: tuple[re.Pattern[bytes], ...] = ()
    """Patterns; each must be found in its key or in its value."""
    paths: tuple[JsonPath, ...] = ()

    def holds(self, obj: Object) -> bool:
        """Return whether a ``record`` matches."""
        key, value = obj["key"], obj["value"]
        if self == ANY_CONTENT:
            return True
        return (
            not obj["control"]
            and (not self.keys or key in self.keys)
            and (not self.values or value in self.values)
            and all(header.is_one_of(obj["headers"]) for header in self.headers)
            and all(_found(pattern, key, value) for pattern in self.patterns)
            and all(value is not None and path.holds(value) for path in self.paths)
        )

    def rows(self, records: RecordTable, rows: Column) -> Column:
        """Return the matching `rows` of a block's records.

        The cheapest conditions come first.
        """
        data, spans = records.data, records.spans
        if self.keys:
            rows = _equal(data, spans.key_position, spans.key_length, rows, self.keys)
        if self.values:
            rows = _equal(data, spans.value_position, spans.value_length, rows, self.values)
        for header in self.headers:
            rows = rows[spans.header_count[rows] > 0]
            rows = _with_header(header, records, rows)
        for pattern in self.patterns:
            rows = _matching(pattern, records, rows)
        for path in self.paths:
            rows = rows[spans.value_length[rows] > 0]
            rows = _with_path(path, records, rows)
        return rows


ANY_CONTENT = RecordContent()


def select(block: Block, rows: Column) -> Block | None:
    """Return a block with some of its records and their batches; None without any."""
    records = block.records
    assert records
    if not len(rows):
        return None
    if len(rows) == len(records.spans) and records.counts.all():
        return block
    counts = np.bincount(
        np.repeat(np.arange(len(records.counts)), records.counts)[rows],
        minlength=len(records.counts),
    )
    with_records = np.flatnonzero(counts)
    matrix = records.columns()[rows]
    *columns, offset, timestamp, sequence = matrix.T
    batches = block.batches[with_records]
    chosen = replace(
        records,
        batches=batches,
        counts=counts[with_records],
        spans=RecordSpans(*columns),
        offset=offset,
        timestamp=timestamp,
        sequence=sequence,
        matrix=matrix,
    )
    return Block(block.origin, batches, chosen)


def parse_bytes(option: str, text: str) -> bytes | None:
    """Return the bytes for text, ``hex:..``, ``base64:..`` or ``utf8:..``.

    Return None, a null, for ``null:``. UsageError for an argument that does not parse.
    """
    form, colon, rest = text.partition(":")
    try:
        if colon and form == "hex":
            return bytes.fromhex(rest)
        if colon and form == "base64":
            return base64.b64decode(rest, validate=True)
        if text == "null:":
            return None
        # An argument that is not UTF-8 comes with surrogates in place of its bytes.
        plain = rest if colon and form == "utf8" else text
        return plain.encode("utf-8", "surrogateescape")
    except (ValueError, binascii.Error) as error:
        raise UsageError(f"{option} {text}: expected {_FORMS}") from error


def parse_header(text: str) -> HeaderWanted:
    """Parse ``NAME`` or ``NAME=VALUE``; the name of a header may be empty."""
    name, equals, value = text.partition("=")
    if not text:
        raise UsageError(f"--header {text}: expected NAME or NAME=VALUE")
    key = name.encode("utf-8", "surrogateescape")
    if not equals:
        return HeaderWanted(key)
    return HeaderWanted(key, False, parse_bytes("--header", value))


def parse_pattern(text: str) -> re.Pattern[bytes]:
    """Parse a regular expression over bytes; text in it stands for its UTF-8."""
    try:
        return re.compile(text.encode("utf-8", "surrogateescape"))
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"--grep {text}: not a regular expression: {error}") from error


def parse_content(
    keys: Sequence[str], values: Sequence[str], headers: Sequence[str],
    patterns: Sequence[str], paths: Sequence[str],
) -> RecordContent:  # fmt: skip
    """Return the content that these options require together."""
    return RecordContent(
        keys=tuple(parse_bytes("--key", text) for text in keys),
        values=tuple(parse_bytes("--value", text) for text in values),
        headers=tuple(map(parse_header, headers)),
        patterns=tuple(map(parse_pattern, patterns)),
        paths=tuple(map(json_path.parse, paths)),
    )


def _found(pattern: re.Pattern[bytes], key: bytes | None, value: bytes | None) -> bool:
    return any(part is not None and pattern.search(part) is not None for part in (key, value))


def _equal(
    data: memoryview,
    positions: Column,
    lengths: Column,
    rows: Column,
    wanted: Sequence[bytes | None],
) -> Column:
    """Return the rows whose bytes are one of those wanted."""
    octets = np.frombuffer(data, np.uint8)
    found: Mask = np.zeros(len(rows), np.bool_)
    for one in wanted:
        left = np.flatnonzero(lengths[rows] == (-1 if one is None else len(one)))
        for place, octet in enumerate((one or b"")[:_SCREENED]):
            if not len(left):
                break
            left = left[octets[positions[rows[left]] + place] == octet]
        if one is not None and len(one) > _SCREENED:
            starts = positions[rows[left]].tolist()
            left = left[[data[at : at + len(one)] == one for at in starts]] if starts else left
        found[left] = True
    return rows[found]


def _matching(pattern: re.Pattern[bytes], records: RecordTable, rows: Column) -> Column:
    if _is_literal(pattern) and not pattern.search(records.data):
        return rows[:0]
    spans = records.spans
    keys = (spans.key_position, spans.key_length)
    values = (spans.value_position, spans.value_length)

    def is_found(row: int) -> bool:
        return any(
            length[row] >= 0
            and pattern.search(records.data[int(at[row]) : int(at[row] + length[row])]) is not None
            for at, length in (keys, values)
        )

    return _kept(rows, is_found)


def _with_header(header: HeaderWanted, records: RecordTable, rows: Column) -> Column:
    return _kept(rows, lambda row: header.is_one_of(_headers(records, row)))


def _with_path(path: JsonPath, records: RecordTable, rows: Column) -> Column:
    return _kept(rows, lambda row: path.holds(bytes(_value(records, row))))


def _is_literal(pattern: re.Pattern[bytes]) -> bool:
    """Return whether a pattern matches only its own bytes, at any position."""
    return not _SPECIAL & set(pattern.pattern)


def _kept(rows: Column, is_meant: Callable[[int], bool]) -> Column:
    kept: Mask = np.fromiter((is_meant(row) for row in rows.tolist()), np.bool_, len(rows))
    return rows[kept]


def _value(records: RecordTable, row: int) -> memoryview:
    at = int(records.spans.value_position[row])
    return records.data[at : at + int(records.spans.value_length[row])]


def _headers(records: RecordTable, row: int) -> list[Header]:
    spans = records.spans
    return record.parse_headers(
        records.data, int(spans.header_position[row]), int(spans.header_count[row])
    )
