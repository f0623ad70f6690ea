"""Some entries of an index file, found without reading the others."""

from bisect import bisect_left
from math import inf
from typing import Self

from logtool.disk.files import LogFile
from logtool.formats import offset_index, time_index


class SparseEntries:
    """The entries of an index file, few of which are read; padding lies behind everything."""

    def __init__(self, file: LogFile, size: int, field: slice) -> None:
        self._file, self._size, self._field = file, size, field
        self._count = file.size // size

    @classmethod
    def of_offsets(cls, file: LogFile) -> Self:
        """Return the entries of an offset index, which are found by position."""
        return cls(file, offset_index.ENTRY_SIZE, slice(4, 8))

    @classmethod
    def of_times(cls, file: LogFile) -> Self:
        """Return the entries of a time index, which are found by relative offset."""
        return cls(file, time_index.ENTRY_SIZE, slice(8, 12))

    def at_or_behind(self, wanted: float) -> float:
        """Return the first position or offset that is not below `wanted`."""
        return self._value(self._first(wanted))

    def between(self, start: float, stop: float) -> range:
        """Return the range of entries that are not below `start` but below `stop`."""
        return range(self._first(start), self._first(stop))

    def read(self, entries: range) -> bytes:
        """Return the bytes of neighbouring entries."""
        return self._file.read(entries.start * self._size, len(entries) * self._size)

    def _first(self, wanted: float) -> int:
        return bisect_left(range(self._count), wanted, key=self._value)

    def _value(self, entry: int) -> float:
        data = self.read(range(entry, entry + 1))
        if len(data) < self._size or (entry and not any(data)):
            return inf
        return int.from_bytes(data[self._field], "big", signed=True)
