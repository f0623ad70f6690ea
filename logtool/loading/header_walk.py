"""The headers of a log alone: each size field leads to the next one, and no CRC is computed.

This is for storage that is trusted to hold what was written. For small batches, two headers lie on
the same page, so whole windows are read; for larger batches only the header is read.
"""

from collections.abc import Iterator

import numpy as np

from logtool.formats import _kernels
from logtool.formats.offset_index import MAX_RELATIVE_OFFSET
from logtool.formats.record_batch import HEADER_SIZE, UNUSED_ATTRIBUTES, BatchTable, Column
from logtool.log.chunk import MOST_ROWS, Source
from logtool.log.control_rows import fill_control

_WINDOW = 256 * 1024
_PAGE = 4096
_LARGEST_MARKER = 1024 * 1024
"""Largest control batch that is read, in bytes; those of a broker have less than 100."""


class ContradictionError(Exception):
    """The trusted files contradict each other, so that the log has to be checked."""


class HeaderWalk:
    """A reader of headers; `end` is the byte that it reached, `bytes_read` the bytes it read."""

    def __init__(self, source: Source, base_offset: int, name: str) -> None:
        """Read the log `source`, of a segment of `base_offset`; errors call it `name`."""
        self._source = source
        self._base = base_offset
        self._name = name
        self._last = base_offset - 1
        self._window = memoryview(bytearray(_WINDOW))
        self.end = 0
        """The byte behind the last batch."""
        self.bytes_read = 0

    def tables(self, start: int) -> Iterator[BatchTable]:
        """Yield the batches from byte `start` on, where one begins.

        Ends where no whole batch of magic 2 follows. ContradictionError for headers that no broker
        writes in this order.
        """
        rows, count = _fresh_rows(), 0
        self.end = start
        while True:
            filled = self._fill(self.end, wide=not count or int(rows[1, count - 1]) <= _PAGE)
            left, begin, at = self._source.size - self.end, self.end, 0
            why = _kernels.FULL
            while why == _kernels.FULL:
                if count == MOST_ROWS:
                    yield self._checked(rows, count)
                    rows, count = _fresh_rows(), 0
                found, at, why = _kernels.walk_headers(
                    self._window, at, filled, left, begin, rows, count
                )
                count += found
            self.end = begin + at
            if not at or why != _kernels.MORE:
                break
        if count:
            yield self._checked(rows, count)

    def _fill(self, position: int, *, wide: bool) -> int:
        """Read a window, or one header; return the number of bytes that were read."""
        size = min(_WINDOW if wide else HEADER_SIZE, self._source.size - position)
        count = self._source.read_into(self._window[: max(size, 0)], position)
        self.bytes_read += count
        return count

    def _checked(self, rows: Column, count: int) -> BatchTable:
        rows[-_kernels.TYPE_COLUMNS :, :count] = -1  # room without a batch stays untouched
        table = BatchTable(*rows[:, :count])
        before = np.concatenate(([self._last], table.last_offset[:-1]))
        wrong = (
            (table.base_offset <= before)
            | (table.last_offset < table.base_offset)
            | (table.last_offset - self._base > MAX_RELATIVE_OFFSET)
            | ((table.attributes & (UNUSED_ATTRIBUTES & 0xFFFF)) != 0)
            | (table.record_count < 0)
        )
        if wrong.any():
            position = int(table.position[int(wrong.argmax())])
            raise ContradictionError(f"{self._name}: the header at byte {position} is not valid")
        self._last = int(table.last_offset[-1])
        for row in np.flatnonzero(table.is_control & (table.record_count > 0)).tolist():
            self._read_marker(table[row : row + 1])
        return table

    def _read_marker(self, row: BatchTable) -> None:
        """Fill in the fields of the control record of a batch."""
        position, size = int(row.position[0]), int(row.size[0])
        data = memoryview(bytearray(min(size, _LARGEST_MARKER)))
        self.bytes_read += self._source.read_into(data, position)
        if size > len(data) or fill_control(row, data, position):
            raise ContradictionError(
                f"{self._name}: the control batch at byte {position} cannot be read"
            )


def _fresh_rows() -> Column:
    return np.empty((_kernels.BATCH_COLUMNS, MOST_ROWS), np.int64)
