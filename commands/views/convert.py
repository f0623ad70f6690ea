"""A run of ``convert``: which logs are written and which are not, and how that looks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from logtool.commands import options
from logtool.commands.output import Line, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object, columns
from logtool.commands.views.findings import FurtherFindings
from logtool.convert import Conversion, Converted
from logtool.errors import LogtoolError
from logtool.exits import Exit
from logtool.findings import Finding
from logtool.formats import wording
from logtool.log.flavour import FlavourName
from logtool.running.summary import ActionSummary
from logtool.schemas.columns import Column, Kind, Table, Way
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING


def _count(name: str, meaning: str) -> Column:
    return Column(name, Kind.INT64, meaning, "count", value=f"piece.{name}")


def _offset(name: str, meaning: str) -> Column:
    return Column(
        name, Kind.INT64, meaning, "offset", "the new log has no batch", value=f"piece.{name}"
    )


_SEGMENT = Table("segment", "new log", (
    Column("path", Kind.PATH, "the segment that was converted", value="piece.source"),
    Column("target", Kind.PATH, "the new log"),
    Column("to", Kind.STRING, "the server that the files were written for",
           words=("kafka", "redpanda"),
           value="piece.flavour"),
    Column("term", Kind.INT64, "term in the file name of the Redpanda segment",
           null="the new log is a Kafka log", value="piece.term"),
    Column("offsets", Kind.STRING, "kind of offsets in the new log; raft: Raft's, because Kafka's "
           "offsets are not known", words=("kafka", "raft"), value="piece.offsets"),
    _offset("first_offset", "first offset of the new log"),
    _offset("last_offset", "last offset of the new log"),
    _count("batches", "batches written to the new log"),
    _count("records", "records in the batches of the new log"),
    Column("bytes", Kind.INT64, "size of the new log", "bytes", value="piece.bytes"),
    _count("left_out", "batches left out because Kafka has no such batch type"),
    _count("damaged", "ranges of bytes that are not sound batches"),
), note="One new log.", type="segment", made_from="logtool.convert.run:Converted")  # fmt: skip
DOCUMENT: Final = Document(
    name="convert", title="Objects that logtool convert prints", tables=(_SEGMENT, FINDING)
)
SCHEMA = DOCUMENT.schema
_COLUMNS = columns(*_SEGMENT.names(Way.CSV))
_MARKDOWN = columns("path", "target", "offsets", "batches", "records", "left_out", "damaged")


def make() -> View:
    """Return the view of `convert`."""
    return View(
        schema=SCHEMA,
        columns=_COLUMNS,
        layout=lambda obj: _MARKDOWN if obj["type"] == "segment" else None,
        lines={"table": _line},
        row_types=frozenset({"segment"}),
        sparse=True,
    )


def run(
    inputs: options.LocalInputs,
    printing: options.Printing,
    *,
    to: FlavourName,
    output: Path,
    start_delta: int | None,
) -> Exit:
    """Convert segments and print what is written; return the exit status."""
    given, summary = inputs.resolved(), ActionSummary()
    job = Conversion(given.paths, to, output, start_delta=start_delta, summary=summary)
    report = Report(settings=printing.settings(), view=make(), summary=summary)
    return report.consume(job, ConversionPrinter(report, summary))


class ConversionPrinter(Printer[Converted | Finding | LogtoolError]):
    """Prints what is written and what is not, and in the end how much was converted."""

    def __init__(self, report: Report, summary: ActionSummary) -> None:
        self._report = report
        self._summary = summary
        self._further = FurtherFindings(report)

    def show(self, item: Converted | Finding | LogtoolError) -> None:
        """Print one new log, an error in it, or why something was not converted."""
        if isinstance(item, Finding):
            self._further.take(item)
            return
        if isinstance(item, Converted):
            self._report.item(DOCUMENT.row(item))
        else:
            self._report.not_done(item)

    def last_lines(self) -> Iterator[Line]:
        """Yield how much was converted."""
        yield from self._further.last_lines()
        summary = self._summary
        written = text.count(summary.segments, "segment")
        batches = text.count(summary.batches, "batch", "batches")
        style = {0: "good", 1: "warning"}.get(int(self._report.exit_status()))
        yield f"{text.state(summary)}{written} converted, {batches}", style


def _line(obj: Object) -> str | None:
    """Return an object as a person reads it."""
    if obj["type"] != "segment":
        return None
    said = [text.escape(f"{obj['path']} -> {obj['target']}")]
    said.append(text.count(obj["batches"], "batch", "batches"))
    if obj["first_offset"] is not None:
        named = "Kafka's" if obj["offsets"] == "kafka" else "Raft's"
        said.append(f"{named} {wording.offsets(obj['first_offset'], obj['last_offset'])}")
    if obj["to"] == "kafka" and obj["offsets"] == "raft":
        said.append("KAFKA'S OFFSETS ARE NOT KNOWN (see --start-delta)")
    if obj["left_out"]:
        left = text.count(obj["left_out"], "batch", "batches")
        said.append(f"{left} left out because Kafka has no such batch type")
    if obj["damaged"] and obj["to"] == "kafka":
        said.append(f"{text.count(obj['damaged'], 'damaged range')} LEFT OUT")
    return ", ".join(said)
