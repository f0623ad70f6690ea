"""The data of each stretch that gaps are made from: its edges, and the gaps inside.

    edges   first and last offset, the damage before and behind, and the traces that compaction
            left; a stretch without batches has edges, too
    inner   the gaps between the batches of one stretch

A stretch is a segment or a piece of one. `logtool.spark.questions` finds the gaps between
stretches, and applies the log start, which is not known here. Nothing is decoded but wrappers of
magic 0 and 1, whose headers do not have their first offset, and these only if the chunks have their
bytes.
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from logtool.formats import compression
from logtool.formats.record_batch import MAGIC, BatchTable, Column
from logtool.log.arrow_rows import PartitionIdentity
from logtool.log.chunk import Chunk
from logtool.log.records import counts_and_bases
from logtool.schemas import arrow

_PLACE: Final = [
    arrow.schema("batches").field(name).remove_metadata()
    for name in (*PartitionIdentity._fields, "segment")
]
"""The columns that locate a stretch, as in `tables`."""

EDGES: Final = pa.schema(
    [
        *_PLACE,
        ("next_segment", pa.int64()),  # null: it is the active one
        ("start_position", pa.int64()),  # byte in the .log where the stretch begins
        ("read", pa.bool_()),  # false: it could not be read to its end, and nothing is known
        ("batches", pa.int64()),  # sound ones in their place
        ("first_offset", pa.int64()),  # null, as all up to the last epoch, without batches
        ("last_offset", pa.int64()),  # the largest
        ("first_position", pa.int64()),
        ("last_position", pa.int64()),
        ("first_timestamp_ms", pa.int64()),  # largest timestamp of the first batch
        ("last_timestamp_ms", pa.int64()),  # of the last batch
        ("first_leader_epoch", pa.int64()),
        ("last_leader_epoch", pa.int64()),
        ("damaged_head", pa.bool_()),  # damage lies right before the first batch
        ("damaged_tail", pa.bool_()),  # or behind the last one
        ("damages", pa.int64()),  # ranges of damage, and batches with foreign offsets
        ("horizons", pa.int64()),  # batches with a delete horizon
        ("last_horizon", pa.int64()),  # largest offset in them; null: there is no such offset
        ("with_holes", pa.int64()),  # batches with fewer records than offsets
        ("last_hole", pa.int64()),  # largest offset in them; null: there is no such offset
        ("inner_gaps", pa.int64()),  # between the batches of the stretch
    ]
)
INNER: Final = ("first_offset", "last_offset", "position", "damaged")
"""Columns of the gaps between batches: first and last offset, the byte at which the batch behind
begins, and 1 if damage lies right before that batch."""


class GapRows:
    """A `ChunkConsumer` that makes the edges and the inner gaps from the chunks of one stretch."""

    def __init__(
        self,
        place: PartitionIdentity,
        segment: int,
        next_segment: int | None,
        start_position: int = 0,
        limit: int = compression.DEFAULT_LIMIT,
    ) -> None:
        """Begin a stretch of the segment with this base offset.

        A wrapper may decompress to `limit` bytes at most.
        """
        self._place = {**place._asdict(), "segment": segment}
        self._next_segment = next_segment
        self._start_position = start_position
        self._limit = limit
        self._damaged = False
        """True if damage or a misplaced batch came since the last batch that counts."""
        self._damaged_head = False
        self._damages = self._batches = self._horizons = self._with_holes = 0
        self._last_horizon = self._last_hole = -1
        self._first: tuple[int, BatchTable] | None = None
        self._last: BatchTable | None = None
        self._highest = -1
        """Largest offset of the batches so far; meaningless before the first one."""
        self._gaps: list[Column] = []
        """First offset, last offset, position and damage of gaps."""
        self.edge: dict[str, Any] = {}
        """Values by the names of `EDGES`, without ``read``: the reader of the stretch adds it."""
        self.inner = np.empty((len(INNER), 0), np.int64)
        """The gaps; each row of the array is one name of `INNER`."""

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk; batches that are misplaced count as damage."""
        if chunk.damage:
            self._damages += 1
            self._damaged = True
            return
        table, misplaced = chunk.table, chunk.misplaced
        if misplaced is None and self._take_plain(chunk):
            return
        good = np.ones(len(table), np.bool_) if misplaced is None else ~misplaced
        self._damages += int((~good).sum())
        rows = np.flatnonzero(good)
        if not len(rows):
            self._damaged |= len(good) > 0
            return
        damaged = np.diff(rows, prepend=-1) > 1
        damaged[0] |= self._damaged
        self._damaged = bool(rows[-1] < len(good) - 1)
        counts, bases = self._counts_and_bases(chunk)
        self._take(table[rows], counts[rows], bases[rows], damaged)

    def finish(self) -> None:
        """Make the rows."""
        self.inner = np.concatenate([self.inner, *self._gaps], axis=1)
        self.edge = self._place | {
            "next_segment": self._next_segment,
            "start_position": self._start_position,
            "batches": self._batches,
            "damaged_head": self._damaged_head,
            "damaged_tail": self._damaged,
            "damages": self._damages,
            "horizons": self._horizons,
            "last_horizon": self._last_horizon if self._horizons else None,
            "with_holes": self._with_holes,
            "last_hole": self._last_hole if self._with_holes else None,
            "inner_gaps": self.inner.shape[1],
        }
        if self._first and self._last is not None:
            base, first = self._first
            self.edge |= {"first_offset": base, "last_offset": self._highest}
            self.edge |= _edge_columns("first", first) | _edge_columns("last", self._last)

    def _take_plain(self, chunk: Chunk) -> bool:
        """Take a chunk without gaps between its batches, by its edges; False for any other."""
        table, plain = chunk.table, chunk.plain
        if plain is None or not len(table):
            return not len(table)
        first, last = int(table.base_offset[0]), int(table.last_offset[-1])
        if last - first + 1 != plain.records or (self._batches and first <= self._highest):
            return False
        if self._batches and first > self._highest + 1:
            gap = self._highest + 1, first - 1, int(table.position[0]), int(self._damaged)
            self._gaps.append(np.array([gap], np.int64).T)
        self._begin(table, first, damaged=self._damaged)
        self._damaged = False
        self._end(table, last)
        return True

    def _counts_and_bases(self, chunk: Chunk) -> tuple[Column, Column]:
        counts, bases = counts_and_bases(chunk, limit=self._limit)
        if not len(chunk.data):
            # Where a wrapper begins is not known without its bytes: no gap is made up before it.
            table = chunk.table
            unknown = (table.magic < MAGIC) & (table.codec > 0)
            start = self._highest if self._batches else int(bases[0]) - 1
            before = np.maximum.accumulate(np.concatenate(([start], table.last_offset)))[:-1]
            bases = np.where(unknown & (bases > before), before + 1, bases)
            counts = np.where(unknown, table.last_offset - bases + 1, counts)
        return counts, bases

    def _take(self, table: BatchTable, counts: Column, bases: Column, damaged: Column) -> None:
        """Add sound batches in the order of the file; `damaged`: with damage right before."""
        start = self._highest if self._batches else int(bases[0]) - 1
        highest = np.maximum.accumulate(np.concatenate(([start], table.last_offset)))
        before = highest[:-1]
        at = np.flatnonzero(bases > before + 1)
        gaps = [before[at] + 1, bases[at] - 1, table.position[at], damaged[at]]
        self._gaps.append(np.stack(gaps).astype(np.int64))
        room = np.maximum(table.last_offset - np.maximum(bases, before + 1) + 1, 0)
        holes, horizons = counts < room, table.has_delete_horizon
        self._with_holes += int(holes.sum())
        self._horizons += int(horizons.sum())
        self._last_hole = int(table.last_offset[holes].max(initial=self._last_hole))
        self._last_horizon = int(table.last_offset[horizons].max(initial=self._last_horizon))
        self._begin(table, int(bases[0]), damaged=bool(damaged[0]))
        self._end(table, int(highest[-1]))

    def _begin(self, table: BatchTable, first: int, *, damaged: bool) -> None:
        if self._first is None:
            self._first, self._damaged_head = (first, table[:1]), damaged

    def _end(self, table: BatchTable, highest: int) -> None:
        self._batches += len(table)
        self._last, self._highest = table[-1:], highest


def _edge_columns(edge: str, batch: BatchTable) -> dict[str, int]:
    return {
        f"{edge}_position": int(batch.position[0]),
        f"{edge}_timestamp_ms": int(batch.max_timestamp[0]),
        f"{edge}_leader_epoch": int(batch.leader_epoch[0]),
    }
