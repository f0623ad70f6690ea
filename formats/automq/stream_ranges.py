"""Packed offsets of streams in two records of AutoMQ's metadata log, big-endian.

``endOffsets`` of S3StreamEndOffsetsRecord: uint8 1, and for each stream int64 stream and int64 end
offset. ``ranges`` of S3StreamSetObjectRecord, version 0:

=============  =====  ==============================================================================
magic          uint8  1
flags          uint8  2: what follows the size is one frame of Zstandard
plain_size     int32  bytes of the ranges
-------------  -----  ------------------------------------------------------------------------------
stream_id      int64  for each range
start_offset   int64
count          int32  offsets
=============  =====  ==============================================================================

Source: ``S3StreamEndOffsetsCodec``, ``S3StreamSetObject`` (AutoMQ f1ce98ec8981, 2026-08-21).
"""

import struct

import numpy as np
from numpy.typing import NDArray

from logtool.errors import FormatError
from logtool.formats import compression

MAGIC, COMPRESSED = 1, 2
END_OFFSET = np.dtype([("stream_id", ">i8"), ("end_offset", ">i8")])
RANGE = np.dtype([("stream_id", ">i8"), ("start_offset", ">i8"), ("count", ">i4")])
_HEAD = struct.Struct(">BBi")


def parse_end_offsets(data: bytes) -> NDArray[np.void]:
    """Return the end offsets (`END_OFFSET`); FormatError if AutoMQ could not read them."""
    if data[:1] != bytes([MAGIC]):
        raise FormatError(f"the end offsets begin with {data[:1].hex() or 'nothing'}, not with 01")
    if (len(data) - 1) % END_OFFSET.itemsize:
        raise FormatError("the end offsets end inside an entry", len(data))
    return np.frombuffer(data, END_OFFSET, offset=1)


def encode_end_offsets(entries: NDArray[np.void]) -> bytes:
    """Return the bytes `parse_end_offsets` was given; the two are exact inverses."""
    return bytes([MAGIC]) + entries.astype(END_OFFSET).tobytes()


def parse_ranges(data: bytes) -> NDArray[np.void]:
    """Return the ranges of a stream set object (`RANGE`); FormatError as above."""
    if not data:
        return np.empty(0, RANGE)
    if len(data) < _HEAD.size or data[0] != MAGIC:
        raise FormatError("the ranges of a stream set object have no header")
    _, flags, size = _HEAD.unpack_from(data)
    packed = memoryview(data)[_HEAD.size :]
    plain = packed
    if flags & COMPRESSED:
        plain = compression.decompress(compression.ZSTD, packed, max(size, 0))
    if len(plain) % RANGE.itemsize:
        raise FormatError("the ranges of a stream set object end inside a range", len(data))
    return np.frombuffer(bytes(plain), RANGE)


def encode_ranges(ranges: NDArray[np.void], *, compress: bool = False) -> bytes:
    """Return ranges as AutoMQ stores them; it compresses more than 50."""
    plain = ranges.astype(RANGE).tobytes()
    packed = compression.compress(compression.ZSTD, plain) if compress else plain
    return _HEAD.pack(MAGIC, COMPRESSED if compress else 0, len(plain)) + packed
