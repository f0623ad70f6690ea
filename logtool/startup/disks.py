"""What disks give to who reads logs through the page cache, as a broker does: a sample of each.

A broker reads a log from its beginning, batch by batch, and the system reads ahead of it. So a few
logs that are not in the page cache are read like that, before anything else is read of them, and
as few bytes past the page cache (O_DIRECT), which tell what the disk gives once nothing is in it.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from heapq import nlargest
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass
from logtool.startup import timing

MIB = 1024 * 1024
_MOST_LOGS = 16
"""Logs of a disk that are read for its sample, the largest ones."""
_MOST_READ = 32 * MIB
_MOST_SECONDS = 0.25
"""For either way to read."""
_LARGE = 4 * MIB
_LOOKS = 4
"""Logs of a partition that are looked at for all its small ones."""


@dataclass(frozen=True, slots=True)
class Cold:
    """What of the logs of a partition is not in the page cache, about."""

    bytes: int = 0
    logs: int = 0


@dataclass(frozen=True, slots=True)
class DiskSample:
    """What one disk gives."""

    log_dir: Path
    """The first log dir that was sampled on it."""
    past_cache: float | None = None
    """Bytes a second past the page cache; None where that was not tried, or cannot be."""
    through_cache: float | None = None
    """Bytes a second of what is not in the page cache; None where everything was."""
    first_seconds: float = 0.0
    """From the call to the first bytes of a log that is not in the page cache."""

    def seconds(self, cold: Cold) -> float:
        """Return for how long a broker waits for what is not in the page cache."""
        if self.through_cache is None:
            return 0.0
        return cold.bytes / self.through_cache + cold.logs * self.first_seconds


Timed = Callable[[Path, int, float], tuple[int, float, float]]
Disks = Mapping[int, DiskSample]
"""By the number of the device."""


class Samples:
    """The largest logs of each disk, of those that a broker reads."""

    def __init__(self) -> None:
        self._logs: dict[int, list[tuple[int, Path]]] = {}
        self._log_dirs: dict[int, Path] = {}

    def add(self, log_dir: Path, logs: Iterable[tuple[Path, int]]) -> None:
        """Take the logs of a partition, given with their sizes."""
        if (device := files.device_of(log_dir)) is None:
            return
        self._log_dirs.setdefault(device, log_dir)
        sized = [(size, path) for path, size in logs]
        known = self._logs.get(device, [])
        self._logs[device] = nlargest(_MOST_LOGS, known + nlargest(_MOST_LOGS // 4, sized))

    def taken(self) -> Disks:
        """Read a little of each disk; return what it gave."""
        return {
            device: _sampled(self._log_dirs[device], [path for _, path in logs])
            for device, logs in self._logs.items()
        }


def _sampled(log_dir: Path, logs: Sequence[Path]) -> DiskSample:
    through, count = _timed(logs, _uncached)
    past, _ = _timed(logs, lambda *log: (*timing.past_cache(*log), 0.0))
    return DiskSample(
        log_dir,
        past_cache=past[0] / past[1] if past[0] >= MIB else None,
        through_cache=through[0] / through[1] if through[0] else None,
        first_seconds=through[2] / count if count else 0.0,
    )


def _timed(logs: Iterable[Path], timed: Timed) -> tuple[tuple[int, float, float], int]:
    """Return bytes read, seconds for that and seconds for the first bytes of logs, and how many."""
    size, seconds, first, count = 0, 0.0, 0.0, 0
    for log in logs:
        left = _MOST_SECONDS - seconds
        if size >= _MOST_READ or left <= 0:
            break
        with suppress(UnreadableError):  # which who reads it next finds and tells
            found = timed(log, _MOST_READ // 4, left)
            size, seconds, first = size + found[0], seconds + found[1], first + found[2]
            count += found[0] > 0
    return (size, seconds, first), count


def _uncached(log: Path, most: int, seconds: float) -> tuple[int, float, float]:
    """Read a log through the page cache, unless some of it is in there."""
    if timing.cached_bytes(log):
        return 0, 0.0, 0.0
    return timing.through_cache(log, most, seconds)


def cold(logs: Iterable[tuple[Path, int]]) -> Cold:
    """Return what of logs, given with their sizes, is not in the page cache.

    Some of the small ones speak for all of them.
    """
    here = [(path, size) for path, size in logs if size and not files.is_remote(path)]
    large = [one for one in here if one[1] >= _LARGE]
    small = [one for one in here if one[1] < _LARGE]
    looked = small[:: max(1, math.ceil(len(small) / _LOOKS))]
    rest, rest_logs = _cold(looked)
    share = len(small) / len(looked) if looked else 0.0
    size, count = _cold(large)
    return Cold(round(size + rest * share), round(count + rest_logs * share))


def _cold(logs: Iterable[tuple[Path, int]]) -> tuple[int, int]:
    total = count = 0
    for path, size in logs:
        with suppress(UnreadableError):
            missing = max(0, size - timing.cached_bytes(path))
            total, count = total + missing, count + (missing > 0)
    return total, count
