"""Images of logs that a failing disk gives only in part, each with a map of GNU ddrescue.

    DIR/rejects/TOPIC-N/LOG.image   all bytes that the disk gave, zeros for those that it did not
    DIR/rejects/TOPIC-N/LOG.map     ranges of the image that were read, and ranges that failed

A later run takes from the image the ranges that were read, and reads only the rest from the disk;
ddrescue can do that, too, with ``ddrescue LOG LOG.image LOG.map``. Source of the form of a map: the
manual of GNU ddrescue 1.27, "Mapfile structure".
"""

import errno
import fcntl
import mmap
import os
import re
from collections.abc import Iterator
from pathlib import Path

from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass
from logtool.repair.bad_sectors import SectorTolerantFile

IMAGE, MAP = ".image", ".map"
SECTOR = 512
"""Bytes that a later run reads from the disk at once."""
_DONE, _COARSE, _FAILED = "+", "/", "-"
"""Status of a range: read; failed, to be tried in smaller parts; failed as a sector."""
_NUMBER = "(?:0x[0-9A-Fa-f]+|[0-9]+)"
_LINE = re.compile(rf"({_NUMBER})[ \t]+({_NUMBER})[ \t]+([?*/+-])")
_BLOCK = 1024 * 1024
Ranges = tuple[tuple[int, int], ...]
"""Position and length of each range, in order."""


@dataclass(frozen=True, slots=True)
class Image:
    """Bytes of a log that an earlier run has read."""

    path: Path
    missing: Ranges


class Refined(SectorTolerantFile):
    """A source that reads from the disk only what an earlier image lacks, sector by sector."""

    coarse = False

    def __init__(self, log: LogFile, earlier: LogFile, missing: Ranges) -> None:
        super().__init__(log)
        self._earlier, self._missing = earlier, missing
        self._got: dict[int, bytes] = {}
        """Content of sectors that were read from the disk, by position; zeros if that failed."""

    def map_range(self, position: int, size: int) -> None:
        """Return None: the bytes come from two files."""

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the number of bytes that there were."""
        count = self._earlier.read_into(buffer, position)
        for start, length in self._missing:
            low, high = max(start, position), min(start + length, position + count)
            for at in range(low - low % SECTOR, high, SECTOR) if low < high else ():
                sector = self._sector(at)
                first, last = max(at, low), min(at + len(sector), high)
                buffer[first - position : last - position] = sector[first - at : last - at]
        return count

    def _sector(self, at: int) -> bytes:
        if at not in self._got:
            data = memoryview(mmap.mmap(-1, SECTOR))[: max(min(SECTOR, self.size - at), 0)]
            try:
                _read(self._log, data, at)
            except UnreadableError:
                data[:] = bytes(len(data))
                self.bad[at] = len(data)
            self._got[at] = bytes(data)
        return self._got[at]


def _read(log: LogFile, sector: memoryview, at: int) -> None:
    """Read a sector past the page cache, which reads whole pages and fails for all of one.

    Without support for that, the sector is read through the page cache.
    """
    if len(sector) == SECTOR:
        fd = log.fileno()
        flags = fcntl.fcntl(fd, fcntl.F_GETFL)
        try:
            fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_DIRECT)
            log.read_into(sector, at)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        except UnreadableError as error:
            if getattr(error.__cause__, "errno", None) != errno.EINVAL:
                raise
        else:
            return
        finally:
            fcntl.fcntl(fd, fcntl.F_SETFL, flags)
    log.read_into(sector, at)


def find(home: Path, log: Path, size: int) -> Image | None:
    """Return the image of a log that an earlier run left in `home`; None without one.

    UnreadableError if its size differs from `size`, or its map is not valid.
    """
    image, ranges = home / f"{log.name}{IMAGE}", home / f"{log.name}{MAP}"
    if not image.is_file() or not ranges.is_file():
        return None
    there = image.stat().st_size
    if there != size:
        raise UnreadableError(image, f"has {there:,} bytes, but {log} has {size:,}")
    return Image(image, parse(ranges, files.read_small(ranges), size))


def parse(path: Path, data: bytes, size: int) -> Ranges:
    """Return the ranges of a file of `size` bytes that were not read, by its map."""
    lines = [line for line in data.decode("ascii", "replace").splitlines() if line.strip()]
    rows = [line for line in lines if not line.startswith("#")][1:]
    missing, end = [], 0
    for row in rows:
        match = _LINE.fullmatch(row.strip())
        if match is None:
            raise UnreadableError(path, f"expected position, size and status, found {row!r}")
        position, length = int(match[1], 0), int(match[2], 0)
        if position != end:
            raise UnreadableError(path, f"expected position {end:#x}, found {row!r}")
        end += length
        if match[3] != _DONE:
            missing.append((position, length))
    if end != size:
        raise UnreadableError(path, f"ends at byte {end:,}, but the log has {size:,}")
    return tuple(missing)


def encode(bad: dict[int, int], size: int, *, coarse: bool) -> bytes:
    """Return the map of a file with `bad` bytes by position; `coarse`: sectors were not tried."""
    status = _COARSE if coarse else _FAILED
    rows, end = [], 0
    for position, length in sorted(bad.items()):
        if position > end:
            rows.append((end, position - end, _DONE))
        if rows and rows[-1][2] == status and rows[-1][0] + rows[-1][1] == position:
            rows[-1] = (rows[-1][0], rows[-1][1] + length, status)
        else:
            rows.append((position, length, status))
        end = position + length
    if end < size:
        rows.append((end, size - end, _DONE))
    head = "# Mapfile. Created by logtool salvage\n# current_pos  current_status  current_pass\n"
    head += (
        f"{0:#010x}     {'?' if coarse else '+'}               1\n#      pos        size  status\n"
    )
    return (head + "".join(f"{at:#010x}  {n:#010x}  {s}\n" for at, n, s in rows)).encode()


def blocks(source: SectorTolerantFile) -> Iterator[bytes]:
    """Yield all bytes of a source, zeros for those that it does not have."""
    position = 0
    while position < source.size:
        data = memoryview(bytearray(min(_BLOCK, source.size - position)))
        count = source.read_into(data, position)
        if not count:
            return
        yield bytes(data[:count])
        position += count
