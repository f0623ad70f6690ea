"""The segments of each log, with the places of damage in them, for a map and a timeline."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

from logtool.doctor.examination import Examination
from logtool.errors import UnreadableError
from logtool.findings import Finding, Severity
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.dir import Segment


@dataclass(frozen=True, slots=True)
class DamageMark:
    """One finding in a log."""

    segment: int
    """Base offset of the segment."""
    position: int
    """Byte of the log."""
    severity: Severity


@dataclass(frozen=True, slots=True)
class LogMap:
    """One log: its segments in order of their offsets, and the damage in them."""

    path: Path
    topic: str | None
    partition: int | None
    segments: Sequence[Segment]
    marks: Sequence[DamageMark]
    """Findings in the logs, infos left out, by segment and position."""
    recovered_from: int | None
    """Base offset of the first segment that the next start reads; None if it reads no segment."""

    @property
    def size(self) -> int:
        """Return the bytes of the logs of all segments."""
        return sum(segment.log.size for segment in self.segments)


def log_maps(run: Examination) -> Iterator[LogMap]:
    """Yield the log of each partition that was loaded; one that cannot be listed is left out."""
    marks: dict[Path, list[DamageMark]] = {}
    for found in run.findings:
        if found.path and (mark := _mark(found)):
            marks.setdefault(found.path.parent, []).append(mark)
    for forecast in run.forecasts:
        request = forecast.request
        listed = opening.try_partition(request.path, request.flavour)
        if isinstance(listed, UnreadableError):
            continue
        segments = listed.segments
        first = len(segments) - forecast.recovered
        yield LogMap(
            request.path,
            request.topic,
            request.partition,
            segments,
            sorted(marks.get(request.path, ()), key=lambda one: (one.segment, one.position)),
            segments[first].base_offset if 0 <= first < len(segments) else None,
        )


def _mark(found: Finding) -> DamageMark | None:
    """Return the mark of a finding in a log; None for an info, and for another file."""
    if found.severity is Severity.INFO or found.position is None or found.path is None:
        return None
    if found.path.suffix != ".log" or not found.path.stem.isdecimal():
        return None
    return DamageMark(int(found.path.stem), found.position, found.severity)


def place(log: LogMap, mark: DamageMark) -> int:
    """Return the byte of a mark in the logs of all segments one after the other."""
    bases = [segment.base_offset for segment in log.segments]
    at = bisect_right(bases, mark.segment) - 1
    before = sum(segment.log.size for segment in log.segments[: max(at, 0)])
    return before + (mark.position if at >= 0 else 0)
