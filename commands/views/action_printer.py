"""Prints what `plan` says of a start and what `recover` does, and counts for their last lines."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from logtool.actions import HINDRANCES, Action, FileChange
from logtool.commands.output import Printer, Report
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object
from logtool.commands.views import mending
from logtool.commands.views.actions import is_routine
from logtool.commands.views.plan_tables import FORECAST
from logtool.disk import shell
from logtool.errors import LogtoolError
from logtool.findings import Finding, Severity
from logtool.formats import names
from logtool.formats.names import FileKind
from logtool.log.dir import OFFSET_CHECKPOINTS
from logtool.running.summary import ActionSummary
from logtool.schemas.printed import ACTION
from logtool.schemas.tables import FINDING
from logtool.startup.partition import PartitionForecast

NO_PARTITION: Final = "there are no partitions"
_REBUILT = (FileKind.LEADER_EPOCH_CHECKPOINT, FileKind.PARTITION_METADATA)
"""Files of a partition dir that 'logtool checkpoint rebuild' repairs."""
_MOST_LARGEST = 3
"""Partitions that the line on the largest logs names."""
_Planned = tuple[Action, Object]


class ActionPrinter(Printer[Action | PartitionForecast | LogtoolError]):
    """Prints what is planned; a table leaves out what follows from something else."""

    def __init__(self, report: Report, summary: ActionSummary) -> None:
        self._report = report
        self._summary = summary
        self._brief = report.settings.format == "table" and not report.settings.verbose
        self._forecasts: list[PartitionForecast] = []
        """Forecasts of the partitions, without the actions that the last lines do not need."""
        self._losing: list[PartitionForecast] = []
        """Forecasts of the partitions that lose records, without their actions."""
        self._hiding: list[PartitionForecast] = []
        """Forecasts of the partitions whose start hides sound batches, without their actions."""
        self._bad_checkpoints: list[Path] = []
        """The log dirs with a checkpoint that stops the broker."""
        self._lost_records = self._cut = self._grave = 0
        self._withheld = self._shown = 0
        self._purged_bytes = 0
        """Bytes of the logs in directories that the broker deletes."""
        self._last_withheld: Path | None = None
        self._uncounted: list[int] = []
        """Acknowledged offsets of each partition that loses records of unknown number."""
        self._doubts_groups = False
        """True if a partition in which groups are stored loses records, or lacks some."""
        self._lacking: list[int] = []
        """Acknowledged offsets that each partition had lost before this run."""
        self._counts: Counter[str] = Counter()
        """Actions by kind."""
        self._of_log_dirs: Counter[str] = Counter()
        """Actions by kind, of a log dir as a whole."""

    def show(self, item: Action | PartitionForecast | LogtoolError) -> None:
        """Print one action, one partition with its actions, or why something was not done."""
        if isinstance(item, Action):
            self._action(item)
            is_unread = item.action in HINDRANCES and item.topic is None
            if is_unread and names.parse_root_file(item.path.name).kind in OFFSET_CHECKPOINTS:
                self._bad_checkpoints.append(item.path.parent)
        elif isinstance(item, PartitionForecast):
            self._partition(item)
            self._forecasts.append(replace(item, actions=self._kept(item)))
        else:
            self._report.not_done(item)

    def _kept(self, forecast: PartitionForecast) -> tuple[Action, ...]:
        """Return the actions of a partition that the last lines need, by default none."""
        return ()

    def _partition(self, forecast: PartitionForecast) -> None:
        """Print one partition and what becomes of its files."""
        summary, losses, hidden = self._summary, forecast.cut, forecast.hidden
        summary.partitions += 1
        summary.segments += forecast.segments
        summary.records += forecast.records_scanned
        summary.bytes += forecast.bytes_read
        lost = sum(loss.records for loss in losses)
        self._doubts_groups |= forecast.doubts_groups
        acknowledged, before = forecast.lost_acknowledged or 0, forecast.lost_before
        if hidden:
            self._hiding.append(replace(forecast, actions=()))
            acknowledged = max(before, acknowledged - hidden.offsets)
        if losses:
            self._losing.append(replace(forecast, actions=()))
            self._uncounted += [acknowledged - before] if not lost else []
        self._lacking += [before] if before else []
        self._cut += any(
            action.action == FileChange.TRUNCATE and not action.loss.only_zeros
            for action in forecast.actions
        )
        self._lost_records += lost
        actions = [(action, ACTION.row(action)) for action in forecast.actions]
        of_playback = forecast.bytes_saved > 0 or forecast.distrust
        news = of_playback or not all(is_routine(obj) for _, obj in actions)
        if news or not self._brief:
            self._report.item(FORECAST.row(forecast))
        for action, obj in _collapsed(actions) if self._brief else actions:
            self._action(action, obj)

    def _action(self, action: Action, obj: Object | None = None) -> None:
        """Print one action."""
        obj = obj or ACTION.row(action)
        self._grave += action.is_grave
        self._purged_bytes += (action.length or 0) if action.action == "purge" else 0
        self._counts[action.action] += 1
        self._of_log_dirs[action.action] += action.topic is None
        if self._brief and is_routine(obj):
            # A file that is written twice, as recovery points that fall and rise are, counts once.
            self._withheld += action.change is not None and action.path != self._last_withheld
            self._last_withheld = action.path
            return
        self._shown += 1
        self._report.item(obj)

    def _finding(self, finding: Finding) -> None:
        """Print a finding about the host or a log dir; a table leaves out one of severity info."""
        self._summary.add(finding)
        if self._brief and finding.severity is Severity.INFO:
            return
        self._shown += 1
        self._report.item(FINDING.row(finding))

    def _withheld_line(self, *, failed: bool = False) -> str:
        """Return the line on files that the table omits; `failed`: not all was done as planned."""
        also = " as well" if self._shown else ""
        one = self._withheld == 1
        verb = ("was to be" if one else "were to be") if failed else "is" if one else "are"
        files = text.count(self._withheld, "file")
        which = "this file" if one else "these files"
        return f"{files} {verb} rebuilt or removed{also}; -v lists {which}"

    def _losses(self, verb: str) -> Iterator[str]:
        """Yield losses of now and of before; offsets where the number of records is unknown."""
        counted = len(self._losing) - len(self._uncounted)
        if counted:
            lost = text.count(self._lost_records, "record")
            yield f"{lost} {verb} in {text.count(counted, 'partition')}"
        if self._uncounted:
            lost = text.count(sum(self._uncounted), "acknowledged offset")
            yield f"{lost} {verb} in {text.count(len(self._uncounted), 'partition')}"
        if self._hiding:
            hidden = sum(one.hidden.action.loss.records for one in self._hiding if one.hidden)
            where = text.count(len(self._hiding), "partition")
            yield f"{text.count(hidden, 'record')} hidden by the next start in {where}"
        if self._lacking:
            lost = text.count(sum(self._lacking), "acknowledged offset")
            where = text.count(len(self._lacking), "partition")
            yield f"{lost} {'was' if sum(self._lacking) == 1 else 'were'} lost before, in {where}"

    def _hidden_lines(self) -> Iterator[tuple[str, str]]:
        """Yield the commands that make hidden batches readable again, with their ends."""
        for command in mending.show(self._hiding):
            yield "to repair the index that hides sound batches, before the start", command

    def _rebuilding(self) -> Iterator[str]:
        """Yield the commands that repair checkpoints and partition.metadata that stop a broker."""
        log_dirs = list(self._bad_checkpoints)
        for one in self._forecasts:
            file = names.parse_partition_file((one.reason or "").partition(":")[0])
            if one.outcome != "loads" and file.kind in _REBUILT:
                log_dirs.append(one.request.path.parent)
        for log_dir in dict.fromkeys(log_dirs):
            yield f"logtool checkpoint rebuild {shell.path(log_dir)}"

    def _largest_lines(self) -> Iterator[str]:
        """Yield the line on the partitions of which the start reads the most."""
        read = [one for one in self._forecasts if one.bytes_read]
        largest = sorted(read, key=lambda one: -one.bytes_read)[:_MOST_LARGEST]
        sizes = [f"{text.escape(one.request.path.name)} ({text.size(one.bytes_read)})"
                 for one in largest]  # fmt: skip
        more = len(read) - len(largest)
        others = f" and {text.count(more, 'more partition')} (-v shows all)" if more else ""
        if sizes:
            yield f"the start reads the most of {', '.join(sizes)}{others}"

    def _unchecked_lines(self) -> Iterator[str]:
        """Yield the line on unchecked parts of trusted logs, with the command that checks them."""
        trusted = [one for one in self._forecasts if one.trusted]
        if not trusted:
            return
        size = sum(one.unchecked_bytes for one in trusted)
        segments = sum(one.segments for one in trusted)
        unread = sum(one.unread_segments for one in trusted)
        headers = sum(one.bytes_read for one in trusted)
        saved = sum(one.bytes_saved for one in trusted)
        places = dict.fromkeys(one.request.path.parent for one in trusted)
        if len(self._forecasts) == 1:
            places = {trusted[0].request.path: None}
        command = " ".join(["logtool verify", *map(shell.path, places)])
        yield (
            f"--trust-log: no CRC of {text.count(segments, 'segment')} ({text.size(size)}) was "
            f"compared; {text.size(headers)} of headers were read, and "
            f"{text.count(unread, 'segment')} not at all; a rebuild would read "
            f"{text.size(saved)} more; to check the segments: {command}"
        )


def _collapsed(actions: Sequence[_Planned]) -> Iterator[_Planned]:
    """Yield the actions with segments that go one behind the other, for one reason, as one."""
    shown: list[_Planned] = []
    for action, obj in actions:
        if is_routine(obj):
            yield action, obj  # counted, not printed
        elif shown and _same_fate(shown[-1][1], obj):
            shown[-1] = shown[-1][0], _merged(shown[-1][1], obj)
        else:
            shown.append((action, obj))
    yield from shown


def _same_fate(first: Object, second: Object) -> bool:
    keys = ("action", "reason", "below_high_watermark")
    same = all(first[key] == second[key] for key in keys)
    return same and first["action"] == FileChange.REMOVE and second["path"].endswith(".log")


def _merged(first: Object, second: Object) -> Object:
    """Return the object of two: their sums, from the first to the last."""
    merged = dict(first)
    for key in (
        "length",
        "lost_bytes",
        "lost_batches",
        "lost_records",
        "lost_bad_batches",
        "lost_bad_records",
        "lost_behind_damage",
    ):
        merged[key] = (first[key] or 0) + (second[key] or 0)
    firsts = [obj["first_offset"] for obj in (first, second) if obj["first_offset"] is not None]
    lasts = [obj["last_offset"] for obj in (first, second) if obj["last_offset"] is not None]
    merged["first_offset"], merged["last_offset"] = (
        min(firsts, default=None),
        max(lasts, default=None),
    )
    merged["to"] = second["path"].rpartition("/")[2]
    return merged
