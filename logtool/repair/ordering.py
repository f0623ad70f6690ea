"""Choice of batches if the offsets or the leader epochs of sound ones contradict each other.

No CRC covers the base offset and the leader epoch of a batch. If a bit flips there, a sound batch
is out of order among batches that rise, so the largest set of batches that rise together stays.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from logtool.formats.record_batch import Column

Mask = npt.NDArray[np.bool_]


def rises(first: Column, last: Column, epoch: Column) -> bool:
    """Return whether all batches are in order.

    The only valid negative epoch is -1, of a batch without one.
    """
    known = epoch[epoch >= 0]
    return bool(
        (epoch >= -1).all() and (first[1:] > last[:-1]).all() and (known[1:] >= known[:-1]).all()
    )


def longest(first: Column, last: Column, epoch: Column) -> Mask:
    """Return a mask of the most batches whose offsets rise, and of them the most by epoch."""
    kept = np.flatnonzero((last >= first) & (epoch >= -1))
    kept = kept[_longest(first[kept], last[kept], bisect_left)]
    known = epoch[kept] >= 0
    rising = kept[known][_longest(epoch[kept][known], epoch[kept][known], bisect_right)]
    mask = np.zeros(len(first), np.bool_)
    mask[kept[~known]] = True
    mask[rising] = True
    for row in np.flatnonzero(~mask).tolist():
        _exchange(mask, row, first, last, epoch)
    return mask


def _exchange(mask: Mask, row: int, first: Column, last: Column, epoch: Column) -> None:
    """Keep a batch instead of a neighbour that fits less well.

    If only two batches contradict each other, the right one is that whose offsets adjoin the batch
    before, or the batch behind.
    """
    for other in (row - 1, row + 1):
        if not 0 <= other < len(mask) or not mask[other]:
            continue
        before = np.flatnonzero(mask[: min(row, other)])[-1:]
        behind = np.flatnonzero(mask[max(row, other) + 1 :])[:1] + max(row, other) + 1
        low, high = (last[before] + 1).tolist(), first[behind].tolist()
        own = first[row] <= last[row] and epoch[row] == epoch[other]
        fits = all(first[row] >= at for at in low) and all(last[row] < at for at in high)
        if (
            own
            and fits
            and _joints(row, first, last, low, high) > _joints(other, first, last, low, high)
        ):
            mask[row], mask[other] = True, False
            return


def _joints(row: int, first: Column, last: Column, low: list[int], high: list[int]) -> int:
    """Return the number of neighbours that the offsets of a batch adjoin."""
    return (int(first[row]) in low) + (int(last[row]) + 1 in high)


def _longest(low: Column, high: Column, place: Callable[[list[int], int], int]) -> Column:
    """Return the rows of the longest chain of ranges, each behind the one before it.

    `place` returns the number of rising ends that lie before a range.
    """
    ends: list[int] = []
    """The least end of all chains with 1, 2, 3 and so on ranges."""
    at: list[int] = []
    before: list[int] = []
    for number, (first, last) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        rank = place(ends, first)
        before.append(at[rank - 1] if rank else -1)
        if rank == len(ends) or last < ends[rank]:
            ends[rank : rank + 1] = [last]
            at[rank : rank + 1] = [number]
    chosen = []
    number = at[-1] if at else -1
    while number >= 0:
        chosen.append(number)
        number = before[number]
    return np.array(chosen[::-1], np.int64)
