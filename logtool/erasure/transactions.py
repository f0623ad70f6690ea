"""The end of the transaction that a record is in: the next marker of its producer in the log.

Only the headers of batches are read, from the log with the record on, until the marker is found.
"""

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from logtool.disk.files import LogFile
from logtool.dump.files import unloaded_logs
from logtool.errors import UnreadableError
from logtool.formats import control_record
from logtool.formats.names import FileName
from logtool.formats.record_batch import Column
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.batches import read_batches
from logtool.log.kafka import KAFKA
from logtool.running.workers import Pace

COMMITTED, ABORTED, OPEN = 0, 1, 2
"""Ends of transactions; a record without a transaction counts as committed."""
_ENDS = {control_record.COMMIT: COMMITTED, control_record.ABORT: ABORTED}


@dataclass(frozen=True, slots=True)
class _Log:
    """A log in a partition dir."""

    path: Path
    base_offset: int


class TransactionEnds:
    """The ends of transactions in the logs of partition dirs."""

    def __init__(self, pace: Pace | None = None) -> None:
        """Read at `pace`."""
        self._pace = pace or Pace()
        self._reading: _Reading | None = None

    def of(self, path: Path, name: FileName, offset: int, producer_id: int) -> int:
        """Return the end of the transaction of a producer with a record at an offset of a log.

        It is OPEN if no marker follows. UnreadableError; OutOfTimeError.
        """
        known = self._reading
        if known is None or known.first != path:
            # Logs between two records of the key may be large, so that a reading is not continued.
            known = self._reading = _Reading(path, name.offset or 0, self._pace)
        return known.end(offset, producer_id)

    def of_each(self, path: Path, name: FileName, offset: Column, producer_id: Column) -> Column:
        """Return the ends for records of a log; a producer id of -1 is for no transaction."""
        ends = np.full(len(offset), COMMITTED)
        for row in np.flatnonzero(producer_id >= 0).tolist():
            ends[row] = self.of(path, name, int(offset[row]), int(producer_id[row]))
        return ends


class _Reading:
    """The markers from the begin of a log on, as far as they were asked for."""

    def __init__(self, first: Path, base_offset: int, pace: Pace) -> None:
        self.first = first
        self._base_offset, self._pace = base_offset, pace
        self._markers: dict[int, list[tuple[int, int]]] = {}
        """Offset and end of each marker, by producer."""
        self._more = self._read()
        self._error: UnreadableError | None = None

    def end(self, offset: int, producer_id: int) -> int:
        """Return the end of a transaction with a record at an offset."""
        while True:
            markers = self._markers.get(producer_id, ())
            at = bisect_right(markers, (offset, OPEN))
            if at < len(markers):
                return markers[at][1]
            if self._error is not None:
                raise self._error
            try:
                if next(self._more, None) is None:
                    return OPEN
            except UnreadableError as error:
                self._error = error

    def _read(self) -> Iterator[int]:
        """Add the markers chunk by chunk; yields the number of each chunk."""
        for log in self._logs():
            with LogFile(log.path) as file:
                form = KAFKA.form(log.path)
                for chunk in read_batches(
                    file, base_offset=log.base_offset, form=form, payload=False
                ):
                    table = chunk.table
                    self._pace.spend(int(table.size.sum()))
                    for row in np.flatnonzero(np.isin(table.control_type, list(_ENDS))).tolist():
                        marker = int(table.base_offset[row]), _ENDS[int(table.control_type[row])]
                        self._markers.setdefault(int(table.producer_id[row]), []).append(marker)
                    yield len(table)

    def _logs(self) -> Iterator[_Log]:
        """Yield the log, and those behind it: of two with the same base offset the live one."""
        yield _Log(self.first, self._base_offset)
        try:
            listed = opening.open_partition(self.first.parent, KAFKA)
        except UnreadableError:
            return  # The log stands alone.
        behind = {file.name.offset or 0: file.path for file in unloaded_logs(listed)}
        behind |= {segment.base_offset: segment.log.path for segment in listed.segments}
        for base_offset, path in sorted(behind.items()):
            if base_offset > self._base_offset:
                yield _Log(path, base_offset)
