"""Four bytes that give a batch a wanted CRC.

A batch whose payload was taken out keeps its header, and so its CRC. Four bytes in the place of
payload are chosen so that this CRC holds: a CRC can be run backwards from its end.
"""

import zlib
from collections.abc import Sequence

from logtool.formats.crc import crc32c

SIZE = 4
"""Number of bytes that are chosen."""
_ALL = 0xFFFFFFFF
_CASTAGNOLI, _IEEE = 0x82F63B78, 0xEDB88320


def _table(polynomial: int) -> tuple[Sequence[int], Sequence[int]]:
    """Return the table of a reflected CRC, and the index of its row by the highest byte."""
    rows = []
    for number in range(256):
        row = number
        for _ in range(8):
            row = row >> 1 ^ (polynomial if row & 1 else 0)
        rows.append(row)
    backwards = [0] * 256
    for number, row in enumerate(rows):
        backwards[row >> 24] = number
    return rows, backwards


_TABLES = {_CASTAGNOLI: _table(_CASTAGNOLI), _IEEE: _table(_IEEE)}


def four_bytes(before: int, crc: int, behind: bytes = b"", *, magic: int) -> bytes:
    """Return the bytes that lead from the CRC `before` them to `crc` at the end, past `behind`.

    The CRCs are those of a batch of `magic`. There should be few bytes behind.
    """
    rows, backwards = _TABLES[_CASTAGNOLI if magic >= 2 else _IEEE]
    wanted = crc ^ _ALL
    for byte in reversed(behind):
        wanted = _back(wanted, byte, rows, backwards)
    for _ in range(SIZE):
        wanted = _back(wanted, 0, rows, backwards)
    return (wanted ^ before ^ _ALL).to_bytes(SIZE, "little")


def forge(data: bytearray, position: int, start: int, end: int, crc: int, *, magic: int) -> None:
    """Change the four bytes at `position` so that the CRC of ``data[start:end]`` is `crc`.

    The CRC is that of a batch of `magic`. Few bytes should stand behind `position`.
    """
    checksum = crc32c if magic >= 2 else zlib.crc32
    before = checksum(memoryview(data)[start:position])
    behind = bytes(data[position + SIZE : end])
    data[position : position + SIZE] = four_bytes(before, crc, behind, magic=magic)


def _back(register: int, byte: int, rows: Sequence[int], backwards: Sequence[int]) -> int:
    """Return the register before a byte was taken."""
    number = backwards[register >> 24]
    return ((register ^ rows[number]) << 8 & _ALL) | (number ^ byte)
