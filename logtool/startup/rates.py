"""How fast logs are read, as a range: from memory, or from a disk that others use too.

What is measured here, while logs are loaded, is each stretch of 4 MiB. The fastest tenth and the
slowest tenth of these are the range. Most of it may have come from the page cache, which is empty
after a reboot, so some MiB are read from the disk itself as well (O_DIRECT); if that is slower it
is the slow end. A broker does more with each byte and each batch than is done here. What it needs
at least and at most was measured with Kafka 4.3.1 on two cores, which loaded 512 MiB in batches of
200 B, 1 KiB, 16 KiB and 1 MiB, four times each, with the logs in the page cache and without.

What it needs on the whole is calibrated by this machine: a few MiB of the logs, which are in the
page cache by then, are read once more and checked with CRC-32C. A broker was measured beside that
pass: `_SHARE` of its rate, `_BATCH` for each batch where the pass had the rate `_PASS`, and for
each log and each segment of it that it recovers what making files and their names durable takes,
of logs of one to thirty segments. What was not in the page cache when it was looked at comes from
the disk besides, at `FROM_DISK` of the rate that the disk gave.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from logtool.disk import files
from logtool.errors import UnreadableError

if TYPE_CHECKING:
    from logtool.startup.partition import PartitionForecast

MIB = 1024 * 1024
BROKER_BYTES_PER_SECOND = (350 * MIB, 2048 * MIB)
"""What one thread of a broker reads and checks of a log in the page cache: slowest and fastest."""
BATCH_SECONDS = (2.0e-6, 7.1e-6)
"""What a broker spends on each batch besides reading it: least and most."""
SEGMENT_SECONDS = (0.7e-3, 1.5e-3, 4.5e-3)
LOG_SECONDS = (1e-3, 2e-3, 6e-3)
"""What it spends on each segment that it recovers, and on each log with such: least, usual, most.
"""
FROM_DISK = 0.4
"""The share of what the disk gives past the page cache that a broker gets through it."""
_SHARE = 0.235
_BATCH = 2.4e-6
_PASS = 8000 * MIB
_SAMPLE = 16 * MIB
"""Bytes of one log that are read once more."""
_MOST_STRAIN = 3.0
"""A pass that takes longer than that many times was in somebody's way for a moment."""
_SAMPLE_SECONDS = 0.15
"""For how long they are: as long as a busy machine takes to give everybody a turn."""
_MANY = 500
"""Segments to be recovered from which on a start takes long, however small they are."""
_LOOK_EACH = 32 * MIB
"""Bytes from one look at the page cache to the next: more than the system reads ahead."""
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
    is_measured: bool = False
    strain: float = 1.0
    """How many times as long this machine takes, as busy as it is, as the one measured."""

    @property
    def batch_seconds(self) -> float:
        """Return what a broker spends on each batch on the whole."""
        return min(max(_BATCH * self.strain, BATCH_SECONDS[0]), BATCH_SECONDS[1])

    @property
    def basis(self) -> str:
        """Return what they rest on: ``given`` or ``measured``."""
        return "measured" if self.is_measured else "given"


def known(
    forecasts: Sequence["PartitionForecast"], given: float | None = None, *, ask_disk: bool
) -> Rates | None:
    """Return the rate `given`, else those at which logs were loaded here.

    None where too little was read to tell. With `ask_disk` a little is read past the page cache.
    """
    if given:
        return Rates(given, given, given)
    many = sum(forecast.recovered for forecast in forecasts) >= _MANY
    if not many and not any(forecast.rates for forecast in forecasts):
        return None
    if not ask_disk:
        return measured(forecasts)
    return measured(forecasts, of_disk(forecasts), of_pass(forecasts))


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


def measured(
    forecasts: Iterable["PartitionForecast"],
    disk: float | None = None,
    through: float | None = None,
) -> Rates | None:
    """Return the rates at which logs were loaded here; None where too little was read to tell.

    `disk` is what the disk gives past the page cache, and `through` what a pass over a log in the
    page cache reaches, in bytes a second.
    """
    pieces = sorted(rate for forecast in forecasts for rate in forecast.rates)
    if not pieces and through is None:
        return None
    slowest, fastest = BROKER_BYTES_PER_SECOND
    usual = None if through is None else through * _SHARE
    tenth = len(pieces) // 10
    best = pieces[-1 - tenth] if pieces else fastest
    slow = min(pieces[tenth] if pieces else slowest, disk or math.inf, slowest)
    fast = max(min(best, fastest), usual or 0, slow)
    # All stretches are equally long: what they take together is the harmonic mean.
    mean = usual or len(pieces) / math.fsum(1 / rate for rate in pieces)
    return Rates(
        slow=slow,
        usual=min(max(mean, slow), fast),
        fast=fast,
        pieces=len(pieces),
        disk=disk,
        is_measured=True,
        strain=min(_PASS / through, _MOST_STRAIN) if through else 1.0,
    )


def of_pass(forecasts: Iterable["PartitionForecast"]) -> float | None:
    """Return the bytes a second of a pass over a log in the page cache; None without one.

    It is of the partition of which most is read at a start, which it was a moment before.
    """
    most = sorted(forecasts, key=lambda one: -one.bytes_read)[:_MOST_PARTITIONS]
    for forecast in most:
        log = _largest_log(forecast.request.path, 1) if forecast.bytes_read else None
        with suppress(UnreadableError):
            size, seconds = (
                files.time_through_cache(log, _SAMPLE, _SAMPLE_SECONDS) if log else (0, 0)
            )
            if size:
                return size / seconds
    return None


def cold_bytes(logs: Iterable[tuple[Path, int]]) -> int:
    """Return about how many bytes of logs, given with their sizes, are not in the page cache."""
    total = 0.0
    for path, size in logs:
        if size >= PIECE and not files.is_remote(path):
            with suppress(UnreadableError):
                total += size * (1 - files.cached_share(path, size, _LOOK_EACH))
    return round(total)


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


def _largest_log(directory: Path, least: int = _WORTH_READING) -> Path | None:
    """Return the largest log of a partition; None without one of `least` bytes."""
    logs = [path for path in directory.glob("*.log") if path.is_file()]
    sizes = {path: files.size_at(path) for path in logs}
    largest = max(sizes, key=lambda path: sizes[path], default=None)
    return largest if largest and sizes[largest] >= least else None
