"""Statistics of a log from its batch tables: sizes, counts, codecs, producers, times.

`Statistics` of parts add up (`merged`) to exactly those of the whole, however it was divided. So a
segment can be measured anywhere, in pieces, and topics and log dirs are sums of partitions.
"""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from logtool.checks import old_formats
from logtool.checks.batches import BatchRules
from logtool.checks.old_formats import FormatExtent
from logtool.checks.timestamps import TimestampRules
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats import compression
from logtool.formats.record_batch import HEADER_SIZE, MAGIC, NO_PRODUCER_ID, BatchTable, Column
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import Chunk, PlainTotals
from logtool.log.damage import DamageReason
from logtool.log.dir import Segment
from logtool.log.record_table import Unread
from logtool.log.records import payload
from logtool.log.redpanda import REDPANDA
from logtool.times import rfc3339

MOST_BUCKETS = 64
"""Most buckets of a `Timeline`: a terminal can show them, and each partition can have its own."""
_PARTS_AT_ONCE = 64
"""Parts (chunks and damage) whose statistics are kept separately before they are added up."""


def _nothing() -> Column:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class ValueCounts:
    """Number of occurrences of each value: int64 columns, the values rising."""

    values: Column = field(default_factory=_nothing)
    counts: Column = field(default_factory=_nothing)

    @property
    def total(self) -> int:
        """Return the number of all occurrences."""
        return int(self.counts.sum())

    @property
    def median(self) -> int | None:
        """Return the lower median; None without values."""
        if not len(self.values):
            return None
        middle = (self.total - 1) // 2
        return int(self.values[np.searchsorted(np.cumsum(self.counts), middle, side="right")])

    def by_power_of_two(self) -> list[tuple[int, int]]:
        """Return (upper bound, count) for each power of two from the least value to the largest."""
        found: dict[int, int] = {}
        for value, count in zip(self.values.tolist(), self.counts.tolist(), strict=True):
            power = max(value, 1).bit_length()
            found[power] = found.get(power, 0) + count
        # The values rise.
        powers = range(min(found), max(found) + 1) if found else ()
        return [(1 << power, found.get(power, 0)) for power in powers]


@dataclass(frozen=True, slots=True)
class SizeRange:
    """The number of batches with a size between two powers of two."""

    below: int
    """The larger power: all these batches are smaller."""
    batches: int


def tally(values: Column) -> ValueCounts:
    """Count the values of a column."""
    if len(values) and (values == values[0]).all():
        return ValueCounts(values[:1].copy(), np.array([len(values)]))
    return ValueCounts(*np.unique(values, return_counts=True))


@dataclass(frozen=True, slots=True)
class Timeline:
    """Bytes by time, in at most `MOST_BUCKETS` buckets of ``2**shift`` ms that are aligned to 0.

    The buckets are the narrowest of which at most that many are needed. As each bucket consists of
    whole narrower ones, the sum of two timelines is the timeline of all their batches.
    """

    shift: int = 0
    first: int = 0
    """Number of the first bucket, counted from 1970."""
    sizes: Column = field(default_factory=_nothing)

    @property
    def width_ms(self) -> int:
        """Return the width of a bucket."""
        return 1 << self.shift

    @property
    def start_ms(self) -> int:
        """Return the time at which the first bucket begins, in ms."""
        return self.first << self.shift

    @property
    def bytes(self) -> list[int]:
        """Return the bytes in each bucket."""
        found: list[int] = self.sizes.tolist()
        return found


def timeline(times_ms: Column, sizes: Column, shift: int = 0) -> Timeline:
    """Sort bytes into buckets of at least ``2**shift`` ms; times below 0 are left out."""
    if not len(times_ms):
        return Timeline()
    first, last = int(times_ms.min()), int(times_ms.max())
    if first < 0:
        known = times_ms >= 0
        return timeline(times_ms[known], sizes[known], shift)
    while (last >> shift) - (first >> shift) >= MOST_BUCKETS:
        shift += 1
    buckets = np.zeros((last >> shift) - (first >> shift) + 1, np.int64)
    np.add.at(buckets, (times_ms >> shift) - (first >> shift), sizes)
    return Timeline(shift, first >> shift, buckets)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Totals of some part of a log; None for a value that this part does not have."""

    segments: int = 0
    unread_segments: int = 0
    """Segments that could not be read, or for which there was no time."""
    bytes: int = 0
    """Bytes of the logs that were read."""
    index_bytes: int = 0
    batches: int = 0
    records: int = 0
    transactional: int = 0
    """Transactional batches."""
    control: int = 0
    """Control batches."""
    damaged_ranges: int = 0
    damaged_bytes: int = 0
    unused_bytes: int = 0
    """Zeros at the end of an active segment, as preallocation leaves them."""
    odd: tuple[Finding, ...] = ()
    """Findings about implausible timestamps."""
    old_formats: tuple[FormatExtent, ...] = ()
    """Batches of magic 0 and 1, one extent for each format."""
    too_large: tuple[int, ...] = ()
    """Positions of batches that would decompress to more than the limit and were not unpacked."""
    first_offset: int | None = None
    last_offset: int | None = None
    first_ms: int | None = None
    last_ms: int | None = None
    stored_bytes: int = 0
    """Stored bytes of records, of the batches that `unpacked_bytes` counts."""
    unpacked_bytes: int = 0
    codecs: ValueCounts = field(default_factory=ValueCounts)
    """Batches by codec id."""
    sizes: ValueCounts = field(default_factory=ValueCounts)
    """Batches by their bytes."""
    producers: Column = field(default_factory=_nothing)
    """Producer ids, rising."""
    over_time: Timeline = field(default_factory=Timeline)
    """Bytes by the largest timestamp of each batch."""

    @property
    def records_per_batch(self) -> float | None:
        """Return how many records a batch has on average; None without batches."""
        return self.records / self.batches if self.batches else None

    @property
    def batch_size_min(self) -> int | None:
        """Return the bytes of the smallest batch; None without batches."""
        return int(self.sizes.values[0]) if self.batches else None

    @property
    def batch_size_max(self) -> int | None:
        """Return the bytes of the largest batch; None without batches."""
        return int(self.sizes.values[-1]) if self.batches else None

    @property
    def batch_sizes(self) -> list[SizeRange]:
        """Return the batches by powers of two of their bytes, empty ranges in between included."""
        return [SizeRange(top, batches) for top, batches in self.sizes.by_power_of_two()]

    @property
    def batches_by_codec(self) -> dict[str, int]:
        """Return the batches by the name of their codec."""
        ids, counts = self.codecs.values.tolist(), self.codecs.counts.tolist()
        return {compression.name(one): count for one, count in zip(ids, counts, strict=True)}

    @property
    def producer_count(self) -> int:
        """Return how many producer ids there are."""
        return len(self.producers)

    @property
    def first_timestamp(self) -> str | None:
        """Return the smallest timestamp as text; None if it is not a date of the calendar."""
        return rfc3339(self.first_ms)

    @property
    def last_timestamp(self) -> str | None:
        """Return the largest timestamp as text; None if it is not a date of the calendar."""
        return rfc3339(self.last_ms)

    @property
    def records_per_second(self) -> float | None:
        """Return the records in each second of the span; None without a span."""
        return self._per_second(self.records)

    @property
    def bytes_per_second(self) -> float | None:
        """Return the bytes in each second of the span; None without a span."""
        return self._per_second(self.bytes)

    @property
    def bytes_over_time(self) -> Timeline | None:
        """Return the bytes by time; None if no batch has a time."""
        return self.over_time if len(self.over_time.sizes) else None

    @property
    def span_ms(self) -> int | None:
        """Return the ms between the first and the last timestamp; None without timestamps."""
        if self.first_ms is None or self.last_ms is None:
            return None
        return self.last_ms - self.first_ms

    @property
    def compression_ratio(self) -> float | None:
        """Return unpacked by stored bytes of the records; None if nothing was unpacked."""
        return self.unpacked_bytes / self.stored_bytes if self.stored_bytes else None

    def _per_second(self, count: int) -> float | None:
        return count * 1000 / self.span_ms if self.span_ms else None


@dataclass(frozen=True, slots=True)
class StatisticsOf:
    """The statistics of a segment, a partition, a topic or everything, with its name."""

    statistics: Statistics
    path: Path | None = None
    topic: str | None = None
    partition: int | None = None
    segment: int | None = None
    partitions: int = 0
    topics: int = 0


def of_table(table: BatchTable) -> Statistics:
    """Return the statistics of sound batches, without their offsets: see `measure`."""
    if not len(table):
        return Statistics()
    newest = table.max_timestamp
    # The base timestamp is not a time of records if the broker set the time of the batch, or if it
    # holds a delete horizon.
    stamped = table.is_log_append_time | table.has_delete_horizon
    times = np.concatenate((np.where(stamped, newest, table.base_timestamp), newest))
    times = times[times >= 0]
    return Statistics(
        batches=len(table),
        records=table.records,
        transactional=int(table.is_transactional.sum()),
        control=int(table.is_control.sum()),
        first_ms=int(times.min()) if len(times) else None,
        last_ms=int(times.max()) if len(times) else None,
        codecs=tally(table.codec),
        sizes=tally(table.size),
        producers=_producers(table.producer_id),
        over_time=timeline(newest, table.size),
        old_formats=old_formats.extents(table),
    )


def of_plain(table: BatchTable, plain: PlainTotals, **more: Any) -> Statistics | None:
    """Return `of_table` and `more` fields for plain batches; None if one of them has no time."""
    oldest = int(min(table.base_timestamp.min(), table.max_timestamp.min()))
    if oldest < 0:
        return None
    ids = table.producer_id
    return Statistics(
        batches=len(table),
        records=plain.records,
        first_ms=oldest,
        last_ms=int(max(table.base_timestamp.max(), plain.max_timestamp)),
        codecs=tally(table.attributes),
        sizes=tally(table.size),
        producers=ids[: plain.producers].copy() if plain.producers < 2 else _producers(ids),
        over_time=timeline(table.max_timestamp, table.size),
        **more,
    )


def _producers(ids: Column) -> Column:
    return _distinct(ids[ids > NO_PRODUCER_ID])


def _distinct(ids: Column) -> Column:
    """Return every id once, in order.

    `np.unique` would import masked arrays first, which takes a tenth of a short run.
    """
    ids = np.sort(ids)
    return ids[np.flatnonzero(np.diff(ids, prepend=NO_PRODUCER_ID))]


_SUMS = (
    "segments", "unread_segments", "bytes", "index_bytes", "batches", "records", "transactional",
    "control", "damaged_ranges", "damaged_bytes", "unused_bytes", "stored_bytes", "unpacked_bytes",
)  # fmt: skip
_LEAST, _LARGEST = ("first_offset", "first_ms"), ("last_offset", "last_ms")


def merged(parts: Sequence[Statistics]) -> Statistics:
    """Return the sum of the parts."""
    if len(parts) == 1:
        return parts[0]
    values: dict[str, Any] = {name: sum(getattr(p, name) for p in parts) for name in _SUMS}
    for names, choose in ((_LEAST, min), (_LARGEST, max)):
        for name in names:
            known = [getattr(p, name) for p in parts if getattr(p, name) is not None]
            values[name] = choose(known, default=None)
    return Statistics(
        **values,
        codecs=_added([p.codecs for p in parts]),
        sizes=_added([p.sizes for p in parts]),
        producers=_distinct(np.concatenate([_nothing(), *(p.producers for p in parts)])),
        over_time=_joined([p.over_time for p in parts]),
        too_large=tuple(position for part in parts for position in part.too_large),
        odd=tuple(finding for part in parts for finding in part.odd),
        old_formats=old_formats.merged(one for part in parts for one in part.old_formats),
    )


def _added(parts: Sequence[ValueCounts]) -> ValueCounts:
    values, where = np.unique(
        np.concatenate([_nothing(), *(part.values for part in parts)]), return_inverse=True
    )
    counts = np.zeros(len(values), np.int64)
    np.add.at(counts, where, np.concatenate([_nothing(), *(part.counts for part in parts)]))
    return ValueCounts(values, counts)


def _joined(parts: Sequence[Timeline]) -> Timeline:
    parts = [part for part in parts if len(part.sizes)]
    if not parts:
        return Timeline()
    starts = [(part.first + np.arange(len(part.sizes))) << part.shift for part in parts]
    sizes = [part.sizes for part in parts]
    # Empty buckets at an end would make the timeline too long, but no part has any there.
    return timeline(np.concatenate(starts), np.concatenate(sizes), max(p.shift for p in parts))


@dataclass(frozen=True, slots=True)
class MeasureTask:
    """The segment to measure, and how: plain data for a worker anywhere."""

    segment: Segment
    unpack: bool = False
    """True if batches are decompressed for the compression ratio."""
    limit: int = compression.DEFAULT_LIMIT
    """Bytes that one batch may decompress to."""
    ahead_ms: int | None = None
    """Most ms that a producer's timestamp may be ahead; None if not known."""


def measure(
    task: MeasureTask, on_bytes: Callable[[int], None] = lambda _: None
) -> Statistics | UnreadableError:
    """Read one segment once; damage is counted, and so are the batches behind it."""
    segment = task.segment
    rules = BatchRules(segment.base_offset)
    timestamps = TimestampRules(segment.log.mtime_ns, task.ahead_ms)
    parts: list[Statistics] = []
    try:
        with segment.log.open() as log:
            at = 0
            for chunk in segment.batches(log, payload=task.unpack, limit=task.limit):
                for _ in rules.judge(chunk):
                    pass  # faults of headers are reported by verify
                timestamps.add(chunk.table)
                known = of_plain(chunk.table, chunk.plain) if chunk.plain else None
                parts += [known or of_table(chunk.table), *_other_statistics(chunk, task)]
                if len(parts) >= _PARTS_AT_ONCE:
                    parts = [merged(parts)]
                on_bytes(chunk.end_position - at)
                at = chunk.end_position
            size = log.size
            if segment.flavour is REDPANDA and at < size:
                parts.append(Statistics(unused_bytes=size - at))  # room that was reserved
    except UnreadableError as error:
        return error
    indexes = sum(file.size for file in segment.indexes.values())
    return replace(
        merged(parts),
        segments=1,
        bytes=size,
        index_bytes=indexes,
        odd=tuple(timestamps.finish(segment.log.path)),
        first_offset=rules.first_offset,
        last_offset=rules.last_offset,
    )


def unread(segment: Segment) -> Statistics:
    """Return the statistics of a segment that was not read."""
    return Statistics(
        segments=1, unread_segments=1, index_bytes=sum(f.size for f in segment.indexes.values())
    )


def _other_statistics(chunk: Chunk, task: MeasureTask) -> list[Statistics]:
    """Return the statistics of a chunk apart from its table: damage, or the unpacked size."""
    damage = chunk.damage
    if damage:
        tail = not damage.resynchronised and task.segment.is_active
        if damage.reason is DamageReason.ZEROS and tail:
            return [Statistics(unused_bytes=damage.length)]
        return [Statistics(damaged_ranges=1, damaged_bytes=damage.length)]
    return [_unpacked(chunk, task.limit)] if task.unpack else []


def _unpacked(chunk: Chunk, limit: int) -> Statistics:
    """Unpack the batches of magic 2; those that cannot be unpacked do not count."""
    table = chunk.table
    stored = np.where(table.magic >= MAGIC, table.size - HEADER_SIZE, 0)
    plain = int(stored[table.codec == compression.NONE].sum())
    stored_bytes = unpacked_bytes = plain
    too_large: list[int] = []
    for row in np.flatnonzero((table.codec != compression.NONE) & (stored > 0)).tolist():
        body = payload(chunk, row, limit=limit)
        if not isinstance(body, Unread):
            stored_bytes += int(stored[row])
            unpacked_bytes += len(body)
        elif body.beyond_limit:
            too_large.append(body.position)
    return Statistics(
        stored_bytes=stored_bytes, unpacked_bytes=unpacked_bytes, too_large=tuple(too_large)
    )
