"""Output of findings for a person, and the verdict that follows them."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing import fitting, terminal, text
from logtool.commands.printing.writers import Object, columns
from logtool.disk import expanded
from logtool.findings import Finding, Remedy, Severity, catalogue
from logtool.log.selection import Selection
from logtool.running.remedies import Remedies, RemedyCount
from logtool.running.summary import Summary
from logtool.schemas.columns import Way
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

DOCUMENT: Final = Document(
    name="verify", title="Objects that logtool verify prints", tables=(FINDING,)
)
SCHEMA = DOCUMENT.schema
MOST_OF_A_CODE = 3
"""Warnings of one code that a person is shown one by one, without -v."""
MOST_NAMED = 8
"""Partitions of the warnings of one code that a person is shown by name."""
MOST_NEXT = 10
"""Commands to run next that a person is shown; the JSON has them all."""

_HIDDEN = "hidden"
"""Type of the lines of a table about findings that are not shown; JSON has no such object."""
_FIRST = ("severity", "code")
"""The columns that a person looks for come first; the others as JSON has them."""
_COLUMNS = columns(*_FIRST, *(one for one in FINDING.names(Way.CSV) if one not in _FIRST))
_MARKDOWN = columns("severity", "code", "broker", "path", "position", "message")
_BROKER_WORDS = {
    "always": "a broker acts on it at its next start",
    "if-unclean": "a broker acts on it after an unclean stop",
    "never": "no start of a broker notices it",
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


class FindingPrinter(Printer[Finding]):
    """Prints findings up to a number, and in the end what was found in all."""

    def __init__(self, report: Report, most: int | None, fail_on: Severity) -> None:
        self._report = report
        self._left = most
        self._fail_on = fail_on
        self._withheld = 0
        given = report.inputs
        self._remedies = Remedies(
            given.paths if given else (), given.selection if given else Selection()
        )
        self._warnings: Counter[str] = Counter()
        self._concerned: dict[str, dict[str, None]] = {}
        """The partitions of the warnings of each code, in their order."""
        self._infos: dict[str, Finding] = {}
        """The first finding of each code of severity info."""
        self._table = report.settings.format == "table"

    def show(self, item: Finding) -> None:
        """Print one finding, if it is to be printed."""
        self._remedies.add(item)
        if self._table and not self._report.settings.verbose:
            if item.severity is Severity.INFO:
                self._infos.setdefault(item.code, item)
                return
            if item.severity is Severity.WARNING:
                self._warnings[item.code] += 1
                if item.topic is not None:
                    named = self._concerned.setdefault(item.code, {})
                    named[f"{item.topic}-{item.partition}"] = None
                if self._warnings[item.code] > MOST_OF_A_CODE:
                    return
        if self._left == 0:
            self._withheld += 1
            return
        if self._left is not None:
            self._left -= 1
        self._report.item(FINDING.row(item))

    def finish(self) -> None:
        """Print how many findings are not shown, where -q prints no last lines."""
        if self._table and self._report.settings.quiet:
            for line, _ in self._hidden():
                self._report.item({"type": _HIDDEN, "text": line})

    def last_lines(self) -> Iterator[Line]:
        """Yield the summary for people, the verdict last."""
        report, summary = self._report, self._report.summary
        yield from self._hidden()
        if self._table and not report.settings.verbose:
            for line in _info_lines(summary, self._infos):
                yield line, "info"
        usable = [one for one in summary.next if not expanded.is_useless(one)]
        for line in _next_lines(usable):
            yield line, None
        for line in _remedy_lines(self._remedies.counts()):
            yield line, None
        style = {0: "good", 1: "error"}.get(int(summary.exit_status(self._fail_on)), "warning")
        yield verdict(summary), style

    def _hidden(self) -> Iterator[Line]:
        """Yield how many findings were not shown: of each code with many warnings, most first."""
        if self._withheld:
            yield f"{text.count(self._withheld, 'more finding')} not printed", None
        known = catalogue()
        for code, number in self._warnings.most_common():
            if number > MOST_OF_A_CODE:
                title = known[code].title if code in known else ""
                more = number - MOST_OF_A_CODE
                shown = f"WARNING  {code}  x{number:,}  {title}"
                if named := list(self._concerned.get(code, ())):
                    shown += f" in {text.some(named, MOST_NAMED)}"
                yield f"{shown} ({more:,} not shown; -v shows all)", "warning"


class FurtherFindings:
    """Findings of a command that prints rows of something else.

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

    def last_lines(self) -> Iterator[Line]:
        """Yield the findings that people are shown, and how many more there are."""
        for one in self._shown:
            yield _placed(one), "info"
        for code, number in self._counts.items():
            more = number - sum(one.code == code for one in self._shown)
            if more:
                yield f"{code}: {more:,} more not shown; -v shows all", "info"


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
    return f"{text.state(summary)}{found(summary)} in {read}"


def found(summary: Summary) -> str:
    """Return how many findings of each severity there are so far."""
    counts = [
        text.count(summary.severities[s], str(s), None if s is not Severity.INFO else "infos")
        for s in reversed(Severity)
        if summary.severities[s]
    ]
    if not (summary.severities[Severity.ERROR] or summary.severities[Severity.WARNING]):
        counts = ["no errors, no warnings", *counts]
    return ", ".join(counts)


def _info_lines(summary: Summary, firsts: Mapping[str, Finding]) -> Iterator[str]:
    """Yield the findings of severity info: one with its place, several as their number."""
    known = catalogue()
    infos = [
        (code, number)
        for code, number in sorted(summary.codes.items())
        if code in known and known[code].severity is Severity.INFO
    ]
    for code, number in infos:
        if number == 1 and code in firsts:
            yield _placed(firsts[code])
        else:
            yield f"info     {code}  x{number:,}  {known[code].title}"


def _placed(one: Finding) -> str:
    """Return a finding as one line with its place."""
    place = str(one.path) if one.position is None else f"{one.path} @{one.position}"
    return f"{one.severity!s:<8} {one.code}  {place}  {one.message}"


def _next_lines(commands: list[str]) -> Iterator[str]:
    if commands:
        yield "Next:"
    for command in commands[:MOST_NEXT]:
        yield f"  {command}"
    if len(commands) > MOST_NEXT:
        yield f"  and {len(commands) - MOST_NEXT} more, see --format json"


_FROM_A_COPY = " from a copy on another broker or in a backup"
_HOW = {
    Remedy.RECOVER: " without loss",
    Remedy.CHECKPOINT: " in checkpoint files",
    Remedy.REMOTE: " from remote storage",
    Remedy.LOSS: " with loss of records",
    Remedy.REPLICA: _FROM_A_COPY,
    Remedy.NONE: " by hand",
}
"""Words behind the number of findings that a remedy repairs."""


def to_repair(findings: int, remedy: str, command: str | None, *, noun: str = "finding") -> str:
    """Return how findings are repaired, in words; its command follows, if there is one.

    `noun` is another word for a finding.
    """
    counted = text.count(findings, noun)
    if remedy == Remedy.BROKER:
        return f"The next start of the broker repairs {counted}"
    if remedy == Remedy.LOSS and command and " --fill-from " in command:
        without = "without a copy, 'logtool salvage' saves every sound batch"
        return f"To repair {counted}{_FROM_A_COPY} ({without})"
    if remedy == Remedy.RECOVER and command and " --fill-from " in command:
        return f"To repair {counted} next to lost records, with them from the same copy"
    words = f"To repair {counted}{_HOW[Remedy(remedy)]}"
    is_explained = command is not None and command.startswith("logtool explain ")
    return words + (", see" if is_explained else "")


def _remedy_lines(counts: Iterable[RemedyCount]) -> Iterator[str]:
    """Yield lines for people: how many findings each remedy mends, with its command."""
    for one in counts:
        yield to_repair(one.findings, one.remedy, one.command) + (":" if one.command else "")
        if one.command:
            yield f"  {one.command}"


def _lines(obj: Object, settings: OutputSettings) -> str | None:
    """Return a finding as a person reads it; errors go to stderr instead."""
    if obj["type"] == _HIDDEN:
        return str(obj["text"])
    if obj["type"] != "finding":
        return None
    severity = obj["severity"]
    place = "" if obj["path"] is None else text.escape(str(obj["path"]))
    if obj["position"] is not None:
        place += f" @{obj['position']}"
    label = f"{severity.upper():<8}"
    line = f"{label} {obj['code']}  {place}  {text.escape(obj['message'])}"
    line = fitting.folded(line, terminal.width_of(sys.stdout, wide=settings.wide), indent=9)
    line = terminal.paint_stdout(label, severity, settings.color) + line[len(label) :]
    if severity == "error" or obj["broker"] == "refuses-to-start":
        line += f"\n         {_BROKER_WORDS[obj['broker']]}"
        if obj["next"]:
            line += f"; next: {text.escape(obj['next'])}"
    return line
