"""The engine of a scan: the rows of the driver, made from the results of units.

Executors write the rows of batches and records. The driver writes the rows of segments and
findings, from the result that comes back of each unit.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from logtool.checks.report import SegmentReport, SegmentTask
from logtool.checks.schedule import Reports, Unit
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Segment
from logtool.running.workers import OnBytes
from logtool.schemas import arrow
from logtool.spark.engine import SparkEngine, SparkRunner, TaskWork
from logtool.spark.identity import place_of_dir
from logtool.spark.scan.incremental import KeptReports, KeptSegment, Tail, key_of, rows_of
from logtool.spark.scan.manifest import TableFile
from logtool.spark.scan.storage import ParquetWriter
from logtool.spark.scan.unit_rows import UnitResult
from logtool.spark.segment_totals import SegmentTotals

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_ROWS_AT_ONCE = 4096


class Buffer:
    """Rows of the driver on their way into a table."""

    def __init__(
        self, writer: ParquetWriter, table: str, on_row: Callable[[dict[str, Any]], None]
    ) -> None:
        self.writer = writer
        self._on_row = on_row
        self._schema = arrow.schema(table)
        self._rows: list[dict[str, Any]] = []

    def add(self, row: dict[str, Any]) -> None:
        """Take a row."""
        self._on_row(row)
        self._rows.append(row)
        if len(self._rows) >= _ROWS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write the rows that are waiting."""
        rows, self._rows = self._rows, []
        self.writer.write(pa.RecordBatch.from_pylist(rows, self._schema))


class ScanEngine(SparkEngine):
    """The engine of a scan: it writes the totals of segments, and keeps reports for a later run.

    The pass takes it as its `KeptReports`.
    """

    def __init__(
        self,
        spark: "SparkSession",
        work: TaskWork,
        segments: Buffer,
        reports: ParquetWriter,
        earlier: KeptReports | None,
    ) -> None:
        super().__init__(spark, work)
        self._segments, self._reports, self._earlier = segments, reports, earlier
        self._fresh: dict[Path, tuple[SegmentTask, SegmentReport]] = {}
        self._runners: list[_ScanRunner] = []
        if earlier:
            earlier.on_known = self._carry

    def known(self, tasks: Sequence[SegmentTask]) -> Sequence[SegmentReport | None]:
        """Return the reports of segments that have not changed since the earlier run."""
        return self._earlier.known(tasks) if self._earlier else [None] * len(tasks)

    def remember(self, task: SegmentTask, report: SegmentReport) -> None:
        """Take the report of a segment that was read in this run."""
        self._fresh[task.segment.log.path] = task, report

    def _carry(self, task: SegmentTask, totals: dict[str, Any]) -> None:
        self._segments.add(_segment_row(task.segment, SegmentTotals(**totals)))

    @contextmanager
    def runner(self, on_bytes: OnBytes) -> Iterator[SparkRunner]:
        """Yield the runner of the units."""
        runner = _ScanRunner(
            context=self._context,
            cores=self.cores,
            work=self._work,
            on_bytes=on_bytes,
            write=self._write,
        )
        self._runners.append(runner)
        try:
            yield runner
        finally:
            runner.stop()

    @property
    def parts(self) -> list[TableFile]:
        """Return the files that belong to the run."""
        return [part for runner in self._runners for part in runner.parts]

    def flush(self) -> None:
        """Write the rows of the last window."""
        for runner in self._runners:
            runner.flush()

    def _write(self, known: Mapping[Path, "_SegmentParts"]) -> None:
        """Make rows of the segments of a window."""
        found = []
        for path, one in known.items():
            totals = one.totals()
            self._segments.add(_segment_row(one.segment, totals))
            if path in self._fresh:
                task, report = self._fresh.pop(path)
                found.append(
                    KeptSegment(
                        key=key_of(task),
                        task=task,
                        tail=one.tail(),
                        files=one.files,
                        totals=asdict(totals),
                        report=report,
                    )
                )
        for at in range(0, len(found), _ROWS_AT_ONCE):
            self._reports.write(rows_of(found[at : at + _ROWS_AT_ONCE]))


@dataclass(slots=True)
class _SegmentParts:
    """The totals and files of a segment, collected from the results of its units."""

    segment: Segment
    pieces: dict[int, tuple[SegmentTotals, Tail | None]] = field(default_factory=dict)
    """By the byte at which a piece begins."""
    parts: list[TableFile] = field(default_factory=list)
    """Files that have rows of this segment only."""
    files: list[str] = field(default_factory=list)
    """Names of all files that may have rows of the segment."""

    def totals(self) -> SegmentTotals:
        """Return the sum of the totals of all pieces."""
        first, *others = (self.pieces[start][0] for start in sorted(self.pieces))
        for other in others:
            first.add(other)
        return first

    def tail(self) -> Tail | None:
        """Return the last sound batch of the segment; None without any."""
        return next(
            (self.pieces[at][1] for at in sorted(self.pieces, reverse=True) if self.pieces[at][1]),
            None,
        )


class _ScanRunner(SparkRunner):
    """The runner of a scan: it keeps the parts of segments until their reports are complete."""

    def __init__(
        self,
        context: "SparkContext",
        cores: int,
        work: TaskWork,
        on_bytes: OnBytes,
        write: Callable[[Mapping[Path, _SegmentParts]], None],
    ) -> None:
        super().__init__(context, cores, work, on_bytes)
        self.parts: list[TableFile] = []
        self._write = write
        self._known: dict[Path, _SegmentParts] = {}
        """Segments of the current window, by the path of the log."""

    def run(self, work: Sequence[Unit], order: Callable[[Unit], Any]) -> Iterator[Reports]:
        """Yield the reports of each unit; the window before is complete by now, and is written."""
        self.flush()
        yield from super().run(work, order)

    def again(self, piece: Unit) -> Reports:
        """Read a whole segment again, whose pieces do not count."""
        for task in piece:
            self._known.pop(task.segment.log.path, None)
        return super().again(piece)

    def take_task(self, result: Any) -> None:
        """Take the files that whole segments of a task share."""
        self.parts += result

    def take(self, unit: Unit, result: Any) -> Reports:
        """Keep totals, tails and files of a unit, and return its reports."""
        found: UnitResult = result
        for task, totals, tail in zip(unit, found.totals, found.tails, strict=True):
            segment = task.segment
            known = self._known.setdefault(segment.log.path, _SegmentParts(segment))
            known.pieces[task.piece.start if task.piece else 0] = totals, tail
            known.parts.extend(found.parts)
            known.files.extend(found.files)
        return found.reports

    def flush(self) -> None:
        """Write the segments of the window, and add their files."""
        self._write(self._known)
        self.parts += [part for one in self._known.values() for part in one.parts]
        self._known = {}


def _segment_row(segment: Segment, totals: SegmentTotals) -> dict[str, Any]:
    def size(kind: FileKind) -> int | None:
        file = segment.indexes.get(kind)
        return file.size if file else None

    return arrow.with_timestamps(
        {
            **place_of_dir(segment.log.path.parent)._asdict(),
            "segment": segment.base_offset,
            "next_segment": segment.next_base_offset,
            "log_bytes": segment.log.size,
            "offset_index_bytes": size(FileKind.OFFSET_INDEX),
            "time_index_bytes": size(FileKind.TIME_INDEX),
            "transaction_index_bytes": size(FileKind.TRANSACTION_INDEX),
            "modified_ms": segment.log.mtime_ns // 1_000_000,
            **asdict(totals),
        }
    )
