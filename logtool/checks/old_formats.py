"""Batches of magic 0 and 1: where they are, for clients that misread them.

Every release reads them. librdkafka 2.5 to 2.15 gives an application NULL in place of each key and
value, and does not get beyond a compressed batch (librdkafka #5504, #5549). The cleaner of Kafka
4.0 and later writes them again with magic 2; a message of magic 0 has no time, and its record then
has the timestamp -1.
Source: ``LegacyRecord``; ``MemoryRecords.filterTo`` and ``RecordBatch`` (Kafka 4.x).
"""

from collections.abc import Iterable, Iterator

import numpy as np

from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.record_batch import MAGIC, BatchTable
from logtool.lazy_dataclass import dataclass
from logtool.times import rfc3339


@dataclass(frozen=True, slots=True)
class FormatExtent:
    """The batches of one old message format in some part of a log."""

    magic: int
    batches: int
    first_offset: int
    last_offset: int
    first_timestamp_ms: int | None
    """Smallest of the largest timestamps of the batches, in ms; None if none has a time."""
    last_timestamp_ms: int | None
    """Largest timestamp, in ms; None if no batch has a time."""

    @property
    def first_timestamp(self) -> str | None:
        """Return the smallest timestamp as text; None if it is not a date of the calendar."""
        return rfc3339(self.first_timestamp_ms)

    @property
    def last_timestamp(self) -> str | None:
        """Return the largest timestamp as text; None if it is not a date of the calendar."""
        return rfc3339(self.last_timestamp_ms)


def extents(table: BatchTable) -> tuple[FormatExtent, ...]:
    """Return the extent of each old format among the batches of a table."""
    if not len(table) or int(table.magic.min()) >= MAGIC:
        return ()
    return tuple(
        _extent(magic, table[table.magic == magic])
        for magic in np.unique(table.magic[table.magic < MAGIC]).tolist()
    )


def merged(parts: Iterable[FormatExtent]) -> tuple[FormatExtent, ...]:
    """Return one extent for each format, of all parts together."""
    found: dict[int, FormatExtent] = {}
    for one in parts:
        known = found.get(one.magic)
        found[one.magic] = one if known is None else _together(known, one)
    return tuple(found[magic] for magic in sorted(found))


def findings(parts: Iterable[FormatExtent]) -> Iterator[Finding]:
    """Yield a finding for each old format in a partition."""
    for one in merged(parts):
        times = "without a time"
        if one.first_timestamp_ms is not None:
            first = one.first_timestamp or one.first_timestamp_ms
            times = f"of {first} to {one.last_timestamp or one.last_timestamp_ms}"
        text = (
            f"{wording.count(one.batches, 'batch', 'batches')} of magic {one.magic} in "
            f"{wording.offsets(one.first_offset, one.last_offset)}, {times}"
        )
        yield Finding("batch/old-format", text, None, None, one.first_offset, one.last_offset)


def _extent(magic: int, table: BatchTable) -> FormatExtent:
    times = table.max_timestamp[table.max_timestamp >= 0]
    return FormatExtent(
        magic=magic,
        batches=len(table),
        first_offset=int(table.first_offset.min()),
        last_offset=int(table.last_offset.max()),
        first_timestamp_ms=int(times.min()) if len(times) else None,
        last_timestamp_ms=int(times.max()) if len(times) else None,
    )


def _together(one: FormatExtent, other: FormatExtent) -> FormatExtent:
    first = [ms for ms in (one.first_timestamp_ms, other.first_timestamp_ms) if ms is not None]
    last = [ms for ms in (one.last_timestamp_ms, other.last_timestamp_ms) if ms is not None]
    return FormatExtent(
        magic=one.magic,
        batches=one.batches + other.batches,
        first_offset=min(one.first_offset, other.first_offset),
        last_offset=max(one.last_offset, other.last_offset),
        first_timestamp_ms=min(first, default=None),
        last_timestamp_ms=max(last, default=None),
    )
