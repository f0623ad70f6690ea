"""Segments of two partitions with the same batches, of which one is in the wrong directory.

Two partitions never share a whole segment of a producer: base offset, size, producer id, epoch,
sequence and CRC of each batch would have to agree. Where they do, a file was put in the place of
another one. The sequences of the producers show which of the two is right: there they continue
those of the segments next to it.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from logtool.errors import UnreadableError
from logtool.formats.names import TopicPartition
from logtool.formats.record_batch import SEQUENCES, BatchTable, empty_table
from logtool.lazy_dataclass import dataclass
from logtool.loading.header_walk import header_table
from logtool.log.dir import Partition, Segment

_COMPARED = ("base_offset", "size", "crc", "producer_id", "producer_epoch", "base_sequence")


@dataclass(frozen=True, slots=True)
class PlacedSegment:
    """One segment of one copy of a partition."""

    key: TopicPartition
    partition: Partition
    index: int
    """Number of the segment in its partition."""

    @property
    def segment(self) -> Segment:
        """Return the segment."""
        return self.partition.segments[self.index]


@dataclass(frozen=True, slots=True)
class SegmentTwin:
    """A segment that holds the batches of another partition, and a segment where they belong."""

    wrong: PlacedSegment
    right: PlacedSegment
    batches: int
    last_offset: int


def places_of(key: TopicPartition, partition: Partition) -> Iterator[PlacedSegment]:
    """Yield the segments of a copy of a partition."""
    for index in range(len(partition.segments)):
        yield PlacedSegment(key, partition, index)


def twins(
    places: Sequence[PlacedSegment], key: TopicPartition | None = None
) -> Iterator[SegmentTwin]:
    """Yield the segments that hold the batches of another partition among them, in their order.

    With `key` only the segments of that partition are judged.
    """
    alike: dict[tuple[int, int], list[PlacedSegment]] = {}
    for place in places:
        if place.segment.log.size:
            alike.setdefault((place.segment.base_offset, place.segment.log.size), []).append(place)
    for place in places:
        if key not in (None, place.key):
            continue
        same_size = alike.get((place.segment.base_offset, place.segment.log.size), ())
        others = [one for one in same_size if one.key != place.key]
        if others and (found := _twin(place, others)):
            yield found


def _twin(place: PlacedSegment, others: Sequence[PlacedSegment]) -> SegmentTwin | None:
    try:
        own = header_table([place.segment])
        if not len(own) or _continues(place, own) is not False:
            return None
        for other in others:
            its = header_table([other.segment])
            if _same(own, its) and _continues(other, its):
                return SegmentTwin(place, other, len(own), int(own.last_offset[-1]))
    except UnreadableError:  # reported where the partition is read
        return None
    return None


def _same(a: BatchTable, b: BatchTable) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in _COMPARED)


def _continues(place: PlacedSegment, own: BatchTable) -> bool | None:
    """Return whether the producers of a segment go on in the segments next to it.

    False if the sequence of one breaks there, or if the segments next to it have none of them, but
    others. None if nothing shows it.
    """
    segments, at = place.partition.segments, place.index
    rows = _judged(own)
    if not len(rows):
        return None
    before = _judged(header_table([segments[at - 1]])) if at else empty_table()
    after = _judged(header_table([segments[at + 1]])) if at + 1 < len(segments) else empty_table()
    breaks = False
    for producer in np.unique(rows.producer_id).tolist():
        mine, earlier, later = (
            table[np.flatnonzero(table.producer_id == producer)] for table in (rows, before, after)
        )
        for first, second in ((earlier, mine), (mine, later)):
            if not len(first) or not len(second):
                continue
            leads = _leads(first, second)
            if leads:
                return True
            breaks |= leads is False
    return False if breaks or len(before) or len(after) else None


def _judged(table: BatchTable) -> BatchTable:
    rows = (table.producer_id >= 0) & (table.base_sequence >= 0) & ~table.is_control
    return table[np.flatnonzero(rows)]


def _leads(first: BatchTable, second: BatchTable) -> bool | None:
    """Return whether batches of one producer go on with the sequence of those before.

    None for a new epoch that begins at 0: it shows nothing, as each transaction may have its own.
    """
    if first.producer_epoch[-1] != second.producer_epoch[0]:
        return None if int(second.base_sequence[0]) == 0 else False
    return (int(first.last_sequence[-1]) + 1) % SEQUENCES == int(second.base_sequence[0])
