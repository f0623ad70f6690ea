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

import cramjam
import numpy as np

from logtool.errors import FormatError, LimitError

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

DEFAULT_LIMIT = 256 * 1024 * 1024
"""Bytes that one batch may decompress to; above the 100 MiB fetch limit that brokers allow."""

XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = struct.Struct(">8sii")
_XERIAL_BLOCK = 32768
_LENGTH = struct.Struct(">i")
_GZIP_MAGIC = b"\x1f\x8b"
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


def decompress(codec: int, data: memoryview, limit: int = DEFAULT_LIMIT) -> memoryview:
    """Return the bytes behind `data`; FormatError when damaged, LimitError above `limit` bytes."""
    if codec == NONE:
        return data
    if codec not in _DECOMPRESSORS:
        raise FormatError(f"compression codec {codec} does not exist")
    try:
        return memoryview(_DECOMPRESSORS[codec](data, limit))
    except (cramjam.DecompressionError, zlib.error, struct.error) as error:
        raise FormatError(f"{name(codec)} stream cannot be decompressed: {error}") from error


def decompress_into(codec: int, data: memoryview, out: memoryview, limit: int) -> int | None:
    """Decompress into the beginning of `out`; returns the bytes, None where that cannot be.

    It is for many batches one behind the other. None says only that `decompress` must be asked:
    `out` may be too small, or the stream not of the form that Kafka writes for a small batch. The
    rest of `out` may be overwritten. FormatError when damaged.
    """
    room = min(len(out), limit)
    try:
        if codec == SNAPPY:
            block = _only_snappy_block(data)
            if block is None or cramjam.snappy.decompress_raw_len(block) > room:
                return None
            return int(cramjam.snappy.decompress_raw_into(block, out))
        if codec == GZIP:
            member = zlib.decompressobj(wbits=31)
            piece = member.decompress(data, room + 1)
            if len(piece) > room or not member.eof or member.unused_data:
                return None
            out[: len(piece)] = piece
            return len(piece)
        if codec == LZ4:
            size = int(cramjam.lz4.decompress_into(data[: _lz4_frame_size(data)], out))
        elif codec == ZSTD:
            size = int(cramjam.zstd.decompress_into(data, out))
        else:
            return None
    except (cramjam.DecompressionError, zlib.error, struct.error) as error:
        if _FULL in str(error):
            return None
        raise FormatError(f"{name(codec)} stream cannot be decompressed: {error}") from error
    # One that is full to the last byte may be too small.
    return size if size < room else None


def _only_snappy_block(data: memoryview) -> memoryview | None:
    """Return the block of a stream that has one, as that of a small batch has."""
    start = _XERIAL_HEADER.size + _LENGTH.size
    if len(data) <= start or data[:8] != XERIAL_MAGIC:
        return None
    (length,) = _LENGTH.unpack_from(data, _XERIAL_HEADER.size)
    return data[start:] if length == len(data) - start else None


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


def _gzip(data: memoryview, limit: int) -> bytearray:
    # One buffer that grows: parts that are joined would be there twice.
    out, position = bytearray(), 0
    # Java ignores what stands behind a member and is none itself.
    while position == 0 or data[position : position + 2] == _GZIP_MAGIC:
        member = zlib.decompressobj(wbits=31)
        width = _GZIP_FIRST
        while not member.eof:
            piece = data[position : position + width]
            before = len(out)
            out += member.decompress(piece, min(limit - before + 1, _PIECE))
            if len(out) > limit:
                raise _too_large(limit)
            if not len(piece) and len(out) == before and not member.eof:
                raise FormatError("gzip stream ends in the middle", position)
            # What is not used is copied: feed little at first, as a member may be short.
            position += len(piece) - len(member.unused_data) - len(member.unconsumed_tail)
            width = min(4 * width, _GZIP_MOST)
    return out


def _snappy(data: memoryview, limit: int) -> bytearray | memoryview:
    if len(data) < _XERIAL_HEADER.size or data[:8] != XERIAL_MAGIC:
        return _snappy_block(data, limit)
    out, position = bytearray(), _XERIAL_HEADER.size
    while len(data) - position >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(data, position)
        if data[position : position + 8] == XERIAL_MAGIC:  # streams may be concatenated
            position += _XERIAL_HEADER.size
            continue
        position += _LENGTH.size
        if not 0 <= length <= len(data) - position:
            raise FormatError(f"snappy chunk of {length} bytes, {len(data) - position} are left")
        block = _snappy_block(data[position : position + length], limit, len(out))
        position += length
        if position == len(data) and not out:
            return block  # the whole, which is not copied
        out += block
    return out


def _snappy_block(data: memoryview, limit: int, done: int = 0) -> memoryview:
    if len(data) == 0:
        return memoryview(b"")
    size = cramjam.snappy.decompress_raw_len(data)
    if done + size > limit:
        raise _too_large(limit)
    out = _room(size)
    cramjam.snappy.decompress_raw_into(data, out)
    return out


def _lz4(data: memoryview, limit: int) -> bytes | memoryview:
    return _growing(cramjam.lz4.decompress_into, data[: _lz4_frame_size(data)], limit)


def _lz4_frame_size(data: memoryview) -> int:
    """Return the length of the first frame: Kafka reads one and ignores what follows."""
    magic, flags = _LZ4_BLOCK.unpack_from(data, 0)[0], data[4] if len(data) > 4 else 0
    if magic != _LZ4_MAGIC:
        raise FormatError(f"lz4 frame begins with 0x{magic:08x}, not 0x{_LZ4_MAGIC:08x}")
    position = 7 + (8 if flags & 0x08 else 0)
    while True:
        if position + _LZ4_BLOCK.size > len(data):
            raise FormatError("lz4 frame has no end mark", min(position, len(data)))
        (size,) = _LZ4_BLOCK.unpack_from(data, position)
        position += _LZ4_BLOCK.size
        if size == 0:
            return position + (4 if flags & 0x04 else 0)
        position += (size & ~_LZ4_STORED) + (4 if flags & 0x10 else 0)


def _zstd(data: memoryview, limit: int) -> bytes | memoryview:
    return _growing(cramjam.zstd.decompress_into, data, limit)


def _growing(
    decompress_into: Callable[[memoryview, memoryview], int], data: memoryview, limit: int
) -> bytes | memoryview:
    """Decompress into the scratch buffer, or one that grows until it is large enough."""
    size = 4 * len(data)
    while True:
        out = _scratch() if size < _SCRATCH_SIZE else _room(min(size, limit + 1))
        try:
            written = decompress_into(data, out)
        except cramjam.DecompressionError as error:
            if _FULL not in str(error):
                raise
            written = len(out)
        if written > limit:
            raise _too_large(limit)
        # One that is full to the last byte may be too small.
        if written < len(out):
            return bytes(out[:written]) if len(out) == _SCRATCH_SIZE else out[:written]
        size = 4 * len(out)
        del out  # else two of them are there while the next is made


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


_DECOMPRESSORS: dict[int, Callable[[memoryview, int], bytes | bytearray | memoryview]] = {
    GZIP: _gzip,
    SNAPPY: _snappy,
    LZ4: _lz4,
    ZSTD: _zstd,
}
