"""Output of ``case``: what a case file holds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from logtool.case.making import CaseMaker
from logtool.case.manifest import CaseManifest
from logtool.case.opening import read_manifest
from logtool.case.renaming import Renaming
from logtool.commands import options
from logtool.commands.output import Line, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object, TableColumn, keep
from logtool.commands.printing.writers import columns as columns_of
from logtool.commands.program import parsing
from logtool.disk import files
from logtool.errors import LogtoolError, UnreadableError
from logtool.exits import Exit
from logtool.running.summary import ActionSummary, Summary
from logtool.schemas.columns import Column, Kind, Table, Way, count, size, timed
from logtool.schemas.document import Document

CASE: Final = Table("case", "case file", (
    Column("version", Kind.STRING, "release of logtool that made it"),
    *timed("made_ms", "time at which it was made", None),
    count("files", "files in it"),
    size("bytes", "bytes of these files, expanded, with holes in the place of payload"),
    size("log_bytes", "bytes of the logs"),
    count("batches", "batches"),
    count("records", "records"),
    count("replaced", "batches with another CRC than in the log"),
    Column("names", Kind.STRINGS, "topics"),
    Column("renamed", Kind.INT64, "batches with another CRC, because names in them were replaced",
           "batches", "names are as they were: --anonymize was not given"),
), note="All that is in a case file.", type="case",
    made_from="logtool.case.manifest:CaseManifest")  # fmt: skip
DIRECTORY: Final = Table("case_dir", "directory", (
    Column("place", Kind.STRING, "path in the case file of the log dir, or of a copy of a partition"
           " dir"),
    Column("given", Kind.STRING, "path in the case file of the directory that was given"),
    Column("node", Kind.INT32, "node id", null="ID=DIR was not used"),
), note="A directory that was given.", type="directory",
    made_from="logtool.case.manifest:CaseDir")  # fmt: skip
FILES: Final = Table("case_files", "kind of file", (
    Column("kind", Kind.STRING, "kind of file; others: files that no broker writes"),
    Column("treatment", Kind.STRING, "whole: as they are; headers: logs without payload; masked: "
           "the metadata log without secrets; state: transactional ids and their states; zeros: "
           "their sizes alone", words=("whole", "headers", "masked", "state", "zeros")),
    count("files", "files"),
    size("bytes", "bytes of these files"),
), note="All files of one kind.", type="files",
    made_from="logtool.case.manifest:CaseFiles")  # fmt: skip
ABSENT: Final = Table("case_absent", "what is not there as it is", (
    Column("path", Kind.STRING, "path in the case file"),
    Column("position", Kind.INT64, "byte in the file", "bytes", "the whole file is absent"),
    Column("reason", Kind.STRING, "the reason"),
    Column("damage", Kind.BOOL, "true if no command answers from the case file; false if only the "
           "commands that decode records do not"),
), note="A file that is absent, or bytes of a log that could not be kept as they are.",
    type="absent", made_from="logtool.case.manifest:LeftOut")  # fmt: skip
DOCUMENT: Final = Document(
    name="case", title="Objects that logtool case prints", tables=(CASE, DIRECTORY, FILES, ABSENT)
)
_TREATMENTS = {
    "whole": "as they are",
    "headers": "headers of batches, no keys and no values",
    "masked": "without secrets",
    "state": "transactional ids and states",
    "zeros": "their sizes alone",
}


def _view() -> View:
    """Return the view: the rows of CSV and TSV are kinds of files."""
    shown = keep(
        (
            TableColumn("files", lambda obj: obj["files"]),
            TableColumn("kind", lambda obj: obj["kind"]),
            TableColumn("size", lambda obj: text.size(obj["bytes"])),
            TableColumn("kept", lambda obj: _TREATMENTS[obj["treatment"]]),
        ),
        "files",
        "kind",
        "kept",
    )
    return View(
        schema=DOCUMENT.schema,
        columns=columns_of(*FILES.names(Way.CSV)),
        layout=lambda obj: shown if obj["type"] == "files" else _line(obj),
        row_types=frozenset({"files"}),
        sparse=True,
    )


def _line(obj: Object) -> str | None:
    if obj["type"] != "absent":
        return None
    if obj["position"] is None:
        return text.escape(f"absent: {obj['path']}: {obj['reason']}")
    return text.escape(f"changed: {obj['path']} @{obj['position']}: {obj['reason']}")


def run(
    inputs: options.LocalInputs,
    running: options.Running,
    printing: options.Printing,
    *,
    output: Path,
    anonymize: bool,
    names: Path | None,
) -> Exit:
    """Write a case file and print what is in it; return the exit status."""
    settings, given, summary = printing.settings(), inputs.resolved(), ActionSummary()
    report = Report(settings, _view(), summary, given)
    job = CaseMaker(
        inputs.node_dirs(), output, running.run(report), parsing.now_ms(), summary,
        renaming=Renaming() if anonymize else None, names_file=names,
    )  # fmt: skip
    return report.consume(job, CasePrinter(report, output))


def show_case(path: Path, printing: options.Printing) -> Exit:
    """Print what is in a case file; return the exit status."""
    report = Report(printing.settings(), _view(), Summary())
    return report.consume(_shown(path), CasePrinter(report, path))


def _shown(path: Path) -> Iterator[CaseManifest]:
    yield read_manifest(path)


class CasePrinter(Printer[CaseManifest | LogtoolError]):
    """Prints the manifest of a case file, and the share of its size."""

    def __init__(self, report: Report, path: Path) -> None:
        self._report, self._path = report, path
        self._manifest: CaseManifest | None = None

    def show(self, item: CaseManifest | LogtoolError) -> None:
        """Print the manifest, or why the case file was not written."""
        if isinstance(item, UnreadableError):
            self._report.unreadable(item)
        elif isinstance(item, LogtoolError):
            self._report.not_done(item)
        else:
            self._manifest = item
            parts = (item, *item.dirs, *item.kinds, *item.absent, *item.inexact)
            for part in parts:
                self._report.item(DOCUMENT.row(part))

    def last_lines(self) -> Iterator[Line]:
        """Yield the names that are in it, and its size."""
        found = self._manifest
        if found is None:
            return
        yield f"topics: {', '.join(found.names) or 'none'}", None
        if found.renamed is not None:
            kinds = "topics, groups, transactional ids, clients, hosts, racks and users"
            yield f"names of {kinds} were replaced", None
        if found.inexact:
            ranges = text.count(len(found.inexact), "range of bytes", "ranges of bytes")
            yield f"{ranges} of logs could not be kept as they are", "warning"
        taken = files.size_at(self._path)
        share = f", {taken / found.log_bytes:.2%} of the logs" if found.log_bytes else ""
        batches = text.count(found.batches, "batch", "batches")
        yield f"{text.size(taken)}{share}; {batches}, {text.count(found.records, 'record')}", "good"
