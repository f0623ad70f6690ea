"""Rules for the records inside the batches: decompress, decode, compare with the header."""

from collections.abc import Iterator

import numpy as np

from logtool.findings import Finding
from logtool.formats import _kernels, compression, wording
from logtool.formats.record import RecordSpans
from logtool.formats.record_batch import (
    HEADER_SIZE,
    MAGIC,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE,
    Column,
)
from logtool.log.chunk import Chunk
from logtool.log.record_table import Unread
from logtool.log.records import batch_records, batch_spans, unpack


def check_records(chunk: Chunk, limit: int) -> Iterator[Finding]:
    """Yield the faults inside each batch of the chunk; a batch may decompress to `limit` bytes.

    A kernel checks the records of many batches at once; only batches that look wrong to it, or
    that it cannot decode, are checked one by one.
    """
    table = chunk.table
    wrong = np.ones(len(table), np.uint8) if chunk.suspects is None else chunk.suspects
    if not wrong.any():
        return
    positions = table.position - chunk.data_position
    ends = positions + table.size
    left = (wrong != 0) & (table.magic >= MAGIC) & (ends <= len(chunk.data))
    codec = table.codec
    rows = np.flatnonzero(left & (codec == compression.NONE))
    if len(rows):
        begin = positions[rows]
        wrong[rows] = _suspicious(chunk.data, begin, chunk.data, begin + HEADER_SIZE, ends[rows])
    rows = np.flatnonzero(left & (codec > compression.NONE) & (codec < len(compression.NAMES)))
    if len(rows):
        _judge_packed(chunk.data, rows, codec[rows], positions[rows], ends[rows], limit, wrong)
    for row in np.flatnonzero(wrong).tolist():
        yield from _check_batch(chunk, row, limit)


def _judge_packed(
    data: memoryview,
    rows: Column,
    codecs: Column,
    positions: Column,
    ends: Column,
    limit: int,
    wrong: Column,
) -> None:
    """Write the verdicts of `_suspicious` on compressed batches to `wrong`.

    A batch that cannot be decompressed stays marked as wrong. As many batches as have room are
    decompressed into one buffer, and then judged together.
    """
    starts = positions + HEADER_SIZE
    for some, payloads, edges in unpack(data, codecs, starts, ends, limit=limit):
        faults = _suspicious(data, positions[some], payloads, edges[:-1], edges[1:])
        wrong[rows[some]] = faults


def _suspicious(
    heads: memoryview, positions: Column, data: memoryview, starts: Column, ends: Column
) -> Column:
    """Return 1 for each batch whose payload ``data[starts:ends]`` may break a rule, else 0."""
    wrong = np.empty(len(starts), np.uint8)
    _kernels.judge_records(heads, positions, data, starts, ends, wrong)
    return wrong


def _check_batch(chunk: Chunk, row: int, limit: int) -> Iterator[Finding]:
    table = chunk.table
    batch = chunk.batch(row)
    first, last = int(table.base_offset[row]), int(table.last_offset[row])
    if len(batch) < int(table.size[row]):
        text = f"batch of {wording.size(table.size[row])} is too large to decode"
        yield _finding("batch/too-large", chunk, row, text)
        return
    codec, count = int(table.codec[row]), int(table.record_count[row])
    is_legacy = bool(table.magic[row] < MAGIC)
    if not is_legacy and (codec >= len(compression.NAMES) or not 0 <= count <= last - first + 1):
        return  # the rules for headers report it
    seen = _Seen(last - first, table.base_timestamp[row])
    for part in (batch_records if is_legacy else batch_spans)(chunk, row, limit=limit):
        if isinstance(part, Unread):
            where = "" if codec == compression.NONE else " of the decompressed records"
            text = f"{part.reason} (byte {part.error.position}{where})"
            code = "batch/too-large" if part.beyond_limit else "batch/records"
            yield _finding(code, chunk, row, text if part.in_records else part.reason)
            if not part.in_records:
                return
        elif isinstance(part, RecordSpans):
            seen.add(part)
        elif ((part.magic == 0) & (part.spans.attributes & TIMESTAMP_TYPE != 0)).any():
            text = "a message of magic 0 has a timestamp type"
            yield _finding("batch/records", chunk, row, text)
            return
    if seen.wrong_offset:
        yield _finding("batch/record-offsets", chunk, row, seen.wrong_offset)
    if not table.is_log_append_time[row]:
        yield from _check_timestamps(chunk, row, seen.latest)


class _Seen:
    """The offsets and timestamps of the records of one batch, read slice after slice."""

    def __init__(self, room: int, base_timestamp: np.int64) -> None:
        """`room` is the largest offset delta that stays in the batch; the timestamp is in ms."""
        self._room, self._base_timestamp = room, base_timestamp
        self._count, self._delta = 0, -1
        self.wrong_offset: str | None = None
        """The first offset that does not rise, or lies outside of the batch, in words."""
        self.latest: int | None = None
        """Largest timestamp, ms; None without records."""

    def add(self, records: RecordSpans) -> None:
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
        latest = int((self._base_timestamp + records.timestamp_delta).max())
        self.latest = latest if self.latest is None else max(self.latest, latest)
        self._count, self._delta = self._count + len(deltas), int(deltas[-1])


def _check_timestamps(chunk: Chunk, row: int, latest: int | None) -> Iterator[Finding]:
    """Compare the header's largest timestamp with the records; an empty batch is not judged.

    A broker writes -1 where every record has a lower one (``LogValidator``, Kafka 4.1).
    """
    if latest is None or chunk.table.is_control[row]:
        return
    stored = int(chunk.table.max_timestamp[row])
    if stored not in (latest, max(latest, NO_TIMESTAMP)):
        text = f"the largest timestamp of its records is {latest}, but the header has {stored}"
        yield _finding("batch/max-timestamp", chunk, row, text)


def _finding(code: str, chunk: Chunk, row: int, text: str) -> Finding:
    table = chunk.table
    return Finding(
        code,
        f"batch at offset {table.base_offset[row]}: {text}",
        position=int(table.position[row]),
        length=int(table.size[row]),
        first_offset=int(table[row : row + 1].first_offset[0]),
        last_offset=int(table.last_offset[row]),
    )
