"""The frames of a case file: each is compressed alone, and says how long it is.

A case file is a tar archive in zstd frames of at most 4 MiB each. Before each frame stands a
skippable frame with its compressed size, as pzstd writes it, so that ``zstd -d`` and ``tar --zstd``
can read a case file::

     0  magic    0x184D2A50, little-endian
     4  size     4
     8  length   bytes of the next frame

A reader of a hostile file holds no more than one frame in memory.
"""

import struct
from typing import BinaryIO

import cramjam

from logtool.errors import FormatError

FRAME_SIZE = 4 * 1024 * 1024
"""Most bytes that a frame decompresses to."""
LEVEL = 9
"""Level of zstd; higher ones hardly make a case file smaller."""
_HEAD = struct.Struct("<III")
_MAGIC = 0x184D2A50
_LARGEST = FRAME_SIZE + FRAME_SIZE // 8


class FrameWriter:
    """Writes bytes to a file in compressed frames."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._waiting = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Add bytes; full frames are written."""
        self._waiting += data
        while len(self._waiting) >= FRAME_SIZE:
            self._frame(bytes(self._waiting[:FRAME_SIZE]))
            del self._waiting[:FRAME_SIZE]

    def flush(self) -> None:
        """Write what waits as a frame."""
        if self._waiting:
            self._frame(bytes(self._waiting))
            self._waiting.clear()

    def _frame(self, data: bytes) -> None:
        packed = bytes(cramjam.zstd.compress(data, level=LEVEL))
        self._file.write(_HEAD.pack(_MAGIC, 4, len(packed)))
        self._file.write(packed)


class FrameReader:
    """Reads the bytes of a case file one after the other; FormatError where it is damaged."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._room = bytearray(FRAME_SIZE)
        self._left = memoryview(b"")
        self.position = 0
        """Number of bytes that were read, decompressed."""

    def read(self, size: int) -> memoryview:
        """Return up to `size` bytes, at most one frame; none at the end of the file.

        They are good until the next read.
        """
        if not len(self._left) and not self._next():
            return self._left
        data, self._left = self._left[:size], self._left[size:]
        self.position += len(data)
        return data

    def _next(self) -> bool:
        at = self._file.tell()
        head = self._file.read(_HEAD.size)
        if not head:
            return False
        if len(head) < _HEAD.size:
            raise FormatError("the file ends in the head of a frame", at)
        magic, size, length = _HEAD.unpack(head)
        if (magic, size) != (_MAGIC, 4) or not 0 < length <= _LARGEST:
            raise FormatError("no frame of a case file begins here", at)
        packed = self._file.read(length)
        if len(packed) < length:
            raise FormatError("the file ends in a frame", at)
        try:
            written = cramjam.zstd.decompress_into(packed, self._room)
        except cramjam.DecompressionError as error:
            raise FormatError(f"the frame cannot be decompressed: {error}", at) from error
        self._left = memoryview(self._room)[:written]
        return written > 0
