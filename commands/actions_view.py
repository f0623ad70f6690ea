"""How plans look: partitions, what becomes of their files, how long it takes."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from logtool.commands import output, text
from logtool.commands.output import Report, Settings, View
from logtool.commands.writers import Object, columns
from logtool.errors import LogtoolError, UnreadableError
from logtool.plan import GRAVE, Action, Kind
from logtool.summary import ActionSummary

if TYPE_CHECKING:
    from logtool.forecast import Duration, PartitionForecast

SCHEMA = "logtool.plan/1"
_ACTION = columns(
    "action", "path", "target", "topic", "partition", "segment", "position", "length",
    "first_offset", "last_offset", "lost_bytes", "lost_batches", "lost_records",
    "lost_behind_damage", "below_high_watermark", "reason",
)  # fmt: skip
_MARKDOWN = columns("action", "path", "position", "length", "lost_records", "reason")
_STYLES = {"refuse": "error", "offline": "error", "truncate": "warning", "remove": "warning"}
_ROUTINE = frozenset({Kind.CREATE, Kind.REPLACE, "recover"})
"""What a table shows with -v only, one by one."""


def make(settings: Settings) -> View:
    """Return the view of every command that plans or changes something."""
    return View(
        SCHEMA,
        _ACTION,
        lambda obj: _MARKDOWN if obj["type"] == "action" else None,
        {"table": lambda obj: _line(obj, settings)},
        frozenset({"action"}),
        sparse=True,
    )


def is_routine(obj: Object) -> bool:
    """Return whether an action is one of those that follow from another."""
    if obj["type"] != "action" or obj["lost_records"]:
        return False
    routine = obj["action"] in _ROUTINE or obj["path"].endswith((".snapshot", ".deleted"))
    index = obj["path"].endswith("index")
    return bool(routine or (obj["action"] == Kind.REMOVE and index))


Planned = tuple[Action, Object]


class Printer:
    """Prints what is planned; a table leaves out what follows from something else."""

    def __init__(self, report: Report, summary: ActionSummary) -> None:
        self._report = report
        self._summary = summary
        self._brief = report.settings.format == "table" and not report.settings.verbose
        self.losses = self.lost_records = self.grave = self.withheld = 0
        self.refused = False

    def partition(self, forecast: "PartitionForecast") -> None:
        """Print one partition and what becomes of its files."""
        summary, losses = self._summary, forecast.losses
        summary.partitions += 1
        summary.segments += forecast.segments
        summary.records += forecast.records_scanned
        summary.bytes += forecast.bytes_read
        self.losses += bool(losses)
        self.lost_records += sum(loss.records for loss in losses)
        actions = [(action, action.as_json()) for action in forecast.actions]
        news = not all(is_routine(obj) for _, obj in actions)
        if news or not self._brief:
            self._report.item(forecast.as_json())
        for action, obj in _collapsed(actions) if self._brief else actions:
            self.action(action, obj)

    def action(self, action: Action, obj: Object | None = None) -> None:
        """Print one action."""
        obj = obj or action.as_json()
        self.grave += action.is_grave
        if self._brief and is_routine(obj):
            self.withheld += action.change is not None
            return
        self._report.item(obj)

    def problem(self, error: LogtoolError) -> None:
        """Print why something was not looked at or not done."""
        if isinstance(error, UnreadableError):
            self._summary.add(error)
            self._report.unreadable(error)
            return
        self._summary.refused = self.refused = True
        self._report.refused(error)


def _collapsed(actions: Sequence[Planned]) -> Iterator[Planned]:
    """Yield the actions with segments that go one behind the other, for one reason, as one."""
    shown: list[Planned] = []
    for action, obj in actions:
        if is_routine(obj):
            yield action, obj  # counted, not printed
        elif shown and _same_fate(shown[-1][1], obj):
            shown[-1] = shown[-1][0], _merged(shown[-1][1], obj)
        else:
            shown.append((action, obj))
    yield from shown


def _same_fate(one: Object, other: Object) -> bool:
    keys = ("action", "reason", "below_high_watermark")
    same = all(one[key] == other[key] for key in keys)
    return same and one["action"] == Kind.REMOVE and other["path"].endswith(".log")


def _merged(one: Object, other: Object) -> Object:
    """Return the object of two: their sums, from the first to the last."""
    merged = dict(one)
    for key in ("length", "lost_bytes", "lost_batches", "lost_records", "lost_behind_damage"):
        merged[key] = (one[key] or 0) + (other[key] or 0)
    firsts = [obj["first_offset"] for obj in (one, other) if obj["first_offset"] is not None]
    lasts = [obj["last_offset"] for obj in (one, other) if obj["last_offset"] is not None]
    merged["first_offset"], merged["last_offset"] = (
        min(firsts, default=None),
        max(lasts, default=None),
    )
    merged["to"] = other["path"].rpartition("/")[2]
    return merged


def last_lines(
    printer: Printer, found: Sequence["PartitionForecast"], time: "Duration | None"
) -> Iterator[str]:
    """Yield what a forecast says in the end, for people."""
    if printer.withheld:
        yield f"{text.count(printer.withheld, 'file')} written anew or dropped with that, see -v"
    read = [one for one in found if one.bytes_read]
    if time and read:
        longest = ""
        if len(read) > 1 and time.critical:
            longest = f", {time.critical.name} alone {text.duration(time.critical_seconds)}"
        yield (
            f"{text.size(time.bytes)} of {text.count(len(read), 'partition')} to be read: about "
            f"{text.duration(time.seconds)} in {text.count(time.threads, 'thread')} at "
            f"{text.size(time.bytes_per_second)}/s each{longest}; "
            f"let probes wait {time.probe_timeout_s} s"
        )
    stops = sum(one.outcome != "loads" for one in found)
    parts = [text.count(len(found), "partition")]
    if stops:
        parts.append(f"{stops} do not load")
    if printer.losses:
        lost = text.count(printer.lost_records, "record")
        parts.append(f"{lost} lost in {text.count(printer.losses, 'partition')}")
    yield ", ".join(parts) + ("" if stops or printer.losses else ": nothing is lost")


def recovered_lines(
    printer: Printer, changes: int, stopped: int, *, applied: bool
) -> Iterator[str]:
    """Yield what a command that changes files says in the end, for people."""
    if printer.withheld:
        yield f"{text.count(printer.withheld, 'file')} written anew or dropped with that, see -v"
    files = text.count(changes, "change")
    if stopped:
        yield f"{text.count(stopped, 'partition')} left alone: a broker would not load it"
    if printer.losses:
        lost = text.count(printer.lost_records, "record")
        yield f"{lost} lost in {text.count(printer.losses, 'partition')}"
    if not changes:
        yield "nothing to do"
    elif applied:
        yield f"{files} asked for" if printer.refused else f"{files} made"
    else:
        yield f"{files} to make; nothing was written, --apply does it"


def undo_object(path: object) -> dict[str, Any]:
    """Return the object that names an undo directory."""
    return {"type": "undo", "path": str(path)}


def _line(obj: Object, settings: Settings) -> str | None:
    if obj["type"] == "partition":
        return _partition(obj)
    if obj["type"] == "undo":
        return f"undo with: logtool undo --apply {text.escape(obj['path'])}"
    if obj["type"] != "action" or (is_routine(obj) and not settings.verbose):
        return None
    action = str(obj["action"])
    name = text.escape(obj["path"].rpartition("/")[2])
    if "to" in obj:
        name += f" to {obj['to']}"
    place = name if obj["position"] is None else f"{name} @{obj['position']}"
    if obj["length"]:
        place += f", {text.size(obj['length'])}"
    style = "error" if obj["lost_records"] or action in GRAVE else _STYLES.get(action)
    label = f"{action:<9}"
    if style:
        label = output.paint_stdout(label, style, settings.color)
    return f"  {label} {place}: {text.escape(obj['reason'])}{_loss(obj)}"


def _partition(obj: Object) -> str:
    """Return the heading of a partition."""
    name = text.escape(obj["path"])
    if obj["outcome"] != "loads":
        return f"{name}: {_OUTCOMES[obj['outcome']]}"
    parts = [f"offsets {obj['log_start_offset']} to {obj['log_end_offset']}"]
    if obj["recovered_segments"]:
        parts.append(
            f"{obj['recovered_segments']} of {text.count(obj['segments'], 'segment')} recovered, "
            f"{text.size(obj['bytes_scanned'] + obj['bytes_replayed'])} read"
        )
    if obj["lost_records"]:
        parts.append(f"LOSES {text.count(obj['lost_records'], 'record')}")
    return f"{name}: {', '.join(parts)}"


_OUTCOMES = {
    "refuses": "A BROKER REFUSES TO START",
    "offline": "A BROKER TAKES THE LOG DIR OFFLINE",
    "unknown": "what a broker does is not known",
}


def _loss(obj: Object) -> str:
    if not obj["lost_batches"] and not obj["below_high_watermark"]:
        return ""
    found = (
        f"; {text.count(obj['lost_records'], 'record')} in "
        f"{text.count(obj['lost_batches'], 'sound batch', 'sound batches')} go"
    )
    if obj["first_offset"] is not None:
        found += f", offsets {obj['first_offset']} to {obj['last_offset']}"
    if obj["below_high_watermark"]:
        found += ", BELOW THE HIGH WATERMARK"
    return found
