"""How converted segments look."""

from logtool.commands.output import Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object, columns
from logtool.convert import Conversion
from logtool.errors import UnreadableError, UnwritableError
from logtool.exits import Exit
from logtool.formats import wording
from logtool.running.summary import ActionSummary

SCHEMA = "logtool.convert/1"
_COLUMNS = columns(
    "path", "target", "to", "term", "offsets", "first_offset", "last_offset", "batches", "records",
    "bytes", "left_out", "damaged",
)  # fmt: skip
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


def run(job: Conversion, report: Report, summary: ActionSummary) -> Exit:
    """Print what a run writes and what it does not; returns the exit status."""
    with report:
        for item in job:
            if isinstance(item, dict):
                report.item(item)
            elif isinstance(item, UnreadableError):
                summary.add(item)
                report.unreadable(item)
            elif isinstance(item, UnwritableError):
                summary.unwritten += 1
                report.refused(item, "unwritable")
            else:
                summary.refused = True
                report.refused(item)
    status = report.exit_status()
    written = text.count(summary.segments, "segment")
    batches = text.count(summary.batches, "batch", "batches")
    style = {0: "good", 1: "warning"}.get(int(status))
    report.note(f"{text.state(summary)}{written} converted, {batches}", style)
    return status


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
        said.append(f"{left} left out that Kafka has no type for")
    if obj["damaged"] and obj["to"] == "kafka":
        said.append(f"{text.count(obj['damaged'], 'damaged range')} LEFT OUT")
    return ", ".join(said)
