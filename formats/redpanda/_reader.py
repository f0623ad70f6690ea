"""A reader of consecutive fields in bytes that may be damaged."""

import struct


class TooShortError(Exception):
    """The bytes end before the field does; a caller in this package makes a value of it."""


class Reader:
    """Takes fields off the front of `data`; each is compared with what is left first."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    @property
    def left(self) -> int:
        """Return how many bytes are left."""
        return len(self._data) - self.position

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        if not 0 <= size <= self.left:
            raise TooShortError
        self.position += size
        return self._data[self.position - size : self.position]

    def rest(self) -> bytes:
        """Return the bytes that are left."""
        return self.take(self.left)

    def numbers(self, layout: struct.Struct) -> tuple[int, ...]:
        """Return the numbers of `layout`."""
        return layout.unpack(self.take(layout.size))

    def number(self, layout: struct.Struct) -> int:
        """Return the one number of `layout`."""
        return self.numbers(layout)[0]


INT8, INT32, INT64 = struct.Struct("<b"), struct.Struct("<i"), struct.Struct("<q")
UINT8, UINT16, UINT32 = struct.Struct("<B"), struct.Struct("<H"), struct.Struct("<I")
UINT64 = struct.Struct("<Q")
