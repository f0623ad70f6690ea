"""Output of plans: partitions, changes of their files, and policies of recovery."""

from collections.abc import Iterator, Sequence
from typing import Any

from logtool.actions import GRAVE, FileChange
from logtool.commands.output import OutputSettings, View
from logtool.commands.printing import terminal, text
from logtool.commands.printing.writers import Object, columns
from logtool.commands.views.plan_tables import DOCUMENT
from logtool.disk import shell
from logtool.formats.names import DirectoryKind
from logtool.schemas.columns import Way
from logtool.schemas.printed import ACTION, UNDO

SCHEMA = DOCUMENT.schema
_ACTION = columns(*ACTION.names(Way.CSV))
_MARKDOWN = columns("action", "path", "position", "length", "lost_records", "reason")
_STYLES = {"refuse": "error", "offline": "error", "truncate": "warning", "remove": "warning"}
_ROUTINE = frozenset(
    {FileChange.CREATE, FileChange.REPLACE, "recover", "purge", "tiered", "reappear"}
)
"""Actions that a table lists one by one only with -v."""
_CHECKPOINT_SOURCES = {
    "last-entry": "in its last entry",
    "recovery-point": "the recovery point",
    "snapshot": "the offset of the producer snapshot",
}
"""Texts for the checkpoint of a transaction index."""
_POLICY_TITLES = ("policy", "read", "bytes", "time", "unread", "bytes", "misses")
_MOST_NAMED = 10
"""Places of damage that are named for each policy."""


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


def is_routine(obj: Object) -> bool:
    """Return whether an action is one of those that follow from another."""
    if obj["type"] != "action" or obj["lost_records"]:
        return False
    routine = obj["action"] in _ROUTINE or obj["path"].endswith((".snapshot", ".deleted"))
    index = obj["path"].endswith("index")
    return bool(routine or (obj["action"] == FileChange.REMOVE and index))


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
        return _policies_table(obj)
    if obj["type"] == "undo":
        return undo_line(obj["path"])
    if obj["type"] == "finding":
        label = terminal.paint_stdout(f"{obj['severity']:<9}", obj["severity"], settings.color)
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
        label = terminal.paint_stdout(label, style, settings.color)
    indent = "  " if of_partition else ""
    return f"{indent}{label} {place}: {text.escape(obj['reason'])}{_loss(obj)}"


def _partition(obj: Object) -> str:
    """Return the heading of a partition."""
    name = text.escape(obj["path"])
    if obj["outcome"] != "loads":
        return f"{name}: {_OUTCOMES[obj['outcome']]}{_other_end(obj)}"
    if str(obj["path"]).endswith(str(DirectoryKind.DELETE)):
        return f"{name}: deleted after the start, with all its records"
    parts = [text.extent(obj["log_start_offset"], obj["log_end_offset"]) + _other_end(obj)]
    if obj["recovered_segments"]:
        parts.append(
            f"{obj['recovered_segments']} of {text.count(obj['segments'], 'segment')} recovered, "
            f"{text.size(obj['bytes_scanned'] + obj['bytes_replayed'])} read"
        )
    if obj["lost_records"]:
        parts.append(f"LOSES {text.count(obj['lost_records'], 'record')}")
    elif lost := (obj["lost_acknowledged"] or 0) - obj["lost_before"]:
        parts.append(f"LOSES {text.count(lost, 'acknowledged offset')}")
    if obj["lost_before"]:
        parts.append(f"LACKS {text.count(obj['lost_before'], 'acknowledged offset')}")
    fix = [f"  next      {text.escape(obj['fix'])}"] if obj["fix"] else []
    return "\n".join([f"{name}: {', '.join(parts)}", *fix, *_playback_lines(obj)])


def _playback_lines(obj: Object) -> Iterator[str]:
    """Yield the lines about the playback of a partition; none where there is no playback."""
    if obj["distrust"]:
        yield f"  was checked and not trusted: {text.escape(obj['distrust'])}"
    playback = obj["playback"]
    if playback is None:
        return
    yield (
        f"  checkpoints: producer snapshot {playback['producer_snapshot_checkpoint']}, transaction "
        f"index {playback['transaction_index_checkpoint']} "
        f"({_CHECKPOINT_SOURCES[playback['transaction_index_checkpoint_from']]}), time index "
        f"{playback['time_index_checkpoint']}"
    )
    line = f"  the playback starts at offset {playback['starting_offset']}"
    if playback["replayed_from"] != playback["starting_offset"]:
        line += f", with the state at offset {playback['replayed_from']}"
    yield line + f"; {text.size(playback['bytes_saved'])} less to read than for a rebuild"


def _other_end(obj: Object) -> str:
    """Return where the log ends if it is cut the other way, where that is another place."""
    broker, recover = obj["broker_log_end_offset"], obj["recover_log_end_offset"]
    if broker == recover or recover is None:
        return ""
    if broker is None:
        return " (a broker would not start with this log)" if obj["outcome"] == "loads" else ""
    if obj["log_end_offset"] == broker:
        return f" (after logtool recover the log ends at {recover})"
    return f" (after a broker's recovery the log ends at {broker})"


_OUTCOMES = {
    "refuses": "A BROKER REFUSES TO START",
    "offline": "A BROKER TAKES THE LOG DIR OFFLINE",
    "unknown": "the effect on a broker is not known",
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
    found = f"; this loses {' and '.join(counted) or 'an unknown number of records'}"
    if obj["first_offset"] is not None:
        found += f", {text.offsets(obj['first_offset'], obj['last_offset'])}"
    if obj["below_high_watermark"]:
        found += ", BELOW THE HIGH WATERMARK"
    return found


def _policies_table(obj: Object) -> str:
    """Return the table of what each policy reads and misses, at most 80 columns wide."""
    rows = [_policy_row(one) for one in obj["policies"]]
    widths = [max(map(len, cells)) for cells in zip(_POLICY_TITLES, *rows, strict=True)]
    border = ["-" * width for width in widths]
    lines = [_policy_line(cells, widths) for cells in (_POLICY_TITLES, border, *rows)]
    return "\n".join([*lines, *_missed_lines(obj["policies"])])


def _policy_row(one: Object) -> tuple[str, ...]:
    return (
        one["policy"],
        f"{one['segments']:,}",
        text.size(one["bytes"]),
        text.duration(one["seconds"]),
        f"{one['unread_segments']:,}",
        text.size(one["unread_bytes"]),
        f"{len(one['missed']):,}",
    )


def _policy_line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return the cells in a row, the numbers at the right; a space keeps it from being folded."""
    first, *rest = cells
    padded = [f"{cell:>{width}}" for cell, width in zip(rest, widths[1:], strict=True)]
    return "  ".join([f" {first:<{widths[0]}}", *padded])


def _missed_lines(policies: Sequence[Object]) -> Iterator[str]:
    for one in policies:
        for place in one["missed"][:_MOST_NAMED]:
            path = "/".join(place["path"].split("/")[-2:])
            at = "" if place["position"] is None else f" @{place['position']}"
            reason = text.escape(place["reason"])
            yield f"{one['policy']} misses {text.escape(path)}{at}: {reason}"
        more = len(one["missed"]) - _MOST_NAMED
        if more > 0:
            yield f"{one['policy']} misses {text.count(more, 'place')} more"
