"""The place of a record in a log: segment, batch, and number in the batch."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from logtool.errors import BatchTooLargeError
from logtool.formats import compression, wording
from logtool.formats.record_batch import NO_TIMESTAMP, Column
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import Chunk
from logtool.log.dir import Segment
from logtool.log.records import Unread, batch_records
from logtool.times import rfc3339

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

    @property
    def timestamp(self) -> str | None:
        """Return its time as text; None where it has none, or no calendar has it."""
        return rfc3339(self.timestamp_ms)


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
    before = 0
    first = location
    for part in batch_records(chunk, row, limit=limit):
        if isinstance(part, Unread):
            if part.beyond_limit:
                raise BatchTooLargeError(segment.log.path, batch["position"], limit) from part.error
            large = f"batch of {wording.size(part.size)} is too large to decode"
            reason = part.reason if part.held else large
            return replace(location, problem=f"its records cannot be read: {reason}")
        numbers = np.flatnonzero(wanted(part.offset, part.timestamp))
        if first is location and len(numbers):
            number = int(numbers[0])
            stamp = int(part.timestamp[number])
            first = replace(
                location,
                record=before + number,
                offset=int(part.offset[number]),
                timestamp_ms=None if stamp == NO_TIMESTAMP else stamp,
            )
        before += len(part.offset)
    return first
