"""The work of an executor on one task of a scan: the checks of `verify`, and the rows of tables.

Whole segments share the files of their task. A piece has its own files, because these do not count
if its segment is read again as a whole.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from logtool.checks.report import SegmentReport, SegmentTask
from logtool.checks.schedule import Unit
from logtool.checks.segment import check_segment
from logtool.checks.segment_ranges import PieceReport, check_piece
from logtool.formats.record_batch import BatchTable, concat
from logtool.lazy_dataclass import dataclass
from logtool.log import arrow_columns
from logtool.log.arrow_rows import PartitionIdentity, batch_rows, record_rows
from logtool.log.chunk import LARGEST_BUFFERED_BATCH, Chunk
from logtool.schemas.arrow import Payload
from logtool.spark.identity import place_of_dir
from logtool.spark.questions.range_summary import (
    STRETCHES,
    RangeSummary,
    StretchRows,
    as_rows,
    with_wrappers,
)
from logtool.spark.scan.incremental import Tail
from logtool.spark.scan.manifest import TableFile
from logtool.spark.scan.storage import ParquetWriter, Staging
from logtool.spark.segment_totals import SegmentTotals

_ROWS_AT_ONCE, _CHUNKS_AT_ONCE = 16 * 1024, 16
"""Rows and chunks of batches that become Arrow columns together, which costs some 100 calls."""
STAGED = "_stretches"
"""The table of stretches, which only the questions need."""
_STRETCHES_AT_ONCE = 1024


@dataclass(slots=True)
class UnitResult:
    """The result of one unit, which is sent to the driver; it has no rows."""

    reports: list[SegmentReport | PieceReport]
    totals: list[SegmentTotals]
    parts: list[TableFile] = field(default_factory=list)
    """Files that the unit does not share with others."""
    tails: list[Tail | None] = field(default_factory=list)
    """The last sound batch of each segment or piece."""
    files: list[str] = field(default_factory=list)
    """Names of the files that have its rows, if it has rows."""


@dataclass(frozen=True, slots=True)
class ScanWork:
    """The work of one task; the object is sent to executors."""

    staging: Staging
    tables: frozenset[str]
    """Tables to write, of ``batches``, ``records`` and `STAGED`."""
    payload: Payload = Payload.NONE
    lists: frozenset[str] = frozenset()
    """Names in `range_summary.LISTS` of the lists that the questions need."""
    show_secrets: bool = False
    """True to leave the secrets of a metadata log in ``records``; False for stars instead."""

    def __call__(self, units: list[tuple[int, Unit]]) -> Iterator[tuple[int, Any]]:
        """Yield the numbered results, and at the end the files of all whole segments as -1."""
        results: list[tuple[int, UnitResult]] = []
        with ExitStack() as stack:
            shared = stack.enter_context(self._files())
            for number, unit in units:
                if any(task.piece for task in unit):
                    with self._files() as own:
                        result = self._look(unit, own)
                    result.parts = own.parts
                    result.files = own.names
                else:
                    result = self._look(unit, shared)
                    result.files = shared.names
                results.append((number, result))
        yield from results
        yield -1, shared.parts

    @contextmanager
    def _files(self) -> Iterator["_Files"]:
        with ExitStack() as stack:
            found = _Files(
                {
                    name: stack.enter_context(
                        self.staging.writer(name, STRETCHES if name == STAGED else None)
                    )
                    for name in sorted(self.tables)
                }
            )
            yield found
            found.flush()

    def _look(self, unit: Unit, files: "_Files") -> UnitResult:
        result = UnitResult([], [])
        for task in unit:
            task = replace(task, payload="records" in self.tables)
            rows = _UnitRows(task=task, files=files, work=self)
            if task.piece:
                piece = check_piece(task, lambda _: None, rows)
                result.reports.append(piece)
                rows.complete(piece.report, read=piece.ordinary)
            else:
                report = check_segment(task, lambda _: None, rows)
                result.reports.append(report)
                rows.complete(report, read=report.scanned)
            result.totals.append(rows.totals)
            result.tails.append(rows.tail)
        return result


def batch_rows_of_many(parts: Sequence[tuple[PartitionIdentity, int, BatchTable]]) -> Any:
    """Return the rows that `batch_rows` returns for several segments, in one `pyarrow.RecordBatch`.

    Each part has the place, the base offset of the segment and its batches.
    """
    place, segment, table = parts[0]
    if len(parts) == 1:
        return batch_rows(place, segment, table)
    rows = batch_rows(place, segment, concat([table for *_, table in parts]))
    counts = [len(table) for *_, table in parts]
    part = arrow_columns.numbers(np.repeat(np.arange(len(parts)), counts), np.int64)
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    for name in (*PartitionIdentity._fields, "segment"):
        values = [{**one._asdict(), "segment": base}[name] for one, base, _ in parts]
        columns[name] = arrow_columns.objects(values, columns[name].type).take(part)
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=rows.schema)


class _Files:
    """The files that segments share, or that one piece has."""

    def __init__(self, writers: dict[str, ParquetWriter]) -> None:
        self.writers = writers
        self._stretches: list[RangeSummary] = []
        self._batches: list[tuple[PartitionIdentity, int, BatchTable]] = []
        self._waiting = 0
        """Number of rows in `_batches`."""

    def add_batches(self, place: PartitionIdentity, segment: int, table: BatchTable) -> None:
        """Take batches of a segment; those of small segments become Arrow columns together."""
        self._batches.append((place, segment, table))
        self._waiting += len(table)
        if self._waiting >= _ROWS_AT_ONCE:
            self._write_batches()

    def _write_batches(self) -> None:
        if self._batches:
            self.writers["batches"].write(batch_rows_of_many(self._batches))
        self._batches, self._waiting = [], 0

    def add(self, stretch: RangeSummary) -> None:
        """Take the summary of a stretch."""
        self._stretches.append(stretch)
        if len(self._stretches) >= _STRETCHES_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write the batches and summaries that are waiting."""
        self._write_batches()
        if self._stretches:
            self.writers[STAGED].write(as_rows(self._stretches))
            self._stretches = []

    @property
    def names(self) -> list[str]:
        """Return the paths of the files, below the output."""
        return [writer.path for writer in self.writers.values()]

    @property
    def parts(self) -> list[TableFile]:
        """Return the files with rows, once they are closed."""
        return [part for writer in self.writers.values() for part in writer.parts]


class _UnitRows:
    """A `ChunkConsumer` that writes the rows of one segment or piece while it is read."""

    def __init__(self, task: SegmentTask, files: _Files, work: ScanWork) -> None:
        self.totals = SegmentTotals()
        self.tail: Tail | None = None
        self._task, self._files, self._work = task, files, work
        self._writers = files.writers
        self._place = place_of_dir(task.segment.log.path.parent)
        self._segment = task.segment.base_offset
        self._tables: list[BatchTable] = []
        self._waiting = 0
        """Number of rows in `_tables`."""
        self._stretch = None
        if STAGED in self._writers:
            start = task.piece.start if task.piece else 0
            behind = task.segment.next_base_offset
            self._stretch = StretchRows(
                asked=work.lists,
                place=self._place,
                segment=self._segment,
                next_segment=behind,
                start_position=start,
                limit=task.limit,
            )

    def feed(self, chunk: Chunk) -> None:
        """Take a chunk while its bytes are in memory."""
        self.totals.count(chunk, active=self._task.segment.is_active)
        if self._stretch:
            for some in with_wrappers(chunk, self._task.segment.log.open):
                self._stretch.feed(some)
        if not len(chunk.table):
            return
        position, magic, crc = (
            int(column[-1]) for column in (chunk.table.position, chunk.table.magic, chunk.table.crc)
        )
        self.tail = Tail(position, magic, crc)
        if "batches" in self._writers:
            self._tables.append(chunk.table)
            self._waiting += len(chunk.table)
            if self._waiting >= _ROWS_AT_ONCE or len(self._tables) >= _CHUNKS_AT_ONCE:
                self._write_batches()
        if writer := self._writers.get("records"):
            for rows in self._records(chunk):
                writer.write(rows)

    def _write_batches(self) -> None:
        self._files.add_batches(self._place, self._segment, concat(self._tables))
        self._tables, self._waiting = [], 0

    def _records(self, chunk: Chunk) -> Iterator[Any]:
        with ExitStack() as stack:
            log = None
            if int(chunk.table.size[-1]) > LARGEST_BUFFERED_BATCH:  # and alone in its chunk
                log = stack.enter_context(self._task.segment.log.open())
            yield from record_rows(
                self._place,
                self._segment,
                chunk,
                self._work.payload,
                limit=self._task.limit,
                file=log,
                show_secrets=self._work.show_secrets,
            )

    def finish(self) -> None:
        """Write the batches that are waiting, and add up the stretch."""
        if self._tables:
            self._write_batches()
        if self._stretch:
            self._stretch.finish()

    def complete(self, report: SegmentReport, *, read: bool) -> None:
        """Add the values of the report; `read` is False if it could not be read to its end."""
        self.totals.complete(report, read=read)
        if self._stretch:
            stretch, totals = self._stretch.stretch, self.totals
            batches = self._writers.get("batches")
            stretch.edge |= {
                "read": read,
                "sound_batches": totals.batches,
                "sound_first_offset": totals.first_offset,
                "sound_last_offset": totals.last_offset,
                "sound_last_leader_epoch": totals.last_leader_epoch,
                "file": batches.target if batches and totals.batches else None,
            }
            self._files.add(stretch)
