"""The gaps of one segment, between its batches and inside them, found in one pass."""

from typing import TYPE_CHECKING

import numpy as np

from logtool.formats.record_batch import BatchTable, Column
from logtool.gaps import table as gap_table
from logtool.gaps.table import GapPlace, GapTable

if TYPE_CHECKING:
    from logtool.gaps.coverage import EdgeBatch


class SegmentGaps:
    """Collector of the gaps of one segment."""

    def __init__(self, base_offset: int, *, exact: bool) -> None:
        """Start without gaps; with `exact`, `add_inside` gets the offsets of decoded batches."""
        self._base_offset = base_offset
        self._exact = exact
        self._tables: list[GapTable] = []

    def in_order(self) -> GapTable:
        """Return all gaps, ordered by first offset."""
        if not self._tables:
            return gap_table.empty()
        gaps = gap_table.concat(self._tables)
        return gaps[np.argsort(gaps.first_offset, kind="stable")]

    def add_between(
        self,
        table: BatchTable,
        bases: Column,
        before: Column,
        damaged: Column,
        edge: "EdgeBatch | None",
    ) -> None:
        """Add the gaps before batches; `edge` is the last batch before all of them.

        `bases` are their first offsets that count, `before` the highest offsets before them, and
        `damaged` is True for each batch with damage right before it.
        """
        at = np.flatnonzero(bases > before + 1)
        if not len(at):
            return

        def previous(column: Column, first: int) -> Column:
            return np.concatenate(([first], column[:-1]))[at]

        gaps = gap_table.make(
            len(at),
            first_offset=before[at] + 1,
            last_offset=bases[at] - 1,
            kind=GapPlace.BATCHES,
            before_segment=self._base_offset,
            after_segment=self._base_offset,
            position=table.position[at],
            epoch=table.leader_epoch[at],
            before_epoch=previous(table.leader_epoch, edge.epoch if edge else -1),
            before_ms=previous(table.max_timestamp, edge.timestamp if edge else -1),
            after_ms=table.max_timestamp[at],
            damaged=damaged[at],
        )
        self._tables.append(gaps)

    def add_inside(
        self, table: BatchTable, first: Column, holes: Column, offsets: dict[int, Column]
    ) -> None:
        """Add the holes of batches: one row for each batch, or for each range of a decoded batch.

        `first` are their first offsets that count, `holes` the numbers of offsets missing from
        there on, and `offsets` the present offsets, by row, of the batches that were decoded.
        """
        exact = self._exact
        plain = holes > 0
        if exact and offsets:
            rows = np.array(list(offsets))
            plain[rows] = False
            # Present offsets, with the offsets before and after each batch: holes lie between.
            edges = np.concatenate(
                [
                    part
                    for row, found in offsets.items()
                    for part in (
                        first[row : row + 1] - 1,
                        found,
                        table.last_offset[row : row + 1] + 1,
                    )
                ]
            )
            owner = np.repeat(rows, [len(found) + 2 for found in offsets.values()])
            at = np.flatnonzero((np.diff(edges) > 1) & (owner[1:] == owner[:-1]))
            self._add_holes(table, owner[at], edges[at] + 1, edges[at + 1] - 1)
        at = np.flatnonzero(plain)
        # A batch with records that could not be decoded, in a run that decodes, is damaged.
        damaged = (table.record_count[at] > 0) & exact
        self._add_holes(table, at, first[at], table.last_offset[at], holes[at], damaged)

    def _add_holes(
        self,
        table: BatchTable,
        rows: Column,
        first: Column,
        last: Column,
        missing: Column | None = None,
        damaged: Column | int = 0,
    ) -> None:
        if not len(rows):
            return
        gaps = gap_table.make(
            len(rows),
            first_offset=first,
            last_offset=last,
            kind=GapPlace.RECORDS,
            missing=last - first + 1 if missing is None else missing,
            before_segment=self._base_offset,
            after_segment=self._base_offset,
            position=table.position[rows],
            epoch=table.leader_epoch[rows],
            before_epoch=table.leader_epoch[rows],
            before_ms=table.max_timestamp[rows],
            after_ms=table.max_timestamp[rows],
            damaged=damaged,
        )
        self._tables.append(gaps)
