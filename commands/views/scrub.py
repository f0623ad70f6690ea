"""A run of ``scrub``: its findings, what was checked, and the coverage after it."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from logtool.checks.report import Level
from logtool.commands import options
from logtool.commands.output import Line, Report
from logtool.commands.printing import text
from logtool.commands.printing.interrupts import status_on_signal
from logtool.commands.printing.progress import progress_line
from logtool.commands.program import broker_config, parsing
from logtool.commands.views import findings
from logtool.commands.views.findings import FindingPrinter
from logtool.commands.views.metrics import Metric, MetricsFile
from logtool.commands.views.scrub_tables import COVERAGE, DOCUMENT, RUN
from logtool.disk import files, shell
from logtool.exits import Exit
from logtool.findings import Severity
from logtool.running.budget import Budget
from logtool.scrub.coverage import CheckCoverage
from logtool.scrub.run import ScrubOptions, ScrubRun
from logtool.scrub.state import open_for_run

SCHEMA = DOCUMENT.schema


def run(
    inputs: options.AnyLocalInputs,
    running: options.Running,
    printing: options.Printing,
    *,
    state: Path,
    cycle: str,
    level: str,
    fail_on: Severity,
    max_findings: int | None,
    limit: int,
    drop_cache: bool,
    metrics_file: Path | None,
) -> Exit:
    """Check what is due, and print the findings; return the exit status.

    Batches that decompress to more than `limit` bytes are not decompressed.
    """
    settings, given = printing.settings(), inputs.of_one_broker()
    metrics = MetricsFile(metrics_file, "scrub", given.paths)
    cycle_ms = round(parsing.parse_duration("--cycle", cycle) * 1000)
    budget = Budget(running.threads, running.pace(), drop_cache)
    with ExitStack() as stack:
        opened = stack.enter_context(open_for_run(state, given.paths))
        job = ScrubRun(
            # The state file knows a segment by its path, from whatever directory a run starts.
            [_absolute(path) for path in files.each_once(given.paths)],
            opened,
            ScrubOptions(parsing.now_ms(), cycle_ms, Level(level), limit),
            selection=given.selection,
            budget=budget,
            static=inputs.broker.of_node() | inputs.broker.take(*broker_config.JUDGED),
            flavour=given.flavour,
            on_progress=lambda progress: report.show(progress),
        )
        view = replace(findings.make(settings), schema=SCHEMA)
        report = Report(settings, view, job.summary, given)
        stack.enter_context(status_on_signal(lambda: report.note(_status(job))))
        items = iter(job)
        stack.callback(items.close)
        status = report.consume(items, ScrubPrinter(report, max_findings, fail_on, job), fail_on)
        items.close()
        job.finish(status)
        of_coverage = _metrics(metrics, job.coverage()[0]) if metrics_file else ()
        return metrics.write(job.summary, status, found=job.open_codes(), more=[*of_coverage])


def _absolute(path: Path) -> Path:
    """Return a path without .. in it, however a link may lead there."""
    parts = path.absolute().parts
    ups = [at for at, part in enumerate(parts) if part == ".."]
    if not ups:
        return Path(*parts)
    return Path(*parts[: ups[-1] + 1]).resolve().joinpath(*parts[ups[-1] + 1 :])


def _metrics(metrics: MetricsFile, whole: CheckCoverage) -> Iterator[Metric]:
    """Yield the metrics of the coverage."""
    ages = {age: one.bytes / whole.bytes for age, one in whole.ages.items() if whole.bytes}
    text = "Part of the bytes of logs by the time since the last check: each byte is in one class."
    yield metrics.labelled("logtool_coverage_ratio", text, "age", ages)
    yield metrics.metric(
        "logtool_oldest_unchecked_age_seconds",
        "Time since the check of the segment that was checked the longest ago, or since it was "
        "first seen.",
        whole.oldest_s,
    )


def _status(job: ScrubRun) -> str:
    """Return one line: how far it is, and what was found so far."""
    now = job.progress
    read = progress_line(now.bytes_done, now.bytes_total, job.summary.elapsed_s, str(now.path))
    return f"{read}; so far {findings.found(job.summary)}"


class ScrubPrinter(FindingPrinter):
    """Prints findings, then the totals of the run and the coverage of its paths."""

    def __init__(self, report: Report, most: int | None, fail_on: Severity, job: ScrubRun) -> None:
        super().__init__(report, most, fail_on)
        self._job, self._of_run = job, report

    def finish(self) -> None:
        """Print the row of the run and the coverage of all topics."""
        self._of_run.item(RUN.row(self._job.row))
        self._of_run.item(COVERAGE.row(self._job.coverage()[0]))

    def last_lines(self) -> Iterator[Line]:
        """Yield lines about the segments of the run and open findings, then the summary."""
        for path in self._job.too_large:
            yield (
                f"{path} ({text.size(files.size_at(path))}): the time limit of this run is too "
                "short for this log. The next runs check other logs first; check this log without "
                "a limit:",
                None,
            )
            yield f"  logtool verify {shell.path(path)}", None
        for path, position in self._job.read_in_part.items():
            yield f"{path}: the next run goes on at byte {position:,}", None
        row, whole = self._job.row, self._job.coverage()[0]
        yield (
            f"checked {row.segments:,} of {text.count(row.due_segments, 'due segment')} "
            f"({text.size(row.bytes)} of {text.size(row.due_bytes)}); "
            f"{whole.share:.1%} of {text.size(whole.bytes)} were checked within "
            f"{text.duration(row.cycle_ms / 1000)}",
            None,
        )
        still = self._job.summary.still_open
        if number := still[Severity.ERROR] + still[Severity.WARNING]:
            found = text.count(number, "finding")
            yield (
                f"{found} of earlier runs still open; logtool scrub --status lists them",
                "warning",
            )
        yield from super().last_lines()
