"""The indexes of a segment, compared with its log while that is recovered.

Entries that equal those of the rebuilt indexes are right, and on a leader all entries do. So
nothing is looked up in the log as long as both are equal; from the first chunk on where they
differ, the remaining entries are joined with the log.
"""

from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np

from logtool.findings import Finding
from logtool.formats import offset_index, time_index
from logtool.formats.offset_index import OffsetIndex
from logtool.formats.record_batch import NO_TIMESTAMP, Column
from logtool.formats.time_index import TimeIndex
from logtool.log.chunk import Chunk
from logtool.log.index_join import OffsetIndexJoin, TimeIndexJoin

_OFFSET, _TIME = offset_index.ENTRY_SIZE, time_index.ENTRY_SIZE


class IndexComparison:
    """Both indexes of a segment: the caller feeds all chunks, then asks for the right entries."""

    def __init__(self, base_offset: int, offsets: bytes, times: bytes) -> None:
        self._base = base_offset
        self._offset_file, self._time_file = offsets, times
        self._alike = (0, 0)
        """Number of leading entries of each index that equal those of the rebuilt index."""
        self._read: tuple[int, int] | None = None
        """The highest offset and the largest timestamp of the chunks compared so far."""
        self._joins: tuple[OffsetIndexJoin, TimeIndexJoin] | None = None

    @cached_property
    def offsets(self) -> OffsetIndex:
        """Return the offset index; in the last segment it is mostly padding."""
        return offset_index.parse(self._offset_file)

    @cached_property
    def times(self) -> TimeIndex:
        """Return the time index."""
        return time_index.parse(self._time_file)

    @property
    def offset_entries(self) -> bytes:
        """Return the bytes of the offset index without its padding."""
        return self._offset_file[: len(self.offsets) * _OFFSET]

    @property
    def time_entries(self) -> bytes:
        """Return the bytes of the time index without its padding."""
        return self._time_file[: len(self.times) * _TIME]

    def add(self, chunk: Chunk, added: Callable[[], tuple[bytes, bytes]]) -> None:
        """Take a chunk of sound batches; `added` returns the entries that were rebuilt for it."""
        if self._joins is None:
            if self._goes_alike(chunk, *added()):
                return
            self._joins = self._begin_joins()
        for join in self._joins:
            join.feed(chunk)

    def _goes_alike(self, chunk: Chunk, offsets: bytes, times: bytes) -> bool:
        """Return whether no entry up to the end of a chunk differs from the rebuilt ones."""
        highest, newest = self._read or (self._base - 1, NO_TIMESTAMP)
        table, plain = chunk.table, chunk.plain
        if plain is None or int(table.base_offset[0]) <= highest:
            return False
        by_offset, by_time = self._alike[0] * _OFFSET, self._alike[1] * _TIME
        found = self._offset_file[by_offset : by_offset + len(offsets)]
        found_times = self._time_file[by_time : by_time + len(times)]
        if not (offsets.startswith(found) and times.startswith(found_times)):
            return False
        highest = int(table.last_offset[-1])
        count, time_count = by_offset + len(found), by_time + len(found_times)
        alike = count // _OFFSET, time_count // _TIME
        # Where there are entries that the rebuilt ones lack, the next names a batch of the chunk.
        if count < len(self._offset_file):
            positions = self.offsets.positions[alike[0] : alike[0] + 1]
            if (positions < chunk.end_position).any():
                return False
        if time_count < len(self._time_file):
            relative = self.times.relative_offsets[alike[1] : alike[1] + 1]
            if (relative <= highest - self._base).any():
                return False
        self._alike = alike
        self._read = highest, max(newest, plain.max_timestamp)
        return True

    def _begin_joins(self) -> tuple[OffsetIndexJoin, TimeIndexJoin]:
        """Return joins of the entries behind the equal ones with the chunks that follow."""
        offsets = self.offset_entries[self._alike[0] * _OFFSET :]
        times = self.time_entries[self._alike[1] * _TIME :]
        joins = (
            OffsetIndexJoin(offset_index.parse(offsets), self._base),
            TimeIndexJoin(time_index.parse(times), self._base),
        )
        if self._read:
            joins[0].begin_behind(self._read[0])
            joins[1].begin_behind(*self._read)
        return joins

    def right_offsets(self) -> int:
        """Return how many offset entries stand before the first that is wrong or breaks a rule."""
        return prefix(offset_index.check(self.offsets), self._wrong(0), _OFFSET)

    def right_times(self) -> int:
        """Return how many time entries stand before the first that is wrong or breaks a rule."""
        return prefix(time_index.check(self.times), self._wrong(1), _TIME)

    def _wrong(self, which: int) -> Column:
        self._joins = self._joins or self._begin_joins()
        join = self._joins[which]
        join.finish()
        return np.concatenate((np.zeros(self._alike[which], np.bool_), join.verdicts != 0))


def prefix(findings: Iterable[Finding], wrong: Column, entry_size: int) -> int:
    """Return how many entries stand before the first one that breaks a rule or is wrong."""
    broken = [(finding.position or 0) // entry_size for finding in findings]
    return int(min([len(wrong), *broken, *np.flatnonzero(wrong)[:1].tolist()]))
