"""The part of a log that a scan has before it: bytes in a buffer, or mapped."""

from typing import TYPE_CHECKING

from logtool.log.chunk import Source

if TYPE_CHECKING:
    from logtool.disk.mapped import MappedRange


class Window:
    """Moves over a file, of which it holds a part; `unmap` when nothing more is read."""

    def __init__(self, source: Source, end: int, buffer_size: int, *, maps: bool) -> None:
        """Take the file to end at `end`; with `maps` it may be mapped, if `source` can be.

        `buffer_size` is how many bytes are read at once.
        """
        self.end = end
        self._source = source
        self._buffer_size = buffer_size
        self._buffer, self._spare = bytearray(), bytearray()
        self._lent = False
        """True while a chunk holds bytes of the buffer, which must not be overwritten then."""
        self._loaded = range(0)
        """The file positions whose bytes the buffer holds."""
        self._map = getattr(source, "map_range", None) if maps else None
        self._mapped: MappedRange | None = None
        self._copied_at = -1
        """Position at which a walk over the mapping met what may be damage."""

    def map_from(self, position: int, need: int) -> bool:
        """Return whether `need` bytes from `position` on are mapped, fewer at the end."""
        if self._map is None or position == self._copied_at:
            return False
        need = min(need, self.end - position)
        if position in self._loaded and self._loaded.stop - position >= need:
            return False  # the copy made for damage serves as far as it goes
        mapped = self._mapped
        if mapped and mapped.position <= position and position + need <= mapped.end:
            return True
        self.unmap()
        mapped = self._map(position, self.end - position)
        if mapped and mapped.end - position < need:
            mapped.close()
            return False
        self._mapped = mapped
        return mapped is not None

    def mapped(self, position: int) -> memoryview:
        """Return the mapped bytes from `position` on, for which `map_from` has returned True."""
        assert self._mapped
        return self._mapped.data[position - self._mapped.position :]

    def is_whole(self) -> bool:
        """Return whether what was read of the mapping so far are the bytes of the file."""
        assert self._mapped
        return self._mapped.whole()

    def copy_at(self, position: int) -> None:
        """Copy the bytes at `position` again, and do not map them."""
        self._copied_at, self._loaded = position, range(0)

    def map_no_more(self) -> None:
        """Copy all that follows: the file has changed, or cannot be read."""
        self.unmap()
        self._map = None

    def unmap(self) -> None:
        """Map nothing for now."""
        if self._mapped:
            self._mapped.close()
            self._mapped = None

    def lend(self) -> None:
        """Leave the bytes of the buffer as they are as long as somebody holds them."""
        self._lent = True

    def ahead(self, position: int, need: int) -> memoryview:
        """Return the bytes of the buffer from `position` on: `need` or more, fewer at the end."""
        need = min(need, self.end - position)
        if position not in self._loaded or self._loaded.stop - position < need:
            size = min(max(need, self._buffer_size), self.end - position)
            if self._lent:
                self._buffer, self._spare, self._lent = self._spare, self._buffer, False
                if _is_in_use(self._buffer):
                    self._buffer = bytearray()
            if size > len(self._buffer):
                self._buffer = bytearray(size)
            count = self._fetch(memoryview(self._buffer)[:size], position)
            self._loaded = range(position, position + count)
        first = position - self._loaded.start
        return memoryview(self._buffer)[
            first : min(self._loaded.stop, self.end) - self._loaded.start
        ]

    def read(self, position: int, size: int) -> memoryview:
        """Return `size` bytes, fewer at the end; leaves alone what the buffer holds."""
        size = max(0, min(size, self.end - position))
        first = position - self._loaded.start
        if first >= 0 and position + size <= self._loaded.stop:
            return memoryview(self._buffer)[first : first + size]
        view = memoryview(bytearray(size))
        return view[: self._fetch(view, position)]

    def _fetch(self, view: memoryview, position: int) -> int:
        count = self._source.read_into(view, position)
        if count < len(view):
            # The file shrank while it was read: what is gone is simply not there any more.
            self.end = position + count
        return count


def _is_in_use(buffer: bytearray) -> bool:
    """Return whether somebody still has a view of the bytes, with which their number is fixed."""
    if not buffer:
        return False
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return True
    return False
