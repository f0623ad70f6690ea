"""The misplaced batches of a log: their offsets are not the segment's, or they do not rise.

Where a batch is ahead of those around it, it alone is misplaced, and not all that follow it.
"""

import numpy as np

from logtool.formats.offset_index import MAX_RELATIVE_OFFSET
from logtool.formats.record_batch import MAGIC, BatchTable, Column
from logtool.log.chunk import PlainTotals


class BatchOrder:
    """Finds the misplaced batches of one log, whose chunks it is given in the order of the file."""

    def __init__(self, base_offset: int, last_offset: int | None = None) -> None:
        """Take the base offset of the segment, and the last offset before the first chunk."""
        self._base_offset = base_offset
        self._highest = base_offset - 1 if last_offset is None else last_offset
        """Largest last offset of the batches so far that are in their place."""

    def misplaced(self, table: BatchTable, plain: PlainTotals | None) -> Column | None:
        """Return which batches of the next chunk are misplaced; None for none.

        `plain` is that of the chunk: plain batches are in order from the first to the last.
        """
        bases, lasts = table.base_offset, table.last_offset
        least, most = self._base_offset, self._base_offset + MAX_RELATIVE_OFFSET
        # The edges suffice for nearly every chunk, and quickly found bounds for most others.
        if plain is not None and int(bases[0]) > self._highest and int(lasts[-1]) <= most:
            self._highest = int(lasts[-1])
            return None
        if (
            not (bases[1:] < bases[:-1]).any()
            and min(int(bases[0]), int(lasts.min())) >= least
            and int(lasts.max()) <= most
        ):
            self._highest = max(self._highest, int(lasts.max()))
            return None
        outside = outside_segment(table, self._base_offset)
        misplaced: Column = outside | stands_out(bases, lasts, outside, self._highest)
        self._highest = int(lasts[~misplaced].max(initial=self._highest))
        return misplaced if misplaced.any() else None


def outside_segment(table: BatchTable, base_offset: int) -> Column:
    """Return where a batch holds offsets that a segment with this base offset cannot hold."""
    # A segment may begin with a batch whose base lies below it only before magic 2.
    low = (table.base_offset < base_offset) & (table.magic >= MAGIC)
    # A segment of Redpanda has no end to its offsets: its index counts modulo 2^32.
    of_kafka = table.batch_type < 0
    high = of_kafka & (table.last_offset - base_offset > MAX_RELATIVE_OFFSET)
    outside: Column = low | high
    return outside


def stands_out(base: Column, last: Column, outside: Column, start: int) -> Column:
    """Return where a batch is ahead of its place: the next one goes on from those before it.

    A flipped bit in a base offset or a leader epoch does that, which no CRC covers. Without this
    the whole rest of the segment would seem out of order. `start` is the last offset so far.
    """
    ahead = np.zeros(len(base), np.bool_)
    trusted = np.where(outside, start, last)
    before, seen = start, 0
    # Only where the order is broken at all does anything need a closer look.
    for row in np.flatnonzero((base[1:] < base[:-1]) & ~outside[:-1] & ~outside[1:]).tolist():
        before = int(trusted[seen:row].max(initial=before))
        ahead[row] = before < base[row + 1] and base[row] > before
        seen = row + int(ahead[row])
    return ahead
