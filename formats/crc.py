"""CRC-32C of the bytes of a file, a journal or a single batch.

The kernel computes it; where nothing is compiled, the package crc32c does, through `_uncompiled`.
"""

from logtool.formats import _kernels


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the CRC-32C of `data`, going on from `value`, that of what stands before it."""
    return _kernels.checksum(data, value)
