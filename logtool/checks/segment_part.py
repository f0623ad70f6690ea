"""The part of a segment that an earlier run has read, from whose end the next run goes on.

A part counts only if nothing in it is out of the ordinary: then the rules need few facts about it,
which are plain data, and find the same behind it as in one pass. `encode` makes these facts into
JSON for the file of ``--resume`` and for the state file of `scrub`.
"""

import base64
from dataclasses import astuple, fields
from typing import Any

import numpy as np

from logtool import __version__
from logtool.checks.indexes import OffsetIndexRules, TimeIndexRules
from logtool.checks.log_pass import LogPass
from logtool.checks.old_formats import FormatExtent
from logtool.checks.report import InnerGaps, Level, SegmentReport, SegmentTask
from logtool.formats.record_batch import BatchTable
from logtool.lazy_dataclass import dataclass
from logtool.log.index_join import OffsetIndexJoin, TimeIndexJoin

_COUNTS = ("batches", "records", "first_offset", "last_offset", "with_holes", "horizons",
           "end_position", "largest_batch")  # fmt: skip
"""Fields of a report that are numbers."""
_COLUMNS = [one.name for one in fields(BatchTable)]


@dataclass(frozen=True, slots=True)
class SegmentPart:
    """The facts about the part of a segment before a byte at which a batch begins."""

    report: SegmentReport
    """Report of the part, as if it were the whole segment; without findings."""
    offset_entries: int
    """Number of entries of the offset index that point into the part."""
    last_entry: tuple[int, ...]
    """The columns of the join for the last of them, whose append may reach beyond the part."""
    time_entries: int
    """Number of entries of the time index with offsets in the part."""
    last_batch_position: int
    max_timestamp: int
    """Largest timestamp of the batches, ms."""

    @property
    def position(self) -> int:
        """Return the byte behind the part."""
        return self.report.end_position

    @property
    def last_offset(self) -> int:
        """Return the last offset in the part."""
        return self.report.next_offset - 1

    def apply(
        self, log_pass: LogPass, offsets: OffsetIndexJoin | None, times: TimeIndexJoin | None
    ) -> None:
        """Set a pass that has read nothing, and its joins, to the end of the part."""
        log_pass.begin_behind(self.report)
        if offsets:
            offsets.accept(self.offset_entries, self.last_entry)
            offsets.begin_behind(self.last_offset)
            offsets.last_batch_position = self.last_batch_position
        if times:
            times.accept(self.time_entries)
            times.begin_behind(self.last_offset, self.max_timestamp)

    def encode(self) -> dict[str, Any]:
        """Return the facts as JSON."""
        report = self.report
        rows = np.array([getattr(report.producer_rows, name) for name in _COLUMNS], "<i8")
        return {
            **{name: getattr(report, name) for name in _COUNTS},
            "gaps": astuple(report.gaps),
            "old_formats": [astuple(one) for one in report.old_formats],
            "epochs": report.epochs,
            "producer_rows": base64.b64encode(rows.tobytes()).decode("ascii"),
            "offset_entries": self.offset_entries,
            "last_entry": self.last_entry,
            "time_entries": self.time_entries,
            "last_batch_position": self.last_batch_position,
            "max_timestamp": self.max_timestamp,
        }


def parse(value: dict[str, Any], task: SegmentTask) -> SegmentPart | None:
    """Return the part of the segment of a task; None if `value` is not of the form of `encode`."""
    try:
        report = SegmentReport(task.segment.base_offset)
        for name in _COUNTS:
            setattr(report, name, int(value[name]))
        count, missing, first, end = value["gaps"]
        report.gaps = InnerGaps(int(count), int(missing), first and _ints(first, 3), int(end))
        report.old_formats = tuple(FormatExtent(*one) for one in value["old_formats"])
        report.epochs = [_ints(one, 3) for one in value["epochs"]]
        rows = np.frombuffer(base64.b64decode(value["producer_rows"]), "<i8")
        report.producer_rows = BatchTable(*rows.astype(np.int64).reshape(len(_COLUMNS), -1))
        part = SegmentPart(
            report=report,
            offset_entries=int(value["offset_entries"]),
            last_entry=_ints(value["last_entry"], 4),
            time_entries=int(value["time_entries"]),
            last_batch_position=int(value["last_batch_position"]),
            max_timestamp=int(value["max_timestamp"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return part if 0 < part.position <= task.segment.log.size else None


def basis(task: SegmentTask) -> list[Any]:
    """Return all that a part depends on next to the log itself, as JSON."""
    indexes = [[file.size, file.mtime_ns] for file in task.segment.indexes.values()]
    return [__version__, str(task.level), task.limit, task.ahead_ms, list(task.cuts), indexes]


def read_so_far(
    task: SegmentTask,
    log_pass: LogPass,
    offsets: OffsetIndexRules | None,
    times: TimeIndexRules | None,
) -> SegmentPart | None:
    """Return the part that a pass has read; None if something in it is out of the ordinary.

    The pass was fed whole chunks, and is over. Of Redpanda no part is kept.
    """
    joins = [one.join for one in (offsets, times) if one]
    is_kept = task.level is not Level.QUICK and not task.segment.flavour.has_raft_offsets
    if not is_kept or not all(join.is_sorted for join in joins):
        return None
    report = log_pass.so_far()
    if report is None or report.last_offset is None:
        return None
    for join in joins:
        join.finish()
    offset_entries = offsets.join.first_at(report.end_position) if offsets else 0
    time_entries = times.join.first_behind(report.last_offset) if times else 0
    # The last offset entry is not judged yet: its append may reach beyond the part.
    if offsets and offsets.join.verdicts[: max(0, offset_entries - 1)].any():
        return None
    if times and times.join.verdicts[:time_entries].any():
        return None
    return SegmentPart(
        report=report,
        offset_entries=offset_entries,
        last_entry=offsets.join.found_for(offset_entries - 1) if offsets else (0, 0, 0, 0),
        time_entries=time_entries,
        last_batch_position=offsets.join.last_batch_position if offsets else 0,
        max_timestamp=times.join.max_timestamp if times else 0,
    )


def _ints(values: Any, count: int) -> Any:
    """Return so many whole numbers; ValueError for another number of them."""
    found = tuple(map(int, values))
    if len(found) != count:
        raise ValueError(values)
    return found
