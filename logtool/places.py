"""The place of a record in a log: segment, batch, and number in the batch."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from logtool.errors import FormatError
from logtool.formats import compression, legacy_batch, record
from logtool.formats.record_batch import HEADER_SIZE, MAGIC, NO_TIMESTAMP, Column
from logtool.partition import Segment
from logtool.scan import Chunk

Wanted = Callable[[Column, Column], Column]
"""From offsets and timestamps of records to where they are what is looked for."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is; None for what does not apply."""

    path: Path | None = None
    """The log; None where nothing was found."""
    segment: int | None = None
    """Base offset."""
    position: int | None = None
    size: int | None = None
    base_offset: int | None = None
    last_offset: int | None = None
    leader_epoch: int | None = None
    record: int | None = None
    """Number in the batch, from 0; None where it has none at or behind what was asked."""
    offset: int | None = None
    """Of that record; of the log end for `Asked.LATEST`."""
    timestamp_ms: int | None = None
    problem: str | None = None
    """What stopped the search, or kept it from the records."""


def find_in_batch(segment: Segment, chunk: Chunk, row: int, wanted: Wanted) -> Place:
    """Return one batch and the first record in it that is wanted."""
    one = chunk.table.row(row)
    place = Place(
        segment.log.path, segment.base_offset, one["position"], one["size"], one["base_offset"],
        one["last_offset"], one["leader_epoch"],
    )  # fmt: skip
    try:
        offsets, stamps = _records(chunk, row)
    except FormatError as error:
        return replace(place, problem=f"its records cannot be read: {error.reason}")
    numbers = np.flatnonzero(wanted(offsets, stamps))
    if not len(numbers):
        return place
    number = int(numbers[0])
    stamp = int(stamps[number])
    return replace(
        place, record=number, offset=int(offsets[number]),
        timestamp_ms=None if stamp == NO_TIMESTAMP else stamp,
    )  # fmt: skip


def _records(chunk: Chunk, row: int) -> tuple[Column, Column]:
    """Return the offsets and timestamps of the records of a batch; FormatError on damage."""
    table, data = chunk.table, chunk.batch(row)
    if len(data) < int(table.size[row]):
        raise FormatError(f"batch of {table.size[row]} bytes is too large to decode")
    if table.magic[row] < MAGIC:
        inside = list(legacy_batch.parse_messages(data, compression.DEFAULT_LIMIT))
        return np.array([m.offset for m in inside]), np.array([m.timestamp for m in inside])
    payload = compression.decompress(int(table.codec[row]), data[HEADER_SIZE:])
    found, damage = record.parse(payload, int(table.record_count[row]))
    if damage:
        raise damage
    offsets = found.offset_delta + table.base_offset[row]
    if table.is_log_append_time[row]:
        return offsets, np.full(len(found), table.max_timestamp[row])
    return offsets, found.timestamp_delta + table.base_timestamp[row]
