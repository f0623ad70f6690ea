"""A stretch of a file as memory, which is read without being copied."""

import errno
import mmap
import os
from contextlib import suppress
from typing import ClassVar
from weakref import WeakSet

from logtool.formats import _mapped


class MappedRange:
    """A stretch of a file, mapped: read without being copied, for kernels alone.

    What the file has lost, or what its disk cannot read, turns into zeros. So whoever has read from
    `data` asks `whole` afterwards, and where that says no, reads the file itself.
    """

    living: ClassVar[WeakSet["MappedRange"]] = WeakSet()
    """Those that were not closed, of all threads."""

    def __init__(self, fd: int, position: int, size: int) -> None:
        """Map ``size`` bytes from `position` on; OSError where that cannot be done."""
        self._fd = fd
        first = position // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        self.position, self.end = position, position + size
        self._map = mmap.mmap(fd, self.end - first, mmap.MAP_SHARED, mmap.PROT_READ, offset=first)
        self._all = memoryview(self._map)
        self.data = self._all[position - first :]
        self._watched = _mapped.watch(self._all)
        MappedRange.living.add(self)
        if self._watched < 0:
            self.close()
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    def whole(self) -> bool:
        """Return whether all that `data` showed so far were bytes of the file."""
        # Behind its end a file has zeros up to the end of the page, for which there is no signal.
        return not _mapped.is_struck(self._watched) and os.fstat(self._fd).st_size >= self.end

    def close(self) -> None:
        """Give the stretch up; nobody may read a view of `data` any more.

        Where an error or an interrupt is on its way, its frames still hold views of it. The
        mapping goes with them then, and the error is not replaced by another.
        """
        MappedRange.living.discard(self)
        # An interrupt may have it closed once more, when the number may be another's.
        number, self._watched = self._watched, -1
        if number >= 0:
            _mapped.unwatch(number)
        with suppress(BufferError):
            self.data.release()
            self._all.release()
            self._map.close()
