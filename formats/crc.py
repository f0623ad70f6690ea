"""CRC-32C of bytes, by the kernel: compiled, or the package crc32c where nothing is compiled."""

from logtool.formats import _kernels


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the CRC-32C of `data`, going on from that of what stands before it."""
    return _kernels.checksum(data, value)
