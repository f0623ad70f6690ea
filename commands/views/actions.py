"""How plans look: partitions, what becomes of their files, how long it takes."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from logtool.actions import GRAVE, Action, Kind
from logtool.commands import output
from logtool.commands.output import OutputSettings, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object, columns
from logtool.commands.views import playback, policies
from logtool.commands.views.collapsing import collapsed, is_routine
from logtool.commands.views.plan_tables import DOCUMENT, FORECAST
from logtool.disk import shell
from logtool.errors import LogtoolError, UnreadableError, UnwritableError
from logtool.findings import Finding
from logtool.log.redpanda import REDPANDA
from logtool.running.summary import ActionSummary
from logtool.schemas.columns import Way
from logtool.schemas.printed import ACTION, UNDO
from logtool.schemas.tables import FINDING

if TYPE_CHECKING:
    from pathlib import Path

    from logtool.startup.below import Below
    from logtool.startup.duration import Duration
    from logtool.startup.partition import PartitionForecast
    from logtool.startup.recover import Recover

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


class Printer:
    """Prints what is planned; a table leaves out what follows from something else."""

    def __init__(self, report: Report, summary: ActionSummary) -> None:
        self._report = report
        self._summary = summary
        self._brief = report.settings.format == "table" and not report.settings.verbose
        self.losing: list[str] = []
        """Partitions that lose records, as --accept-loss takes them."""
        self.lost_records = self.cut = self.stray = self.grave = self.withheld = self.shown = 0
        self._last_withheld: Path | None = None
        self.uncounted: list[int] = []
        """Of partitions that lose what nobody can count: acknowledged offsets."""
        self.lacking: list[int] = []
        """Acknowledged offsets that partitions lack by now, whatever happens next."""
        self.filled = self.unfilled = 0
        """Damaged ranges that another copy fills, and those that none does."""
        self.offline = self.discarded = self.unnoticed = self.zombies = self.overlaps = 0
        self.refuses = False
        """Whether a broker would not start, whatever the partitions hold."""

    def partition(self, forecast: "PartitionForecast") -> None:
        """Print one partition and what becomes of its files."""
        summary, losses = self._summary, forecast.losses
        summary.partitions += 1
        summary.segments += forecast.segments
        summary.records += forecast.records_scanned
        summary.bytes += forecast.bytes_read
        lost = sum(loss.records for loss in losses)
        acknowledged = forecast.lost_acknowledged or 0
        if losses:
            self.losing.append(f"{forecast.request.topic}-{forecast.request.partition}")
            self.uncounted += [acknowledged] if not lost else []
        elif acknowledged:
            self.lacking.append(acknowledged)
        self.cut += any(
            action.action == Kind.TRUNCATE and not action.loss.only_zeros
            for action in forecast.actions
        )
        self.lost_records += lost
        actions = [(action, ACTION.row(action)) for action in forecast.actions]
        of_playback = forecast.bytes_saved > 0 or forecast.distrust
        news = of_playback or not all(is_routine(obj) for _, obj in actions)
        if news or not self._brief:
            self._report.item(FORECAST.row(forecast))
        for action, obj in collapsed(actions) if self._brief else actions:
            self.action(action, obj)

    def action(self, action: Action, obj: Object | None = None) -> None:
        """Print one action."""
        obj = obj or ACTION.row(action)
        self.grave += action.is_grave
        self.stray += action.action == "stray"
        self.filled += action.action == "fill"
        self.unfilled += action.action == "unfilled"
        self.offline += action.action == "offline" and action.topic is None
        self.discarded += action.action == "discard"
        self.unnoticed += action.action == "unnoticed"
        self.zombies += action.action == "zombie"
        self.overlaps += action.action == "overlap"
        self.refuses |= action.action == "refuse" and action.topic is None
        if self._brief and is_routine(obj):
            # A file that is written twice, as recovery points that fall and rise are, counts once.
            self.withheld += action.change is not None and action.path != self._last_withheld
            self._last_withheld = action.path
            return
        self.shown += 1
        self._report.item(obj)

    def finding(self, finding: Finding) -> None:
        """Print what the host does not have for the logs."""
        self._summary.add(finding)
        self.shown += 1
        self._report.item(FINDING.row(finding))

    def problem(self, error: LogtoolError) -> None:
        """Print why something was not looked at or not done."""
        if isinstance(error, UnreadableError):
            self._report.unreadable(error)
        elif isinstance(error, UnwritableError):
            self._summary.unwritten += 1
            self._report.refused(error, "unwritable")
        else:
            self._summary.refused = True
            self._report.refused(error)

    def withheld_line(self, *, failed: bool = False) -> str:
        """Return what the table leaves out, for people; `failed`: it was not done as planned."""
        also = " as well" if self.shown else ""
        one = self.withheld == 1
        verb = ("was to be" if one else "were to be") if failed else "is" if one else "are"
        files = text.count(self.withheld, "file")
        return f"{files} {verb} rebuilt or removed{also}; -v lists {'it' if one else 'them'}"


def last_lines(
    printer: Printer,
    forecasts: Sequence["PartitionForecast"],
    time: "Duration | None",
    found: "Below | None",
    summary: ActionSummary,
) -> Iterator[str]:
    """Yield what a forecast says in the end, for people."""
    if printer.withheld:
        yield printer.withheld_line()
    yield from _time_lines(forecasts, time)
    yield from _below_lines(printer, found)
    yield from playback.last_lines(forecasts)
    stops = sum(forecast.outcome != "loads" for forecast in forecasts)
    parts = [text.count(len(forecasts), "partition")]
    recovered = sum(forecast.recovered for forecast in forecasts)
    if recovered:
        segments = text.count(sum(forecast.segments for forecast in forecasts), "segment")
        parts.append(f"{recovered:,} of {segments} recovered")
    if stops:
        parts.append(f"{stops:,} {'does' if stops == 1 else 'do'} not load")
    if printer.stray:
        parts.append(f"{printer.stray:,} put aside as stray")
    if printer.offline:
        parts.append(f"{text.count(printer.offline, 'log dir')} offline")
    if printer.discarded:
        parts.append(f"{text.count(printer.discarded, 'copy', 'copies')} emptied or deleted")
    if printer.refuses:
        parts.append("a broker refuses to start")
    if printer.zombies:
        what = text.count(printer.zombies, "segment")
        parts.append(f"{what} of a past that was truncated away taken for the log")
    if printer.overlaps:
        parts.append(f"{text.count(printer.overlaps, 'segment')} not decided on")
    parts += _losses(printer, "lost")
    line = ", ".join(parts)
    if not forecasts and summary.complete:
        line = _NONE
    bad = (
        stops
        or printer.stray
        or printer.refuses
        or printer.losing
        or printer.lacking
        or printer.offline
        or printer.discarded
        or printer.zombies
        or printer.overlaps
    )
    if forecasts and summary.complete and not bad:
        line += ": no sound record is lost" if printer.cut else ": nothing is lost"
    yield text.state(summary) + line


def _time_lines(forecasts: Sequence["PartitionForecast"], time: "Duration | None") -> Iterator[str]:
    """Yield how long the start takes, and what takes longest; nothing where no log is read."""
    read = sum(forecast.bytes_read > 0 for forecast in forecasts)
    if time is None or not read:
        return
    rates = time.rates
    said = text.span(rates.slow, rates.fast, lambda rate: text.rate(rate, 1))
    log_dirs = {forecast.request.log_dir for forecast in forecasts if forecast.bytes_read}
    each = " for each log dir" if len(log_dirs) > 1 else ""
    yield (
        f"{text.size(time.bytes)} of {text.count(read, 'partition')} to be read: "
        f"{text.span(time.seconds_low, time.seconds_high, text.duration)} in "
        f"{text.count(time.threads, 'thread')}{each} at {said} each; let probes wait "
        f"{time.probe_timeout_s} s"
    )
    if rates.pieces:
        disk = "" if rates.disk is None else f"; the disk itself gave {text.rate(rates.disk, 1)}"
        yield f"that rests on {text.count(rates.pieces, 'stretch', 'stretches')} timed here{disk}"
    for one in time.slowest if read > 1 else ():
        span = text.span(one.seconds_low, one.seconds_high, text.duration)
        yield f"- {one.forecast.request.path.name}, {span}: {', '.join(one.causes)}"
    if read > len(time.slowest) > 0:
        yield f"- and {text.count(read - len(time.slowest), 'partition')} that take less"


def _below_lines(printer: Printer, found: "Below | None") -> Iterator[str]:
    """Yield a line about what lies where no start reads it, and how to look there."""
    if found is None:
        return
    told = ""
    if printer.unnoticed:
        told = f"there is damage ({text.count(printer.unnoticed, 'place')} told above), and "
    verb = "was" if found.segments == 1 else "were"
    where = "below the recovery point, where no broker looks"
    if found.flavour is REDPANDA:
        where = "in segments with a base index, which no start reads"
    yield (
        f"{where}, {told}"
        f"{text.count(found.segments, 'segment')} ({text.size(found.bytes)}) {verb} not read; "
        f"to check {'it' if found.segments == 1 else 'them'}: {found.command}"
    )


def recovered_lines(
    printer: Printer,
    forecasts: Sequence["PartitionForecast"],
    job: "Recover",
    changes: int,
    summary: ActionSummary,
) -> Iterator[str]:
    """Yield what a recovery says in the end, for people."""
    applied = job.consent.apply
    if printer.withheld:
        yield printer.withheld_line(failed=summary.unwritten > 0 and job.made < changes)
    for one in forecasts:
        name = f"{one.request.topic}-{one.request.partition}"
        target, end = one.request.start.truncate_to, one.log_end
        is_shorter = target is not None and one.outcome == "loads" and end <= target
        if is_shorter and name not in printer.losing:
            yield f"{one.request.path}: ends at {end}; there is nothing to cut from {target} on"
    for log_dir in _stopped_in_order(forecasts, printer.losing):
        yield f"{log_dir}: nothing to recover, it was stopped in order; --full does it anyway"
    stopped = sum(forecast.outcome != "loads" for forecast in forecasts)
    if stopped:
        what = "it" if stopped == 1 else "them"
        partitions = text.count(stopped, "partition")
        yield f"{partitions} left alone: a broker would not load {what}"
    yield from playback.last_lines(forecasts)
    all_made = applied and job.made == changes
    if printer.filled:
        verb = "filled" if all_made else "to be filled"
        yield f"{text.count(printer.filled, 'damaged range')} {verb} from other copies"
    if printer.unfilled:
        yield f"{text.count(printer.unfilled, 'damaged range')} that no other copy fills"
    yield from _losses(printer, "lost" if all_made else "would be lost")
    if printer.losing and not applied:
        options = " ".join(shell.option("--accept-loss", name) for name in printer.losing)
        yield f"to accept that: {options}"
    files = text.count(changes, "change")
    if not applied and changes:
        outcome = "--apply refuses as long as that is so" if job.blocked else "add --apply to do it"
        line = f"{files} to make; nothing was written; {outcome}"
    elif not changes and summary.exit_status() == 0:
        line = "nothing to do" if forecasts else _NONE
    elif job.begun and summary.unwritten:
        line = f"part of {files} made"
    elif not job.made:
        line = "nothing was changed"
    else:
        line = f"{files} made" if all_made else f"{job.made:,} of {files} made"
    yield text.state(summary) + line


def _losses(printer: Printer, verb: str) -> Iterator[str]:
    """Yield how much is lost, and how much was lost before; offsets where nobody can count."""
    counted = len(printer.losing) - len(printer.uncounted)
    if counted:
        lost = text.count(printer.lost_records, "record")
        yield f"{lost} {verb} in {text.count(counted, 'partition')}"
    if printer.uncounted:
        lost = text.count(sum(printer.uncounted), "acknowledged offset")
        yield f"{lost} {verb} in {text.count(len(printer.uncounted), 'partition')}"
    if printer.lacking:
        lost = text.count(sum(printer.lacking), "acknowledged offset")
        where = text.count(len(printer.lacking), "partition")
        yield f"{lost} {'was' if sum(printer.lacking) == 1 else 'were'} lost before, in {where}"


def _stopped_in_order(
    forecasts: Sequence["PartitionForecast"], losing: Sequence[str]
) -> "Iterator[Path]":
    """Yield the log dirs whose logs a broker takes as they are, none of which is `losing`."""
    recovered: dict[Path, int] = {}
    for forecast in forecasts:
        if forecast.request.start.clean:
            log_dir = forecast.request.path.parent
            acts = f"{forecast.request.topic}-{forecast.request.partition}" in losing
            recovered[log_dir] = recovered.get(log_dir, 0) + forecast.recovered + acts
    return (log_dir for log_dir, count in recovered.items() if not count)


_NONE = "no partition is there"


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
