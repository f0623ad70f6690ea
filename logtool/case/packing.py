"""A compressed stream of an exact size, with room for four free bytes.

Readers of each codec skip something: bytes behind a gzip member and behind an lz4 frame, the fields
in the header of a further xerial stream, and skippable frames of zstd.
"""

import struct
from typing import NamedTuple

from logtool.errors import FormatError
from logtool.formats import compression
from logtool.formats.compression import GZIP, LZ4, SNAPPY, XERIAL_MAGIC, ZSTD

_FREE = 4
_SKIPPABLE = struct.Struct("<II")
_SKIPPABLE_MAGIC = 0x184D2A50
_XERIAL_HEADER = 16
_LITERAL, _COPIED, _COPY = 60, 64, 3
"""Most bytes of a literal with a tag of one byte, of a copy, and the bytes that a copy takes."""


class Packed(NamedTuple):
    """A stream of the wanted size."""

    data: bytes
    free: int | None
    """Position of four bytes that no reader looks at; None if there was no room for them."""


def pack(codec: int, body: bytes, size: int) -> Packed | None:
    """Return `body`, which ends with zeros, as a stream of `size` bytes; None if it takes more."""
    plain = compression.compress(codec, body)
    room = size - len(plain)
    packed = _PADDED[codec](plain, room) if room >= 0 else None
    if codec == SNAPPY and (packed is None or packed.free is None):
        packed = _block(body, size) or packed
    return packed if packed and _is_read(codec, packed.data, body) else None


def _is_read(codec: int, data: bytes, body: bytes) -> bool:
    try:
        return bytes(compression.decompress(codec, memoryview(data))) == body
    except FormatError:
        return False


def _behind(plain: bytes, room: int) -> Packed:
    data = plain + bytes(room)
    # Two bytes before the free ones, so that these are not taken for the head of a gzip member.
    return Packed(data, len(data) - _FREE if room >= _FREE + 2 else None)


def _snappy(plain: bytes, room: int) -> Packed:
    # Zeros are empty blocks; fewer than four bytes at the end are not looked at.
    rest = room % 4
    if room < _XERIAL_HEADER:
        return Packed(plain + bytes(room), None)
    head = XERIAL_MAGIC + bytes(_XERIAL_HEADER - len(XERIAL_MAGIC))
    data = plain + bytes(room - rest - _XERIAL_HEADER) + head + bytes(rest)
    return Packed(data, len(data) - rest - _FREE)


def _block(body: bytes, size: int) -> Packed | None:
    """Return one raw block of snappy of exactly `size` bytes: literals, then copies of zeros."""
    head = _preamble(len(body))
    zeros = len(body) - len(body.rstrip(b"\0"))
    for copied in range(max(zeros - _FREE, 1)):
        literal, copies = len(body) - copied, -(-copied // _COPIED)
        # A literal has up to 60 bytes behind its tag; more tags use up what is left.
        tags = size - len(head) - literal - _COPY * copies
        last = min(_LITERAL, literal - (tags - 1))
        rest = literal - last
        if last < 1 or not tags - 1 <= rest <= _LITERAL * (tags - 1):
            continue
        edges = [rest * number // (tags - 1) for number in range(tags)] if tags > 1 else [0]
        data = bytearray(head)
        for first, end in zip(edges, [*edges[1:], literal], strict=True):
            data += bytes([(end - first - 1) << 2]) + body[first:end]
        free = len(data) - _FREE - 1 if min(last, zeros - copied) > _FREE else None
        for number in range(copies):
            length = min(_COPIED, copied - number * _COPIED)
            data += bytes([(length - 1) << 2 | 2, 1, 0])
        return Packed(bytes(data), free)
    return None


def _preamble(size: int) -> bytes:
    out = bytearray()
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    out.append(size)
    return bytes(out)


def _zstd(plain: bytes, room: int) -> Packed | None:
    if not room:
        return Packed(plain, None)
    if room < _SKIPPABLE.size:
        return None
    rest = room - _SKIPPABLE.size
    data = plain + _SKIPPABLE.pack(_SKIPPABLE_MAGIC, rest) + bytes(rest)
    return Packed(data, len(data) - _FREE if rest >= _FREE else None)


_PADDED = {GZIP: _behind, LZ4: _behind, SNAPPY: _snappy, ZSTD: _zstd}
