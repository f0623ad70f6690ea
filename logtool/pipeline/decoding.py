"""Batches with their records decoded, as far as they can be: what a pass makes rows of."""

from collections.abc import Iterator

import numpy as np

from logtool.dump import blocks
from logtool.dump.blocks import Records
from logtool.errors import FormatError, LimitError
from logtool.formats import compression, legacy_batch, record, wording
from logtool.formats.record import RecordSpans
from logtool.formats.record_batch import HEADER_SIZE, MAGIC, NO_SEQUENCE, SEQUENCES, BatchTable
from logtool.log.chunk import Chunk, Source


def decoded(
    chunk: Chunk, limit: int, file: Source | None, strict: bool
) -> Iterator[tuple[BatchTable, Records]]:
    """Yield the batches of a chunk with their records: many at once, or one by one.

    Of a batch with damage inside there are the records before it. A batch that cannot be
    decompressed, or only to more than `limit` bytes, is left out, and so is one too large for the
    chunk to hold unless `file` has its bytes. With `strict`, LimitError names one that is above
    the limit.
    """
    rows = np.arange(len(chunk.table))
    for some, block in blocks.cut(blocks.NOWHERE, chunk, rows, records=True):
        # What a block decompresses to is held against no other limit than its own.
        if block and block.records and limit >= blocks.MOST_UNPACKED:
            yield block.batches, block.records
            continue
        for row in some.tolist():
            records = _one_by_one(chunk, row, limit, file, strict)
            if records:
                yield chunk.table[row : row + 1], records


def _one_by_one(
    chunk: Chunk, row: int, limit: int, file: Source | None, strict: bool
) -> Records | None:
    """Return the records of one batch of any kind; of a damaged one those that are readable."""
    batch, data = chunk.table[row : row + 1], _whole(chunk, row, limit, file)
    if len(data) < int(batch.size[0]):
        if strict and int(batch.size[0]) > limit:
            raise _too_large(batch, limit)
        return None
    try:
        if batch.magic[0] < MAGIC:
            return _legacy(data, limit)
        return _modern(
            batch, compression.decompress(int(batch.codec[0]), data[HEADER_SIZE:], limit)
        )
    except LimitError as error:
        if strict:
            raise _too_large(batch, limit) from error
        return None
    except FormatError:
        return None


def _too_large(batch: BatchTable, limit: int) -> LimitError:
    return LimitError(
        f"the batch at byte {batch.position[0]}, "
        f"{wording.offsets(batch.base_offset[0], batch.last_offset[0])}, "
        f"decompresses to more than {limit:,} bytes"
    )


def _whole(chunk: Chunk, row: int, limit: int, file: Source | None) -> memoryview:
    """Return the bytes of a batch; the scan does not hold those of a very large one."""
    size, held = int(chunk.table.size[row]), chunk.batch(row)
    if len(held) >= size or size > limit or file is None:
        return held
    whole = memoryview(bytearray(size))
    return whole[: file.read_into(whole, int(chunk.table.position[row]))]


def _modern(batch: BatchTable, payload: memoryview) -> Records | None:
    """Decode a payload of magic 2 as far as it goes. Sums wrap, as they do in Java."""
    found, _ = record.parse(payload, max(int(batch.record_count[0]), 0))
    if not len(found):
        return None
    base = batch.base_timestamp if not batch.is_log_append_time[0] else batch.max_timestamp
    delta = found.timestamp_delta if not batch.is_log_append_time[0] else 0
    first = int(batch.base_sequence[0])
    sequence = (first + found.offset_delta) % SEQUENCES
    return Records(
        data=payload,
        counts=np.array([len(found)]),
        table=found,
        offset=batch.base_offset + found.offset_delta,
        timestamp=np.broadcast_to(base + delta, len(found)),
        sequence=np.full(len(found), NO_SEQUENCE) if first == NO_SEQUENCE else sequence,
    )


def _legacy(data: memoryview, limit: int) -> Records:
    """Return the messages of an entry of magic 0 or 1 as if they were records of magic 2."""
    messages = list(legacy_batch.parse_messages(data, limit))
    joined = bytearray()
    rows = np.zeros((len(messages), len(RecordSpans.__slots__)), np.int64)
    for row, message in zip(rows, messages, strict=True):
        for column, value in ((5, message.key), (7, message.value)):
            row[column : column + 2] = len(joined), -1 if value is None else len(value)
            joined += value or b""
    return Records(
        data=memoryview(joined),
        counts=np.array([len(messages)]),
        table=RecordSpans(*rows.T),
        offset=np.array([message.offset for message in messages], np.int64),
        timestamp=np.array([message.timestamp for message in messages], np.int64),
        sequence=np.full(len(messages), NO_SEQUENCE),
        crc=np.array([message.crc for message in messages], np.int64),
    )
