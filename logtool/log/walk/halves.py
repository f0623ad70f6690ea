"""A walk over the batches of a large log by two threads, each of which takes about a half.

An offset index says where the second half may begin, and is not trusted: what the second thread
finds counts only if sound batches fill the first half up to its byte. So what comes out is what one
thread finds.
"""

from typing import Any, TypeAlias

from logtool.beside import Beside
from logtool.formats import kernels
from logtool.formats.record_batch import Column

LEAST = 4 * 1024 * 1024
"""Bytes of a half that is worth another thread: with fewer two take longer than one."""

Walked: TypeAlias = tuple[int, int, int]
"""As `kernels.walk_batches` returns it."""


class Halves:
    """Walks over batches of Kafka's form with one thread more; `close` ends that thread.

    `positions` are bytes of the file where batches may begin, int64 in ascending order.
    """

    def __init__(self, positions: Column) -> None:
        self._positions = positions
        self._beside: Beside[Walked] = Beside()
        self._mean = 0.0
        """Bytes of the batches of the last walk; 0 before the first one."""

    def walk(
        self, data: memoryview, start: int, end: int, base: int, rows: Any, first: int
    ) -> Walked:
        """Do what `kernels.walk_batches` does; rows behind those found may be overwritten."""
        room = (rows.shape[1] - first) // 2
        middle = self._middle(base + start, base + end, room) - base
        walked = None
        if middle - start >= LEAST and end - middle >= LEAST:
            walked = self._both(data, start, middle, end, base, rows, first, room)
        found, stop, why = walked or kernels.walk_batches(data, start, end, base, rows, first)
        if found:
            self._mean = (stop - start) / found
        return found, stop, why

    def _middle(self, start: int, end: int, room: int) -> int:
        """Return where the second half may begin, so that the first has less than `room` rows."""
        wanted = (start + end) // 2
        if self._mean:
            wanted = min(wanted, start + int(self._mean * room * 7 / 8))
        at = int(self._positions.searchsorted(wanted, side="right")) - 1
        return int(self._positions[at]) if at >= 0 else start

    def _both(
        self, data: memoryview, start: int, middle: int, end: int, base: int, rows: Any,
        first: int, room: int,
    ) -> Walked | None:  # fmt: skip
        """Walk over both halves at once, the second with rows of its own behind the first `room`.

        None where sound batches do not fill the first half, or are more than that.
        """
        behind = first + room
        self._beside.begin(lambda: kernels.walk_batches(data, middle, end, base, rows, behind))
        try:
            found, stop, _ = kernels.walk_batches(data, start, middle, base, rows, first)
        finally:  # an interrupt, too, waits until nobody reads the bytes any more
            more, last, reason = self._beside.end()
        if stop != middle or found > room:
            if stop != middle:
                # They lead astray, or there is damage, and behind it perhaps more: what the other
                # thread reads would be read in vain again and again.
                self._positions = self._positions[:0]
            return None
        rows[:, first + found : first + found + more] = rows[:, behind : behind + more]
        return found + more, last, reason

    def close(self) -> None:
        """End the other thread."""
        self._beside.close()
