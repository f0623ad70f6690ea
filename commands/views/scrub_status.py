"""The status of ``scrub``: coverage, the last run, and the findings that are open and gone."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from logtool.checks.report import Level
from logtool.commands import options
from logtool.commands.output import Line, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object, TableColumn, columns, keep
from logtool.commands.program import parsing
from logtool.commands.views.scrub_tables import COVERAGE, DOCUMENT, STATUS, STORED
from logtool.exits import Exit
from logtool.findings import Severity
from logtool.lazy_dataclass import dataclass
from logtool.schemas.columns import Way
from logtool.scrub.coverage import CheckCoverage, complete_in_ms, coverage_of
from logtool.scrub.open import StoredFinding, stored
from logtool.scrub.run import ScrubSummary
from logtool.scrub.state import RunRow, ScrubState, open_to_read
from logtool.times import DAY_MS

SCHEMA = DOCUMENT.schema
_SIZES = ("day", "week", "cycle", "older", "never")
_FINDINGS = (
    TableColumn("state", lambda obj: obj["state"]),
    TableColumn("severity", lambda obj: obj["finding"]["severity"]),
    TableColumn("code", lambda obj: obj["finding"]["code"], kept=True),
    TableColumn("first_seen", lambda obj: obj["first_seen"]),
    TableColumn("path", lambda obj: obj["finding"]["path"], kept=True),
    TableColumn("position", lambda obj: obj["finding"]["position"]),
    TableColumn("message", lambda obj: obj["finding"]["message"]),
)


def run(
    printing: options.Printing, *, state: Path, cycle: str | None, level: str, fail_on: Severity
) -> Exit:
    """Print what the state file knows; return the exit status. No log is read."""
    settings = printing.settings()
    view = View(
        schema=SCHEMA,
        columns=columns(*COVERAGE.names(Way.CSV)),
        layout=_layout,
        row_types=frozenset({"coverage"}),
        sparse=True,
    )
    with open_to_read(state) as opened:
        given_ms = None if cycle is None else round(parsing.parse_duration("--cycle", cycle) * 1000)
        job = _Status(opened, parsing.now_ms(), given_ms, Level(level))
        report = Report(settings, view, job.summary)
        return report.consume(job, StatusPrinter(report, job), fail_on)


@dataclass(slots=True)
class StatusTotal:
    """The state of all segments that earlier runs listed."""

    path: Path
    cycle_s: float
    runs: int
    last_run: RunRow | None
    complete_in_s: float | None
    open_errors: int
    open_warnings: int
    open_infos: int
    gone: int


class _Status:
    """The rows of a status: iterate over them."""

    def __init__(self, state: ScrubState, now_ms: int, cycle_ms: int | None, level: Level) -> None:
        self._state, self._now_ms, self._level = state, now_ms, level
        self._runs = state.runs()
        last = self._runs[-1] if self._runs else None
        self.cycle_ms = cycle_ms or (last.cycle_ms if last else 30 * DAY_MS)
        self.summary = ScrubSummary()

    def __iter__(self) -> Iterator[StatusTotal | CheckCoverage | StoredFinding]:
        found = list(stored(self._state))
        rows = coverage_of(
            self._state.segments(), now_ms=self._now_ms, cycle_ms=self.cycle_ms, level=self._level
        )
        yield self._total(found, rows[0])
        yield from rows
        yield from found

    def _total(self, found: Sequence[StoredFinding], whole: CheckCoverage) -> StatusTotal:
        of_open = Counter(one.finding.severity for one in found if one.gone_ms is None)
        self.summary.still_open = of_open
        left_ms = complete_in_ms(whole, self._runs, self._now_ms)
        return StatusTotal(
            path=self._state.path,
            cycle_s=self.cycle_ms / 1000,
            runs=len(self._runs),
            last_run=self._runs[-1] if self._runs else None,
            complete_in_s=None if left_ms is None else left_ms / 1000,
            open_errors=of_open[Severity.ERROR],
            open_warnings=of_open[Severity.WARNING],
            open_infos=of_open[Severity.INFO],
            gone=len(found) - of_open.total(),
        )


def _oldest(obj: Object) -> str:
    return "never" if obj["never_segments"] else text.duration(obj["oldest_s"])


def _sized(name: str) -> TableColumn:
    return TableColumn(name, lambda obj: text.size(obj[f"{name}_bytes"]))


_COVERAGE = keep((
    TableColumn("topic", lambda obj: "(all)" if obj["scope"] == "all" else obj["topic"]),
    TableColumn("segments", lambda obj: obj["segments"]),
    TableColumn("size", lambda obj: text.size(obj["bytes"])),
    TableColumn("share", lambda obj: f"{obj['share']:.1%}"),
    *map(_sized, _SIZES),
    TableColumn("oldest", lambda obj: _oldest(obj)),
), "topic", "share", "never", "oldest")  # fmt: skip


def _layout(obj: Object) -> Columns | str | None:
    if obj["type"] == "title":
        return str(obj["text"])
    return {"coverage": _COVERAGE, "stored-finding": _FINDINGS}.get(obj["type"])


class StatusPrinter(Printer[StatusTotal | CheckCoverage | StoredFinding]):
    """Prints the coverage by topic and the findings; for people, infos only with -v."""

    def __init__(self, report: Report, job: _Status) -> None:
        self._report, self._job = report, job
        self._total: StatusTotal | None = None
        self._table = report.settings.format in ("table", "markdown")
        self._titled = False

    def show(self, item: StatusTotal | CheckCoverage | StoredFinding) -> None:
        """Print one row."""
        if isinstance(item, StatusTotal):
            self._total = item
            self._report.item(STATUS.row(item))
        elif isinstance(item, CheckCoverage):
            self._report.item(COVERAGE.row(item))
        else:
            self._finding(item)

    def _finding(self, item: StoredFinding) -> None:
        shown = self._report.settings.verbose or (
            item.finding.severity is not Severity.INFO and item.gone_ms is None
        )
        if self._table and not shown:
            return
        if self._table and not self._titled:
            self._titled = True
            self._report.item({"type": "title", "text": "Findings:"})
        self._report.item(STORED.row(item))

    def last_lines(self) -> Iterator[Line]:
        """Yield lines about the last run, the findings and the time until all is checked."""
        total = self._total
        if total is None:
            return
        if run := total.last_run:
            done = "complete" if run.complete else "not complete"
            yield (
                f"last run: {run.start}, {done}, {run.segments:,} of "
                f"{text.count(run.due_segments, 'due segment')}, {text.size(run.bytes)}",
                None,
            )
        cycle = text.duration(total.cycle_s)
        left_s = total.complete_in_s
        if left_s == 0:
            yield f"every segment was checked within the cycle of {cycle}", "good"
        elif total.last_run is None:
            yield f"nothing was checked so far; the cycle is {cycle}", None
        elif left_s is None:
            yield (
                "the last runs checked 0 B: at this pace no segment that is left is checked within "
                f"the cycle of {cycle}, and no cycle completes",
                "warning",
            )
        elif left_s > total.cycle_s:
            yield (
                f"at the pace of the last runs the segments that are left take "
                f"{text.duration(left_s)}, longer than the cycle of {cycle}",
                "warning",
            )
        else:
            yield (
                f"every segment is checked within the cycle of {cycle} in "
                f"{text.duration(left_s)}, at the pace of the last runs",
                None,
            )
        open_ones = (
            f"{text.count(total.open_errors, 'error')}, "
            f"{text.count(total.open_warnings, 'warning')} and "
            f"{text.count(total.open_infos, 'info')} open, {total.gone:,} gone"
        )
        bad = total.open_errors + total.open_warnings
        yield open_ones, "error" if bad else "good"
