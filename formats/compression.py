"""The codecs of a record batch: gzip, snappy, lz4 and zstd, with a limit on what comes out.

In a magic 2 batch one compressed stream takes the place of all records; in magic 0 and 1 it is
the value of a wrapper message. Codec ids are bits 0-2 of the attributes::

    0 none   1 gzip (RFC 1952 members)   2 snappy (xerial stream, or one raw block)
    3 lz4 (one LZ4 frame)                4 zstd (frames, usually without a content size)

Source: ``org.apache.kafka.common.compress`` (Kafka 3.9 and 4.x).
"""

import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import cramjam
import numpy as np
from numpy.typing import NDArray

from logtool.errors import FormatError, LimitError

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

DEFAULT_LIMIT = 256 * 1024 * 1024
"""Bytes that one batch may decompress to; above the 100 MiB fetch limit that brokers allow."""

XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = struct.Struct(">8sii")
_XERIAL_BLOCK = 32768
_LENGTH = struct.Struct(">i")
_XERIAL_ONE = _XERIAL_HEADER.size + _LENGTH.size
_SNAPPY_GROWS = 8
"""Few streams grow more; what does is measured before it is decompressed."""
snappy_block_into: Callable[[memoryview, memoryview], int] = cramjam.snappy.decompress_raw_into
"""Decompress one block and return how many bytes came out, or raise `DecompressionError`."""
DecompressionError = cramjam.DecompressionError
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_PLAIN = b"\x1f\x8b\x08\x00"
"""The beginning of a member whose header has no further field, as all producers write it."""
_GZIP_HEADER_SIZE = 10
_GZIP_FIRST, _GZIP_MOST = 1024, 64 * 1024
_PIECE = 1024 * 1024
"""Bytes that come out of gzip at once."""
_LZ4_MAGIC = 0x184D2204
_LZ4_HEADER = bytes.fromhex("04224d18604082")
"""Kafka's: independent blocks of at most 64 KiB, no checksums, no content size."""
_LZ4_BLOCK_SIZE = 65536
_LZ4_BLOCK = struct.Struct("<I")
_LZ4_STORED = 1 << 31
_FULL = "write whole buffer"
_SCRATCH_SIZE = 256 * 1024
_OF_THREAD = threading.local()


def name(codec: int) -> str:
    """Return Kafka's word for a codec id, or ``unknown(N)``."""
    return NAMES[codec] if 0 <= codec < len(NAMES) else f"unknown({codec})"


def decompress(
    codec: int, data: memoryview, limit: int = DEFAULT_LIMIT, room: memoryview | None = None
) -> memoryview:
    """Return the bytes behind `data`; FormatError when damaged, LimitError above `limit` bytes.

    They stand at the beginning of `room` where they may (the `obj` of both is then the same), else
    in memory of their own. The rest of `room` may be overwritten.
    """
    if codec == NONE:
        return data
    if codec not in _DECOMPRESSORS:
        raise FormatError(f"compression codec {codec} does not exist")
    lent = _scratch() if room is None else room
    try:
        out = _DECOMPRESSORS[codec](data, limit, lent)
    except (DecompressionError, zlib.error, struct.error) as error:
        raise FormatError(f"{name(codec)} stream cannot be decompressed: {error}") from error
    return memoryview(bytes(out)) if room is None and out.obj is lent.obj else out


def decompress_front(
    codec: int, data: memoryview, limit: int = DEFAULT_LIMIT
) -> tuple[memoryview, FormatError | None]:
    """Return the bytes that come out of damaged `data`, and the error where they end.

    The error is None if all of them come out; a wrong checksum at the end of the stream is no
    error. LimitError above `limit` bytes. Of zstd either all of them come out or none.
    """
    try:
        return decompress(codec, data, limit), None
    except LimitError:
        raise
    except FormatError as error:
        front = _FRONTS.get(codec)
        out, whole = front(data, limit) if front else (b"", False)
        return memoryview(out), None if whole else error


def compress(codec: int, data: bytes) -> bytes:
    """Return `data` as Kafka's framing of the codec; never byte-identical to what Kafka wrote."""
    if codec == GZIP:
        packer = zlib.compressobj(wbits=31)
        return packer.compress(data) + packer.flush()
    if codec == SNAPPY:
        chunks = [_XERIAL_HEADER.pack(XERIAL_MAGIC, 1, 1)]
        for start in range(0, len(data), _XERIAL_BLOCK):
            block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK]))
            chunks += [_LENGTH.pack(len(block)), block]
        return b"".join(chunks)
    if codec == LZ4:
        return b"".join([_LZ4_HEADER, *_lz4_blocks(data), _LZ4_BLOCK.pack(0)])
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data))
    return data


def _lz4_blocks(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _LZ4_BLOCK_SIZE):
        block = data[start : start + _LZ4_BLOCK_SIZE]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            yield _LZ4_BLOCK.pack(len(packed)) + packed
        else:
            yield _LZ4_BLOCK.pack(len(block) | _LZ4_STORED) + block


def _gzip(data: memoryview, limit: int, room: memoryview) -> memoryview:
    # One buffer that grows: parts that are joined would be there twice.
    grown: bytearray | None = None
    done, position, width = 0, 0, _GZIP_MOST
    # Java ignores bytes behind a member that are not a member.
    while position == 0 or data[position : position + 2] == _GZIP_MAGIC:
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            piece = data[position : position + width]
            part = member.decompress(piece, min(limit - done + 1, _PIECE))
            if done + len(part) > limit:
                raise _too_large(limit)
            if not len(piece) and not part and not member.eof:
                raise FormatError("gzip stream ends in the middle", position)
            if grown is None and done + len(part) > len(room):
                grown = bytearray(room[:done])
            if grown is None:
                room[done : done + len(part)] = part
            else:
                grown += part
            done += len(part)
            position += len(piece) - len(member.unused_data) - len(member.unconsumed_tail)
            width = min(4 * width, _GZIP_MOST)
        # What is not used is copied: feed little at first, as the next member may be short.
        width = _GZIP_FIRST
    return room[:done] if grown is None else memoryview(grown)


def _gzip_front(data: memoryview, limit: int) -> tuple[bytes, bool]:
    """Return the bytes of the first member before damage, and whether these are all of them."""
    out = bytearray()
    if data[: len(_GZIP_PLAIN)] == _GZIP_PLAIN:
        member = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        # One byte at a time: a call that finds damage returns nothing of what it decompressed.
        with suppress(zlib.error):
            for at in range(_GZIP_HEADER_SIZE, len(data)):
                out += member.decompress(data[at : at + 1])
                if member.eof or len(out) > limit:
                    return bytes(out), member.eof
    return bytes(out), False


def _snappy_front(data: memoryview, limit: int) -> tuple[bytes, bool]:
    """Return the bytes of a xerial stream up to the first damaged chunk."""
    out = bytearray()
    position = _XERIAL_HEADER.size
    if data[:8] != XERIAL_MAGIC:
        return b"", False
    with suppress(DecompressionError):
        while len(data) - position >= _LENGTH.size and len(out) <= limit:
            (length,) = _LENGTH.unpack_from(data, position)
            position += _LENGTH.size
            block = data[position : position + length]
            if not 0 < length == len(block) or cramjam.snappy.decompress_raw_len(block) > limit:
                break
            out += bytes(cramjam.snappy.decompress_raw(block))
            position += length
    return bytes(out), False


def _lz4_front(data: memoryview, limit: int) -> tuple[bytes, bool]:
    """Return the bytes of a frame up to the first damaged block."""
    out, room = bytearray(), bytearray(_LZ4_BLOCK_SIZE)
    position = len(_LZ4_HEADER)
    if data[:position] != _LZ4_HEADER:
        return b"", False
    with suppress(DecompressionError):
        while len(data) - position >= _LZ4_BLOCK.size and len(out) <= limit:
            (field,) = _LZ4_BLOCK.unpack_from(data, position)
            position += _LZ4_BLOCK.size
            size = field & ~_LZ4_STORED
            block = data[position : position + size]
            if not 0 < size == len(block):
                break
            if size == field:
                block = memoryview(room)[: cramjam.lz4.decompress_block_into(block, room)]
            out += block
            position += size
    return bytes(out), False


def _snappy(data: memoryview, limit: int, room: memoryview) -> memoryview:
    blocks = _snappy_blocks(data)
    out = room[:limit]
    if _SNAPPY_GROWS * len(data) <= len(out):
        done = 0
        try:
            for block in blocks:
                done += snappy_block_into(block, out[done:])
        except DecompressionError:
            pass  # no room there, or damage, which is reported below
        else:
            return out[:done]
    # Each says how much comes out of it.
    size = sum(map(cramjam.snappy.decompress_raw_len, blocks))
    if size > limit:
        raise _too_large(limit)
    out = room[:size] if size <= len(room) else _room(size)
    done = 0
    for block in blocks:
        done += snappy_block_into(block, out[done:])
    return out


def _snappy_blocks(data: memoryview) -> list[memoryview]:
    """Return the non-empty blocks of a xerial stream; data without its magic is one block."""
    position = _XERIAL_HEADER.size
    if len(data) < position or data[:8] != XERIAL_MAGIC:
        return [data] if len(data) else []
    # Nearly all streams of less than 32 KiB are of one block.
    if len(data) > _XERIAL_ONE:
        (length,) = _LENGTH.unpack_from(data, position)
        if length == len(data) - _XERIAL_ONE:
            return [data[_XERIAL_ONE:]]
    blocks = []
    while len(data) - position >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(data, position)
        # Streams may be concatenated.
        if length < 0 and data[position : position + 8] == XERIAL_MAGIC:
            position += _XERIAL_HEADER.size
            continue
        position += _LENGTH.size
        if not 0 <= length <= len(data) - position:
            raise FormatError(
                f"snappy chunk of {length} bytes, but {len(data) - position} are left"
            )
        if length:
            blocks.append(data[position : position + length])
        position += length
    return blocks


def lone_snappy_blocks(
    data: memoryview, starts: NDArray[Any], ends: NDArray[Any]
) -> NDArray[np.int64]:
    """Return where the one block of each of the streams ``data[starts:ends]`` begins, in bytes.

    It is -1 for a stream that is to be left to `decompress`: of other blocks, or very short.
    """
    found = np.full(len(starts), -1, np.int64)
    (rows,) = np.nonzero(ends - starts > _XERIAL_ONE)
    if not len(rows):
        return found
    begin = starts[rows]
    # Views of the values that begin at each byte, aligned or not.
    magics = np.ndarray((len(data) - 7,), ">u8", data, strides=(1,))
    lengths = np.ndarray((len(data) - 3,), ">i4", data, strides=(1,))
    framed = magics[begin] == int.from_bytes(XERIAL_MAGIC)
    only = lengths[begin + _XERIAL_HEADER.size] == ends[rows] - begin - _XERIAL_ONE
    found[rows] = np.where(framed, np.where(only, begin + _XERIAL_ONE, -1), begin)
    return found


def _lz4(data: memoryview, limit: int, room: memoryview) -> memoryview:
    blocks, end = _lz4_frame(data)
    if data[: len(_LZ4_HEADER)] == _LZ4_HEADER and 2 * len(data) <= len(room):
        # The frame's own reader zeroes its buffers for each frame: three times the time.
        with suppress(DecompressionError, ValueError):
            return _lz4_blocks_into(data, blocks, room[:limit])
    return _growing(cramjam.lz4.decompress_into, data[:end], limit, room)


def _lz4_frame(data: memoryview) -> tuple[list[tuple[int, int]], int]:
    """Return where the blocks of the first frame stand, with their size fields, and its end.

    Kafka reads one frame and ignores what follows.
    """
    magic, flags = _LZ4_BLOCK.unpack_from(data, 0)[0], data[4] if len(data) > 4 else 0
    if magic != _LZ4_MAGIC:
        raise FormatError(f"lz4 frame begins with 0x{magic:08x}, not 0x{_LZ4_MAGIC:08x}")
    blocks: list[tuple[int, int]] = []
    position = 7 + (8 if flags & 0x08 else 0)
    while True:
        if position + _LZ4_BLOCK.size > len(data):
            raise FormatError("lz4 frame has no end mark", min(position, len(data)))
        (size,) = _LZ4_BLOCK.unpack_from(data, position)
        position += _LZ4_BLOCK.size
        if size == 0:
            return blocks, position + (4 if flags & 0x04 else 0)
        blocks.append((position, size))
        position += (size & ~_LZ4_STORED) + (4 if flags & 0x10 else 0)


def _lz4_blocks_into(
    data: memoryview, blocks: list[tuple[int, int]], room: memoryview
) -> memoryview:
    """Decompress the blocks of a frame as Kafka writes it; an error where one has no room."""
    done = 0
    for start, field in blocks:
        out = room[done : done + _LZ4_BLOCK_SIZE]
        size = field & ~_LZ4_STORED
        block = data[start : start + size]
        if size != field:
            out[:size] = block
            done += size
        else:
            done += cramjam.lz4.decompress_block_into(block, out)
    return room[:done]


def _zstd(data: memoryview, limit: int, room: memoryview) -> memoryview:
    return _growing(cramjam.zstd.decompress_into, data, limit, room)


def _growing(
    decompress_into: Callable[[memoryview, memoryview], int],
    data: memoryview,
    limit: int,
    room: memoryview,
) -> memoryview:
    """Decompress into `room`, or into memory that grows until it is large enough."""
    size = 4 * len(data)
    out = room if size <= 2 * len(room) else _room(min(size, limit + 1))
    while True:
        try:
            written = decompress_into(data, out)
        except DecompressionError as error:
            if _FULL not in str(error):
                raise
            written = len(out)
        if written > limit:
            raise _too_large(limit)
        # One that is full to the last byte may be too small.
        if written < len(out):
            return out[:written]
        size = max(size, 4 * len(out))
        del out  # else two of them are there while the next is made
        out = _room(min(size, limit + 1))


def _room(size: int) -> memoryview:
    """Return a buffer whose pages cost nothing before they are written to."""
    return np.empty(size, np.uint8).data


def _scratch() -> memoryview:
    """Return a buffer of this thread: a fresh one for each batch costs more than decompressing."""
    try:
        buffer: memoryview = _OF_THREAD.buffer
    except AttributeError:
        buffer = _OF_THREAD.buffer = memoryview(bytearray(_SCRATCH_SIZE))
    return buffer


def _too_large(limit: int) -> LimitError:
    return LimitError(f"decompresses to more than the limit of {limit} bytes")


_DECOMPRESSORS: dict[int, Callable[[memoryview, int, memoryview], memoryview]] = {
    GZIP: _gzip,
    SNAPPY: _snappy,
    LZ4: _lz4,
    ZSTD: _zstd,
}
_FRONTS: dict[int, Callable[[memoryview, int], tuple[bytes, bool]]] = {
    GZIP: _gzip_front,
    SNAPPY: _snappy_front,
    LZ4: _lz4_front,
}
