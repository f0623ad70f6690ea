"""Rules for the records inside the batches: decompress, decode, compare with the header."""

from collections.abc import Iterator

import numpy as np

from logtool.errors import FormatError, LimitError
from logtool.findings import Finding
from logtool.formats import compression, kernels, legacy_batch, record, wording
from logtool.formats.record import RecordTable
from logtool.formats.record_batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE,
    BatchTable,
    Column,
)
from logtool.segment.walk import Chunk

_UNPACKED_AT_ONCE = 512 * 1024
"""Bytes: few enough for a cache, and for memory that an allocator keeps."""
_MOST_JOINED = 16 * 1024 * 1024
"""Bytes that one batch may decompress to and still be copied beside others."""


def check_records(chunk: Chunk, limit: int) -> Iterator[Finding]:
    """Yield what is wrong inside each batch of the chunk; `limit` bounds decompression, bytes.

    Many batches are decoded at once and judged as columns; only what looks wrong there, and
    what cannot be decoded that way, is gone through batch by batch.
    """
    table = chunk.table
    wrong = np.ones(len(table), np.bool_)
    held = table.position - chunk.data_position + table.size <= len(chunk.data)
    counted = (table.record_count >= 0) & (table.magic >= MAGIC) & held
    # One of very many records is gone through slice by slice: as columns they take far more.
    counted &= table.record_count <= record.MOST_AT_ONCE
    plain = np.flatnonzero(counted & (table.codec == compression.NONE))
    starts = table.position[plain] - chunk.data_position
    wrong[plain] = _suspicious(
        chunk.data, starts + HEADER_SIZE, starts + table.size[plain], table[plain]
    )
    packed = np.flatnonzero(counted & (table.codec > 0) & (table.codec < len(compression.NAMES)))
    for rows, payloads in _unpacked(chunk, packed, limit):
        ends = np.cumsum([len(payload) for payload in payloads])
        starts = np.concatenate(([0], ends[:-1]))
        wrong[rows] = _suspicious(memoryview(b"".join(payloads)), starts, ends, table[rows])
    for row in np.flatnonzero(wrong).tolist():
        yield from _check_batch(chunk, row, limit)


def _unpacked(
    chunk: Chunk, packed: Column, limit: int
) -> Iterator[tuple[Column, list[memoryview]]]:
    """Yield (rows, payloads) of the compressed batches that decompress, some MiB at a time."""
    rows: list[int] = []
    payloads: list[memoryview] = []
    size = 0
    for row in packed.tolist():
        try:
            codec = int(chunk.table.codec[row])
            some = min(limit, _MOST_JOINED)
            payload = compression.decompress(codec, chunk.batch(row)[HEADER_SIZE:], some)
        except FormatError:
            continue  # stays wrong, and is told of there
        rows.append(row)
        payloads.append(payload)
        size += len(payload)
        if size >= _UNPACKED_AT_ONCE:
            yield np.array(rows), payloads
            rows, payloads, size = [], [], 0
    if rows:
        yield np.array(rows), payloads


def _suspicious(data: memoryview, starts: Column, ends: Column, table: BatchTable) -> Column:
    """Return where the payloads ``data[starts:ends]`` may break a rule, a bool for each batch."""
    count = len(table)
    if not count:
        return np.zeros(0, np.bool_)
    # A count is untrusted: no more records than have room.
    counts = np.minimum(table.record_count, (ends - starts) // kernels.SMALLEST_RECORD + 1)
    rows = np.empty((int(counts.sum()), kernels.RECORD_COLUMNS), np.int64)
    results = np.empty((count, 3), np.int64)
    total = kernels.decode_batches(data, starts, ends, counts, rows, results)
    done = results[:, 0]
    wrong: Column = (results[:, 2] != kernels.DONE) | (done != table.record_count)
    wrong |= (results[:, 1] != ends) & (done > 0)
    if not total:
        return wrong
    firsts = (np.cumsum(done) - done)[done > 0]
    owner = np.repeat(np.arange(count), done)
    delta = rows[:total, 4]
    before = np.empty_like(delta)
    before[1:], before[firsts] = delta[:-1], -1
    wrong[owner[(delta <= before) | (delta > (table.last_offset - table.base_offset)[owner])]] = (
        True
    )
    highest = np.maximum.reduceat(rows[:total, 3], firsts) + table.base_timestamp[done > 0]
    wrong[done > 0] |= highest != table.max_timestamp[done > 0]
    return wrong


def _check_batch(chunk: Chunk, row: int, limit: int) -> Iterator[Finding]:
    table = chunk.table
    batch = chunk.batch(row)
    first, last = int(table.base_offset[row]), int(table.last_offset[row])
    if len(batch) < int(table.size[row]):
        text = f"batch of {wording.size(table.size[row])} is too large to decode"
        yield _finding("batch/too-large", chunk, row, text)
        return
    try:
        if table.magic[row] < MAGIC:
            _check_legacy(batch, limit)
            return
        codec, count = int(table.codec[row]), int(table.record_count[row])
        if codec >= len(compression.NAMES) or not 0 <= count <= last - first + 1:
            return  # the header's own rules say so
        payload = compression.decompress(codec, batch[HEADER_SIZE:], limit)
    except LimitError as error:
        yield _finding("batch/too-large", chunk, row, error.reason)
        return
    except FormatError as error:
        yield _finding("batch/records", chunk, row, error.reason)
        return
    seen = _Seen(last - first)
    for records, damage in record.parse_slices(payload, count):
        seen.add(records)
        if damage:
            where = "" if codec == compression.NONE else " of the decompressed records"
            text = f"{damage.reason} (byte {damage.position}{where})"
            yield _finding("batch/records", chunk, row, text)
    if seen.wrong_offset:
        yield _finding("batch/record-offsets", chunk, row, seen.wrong_offset)
    if not table.is_log_append_time[row]:
        yield from _check_timestamps(chunk, row, seen.latest)


class _Seen:
    """What is known of the records of one batch, slice after slice."""

    def __init__(self, room: int) -> None:
        """`room` is the largest offset delta that stays in the batch."""
        self._room = room
        self._count, self._delta = 0, -1
        self.wrong_offset: str | None = None
        """The first that does not rise strictly or leaves the batch, in words."""
        self.latest: int | None = None
        """Largest timestamp delta, ms; None without records."""

    def add(self, records: RecordTable) -> None:
        """Take the next records."""
        deltas = records.offset_delta
        if not len(deltas):
            return
        steps = np.diff(deltas, prepend=self._delta)
        bad = np.flatnonzero((steps <= 0) | (deltas > self._room))
        if len(bad) and self.wrong_offset is None:
            at = int(bad[0])
            text = f"record {self._count + at} has offset delta {deltas[at]}, expected more than "
            text += f"{deltas[at - 1] if at else self._delta} and at most {self._room}"
            self.wrong_offset = text
        latest = int(records.timestamp_delta.max())
        self.latest = latest if self.latest is None else max(self.latest, latest)
        self._count, self._delta = self._count + len(deltas), int(deltas[-1])


def _check_timestamps(chunk: Chunk, row: int, latest: int | None) -> Iterator[Finding]:
    """Hold the header's largest timestamp against the records; an empty batch keeps its own."""
    if latest is None:
        return
    highest = latest + int(chunk.table.base_timestamp[row])
    stored = int(chunk.table.max_timestamp[row])
    if chunk.table.base_timestamp[row] == NO_TIMESTAMP and highest <= NO_TIMESTAMP:
        return
    if highest != stored and not chunk.table.is_control[row]:
        text = f"the largest timestamp of its records is {highest}, the header says {stored}"
        yield _finding("batch/max-timestamp", chunk, row, text)


def _check_legacy(batch: memoryview, limit: int) -> None:
    """Raise FormatError where a message of magic 0 or 1, or one inside a wrapper, is unsound."""
    for message in legacy_batch.parse_messages(batch, limit):
        if message.magic == 0 and message.attributes & TIMESTAMP_TYPE:
            raise FormatError("a message of magic 0 claims a timestamp type", LOG_OVERHEAD)


def _finding(code: str, chunk: Chunk, row: int, text: str) -> Finding:
    table = chunk.table
    return Finding(
        code,
        f"batch at offset {table.base_offset[row]}: {text}",
        position=int(table.position[row]),
        length=int(table.size[row]),
        first_offset=int(table.base_offset[row]),
        last_offset=int(table.last_offset[row]),
    )
