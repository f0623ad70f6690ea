"""Log dirs to tables: one pass over the bytes, then the questions across segments and brokers.

The pass is `verify` on Spark: the same units, the same function, the same reports. In addition
executors write the rows of each unit to the staging area as Parquet; the driver never sees them.
The driver writes the rows of segments and findings.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from logtool.checks.automq import BucketVerification, Item
from logtool.disk import files
from logtool.disk.files import text_of
from logtool.errors import RefusedError, UnreadableError, UsageError
from logtool.formats import compression, names
from logtool.formats.names import DirectoryKind, FileKind, PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.log import redpanda_dir
from logtool.log.arrow_rows import LARGEST_INT32
from logtool.log.inputs import GivenPaths, PathKind, kind_of
from logtool.log.opening import open_log_dir
from logtool.log.selection import Selection
from logtool.metadata.automq_tree import trees
from logtool.running.summary import Summary
from logtool.schemas import arrow
from logtool.schemas.arrow import Payload
from logtool.spark.finding_row import finding_row
from logtool.spark.questions.answering import LISTS_OF
from logtool.spark.scan.answers import answer
from logtool.spark.scan.engine import Buffer, ScanEngine
from logtool.spark.scan.history import HISTORY, RunHistory
from logtool.spark.scan.history import TABLE as HISTORY_TABLE
from logtool.spark.scan.incremental import REPORTS
from logtool.spark.scan.incremental import TABLE as REPORTS_TABLE
from logtool.spark.scan.incremental_copy import carry, earlier_run, load
from logtool.spark.scan.manifest import Manifest
from logtool.spark.scan.runs import ScanRun, begin
from logtool.spark.scan.unit_rows import STAGED, ScanWork
from logtool.verify import Level, Progress, Verification

if TYPE_CHECKING:
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
"""The tables that must be staged to make a table."""
_IN_EXECUTORS = frozenset({"batches", "records", STAGED})
"""Tables with rows of segments that executors write."""


@dataclass(frozen=True, slots=True)
class _Staged:
    """The rows that a pass stages for the tables that are asked for."""

    tables: frozenset[str]
    lists: frozenset[str]
    """Lists in the rows of `STAGED`."""

    @property
    def names(self) -> frozenset[str]:
        """Return names of all that executors stage: a later run can only go on from as much."""
        lists = {f"{STAGED}.{name}" for name in self.lists}
        return (self.tables & _IN_EXECUTORS) | lists


@dataclass(slots=True)
class Scan:
    """One run of the pipeline: `run` does everything, `summary` and `rows` have the results."""

    spark: "SparkSession"
    paths: Sequence[Path]
    output: str
    run_id: str
    wanted: Sequence[str] = arrow.DEFAULT
    payload: Payload = Payload.NONE
    show_secrets: bool = False
    """True to leave the secrets of a metadata log in ``records``; False for stars instead."""
    level: Level = Level.BATCHES
    """The depth of the checks that make findings; see `with_implied`."""
    selection: Selection = field(default_factory=Selection)
    limit: int = compression.DEFAULT_LIMIT
    """Bytes that the records of one batch may decompress to."""
    on_progress: Callable[[Progress], None] = lambda _: None
    on_step: Callable[[str], None] = lambda _: None
    """Receiver of each step after the bytes were read, as text."""
    on_wait: Callable[[str], None] = lambda _: None
    """Receiver of the progress of that step, again and again, as text."""
    on_unreadable: Callable[[UnreadableError], None] = lambda _: None
    since: str | None = None
    """The run whose rows are taken for segments that have not changed."""
    summary: Summary = field(default_factory=Summary)
    carried: int = 0
    """Segments whose rows come from the earlier run."""
    rows: dict[str, int] = field(default_factory=dict)
    """Number of rows of each table."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each table."""
    folder: str = ""
    """The directory of the tables of the run, below the output."""
    is_found: bool = False
    """True if readers find the run by its id; False if it is incomplete and an older run stays."""

    def run(self) -> None:
        """Write the tables; on any error the run's files are removed, and older runs stay."""
        self.wanted, self.level = with_implied(self.wanted, self.level)
        if "records" in self.wanted:
            self.limit = min(self.limit, LARGEST_INT32)  # a row of the table holds no more
        inputs = _inputs(self.paths, self.selection)
        staged = self._staged(inputs)
        known = check_since(
            self.output,
            self.since,
            self.wanted,
            self.payload,
            staged.names,
            self.level,
            show_secrets=self.show_secrets,
        )
        run = begin(self.output, self.run_id, self.payload)
        try:
            self._pass(run, staged, inputs, known)
            if self.summary.has_no_partition:
                # Empty tables must not replace those of an earlier run.
                GivenPaths(self.paths, self.selection).require()
            answer(self.spark, run, self.wanted, inputs.with_facts, self.on_step, self.on_wait)
            self.on_step("writing the manifest")
            self.on_wait("writing the manifest")
            self.is_found = run.commit(self.wanted, self._about(inputs))
        except BaseException:
            run.abandon()
            raise
        if not self.is_found and self.summary.complete:
            self.on_unreadable(UnreadableError(inputs.paths[0], "has no segment"))
        self.folder = run.staging.path
        self.rows = {name: run.rows(name) for name in self.wanted}
        self.sizes = {name: run.size(name) for name in self.wanted}

    def _staged(self, inputs: "_Inputs") -> _Staged:
        """Return the rows that executors stage for the tables of `wanted`."""
        names = frozenset[str]().union(*(NEEDS[name] for name in self.wanted))
        lists = {LISTS_OF[name] for name in self.wanted if name in LISTS_OF}
        # With several log dirs a partition may have several copies, which are compared.
        if "replicas" in self.wanted and len(inputs.log_dirs) > 1:
            names |= {"batches"}
        elif "replicas" in self.wanted:
            lists.discard(LISTS_OF["replicas"])
        return _Staged(names, frozenset(lists))

    def _pass(
        self, run: ScanRun, staged: _Staged, inputs: "_Inputs", known: Manifest | None
    ) -> None:
        """Read every segment once, except those that the earlier run has reports of."""
        earlier = load(self.output, known) if known else None
        work = ScanWork(
            staging=run.staging,
            tables=staged.tables & _IN_EXECUTORS,
            payload=self.payload,
            lists=staged.lists,
            show_secrets=self.show_secrets,
        )
        with ExitStack() as stack:
            totals = RunHistory()
            segments, findings = (
                Buffer(stack.enter_context(run.here.writer(name)), name, on_row)
                for name, on_row in (
                    ("segments", totals.add_segment),
                    ("findings", totals.add_finding),
                )
            )
            trend = stack.enter_context(run.here.writer(HISTORY_TABLE, HISTORY))
            reports = stack.enter_context(run.here.writer(REPORTS_TABLE, REPORTS))
            engine = ScanEngine(
                spark=self.spark, work=work, segments=segments, reports=reports, earlier=earlier
            )
            job = Verification(
                inputs.paths,
                level=self.level,
                selection=self.selection,
                limit=self.limit,
                on_progress=self.on_progress,
                engine=engine,
                earlier=engine,
            )
            job.summary = self.summary
            for number, item in enumerate(chain(job, self._of_buckets(inputs.paths, engine))):
                if isinstance(item, UnreadableError):
                    self.on_unreadable(item)
                findings.add(finding_row(item, number, inputs.log_dirs))
            engine.flush()
            segments.flush()
            findings.flush()
            if known and earlier:
                self.carried = len(earlier.kept)
                self.on_step(f"{self.carried:,} segments are reused from run {known.run_id}")
                for rows in earlier.rows_with(carry(self.spark, run, known, earlier)):
                    reports.write(rows)
            trend.write(totals.rows(run.staging.run_id))
        run.add([*engine.parts, *reports.parts, *trend.parts])
        for buffer in (segments, findings):
            if buffer.writer.table in staged.tables:
                run.add(buffer.writer.parts)

    def _of_buckets(self, paths: Sequence[Path], engine: ScanEngine) -> Iterator[Item]:
        """Yield findings of the objects of buckets, and why parts of partitions are missing."""
        places = [place for tree in trees(GivenPaths(paths)) for place in tree.places]
        yield from BucketVerification(
            places,
            self.summary,
            selection=self.selection,
            reads_blocks=True,
            each=engine.map,
            counts=False,
        )
        for problem in GivenPaths(paths).late_problems():
            self.summary.add(problem)
            yield problem

    def _about(self, inputs: "_Inputs") -> dict[str, Any]:
        summary = self.summary
        return {
            "staged": sorted(self._staged(inputs).names),
            "inputs": [text_of(path) for path in inputs.paths],
            "complete": summary.complete,
            "partitions": summary.partitions,
            "segments": summary.segments,
            "batches": summary.batches,
            "records": summary.records,
            "bytes": summary.bytes,
            "payload": str(self.payload),
            "show_secrets": self.show_secrets,
            "level": str(self.level),
            "since": self.since,
            "carried": self.carried,
        }


def with_implied(wanted: Sequence[str], level: Level) -> tuple[tuple[str, ...], Level]:
    """Return the tables to write and the depth of the checks.

    The table ``records`` lacks the records that do not decode and those of batches that are too
    large. The table ``findings`` with the findings of `Level.RECORDS` says which, so that a run
    always writes both.
    """
    if "records" not in wanted:
        return tuple(wanted), level
    return tuple(dict.fromkeys((*wanted, "findings"))), Level.RECORDS


def check_since(
    output: str,
    run_id: str | None,
    wanted: Sequence[str],
    payload: Payload,
    staged: frozenset[str] = frozenset(),
    level: Level = Level.BATCHES,
    *,
    show_secrets: bool = False,
) -> Manifest | None:
    """Return the manifest of the run that another run goes on from, or None without one.

    `staged` is `_Staged.names` of the new run. RefusedError if the earlier run does not exist,
    UsageError if it staged less, or was made with another level or payload, or shows secrets and
    the new run does not, or the other way round.
    """
    if run_id is None:
        return None
    wanted, level = with_implied(wanted, level)
    known = earlier_run(output, run_id)
    levels = {("records" in names) for names in (wanted, known.rows)}
    same = len(levels) == 1 and known.about.get("level") == str(level)
    same = same and known.about.get("payload") == str(payload)
    has_values = "records" in known.rows and payload.includes(Payload.HASH)
    # A run without show_secrets was made by a release that hid nothing.
    shown = has_values and known.about.get("show_secrets") is not False
    same = same and shown == (has_values and show_secrets)
    if not same or not staged <= frozenset(known.about.get("staged", ())):
        given = ",".join(known.rows)
        text = f"--since {run_id}: that run was made with --tables {given}"
        if "records" in known.rows:
            text += f" --payload {known.about.get('payload')}" + " --show-secrets" * shown
        text += f" --level {known.about.get('level')}"
        raise UsageError(f"{text}; use the same options, or run without --since")
    return known


def check_output(output: str, inputs: Sequence[Path]) -> None:
    """Raise RefusedError for an output in a log dir: an unknown directory stops a broker."""
    path = files.path_of(output)
    if files.is_remote(path):
        return
    target = Path(files.real(path))
    given = {files.real(path) for path in inputs}
    for folder in (target, *target.parents):
        if str(folder) in given or _is_there(folder / FileKind.META_PROPERTIES):
            raise RefusedError(
                f"--output {output} is inside {folder}, which is a log dir or an input"
            )


def check_inputs(paths: Sequence[Path]) -> None:
    """Raise UsageError for a file: a scan reads log dirs and partition dirs."""
    _inputs(paths, Selection())


def _is_there(path: Path) -> bool:
    """Return whether a path exists; False if that cannot be found out."""
    try:
        files.size_at(path)
    except UnreadableError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Inputs:
    """The inputs of a run. Paths are absolute: executors may have another current directory."""

    paths: list[Path]
    log_dirs: frozenset[Path]
    """Log dirs that are given, and those that contain the given partition dirs."""
    with_facts: list[Path]
    """Log dirs and partition dirs in which `questions.facts` finds all partitions."""


def _inputs(paths: Sequence[Path], selection: Selection) -> _Inputs:
    """Return the inputs, without duplicates; UsageError for a path of another kind."""
    kinds: dict[Path, PathKind | None] = {}
    for path in paths:
        path = path.absolute()
        if path.name == "..":
            path = path.resolve()
        try:
            kinds[path] = kind = kind_of(path, redpanda=True)
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
        directory = redpanda_dir.directory(path) or names.parse_directory(path.name)
        if not isinstance(directory, PartitionDirectory) or directory.kind is DirectoryKind.DELETE:
            odd.append(path)  # The log dir of such a directory gives no facts for it.
        if (
            isinstance(directory, PartitionDirectory)
            and files.real(path.parent) in places
            and selection.takes(directory)
        ):
            del kinds[path]  # It comes with its log dir.
        else:
            log_dirs[path.parent] = None
    # Partitions of a bucket take long to list, so each is a task of its own.
    in_buckets = [
        folder
        for path in given
        if files.is_assembled(path)
        for folder, directory in open_log_dir(path).partitions
        if selection.takes(directory)
    ]
    with_facts = [path for path in log_dirs if not files.is_assembled(path)]
    return _Inputs(list(kinds), frozenset(log_dirs), [*with_facts, *in_buckets, *odd])
