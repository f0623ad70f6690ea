"""How rebuilt indexes look, and the last line about them."""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from logtool.actions import Action
from logtool.commands import output
from logtool.commands.output import OutputSettings, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object
from logtool.commands.views import actions
from logtool.errors import UnreadableError
from logtool.exits import Exit
from logtool.rebuild import BLOCKED
from logtool.running.summary import ActionSummary
from logtool.schemas.printed import ACTION

if TYPE_CHECKING:
    from logtool.rebuild import Rebuild

_STYLES = {"remove": "warning"} | dict.fromkeys(BLOCKED, "error")


def make(settings: OutputSettings) -> View:
    """Return the view of `rebuild-index`: that of every plan, with a line for each file."""
    return replace(actions.make(settings), lines={"table": lambda obj: _line(obj, settings)})


def run(job: "Rebuild", report: Report, summary: ActionSummary) -> Exit:
    """Print what a run does, or would do; returns the exit status."""
    counts: Counter[str] = Counter()
    writes = job.consent.apply or job.consent.output is not None
    with report:
        for item in job:
            if isinstance(item, Action):
                counts["built"] += item.change is not None
                counts["blocked"] += item.action in BLOCKED
                report.item(ACTION.row(item))
            elif isinstance(item, UnreadableError):
                report.unreadable(item)
            else:
                summary.refused = True
                report.refused(item)
        for undo_dir in job.undo_dirs:
            report.item(actions.undo_object(undo_dir))
        summary.to_do = counts["blocked"] > 0 or (counts["built"] > 0 and not writes)
    status = report.exit_status()
    report.note(_last_line(job, counts, status), {0: "good", 1: "warning"}.get(int(status)))
    return status


def _last_line(job: "Rebuild", counts: Counter[str], status: Exit) -> str:
    segments = text.count(job.summary.segments, "segment")
    looked = f"{text.state(job.summary)}{segments} looked at"
    files = text.count(counts["built"], "file")
    blocked = counts["blocked"]
    tail = f"; {text.count(blocked, 'obstacle')}, see above" if blocked else ""
    if not counts["built"]:
        return f"{looked}, nothing to build{'' if job.summary.complete else ' there'}{tail}"
    if job.consent.output is not None:
        return f"{looked}, {files} built in {job.consent.output}{tail}"
    if job.undo_dirs:
        return f"{looked}, {files} changed{tail}"
    if job.consent.apply or status not in (Exit.OK, Exit.FINDINGS):
        return f"{looked}, {files} to change; nothing was written{tail}"
    return f"{looked}, {files} to change; nothing was written; add --apply to do it{tail}"


def _line(obj: Object, settings: OutputSettings) -> str | None:
    """Return an action as a person reads it."""
    if obj["type"] == "undo":
        return actions.undo_line(obj["path"])
    if obj["type"] != "action":
        return None
    action = str(obj["action"])
    place = text.escape(obj["path"])
    if obj["position"] is not None:
        place += f" @{obj['position']}"
    elif obj["length"] is not None:
        place += f", {text.size(obj['length'])}"
    label = f"{action:<10}"
    if action in _STYLES:
        label = output.paint_stdout(label, _STYLES[action], settings.color)
    return f"{label} {place}: {text.escape(obj['reason'])}"
