"""How fast logs are read, as a range: from memory, or from a disk that others use too.

What is measured here, while logs are loaded, is each stretch of 4 MiB. The fastest tenth and the
slowest tenth of these are the range. Most of it may have come from the page cache, which is empty
after a reboot, so some MiB are read from the disk itself as well (O_DIRECT); if that is slower it
is the slow end. A broker does more with each byte and each batch than is done here. What it needs
at least and at most was measured with Kafka 4.3.1 on two cores, which loaded 512 MiB in batches of
200 B, 1 KiB, 16 KiB and 1 MiB, four times each, with the logs in the page cache and without.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from logtool.disk import files
from logtool.errors import UnreadableError

if TYPE_CHECKING:
    from logtool.startup.partition import PartitionForecast

MIB = 1024 * 1024
BROKER_BYTES_PER_SECOND = (350 * MIB, 1024 * MIB)
"""What one thread of a broker reads and checks of a log in the page cache: slowest and fastest."""
BATCH_SECONDS = (2.8e-6, 7.1e-6)
"""What a broker spends on each batch besides reading it: least and most."""
PIECE = 4 * MIB
"""Bytes of log from which on the time to read them says something."""
_WORTH_READING = 8 * MIB
_MOST_READ = 32 * MIB
_MOST_SECONDS = 0.5
_MOST_PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes a second that one thread of a broker reads: at worst, on the whole, at best."""

    slow: float
    usual: float
    fast: float
    pieces: int = 0
    """Stretches that were timed here; 0 where the rate was given."""
    disk: float | None = None
    """What the disk gave past the page cache; None where that was not tried."""

    @property
    def basis(self) -> str:
        """Return what they rest on: ``given`` or ``measured``."""
        return "measured" if self.pieces else "given"


def known(
    forecasts: Sequence["PartitionForecast"], given: float | None = None, *, ask_disk: bool
) -> Rates | None:
    """Return the rate `given`, else those at which logs were loaded here.

    None where too little was read to tell. With `ask_disk` a little is read past the page cache.
    """
    if given:
        return Rates(given, given, given)
    if not any(forecast.rates for forecast in forecasts):
        return None
    return measured(forecasts, of_disk(forecasts) if ask_disk else None)


class Stopwatch:
    """Times the stretches that the loading of one log tells of; the wait for its turn is no part.

    Call it with every stretch of bytes that was dealt with: `on_bytes` is told, and may wait.
    """

    def __init__(self, on_bytes: Callable[[int], None]) -> None:
        self._on_bytes = on_bytes
        self._bytes = 0
        self._since = time.perf_counter()
        self.rates: list[float] = []
        """Bytes a second of each 4 MiB or a little more."""

    def __call__(self, count: int) -> None:
        """Take the next stretch."""
        self._bytes += count
        now = time.perf_counter()
        taken = now - self._since
        if self._bytes >= PIECE and taken > 0:
            self.rates.append(self._bytes / taken)
            self._bytes, taken = 0, 0.0
        self._on_bytes(count)
        self._since = time.perf_counter() - taken


def measured(forecasts: Iterable["PartitionForecast"], disk: float | None = None) -> Rates | None:
    """Return the rates at which logs were loaded here; None where too little was read to tell.

    `disk` is what the disk gives past the page cache, in bytes a second.
    """
    pieces = sorted(rate for forecast in forecasts for rate in forecast.rates)
    if not pieces:
        return None
    tenth = len(pieces) // 10
    slowest, fastest = BROKER_BYTES_PER_SECOND
    # All stretches are equally long: what they take together is the harmonic mean.
    mean = len(pieces) / math.fsum(1 / rate for rate in pieces)
    slow = min(pieces[tenth], disk or math.inf, slowest)
    fast = max(min(pieces[-1 - tenth], fastest), slow)
    return Rates(slow, min(max(mean, slow), fast), fast, len(pieces), disk)


def of_disk(forecasts: Iterable["PartitionForecast"]) -> float | None:
    """Return the bytes a second that the disk gives past the page cache, by reading a little.

    Of the partitions of which most is read at a start, at most 32 MiB or half a second. None where
    no log is long enough, or the file system reads nothing past its cache.
    """
    most = sorted(forecasts, key=lambda one: -one.bytes_read)[:_MOST_PARTITIONS]
    size, seconds = 0, 0.0
    for forecast in most:
        log = _largest_log(forecast.request.path) if forecast.bytes_read else None
        if log is None:
            continue
        try:
            read = files.time_past_cache(log, _MOST_READ // len(most), _MOST_SECONDS - seconds)
        except UnreadableError:
            continue
        size, seconds = size + read[0], seconds + read[1]
    return size / seconds if size >= MIB and seconds else None


def _largest_log(directory: Path) -> Path | None:
    """Return the largest log of a partition; None without one that is worth reading."""
    logs = [path for path in directory.glob("*.log") if path.is_file()]
    sizes = {path: files.size_at(path) for path in logs}
    largest = max(sizes, key=lambda path: sizes[path], default=None)
    return largest if largest and sizes[largest] >= _WORTH_READING else None
