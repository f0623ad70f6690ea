"""The position in a log at which reading may begin, by indexes that are proven by the log.

An index entry counts only if a sound batch of the segment stands at its position, with the offset
or the time of the entry; else the log is read from its start.
"""

from contextlib import suppress
from math import inf

import numpy as np

from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.formats import offset_index, time_index
from logtool.formats.names import FileKind
from logtool.formats.offset_index import MAX_RELATIVE_OFFSET
from logtool.formats.record_batch import LOG_OVERHEAD, BatchTable, Column
from logtool.log.batches import read_batches
from logtool.log.chunk import LARGEST_BUFFERED_BATCH
from logtool.spark.source.read_tasks import ReadTask

_FIRST_BYTES = 4 * 1024 * 1024
"""Bytes of a log that are searched for the batch of a time index entry."""
_WORTH_AN_INDEX = 256 * 1024
"""Least bytes of a log for which indexes are used; a smaller one is read from its start."""


def start_of(piece: ReadTask, log: LogFile, low: float, since: float) -> int:
    """Return a position before which no batch reaches both offset `low` and time `since`.

    0 where the indexes do not help, or do not agree with the log.
    """
    found = 0
    if log.size < _WORTH_AN_INDEX or (low <= piece.segment and since == -inf):
        return found
    with suppress(UnreadableError):
        index = offset_index.parse(files.read_small(piece.path(FileKind.OFFSET_INDEX)))
        offsets, positions = index.offsets(piece.segment), index.positions
        if not (_rising(offsets) and _rising(positions)):
            return found
        if low > piece.segment:
            position = _floor(offsets, positions, low)
            batch = batch_at(log, piece.segment, position)
            if batch is not None and batch.base_offset[0] <= low:
                found = position
        if since > -inf:
            found = max(found, _start_by_time(piece, log, offsets, positions, since))
    return found


def batch_at(log: LogFile, segment: int, position: int) -> BatchTable | None:
    """Return the sound batch of the segment that stands at a position; None without one.

    A scan that begins there finds the same batches behind it as a scan that began before it, even
    if damage follows.
    """
    head = log.read(position, LOG_OVERHEAD)
    size = int.from_bytes(head[8:], "big", signed=True) + LOG_OVERHEAD
    if len(head) < LOG_OVERHEAD or not LOG_OVERHEAD < size <= LARGEST_BUFFERED_BATCH:
        return None
    batches = read_batches(
        log, base_offset=segment, start=position, stop=position + size, payload=False
    )
    table = next((chunk.table for chunk in batches if not chunk.damage), None)
    if table is None or int(table.position[0]) != position:
        return None
    first, last = int(table.base_offset[0]), int(table.last_offset[0])
    return table if segment <= first <= last <= segment + MAX_RELATIVE_OFFSET else None


def _start_by_time(
    piece: ReadTask, log: LogFile, offsets: Column, positions: Column, since: float
) -> int:
    index = time_index.parse(files.read_small(piece.path(FileKind.TIME_INDEX)))
    entry = int(np.searchsorted(index.timestamps, since, "left")) - 1
    if entry < 0 or not _rising(index.timestamps):
        return 0
    time = int(index.timestamps[entry])
    offset = int(index.offsets(piece.segment)[entry])
    first = _floor(offsets, positions, offset)
    near = read_batches(
        log, base_offset=piece.segment, start=first, stop=first + _FIRST_BYTES, payload=False
    )
    chunk = next(near, None)
    if chunk is None or chunk.damage or int(chunk.table.position[0]) != first:
        return 0
    table = chunk.table
    row = int(np.searchsorted(table.last_offset, offset))
    if row == len(table) or int(table.base_offset[row]) > offset:
        return 0
    if int(table.max_timestamp[row]) != time:
        return 0
    position = int(table.position[row])
    return position if batch_at(log, piece.segment, position) is not None else 0


def _floor(offsets: Column, positions: Column, offset: float) -> int:
    """Return the position of the last entry that is not behind an offset, or the log's start."""
    entry = int(np.searchsorted(offsets, offset, "right")) - 1
    return int(positions[entry]) if entry >= 0 else 0


def _rising(column: Column) -> bool:
    return bool((column[1:] > column[:-1]).all())
