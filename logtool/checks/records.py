"""Rules for the records inside the batches: decompress, decode, compare with the header."""

from collections.abc import Iterator

import numpy as np

from logtool.errors import FormatError
from logtool.findings import Finding
from logtool.formats import compression, legacy_batch, record
from logtool.formats.record import RecordTable
from logtool.formats.record_batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE,
)
from logtool.scan import Chunk


def check_records(chunk: Chunk, limit: int) -> Iterator[Finding]:
    """Yield what is wrong inside each batch of the chunk; `limit` bounds decompression, bytes."""
    table = chunk.table
    for row in range(len(table)):
        batch = chunk.batch(row)
        first, last = int(table.base_offset[row]), int(table.last_offset[row])
        if len(batch) < int(table.size[row]):
            text = f"batch of {table.size[row]} bytes is too large to decode"
            yield _finding("batch/too-large", chunk, row, text)
            continue
        try:
            if table.magic[row] < MAGIC:
                _check_legacy(batch, limit)
                continue
            codec, count = int(table.codec[row]), int(table.record_count[row])
            if codec >= len(compression.NAMES) or not 0 <= count <= last - first + 1:
                continue  # the header's own rules say so
            payload = compression.decompress(codec, batch[HEADER_SIZE:], limit)
            records, damage = record.parse(payload, count)
        except FormatError as error:
            yield _finding("batch/records", chunk, row, error.reason)
            continue
        if damage:
            where = "" if codec == compression.NONE else " of the decompressed records"
            text = f"{damage.reason} (byte {damage.position}{where})"
            yield _finding("batch/records", chunk, row, text)
        yield from _check_offsets(chunk, row, records, last - first)
        if not table.is_log_append_time[row]:
            yield from _check_timestamps(chunk, row, records)


def _check_offsets(chunk: Chunk, row: int, records: RecordTable, room: int) -> Iterator[Finding]:
    """Hold the offsets against the rule that they rise strictly and do not leave the batch."""
    deltas = records.offset_delta
    if not len(deltas):
        return
    bad = np.flatnonzero((np.diff(deltas, prepend=-1) <= 0) | (deltas > room))
    if len(bad):
        at = int(bad[0])
        text = f"record {at} has offset delta {deltas[at]}, expected more than "
        text += f"{deltas[at - 1] if at else -1} and at most {room}"
        yield _finding("batch/record-offsets", chunk, row, text)


def _check_timestamps(chunk: Chunk, row: int, records: RecordTable) -> Iterator[Finding]:
    """Hold the header's largest timestamp against the records; an empty batch keeps its own."""
    if not len(records):
        return
    highest = int(records.timestamp_delta.max()) + int(chunk.table.base_timestamp[row])
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
