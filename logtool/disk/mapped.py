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

    Bytes that the file has lost, or that its disk cannot read, turn into zeros. So a caller that
    has read from `data` calls `whole` afterwards, and if that returns False, reads the file itself.
    """

    living: ClassVar[WeakSet["MappedRange"]] = WeakSet()
    """All ranges that are not closed, in all threads."""

    def __init__(self, fd: int, position: int, size: int) -> None:
        """Map ``size`` bytes from `position` on; OSError if that is not possible."""
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

    def advise_random(self) -> None:
        """Have the disk read no pages but those that are looked at."""
        self._map.madvise(mmap.MADV_RANDOM)

    def whole(self) -> bool:
        """Return whether all that `data` showed so far were bytes of the file."""
        # Behind the end of a file, the rest of the page reads as zeros, without a signal.
        return not _mapped.is_struck(self._watched) and os.fstat(self._fd).st_size >= self.end

    def close(self) -> None:
        """Close the mapping; no view of `data` may be read any more.

        While an error or an interrupt is raised, its frames still hold views of the mapping. Then
        the mapping ends with the last view, and the error is not replaced by another.
        """
        MappedRange.living.discard(self)
        # An interrupt may close it a second time, when the number may belong to another.
        number, self._watched = self._watched, -1
        if number >= 0:
            _mapped.unwatch(number)
        with suppress(BufferError):
            self.data.release()
            self._all.release()
            self._map.close()
