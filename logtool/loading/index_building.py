"""The offset index and the time index of a segment, built batch by batch.

There is one offset entry for each stretch of more than ``index.interval.bytes``, and with it a time
entry with the largest time stamp so far (``LogSegment.recover``, Kafka 3.9 and 4.3).
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from logtool.formats import _kernels, offset_index, time_index
from logtool.formats.record_batch import BatchTable, Column
from logtool.loading.kafka_reading import StartFailsError

INDEX_INTERVAL = offset_index.DEFAULT_INTERVAL
MAX_INDEX_SIZE = offset_index.DEFAULT_MAX_SIZE


class InvalidOffsetError(Exception):
    """An index entry would go backwards: a broker then empties an unflushed segment."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position
        """Position of the batch for which the entry was due, in bytes."""


Fault = tuple[tuple[int, int], StartFailsError | InvalidOffsetError]
"""An error that ends a recovery, with its turn: number of the entry, step in making the entry."""

_MIN = -(2**63)


class IndexBuilder:
    """The offset index and the time index of a segment, built batch by batch in columns."""

    def __init__(self, base_offset: int, interval: int, max_size: int = MAX_INDEX_SIZE) -> None:
        self._base = base_offset
        self._interval = interval
        self._most_offsets = max_size // offset_index.ENTRY_SIZE
        self._most_times = max_size // time_index.ENTRY_SIZE - 1
        self._last_indexed = 0
        self._offsets: list[Column] = []
        self._times: list[Column] = []
        self._last_entry: int | None = None
        self._last_time = (-1, base_offset)
        self._max = (-1, -1)
        self._count = self._time_count = 0
        self._returned = (0, 0)

    def resume(self, offsets: bytes, times: bytes) -> int:
        """Continue behind entries that stay, whose last ones are for one batch.

        Returns the byte where that batch begins, -1 without entries. The caller feeds the batches
        behind it. The last of `times` has to be the largest timestamp up to that batch.
        """
        kept = np.frombuffer(offsets, offset_index.ENTRY)
        stamps = np.frombuffer(times, time_index.ENTRY)
        if not len(kept) or not len(stamps):
            return -1
        self._offsets, self._times = [kept], [stamps]
        self._count, self._time_count = len(kept), len(stamps)
        self._last_entry = self._base + int(kept["relative_offset"][-1])
        self._last_indexed = int(kept["position"][-1])
        last = self._base + int(stamps["relative_offset"][-1])
        self._max = self._last_time = int(stamps["timestamp"][-1]), last
        return self._last_indexed

    def add(self, table: BatchTable, *, rising: bool = False) -> None:
        """Take the next batches, one at least; InvalidOffsetError for an entry that goes backwards.

        With `rising` no time stamp among them is smaller than one before it.
        """
        rows = self._due(table)
        stamps = table.max_timestamp if rising else np.maximum.accumulate(table.max_timestamp)
        # The first batch with the largest time stamp up to each entry, and up to the end.
        owners = np.searchsorted(stamps, stamps[np.append(rows, -1)])
        times, named = stamps[owners], table.last_offset[owners]
        earlier = times <= self._max[0]
        times[earlier], named[earlier] = self._max
        if len(rows):
            offsets = table.last_offset[rows]
            positions = table.position[rows]
            # The first fault ends the recovery; later ones do not matter.
            faults = [
                *self._offset_faults(offsets, positions),
                *self._time_faults(times[:-1], named[:-1], positions),
            ]
            if faults:
                raise min(faults, key=lambda fault: fault[0])[1]
            self._add_offsets(offsets, positions)
            self._add_times(times[:-1], named[:-1])
        self._max = int(times[-1]), int(named[-1])

    def _due(self, table: BatchTable) -> Column:
        """Return the rows that get an entry."""
        rows = np.empty(len(table), np.int64)
        positions = np.ascontiguousarray(table.position)
        rows = rows[: _kernels.due_rows(positions, self._last_indexed, self._interval, rows)]
        if len(rows):
            self._last_indexed = int(positions[rows[-1]])
        return rows

    def _offset_faults(self, offsets: Column, positions: Column) -> Iterator[Fault]:
        """Yield the faults in the offset entries that end a recovery, by entry."""
        if self._count + len(offsets) > self._most_offsets:
            text = f"the offset index has room for {self._most_offsets} entries"
            yield (self._most_offsets - self._count, 0), StartFailsError(text)
        last = _MIN if self._last_entry is None else self._last_entry
        before = np.concatenate(([last], offsets[:-1]))
        for entry in np.flatnonzero(offsets <= before)[:1].tolist():
            text = f"offset {int(offsets[entry])} follows {int(before[entry])}"
            yield (entry, 1), InvalidOffsetError(int(positions[entry]), text)

    def _time_faults(self, stamps: Column, offsets: Column, positions: Column) -> Iterator[Fault]:
        """Yield the faults in the time entries that end a recovery, by entry of the offset index.

        A broker checks for room even if there is no time entry to write.
        """
        falls = offsets[0] < self._last_time[1] or (offsets[1:] < offsets[:-1]).any()
        if not falls and self._time_count + len(stamps) < self._most_times:
            return  # as nearly always
        rises = self._rises(stamps)
        count = self._time_count + np.cumsum(rises) - rises
        for entry in np.flatnonzero(count >= self._most_times)[:1].tolist():
            text = f"the time index has room for {self._most_times} entries"
            yield (entry, 2), StartFailsError(text)
        entered = np.concatenate(([self._last_time[1]], np.where(rises, offsets, _MIN)))
        latest = np.maximum.accumulate(entered)[:-1]
        for entry in np.flatnonzero(rises & (offsets < latest) & (count > 0))[:1].tolist():
            text = (
                f"the largest timestamp {int(stamps[entry])} is at offset "
                f"{int(offsets[entry])}, before {int(latest[entry])} of the last time "
                "entry"
            )
            yield (entry, 3), InvalidOffsetError(int(positions[entry]), text)

    def _rises(self, stamps: Column) -> npt.NDArray[np.bool_]:
        """Return which of the time stamps, each the largest until then, get an entry."""
        last = self._last_time[0]
        return stamps > np.concatenate(([last], np.maximum(stamps[:-1], last)))

    def _add_offsets(self, offsets: Column, positions: Column) -> None:
        self._last_entry = int(offsets[-1])
        self._count += len(offsets)
        entries = np.empty(len(offsets), offset_index.ENTRY)
        entries["relative_offset"] = offsets - self._base
        entries["position"] = positions
        self._offsets.append(entries)

    def _add_times(self, stamps: Column, offsets: Column) -> None:
        rises = self._rises(stamps)
        if rises.any():
            self._write_times(stamps[rises], offsets[rises])

    def _write_times(self, stamps: Column, offsets: Column) -> None:
        entries = np.empty(len(stamps), time_index.ENTRY)
        entries["timestamp"] = stamps
        entries["relative_offset"] = offsets - self._base
        self._times.append(entries)
        self._time_count += len(stamps)
        self._last_time = int(stamps[-1]), int(offsets[-1])

    def finish(self, position: int) -> tuple[bytes, bytes]:
        """Return both files; the closing time entry may use the slot that is reserved for it."""
        if self._max[0] > self._last_time[0]:
            if self._time_count and self._max[1] < self._last_time[1]:
                raise InvalidOffsetError(position, "the closing time entry would decrease")
            self._write_times(np.array([self._max[0]]), np.array([self._max[1]]))
        return self.written()

    def added(self) -> tuple[bytes, bytes]:
        """Return the entries that were added to both files since the last call."""
        offsets, times = self._returned
        self._returned = len(self._offsets), len(self._times)
        return (
            b"".join(part.tobytes() for part in self._offsets[offsets:]),
            b"".join(part.tobytes() for part in self._times[times:]),
        )

    def written(self) -> tuple[bytes, bytes]:
        """Return the contents of both files so far."""
        return (
            b"".join(part.tobytes() for part in self._offsets),
            b"".join(part.tobytes() for part in self._times),
        )
