"""Which offsets of a batch still have a record, found by decoding the batch."""

from typing import Protocol

import numpy as np

from logtool.errors import FormatError, LimitError
from logtool.formats import compression, legacy_batch, record
from logtool.formats.record_batch import CODEC_MASK, HEADER_SIZE, MAGIC, BatchTable, Column


class Batches(Protocol):
    """Batches whose bytes can be asked for; a `logtool.log.chunk.Chunk` with payload is one."""

    @property
    def table(self) -> BatchTable:
        """Return their headers as columns."""

    def batch(self, row: int) -> memoryview:
        """Return the bytes of one batch; fewer where they are too many to hold."""


def record_offsets(
    batches: Batches, row: int, limit: int, too_large: set[int] | None = None
) -> Column | None:
    """Return the offsets of the records of a batch, int64 rising; None where it does not decode.

    Where it is because the batch decompresses to more than `limit` bytes, its position in the log
    is added to `too_large`.
    """
    table, batch = batches.table, batches.batch(row)
    if len(batch) < table.size[row]:
        return None
    try:
        if table.magic[row] < MAGIC:
            messages = legacy_batch.parse_messages(batch, limit)
            return np.unique(np.fromiter((message.offset for message in messages), np.int64))
        payload = compression.decompress(
            int(table.attributes[row]) & CODEC_MASK, batch[HEADER_SIZE:], limit
        )
        deltas = []
        for records, damage in record.parse_slices(payload, int(table.record_count[row])):
            if damage:
                return None
            deltas.append(records.offset_delta.copy())
    except FormatError as error:
        if isinstance(error, LimitError) and too_large is not None:
            too_large.add(int(table.position[row]))
        return None
    return np.unique(table.base_offset[row] + np.concatenate(deltas))


def counts_and_bases(
    batches: Batches, limit: int, too_large: set[int] | None = None
) -> tuple[Column, Column]:
    """Return how many records each batch holds, and its first offset; see `record_offsets`."""
    table = batches.table
    bases = table.base_offset.copy()
    for row in np.flatnonzero(table.is_wrapper).tolist():
        offsets = record_offsets(batches, row, limit, too_large)
        if offsets is not None and len(offsets):
            bases[row] = offsets[0]
    return table.records_of_each, bases
