"""Digests of batches by ranges of offsets: where digests of two copies agree, so do the batches.

A range is `SPAN` offsets, and a batch belongs to the range of its base offset. The digest of a
range is the sum of the digests of its batches, so that it does not matter where segments and pieces
end, and the sums of stretches add up. The digest of a batch covers everything that
`questions.replicas` compares. Two different batches have the same digest once in 2**64.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from logtool.formats.record_batch import BatchTable, Column

SPAN_BITS: Final = 16
SPAN: Final = 1 << SPAN_BITS
_COLUMNS: Final = (
    "base_offset", "last_offset", "size", "crc", "magic", "attributes", "leader_epoch",
    "producer_id", "producer_epoch", "base_sequence",
)  # fmt: skip
_SHIFT, _MIX = np.uint64(32), np.uint64(0xD6E8FEB86659FD93)
_FACTORS: Final = tuple(
    np.uint64(int(_MIX) * (2 * number + 3) % 2**64) for number in range(len(_COLUMNS))
)
"""Odd, so that nothing of a column is lost."""


class Ranges(NamedTuple):
    """The sums over the batches of each range, by rows; a range may have more than one row."""

    number: Column
    """Base offset of its batches, divided by `SPAN`."""
    batches: Column
    digest: Column


class RangeRows:
    """The ranges of one stretch, added up from its batches in the order of the log."""

    def __init__(self) -> None:
        self._found: list[Ranges] = []

    def add(self, table: BatchTable) -> None:
        """Take sound batches that stand in their place."""
        if len(table):
            number = table.base_offset >> SPAN_BITS
            self._found.append(added_up(Ranges(number, np.ones_like(number), digests(table))))

    def finish(self) -> Ranges | None:
        """Return the ranges in the order of the log; None without any."""
        return added_up(joined(self._found)) if self._found else None


def digests(table: BatchTable) -> Column:
    """Return the digest of each batch, as int64."""
    found = np.zeros(len(table), np.uint64)
    for name, factor in zip(_COLUMNS, _FACTORS, strict=True):
        found += getattr(table, name).view(np.uint64) * factor
    for _ in range(2):  # sums of products alone would let neighbours cancel each other out
        found ^= found >> _SHIFT
        found *= _MIX
    found ^= found >> _SHIFT
    return found.view(np.int64)


def joined(parts: Sequence[Ranges]) -> Ranges:
    """Return the rows of all parts."""
    return Ranges(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def added_up(ranges: Ranges) -> Ranges:
    """Return the ranges with neighbouring rows of one range added up; sums wrap."""
    number = ranges.number
    starts = np.flatnonzero(np.concatenate(([True], number[1:] != number[:-1])))
    return Ranges(
        number[starts],
        np.add.reduceat(ranges.batches, starts),
        np.add.reduceat(ranges.digest, starts),
    )
