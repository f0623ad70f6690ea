"""Log dirs to tables: one pass over the bytes, then the questions across segments and brokers.

The pass is `verify` on Spark: the same units, the same function, the same reports. Beside its
report a unit leaves rows, which executors write to the staging area as Parquet; the driver never
sees them. The driver writes what is one row for a segment or for a finding.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from logtool import data_dir, files
from logtool.data_dir import Inputs, PathKind, Selection
from logtool.errors import RefusedError, UnreadableError, UsageError
from logtool.findings import Finding
from logtool.formats import names
from logtool.formats.names import DirectoryKind, FileKind, PartitionDirectory
from logtool.partition import Segment
from logtool.pipeline import tables
from logtool.pipeline.answers import answer
from logtool.pipeline.engine import SparkEngine, SparkRunner, Work
from logtool.pipeline.homes import place_of, place_of_dir, text_of
from logtool.pipeline.storage import Part, Run, Writer, begin
from logtool.pipeline.tables import Payload
from logtool.pipeline.unit_rows import ScanWork, Totals, UnitResult
from logtool.schedule import Budget, Reports, Unit
from logtool.summary import Summary
from logtool.verify import Level, Progress, Verification
from logtool.workers import OnBytes

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

NEEDS = {
    "segments": frozenset({"segments"}),
    "batches": frozenset({"batches"}),
    "records": frozenset({"records"}),
    "gaps": frozenset({"_edges", "_inner"}),
    "producers": frozenset({"batches"}),
    "transactions": frozenset({"batches"}),
    "replicas": frozenset({"batches", "segments"}),
    "findings": frozenset({"findings"}),
}
"""What has to be staged for a table."""
_ROWS_AT_ONCE = 4096


@dataclass(slots=True)
class Scan:
    """One run of the pipeline; `run` does it all, then `summary` and `rows` tell of it."""

    spark: "SparkSession"
    paths: Sequence[Path]
    output: str
    run_id: str
    wanted: Sequence[str] = tables.DEFAULT
    payload: Payload = Payload.NONE
    selection: Selection = field(default_factory=Selection)
    on_progress: Callable[[Progress], None] = lambda _: None
    on_step: Callable[[str], None] = lambda _: None
    """Told what is done when no bytes are read any more."""
    on_wait: Callable[[str], None] = lambda _: None
    """Told again and again how far that is."""
    on_unreadable: Callable[[UnreadableError], None] = lambda _: None
    summary: Summary = field(default_factory=Summary)
    rows: dict[str, int] = field(default_factory=dict)
    """Of each table."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each table."""

    def run(self) -> None:
        """Write the tables; on any error nothing of the run is left, and what was there stays."""
        inputs = _inputs(self.paths, self.selection)
        run = begin(self.output, self.run_id, self.payload)
        try:
            staged = frozenset[str]().union(*(NEEDS[name] for name in self.wanted))
            self._pass(run, staged, inputs)
            if self.summary.has_no_partition:
                # Tables of nothing must not take the place of those of an earlier run.
                Inputs(self.paths, self.selection).require()
            answer(self.spark, run, self.wanted, inputs.with_facts, self.on_step, self.on_wait)
            self.on_step("making the run visible")
            self.on_wait("making the run visible")
            run.commit(self.wanted, self._about(inputs))
        except BaseException:
            run.abandon()
            raise
        self.rows = {name: run.rows(name) for name in self.wanted}
        self.sizes = {name: run.size(name) for name in self.wanted}

    def _pass(self, run: Run, staged: frozenset[str], inputs: "_Inputs") -> None:
        """Read every segment once."""
        in_executors = staged & {"batches", "records", "_edges", "_inner"}
        work = ScanWork(run.staging, frozenset(in_executors), self.payload)
        level = Level.RECORDS if "records" in staged else Level.BATCHES
        with ExitStack() as stack:
            segments, findings = (
                _Buffer(stack.enter_context(run.staging.writer(name)), name)
                for name in ("segments", "findings")
            )
            engine = _ScanEngine(self.spark, work, segments)
            job = Verification(
                inputs.paths, level=level, selection=self.selection, on_progress=self.on_progress,
                budget=Budget(engine=engine),
            )  # fmt: skip
            job.summary = self.summary
            for number, item in enumerate(job):
                if isinstance(item, UnreadableError):
                    self.on_unreadable(item)
                findings.add(_finding_row(item, number, inputs.log_dirs))
            engine.flush()
            segments.flush()
            findings.flush()
        run.add(engine.parts)
        for buffer in (segments, findings):
            if buffer.writer.table in staged:
                run.add(buffer.writer.parts)

    def _about(self, inputs: "_Inputs") -> dict[str, Any]:
        summary = self.summary
        return {
            "inputs": [text_of(path) for path in inputs.paths], "complete": summary.complete,
            "partitions": summary.partitions, "segments": summary.segments,
            "batches": summary.batches, "records": summary.records, "bytes": summary.bytes,
            "payload": str(self.payload),
        }  # fmt: skip


def check_output(output: str, inputs: Sequence[Path]) -> None:
    """Raise RefusedError for an output in a log dir: a broker stops at what it does not know."""
    path = files.path_of(output)
    if files.is_remote(path):
        return
    target = Path(files.real(path))
    given = {files.real(path) for path in inputs}
    for folder in (target, *target.parents):
        if str(folder) in given or _is_there(folder / FileKind.META_PROPERTIES):
            raise RefusedError(f"--output {output} lies in {folder}, a log dir or an input")


def _is_there(path: Path) -> bool:
    """Return whether something is at a path, as far as can be seen."""
    try:
        files.size_at(path)
    except UnreadableError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What is looked at. Paths are absolute: executors may have another current directory."""

    paths: list[Path]
    log_dirs: frozenset[Path]
    """Those given, and those that partition dirs lie in."""
    with_facts: list[Path]
    """Where `questions.facts` finds all partitions."""


def _inputs(paths: Sequence[Path], selection: Selection) -> _Inputs:
    """Return the inputs, nothing of them twice; UsageError for a path of another kind."""
    kinds: dict[Path, PathKind | None] = {}
    for path in paths:
        path = path.absolute()
        if path.name == "..":
            path = path.resolve()
        try:
            kinds[path] = kind = data_dir.classify(path)
        except UnreadableError:
            kinds[path] = None  # The pass says so.
            continue
        if kind is PathKind.FILE:
            raise UsageError(f"{path} is a file; expected a log dir or a partition dir")
    given = {path for path, kind in kinds.items() if kind is PathKind.LOG_DIR}
    places = {files.real(path) for path in given}
    log_dirs, odd = dict.fromkeys(given), []
    for path, what in list(kinds.items()):
        if what is not PathKind.PARTITION_DIR:
            continue
        directory = names.parse_directory(path.name)
        if not isinstance(directory, PartitionDirectory) or directory.kind is DirectoryKind.DELETE:
            odd.append(path)  # Of these a log dir tells no facts.
        if (
            isinstance(directory, PartitionDirectory)
            and files.real(path.parent) in places
            and selection.takes(directory)
        ):
            del kinds[path]  # It comes with its log dir.
        else:
            log_dirs[path.parent] = None
    return _Inputs(list(kinds), frozenset(log_dirs), [*log_dirs, *odd])


class _Buffer:
    """Rows of the driver on their way into a table."""

    def __init__(self, writer: Writer, table: str) -> None:
        self.writer = writer
        self._schema = tables.schema(table)
        self._rows: list[dict[str, Any]] = []

    def add(self, row: dict[str, Any]) -> None:
        """Take a row."""
        self._rows.append(row)
        if len(self._rows) >= _ROWS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Hand on what is there."""
        rows, self._rows = self._rows, []
        self.writer.write(pa.RecordBatch.from_pylist(rows, self._schema))


class _ScanEngine(SparkEngine):
    """The engine of a scan: keeps what units tell beside their reports."""

    def __init__(self, spark: "SparkSession", work: Work, segments: _Buffer) -> None:
        super().__init__(spark, work)
        self._segments = segments
        self._runners: list[_ScanRunner] = []

    @contextmanager
    def runner(self, on_bytes: OnBytes) -> Iterator[SparkRunner]:
        """Return what looks at units."""
        runner = _ScanRunner(self._context, self.cores, self._work, on_bytes, self._segments)
        self._runners.append(runner)
        try:
            yield runner
        finally:
            runner.stop()

    @property
    def parts(self) -> list[Part]:
        """Return the files that count."""
        return [part for runner in self._runners for part in runner.parts]

    def flush(self) -> None:
        """Hand on the last rows."""
        for runner in self._runners:
            runner.flush()


class _ScanRunner(SparkRunner):
    """Keeps the files that count, and makes the rows of ``segments``."""

    def __init__(
        self, context: "SparkContext", cores: int, work: Work, on_bytes: OnBytes, rows: _Buffer
    ) -> None:
        super().__init__(context, cores, work, on_bytes)
        self.parts: list[Part] = []
        self._rows = rows
        self._known: dict[Path, tuple[Segment, dict[int, Totals], list[Part]]] = {}
        """Of the segments of this window: what pieces at which byte add up to, and their files."""

    def run(self, work: Sequence[Unit], order: Callable[[Unit], Any]) -> Iterator[Reports]:
        """Yield the reports of each unit; those of the window before were all taken by now."""
        self.flush()
        yield from super().run(work, order)

    def again(self, piece: Unit) -> Reports:
        """Look at a whole segment whose pieces do not count."""
        for task in piece:
            self._known.pop(task.segment.log.path, None)
        return super().again(piece)

    def beside(self, result: Any) -> None:
        """Take the files that whole segments of a task share."""
        self.parts += result

    def take(self, unit: Unit, result: Any) -> Reports:
        """Keep what stands beside the reports."""
        found: UnitResult = result
        for task, totals in zip(unit, found.totals, strict=True):
            segment = task.segment
            known = self._known.setdefault(segment.log.path, (segment, {}, []))
            known[1][task.piece.start if task.piece else 0] = totals
            known[2].extend(found.parts)
        return found.reports

    def flush(self) -> None:
        """Make rows of what is known."""
        for segment, pieces, parts in self._known.values():
            first, *others = (pieces[start] for start in sorted(pieces))
            for other in others:
                first.add(other)
            self._rows.add(_segment_row(segment, first))
            self.parts += parts
        self._known = {}


def _segment_row(segment: Segment, totals: Totals) -> dict[str, Any]:
    def size(kind: FileKind) -> int | None:
        file = segment.indexes.get(kind)
        return file.size if file else None

    return {
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


def _finding_row(
    item: Finding | UnreadableError, number: int, log_dirs: frozenset[Path]
) -> dict[str, Any]:
    path = item.path
    row: dict[str, Any] = {"number": number, "path": None if path is None else text_of(path)}
    if path is not None:
        row |= place_of(path, log_dirs)._asdict()
    if isinstance(item, Finding):
        told = item.as_json()
        columns = ("segment", "severity", "code", "broker", "position", "length", "first_offset",
                   "last_offset")  # fmt: skip
        return row | {name: told[name] for name in columns} | {"message": text_of(item.message)}
    return row | {"severity": "unreadable", "message": text_of(item.reason)}
