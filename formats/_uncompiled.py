"""The words that ``_kernels.pxd`` has in C, for `_kernels` run as plain Python."""

import struct
import zlib
from typing import Any

import crc32c as _crc32c

_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_HEADER_SIZE = 61


class cython:  # noqa: N801 - stands in for the module where Cython is not installed
    """What `_kernels` asks of Cython at run time."""

    compiled = False


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


def copy_header(headers: Any, at: int, data: memoryview, position: int, end: int) -> None:
    """Copy the 61 bytes at `position` to ``headers[at:]``, zeros for what lies beyond `end`."""
    there = min(end - position, _HEADER_SIZE)
    headers[at : at + there] = data[position : position + there]
    headers[at + there : at + _HEADER_SIZE] = 0
