"""The values of a block as columns of text, for JSON and for the cells of CSV and TSV."""

import base64
import json
from collections.abc import Callable
from json.encoder import encode_basestring_ascii as quote

import numpy as np

from logtool.commands import text
from logtool.dump.blocks import Records
from logtool.dump.values import Values, rfc3339, show_bytes, show_headers
from logtool.formats import record
from logtool.formats.record_batch import BatchTable, Column

Texts = str | list[str]
"""One text for every row, or the same for all."""
_MOST_SECONDS = 4096
_MILLISECONDS = [f"{number:03d}" for number in range(1000)]


class Json:
    """Values as JSON."""

    null = "null"
    quote = '"'

    def __init__(self, values: Values) -> None:
        self._values = values
        self._openings = _Openings()

    def shown(self, name: str, records: Records, at: Column, size: Column) -> dict[str, Texts]:
        """Return the keys or values that begin at `at`."""
        if not len(size) or size.max() < 0:
            return {name: self.null}
        places = zip(at.tolist(), size.tolist(), strict=True)
        data, other = records.data, self._one
        if self._values is not Values.UTF8:
            return {name: [other(data, first, count) for first, count in places]}
        # Of one byte a character: a slice of it that is ASCII is what the bytes say.
        plain, openings = str(data, "latin-1"), self._openings
        return {
            name: [
                f"{openings[count]}{quote(part)}}}"
                if count >= 0 and (part := plain[first : first + count]).isascii()
                else other(data, first, count)
                for first, count in places
            ]
        }

    def _one(self, data: memoryview, first: int, count: int) -> str:
        content = None if count < 0 else bytes(data[first : first + count])
        return json.dumps(show_bytes(content, self._values))

    def headers(self, found: list[record.Header]) -> str:
        """Return the headers of one record."""
        return json.dumps(show_headers(found, self._values))


class Cells:
    """Values as cells of CSV and TSV."""

    null = ""
    quote = ""

    def __init__(self, values: Values, delimiter: str) -> None:
        self._values = values
        self._csv = delimiter == ","

    def cell(self, value: str) -> str:
        """Return a value as a cell: nothing in it ends a row, and CSV quotes as `csv` does."""
        escaped = text.escape(value.replace("\\", "\\\\"))
        if self._csv and ("," in escaped or '"' in escaped):
            return '"' + escaped.replace('"', '""') + '"'
        return escaped

    def shown(self, name: str, records: Records, at: Column, size: Column) -> dict[str, Texts]:
        """Return the keys or values that begin at `at`, their encodings and sizes."""
        titles = (name, f"{name}_encoding", f"{name}_size")
        if not len(size) or size.max() < 0:
            return dict.fromkeys(titles, self.null)
        places = zip(at.tolist(), size.tolist(), strict=True)
        cells = [self._one(records.data, first, count) for first, count in places]
        return dict(zip(titles, map(list, zip(*cells, strict=True)), strict=True))

    def _one(self, data: memoryview, first: int, count: int) -> tuple[str, str, str]:
        if count < 0:
            return "", "", ""
        content = bytes(data[first : first + count])
        values = self._values
        if values is Values.UTF8:
            try:
                return self.cell(content.decode("utf-8")), "utf8", str(count)
            except UnicodeDecodeError:
                values = Values.BASE64
        return _ENCODE[values](content), values, str(count)

    def headers(self, found: list[record.Header]) -> str:
        """Return the headers of one record."""
        return self.cell(text.cell(show_headers(found, self._values)))


Style = Json | Cells


def batch_columns(table: BatchTable, style: Style) -> dict[str, Texts]:
    """Return what differs from batch to batch, in the order of the fields of an object."""
    horizon = table.has_delete_horizon
    base = np.where(horizon, -1, table.base_timestamp)
    horizon = np.where(horizon, table.base_timestamp, -1)
    return {
        "position": _numbers(table.position),
        "size": _numbers(table.size),
        "base_offset": _numbers(table.base_offset),
        "last_offset": _numbers(table.last_offset),
        "record_count": _numbers(table.record_count),
        "base_timestamp_ms": _nullable(base, style),
        "base_timestamp": _times(base, style),
        "max_timestamp_ms": _nullable(table.max_timestamp, style),
        "max_timestamp": _times(table.max_timestamp, style),
        "delete_horizon_ms": _nullable(horizon, style),
        "delete_horizon": _times(horizon, style),
        "base_sequence": _nullable(table.base_sequence, style),
        "last_sequence": _nullable(table.last_sequence, style),
        "crc": _numbers(table.crc),
    }


def record_columns(records: Records, style: Style) -> dict[str, Texts]:
    """Return what differs from record to record, in the order of the fields of an object."""
    table = records.table
    return {
        "offset": _numbers(records.offset),
        "timestamp_ms": _nullable(records.timestamp, style),
        "timestamp": _times(records.timestamp, style),
        "sequence": _nullable(records.sequence, style),
        **style.shown("key", records, table.key_position, table.key_length),
        **style.shown("value", records, table.value_position, table.value_length),
        "headers": _headers(records, style),
    }


def _headers(records: Records, style: Style) -> Texts:
    none = style.headers([])
    counts = records.table.header_count
    if not counts.any():
        return none
    return [
        style.headers(record.parse_headers(records.data, at, count)) if count else none
        for at, count in zip(records.table.header_position.tolist(), counts.tolist(), strict=True)
    ]


def _numbers(column: Column) -> list[str]:
    return list(map(str, column.tolist()))


def _nullable(column: Column, style: Style) -> Texts:
    """Return numbers of which -1 is none."""
    none = column == -1
    if none.all():
        return style.null
    if none.any():
        return [style.null if value == -1 else str(value) for value in column.tolist()]
    return _numbers(column)


def _times(column: Column, style: Style) -> Texts:
    """Return milliseconds as `rfc3339` does, second by second."""
    none = column == -1
    if none.all():
        return style.null
    seconds, rest = np.divmod(column, 1000)
    starts, end = _STARTS[style.quote], f"Z{style.quote}"
    found = [
        f"{start}{millisecond}{end}"
        for start, millisecond in zip(
            map(starts.__getitem__, seconds.tolist()),
            map(_MILLISECONDS.__getitem__, rest.tolist()),
            strict=True,
        )
    ]
    for row in np.flatnonzero(none).tolist():
        found[row] = style.null
    return found


class _Starts(dict[int, str]):
    """For each second since 1970, what its milliseconds stand behind."""

    def __init__(self, quote: str) -> None:
        super().__init__()
        self._quote = quote

    def __missing__(self, second: int) -> str:
        if len(self) > _MOST_SECONDS:
            self.clear()
        self[second] = start = self._quote + (rfc3339(second * 1000) or "")[:-4]
        return start


class _Openings(dict[int, str]):
    """For each size of a key or value in UTF-8, what its text stands behind."""

    def __missing__(self, size: int) -> str:
        if len(self) > _MOST_SECONDS:
            self.clear()
        self[size] = opening = f'{{"size": {size}, "utf8": '
        return opening


_STARTS = {quote: _Starts(quote) for quote in ("", '"')}
_ENCODE: dict[Values, Callable[[bytes], str]] = {
    Values.HEX: bytes.hex,
    Values.BASE64: lambda content: base64.b64encode(content).decode("ascii"),
    Values.LEN: lambda content: "",
}
