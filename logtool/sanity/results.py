"""The results for one log dir, as plain data."""

from enum import StrEnum
from pathlib import Path
from typing import Any

from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.sanity.measuring import Cache, Run


class Mode(StrEnum):
    """What was measured."""

    EAGER = "eager"
    LAZY = "lazy"
    FIRST_ACCESS = "first-access"
    BECOME_LEADER = "become-leader"
    BACKGROUND = "background"


@dataclass(frozen=True, slots=True)
class Directory:
    """What there is to check."""

    path: Path
    partitions: int
    segments: int
    index_files: int
    index_bytes: int
    maps: int
    """What an eager broker keeps mapped: the offset and the time index of every segment."""
    most_maps: int | None
    """What one process may map, ``vm.max_map_count``; None where the system does not tell."""

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "type": "directory",
            "path": str(self.path),
            "partitions": self.partitions,
            "segments": self.segments,
            "index_files": self.index_files,
            "index_bytes": self.index_bytes,
            "maps": self.maps,
            "max_map_count": self.most_maps,
        }


@dataclass(frozen=True, slots=True)
class Measurement:
    """One kind of start, or what it left to others: the run of median time."""

    path: Path
    mode: Mode
    threads: int
    repeat: int
    run: Run
    cache: Cache | None = None
    """None where the page cache was left as it was."""
    speed_up: float | None = None
    """Of the time until clients are served, against eager."""
    seen: int = 0
    missed: int | None = None
    """Findings that others see; None where nobody looked."""

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        cost, usage, readers = self.run.cost, self.run.usage, self.run.readers
        per_segment = self.run.seconds / cost.segments if cost.segments else None
        return {
            "type": "measurement",
            "path": str(self.path),
            "mode": str(self.mode),
            "threads": self.threads,
            "repeat": self.repeat,
            "cache": None if self.cache is None else str(self.cache),
            "segments_opened": cost.segments,
            "files_opened": cost.files,
            "bytes_read": cost.bytes,
            "disk_bytes": usage.disk_bytes,
            "minor_faults": usage.minor_faults,
            "major_faults": usage.major_faults,
            "seconds": _micro(self.run.seconds),
            "service_seconds": _micro(self.run.service_seconds),
            "offset_index_seconds": _micro(cost.ns[FileKind.OFFSET_INDEX] / 1e9),
            "time_index_seconds": _micro(cost.ns[FileKind.TIME_INDEX] / 1e9),
            "transaction_index_seconds": _micro(cost.ns[FileKind.TRANSACTION_INDEX] / 1e9),
            "seconds_per_segment": None if per_segment is None else round(per_segment, 9),
            "speed_up": None if self.speed_up is None else round(self.speed_up, 2),
            "seen": self.seen,
            "missed": self.missed,
            "readers": None if readers is None else readers.count,
            "reader_mean_seconds": _micro(readers.seconds / readers.count if readers else None),
            "reader_max_seconds": _micro(readers.longest if readers else None),
            "forced": self.run.forced,
        }


def _micro(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)
