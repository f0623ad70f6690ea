"""Log dirs to tables: one pass over the bytes, then the questions across segments and brokers.

The pass is `verify` on Spark: the same units, the same function, the same reports. Beside its
report a unit leaves rows, which executors write to the staging area as Parquet; the driver never
sees them. The driver writes what is one row for a segment or for a finding.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from logtool.checks.report import SegmentReport, Task
from logtool.disk import files, log_dir
from logtool.disk.log_dir import Inputs, PathKind, Selection
from logtool.disk.partition import Segment
from logtool.errors import RefusedError, UnreadableError, UsageError
from logtool.findings import Finding
from logtool.formats import names
from logtool.formats.names import DirectoryKind, FileKind, PartitionDirectory
from logtool.pipeline import tables
from logtool.pipeline.answers import answer
from logtool.pipeline.carrying import carry, earlier_run, load
from logtool.pipeline.earlier import REPORTS, Earlier, Found, Tail, key_of, rows_of
from logtool.pipeline.earlier import TABLE as REPORTS_TABLE
from logtool.pipeline.engine import SparkEngine, SparkRunner, Work
from logtool.pipeline.history import HISTORY, History
from logtool.pipeline.history import TABLE as HISTORY_TABLE
from logtool.pipeline.homes import place_of, place_of_dir, text_of
from logtool.pipeline.manifest import Manifest, Part
from logtool.pipeline.questions.answering import LISTS_OF
from logtool.pipeline.runs import Run, begin
from logtool.pipeline.storage import Writer
from logtool.pipeline.tables import Payload
from logtool.pipeline.unit_rows import STAGED, ScanWork, Totals, UnitResult
from logtool.running.schedule import Budget, Reports, Unit
from logtool.running.summary import Summary
from logtool.running.workers import OnBytes
from logtool.verify import Level, Progress, Verification

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

NEEDS = {
    "segments": frozenset({"segments"}),
    "batches": frozenset({"batches"}),
    "records": frozenset({"records"}),
    "gaps": frozenset({STAGED}),
    "producers": frozenset({STAGED}),
    "transactions": frozenset({STAGED}),
    "replicas": frozenset({STAGED}),
    "findings": frozenset({"findings"}),
}
"""What has to be staged for a table."""
_IN_EXECUTORS = frozenset({"batches", "records", STAGED})
"""Tables with rows of segments that executors write."""
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class _Staged:
    """What a pass leaves for the tables that are asked for."""

    tables: frozenset[str]
    lists: frozenset[str]
    """Of the rows of `STAGED`."""

    @property
    def names(self) -> frozenset[str]:
        """Return what executors leave, by name: a later run can go on from no less."""
        lists = {f"{STAGED}.{name}" for name in self.lists}
        return (self.tables & _IN_EXECUTORS) | lists


@dataclass(slots=True)
class Scan:
    """One run of the pipeline; `run` does it all, then `summary` and `rows` tell of it."""

    spark: "SparkSession"
    paths: Sequence[Path]
    output: str
    run_id: str
    wanted: Sequence[str] = tables.DEFAULT
    payload: Payload = Payload.NONE
    level: Level = Level.BATCHES
    """How deep the findings go, whatever the tables."""
    selection: Selection = field(default_factory=Selection)
    on_progress: Callable[[Progress], None] = lambda _: None
    on_step: Callable[[str], None] = lambda _: None
    """Told what is done when no bytes are read any more."""
    on_wait: Callable[[str], None] = lambda _: None
    """Told again and again how far that is."""
    on_unreadable: Callable[[UnreadableError], None] = lambda _: None
    since: str | None = None
    """The run whose rows are taken for segments that are the same still."""
    summary: Summary = field(default_factory=Summary)
    carried: int = 0
    """Segments whose rows come from the earlier run."""
    rows: dict[str, int] = field(default_factory=dict)
    """Of each table."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each table."""
    folder: str = ""
    """Where the tables of the run are, below the output."""

    def run(self) -> None:
        """Write the tables; on any error nothing of the run is left, and what was there stays."""
        inputs = _inputs(self.paths, self.selection)
        staged = self._staged(inputs)
        known = check_since(
            self.output, self.since, self.wanted, self.payload, staged.names, self.level
        )
        run = begin(self.output, self.run_id, self.payload)
        try:
            self._pass(run, staged, inputs, known)
            if self.summary.has_no_partition:
                # Tables of nothing must not take the place of those of an earlier run.
                Inputs(self.paths, self.selection).require()
            answer(self.spark, run, self.wanted, inputs.with_facts, self.on_step, self.on_wait)
            self.on_step("writing the manifest")
            self.on_wait("writing the manifest")
            run.commit(self.wanted, self._about(inputs))
        except BaseException:
            run.abandon()
            raise
        self.folder = run.staging.path
        self.rows = {name: run.rows(name) for name in self.wanted}
        self.sizes = {name: run.size(name) for name in self.wanted}

    def _staged(self, inputs: "_Inputs") -> _Staged:
        """Return what executors leave for the tables of `wanted`."""
        names = frozenset[str]().union(*(NEEDS[name] for name in self.wanted))
        lists = {LISTS_OF[name] for name in self.wanted if name in LISTS_OF}
        # Where there may be several copies of a partition, they are held against each other.
        if "replicas" in self.wanted and len(inputs.log_dirs) > 1:
            names |= {"batches"}
        elif "replicas" in self.wanted:
            lists.discard(LISTS_OF["replicas"])
        return _Staged(names, frozenset(lists))

    def _pass(self, run: Run, staged: _Staged, inputs: "_Inputs", known: Manifest | None) -> None:
        """Read every segment once, but for those that the earlier run knows."""
        earlier = load(self.output, known) if known else None
        work = ScanWork(run.staging, staged.tables & _IN_EXECUTORS, self.payload, staged.lists)
        with ExitStack() as stack:
            totals = History()
            segments, findings = (
                _Buffer(stack.enter_context(run.staging.writer(name)), name, on_row)
                for name, on_row in (
                    ("segments", totals.add_segment), ("findings", totals.add_finding),
                )
            )  # fmt: skip
            trend = stack.enter_context(run.staging.writer(HISTORY_TABLE, HISTORY))
            reports = stack.enter_context(run.staging.writer(REPORTS_TABLE, REPORTS))
            engine = _ScanEngine(self.spark, work, segments, reports, earlier)
            job = Verification(
                inputs.paths, level=self.level, selection=self.selection,
                on_progress=self.on_progress, budget=Budget(engine=engine, earlier=engine),
            )  # fmt: skip
            job.summary = self.summary
            for number, item in enumerate(job):
                if isinstance(item, UnreadableError):
                    self.on_unreadable(item)
                findings.add(_finding_row(item, number, inputs.log_dirs))
            engine.flush()
            segments.flush()
            findings.flush()
            if known and earlier:
                self.carried = len(earlier.kept)
                self.on_step(f"{self.carried:,} segments are as run {known.run_id} found them")
                for rows in earlier.rows_with(carry(self.spark, run, known, earlier)):
                    reports.write(rows)
            trend.write(totals.rows(run.staging.run_id))
        run.add([*engine.parts, *reports.parts, *trend.parts])
        for buffer in (segments, findings):
            if buffer.writer.table in staged.tables:
                run.add(buffer.writer.parts)

    def _about(self, inputs: "_Inputs") -> dict[str, Any]:
        summary = self.summary
        return {
            "staged": sorted(self._staged(inputs).names),
            "inputs": [text_of(path) for path in inputs.paths], "complete": summary.complete,
            "partitions": summary.partitions, "segments": summary.segments,
            "batches": summary.batches, "records": summary.records, "bytes": summary.bytes,
            "payload": str(self.payload), "level": str(self.level), "since": self.since,
            "carried": self.carried,
        }  # fmt: skip


def check_since(
    output: str, run_id: str | None, wanted: Sequence[str], payload: Payload,
    staged: frozenset[str] = frozenset(), level: Level = Level.BATCHES,
) -> Manifest | None:  # fmt: skip
    """Return the manifest of the run that another goes on from, or None without one.

    `staged` is what executors leave, by `_Staged.names`. RefusedError where there is no such run,
    UsageError where it lacks something of that, or was asked for another level or payload.
    """
    if run_id is None:
        return None
    known = earlier_run(output, run_id)
    levels = {("records" in names) for names in (wanted, known.rows)}
    same = len(levels) == 1 and known.about.get("level") == str(level)
    same = same and known.about.get("payload") == str(payload)
    if not same or not staged <= frozenset(known.about.get("staged", ())):
        given = ",".join(known.rows)
        told = f"--since {run_id}: that run was made with --tables {given}"
        if "records" in known.rows:
            told += f" --payload {known.about.get('payload')}"
        told += f" --level {known.about.get('level')}"
        raise UsageError(f"{told}; give the same, or run without --since")
    return known


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
            kinds[path] = kind = log_dir.classify(path)
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

    def __init__(
        self, writer: Writer, table: str, on_row: Callable[[dict[str, Any]], None]
    ) -> None:
        self.writer = writer
        self._on_row = on_row
        self._schema = tables.schema(table)
        self._rows: list[dict[str, Any]] = []

    def add(self, row: dict[str, Any]) -> None:
        """Take a row."""
        self._on_row(row)
        self._rows.append(row)
        if len(self._rows) >= _ROWS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Hand on what is there."""
        rows, self._rows = self._rows, []
        self.writer.write(pa.RecordBatch.from_pylist(rows, self._schema))


class _ScanEngine(SparkEngine):
    """The engine of a scan: keeps what units tell beside their reports, for a later run too.

    It is the `Earlier` of the pass.
    """

    def __init__(
        self, spark: "SparkSession", work: Work, segments: _Buffer, reports: Writer,
        earlier: Earlier | None,
    ) -> None:  # fmt: skip
        super().__init__(spark, work)
        self._segments, self._reports, self._earlier = segments, reports, earlier
        self._fresh: dict[Path, tuple[Task, SegmentReport]] = {}
        self._runners: list[_ScanRunner] = []
        if earlier:
            earlier.on_known = self._carry

    def known(self, tasks: Sequence[Task]) -> Sequence[SegmentReport | None]:
        """Return the reports of segments that are what they were in the earlier run."""
        return self._earlier.known(tasks) if self._earlier else [None] * len(tasks)

    def remember(self, task: Task, report: SegmentReport) -> None:
        """Take the report of a segment that was looked at now."""
        self._fresh[task.segment.log.path] = task, report

    def _carry(self, task: Task, totals: dict[str, Any]) -> None:
        self._segments.add(_segment_row(task.segment, Totals(**totals)))

    @contextmanager
    def runner(self, on_bytes: OnBytes) -> Iterator[SparkRunner]:
        """Return what looks at units."""
        runner = _ScanRunner(self._context, self.cores, self._work, on_bytes, self._write)
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

    def _write(self, known: Mapping[Path, "_Known"]) -> None:
        """Make rows of the segments of a window."""
        found = []
        for path, one in known.items():
            totals = one.totals()
            self._segments.add(_segment_row(one.segment, totals))
            if path in self._fresh:
                task, report = self._fresh.pop(path)
                found.append(Found(
                    key=key_of(task), task=task, tail=one.tail(), files=one.files,
                    totals=asdict(totals), report=report,
                ))  # fmt: skip
        for at in range(0, len(found), _ROWS_AT_ONCE):
            self._reports.write(rows_of(found[at : at + _ROWS_AT_ONCE]))


@dataclass(slots=True)
class _Known:
    """What units told of a segment beside its report."""

    segment: Segment
    pieces: dict[int, tuple[Totals, Tail | None]] = field(default_factory=dict)
    """By the byte at which a piece begins."""
    parts: list[Part] = field(default_factory=list)
    """Files of its own."""
    files: list[str] = field(default_factory=list)
    """Names of all files that may have rows of it."""

    def totals(self) -> Totals:
        """Return what the pieces add up to."""
        first, *others = (self.pieces[start][0] for start in sorted(self.pieces))
        for other in others:
            first.add(other)
        return first

    def tail(self) -> Tail | None:
        """Return the last sound batch."""
        return next((self.pieces[at][1] for at in sorted(self.pieces, reverse=True)
                     if self.pieces[at][1]), None)  # fmt: skip


class _ScanRunner(SparkRunner):
    """Keeps the files that count, and what is told of segments until their reports are complete."""

    def __init__(
        self, context: "SparkContext", cores: int, work: Work, on_bytes: OnBytes,
        write: Callable[[Mapping[Path, _Known]], None],
    ) -> None:  # fmt: skip
        super().__init__(context, cores, work, on_bytes)
        self.parts: list[Part] = []
        self._write = write
        self._known: dict[Path, _Known] = {}
        """Of this window."""

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
        for task, totals, tail in zip(unit, found.totals, found.tails, strict=True):
            segment = task.segment
            known = self._known.setdefault(segment.log.path, _Known(segment))
            known.pieces[task.piece.start if task.piece else 0] = totals, tail
            known.parts.extend(found.parts)
            known.files.extend(found.files)
        return found.reports

    def flush(self) -> None:
        """Hand on what is known."""
        self._write(self._known)
        self.parts += [part for one in self._known.values() for part in one.parts]
        self._known = {}


def _segment_row(segment: Segment, totals: Totals) -> dict[str, Any]:
    def size(kind: FileKind) -> int | None:
        file = segment.indexes.get(kind)
        return file.size if file else None

    return tables.with_timestamps({
        **place_of_dir(segment.log.path.parent)._asdict(),
        "segment": segment.base_offset,
        "next_segment": segment.next_base_offset,
        "log_bytes": segment.log.size,
        "offset_index_bytes": size(FileKind.OFFSET_INDEX),
        "time_index_bytes": size(FileKind.TIME_INDEX),
        "transaction_index_bytes": size(FileKind.TRANSACTION_INDEX),
        "modified_ms": segment.log.mtime_ns // 1_000_000,
        **asdict(totals),
    })  # fmt: skip


def _finding_row(
    item: Finding | UnreadableError, number: int, log_dirs: frozenset[Path]
) -> dict[str, Any]:
    path = item.path
    row: dict[str, Any] = {"number": number, "path": None if path is None else text_of(path)}
    if path is not None:
        row |= place_of(path, log_dirs)._asdict()
    if isinstance(item, Finding):
        told = item.as_json()
        columns = ("topic", "partition", "segment", "severity", "code", "broker", "position",
                   "length", "first_offset", "last_offset", "next")  # fmt: skip
        # A line of a checkpoint is about a partition that the checkpoint does not lie in.
        row |= {name: told[name] for name in columns if told[name] is not None}
        texts = {name: text_of(row[name]) for name in ("topic", "next") if row.get(name)}
        return row | texts | {"message": text_of(item.message)}
    return row | {"severity": "unreadable", "message": text_of(item.reason)}
