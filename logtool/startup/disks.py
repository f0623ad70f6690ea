"""Read times: of a log while it is loaded, of files through the page cache and past it.

A sample of each disk gives its read rate for a broker, which reads logs through the page cache.

A broker reads a log from its beginning, batch by batch, and the system reads ahead. So the sample
reads a few logs that are not in the page cache like that, before anything else of them is read.
It also reads a few bytes past the page cache (O_DIRECT), for the rate with an empty page cache.
Files are opened with the flags of `logtool.disk.files`: nothing is written, and no pipe blocks.
"""

import errno
import math
import mmap
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from heapq import heappush, heapreplace, nlargest
from pathlib import Path

from logtool.disk import files
from logtool.disk.files import READ_ONLY, translated
from logtool.errors import UnreadableError
from logtool.formats.crc import crc32c
from logtool.lazy_dataclass import dataclass

MIB = 1024 * 1024
_MOST_LOGS = 16
"""Logs of a disk that are read for its sample, the largest ones."""
_MOST_READ = 32 * MIB
_MOST_SECONDS = 0.25
"""Most seconds for each of the two ways to read."""
_LARGE = 4 * MIB
_LOOKS = 4
"""Most small logs of a partition that are looked at; the others are estimated from these."""
_READ_PAST_CACHE = 1024 * 1024
_COPIED, _COPIES = 1024 * 1024, 16
"""Bytes that a pass over memory copies at once, and how many times as many it copies in turn."""
_STEP = 16 * 1024
PIECE = 4 * 1024 * 1024
"""Bytes of log that are timed together; fewer are too few for a rate."""


@dataclass(frozen=True, slots=True)
class Cold:
    """Estimate of the part of a partition's logs that is not in the page cache."""

    bytes: int = 0
    logs: int = 0


@dataclass(frozen=True, slots=True)
class DiskSample:
    """Measured read rates of one disk, in bytes a second."""

    log_dir: Path
    """The first log dir of those on this disk."""
    past_cache: float | None = None
    """Bytes a second past the page cache; None if that was not tried, or is not possible."""
    through_cache: float | None = None
    """Bytes a second of logs outside the page cache; None if all logs were in the page cache."""
    first_seconds: float = 0.0
    """Seconds until the first bytes of a log that is not in the page cache arrive."""

    def seconds(self, cold: Cold) -> float:
        """Return how many seconds a broker waits for bytes that are not in the page cache."""
        if self.through_cache is None:
            return 0.0
        return cold.bytes / self.through_cache + cold.logs * self.first_seconds


Timed = Callable[[Path, int, float], tuple[int, float, float]]
Disks = Mapping[int, DiskSample]
"""Samples by device number."""


class Samples:
    """The largest logs on each disk, among the logs that a broker reads."""

    def __init__(self) -> None:
        self._logs: dict[int, list[tuple[int, Path]]] = {}
        """Size and path by device number, a heap of those of each disk."""
        self._log_dirs: dict[int, Path] = {}

    def add(self, log_dir: Path, logs: Iterable[tuple[Path, int]]) -> None:
        """Take the logs of a partition, each with its size."""
        if (device := files.device_of(log_dir)) is None:
            return
        self._log_dirs.setdefault(device, log_dir)
        largest = self._logs.setdefault(device, [])
        for one in nlargest(_MOST_LOGS // 4, [(size, path) for path, size in logs]):
            if len(largest) < _MOST_LOGS:
                heappush(largest, one)
            elif one > largest[0]:
                heapreplace(largest, one)

    def taken(self) -> Disks:
        """Read a little of each disk; return the samples."""
        return {
            device: _sampled(self._log_dirs[device], [path for _, path in sorted(logs)[::-1]])
            for device, logs in self._logs.items()
        }


def _sampled(log_dir: Path, logs: Sequence[Path]) -> DiskSample:
    through, count = _timed(logs, _uncached)
    past, _ = _timed(logs, lambda *log: (*past_cache(*log), 0.0))
    return DiskSample(
        log_dir,
        past_cache=past[0] / past[1] if past[0] >= MIB else None,
        through_cache=through[0] / through[1] if through[0] else None,
        first_seconds=through[2] / count if count else 0.0,
    )


def _timed(logs: Iterable[Path], timed: Timed) -> tuple[tuple[int, float, float], int]:
    """Return bytes read, seconds to read them, seconds until first bytes, and the logs read."""
    size, seconds, first, count = 0, 0.0, 0.0, 0
    for log in logs:
        left = _MOST_SECONDS - seconds
        if size >= _MOST_READ or left <= 0:
            break
        with suppress(UnreadableError):  # the next reader of the log reports it
            found = timed(log, _MOST_READ // 4, left)
            size, seconds, first = size + found[0], seconds + found[1], first + found[2]
            count += found[0] > 0
    return (size, seconds, first), count


def _uncached(log: Path, most: int, seconds: float) -> tuple[int, float, float]:
    """Read a log through the page cache, unless some of it is in there."""
    if cached_bytes(log):
        return 0, 0.0, 0.0
    return through_cache(log, most, seconds)


def cold(logs: Iterable[tuple[Path, int]]) -> Cold:
    """Return how much of the logs, given with their sizes, is not in the page cache.

    Of the small logs only some are looked at; the rest is estimated from them.
    """
    here = [(path, size) for path, size in logs if size and not files.is_remote(path)]
    large = [one for one in here if one[1] >= _LARGE]
    small = [one for one in here if one[1] < _LARGE]
    looked = small[:: max(1, math.ceil(len(small) / _LOOKS))]
    rest, rest_logs = _cold(looked)
    share = len(small) / len(looked) if looked else 0.0
    size, count = _cold(large)
    return Cold(round(size + rest * share), round(count + rest_logs * share))


def _cold(logs: Iterable[tuple[Path, int]]) -> tuple[int, int]:
    total = count = 0
    for path, size in logs:
        with suppress(UnreadableError):
            missing = max(0, size - cached_bytes(path))
            total, count = total + missing, count + (missing > 0)
    return total, count


class StretchTimes:
    """Timer of the loading of one log, stretch by stretch.

    Call it with the bytes of each stretch. It passes them on to `on_bytes`, which may wait to keep
    to a rate; that wait is not counted.
    """

    def __init__(self, on_bytes: Callable[[int], None]) -> None:
        self._on_bytes = on_bytes
        self._bytes = 0
        self._since = time.perf_counter()
        self.rates: list[float] = []
        """Bytes a second, one value for each 4 MiB or a little more."""

    def __call__(self, count: int) -> None:
        """Count the bytes of the next stretch."""
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

    The size of the file if the system does not say. UnreadableError if the file cannot be opened.
    """
    from logtool.formats import _mapped

    with translated(path):
        fd = os.open(path, READ_ONLY)
    try:
        size = os.fstat(fd).st_size
        if not size:
            return 0
        # No page of it is touched: even a read with RWF_NOWAIT would start to read ahead.
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
    """Return how many bytes of a file were read past the page cache, and the seconds.

    At most `most` bytes are read, for about `seconds`. (0, 0.0) if the file system cannot read
    past its cache; UnreadableError if the file cannot be read.
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
    """Return how many bytes of a file were read through the page cache, and the seconds.

    The last number is the seconds until the first bytes came. The file is read in small steps from
    its beginning, at most `most` bytes, for about `seconds`. UnreadableError if it cannot be read.
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


def memory_pass(seconds: float) -> float:
    """Return the bytes a second at which memory is copied and checked with CRC-32C.

    Bytes that are more than the inner caches of a processor hold are copied again and again, as
    they are from the page cache, until this thread has used `seconds` of processor time, or 20
    times as many have passed. So a busy machine shows in the result.
    """
    source = memoryview(os.urandom(_COPIED) * _COPIES)
    view = memoryview(bytearray(_COPIED))
    done, taken = 0, 0.0
    began, end = time.perf_counter(), time.thread_time() + seconds
    while not done or (time.thread_time() < end and taken < 20 * seconds):
        at = done % len(source)
        view[:] = source[at : at + _COPIED]
        crc32c(view)
        done, taken = done + _COPIED, time.perf_counter() - began
    return done / taken
