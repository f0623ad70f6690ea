"""A run of ``checkpoint lint``: the findings of verify about small files."""

from logtool.commands import options
from logtool.commands.output import Report
from logtool.commands.views import findings
from logtool.exits import Exit
from logtool.findings import Severity
from logtool.verify import Level, Verification

_SMALL_FILES = frozenset(
    {"checkpoint", "clean-shutdown", "leader-epoch", "meta-properties", "partition-metadata",
     "quorum-state"}
)  # fmt: skip
"""The areas of the text files next to the logs."""


def run(inputs: options.LocalInputs, fail_on: Severity, printing: options.Printing) -> Exit:
    """Print the findings of verify in the small files alone; return the exit status."""
    settings, given = printing.settings(), inputs.resolved()
    job = Verification(
        given.paths, level=Level.QUICK, selection=given.selection, areas=_SMALL_FILES
    )
    report = Report(settings, findings.make(settings), job.summary, given)
    return report.consume(job, findings.FindingPrinter(report, None, fail_on), fail_on)
