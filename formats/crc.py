"""CRC-32C of bytes, by the package crc32c.

That imports `importlib.metadata`, which takes as long as all formats together: so it is imported
when the first CRC is asked for, and a command that asks for none starts without it. The kernels of
a scan have their own.
"""


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the CRC-32C of `data`, going on from that of what stands before it."""
    import crc32c as package

    return package.crc32c(data, value)
