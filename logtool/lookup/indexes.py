"""The position from which a broker reads a segment for an offset or a time, by its indexes.

Kafka uses the offset index and the time index, Redpanda the base index. For an offset Redpanda
takes the last entry at or before it. For a time it takes the entry before the first one that is
late enough, as not every batch has an entry. It reads a segment without a readable index from its
start, as a broker does at its start to make the index. Source:
``storage/segment_index.cc``, ``storage/index_state.cc`` (Redpanda 1c6cff34ea, 2024-12-20).
"""

from collections.abc import Iterator

import numpy as np

from logtool.disk import files
from logtool.formats import offset_index, time_index
from logtool.formats.names import FileKind
from logtool.formats.record_batch import NO_TIMESTAMP
from logtool.formats.redpanda import base_index
from logtool.formats.redpanda.base_index import BaseIndex
from logtool.formats.time_index import TimeIndex
from logtool.loading.kafka_reading import IndexedLog, StartFailsError
from logtool.loading.shadow import ShadowFile
from logtool.log.chunk import Chunk
from logtool.log.dir import Segment
from logtool.log.file import File
from logtool.metadata.releases import NEWEST


def reader_of(segment: Segment) -> IndexedLog:
    """Return the log with its offset index; a missing index counts as empty, as at a broker."""
    file = segment.indexes.get(FileKind.OFFSET_INDEX)
    log = ShadowFile(segment.log, segment.log.size)
    # The index of an active segment is preallocated: its unused bytes are no entries.
    used = _used(file) if file else None
    return IndexedLog(
        base_offset=segment.base_offset, log=log, index=used, by_base=NEWEST >= (4, 1)
    )


def _used(file: File) -> ShadowFile:
    data, size = file.read_index()
    index = offset_index.parse(data, size)
    return ShadowFile(file, size - index.padding - len(index.trailing), data)


def time_index_of(segment: Segment) -> TimeIndex:
    """Return the time index of a segment; an empty one if it is missing."""
    file = segment.indexes.get(FileKind.TIME_INDEX)
    return time_index.parse(*file.read_index() if file else (b"", 0))


def largest_timestamp(segment: Segment, reader: IndexedLog, index: TimeIndex) -> int:
    """Return the largest timestamp of a segment as a broker has it, in ms.

    For a closed segment it is the last entry of the index. For the active segment a running broker
    knows it from its appends; here the log after the last entry is read.
    """
    largest = int(index.timestamps[-1]) if len(index) else NO_TIMESTAMP
    if segment.is_active:
        start = reader.lookup(int(index.offsets(segment.base_offset)[-1])) if len(index) else 0
        for chunk in reader.batches(start, segment.log.size):
            largest = max(largest, int(chunk.table.max_timestamp.max()))
    return largest if largest >= 0 else segment.log.mtime_ns // 1_000_000


def base_index_position(segment: Segment, offset: int) -> int:
    """Return the byte position from which Redpanda reads for an offset."""
    index = _base_index(segment)
    if index is None:
        return 0
    known = base_index.offsets(
        index, segment_base=segment.base_offset, next_base=segment.next_base_offset
    )
    at = int(np.searchsorted(np.array(known[: len(index)], np.int64), offset, "right")) - 1
    return int(index.entries.position[at]) if at >= 0 else 0


def base_index_position_of_time(segment: Segment, stamp: int) -> int:
    """Return the byte position from which Redpanda reads for a time in ms."""
    index = _base_index(segment)
    if index is None or not len(index):
        return 0
    times = np.array(base_index.timestamps(index)[: len(index)], np.int64)
    late = np.flatnonzero(times >= stamp)
    at = max(int(late[0]) - 1, 0) if len(late) else len(index) - 1
    return int(index.entries.position[at])


def base_index_timestamp(segment: Segment) -> int | None:
    """Return the largest timestamp in the base index of a Redpanda segment, or None."""
    index = _base_index(segment)
    return None if index is None else index.max_timestamp


def batches_from(segment: Segment, position: int) -> Iterator[Chunk]:
    """Yield the batches from a byte on; StartFailsError if no batch begins there, or at damage."""
    for chunk in segment.batches(start=position):
        if chunk.damage:
            raise StartFailsError(f"{chunk.damage.message} at byte {chunk.damage.position}")
        yield chunk


def _base_index(segment: Segment) -> BaseIndex | None:
    file = segment.indexes.get(FileKind.REDPANDA_BASE_INDEX)
    if file is None:
        return None
    index = base_index.parse(files.read_small(file.path))
    return index if isinstance(index, BaseIndex) and index.checksum_holds else None
