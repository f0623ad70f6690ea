"""Segments in remote storage, and what is wrong with their objects."""

from collections import Counter
from collections.abc import Iterator

from logtool.checks.report import Level
from logtool.commands import options
from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object, TableColumn, columns, keep
from logtool.commands.views.remote_tables import DOCUMENT, OBJECTS, finding_line
from logtool.disk import files
from logtool.exits import Exit
from logtool.findings import Finding, Severity
from logtool.formats import wording
from logtool.formats.rsm_names import Plugin
from logtool.remote.contents import CHECKED, ENCRYPTED
from logtool.remote.run import RemoteLineage
from logtool.remote.verification import CheckedRemoteSegment, RemoteVerification
from logtool.running.summary import Summary
from logtool.schemas.columns import Way

_SEGMENT = keep((
    *columns("topic", "partition", "segment_id", "base_offset", "last_offset"),
    TableColumn("size", lambda obj: wording.size(obj["bytes"])),
    *columns("content", "state"),
), "topic", "partition", "base_offset", "content")  # fmt: skip


def run(
    prefix: str,
    inputs: options.Inputs,
    running: options.Running,
    printing: options.Printing,
    *,
    plugin: str,
    level: str,
    fail_on: Severity,
) -> Exit:
    """Check the objects below `prefix`, which `plugin` wrote; return the exit status."""
    settings, summary, lineage = printing.settings(), Summary(), None
    has_dirs = bool(inputs.paths or inputs.broker) or inputs.files_from is not None
    given = inputs.of_one_cluster(inputs.given()) if has_dirs else inputs.resolved([])
    report = Report(settings, make(settings), summary, given if has_dirs else None)
    job_run = running.run(report)
    if has_dirs:
        lineage = RemoteLineage(paths=given.paths, selection=given.selection, run=job_run)
    job = RemoteVerification(
        plugin=Plugin(plugin), prefix=files.path_of(prefix), lineage=lineage,
        selection=given.selection, level=Level(level), run=job_run, summary=summary,
    )  # fmt: skip
    return report.consume(job, RemoteVerifyPrinter(report, job), fail_on)


def make(settings: OutputSettings) -> View:
    """Return the view of `remote verify`; a table shows segments only with --verbose."""

    def layout(obj: Object) -> Columns | str | None:
        if obj["type"] == "remote-objects":
            return _SEGMENT if settings.verbose else None
        return finding_line(obj, settings) if obj["type"] == "finding" else None

    def line(obj: Object) -> str | None:
        return finding_line(obj, settings) if obj["type"] == "finding" else None

    return View(
        schema=DOCUMENT.schema,
        columns=columns("type", *OBJECTS.names(Way.CSV)),
        layout=layout,
        lines={} if settings.verbose else {"table": line},
        row_types=frozenset({"remote-objects"}),
    )


class RemoteVerifyPrinter(Printer[CheckedRemoteSegment | Finding]):
    """Prints segments and findings, and counts."""

    def __init__(self, report: Report, job: RemoteVerification) -> None:
        self._report = report
        self._job = job
        self._contents: Counter[str] = Counter()
        self._objects = self._bytes = 0
        self._next: list[str] = []

    def show(self, item: CheckedRemoteSegment | Finding) -> None:
        """Print one item of a run, and count it."""
        if isinstance(item, CheckedRemoteSegment):
            self._contents[item.result.content] += 1
            self._objects += item.object_count
            self._bytes += item.objects.bytes
        elif item.next:
            self._next.append(item.next)
        self._report.item(DOCUMENT.row(item))

    def last_lines(self) -> Iterator[Line]:
        """Yield the commands that put objects back, the limits of the check, and the counts."""
        if self._next:
            yield "Next, to put objects back that local segments have:", None
            yield from ((f"  {command}", None) for command in self._next)
        if self._contents[ENCRYPTED]:
            count = text.count(self._contents[ENCRYPTED], "segment")
            yield f"{count} encrypted: batches and indexes were not checked", "warning"
        if self._job.lineage is None:
            yield (
                "no log dir was given: logtool does not know which segments should exist"
            ), "warning"  # fmt: skip
        elif self._job.unjudged:
            count = text.count(self._job.unjudged, "segment")
            yield (
                f"{count} not compared with records: the partitions of __remote_log_metadata are "
                "not in the given log dirs"
            ), "warning"  # fmt: skip
        summary = self._report.summary
        parts = [
            text.count(sum(self._contents.values()), "segment"),
            f"{text.count(self._objects, 'object')}, {wording.size(self._bytes)}",
            f"{self._contents[CHECKED]} checked batch by batch",
        ]
        findings = sum(summary.codes.values())
        parts += [text.count(findings, "finding")] if findings else []
        good = summary.complete and not findings
        yield text.state(summary) + ", ".join(parts), "good" if good else "warning"
