"""More producer snapshots than a broker takes, so that less of a log has to be played back.

A broker takes one where a segment begins. Between these a snapshot may stand wherever a batch ends:
each entry of an offset index names such a place, so that they are known before the log is read. A
broker that starts deletes all but the newest of them, that only where it stands behind the base of
the last segment (``ProducerStateManager.removeStraySnapshots``, Kafka 3.9 and 4.3).
"""

from collections.abc import Iterator

import numpy as np

from logtool.disk import files
from logtool.formats import offset_index
from logtool.formats.names import FileKind
from logtool.log.dir import Partition, Segment


def offsets(partition: Partition, every: int) -> dict[int, int]:
    """Return the bases of all segments and offsets about `every` bytes of log apart in them.

    Each comes with the base of its segment.
    """
    found: dict[int, int] = {}
    for segment in partition.segments:
        base = segment.base_offset
        found |= dict.fromkeys((base, *_inside(segment, every)), base)
    return found


def _inside(segment: Segment, every: int) -> Iterator[int]:
    """Yield the offsets behind the first index entry of each stretch of a segment."""
    file = segment.indexes.get(FileKind.OFFSET_INDEX)
    index = offset_index.parse(files.read_small(file.path) if file else b"")
    ends = index.offsets(segment.base_offset) + 1
    positions = index.positions.astype(np.int64)
    last = 0
    while len(rows := np.flatnonzero(positions >= last + every)):
        last = int(positions[rows[0]])
        if segment.next_base_offset is None or ends[rows[0]] < segment.next_base_offset:
            yield int(ends[rows[0]])
