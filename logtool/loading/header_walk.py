"""The headers of a log alone: each size field leads to the next one, and no CRC is computed.

This is for storage that is trusted to hold what was written. The log is mapped: of small batches
all pages are read, of larger ones the page of each header. Where it cannot be mapped, whole windows
are read of small batches, and of larger ones only the header.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from logtool.formats import _kernels
from logtool.formats.offset_index import MAX_RELATIVE_OFFSET
from logtool.formats.record_batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    UNUSED_ATTRIBUTES,
    BatchTable,
    Column,
    concat,
    empty_table,
)
from logtool.log.chunk import MOST_ROWS, Source
from logtool.log.control_rows import fill_control

if TYPE_CHECKING:
    from logtool.disk.mapped import MappedRange
    from logtool.log.dir import Segment

_WINDOW = 256 * 1024
_PAGE = 4096
_LENGTH_END = 12
"""Byte behind the length of a batch, in its header."""
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
        self._maps = True
        self.end = 0
        """The byte behind the last batch."""
        self.bytes_read = 0

    def tables(self, start: int) -> Iterator[BatchTable]:
        """Yield the batches from byte `start` on, where one begins.

        Ends where no whole batch of magic 2 follows. ContradictionError for headers that no broker
        writes in this order.
        """
        rows, count = _fresh_rows(), 0
        self.end, at, why = start, 1, _kernels.MORE
        is_far = self._fill(start, wide=False) >= _LENGTH_END and self._first_size() > _PAGE
        while at and why == _kernels.MORE:
            is_far = int(rows[1, count - 1]) > _PAGE if count else is_far
            left, begin, at, known = self._source.size - self.end, self.end, 0, count
            with self._mapping(begin, left, is_far=is_far) as mapped:
                data = mapped.data if mapped else self._window
                filled = len(data) if mapped else self._fill(begin, wide=not is_far)
                why = _kernels.FULL
                while why == _kernels.FULL:
                    if count == MOST_ROWS:
                        if mapped and not mapped.whole():
                            break
                        yield self._checked(rows, count)
                        rows, count, known, self.end = _fresh_rows(), 0, 0, begin + at
                    found, at, why = _kernels.walk_headers(
                        data, at, filled, left, begin, rows, count
                    )
                    count += found
                if mapped and not mapped.whole():
                    # The file shrank, or its disk failed: what was read since is read again.
                    self._maps, count, at, why = False, known, 1, _kernels.MORE
                    continue
            self.end = begin + at
        if count:
            yield self._checked(rows, count)

    @contextmanager
    def _mapping(self, position: int, left: int, *, is_far: bool) -> Iterator["MappedRange | None"]:
        """Map the log from a byte on; None where it cannot be mapped."""
        map_range = getattr(self._source, "map_range", None) if self._maps else None
        mapped = map_range(position, left) if map_range else None
        if mapped is None:
            yield None
            return
        if is_far:
            mapped.advise_random()
        try:
            yield mapped
        finally:
            mapped.close()

    def _fill(self, position: int, *, wide: bool) -> int:
        """Read a window, or one header; return the number of bytes that were read."""
        size = min(_WINDOW if wide else HEADER_SIZE, self._source.size - position)
        return self._source.read_into(self._window[: max(size, 0)], position)

    def _first_size(self) -> int:
        """Return the size of the batch whose header is in the window, in bytes."""
        return LOG_OVERHEAD + int.from_bytes(self._window[8:_LENGTH_END], "big", signed=True)

    def _checked(self, rows: Column, count: int) -> BatchTable:
        rows[-_kernels.TYPE_COLUMNS :, :count] = -1  # room without a batch stays untouched
        table = BatchTable(*rows[:, :count])
        self.bytes_read += int(np.where(table.size > _PAGE, HEADER_SIZE, table.size).sum())
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


def headers(segment: "Segment") -> Iterator[BatchTable]:
    """Yield the headers of a log; where they do not lead to its end, all of it is scanned."""
    with segment.log.open() as source:
        walk = HeaderWalk(source, segment.base_offset, segment.log.path.name)
        try:
            tables = list(walk.tables(0))
        except ContradictionError:
            tables = []
        if walk.end == source.size:
            yield from tables
            return
    for chunk in segment.batches(payload=False):
        if len(chunk.table):
            yield chunk.table[np.arange(len(chunk.table))]  # The next chunk uses the memory again.


def header_table(segments: "Iterable[Segment]") -> BatchTable:
    """Return the headers of all batches of some segments as one table; UnreadableError."""
    tables = [table for segment in segments for table in headers(segment)]
    return concat(tables) if tables else empty_table()
