"""Output of fingerprints: a line for each partition."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from logtool.commands import options
from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing import terminal, text
from logtool.commands.printing.writers import Object, columns
from logtool.commands.views.diff import SCHEMA
from logtool.commands.views.fingerprint_tables import FINGERPRINT
from logtool.copies import fingerprint
from logtool.copies.fingerprint import Fingerprint, Fingerprints, FingerprintStatus
from logtool.exits import Exit
from logtool.log.inputs import GivenPaths
from logtool.running.summary import ActionSummary
from logtool.schemas.columns import Way

_WORDS = {
    FingerprintStatus.SAME: "the same",
    FingerprintStatus.LONGER: "the same, and longer",
    FingerprintStatus.NEW: "not in the file",
    FingerprintStatus.SHORTER: "SHORTER",
    FingerprintStatus.BEGINS_LATER: "BEGINS LATER",
    FingerprintStatus.CHANGED: "CHANGED",
    FingerprintStatus.OTHER_TOPIC: "ANOTHER TOPIC ID",
    FingerprintStatus.ABSENT: "ABSENT",
    FingerprintStatus.UNREAD: "NOT READ",
}
_SHOWN = 16
"""Digits of a hash in a line that fits a terminal."""
_UNCHANGED = (FingerprintStatus.SAME, FingerprintStatus.LONGER)


def run(
    inputs: options.AnyInputs,
    running: options.Running,
    printing: options.Printing,
    check: Path | None,
) -> Exit:
    """Print the fingerprints of partitions, or compare them with those of the file `check`."""
    settings, summary = printing.settings(), ActionSummary()
    kept = None if check is None else fingerprint.parse(check)
    sources = inputs.node_dirs()
    given = GivenPaths(
        [source.path for source in sources], inputs.selection, files_select=True,
        flavour=inputs.given_flavour,
    )  # fmt: skip
    view = View(
        schema=SCHEMA,
        columns=columns(*FINGERPRINT.names(Way.CSV)),
        layout=lambda _: None,
        lines={"table": lambda obj: _line(obj, settings)},
        row_types=frozenset({"fingerprint"}),
        sparse=True,
    )
    report = Report(settings=settings, view=view, summary=summary, inputs=given)
    job = Fingerprints(
        sources, selection=given.selection, run=running.run(report), kept=kept,
        flavour=given.flavour,
    )  # fmt: skip
    return report.consume(job, FingerprintPrinter(report, summary))


class FingerprintPrinter(Printer[Fingerprint]):
    """Prints fingerprints; a table leaves out the partitions that did not change."""

    def __init__(self, report: Report, summary: ActionSummary) -> None:
        """Begin with nothing found."""
        self._report, self._summary = report, summary
        self._brief = report.settings.format == "table" and not report.settings.verbose
        self._found: Counter[FingerprintStatus] = Counter()
        self._damaged = 0

    def show(self, item: Fingerprint) -> None:
        """Print one partition."""
        summary = self._summary
        summary.partitions += 1
        summary.batches += item.batches
        summary.records += item.records
        self._damaged += item.damaged_ranges > 0
        is_bad = item.damaged_ranges > 0
        if item.status is not None:
            self._found[item.status] += 1
            is_bad |= item.status.is_grave
        summary.to_do |= is_bad
        if not (self._brief and item.status in _UNCHANGED and not is_bad):
            self._report.item(FINGERPRINT.row(item))

    def last_lines(self) -> Iterator[Line]:
        """Yield how many partitions have which result."""
        parts = [
            f"{self._found[one]} {_WORDS[one]}" for one in FingerprintStatus if self._found[one]
        ]
        if self._damaged:
            parts.append(f"{self._damaged} DAMAGED")
        total = text.count(self._summary.partitions, "partition")
        line = f"{total}: {', '.join(parts)}" if parts else total
        yield text.state(self._summary) + line, "error" if self._summary.to_do else None


def _line(obj: Object, settings: OutputSettings) -> str:
    name = f"{text.escape(obj['topic'])}-{obj['partition']}"
    status = None if obj["status"] is None else FingerprintStatus(obj["status"])
    parts = []
    if status is not None:
        is_bad = status.is_grave or status is FingerprintStatus.UNREAD
        style = "error" if is_bad else "good"
        parts.append(terminal.paint_stdout(_WORDS[status], style, settings.color))
    if obj["path"] is not None:
        parts.append(text.extent(obj["log_start_offset"], obj["log_end_offset"]))
    if status is not None and obj["kept_last_offset"] is not None:
        parts.append(f"kept through offset {obj['kept_last_offset']}")
    if status is None:
        parts.append(text.count(obj["batches"], "batch", "batches"))
        parts.append(f"sha256 {obj['sha256'][: None if settings.verbose else _SHOWN]}")
    if obj["damaged_ranges"]:
        parts.append(text.count(obj["damaged_ranges"], "damaged range"))
    if obj["unread"] and status is None:
        parts.append("not read as a whole")
    return f"{name}: {', '.join(parts)}"
