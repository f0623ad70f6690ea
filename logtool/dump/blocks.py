"""Stretches of ordinary batches with their records as columns, for writers that are fast.

Ordinary is what a healthy log holds by far the most of: magic 2, records that decode to the last
byte, times that a calendar has. Everything else goes the way of single objects (`logtool.dump.log`
and `records`), which alone define the fields: a block only gives their values for many at once.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from logtool.errors import FormatError
from logtool.formats import compression, kernels
from logtool.formats.record import RecordSpans
from logtool.formats.record_batch import (
    CODEC_MASK,
    HEADER_SIZE,
    MAGIC,
    NO_TIMESTAMP,
    BatchTable,
    Column,
)
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import Chunk
from logtool.times import LAST_TIME

BLOCK_SIZE = 2560 * 1024
"""Bytes of batches in a block, more than a chunk has unless a batch is larger: many enough for what
is done once for each."""
PACKED = 3
"""How many bytes one of a compressed batch counts as."""
MOST_UNPACKED = 16 * 1024 * 1024
"""Bytes that the batches of a block may decompress to."""
BLOCK_RECORDS = 16 * 1024
"""Records in a block, as the lines of one take a KiB or more; more where one batch has more."""
MOST_RECORDS = 256 * 1024
"""Records in a batch of a block."""
_MOST = 2**62
"""No offset of an ordinary batch is larger, so that none overflows."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The file that batches come from."""

    path: Path
    topic: str | None = None
    """Of the partition dir that it lies in."""
    partition: int | None = None
    segment: int | None = None
    """Base offset of the segment, where the file is one."""


NOWHERE: Final = Origin(Path())


@dataclass(frozen=True, slots=True)
class Records:
    """All records of a block as int64 columns, and the bytes that their positions count in."""

    data: memoryview
    counts: Column
    """Of each batch."""
    table: RecordSpans
    offset: Column
    timestamp: Column
    """Milliseconds; -1 none."""
    sequence: Column
    """-1 none."""
    crc: Column | None = None
    """As stored in messages of magic 0 and 1; None for records of magic 2, which have none."""
    rows: Column | None = None
    """The columns of `table` with offset, timestamp and sequence behind them, where these are the
    columns of one array."""

    def columns(self) -> Column:
        """Return such an array."""
        if self.rows is not None:
            return self.rows
        names = RecordSpans.__slots__
        more = (self.offset, self.timestamp, self.sequence)
        return np.column_stack([*(getattr(self.table, name) for name in names), *more])


@dataclass(frozen=True, slots=True)
class Block:
    """Ordinary batches, in file order with nothing between them."""

    origin: Origin
    batches: BatchTable
    records: Records | None
    """None where records are not asked for."""


def cut(
    origin: Origin, chunk: Chunk, rows: Column, *, records: bool, unpack_limit: int = MOST_UNPACKED
) -> Iterator[tuple[Column, Block | None]]:
    """Yield the `rows` of a chunk in order, piece by piece, as a block where all are ordinary.

    A batch that decompresses to more than `unpack_limit` bytes is none.
    """
    table = chunk.table
    ordinary = _ordinary(table, chunk)
    weight = np.where(table.codec[rows] > 0, PACKED, 1) * table.size[rows]
    enough = np.cumsum(weight) // BLOCK_SIZE
    if records:
        ordinary &= ~table.is_control & (table.record_count <= MOST_RECORDS)
        counts = np.where(ordinary[rows], table.record_count[rows], 0)
        enough += np.cumsum(counts) // BLOCK_RECORDS
    piece = enough * 2 + ordinary[rows]
    edges = [0, *(np.flatnonzero(piece[1:] != piece[:-1]) + 1).tolist(), len(rows)]
    for first, stop in pairwise(edges):
        some = rows[first:stop]
        usable = stop > first and bool(ordinary[some[0]])
        yield some, _block(origin, chunk, some, records, unpack_limit) if usable else None


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


def _block(
    origin: Origin, chunk: Chunk, rows: Column, with_records: bool, limit: int
) -> Block | None:
    table = chunk.table[rows]
    if not with_records:
        return Block(origin, table, None)
    payloads = _payloads(chunk, table, limit)
    records = _decode(table, *payloads) if payloads else None
    return Block(origin, table, records) if records else None


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


def _decode(table: BatchTable, data: memoryview, starts: Column, ends: Column) -> Records | None:
    counts = table.record_count.astype(np.int64)
    if (counts * kernels.SMALLEST_RECORD > ends - starts).any():
        return None
    rows = np.empty((int(counts.sum()), kernels.PLACED_COLUMNS), np.int64)
    results = np.empty((len(counts), 3), np.int64)
    kernels.decode_batches(data, starts, ends, counts, rows, results)
    position, reason = results[:, 1], results[:, 2]
    if (reason != kernels.DONE).any() or ((position != ends) & (counts > 0)).any():
        return None
    of_batches = (
        table.base_offset, table.attributes, table.base_timestamp, table.max_timestamp,
        table.base_sequence,
    )  # fmt: skip
    if not kernels.place_records(*of_batches, counts, LAST_TIME, rows):
        return None
    *columns, offset, timestamp, sequence = rows.T
    return Records(
        data=data,
        counts=counts,
        table=RecordSpans(*columns),
        offset=offset,
        timestamp=timestamp,
        sequence=sequence,
        rows=rows,
    )
