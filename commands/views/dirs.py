"""How log dirs, futures and strays look, and what may be deleted."""

from typing import TYPE_CHECKING

from logtool.commands import output
from logtool.commands.output import OutputSettings, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object, columns, keep
from logtool.errors import UnreadableError

if TYPE_CHECKING:
    from logtool.dirs.directories import Item
    from logtool.running.summary import ActionSummary

SCHEMA = "logtool.dirs/1"
MAY_DELETE_SCHEMA = "logtool.may-delete/1"
_ROWS = keep(columns(
    "type", "node", "path", "topic", "partition", "directory_id", "assigned", "status",
    "partitions", "deleting", "live", "log_start_offset", "log_end_offset", "behind", "superset",
    "may_delete", "batches", "records", "bytes", "digest",
), "type", "path", "status", "may_delete")  # fmt: skip
_STYLES = {"online": "good", "caught-up": "good", "catching-up": "info", "cordoned": "info",
           "unknown": "info", "unassigned": "info", "migrating": "info"}  # fmt: skip
_MOST_RANGES = 8


def make(settings: OutputSettings, schema: str = SCHEMA) -> View:
    """Return the view of `dirs` or of `may-delete`."""
    types = ("directory", "assignment", "future", "proof")
    return View(
        schema=schema,
        columns=_ROWS,
        layout=lambda obj: _ROWS if obj["type"] in types else None,
        lines={"table": lambda obj: _line(obj, settings)},
        row_types=frozenset(types),
        sparse=True,
    )


class Printer:
    """Prints what is found, and counts what a person should look at."""

    def __init__(self, report: Report, summary: "ActionSummary") -> None:
        self._report = report
        self._summary = summary
        self._directories = self._strays = self._grave = 0

    def show(self, item: "Item") -> None:
        """Print one item."""
        from logtool.dirs.directories import Directory
        from logtool.dirs.proof import Proof

        summary = self._summary
        if isinstance(item, UnreadableError):
            summary.add(item)
            self._report.unreadable(item)
            return
        self._report.item(item.as_json())
        if isinstance(item, Directory):
            self._directories += 1
            summary.partitions += item.partitions if item.path else 0
        if isinstance(item, Proof):
            self._strays += 1
            summary.partitions += not self._directories
            summary.segments += item.copy.segments
            summary.batches += item.copy.tally.batches
            summary.records += item.copy.records
            summary.bytes += item.copy.bytes
            # A stray is something to do even where it may go; one that was asked about is not.
            summary.to_do |= not item.may_delete or self._directories > 0
        elif item.is_grave:
            self._grave += 1
            summary.to_do = True

    def last_line(self) -> str:
        """Return what it comes to, for people."""
        count = text.count(self._directories, "log dir")
        strays = text.count(self._strays, "stray")
        return f"{text.state(self._summary)}{count}, {strays}, {self._grave} to look at"


def _line(obj: Object, settings: OutputSettings) -> str | None:
    kind = obj["type"]
    if kind == "proof":
        return "\n".join(_proof(obj, settings))
    if kind not in ("directory", "assignment", "future"):
        return None
    style = _STYLES.get(obj["status"], "error")
    status = output.paint_stdout(f"{obj['status']:<12}", style, settings.color)
    words = {"directory": _directory, "assignment": _assignment, "future": _future}
    return f"{status} {words[str(kind)](obj)}"


def _directory(obj: Object) -> str:
    place = "not given" if obj["path"] is None else text.escape(obj["path"])
    node = "" if obj["node"] is None else f", node {obj['node']}"
    deleting = f", {obj['deleting']} to be deleted" if obj["deleting"] else ""
    count = text.count(obj["partitions"], "partition")
    return f"{place}: directory id {obj['directory_id'] or 'none'}{node}, {count}{deleting}"


def _assignment(obj: Object) -> str:
    where = f"lies in {obj['directory_id']}, the metadata log has it in {obj['assigned']}"
    return f"  {text.escape(obj['path'])}: {where}"


def _future(obj: Object) -> str:
    extent = text.extent(obj["log_start_offset"], obj["log_end_offset"])
    line = f"  {text.escape(obj['path'])}: {extent}"
    if obj["live"] is None:
        return f"{line}; no live copy is among the log dirs of its broker"
    whole = "holds everything of" if obj["superset"] else "does not hold everything of"
    behind = f", {text.count(obj['behind'], 'offset')} behind" if obj["behind"] else ""
    line += f"; {whole} {text.escape(obj['live'])}{behind}"
    if obj["diverges_at"] is not None:
        line += f"; they diverge at offset {obj['diverges_at']}"
    becomes = "becomes the partition at the next start, for it is assigned to this log dir"
    return f"{line}; {becomes}" if obj["assigned"] else line


def _proof(obj: Object, settings: OutputSettings) -> list[str]:
    yes = bool(obj["may_delete"])
    answer = output.paint_stdout(
        "may go" if yes else "MUST STAY", "good" if yes else "error", settings.color
    )
    what = "" if obj["kind"] == "live" else f" ({obj['kind']})"
    extent = text.extent(obj["log_start_offset"], obj["log_end_offset"])
    counts = f"{text.count(obj['batches'], 'batch', 'batches')}, {text.size(obj['bytes'])}"
    lines = [f"{answer}: {text.escape(obj['path'])}{what}: {extent}, {counts}"]
    if yes and not obj["batches"]:
        lines.append("  it holds no batch")
    for held in obj["held_by"]:
        spans = [text.through(*span) for span in held["ranges"][:_MOST_RANGES]]
        more = ", ..." if len(held["ranges"]) > _MOST_RANGES else ""
        count = text.count(held["batches"], "batch", "batches")
        lines.append(f"  {text.escape(held['path'])} holds {count}: {', '.join(spans)}{more}")
    if obj["replaced"] and obj["replaced"]["batches"]:
        lines += _replaced(obj["replaced"])
    for only in obj["only_here"]:
        last = "the end" if only["last_offset"] is None else only["last_offset"]
        count = text.count(only["batches"], "batch", "batches")
        span = text.offsets(only["first_offset"], last)
        lines.append(f"  only here: {span}, {count}: {text.escape(only['reason'])}")
    for other in obj["no_proof"]:
        lines.append(f"  no proof: {text.escape(other['path'])}: {text.escape(other['reason'])}")
    if yes:
        lines.append(f"  SHA-256 of the batches: {obj['digest']}")
    return lines


def _replaced(obj: Object) -> list[str]:
    ranges = obj["ranges"]
    spans = [text.through(*span) for span in ranges[:_MOST_RANGES]]
    more = ", ..." if len(ranges) > _MOST_RANGES else ""
    count = text.count(obj["batches"], "batch", "batches")
    found = {"held": "held", "later": "replaced by a later one", "deleted": "a deletion done there"}
    parts = [f"{obj[name]:,} {words}" for name, words in found.items() if obj[name]]
    lines = [
        f"  compacted elsewhere, {count}: {', '.join(spans)}{more}; of the last records of "
        f"{text.count(obj['keys'], 'key')}: {', '.join(parts) or 'none'}"
    ]
    for one in obj["by"]:
        lines.append(f"    by {text.escape(one['path'])}: {text.escape(one['evidence'])}")
    return lines
