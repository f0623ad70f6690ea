"""A log on a failing disk: sectors that cannot be read are skipped and noted."""

from typing import TYPE_CHECKING

from logtool.disk.files import LogFile
from logtool.errors import UnreadableError

if TYPE_CHECKING:
    from logtool.disk.mapped import MappedRange

SECTOR = 4096
"""Bytes that are skipped at once; a disk fails in sectors of 512 or 4,096."""


class SectorTolerantFile:
    """A source for a scan that gives zeros for sectors that cannot be read.

    No batch over such a sector passes its CRC, unless the sector held zeros.
    """

    coarse = True
    """True if the skipped bytes may contain smaller sectors that can be read."""

    def __init__(self, log: LogFile) -> None:
        self._log = log
        self.size = log.size
        self.bad: dict[int, int] = {}
        """Bytes that cannot be read, by position."""

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the number of bytes that there were."""
        try:
            return self._log.read_into(buffer, position)
        except UnreadableError:
            return self._by_sectors(buffer, position)

    def map_range(self, position: int, size: int) -> "MappedRange | None":
        """Return a mapping; if a sector cannot be read, the scan goes on with `read_into`."""
        return self._log.map_range(position, size)

    def _by_sectors(self, buffer: memoryview, position: int) -> int:
        done = 0
        while done < len(buffer):
            at = position + done
            piece = buffer[done : done + SECTOR - at % SECTOR]
            try:
                count = self._log.read_into(piece, at)
            except UnreadableError:
                count = min(len(piece), max(self.size - at, 0))
                piece[:count] = bytes(count)
                self.bad[at] = max(self.bad.get(at, 0), count)
            done += count
            if count < len(piece):
                break
        return done

    def holds_bad(self, position: int, length: int) -> bool:
        """Return whether a byte of a range could not be read."""
        return any(at < position + length and position < at + size for at, size in self.bad.items())
