"""Batches of a log as NumPy columns, with the damaged batches that their size fields frame."""

from collections.abc import Callable, Iterable

import numpy as np

from logtool.formats import record_batch
from logtool.formats.record_batch import BatchTable, Column
from logtool.lazy_dataclass import dataclass
from logtool.log import damaged_bytes
from logtool.log.chunk import Chunk
from logtool.log.damaged_bytes import DamagedBytes, chunks_and_damage
from logtool.log.dir import Segment


@dataclass(frozen=True, slots=True)
class BatchColumns:
    """Batches as NumPy columns of one length, in the order of the log."""

    table: BatchTable
    """Positions, offsets, times, producers and more of the headers, int64; -1 for none."""
    segment: Column
    """Base offset of the segment, int64."""
    crc_valid: Column
    """bool; False for a damaged batch of Kafka that its size field still frames: other columns of
    that row may be wrong. Damage of other kinds has no row."""
    damage: tuple[DamagedBytes, ...]
    """All damage but that inside of sound batches."""

    def __len__(self) -> int:
        return len(self.table)


def of_segments(
    segments: Iterable[Segment], on_damage: Callable[[DamagedBytes], None]
) -> BatchColumns:
    """Return the headers of all batches, whose CRCs are compared.

    `on_damage` is called for damage, and may raise. UnreadableError.
    """
    tables, bases, valid = [record_batch.empty_table()], [], []
    damage: list[DamagedBytes] = []
    for segment in segments:
        with segment.log.open() as source:
            for item in chunks_and_damage(segment, source, payload=False):
                is_sound = isinstance(item, Chunk)
                if isinstance(item, Chunk):
                    table = item.table
                else:
                    on_damage(item)
                    damage.append(item)
                    table = damaged_bytes.framed(segment, source, item)
                tables.append(table)
                bases.append(np.full(len(table), segment.base_offset, np.int64))
                valid.append(np.full(len(table), is_sound))
    return BatchColumns(
        table=record_batch.concat(tables),
        segment=np.concatenate([*bases, np.empty(0, np.int64)]),
        crc_valid=np.concatenate([*valid, np.empty(0, np.bool_)]),
        damage=tuple(damage),
    )
