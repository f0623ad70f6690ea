"""Output of ``plan --kafka-version all``: one row for the start of each release."""

from collections.abc import Iterator

from logtool.commands import options
from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing.writers import columns, keep
from logtool.commands.views.plan_tables import DOCUMENT, RELEASE
from logtool.errors import LogtoolError, UsageError
from logtool.exits import Exit
from logtool.node.options import StartOptions
from logtool.running.summary import ActionSummary
from logtool.schemas.columns import Way
from logtool.startup.releases import STARTS, ReleaseStart, of_all_releases


def run(inputs: options.AnyLocalInputs, printing: options.Printing, assumed: StartOptions) -> Exit:
    """Print which releases start on the log dirs; return the exit status."""
    settings, summary, given = printing.settings(), ActionSummary(), inputs.of_one_broker()
    if given.output_flavour:
        raise UsageError("--kafka-version all does not support Redpanda")
    report = Report(settings, make(settings), summary, given)
    job = of_all_releases(given.paths, assumed, given.flavour)
    return report.consume(job, ReleasePrinter(report, summary))


def make(settings: OutputSettings) -> View:
    """Return the view; a table has the columns of CSV."""
    shown = columns(*RELEASE.names(Way.CSV))
    decide = keep(shown, "kafka", "outcome", "reason")
    return View(
        schema=DOCUMENT.schema,
        columns=shown,
        layout=lambda obj: decide if obj["type"] == "release" else None,
        row_types=frozenset({"release"}),
    )


class ReleasePrinter(Printer[ReleaseStart | LogtoolError]):
    """Prints the start of each release."""

    def __init__(self, report: Report, summary: ActionSummary) -> None:
        self._report = report
        self._summary = summary
        self._starting: list[str] = []
        self._seen = 0

    def show(self, item: ReleaseStart | LogtoolError) -> None:
        """Print one release."""
        if isinstance(item, ReleaseStart):
            self._report.item(RELEASE.row(item))
            self._seen += 1
            if item.outcome == STARTS:
                self._starting.append(item.kafka)

    def finish(self) -> None:
        """Note whether any release starts."""
        self._summary.to_do = self._seen > 0 and not self._starting

    def last_lines(self) -> Iterator[Line]:
        """Yield the line on the releases that start; logs were not loaded."""
        if not self._seen:
            return
        found = ", ".join(self._starting) or "no release"
        verb = "start" if len(self._starting) > 1 else "starts"
        yield f"{found} {verb}; plan --kafka-version X.Y also loads the logs", None
