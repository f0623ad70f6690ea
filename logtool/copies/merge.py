"""Copies of a partition read next to each other, so that only some blocks of each are held."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from logtool.copies.batches import NOTHING, CopyBatches, joined


def stretches(
    copies: Sequence[Iterable[CopyBatches]],
) -> Iterator[tuple[list[CopyBatches], list[bool]]]:
    """Yield the batches of all copies range by range, and for each copy whether it is over.

    `copies` yield blocks of batches with rising offsets. A range has the batches of each copy up to
    an offset that lies inside no batch of any copy. A copy that is over has no batches after these.
    """
    blocks = [iter(copy) for copy in copies]
    current = [NOTHING for _ in blocks]
    over = [False for _ in blocks]

    def read_on(number: int) -> None:
        """Read at least as many batches as are held, so that rows are copied only a few times."""
        parts = [current[number]] if len(current[number]) else []
        wanted, count = len(current[number]), 0
        while not over[number] and (not count or count < wanted):
            block = next(blocks[number], None)
            if block is None:
                over[number] = True
            else:
                parts.append(block)
                count += len(block)
        current[number] = joined(parts)

    while True:
        for number, table in enumerate(current):
            if not len(table) and not over[number]:
                read_on(number)
        ends = [
            int(table.last_offset[-1]) + 1
            for table, done in zip(current, over, strict=True)
            if not done
        ]
        if not ends:
            yield current, over
            return
        end = _whole_up_to(current, min(ends))
        counts = [int(np.searchsorted(table.base_offset, end)) for table in current]
        if not any(counts):
            # A batch of one copy reaches beyond the held batches of another.
            for number, table in enumerate(current):
                if not over[number] and int(table.last_offset[-1]) + 1 == min(ends):
                    read_on(number)
            continue
        parts = [_parted(table, count) for table, count in zip(current, counts, strict=True)]
        current = [rest for _, rest in parts]
        yield [part for part, _ in parts], list(over)


def _parted(table: CopyBatches, count: int) -> tuple[CopyBatches, CopyBatches]:
    """Return the first batches and the rest, without copying them."""
    return (table, NOTHING) if count == len(table) else (table[:count], table[count:])


def _whole_up_to(tables: Sequence[CopyBatches], end: int) -> int:
    """Return the last offset up to `end` that lies inside no batch of any table."""
    moved = True
    while moved:
        moved = False
        for table in tables:
            row = int(np.searchsorted(table.base_offset, end)) - 1
            if row >= 0 and int(table.last_offset[row]) >= end:
                end, moved = int(table.base_offset[row]), True
    return end
