"""The place of a record in a log: segment, batch, and number in the batch."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from logtool.errors import BatchTooLargeError, FormatError, LimitError
from logtool.formats import compression, legacy_batch, record, wording
from logtool.formats.record_batch import HEADER_SIZE, MAGIC, NO_TIMESTAMP, Column
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import Chunk
from logtool.log.dir import Segment

Matcher = Callable[[Column, Column], Column]
"""From offsets and timestamps of records to where they are what is looked for."""


@dataclass(frozen=True, slots=True)
class Location:
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


def find_in_batch(
    segment: Segment,
    chunk: Chunk,
    row: int,
    wanted: Matcher,
    limit: int = compression.DEFAULT_LIMIT,
) -> Location:
    """Return one batch and the first record in it that is wanted.

    `limit` is how many bytes the batch may decompress to, else it is BatchTooLargeError.
    """
    batch = chunk.table.row(row)
    location = Location(
        path=segment.log.path,
        segment=segment.base_offset,
        position=batch["position"],
        size=batch["size"],
        base_offset=batch["base_offset"],
        last_offset=batch["last_offset"],
        leader_epoch=batch["leader_epoch"],
    )
    try:
        before = 0
        first = location
        for offsets, stamps in _records(chunk, row, limit):
            numbers = np.flatnonzero(wanted(offsets, stamps))
            if first is location and len(numbers):
                number = int(numbers[0])
                stamp = int(stamps[number])
                first = replace(
                    location,
                    record=before + number,
                    offset=int(offsets[number]),
                    timestamp_ms=None if stamp == NO_TIMESTAMP else stamp,
                )
            before += len(offsets)
    except LimitError as error:
        raise BatchTooLargeError(segment.log.path, batch["position"], limit) from error
    except FormatError as error:
        return replace(location, problem=f"its records cannot be read: {error.reason}")
    return first


def _records(chunk: Chunk, row: int, limit: int) -> Iterator[tuple[Column, Column]]:
    """Yield the offsets and timestamps of the records of a batch; FormatError on damage."""
    table, data = chunk.table, chunk.batch(row)
    if len(data) < int(table.size[row]):
        raise FormatError(f"batch of {wording.size(table.size[row])} is too large to decode")
    if table.magic[row] < MAGIC:
        messages = legacy_batch.parse_messages(data, limit)
        while some := list(islice(messages, record.MOST_AT_ONCE)):
            yield np.array([m.offset for m in some]), np.array([m.timestamp for m in some])
        return
    payload = compression.decompress(int(table.codec[row]), data[HEADER_SIZE:], limit)
    for records, damage in record.parse_slices(payload, int(table.record_count[row])):
        if damage:
            raise damage
        offsets = records.offset_delta + table.base_offset[row]
        if table.is_log_append_time[row]:
            yield offsets, np.full(len(records), table.max_timestamp[row])
        else:
            yield offsets, records.timestamp_delta + table.base_timestamp[row]
