"""The part of a segment that an earlier run has read, from whose end the next run goes on.

The rules need few facts about a part, which are plain data, and find the same behind it as in one
pass. What is out of the ordinary in it is kept with them: findings, damage, and index entries that
are not right. `encode` makes these facts into JSON for the file of ``--resume`` and for the state
file of `scrub`.
"""

import base64
from collections.abc import Sequence
from dataclasses import astuple, fields
from typing import Any

import numpy as np

from logtool import __version__
from logtool.checks.batches import BatchRules
from logtool.checks.indexes import OffsetIndexRules, TimeIndexRules
from logtool.checks.kept_report import NOT_WRITTEN, finding_as_json, finding_of
from logtool.checks.log_pass import LogPass
from logtool.checks.old_formats import FormatExtent
from logtool.checks.report import InnerGaps, Level, SegmentReport, SegmentTask
from logtool.checks.timestamps import TimestampRules
from logtool.findings import Finding
from logtool.formats.record_batch import BatchTable
from logtool.lazy_dataclass import dataclass
from logtool.log.index_join import ENTRY_ROWS, OffsetIndexJoin, TimeIndexJoin

_COUNTS = ("batches", "records", "first_offset", "last_offset", "with_holes", "horizons",
           "end_position", "largest_batch")  # fmt: skip
"""Fields of a report that are numbers."""
_MOST_ODD = 10_000
"""Findings, damaged ranges and index entries that are not right that a part may have."""
_COLUMNS = [one.name for one in fields(BatchTable)]


@dataclass(frozen=True, slots=True)
class SegmentPart:
    """The facts about the part of a segment before a byte at which a batch begins, or damage."""

    report: SegmentReport
    """Report of the part, as if it were the whole segment; its findings are those of batches."""
    position: int
    """Byte behind the part."""
    damage: dict[str, Any]
    """The damage in the part, from `BatchRules.damage_so_far`."""
    odd_timestamps: dict[str, Any]
    """The odd timestamps in the part, from `TimestampRules.odd_so_far`."""
    offset_entries: int
    """Number of entries of the offset index that point into the part."""
    odd_offsets: Sequence[Sequence[int]]
    """Entries that are not right, from `OffsetIndexJoin.odd_before`."""
    time_entries: int
    """Number of entries of the time index with offsets in the part."""
    odd_times: Sequence[Sequence[int]]
    """Entries that are not right, from `TimeIndexJoin.odd_before`."""
    last_batch_position: int
    max_timestamp: int
    """Largest timestamp of the batches, ms."""

    @property
    def last_offset(self) -> int:
        """Return the last offset in the part."""
        return self.report.next_offset - 1

    def apply(
        self, log_pass: LogPass, offsets: OffsetIndexJoin | None, times: TimeIndexJoin | None
    ) -> None:
        """Set a pass that has read nothing, and its joins, to the end of the part."""
        log_pass.begin_behind(self.report)
        log_pass.rules.take_damage(self.damage)
        log_pass.timestamps.take_odd(self.odd_timestamps)
        if offsets:
            offsets.accept(self.offset_entries, self.odd_offsets)
            offsets.begin_behind(self.last_offset)
            offsets.last_batch_position = self.last_batch_position
        if times:
            times.accept(self.time_entries, self.odd_times)
            damaged = log_pass.rules.damaged
            times.begin_behind(self.last_offset, self.max_timestamp, damaged=damaged)

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
            "findings": [
                finding_as_json(one) for one in report.findings if isinstance(one, Finding)
            ],
            "position": self.position,
            "damage": self.damage,
            "odd_timestamps": self.odd_timestamps,
            "offset_entries": self.offset_entries,
            "odd_offsets": self.odd_offsets,
            "time_entries": self.time_entries,
            "odd_times": self.odd_times,
            "last_batch_position": self.last_batch_position,
            "max_timestamp": self.max_timestamp,
        }


def parse(value: dict[str, Any], task: SegmentTask) -> SegmentPart | None:
    """Return the part of the segment of a task; None if `value` is not of the form of `encode`."""
    try:
        report = SegmentReport(task.segment.base_offset)
        for name in _COUNTS:
            number = value[name]
            may_lack = name in ("first_offset", "last_offset")
            setattr(report, name, None if number is None and may_lack else int(number))
        report.findings = [finding_of(one) for one in value["findings"]]
        count, missing, first, end = value["gaps"]
        report.gaps = InnerGaps(int(count), int(missing), first and _ints(first, 3), int(end))
        report.old_formats = tuple(FormatExtent(*one) for one in value["old_formats"])
        report.epochs = [_ints(one, 3) for one in value["epochs"]]
        rows = np.frombuffer(base64.b64decode(value["producer_rows"]), "<i8")
        report.producer_rows = BatchTable(*rows.astype(np.int64).reshape(len(_COLUMNS), -1))
        part = SegmentPart(
            report=report,
            position=int(value["position"]),
            damage=value["damage"],
            odd_timestamps=value["odd_timestamps"],
            offset_entries=int(value["offset_entries"]),
            odd_offsets=[_ints(one, ENTRY_ROWS + 1) for one in value["odd_offsets"]],
            time_entries=int(value["time_entries"]),
            odd_times=[_ints(one, ENTRY_ROWS) for one in value["odd_times"]],
            last_batch_position=int(value["last_batch_position"]),
            max_timestamp=int(value["max_timestamp"]),
        )
        # So that damage and timestamps of another form are found here.
        BatchRules(task.segment.base_offset).take_damage(part.damage)
        TimestampRules(0).take_odd(part.odd_timestamps)
    except (*NOT_WRITTEN, OverflowError):
        return None
    return part if 0 < part.position <= task.segment.log.size else None


def basis(task: SegmentTask) -> list[Any]:
    """Return all that a part depends on next to the log itself, as JSON."""
    indexes = [[file.size, file.mtime_ns] for file in task.segment.indexes.values()]
    return [__version__, str(task.level), task.limit, task.ahead_ms, list(task.cuts), indexes]


def read_so_far(
    task: SegmentTask,
    log_pass: LogPass,
    position: int,
    offsets: OffsetIndexRules | None,
    times: TimeIndexRules | None,
) -> SegmentPart | None:
    """Return the part up to `position` that a pass has read; None if it cannot be kept.

    The pass was fed whole chunks, and is over. Of Redpanda no part is kept, nor with an index whose
    entries are in disorder, nor if too much is out of the ordinary.
    """
    joins = [one.join for one in (offsets, times) if one]
    is_kept = task.level is not Level.QUICK and not task.segment.flavour.has_raft_offsets
    if not is_kept or not all(join.is_sorted for join in joins):
        return None
    report = log_pass.so_far()
    for join in joins:
        join.finish()
    damage, odd_timestamps = log_pass.rules.damage_so_far(), log_pass.timestamps.odd_so_far()
    offset_entries = offsets.join.first_at(position) if offsets else 0
    time_entries = times.join.first_behind(report.next_offset - 1) if times else 0
    odd_offsets = offsets.join.odd_before(offset_entries) if offsets else []
    odd_times = times.join.odd_before(time_entries) if times else []
    odd = len(report.findings) + len(damage["regions"]) + len(odd_offsets) + len(odd_times)
    if odd > _MOST_ODD:
        return None
    return SegmentPart(
        report=report,
        position=position,
        damage=damage,
        odd_timestamps=odd_timestamps,
        offset_entries=offset_entries,
        odd_offsets=odd_offsets,
        time_entries=time_entries,
        odd_times=odd_times,
        last_batch_position=offsets.join.last_batch_position if offsets else 0,
        max_timestamp=times.join.max_timestamp if times else 0,
    )


def _ints(values: Any, count: int) -> Any:
    """Return so many whole numbers; ValueError for another number of them."""
    found = tuple(map(int, values))
    if len(found) != count:
        raise ValueError(values)
    return found
