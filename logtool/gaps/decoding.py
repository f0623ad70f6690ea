"""Which offsets of a batch have a record, told by its records."""

import numpy as np

from logtool.errors import FormatError
from logtool.formats import compression, legacy_batch, record
from logtool.formats.record_batch import CODEC_MASK, HEADER_SIZE, MAGIC, Column
from logtool.scan import Chunk


def record_offsets(chunk: Chunk, row: int, limit: int) -> Column | None:
    """Return the offsets of the records of a batch, int64 rising; None where it does not decode."""
    table, batch = chunk.table, chunk.batch(row)
    if len(batch) < table.size[row]:
        return None
    try:
        if table.magic[row] < MAGIC:
            found = [message.offset for message in legacy_batch.parse_messages(batch, limit)]
            return np.unique(np.array(found, np.int64))
        payload = compression.decompress(
            int(table.attributes[row]) & CODEC_MASK, batch[HEADER_SIZE:], limit
        )
        records, damage = record.parse(payload, int(table.record_count[row]))
    except FormatError:
        return None
    return None if damage else np.unique(table.base_offset[row] + records.offset_delta)


def counts_and_bases(chunk: Chunk, limit: int) -> tuple[Column, Column]:
    """Return how many records each batch holds, and its first offset."""
    table = chunk.table
    bases = table.base_offset.copy()
    for row in np.flatnonzero(table.is_wrapper).tolist():
        found = record_offsets(chunk, row, limit)
        if found is not None and len(found):
            bases[row] = found[0]
    return table.records_of_each, bases
