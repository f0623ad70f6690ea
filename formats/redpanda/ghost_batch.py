"""Ghost batches: what stands for a gap while a follower is filled from a compacted log.

A ghost is a batch of type 7 without a body: header of 61 bytes, no codec, no producer,
``last_offset_delta`` that of the gap and ``record_count`` one more, although there is no record.
It is never written to a segment: it moves the follower's next offset, and its term is that of the
batch behind the gap. A gap behind the last batch has no ghost. Source: RFC 20200713 of Redpanda,
``storage/log_reader.cc`` (Redpanda 1c6cff34ea, 2024-12-20).
"""

from collections.abc import Iterable, Iterator

from logtool.formats.redpanda import record_batch
from logtool.formats.redpanda.record_batch import BatchType, RedpandaBatch

LARGEST_DELTA = 2**31 - 1
"""Largest delta of a ghost batch: Redpanda splits longer gaps. In a batch with this delta the
record count wraps to -2147483648."""
LARGEST_SOUND_DELTA = 2**31 - 2
"""Largest delta with which the record count still fits."""


def gaps(batches: Iterable[tuple[int, int]], start: int) -> Iterator[tuple[int, int]]:
    """Yield (first offset, last offset) of each gap before one of `batches`.

    These are (base offset, last offset) in the order of the log, and `start` is where it begins.
    Where batches overlap there is no gap.
    """
    expected = start
    for base, last in batches:
        if base > expected:
            yield expected, base - 1
        expected = max(expected, last + 1)


def build(
    first: int, last: int, *, timestamp: int = 0, largest_delta: int = LARGEST_SOUND_DELTA
) -> Iterator[RedpandaBatch]:
    """Yield the ghosts that fill the offsets `first` through `last`.

    `timestamp` is in milliseconds; a broker takes the clock's.
    """
    while first <= last:
        delta = min(last - first, largest_delta)
        yield record_batch.build(
            b"",
            base_offset=first,
            type=BatchType.GHOST_BATCH,
            last_offset_delta=delta,
            record_count=record_batch.signed(delta + 1, 32),
            base_timestamp=timestamp,
            max_timestamp=timestamp,
        )
        first += delta + 1
