"""The words that the ``.pxd`` files of the kernels have in C, for plain Python."""

import re
import struct
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime, timedelta

import crc32c as _crc32c

_ASCII = re.compile(rb"[ -~]*")
_ESCAPED = re.compile(rb'["\\]')
_EPOCH = datetime(1970, 1, 1)
_FIELDS = struct.Struct(">hiqqqhii")
_FIELDS_LE = struct.Struct("<hiqqqhii")
_FRONT = struct.Struct(">qiibI")
_FRONT_LE = struct.Struct("<iqbI")


class cython:  # noqa: N801 - stands in for the module where Cython is not installed
    """The names of Cython that `_kernels` needs at run time."""

    compiled = False
    nogil = nullcontext()


def crc32_init() -> None:
    """Do nothing: the tables are C's."""


def crc32c(data: memoryview, start: int, end: int) -> int:
    """Return the CRC-32C of ``data[start:end]``."""
    return _crc32c.crc32c(data[start:end])


def crc32c_on(value: int, data: bytes | bytearray | memoryview) -> int:
    """Return the CRC-32C of `data`, going on from `value`."""
    return _crc32c.crc32c(data, value)


def crc32(data: memoryview, start: int, end: int) -> int:
    """Return the CRC-32 (IEEE) of ``data[start:end]``."""
    return zlib.crc32(data[start:end])


def _reader(layout: str) -> Callable[[memoryview, int], int]:
    """Return the function that reads an integer at a position in bytes."""
    unpack_from = struct.Struct(layout).unpack_from

    def read(data: memoryview, position: int) -> int:
        value: int = unpack_from(data, position)[0]
        return value

    return read


int16, int32, int64, uint32 = map(_reader, (">h", ">i", ">q", ">I"))
int16le, int32le, int64le, uint32le = map(_reader, ("<h", "<i", "<q", "<I"))


def zigzag(raw: int, most: int) -> int:
    """Return the signed value of a varint's bits: 32 of them where `most` is 5, else 64."""
    raw &= 0xFFFFFFFF if most == 5 else 0xFFFFFFFFFFFFFFFF
    return (raw >> 1) ^ -(raw & 1)


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
    return (int(a) + int(b) + 2**63) % 2**64 - 2**63


def copy(out: memoryview, at: int, source: bytes | memoryview, first: int, last: int) -> None:
    """Copy ``source[first:last]`` into `out` from `at` on."""
    out[at : at + last - first] = source[first:last]


def again(out: memoryview, at: int, place: int) -> None:
    """Write the 24 bytes at `place` once more."""
    out[at : at + 24] = bytes(out[place : place + 24])


def escape_init() -> None:
    """Do nothing: the tables are C's."""


def put(out: memoryview, at: int, word: bytes) -> int:
    """Write one of the words of 16 bytes, of which the last says how many count."""
    out[at : at + 16] = word
    return at + word[15]


def decimal(out: memoryview, at: int, value: int) -> int:
    """Write a number; returns where it ends."""
    digits = b"%d" % value
    out[at : at + len(digits)] = digits
    return at + len(digits)


def moment(out: memoryview, at: int, milliseconds: int) -> int:
    """Write a time from 1970 to 9999 as RFC 3339 has it; returns where it ends."""
    time = _EPOCH + timedelta(milliseconds=int(milliseconds))
    out[at : at + 24] = f"{time.isoformat(timespec='milliseconds')}Z".encode()
    return at + 24


def printable(code: int) -> bool:
    """Return whether a character may stand in a cell as it is."""
    return chr(code).isprintable()


def escaped(out: memoryview, at: int, data: memoryview, first: int, last: int) -> tuple[int, int]:
    """Write the bytes of ``data[first:last]`` before the first control or non-ASCII character.

    Quotes and backslashes get a backslash. Returns the ends of these bytes in `data` and `out`.
    """
    found = _ASCII.match(data, first, last)
    if not found or first >= last:
        return first, at
    shown = _ESCAPED.sub(rb"\\\g<0>", found[0])
    out[at : at + len(shown)] = shown
    return found.end(), at + len(shown)


def watch_bytes(data: memoryview) -> int:
    """Return that nothing is watched: Python has no way to go on behind SIGBUS."""
    return -1


def mapped_struck(number: int) -> bool:
    """Return that bytes of a range cannot be relied on: no range is watched."""
    return True


def mapped_unwatch(number: int) -> None:
    """Do nothing: nothing is watched."""


def resident_pages(data: memoryview) -> int:
    """Return that it is not known which pages of a mapping are in memory."""
    return -1
