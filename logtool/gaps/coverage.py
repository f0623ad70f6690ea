"""The offsets that one segment holds: a function from its path to plain data.

A batch covers its offsets from base to last, even if compaction removed records from it: offsets
without a record are holes of the batch. Where the header is not enough, the records are decoded:
for the bounds of a wrapper of magic 0 or 1, and for a batch that the log start, or an overlap,
cuts in two.
"""

from collections.abc import Callable
from dataclasses import field, fields

import numpy as np

from logtool.checks import timestamps
from logtool.checks.batches import BatchRules
from logtool.checks.edge_walk import EdgeWalk
from logtool.checks.timestamps import TimestampRules
from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.findings import Finding
from logtool.formats import _kernels, compression
from logtool.formats.record_batch import (
    MAGIC,
    BatchTable,
    Column,
    concat,
    empty_table,
)
from logtool.gaps import table as gap_table
from logtool.gaps.segment_gaps import SegmentGaps
from logtool.gaps.table import GapTable
from logtool.lazy_dataclass import dataclass
from logtool.log import kafka_start, producer_state
from logtool.log.chunk import LARGEST_BUFFERED_BATCH, Chunk
from logtool.log.damage import DamageReason
from logtool.log.dir import Segment
from logtool.log.records import RecordBatches, counts_and_bases, record_offsets

_BASE_OFFSET = [column.name for column in fields(BatchTable)].index("base_offset")


@dataclass(frozen=True, slots=True)
class CoverageTask:
    """A segment to read and the options for it: plain data for a worker anywhere."""

    segment: Segment
    start: int = 0
    """The log start: batches below it do not count."""
    exact: bool = False
    """True if batches with holes are decoded to find the offsets that they lack."""
    limit: int = compression.DEFAULT_LIMIT
    """Bytes that one batch may decompress to."""
    ahead_ms: int | None = None
    """Largest time that a timestamp of a producer may be ahead, in ms; None: not known."""


@dataclass(frozen=True, slots=True)
class EdgeBatch:
    """The first or the last batch of a segment."""

    offset: int
    """Its first offset from the start on, or its last offset."""
    epoch: int
    timestamp: int
    position: int


@dataclass(slots=True)
class Coverage:
    """Content of a segment from the start offset of the task on."""

    base_offset: int
    gaps: GapTable = field(default_factory=gap_table.empty)
    """Gaps between its batches and inside them."""
    first: EdgeBatch | None = None
    last: EdgeBatch | None = None
    batches: int = 0
    records: int = 0
    control: int = 0
    """Number of the `records` in control batches."""
    bytes: int = 0
    odd: list[Finding] = field(default_factory=list)
    """Findings about timestamps that cannot be meant."""
    too_large: set[int] = field(default_factory=set)
    """Positions of batches whose records would take more memory than allowed."""
    first_base: int | None = None
    """Base offset of the first batch, which may be below the start."""
    stretches: list[tuple[int, int]] = field(default_factory=list)
    """Ranges of bytes (first, end) that hold only batches which count."""
    first_visible: int | None = None
    """Offset of the first record that a consumer gets."""
    last_visible: int | None = None
    horizons: int = 0
    """Batches with a delete horizon."""
    with_holes: int = 0
    """Batches with fewer records than offsets."""
    legacy: int = 0
    """Entries of magic 0 and 1."""
    overlaps: int = 0
    damages: int = 0
    damaged_head: bool = False
    tail: DamageReason | None = None
    """Reason of the damage at its end; None if it ends with a sound batch."""
    producer_rows: BatchTable = field(default_factory=empty_table)
    """The `producer_state.significant` rows."""
    transactional: Column = field(default_factory=lambda: np.empty((5, 0), np.int64))
    """Producer id, first offset, last offset, records and position of each transactional batch."""
    filtered: list[tuple[int, int]] = field(default_factory=list)
    """Base and last offset of each batch of Redpanda that has no Kafka offset."""
    markers: Column = field(default_factory=lambda: np.empty((3, 0), np.int64))
    """First offset, last offset and position of each control batch with records."""


def look(task: CoverageTask, on_bytes: Callable[[int], None] = lambda _: None) -> Coverage:
    """Read one segment; UnreadableError if that is not possible."""
    segment = task.segment
    with segment.log.open() as log:
        at = 0
        # A remote log is read with its bytes, which would be fetched a second time otherwise.
        payload = files.is_remote(segment.log.path)
        reading = _Pass(task, None if payload else log)
        for chunk in segment.batches(
            log,
            payload=payload,
            limit=task.limit,
            plain_walk=None if payload else _PlainWalk(reading),
        ):
            reading.feed(chunk)
            on_bytes(chunk.end_position - at)
            at = chunk.end_position
        reading.coverage.bytes = log.size
    reading.finish()
    return reading.coverage


@dataclass(frozen=True, slots=True)
class _OnDisk:
    """The batches of a chunk without bytes: the few that are needed are read again."""

    table: BatchTable
    log: LogFile

    def batch(self, row: int) -> memoryview:
        """Return the bytes of one batch; no bytes if the batch is too large to hold."""
        size = int(self.table.size[row])
        if size > LARGEST_BUFFERED_BATCH:
            return memoryview(b"")
        return memoryview(self.log.read(int(self.table.position[row]), size))


class _Pass:
    """Collector of the coverage of the chunks of a log; a `logtool.log.chunk.ChunkConsumer`."""

    def __init__(self, task: CoverageTask, log: LogFile | None = None) -> None:
        """Start an empty coverage; `log` has the bytes of batches; None: the chunks have them."""
        self._log = log
        self.coverage = Coverage(task.segment.base_offset)
        self.task = task
        self.rules = BatchRules(task.segment.base_offset)
        self._timestamps = TimestampRules(task.segment.log.mtime_ns, task.ahead_ms)
        self._damaged = False
        """True if damage was read after the last batch that counts."""
        self._gaps = SegmentGaps(task.segment.base_offset, exact=task.exact)
        self._rows: list[BatchTable] = []
        self._transactional: list[Column] = []
        self._markers: list[Column] = []

    @property
    def goes_on(self) -> bool:
        """Return whether the edges of plain batches are enough, if no offset is missing.

        They are if the batch before counts too, and no damage lies right before.
        """
        last, before = self.rules.last_offset, self.coverage.last
        if self._damaged or (before is not None and before.offset != last):
            return False
        return (self.task.segment.base_offset if last is None else last + 1) >= self.task.start

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk."""
        coverage = self.coverage
        for _ in self.rules.judge(chunk):
            pass  # verify reports what is wrong with headers
        if chunk.damage:
            coverage.damages += 1
            coverage.tail, self._damaged = chunk.damage.reason, True
            return
        coverage.tail = None
        self._timestamps.add(chunk.table, chunk.plain)
        if self._take_plain(chunk):
            return
        assert not chunk.at_edges
        coverage.filtered += kafka_start.filtered(chunk.table)
        misplaced = chunk.misplaced
        good = np.ones(len(chunk.table), np.bool_) if misplaced is None else ~misplaced
        coverage.damages += int((~good).sum())
        batches: RecordBatches = _OnDisk(chunk.table, self._log) if self._log else chunk
        counts, bases = counts_and_bases(
            batches, limit=self.task.limit, too_large=coverage.too_large
        )
        rows = np.flatnonzero(good)
        skipped = np.diff(rows, prepend=-1) > 1
        if len(rows):
            skipped[0] |= self._damaged
            self._damaged = bool(rows[-1] < len(good) - 1)
        else:
            self._damaged = True
        keep = chunk.table.last_offset[rows] >= self.task.start
        self._rows.append(producer_state.significant(chunk.table[rows]))
        rows, skipped = rows[keep], skipped[keep]
        if len(rows):
            self._take(batches, rows, bases[rows], counts[rows], skipped)

    def _take_plain(self, chunk: Chunk) -> bool:
        """Add a chunk of plain batches by its edges, if it continues the batches before it."""
        coverage, table, plain = self.coverage, chunk.table, chunk.plain
        if plain is None or self._damaged or chunk.misplaced is not None:
            return False
        first, end = int(table.base_offset[0]), int(table.last_offset[-1]) + 1
        before = coverage.last
        if (
            first < self.task.start
            or (before is not None and first != before.offset + 1)
            or end - first != plain.records
        ):
            return False
        if before is None:
            coverage.first, coverage.first_base = _edge(table, 0, first), first
        coverage.last = _edge(table, -1, end - 1)
        if coverage.first_visible is None:
            coverage.first_visible = first
        coverage.last_visible = end - 1
        coverage.batches += plain.batches
        coverage.records += plain.records
        self._add_stretch(int(table.position[0]), chunk.end_position)
        self._rows.append(producer_state.significant(table, plain=plain))
        return True

    def _take(
        self, batches: RecordBatches, rows: Column, bases: Column, counts: Column, damaged: Column
    ) -> None:
        """Add sound batches in the order of the file; `damaged` is True after damage."""
        coverage, table = self.coverage, batches.table[rows]
        whole, bases = bases, np.maximum(bases, self.task.start)
        edge = coverage.last
        if edge is None:
            coverage.damaged_head = bool(damaged[0])
            coverage.first = _edge(table, 0, int(bases[0]))
            coverage.first_base = int(whole[0])
        before = _highest_before(table.last_offset, edge.offset if edge else int(bases[0]) - 1)
        first = np.maximum(bases, before + 1)
        room = np.maximum(table.last_offset - first + 1, 0)
        cut = first > whole
        coverage.overlaps += int((bases <= before).sum())
        counts = np.minimum(counts, room)
        offsets: dict[int, Column] = {}
        wanted = cut | ((counts < room) if self.task.exact else False)
        for row in np.flatnonzero(wanted & (counts > 0)).tolist():
            offsets_of = record_offsets(
                batches, int(rows[row]), limit=self.task.limit, too_large=coverage.too_large
            )
            if offsets_of is not None:
                offsets_of = offsets_of[
                    (offsets_of >= first[row]) & (offsets_of <= table.last_offset[row])
                ]
                offsets[row], counts[row] = offsets_of, len(offsets_of)
        self._gaps.add_between(table, bases, before, damaged, edge)
        self._gaps.add_inside(table, first, room - counts, offsets)
        self._count(table, counts, room)
        self._stretch(table)
        self._see(batches, rows, first, counts, room, offsets)
        highest = max(int(before[-1]), int(table.last_offset[-1]))
        coverage.last = _edge(table, len(table) - 1, highest)

    def _count(self, table: BatchTable, counts: Column, room: Column) -> None:
        coverage = self.coverage
        coverage.batches += len(table)
        coverage.records += int(counts.sum())
        coverage.control += int(counts[table.is_control].sum())
        coverage.horizons += int(table.has_delete_horizon.sum())
        coverage.legacy += int((table.magic < MAGIC).sum())
        coverage.with_holes += int((counts < room).sum())

    def _stretch(self, table: BatchTable) -> None:
        """Add the ranges of bytes of batches; adjacent batches become one range."""
        starts, ends = table.position, table.end_position
        cuts = np.flatnonzero(starts[1:] != ends[:-1])
        firsts, lasts = [starts[0], *starts[cuts + 1]], [*ends[cuts], ends[-1]]
        for start, end in zip(map(int, firsts), map(int, lasts), strict=True):
            self._add_stretch(start, end)

    def _add_stretch(self, start: int, end: int) -> None:
        stretches = self.coverage.stretches
        before = stretches.pop()[0] if stretches and stretches[-1][1] == start else start
        stretches.append((before, end))

    def _see(
        self,
        batches: RecordBatches,
        rows: Column,
        first: Column,
        counts: Column,
        room: Column,
        offsets: dict[int, Column],
    ) -> None:
        """Note the first and the last offset that a consumer gets, transactions and markers."""
        coverage, table = self.coverage, batches.table[rows]
        with_records = counts > 0
        last = table.last_offset
        data = np.flatnonzero(with_records & ~table.is_control)

        def bounds(row: int) -> tuple[int, int]:
            found = offsets.get(row)
            if found is None and counts[row] < room[row]:
                found = record_offsets(
                    batches, int(rows[row]), limit=self.task.limit, too_large=coverage.too_large
                )
            if found is None or not len(found):
                return int(first[row]), int(last[row])
            return int(found.min()), int(found.max())

        if len(data):
            if coverage.first_visible is None:
                coverage.first_visible = bounds(int(data[0]))[0]
            coverage.last_visible = bounds(int(data[-1]))[1]
        parts = np.stack([table.producer_id, first, last, counts, table.position])
        self._transactional.append(
            parts[:, with_records & table.is_transactional & ~table.is_control]
        )
        self._markers.append(parts[[1, 2, 4]][:, with_records & table.is_control])

    def finish(self) -> None:
        """Complete the coverage."""
        coverage = self.coverage
        coverage.gaps = self._gaps.in_order()
        coverage.producer_rows = producer_state.significant(concat(self._rows))
        if self._transactional:
            coverage.transactional = np.concatenate(self._transactional, axis=1)
            coverage.markers = np.concatenate(self._markers, axis=1)
        if coverage.tail is None and self._damaged:
            coverage.tail = DamageReason.CRC  # a batch with foreign offsets is the last
        coverage.odd = list(self._timestamps.finish(self.task.segment.log.path))


class _PlainWalk(EdgeWalk):
    """A pass over plain batches where their edges are enough."""

    def __init__(self, reading: _Pass) -> None:
        task = reading.task
        ordinary = timestamps.ordinary(task.segment.log.mtime_ns, task.ahead_ms)
        super().__init__(task.segment.base_offset, reading.rules, ordinary)
        self._reading = reading

    def walk(
        self, data: memoryview, position: int, rows: Column, first: int
    ) -> tuple[int, int, int]:
        if first:
            return super().walk(data, position, rows, first)
        if not self._reading.goes_on:
            return 0, 0, _kernels.NOT_PLAIN
        count, stop, why = super().walk(data, position, rows, first)
        before = self._reading.coverage.last
        if count and before and int(rows[_BASE_OFFSET, 0]) != before.offset + 1:
            # Offsets are missing right before; only the full walk adds a row for the gap.
            self.forget()
            return 0, 0, _kernels.NOT_PLAIN
        return count, stop, why


def _highest_before(last: Column, start: int) -> Column:
    highest: Column = np.maximum.accumulate(np.concatenate(([start], last)))[:-1]
    return highest


def _edge(table: BatchTable, row: int, offset: int) -> EdgeBatch:
    return EdgeBatch(
        offset=offset,
        epoch=int(table.leader_epoch[row]),
        timestamp=int(table.max_timestamp[row]),
        position=int(table.position[row]),
    )
