"""How salvaged logs look: what was saved of each partition, and what was not."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from logtool.commands.output import Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object, columns
from logtool.errors import LogtoolError, UnreadableError
from logtool.exits import Exit
from logtool.formats import wording
from logtool.repair.salvage import Salvage
from logtool.running.summary import ActionSummary
from logtool.schemas.salvaged import DOCUMENT

if TYPE_CHECKING:
    from logtool.commands.program.saved_records import Extras
    from logtool.repair.saved import Saved

SCHEMA = DOCUMENT.schema
_COLUMNS = columns(
    "type", "topic", "partition", "path", "target", "log_start_offset", "log_end_offset",
    "segments", "batches", "records", "bytes", "filled_batches", "filled_bytes", "rejects",
    "rejected_bytes", "outcome", "position", "length", "kind", "first_offset", "last_offset",
    "filled_from", "proof", "crc32c", "sha256", "producer_id", "producer_epoch", "lost_from",
    "command", "map", "unread", "reason",
)  # fmt: skip
_MARKDOWN = columns("type", "path", "batches", "records", "rejects", "reason")
_ROWS = frozenset({"partition", "reject", "transaction", "records", "decoded", "image"})


def make() -> View:
    """Return the view of `salvage` and `undelete`."""
    return View(
        schema=SCHEMA,
        columns=_COLUMNS,
        layout=lambda obj: _MARKDOWN if obj["type"] in _ROWS else None,
        lines={"table": _line},
        row_types=_ROWS,
        sparse=True,
    )


def run(
    job: Salvage, report: Report, summary: ActionSummary, extras: "Extras | None" = None
) -> Exit:
    """Print what a run saves and what it does not; returns the exit status."""
    counts: Counter[str] = Counter()
    with report:
        for item in job:
            _take(item, report, summary, counts)
            if extras and not isinstance(item, LogtoolError):
                for more in extras.after(item):
                    _take(more, report, summary, counts)
    status = report.exit_status()
    report.note(_last_line(job, counts), {0: "good", 1: "warning"}.get(int(status)))
    return status


def _take(
    item: "Saved | LogtoolError", report: Report, summary: ActionSummary, counts: Counter[str]
) -> None:
    if isinstance(item, UnreadableError):
        report.unreadable(item)
    elif isinstance(item, LogtoolError):
        summary.refused = True
        report.refused(item)
    else:
        obj = DOCUMENT.row(item)
        if obj["type"] == "partition":
            counts["rejects"] += obj["rejects"]
            counts["filled"] += obj["filled_batches"]
        report.item(obj)


def _last_line(job: Salvage, counts: Counter[str]) -> str:
    summary = job.summary
    batches = text.count(summary.batches, "batch", "batches")
    partitions = text.count(summary.partitions, "partition")
    line = f"{text.state(summary)}{batches} of {partitions} saved in {job.output.given}"
    if counts["filled"]:
        line += f", {counts['filled']:,} of them from other copies"
    if counts["rejects"]:
        line += f"; {text.count(counts['rejects'], 'range')} rejected"
    return line


def _line(obj: Object) -> str | None:
    """Return an object as a person reads it."""
    if obj["type"] == "partition":
        return _partition(obj)
    if obj["type"] == "transaction":
        return f"  transaction  {text.escape(obj['reason'])}"
    if obj["type"] == "records":
        count, target = text.count(obj["records"], "record"), _below_output(obj, 2)
        again = text.escape(f"; to produce them again: {obj['command']}") if obj["command"] else ""
        return f"  records      {count} in {target}{again}"
    if obj["type"] == "decoded":
        count, target = text.count(obj["records"], "damaged record"), _below_output(obj, 3)
        why = f": {text.escape(obj['reason'])}" if obj["reason"] else ""
        return f"  decoded      {count} in {target}{why}"
    if obj["type"] == "image":
        what = f"{text.size(obj['unread'])} of {text.escape(obj['path'])} cannot be read"
        return f"  image        {what}; {_below_output(obj, 3)} has the rest, and a map beside it"
    if obj["type"] != "reject":
        return None
    place = f"{text.escape(obj['path'])} @{obj['position']}, {text.size(obj['length'])}"
    line = f"  {obj['kind']:<11}  {place}: {text.escape(obj['reason'])}"
    first, last = obj["first_offset"], obj["last_offset"]
    if first is not None:
        span = wording.offsets(first, last) if last is not None else f"offsets from {first} on"
        line += f"; {span}"
    if obj["filled_from"]:
        line += f"; filled from {text.escape(obj['filled_from'])}: {obj['proof']}"
    elif obj["proof"]:
        line += f"; {text.escape(obj['proof'])}"
    return line


def _below_output(obj: Object, parts: int) -> str:
    """Return where a file lies in the output, which the last line names."""
    return text.escape("/".join(Path(obj["target"]).parts[-parts:]))


def _partition(obj: Object) -> str:
    span = wording.extent(obj["log_start_offset"], obj["log_end_offset"])
    saved = text.count(obj["batches"], "batch", "batches")
    said = [f"{text.escape(obj['path'])}: {saved} saved, {span}"]
    if obj["filled_batches"]:
        said.append(f"{obj['filled_batches']:,} of them from another copy")
    if obj["rejects"]:
        ranges = text.count(obj["rejects"], "range")
        said.append(f"{ranges} rejected ({text.size(obj['rejected_bytes'])})")
    if obj["reason"]:
        said.append(f"A BROKER WOULD NOT START: {text.escape(obj['reason'])}")
    return ", ".join(said)
