"""Where a broker of Redpanda begins to read for an offset or a time: by its base indexes.

For an offset it is the last entry at or before it. For a time it is the entry before the first one
that is late enough, for not every batch has an entry. A segment without an index that can be read
is read from its start, as the start of a broker does to make one. Source:
``storage/segment_index.cc``, ``storage/index_state.cc`` (Redpanda 1c6cff34ea, 2024-12-20).
"""

from collections.abc import Iterator

import numpy as np

from logtool.disk import files
from logtool.formats.names import FileKind
from logtool.formats.redpanda import base_index
from logtool.formats.redpanda.base_index import BaseIndex
from logtool.loading.kafka_reading import StartFailsError
from logtool.log.chunk import Chunk
from logtool.log.dir import Segment


def for_offset(segment: Segment, offset: int) -> int:
    """Return the byte from which on a broker reads for an offset."""
    index = _index(segment)
    if index is None:
        return 0
    known = base_index.offsets(
        index, segment_base=segment.base_offset, next_base=segment.next_base_offset
    )
    at = int(np.searchsorted(np.array(known[: len(index)], np.int64), offset, "right")) - 1
    return int(index.entries.position[at]) if at >= 0 else 0


def for_time(segment: Segment, stamp: int) -> int:
    """Return the byte from which on a broker reads for a time in ms."""
    index = _index(segment)
    if index is None or not len(index):
        return 0
    times = np.array(base_index.timestamps(index)[: len(index)], np.int64)
    late = np.flatnonzero(times >= stamp)
    at = max(int(late[0]) - 1, 0) if len(late) else len(index) - 1
    return int(index.entries.position[at])


def largest_timestamp(segment: Segment) -> int | None:
    """Return the largest time that the index of a segment tells; None where there is none."""
    index = _index(segment)
    return None if index is None else index.max_timestamp


def batches(segment: Segment, position: int) -> Iterator[Chunk]:
    """Yield the batches from a byte on; StartFailsError where none begins there, or at damage."""
    for chunk in segment.batches(start=position):
        if chunk.damage:
            raise StartFailsError(f"{chunk.damage.message} at byte {chunk.damage.position}")
        yield chunk


def _index(segment: Segment) -> BaseIndex | None:
    file = segment.indexes.get(FileKind.REDPANDA_BASE_INDEX)
    if file is None:
        return None
    index = base_index.parse(files.read_small(file.path))
    return index if isinstance(index, BaseIndex) and index.checksum_holds else None
