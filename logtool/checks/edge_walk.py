"""A pass over plain batches that keeps no row for most of them, and joins indexes on the way.

For batches that are plain and follow each other without a gap, `BatchRules`, `TimestampRules` and
the rules of producers need only the totals of all batches and the batches at edges. The joins with
the indexes need one batch per entry, which the kernel looks up while it has the header at hand. So
the columns are not written and read again, which with batches of 200 bytes costs as much as their
CRCs. All other batches are left to the other walk. A test compares the reports of both walks; they
differ where a stretch of bad batches crosses the edge of a chunk: that gives one finding for each
chunk, and the two walks have chunks with different edges.
"""

from collections.abc import Sequence

import numpy as np

from logtool.checks import timestamps
from logtool.checks.batches import BatchRules
from logtool.checks.report import Level, SegmentTask
from logtool.formats import _kernels
from logtool.formats.offset_index import MAX_RELATIVE_OFFSET
from logtool.formats.record_batch import Column
from logtool.log.chunk import PlainTotals
from logtool.log.index_join import ENTRY_ROWS, OffsetIndexJoin, TimeIndexJoin

_NO_ENTRIES = np.empty((ENTRY_ROWS, 0), np.int64)
_LARGEST = 2**63 - 1
_OFFSET_ENTRY, _TIME_ENTRY, _LAST, _HIGHEST, _EPOCH = range(7, 12)
"""Positions in the state of `_kernels.walk_plain`: the next entries, and the values before them."""
_BOUNDS, _UNTIL = slice(12, 15), 15


class EdgeWalk:
    """A walk over the plain batches of one log; a `logtool.log.chunk.PlainWalk`."""

    def __init__(
        self,
        base_offset: int,
        rules: BatchRules,
        ordinary: tuple[int, int] | None,
        *,
        offsets: OffsetIndexJoin | None = None,
        times: TimeIndexJoin | None = None,
        cuts: Sequence[int] = (),
    ) -> None:
        """Keep the rules and the joins, which the caller feeds every chunk before the next one.

        `ordinary` is the result of `timestamps.ordinary` for the log; a chunk begins at each of
        `cuts`, which are offsets.
        """
        self._rules, self._offsets, self._times = rules, offsets, times
        self._base_offset = base_offset
        self._cuts = sorted(cuts)
        self._state = np.zeros(_kernels.PLAIN_STATE, np.int64)
        self._before = self._state.copy()
        """The state before the last walk."""
        bounds = ordinary or (-2, _LARGEST)  # without known bounds, any timestamp is allowed
        self._state[_BOUNDS] = min(base_offset + MAX_RELATIVE_OFFSET, _LARGEST - 1), *bounds

    def walk(
        self, data: memoryview, position: int, rows: Column, first: int
    ) -> tuple[int, int, int]:
        """Add the batches at edges to `rows`; see `logtool.log.chunk.PlainWalk`."""
        if not first:
            self._begin(position)
        self._before[:] = self._state
        return _kernels.walk_plain(
            data, 0, len(data), position, rows, first, self._state, *self._entries
        )

    def forget(self) -> None:
        """Undo the last walk."""
        self._state[:] = self._before
        if self._offsets:
            self._offsets.forget(int(self._state[_OFFSET_ENTRY]))
        if self._times:
            self._times.forget(int(self._state[_TIME_ENTRY]))

    def facts(self) -> PlainTotals:
        """Return the totals of the batches of the chunk."""
        return PlainTotals(*self._state[:_OFFSET_ENTRY].tolist())

    @property
    def _entries(self) -> tuple[Column, Column]:
        offsets = self._offsets.columns if self._offsets else _NO_ENTRIES
        return offsets, self._times.columns if self._times else _NO_ENTRIES

    def _begin(self, position: int) -> None:
        """Set the state to that before a chunk at `position`, from the rules and joins."""
        rules, offsets, times = self._rules, self._offsets, self._times
        last = self._base_offset - 1 if rules.last_offset is None else rules.last_offset
        state = self._state
        state[_OFFSET_ENTRY] = offsets.first_at(position) if offsets else 0
        state[_TIME_ENTRY] = times.first_behind(last) if times else 0
        state[_LAST] = last
        state[_HIGHEST] = times.max_timestamp if times else -1
        state[_EPOCH] = rules.leader_epoch
        state[_UNTIL] = next((cut for cut in self._cuts if cut > last), _LARGEST)


def plain_pass(
    task: SegmentTask,
    rules: BatchRules,
    offsets: OffsetIndexJoin | None,
    times: TimeIndexJoin | None,
) -> EdgeWalk | None:
    """Return a pass over the plain batches of a log; None where all rows are needed."""
    sorted_ = all(join.is_sorted for join in (offsets, times) if join)
    if task.level is not Level.BATCHES or task.payload or not sorted_:
        return None
    return EdgeWalk(
        task.segment.base_offset,
        rules,
        timestamps.ordinary(task.segment.log.mtime_ns, task.ahead_ms),
        offsets=offsets,
        times=times,
        cuts=task.cuts,
    )
