"""A file on a disk that fails: reads of one sector give an error, as the system's own do."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SECTOR = 4096


@contextmanager
def bad_sector(path: Path, position: int) -> Iterator[list[int]]:
    """Let no read of the file reach beyond a sector, as the system's own do.

    What lies before it is given; EIO comes where a read begins in it.
    """
    status = path.stat()
    honest = os.preadv, os.pread
    met = []

    def room(fd, size, offset):
        found = os.fstat(fd)
        if (found.st_dev, found.st_ino) != (status.st_dev, status.st_ino):
            return size
        if position <= offset < position + SECTOR:
            met.append(offset)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return min(size, position - offset) if offset < position else size

    def preadv(fd, buffers, offset):
        (buffer,) = buffers
        data = memoryview(buffer)
        return honest[0](fd, [data[: room(fd, len(data), offset)]], offset)

    def pread(fd, size, offset):
        return honest[1](fd, room(fd, size, offset), offset)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "preadv", preadv)
        patch.setattr(os, "pread", pread)
        yield met
