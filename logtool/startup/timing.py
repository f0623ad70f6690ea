"""Times of reading: of a log as it is loaded, of a file through the page cache and past it.

Files are opened with the flags of `logtool.disk.files`: nothing is written, and no pipe blocks.
"""

import errno
import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path

from logtool.disk.files import READ_ONLY, LogFile, translated

_READ_PAST_CACHE = 1024 * 1024
_STEP = 16 * 1024
PIECE = 4 * 1024 * 1024
"""Bytes of log whose reading time is worth a measurement."""


class StretchTimes:
    """Times the loading of one log, stretch by stretch.

    Call it with the bytes of each stretch. It passes them on to `on_bytes`, which may wait to keep
    to a rate: that wait is not counted.
    """

    def __init__(self, on_bytes: Callable[[int], None]) -> None:
        self._on_bytes = on_bytes
        self._bytes = 0
        self._since = time.perf_counter()
        self.rates: list[float] = []
        """Bytes a second of each 4 MiB or a little more."""

    def __call__(self, count: int) -> None:
        """Take the next stretch."""
        self._bytes += count
        now = time.perf_counter()
        taken = now - self._since
        if self._bytes >= PIECE and taken > 0:
            self.rates.append(self._bytes / taken)
            self._bytes, taken = 0, 0.0
        self._on_bytes(count)
        self._since = time.perf_counter() - taken


def cached_bytes(path: Path) -> int:
    """Return how many bytes of a file are in the page cache, in whole pages; nothing is read.

    All of them where nobody tells; UnreadableError where the file cannot be opened.
    """
    from logtool.formats import _mapped

    with translated(path):
        fd = os.open(path, READ_ONLY)
    try:
        size = os.fstat(fd).st_size
        if not size:
            return 0
        # No page of it is touched: a look by reading, even with RWF_NOWAIT, begins to read ahead.
        with (
            mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ) as mapped,
            memoryview(mapped) as data,
        ):
            pages = _mapped.resident(data)
        return size if pages < 0 else min(size, pages * mmap.PAGESIZE)
    except (OSError, ValueError):  # it cannot be mapped, or was cut meanwhile
        return size
    finally:
        os.close(fd)


def past_cache(path: Path, most: int, seconds: float) -> tuple[int, float]:
    """Return how many bytes were read of a file past the page cache, and how long it took.

    At most `most` bytes and about so many seconds. (0, 0.0) where the file system reads nothing
    past its cache; UnreadableError where it cannot be read.
    """
    with translated(path):
        try:
            fd = os.open(path, READ_ONLY | os.O_DIRECT)
        except OSError as error:
            if error.errno == errno.EINVAL:
                return 0, 0.0
            raise
    try:
        done, began = 0, time.perf_counter()
        with mmap.mmap(-1, _READ_PAST_CACHE) as aligned, translated(path):
            while done < most and time.perf_counter() - began < seconds:
                count = os.preadv(fd, [aligned], done)
                done += count
                if count < _READ_PAST_CACHE:
                    break
        return done, time.perf_counter() - began
    finally:
        os.close(fd)


def through_cache(path: Path, most: int, seconds: float) -> tuple[int, float, float]:
    """Return how many bytes were read of a file through the page cache, and how long it took.

    The last number is the seconds until the first of them came. It is read in small steps from its
    beginning, at most `most` bytes and about so many seconds; UnreadableError where it cannot be.
    """
    with translated(path):
        fd = os.open(path, READ_ONLY)
    try:
        done, first, taken, step = 0, 0.0, 0.0, bytearray(_STEP)
        began = time.perf_counter()
        with translated(path):
            while done < most and taken < seconds and (count := os.preadv(fd, [step], done)):
                taken = time.perf_counter() - began
                first, done = first or taken, done + count
        return done, taken, first
    finally:
        os.close(fd)


def cached_pass(path: Path, most: int, seconds: float) -> tuple[int, float]:
    """Return how many bytes were read and checked with CRC-32C, and how long that took.

    They are the first `most` bytes of a file, or fewer, again and again until this thread had a
    processor for so many seconds, or 20 times as long: what else the machine does meanwhile shows
    in it. UnreadableError where it cannot be read.
    """
    from logtool.formats.crc import crc32c

    view = memoryview(bytearray(_READ_PAST_CACHE))
    done, at, began, taken = 0, 0, time.perf_counter(), 0.0
    end = time.thread_time() + seconds
    with LogFile(path) as file:
        while time.thread_time() < end and taken < 20 * seconds:
            count = file.read_into(view, at)
            crc32c(view[:count])
            taken = time.perf_counter() - began
            if not count and not at:
                break
            done, at = done + count, at + count if count and at + count < most else 0
    return done, taken
