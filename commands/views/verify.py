"""A run of ``verify``: its findings, and how far it is."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path

from logtool.checks.schedule import ResumeCoverage
from logtool.commands import options
from logtool.commands.output import Line, Report
from logtool.commands.printing import text
from logtool.commands.printing.interrupts import status_on_signal
from logtool.commands.printing.progress import progress_line
from logtool.commands.program import broker_config
from logtool.commands.program.spark_options import Spark
from logtool.commands.views import findings
from logtool.commands.views.findings import FindingPrinter
from logtool.commands.views.metrics import MetricsFile
from logtool.disk import shell
from logtool.errors import UnreadableError
from logtool.exits import Exit
from logtool.findings import FOREIGN_SEGMENT, Finding, Severity
from logtool.log.buckets import is_bucket, is_tier
from logtool.running.budget import Budget
from logtool.running.resume import load
from logtool.running.run import Run
from logtool.times import rfc3339
from logtool.verify import Level, Verification


def run(
    inputs: options.AnyInputs,
    running: options.Running,
    printing: options.Printing,
    *,
    level: str,
    fail_on: Severity,
    max_findings: int | None,
    limit: int,
    resume: Path | None,
    drop_cache: bool,
    wrong_topic: bool,
    sample: tuple[int, int] | None,
    spark: Spark | None,
    metrics_file: Path | None,
) -> Exit:
    """Print the findings at `level`, with `spark` those of Spark; return the exit status.

    Batches that decompress to more than `limit` bytes are not decompressed.
    """
    settings = printing.settings()
    budget = Budget(
        running.threads, running.pace(), drop_cache, memory=load(resume) if resume else None
    )
    dirs = inputs.node_dirs()
    paths = [one.path for one in dirs]
    metrics = MetricsFile(metrics_file, "verify", paths)
    conf = spark.settings() if spark else {}
    if spark and not (spark.master or "local").startswith("local"):
        # An executor on another machine has another current directory.
        dirs = [replace(one, path=one.path.absolute()) for one in dirs]
        paths = [one.path for one in dirs]
    selection = replace(inputs.selection, sample=sample)
    buckets = [path for path in paths if is_bucket(path)]
    tiers = [path for path in paths if path not in buckets and is_tier(path)]
    logs = [path for path in paths if path not in (*buckets, *tiers)]
    job = Verification(
        logs,
        level=Level(level),
        selection=selection,
        limit=limit,
        budget=budget,
        static=inputs.broker.of_node()
        | ({} if level == Level.QUICK else inputs.broker.take(*broker_config.JUDGED)),
        node_ids={one.path: one.node for one in dirs if one.node is not None},
        on_progress=lambda progress: report.show(progress), flavour=inputs.given_flavour,
    )  # fmt: skip
    resolved = None if buckets else inputs.resolved(logs, selection)
    report = Report(settings, findings.make(settings), job.summary, resolved)
    printer = VerifyPrinter(report, max_findings, fail_on, job, sample)
    with ExitStack() as stack:
        stack.enter_context(status_on_signal(lambda: report.note(_status(job))))
        items = _on_spark(job, spark.master, conf, stack, report) if spark else iter(job)
        more: Iterable[Finding | UnreadableError] = ()
        if buckets or tiers:
            # With the readers of objects, which no other verification needs.
            from logtool.commands.views import verify_objects

            of_all = selection, Level(level), job
            if buckets:
                more = verify_objects.in_buckets([*buckets, *logs], *of_all)
            if tiers:
                more = chain(more, verify_objects.in_tiers(tiers, logs, *of_all, budget))
        if wrong_topic:
            # With the reader of headers, which no other verification needs.
            from logtool.txns.wrong_topic import WrongTopics

            late = WrongTopics(
                logs, selection=selection, run=Run(budget=budget), flavour=inputs.given_flavour
            )
            reported: set[Path | None] = set()
            items = _noted(items, reported)
            more = chain(more, _counted(late, job, reported))
        status = report.consume(chain(items, more), printer, fail_on)
    return metrics.write(job.summary, status)


def _noted(
    items: Iterable[Finding | UnreadableError], reported: set[Path | None]
) -> Iterator[Finding | UnreadableError]:
    """Yield the items; note the segments that may hold batches of another partition."""
    for item in items:
        if isinstance(item, Finding) and item.code == FOREIGN_SEGMENT:
            reported.add(item.path)
        yield item


def _counted(
    late: Iterable[Finding | UnreadableError], job: Verification, reported: set[Path | None]
) -> Iterator[Finding]:
    """Yield the findings, counted; the verification has reported what cannot be read.

    Segments whose fault is `reported` are left out.
    """
    for item in late:
        if isinstance(item, Finding) and not (
            item.code == FOREIGN_SEGMENT and item.path in reported
        ):
            job.summary.add(item)
            yield item


def _on_spark(
    job: Verification,
    master: str | None,
    conf: dict[str, str],
    stack: ExitStack,
    report: Report,
) -> Iterator[Finding | UnreadableError]:
    """Yield the findings of Spark's executors; `stack` closes the Spark session.

    Spark does not start if no input can be read.
    """
    from logtool.spark import engine, session

    if report.inputs and (problems := report.inputs.problems_of_all()):
        yield from problems
        return
    connected = stack.enter_context(session.session(master, conf, report.starting))
    job.use(engine.SparkEngine(connected))
    yield from job


def _status(job: Verification) -> str:
    """Return one line: how far it is, and what was found so far."""
    now = job.progress
    read = progress_line(now.bytes_done, now.bytes_total, job.summary.elapsed_s, str(now.path))
    return f"{read}; so far {findings.found(job.summary)}"


class VerifyPrinter(FindingPrinter):
    """The same with the logs for which the time was too short."""

    def __init__(
        self,
        report: Report,
        most: int | None,
        fail_on: Severity,
        job: Verification,
        sample: tuple[int, int] | None,
    ) -> None:
        super().__init__(report, most, fail_on)
        self._job, self._sample = job, sample

    def last_lines(self) -> Iterator[Line]:
        """Yield the logs for which the whole time of the run was too short, then the summary."""
        for log in self._job.too_large:
            yield (
                f"{log.path} ({text.size(log.size)}): the time limit of this run is too short for "
                "this log. The next runs check other logs first; check this log without a limit:",
                None,
            )
            yield f"  logtool verify {shell.path(log.path)}", None
        for path, position in self._job.read_in_part.items():
            yield f"{path}: the next run with --resume goes on at byte {position:,}", None
        if self._job.summary.out_of_time and (coverage := self._job.coverage):
            yield from self._coverage(coverage)
        if self._sample:
            number, count = self._sample
            yield f"only sample {number} of {count} was checked", None
        yield from super().last_lines()

    def _coverage(self, known: ResumeCoverage) -> Iterator[Line]:
        """Yield lines on the checks of all runs with one memory, and the place of the next one."""
        done = "this run and the earlier ones" if self._job.summary.bytes else "the earlier runs"
        when = rfc3339(int(known.oldest_s * 1000))
        line = f"everything was checked by {done}, the longest ago at {when}"
        if known.unchecked:
            segments = text.count(known.segments, "segment with data", "segments with data")
            size = text.size(known.unchecked_bytes)
            line = f"{known.unchecked:,} of {segments} ({size}) not checked yet"
        if known.unreached:
            line = f"no time was left for {known.unreached:,} of the paths given"
        yield line, None
        if known.next_path not in self._job.read_in_part:
            yield f"{known.next_path}: the next run with --resume goes on here", None
