"""The records of batches, of magic 0, 1 and 2, as columns and within a limit of memory.

Above the formats this is the only module that decompresses a batch and decodes its records.
`records` reads many batches at once where they are ordinary, which is what a healthy log holds by
far the most of: magic 2, no control batch, records that decode to the last byte, and times that a
calendar has. It reads every other batch alone. A record has the timestamp that a consumer is given:
that of its batch where the broker wrote it (LogAppendTime). Sums wrap, as they do in Java.

Batches that cannot be read are values, not exceptions: see `Unread`.
"""

import threading
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import NamedTuple, Protocol

import numpy as np

from logtool.errors import FormatError
from logtool.formats import _kernels, compression, legacy_batch, record, record_batch
from logtool.formats.compression import DEFAULT_LIMIT
from logtool.formats.record import RecordSpans
from logtool.formats.record_batch import (
    CODEC_MASK,
    HEADER_SIZE,
    MAGIC,
    MIN_ENTRY_SIZE,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    SEQUENCES,
    TIMESTAMP_TYPE,
    BatchTable,
    Column,
)
from logtool.log.chunk import Chunk, Source
from logtool.log.record_table import RecordTable, Unread, table_of_messages, unread
from logtool.times import LAST_TIME

BLOCK_SIZE = 2560 * 1024
"""Bytes of batches that are read at once, more than a chunk has unless a batch is larger: many
enough for what is done once for each table."""
PACKED = 3
"""Bytes that one byte of a compressed batch counts as."""
MOST_UNPACKED = 16 * 1024 * 1024
"""Bytes that batches which are read at once may decompress to."""
BLOCK_RECORDS = 16 * 1024
"""Records that are read at once, as a line of one takes a KiB or more; more where one batch has
more."""
MOST_RECORDS = 256 * 1024
"""Records of a batch that is read together with others."""
_MOST = 2**62
"""No offset of an ordinary batch is larger, so that none overflows."""
_ROOM = 512 * 1024
"""Bytes: few enough for a cache. `unpack` decompresses into one buffer of this size a thread."""
_OF_THREAD = threading.local()


class RecordBatches(Protocol):
    """Batches whose bytes can be asked for; a `logtool.log.chunk.Chunk` with payload is one."""

    @property
    def table(self) -> BatchTable:
        """Return their headers as columns."""

    def batch(self, row: int) -> memoryview:
        """Return the bytes of one batch; fewer where they are too many to hold."""


class Unpacked(NamedTuple):
    """Some payloads that `unpack` has decompressed, one behind the other."""

    rows: list[int]
    """The numbers of these payloads among those that were given."""
    data: memoryview
    edges: Column
    """Position in `data` at which each begins, and the end of the last one."""


def records(
    chunk: Chunk,
    rows: Column | None = None,
    *,
    limit: int = DEFAULT_LIMIT,
    source: Source | None = None,
) -> Iterator[RecordTable | Unread]:
    """Yield the records of the batches `rows` of a chunk, which rise, or of all of them, in order.

    A batch may decompress to `limit` bytes. `source` is where a batch of at most `limit` bytes is
    read from if the chunk does not hold it. The records before damage in a batch come in a table
    before the `Unread` of the batch. A table is good as long as the chunk is.
    """
    chosen = np.arange(len(chunk.table)) if rows is None else rows
    for some, ordinary in pieces(chunk, chosen):
        table = read_together(chunk, some, limit=limit) if ordinary else None
        if table is not None:
            yield table
            continue
        for row in some.tolist():
            yield from batch_records(chunk, row, limit=limit, source=source)


def batch_records(
    chunk: RecordBatches, row: int, *, limit: int = DEFAULT_LIMIT, source: Source | None = None
) -> Iterator[RecordTable | Unread]:
    """Yield the records of one batch of any kind, some at a time; see `records`."""
    table = chunk.table
    if table.magic[row] < MAGIC:
        yield from _messages(chunk, row, limit, source)
        return
    body = payload(chunk, row, limit=limit, source=source)
    if isinstance(body, Unread):
        yield body
        return
    batch = table[row : row + 1]
    stamped = int(table.attributes[row]) & TIMESTAMP_TYPE
    base_offset, first = batch.base_offset[0], int(batch.base_sequence[0])
    for spans in _spans(table, row, body):
        if isinstance(spans, Unread):
            yield spans
            return
        count = len(spans)
        yield RecordTable(
            data=body,
            batches=batch,
            counts=np.array([count]),
            spans=spans,
            offset=base_offset + spans.offset_delta,
            timestamp=np.full(count, batch.max_timestamp[0])
            if stamped
            else batch.base_timestamp[0] + spans.timestamp_delta,
            sequence=np.full(count, NO_SEQUENCE)
            if first < 0
            else (first + spans.offset_delta) % SEQUENCES,
        )


def batch_spans(
    chunk: RecordBatches, row: int, *, limit: int = DEFAULT_LIMIT
) -> Iterator[RecordSpans | Unread]:
    """Yield where the records of one batch of magic 2 lie, some at a time.

    It takes a part of the time of `batch_records`, for anyone who needs no more than these columns.
    """
    body = payload(chunk, row, limit=limit)
    if isinstance(body, Unread):
        yield body
    else:
        yield from _spans(chunk.table, row, body)


def payload(
    chunk: RecordBatches, row: int, *, limit: int = DEFAULT_LIMIT, source: Source | None = None
) -> memoryview | Unread:
    """Return the bytes behind the header of one batch of magic 2, decompressed and not decoded."""
    table, data = chunk.table, _whole(chunk, row, limit, source)
    if data is None:
        return _too_large(table, row)
    try:
        return compression.decompress(
            int(table.attributes[row]) & CODEC_MASK, data[HEADER_SIZE:], limit
        )
    except FormatError as error:
        return unread(table, row, error)


def one_batch(data: memoryview, position: int = 0) -> Chunk:
    """Return the batch that takes all of `data` as a chunk; it stands at a byte of a file.

    Nothing is compared: its size is that of `data`, and its CRC may be wrong. FormatError where
    `data` is shorter than any batch.
    """
    if len(data) < MIN_ENTRY_SIZE:
        raise FormatError(f"batch of {len(data)} bytes")
    table = record_batch.parse(data, [0], base=position)
    table.size[0] = len(data)
    if table.magic[0] < MAGIC:
        legacy_batch.fill(table, data, np.zeros(1, np.int64))
    return Chunk(table, data, position, None, [])


def pieces(
    chunk: Chunk, rows: Column, *, with_records: bool = True
) -> Iterator[tuple[Column, bool]]:
    """Yield the `rows` of a chunk, which rise, piece by piece, and whether all of one are ordinary.

    A piece of ordinary batches is few enough for `read_together`. Without `with_records` the
    headers alone count, and control batches are ordinary too.
    """
    table = chunk.table if len(rows) == len(chunk.table) else chunk.table[rows]
    ordinary = _ordinary(table, chunk)
    weight = np.where(table.codec > 0, PACKED, 1) * table.size
    enough = np.cumsum(weight) // BLOCK_SIZE
    if with_records:
        ordinary &= ~table.is_control & (table.record_count <= MOST_RECORDS)
        counts = np.where(ordinary, table.record_count, 0)
        enough += np.cumsum(counts) // BLOCK_RECORDS
    piece = enough * 2 + ordinary
    edges = [0, *(np.flatnonzero(piece[1:] != piece[:-1]) + 1).tolist(), len(rows)]
    for first, stop in pairwise(edges):
        yield rows[first:stop], stop > first and bool(ordinary[first])


def read_together(chunk: Chunk, rows: Column, *, limit: int = DEFAULT_LIMIT) -> RecordTable | None:
    """Return the records of a piece of ordinary batches as one table.

    Return None where one of them does not decode to the last byte, or decompresses to more than
    `limit` bytes, or all of them decompress to more than `MOST_UNPACKED` bytes: then each is to be
    read alone.
    """
    table = chunk.table[rows]
    payloads = _payloads(chunk, table, limit)
    return _decode(table, *payloads) if payloads else None


def unpack(
    data: memoryview, codecs: Column, starts: Column, ends: Column, *, limit: int
) -> Iterator[Unpacked]:
    """Yield the compressed payloads ``data[starts:ends]`` decompressed, as many as have room.

    They stand in a buffer of the thread, and are good until the next ones. What cannot be
    decompressed, or only to more than `limit` bytes, is left out.
    """
    room = _room_of_thread()
    memory = room.obj
    done: list[int] = []
    bounds = [0]
    used = last = 0
    blocks = np.full(len(starts), -1)
    snappy = codecs == compression.SNAPPY
    blocks[snappy] = compression.lone_snappy_blocks(data, starts[snappy], ends[snappy])
    spans = zip(*(column.tolist() for column in (codecs, starts, blocks, ends)), strict=True)
    for number, (codec, start, block, end) in enumerate(spans):
        if used + 2 * last > len(room):  # the next batch probably has no room
            if done:
                yield Unpacked(done, room, np.array(bounds))
            done, bounds, used = [], [0], 0
        if block >= 0:
            try:
                last = compression.snappy_block_into(data[block:end], room[used:])
            except compression.DecompressionError:
                pass  # it has no room there, or is damaged, which shows below
            else:
                if last <= limit:
                    used += last
                    done.append(number)
                    bounds.append(used)
                continue
        try:
            body = compression.decompress(codec, data[start:end], limit, room[used:])
        except FormatError:
            continue
        last = len(body)
        if body.obj is memory:
            used += last
            done.append(number)
            bounds.append(used)
        else:
            yield Unpacked([number], body, np.array([0, last]))
    if done:
        yield Unpacked(done, room, np.array(bounds))


def first_offset(entry: memoryview, *, limit: int = DEFAULT_LIMIT) -> int:
    """Return the offset of the first message of an entry of magic 0 or 1; FormatError on damage."""
    return next(legacy_batch.parse_messages(entry, limit)).offset


def record_offsets(
    chunk: RecordBatches, row: int, *, limit: int = DEFAULT_LIMIT, too_large: set[int] | None = None
) -> Column | None:
    """Return the offsets of the records of a batch, int64 rising; None where it does not decode.

    Where it is because the batch decompresses to more than `limit` bytes, its position in the log
    is added to `too_large`.
    """
    table, found = chunk.table, []
    is_legacy = table.magic[row] < MAGIC
    base = 0 if is_legacy else table.base_offset[row]
    parts = (batch_records if is_legacy else batch_spans)(chunk, row, limit=limit)
    for part in parts:
        if isinstance(part, Unread):
            if part.beyond_limit and too_large is not None:
                too_large.add(part.position)
            return None
        found.append(part.offset_delta if isinstance(part, RecordSpans) else part.offset)
    return np.unique(base + np.concatenate(found))


def counts_and_bases(
    chunk: RecordBatches, *, limit: int = DEFAULT_LIMIT, too_large: set[int] | None = None
) -> tuple[Column, Column]:
    """Return how many records each batch holds, and its first offset; see `record_offsets`."""
    table = chunk.table
    bases = table.base_offset.copy()
    for row in np.flatnonzero(table.is_wrapper).tolist():
        offsets = record_offsets(chunk, row, limit=limit, too_large=too_large)
        if offsets is not None and len(offsets):
            bases[row] = offsets[0]
    return table.records_of_each, bases


def _spans(table: BatchTable, row: int, body: memoryview) -> Iterator[RecordSpans | Unread]:
    """Yield where the records of a batch lie in its decompressed bytes."""
    for spans, damage in record.parse_slices(body, int(table.record_count[row])):
        yield spans
        if damage:
            yield unread(table, row, damage, in_records=True)


def _whole(chunk: RecordBatches, row: int, limit: int, source: Source | None) -> memoryview | None:
    """Return the bytes of a batch, None where there are not all of them."""
    size, in_memory = int(chunk.table.size[row]), chunk.batch(row)
    if len(in_memory) >= size:
        return in_memory
    if source is None or size > limit:
        return None
    whole = memoryview(bytearray(size))
    return whole if source.read_into(whole, int(chunk.table.position[row])) == size else None


def _too_large(table: BatchTable, row: int) -> Unread:
    return unread(table, row, FormatError("the batch is too large to be read"), in_memory=False)


def _messages(
    chunk: RecordBatches, row: int, limit: int, source: Source | None
) -> Iterator[RecordTable | Unread]:
    """Yield the messages of an entry of magic 0 or 1, some at a time."""
    data = _whole(chunk, row, limit, source)
    if data is None:
        yield _too_large(chunk.table, row)
        return
    batch = chunk.table[row : row + 1]
    messages = legacy_batch.parse_messages(data, limit)
    try:
        # A wrapper is damaged before its first message or not at all: it is gone through twice.
        while some := list(islice(messages, record.MOST_AT_ONCE)):
            yield table_of_messages(batch, some)
    except FormatError as error:
        yield unread(chunk.table, row, error)


def _ordinary(table: BatchTable, chunk: Chunk) -> Column:
    """Return which batches are ordinary as far as their headers say."""
    mask: Column = (table.magic == MAGIC) & (table.record_count >= 0)
    for time in (table.base_timestamp, table.max_timestamp):
        mask &= (time >= NO_TIMESTAMP) & (time <= LAST_TIME)
    # A column has -1 for no time, but a horizon of -1 is one, and shown as it is.
    mask &= ~table.has_delete_horizon | (table.base_timestamp != NO_TIMESTAMP)
    mask &= (table.base_offset >= -_MOST) & (table.base_offset <= _MOST)
    mask &= table.end_position <= chunk.data_position + len(chunk.data)
    return mask


def _payloads(
    chunk: Chunk, table: BatchTable, limit: int
) -> tuple[memoryview, Column, Column] | None:
    """Return bytes with all payloads uncompressed, and where each begins and ends in them."""
    begin = table.position - chunk.data_position
    first, last = int(begin[0]), int(begin[-1] + table.size[-1])
    data = chunk.data[first:last]
    starts, ends = begin - first + HEADER_SIZE, begin - first + table.size
    if not table.codec.any():
        return data, starts, ends
    parts, left = [], MOST_UNPACKED
    for codec, start, end in zip(table.codec.tolist(), starts.tolist(), ends.tolist(), strict=True):
        if left < 0:
            return None
        try:
            most = min(left, limit)
            parts.append(compression.decompress(codec & CODEC_MASK, data[start:end], most))
        except FormatError:
            return None
        left -= len(parts[-1])
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    joined = memoryview(bytearray(b"").join(parts))
    return joined, ends - [len(part) for part in parts], ends


def _decode(
    table: BatchTable, data: memoryview, starts: Column, ends: Column
) -> RecordTable | None:
    counts = table.record_count.astype(np.int64)
    if (counts * _kernels.SMALLEST_RECORD > ends - starts).any():
        return None
    rows = np.empty((int(counts.sum()), _kernels.PLACED_COLUMNS), np.int64)
    results = np.empty((len(counts), 3), np.int64)
    _kernels.decode_batches(data, starts, ends, counts, rows, results)
    position, reason = results[:, 1], results[:, 2]
    if (reason != _kernels.DONE).any() or ((position != ends) & (counts > 0)).any():
        return None
    of_batches = (
        table.base_offset, table.attributes, table.base_timestamp, table.max_timestamp,
        table.base_sequence,
    )  # fmt: skip
    if not _kernels.place_records(*of_batches, counts, LAST_TIME, rows):
        return None
    *columns, offset, timestamp, sequence = rows.T
    return RecordTable(
        data=data,
        batches=table,
        counts=counts,
        spans=RecordSpans(*columns),
        offset=offset,
        timestamp=timestamp,
        sequence=sequence,
        matrix=rows,
    )


def _room_of_thread() -> memoryview:
    """Return a buffer of this thread, into which it decompresses again and again."""
    try:
        room: memoryview = _OF_THREAD.room
    except AttributeError:
        room = _OF_THREAD.room = memoryview(bytearray(_ROOM))
    return room
