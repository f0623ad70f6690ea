"""How findings look to a person, and the verdict behind them."""

import sys
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from logtool.commands import output
from logtool.commands.output import OutputSettings, Report, View
from logtool.commands.printing import fitting, text
from logtool.commands.printing.progress import progress_line
from logtool.commands.printing.writers import Object, columns
from logtool.disk import shell
from logtool.errors import UnreadableError
from logtool.findings import Finding, Severity, catalogue
from logtool.running.summary import Summary
from logtool.schemas.columns import Way
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

if TYPE_CHECKING:
    from logtool.log.file import File
    from logtool.verify import Verification

DOCUMENT: Final = Document(name="verify", title="What logtool verify prints", tables=(FINDING,))
SCHEMA = DOCUMENT.schema
MOST_OF_A_CODE = 3
"""Warnings of one code that a person is shown one by one, without -v."""
MOST_NEXT = 10
"""Commands to run next that a person is shown; the JSON has them all."""

_FIRST = ("severity", "code")
"""The columns that a person looks for come first; the others as JSON has them."""
_COLUMNS = columns(*_FIRST, *(one for one in FINDING.names(Way.CSV) if one not in _FIRST))
_MARKDOWN = columns("severity", "code", "broker", "path", "position", "message")
_BROKER_WORDS = {
    "always": "a broker acts on it at its next start",
    "if-unclean": "a broker acts on it after an unclean stop",
    "never": "a broker does not notice",
    "refuses-to-start": "A BROKER REFUSES TO START",
}


def make(settings: OutputSettings) -> View:
    """Return the view of `verify`."""
    return View(
        schema=SCHEMA,
        columns=_COLUMNS,
        layout=lambda obj: _MARKDOWN if obj["type"] == "finding" else None,
        lines={"table": lambda obj: _lines(obj, settings)},
        row_types=frozenset({"finding"}),
        sparse=True,
    )


class Printer:
    """Prints findings up to a number, and in the end what was found in all."""

    def __init__(self, report: Report, most: int | None) -> None:
        self._report = report
        self._left = most
        self._withheld = 0
        self._warnings: Counter[str] = Counter()
        self._table = report.settings.format == "table"

    def show(self, item: Finding | UnreadableError) -> None:
        """Print one finding, if it is to be printed."""
        if isinstance(item, UnreadableError):
            self._report.unreadable(item)
            return
        if self._table and not self._report.settings.verbose:
            if item.severity is Severity.INFO:
                return
            if item.severity is Severity.WARNING:
                self._warnings[item.code] += 1
                if self._warnings[item.code] > MOST_OF_A_CODE:
                    return
        if self._left == 0:
            self._withheld += 1
            return
        if self._left is not None:
            self._left -= 1
        self._report.item(FINDING.row(item))

    def left_out(self, logs: Iterable["File"]) -> None:
        """Print the logs for which the whole time of the run was too short."""
        for log in logs:
            self._report.note(
                f"{log.path} ({text.size(log.size)}): the whole time of this run was too short for "
                "it. The next runs look at others first; check it alone, without a limit:"
            )
            self._report.note(f"  logtool verify {shell.path(log.path)}")

    def conclude(self, fail_on: Severity) -> None:
        """Print the summary for people, the verdict last."""
        report, summary = self._report, self._report.summary
        if self._withheld:
            report.note(f"{text.count(self._withheld, 'more finding')} not printed")
        for line in self._grouped():
            report.note(line, "warning")
        if self._table and not report.settings.verbose:
            for line in _info_lines(summary):
                report.note(line, "info")
        for line in _next_lines(list(summary.next)):
            report.note(line)
        style = {0: "good", 1: "error"}.get(int(summary.exit_status(fail_on)), "warning")
        report.note(verdict(summary), style)

    def _grouped(self) -> Iterable[str]:
        """Yield a line for each code with more warnings than were shown, most frequent first."""
        known = catalogue()
        for code, number in self._warnings.most_common():
            if number > MOST_OF_A_CODE:
                title = known[code].title if code in known else ""
                more = number - MOST_OF_A_CODE
                yield f"WARNING  {code}  x{number:,}  {title} ({more:,} not shown; -v shows all)"


class Aside:
    """Findings beside the rows of a command that is about something else.

    JSON has each of them; a person gets some of each code, once the rows are printed.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._counts: Counter[str] = Counter()
        self._shown: list[Finding] = []

    def take(self, finding: Finding) -> None:
        """Count one finding, and print it where it is an object."""
        report = self._report
        report.summary.add(finding)
        if report.settings.format in ("json", "ndjson"):
            report.item(FINDING.row(finding))
            return
        self._counts[finding.code] += 1
        if report.settings.verbose or self._counts[finding.code] <= MOST_OF_A_CODE:
            self._shown.append(finding)

    def conclude(self) -> None:
        """Print what was taken, and how many more there are."""
        for one in self._shown:
            place = f"{one.path} @{one.position}"
            self._report.note(f"{one.severity!s:<8} {one.code}  {place}  {one.message}", "info")
        for code, number in self._counts.items():
            more = number - sum(one.code == code for one in self._shown)
            if more:
                self._report.note(f"{code}: {more:,} more not shown; -v shows all", "info")


def status(job: "Verification") -> str:
    """Return one line: how far it is, and what was found so far."""
    now = job.progress
    read = progress_line(now.bytes_done, now.bytes_total, job.summary.elapsed_s, str(now.path))
    return f"{read}; so far {_found(job.summary)}"


def verdict(summary: Summary) -> str:
    """Return one line: whether it is complete, what was found, how much was read, how fast."""
    seconds = summary.elapsed_s
    rate = f" ({text.rate(summary.bytes, seconds)})" if seconds > 0 else ""
    read = (
        f"{text.count(summary.partitions, 'partition')}, "
        f"{text.count(summary.segments, 'segment')}, "
        f"{text.count(summary.batches, 'batch', 'batches')}, {text.size(summary.bytes)} "
        f"in {text.duration(seconds)}{rate}"
    )
    return f"{text.state(summary)}{_found(summary)} in {read}"


def _found(summary: Summary) -> str:
    counts = [
        text.count(summary.severities[s], str(s), None if s is not Severity.INFO else "infos")
        for s in reversed(Severity)
        if summary.severities[s]
    ]
    if not (summary.severities[Severity.ERROR] or summary.severities[Severity.WARNING]):
        counts = ["no errors, no warnings", *counts]
    return ", ".join(counts)


def _info_lines(summary: Summary) -> Iterable[str]:
    known = catalogue()
    infos = [
        (code, number)
        for code, number in sorted(summary.codes.items())
        if code in known and known[code].severity is Severity.INFO
    ]
    for code, number in infos:
        yield f"info     {code}  x{number:,}  {known[code].title}"


def _next_lines(commands: list[str]) -> Iterable[str]:
    if commands:
        yield "Next:"
    for command in commands[:MOST_NEXT]:
        yield f"  {command}"
    if len(commands) > MOST_NEXT:
        yield f"  and {len(commands) - MOST_NEXT} more, see --format json"


def _lines(obj: Object, settings: OutputSettings) -> str | None:
    """Return a finding as a person reads it; errors go to stderr instead."""
    if obj["type"] != "finding":
        return None
    severity = obj["severity"]
    place = "" if obj["path"] is None else text.escape(str(obj["path"]))
    if obj["position"] is not None:
        place += f" @{obj['position']}"
    label = f"{severity.upper():<8}"
    line = f"{label} {obj['code']}  {place}  {text.escape(obj['message'])}"
    line = fitting.folded(line, output.width_of(sys.stdout, settings), indent=9)
    line = output.paint_stdout(label, severity, settings.color) + line[len(label) :]
    if severity == "error" or obj["broker"] == "refuses-to-start":
        line += f"\n         {_BROKER_WORDS[obj['broker']]}"
        if obj["next"]:
            line += f"; next: {text.escape(obj['next'])}"
    return line
