"""The words that the ``.pxd`` files of the kernels have in C, for plain Python."""

import re
import struct
import zlib
from contextlib import nullcontext

import crc32c as _crc32c

_INT16 = struct.Struct(">h")
_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_UINT32_LE = struct.Struct("<I")
_INT32_LE = struct.Struct("<i")
_INT64_LE = struct.Struct("<q")
_INT16_LE = struct.Struct("<h")
_UNESCAPED = re.compile(rb"[ !#-\[\]-~]*")
_FIELDS = struct.Struct(">hiqqqhii")
_FIELDS_LE = struct.Struct("<hiqqqhii")
_FRONT = struct.Struct(">qiibI")
_FRONT_LE = struct.Struct("<iqbI")


class cython:  # noqa: N801 - stands in for the module where Cython is not installed
    """What `_kernels` asks of Cython at run time."""

    compiled = False
    nogil = nullcontext()


def crc32_init() -> None:
    """Do nothing: the tables are C's."""


def crc32c(data: memoryview, start: int, end: int) -> int:
    """Return the CRC-32C of ``data[start:end]``."""
    return _crc32c.crc32c(data[start:end])


def crc32(data: memoryview, start: int, end: int) -> int:
    """Return the CRC-32 (IEEE) of ``data[start:end]``."""
    return zlib.crc32(data[start:end])


def int32(data: memoryview, position: int) -> int:
    """Return the signed big-endian 32-bit integer at `position`."""
    value: int = _INT32.unpack_from(data, position)[0]
    return value


def uint32(data: memoryview, position: int) -> int:
    """Return the unsigned big-endian 32-bit integer at `position`."""
    value: int = _UINT32.unpack_from(data, position)[0]
    return value


def zigzag(raw: int, most: int) -> int:
    """Return the signed value of a varint's bits: 32 of them where `most` is 5, else 64."""
    raw &= 0xFFFFFFFF if most == 5 else 0xFFFFFFFFFFFFFFFF
    return (raw >> 1) ^ -(raw & 1)


def int16(data: memoryview, position: int) -> int:
    """Return the signed big-endian 16-bit integer at `position`."""
    value: int = _INT16.unpack_from(data, position)[0]
    return value


def int64(data: memoryview, position: int) -> int:
    """Return the signed big-endian 64-bit integer at `position`."""
    value: int = _INT64.unpack_from(data, position)[0]
    return value


def uint32le(data: memoryview, position: int) -> int:
    """Return the unsigned little-endian 32-bit integer at `position`."""
    value: int = _UINT32_LE.unpack_from(data, position)[0]
    return value


def int32le(data: memoryview, position: int) -> int:
    """Return the signed little-endian 32-bit integer at `position`."""
    value: int = _INT32_LE.unpack_from(data, position)[0]
    return value


def int64le(data: memoryview, position: int) -> int:
    """Return the signed little-endian 64-bit integer at `position`."""
    value: int = _INT64_LE.unpack_from(data, position)[0]
    return value


def int16le(data: memoryview, position: int) -> int:
    """Return the signed little-endian 16-bit integer at `position`."""
    value: int = _INT16_LE.unpack_from(data, position)[0]
    return value


def redpanda_crc(data: memoryview, position: int, after: int) -> int:
    """Return the CRC of a batch of Redpanda: its fields as Kafka writes them, and its body."""
    fields = _FIELDS.pack(*_FIELDS_LE.unpack_from(data, position + 21))
    return _crc32c.crc32c(data[position + 61 : after], _crc32c.crc32c(fields))


def kafka_header(data: memoryview, position: int, epoch: int) -> None:
    """Write Kafka's header over one of Redpanda of the same batch."""
    size, base_offset, _, crc = _FRONT_LE.unpack_from(data, position + 4)
    fields = _FIELDS_LE.unpack_from(data, position + 21)
    _FRONT.pack_into(data, position, base_offset, size - 12, epoch, 2, crc)
    _FIELDS.pack_into(data, position + 21, *fields)


def sum64(a: int, b: int) -> int:
    """Return the sum as 64 bits hold it."""
    return (a + b + 2**63) % 2**64 - 2**63


def magnitude(value: int) -> int:
    """Return a number without its sign, also where NumPy's has no room for that."""
    return abs(int(value))


def copy(out: memoryview, at: int, source: bytes | memoryview, first: int, last: int) -> None:
    """Copy ``source[first:last]`` into `out` from `at` on."""
    out[at : at + last - first] = source[first:last]


def plain(out: memoryview, at: int, data: memoryview, first: int, last: int) -> int:
    """Copy what of ``data[first:last]`` stands before a byte that JSON escapes; return its size."""
    found = _UNESCAPED.match(data, first, last)
    size = found.end() - first if found else 0
    out[at : at + size] = data[first : first + size]
    return size


def watch_bytes(data: memoryview) -> int:
    """Return that nothing is watched: Python has no way to go on behind SIGBUS."""
    return -1


def mapped_struck(number: int) -> bool:
    """Return that bytes of a range cannot be relied on: none is watched."""
    return True


def mapped_unwatch(number: int) -> None:
    """Do nothing: nothing is watched."""


def resident_pages(data: memoryview) -> int:
    """Return that nobody tells which pages of a mapping are in memory."""
    return -1
