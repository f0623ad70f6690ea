"""How plans look: partitions, and what becomes of their files."""

from typing import Any

from logtool.actions import GRAVE
from logtool.commands import output
from logtool.commands.output import OutputSettings, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object, columns
from logtool.commands.views import playback, policies
from logtool.commands.views.collapsing import is_routine
from logtool.commands.views.plan_tables import DOCUMENT
from logtool.disk import shell
from logtool.schemas.columns import Way
from logtool.schemas.printed import ACTION, UNDO

SCHEMA = DOCUMENT.schema
_ACTION = columns(*ACTION.names(Way.CSV))
_MARKDOWN = columns("action", "path", "position", "length", "lost_records", "reason")
_STYLES = {"refuse": "error", "offline": "error", "truncate": "warning", "remove": "warning"}


def make(settings: OutputSettings) -> View:
    """Return the view of every command that plans or changes something."""
    return View(
        schema=SCHEMA,
        columns=_ACTION,
        layout=lambda obj: _MARKDOWN if obj["type"] == "action" else None,
        lines={"table": lambda obj: _line(obj, settings)},
        row_types=frozenset({"action"}),
        sparse=True,
    )


def undo_object(path: object) -> dict[str, Any]:
    """Return the object with an undo directory."""
    return UNDO.make(path=path)


def undo_line(path: object) -> str:
    """Return the command that goes back, as it is typed."""
    return f"undo with: logtool undo --apply {shell.path(str(path))}"


def _line(obj: Object, settings: OutputSettings) -> str | None:
    if obj["type"] == "partition":
        return _partition(obj)
    if obj["type"] == "policies":
        return policies.table(obj)
    if obj["type"] == "undo":
        return undo_line(obj["path"])
    if obj["type"] == "finding":
        label = output.paint_stdout(f"{obj['severity']:<9}", obj["severity"], settings.color)
        said = f"{label} {obj['code']}  {text.escape(obj['path'])}: {text.escape(obj['message'])}"
        return f"{said}; next: {obj['next']}"
    if obj["type"] != "action" or (is_routine(obj) and not settings.verbose):
        return None
    action = str(obj["action"])
    of_partition = obj["topic"] is not None
    name = text.escape(obj["path"].rpartition("/")[2] if of_partition else obj["path"])
    if "to" in obj:
        name += f" to {text.escape(obj['to'])}"
    place = name if obj["position"] is None else f"{name} @{obj['position']}"
    if obj["length"]:
        place += f", {text.size(obj['length'])}"
    style = "error" if obj["lost_records"] or action in GRAVE else _STYLES.get(action)
    label = f"{action:<9}"
    if style:
        label = output.paint_stdout(label, style, settings.color)
    indent = "  " if of_partition else ""
    return f"{indent}{label} {place}: {text.escape(obj['reason'])}{_loss(obj)}"


def _partition(obj: Object) -> str:
    """Return the heading of a partition."""
    name = text.escape(obj["path"])
    if obj["outcome"] != "loads":
        return f"{name}: {_OUTCOMES[obj['outcome']]}{_other_end(obj)}"
    parts = [text.extent(obj["log_start_offset"], obj["log_end_offset"]) + _other_end(obj)]
    if obj["recovered_segments"]:
        parts.append(
            f"{obj['recovered_segments']} of {text.count(obj['segments'], 'segment')} recovered, "
            f"{text.size(obj['bytes_scanned'] + obj['bytes_replayed'])} read"
        )
    if obj["lost_records"]:
        parts.append(f"LOSES {text.count(obj['lost_records'], 'record')}")
    elif obj["lost_acknowledged"]:
        verb = "LOSES" if obj["lost_bytes"] else "LACKS"
        parts.append(f"{verb} {text.count(obj['lost_acknowledged'], 'acknowledged offset')}")
    fix = [f"  next      {text.escape(obj['fix'])}"] if obj["fix"] else []
    return "\n".join([f"{name}: {', '.join(parts)}", *fix, *playback.lines(obj)])


def _other_end(obj: Object) -> str:
    """Return where the log ends if it is cut the other way, where that is another place."""
    broker, recover = obj["broker_log_end_offset"], obj["recover_log_end_offset"]
    if broker == recover or recover is None:
        return ""
    if broker is None:
        return " (a broker would not start with this log)"
    if obj["log_end_offset"] == broker:
        return f" (after logtool recover the log ends at {recover})"
    return f" (after a broker's recovery the log ends at {broker})"


_OUTCOMES = {
    "refuses": "A BROKER REFUSES TO START",
    "offline": "A BROKER TAKES THE LOG DIR OFFLINE",
    "unknown": "what a broker does is not known",
}


def _loss(obj: Object) -> str:
    bad, below = obj["lost_bad_records"], obj["below_high_watermark"]
    if not (obj["lost_records"] or obj["lost_batches"] or below):
        return ""
    kinds = (
        (obj["lost_records"] - bad, obj["lost_batches"], "sound batch"),
        (bad, obj["lost_bad_batches"], "bad batch"),
    )
    counted = [
        f"{text.count(records, 'record')} in {text.count(batches, kind, f'{kind}es')}"
        for records, batches, kind in kinds
        if batches
    ]
    found = f"; this loses {' and '.join(counted) or 'records that nobody can count'}"
    if obj["first_offset"] is not None:
        found += f", {text.offsets(obj['first_offset'], obj['last_offset'])}"
    if obj["below_high_watermark"]:
        found += ", BELOW THE HIGH WATERMARK"
    return found
