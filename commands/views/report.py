"""A run of ``report``: the examination of `doctor` without a time limit, written into one file."""

import time
from collections.abc import Callable
from pathlib import Path

from logtool import __version__, times
from logtool.commands import options, output
from logtool.commands.output import Report
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object
from logtool.commands.views import doctor, examinations
from logtool.commands.views.doctor_tables import DOCUMENT
from logtool.commands.views.report_content import Content
from logtool.commands.views.report_markdown import ticket
from logtool.commands.views.report_page import page
from logtool.commands.views.rows import RowPrinter
from logtool.doctor import diagnosis
from logtool.doctor.log_map import log_maps
from logtool.errors import LogtoolError, UsageError
from logtool.exits import Exit
from logtool.findings import Severity
from logtool.running import own_file
from logtool.running.summary import ActionSummary

SCHEMA = DOCUMENT.schema
_FORMS: dict[str, Callable[[Content], str]] = {".html": page, ".htm": page, ".md": ticket}


def run(
    inputs: options.Inputs,
    running: options.Running,
    printing: options.Printing,
    *,
    target: Path,
    kafka_version: str | None,
    fail_on: Severity,
) -> Exit:
    """Examine log dirs, print the answers, and write the report; return the exit status."""
    form = _FORMS.get(target.suffix.lower())
    if form is None:
        raise UsageError(f"--output {target}: expected a name that ends with .html or .md")
    settings, given, summary = printing.settings(), inputs.resolved(), ActionSummary()
    own_file.require_outside(target, given.paths)
    jobs = examinations.of(inputs, running, summary, kafka_version, lambda one: report.show(one))
    report = Report(settings, doctor.make(settings, given.paths), summary, given)
    rows: list[Object] = []
    status = report.consume(diagnosis.diagnose(jobs), _KeepingPrinter(report, rows), fail_on)
    content = Content(
        paths=given.paths,
        version=__version__,
        made_at=times.shown(time.time_ns() // 1_000_000),
        status=int(status),
        rows=rows,
        forecasts=[forecast for job in jobs for forecast in job.forecasts],
        logs=[log for job in jobs for log in log_maps(job)],
        unread=[error for job in jobs for error in job.unread],
        is_complete=summary.complete,
    )
    try:
        own_file.replace(target, form(content).encode("utf-8", "backslashreplace"))
    except LogtoolError as error:
        output.error(str(error))
        return status if status in (Exit.INTERRUPTED, Exit.TERMINATED) else Exit.INCOMPLETE
    report.note(f"the report is in {text.escape(str(target))}", "good")
    return status


class _KeepingPrinter(RowPrinter[diagnosis.Diagnosed]):
    """Prints the rows of `doctor`, and keeps them for the report."""

    def __init__(self, report: Report, rows: list[Object]) -> None:
        def kept(item: diagnosis.Diagnosed) -> Object:
            row = DOCUMENT.row(item)
            rows.append(row)
            return row

        super().__init__(report, kept)
