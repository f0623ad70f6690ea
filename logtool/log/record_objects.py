"""Records as objects, one for each: for the Python library alone."""

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

import numpy as np

from logtool.formats import schema_id
from logtool.formats.record import parse_headers
from logtool.formats.record_batch import NO_TIMESTAMP, Column
from logtool.log.record_table import RecordTable


class LogRecord(NamedTuple):
    """One record of a log."""

    offset: int
    """Offset; in a log of Redpanda that of Raft."""
    timestamp: int | None
    """Milliseconds since 1970; None without a timestamp."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    """Bytes that are not UTF-8 in a key are surrogates (``surrogateescape``)."""

    @property
    def key_schema_id(self) -> int | UUID | None:
        """Return the id (or GUID) of the schema of the key; None without one."""
        return schema_id.of_record(self.key, self.headers, schema_id.KEY_HEADER)

    @property
    def value_schema_id(self) -> int | UUID | None:
        """Return the id (or GUID) of the schema of the value; None without one."""
        return schema_id.of_record(self.value, self.headers, schema_id.VALUE_HEADER)


def log_records(part: RecordTable) -> Iterator[LogRecord]:
    """Return the records of a table as objects."""
    spans, data = part.spans, part.data
    times = part.timestamp.tolist()
    headers: list[tuple[tuple[str, bytes | None], ...]] = [()] * len(times)
    for row in np.flatnonzero(spans.header_count).tolist():
        found = parse_headers(data, int(spans.header_position[row]), int(spans.header_count[row]))
        headers[row] = tuple((key.decode(errors="surrogateescape"), one) for key, one in found)
    columns = (
        part.offset.tolist(),
        [None if time == NO_TIMESTAMP else time for time in times],
        _contents(data, spans.key_position, spans.key_length),
        _contents(data, spans.value_position, spans.value_length),
        headers,
    )
    return map(LogRecord._make, zip(*columns, strict=True))


def _contents(data: memoryview, positions: Column, lengths: Column) -> list[bytes | None]:
    spans = zip(positions.tolist(), (positions + lengths).tolist(), strict=True)
    return [None if end < at else bytes(data[at:end]) for at, end in spans]
