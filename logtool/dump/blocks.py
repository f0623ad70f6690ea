"""Stretches of ordinary batches with their records as columns, for writers that are fast.

`logtool.log.records` defines which batches are ordinary. Everything else becomes single objects
(`logtool.dump.log` and `records`), which alone define the fields: a block only gives their values
for many records at once.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from logtool.formats.record import RecordSpans
from logtool.formats.record_batch import BatchTable, Column
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import Chunk
from logtool.log.record_table import RecordTable
from logtool.log.records import pieces, read_together


@dataclass(frozen=True, slots=True)
class Origin:
    """The file that batches come from."""

    path: Path
    topic: str | None = None
    """Topic of its partition dir; None if it does not lie in one."""
    partition: int | None = None
    segment: int | None = None
    """Base offset of the segment; None for a file that is not a segment."""


@dataclass(frozen=True, slots=True)
class Block:
    """Ordinary batches, in file order with nothing between them."""

    origin: Origin
    batches: BatchTable
    records: RecordTable | None
    """None if records are not asked for."""
    commits: Column | None = None
    """The rows of `_offset_commits.decode_commits`, one for each record, if the records are printed
    decoded; all of them are commits or tombstones. None if they are printed as bytes."""

    def part(self, first: int, stop: int, rows: slice) -> "Block":
        """Return the batches from `first` up to `stop`, whose records are `rows`."""
        assert self.records
        batches = self.batches[first:stop]
        matrix = self.records.columns()[rows]
        *columns, offset, timestamp, sequence = matrix.T
        records = replace(
            self.records,
            batches=batches,
            counts=self.records.counts[first:stop],
            spans=RecordSpans(*columns),
            offset=offset,
            timestamp=timestamp,
            sequence=sequence,
            matrix=matrix,
        )
        return Block(self.origin, batches, records)


def cut(
    origin: Origin, chunk: Chunk, rows: Column, *, records: bool, limit: int
) -> Iterator[tuple[Column, Block | None]]:
    """Yield the `rows` of a chunk in order, piece by piece, as a block where all are ordinary.

    A batch that decompresses to more than `limit` bytes is not in a block.
    """
    for some, ordinary in pieces(chunk, rows, with_records=records):
        if ordinary and not records:
            yield some, Block(origin, chunk.table[some], None)
            continue
        table = read_together(chunk, some, limit=limit) if ordinary else None
        yield some, None if table is None else Block(origin, table.batches, table)
