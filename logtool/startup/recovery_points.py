"""Partitions without a recovery point, of which a start after a kill recovers every segment."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.startup.log_dir_start import LogDirStart
from logtool.startup.partition import PartitionForecast

_KIND = FileKind.RECOVERY_POINT_CHECKPOINT


@dataclass(frozen=True, slots=True)
class MissingPoints:
    """The partitions of one log dir that are recovered from their first segment on."""

    log_dir: Path
    is_file_missing: bool
    """True if the log dir has no file of recovery points; False if the file lacks their rows."""
    partitions: int
    recovered: int
    """Their segments that are recovered."""

    @property
    def cause(self) -> str:
        """Return the cause, in words that follow "because"."""
        return _cause([self])

    @property
    def finding(self) -> Finding:
        """Return the finding about the log dir."""
        text = (
            f"{self.cause}: the recovery point of {wording.count(self.partitions, 'partition')} "
            f"counts as 0, and the start recovers {wording.count(self.recovered, 'segment')} of "
            "them"
        )
        path = self.log_dir if self.is_file_missing else self.log_dir / _KIND.value
        code = "checkpoint/no-recovery-point"
        return Finding(code, text, path=path, next=f"logtool explain {code}")


def cause(found: Sequence[MissingPoints]) -> str | None:
    """Return the cause for all log dirs, in words that follow "because"; None without one."""
    by_kind = [[one for one in found if one.is_file_missing is kind] for kind in (True, False)]
    return " and ".join(_cause(some) for some in by_kind if some) or None


def _cause(found: Sequence[MissingPoints]) -> str:
    """Return the cause for log dirs that all lack the file, or all lack rows."""
    if found[0].is_file_missing:
        return f"{_KIND.value} is missing"
    partitions = sum(one.partitions for one in found)
    return f"{_KIND.value} has no row of {wording.count(partitions, 'partition')}"


def missing(
    starts: Iterable[LogDirStart], forecasts: Sequence[PartitionForecast]
) -> list[MissingPoints]:
    """Return the log dirs in which partitions with data lack the recovery point of a start.

    A file that cannot be read has an action of its own. The metadata log has no recovery point.
    """
    found = []
    for start in starts:
        home = start.log_dir
        is_unread = _KIND in start.refused or any(
            one.path.name == _KIND.value for one in start.unread
        )
        if start.clean or not home.flavour.has_checkpoints or is_unread:
            continue
        lacking = [
            one
            for one in forecasts
            if one.request.log_dir == home.path and _lacks_point(one) and one.recovered
        ]
        # With a recovery point the last segment is recovered too.
        if any(one.recovered > 1 for one in lacking):
            recovered = sum(one.recovered for one in lacking)
            found.append(MissingPoints(home.path, _KIND not in home.files, len(lacking), recovered))
    return found


def _lacks_point(one: PartitionForecast) -> bool:
    """Return whether a live partition with data has no row, and no option gives it a start."""
    request = one.request
    is_live = request.path.name == f"{request.topic}-{request.partition}"
    is_judged = is_live and request.assumed.clean is None and request.redpanda is None
    return is_judged and request.flushed is None and one.log_end > one.log_start
