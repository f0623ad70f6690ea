"""How fast logs are read, as a range, and what a broker needs on the whole.

What is measured here, while logs are loaded, is each stretch of 4 MiB. The fastest tenth and the
slowest tenth of these are the range. Most of it may have come from the page cache, which is empty
after a reboot: what the disks give past it is the slow end where that is slower (`disks`).

What a broker needs on the whole is calibrated by this machine: a few MiB of the logs, which are in
the page cache by then, are read once more and checked with CRC-32C. The constants are processor
time of the thread of Kafka 4.3.1 that loads, on two cores where that pass reaches `_PASS`, bytes
and batches from logs of 192 MiB in batches of 200 B, 1 KiB, 16 KiB and 1 MiB, the rest from 1 to
100 logs of 1 to 500 small segments. A machine on which the pass takes longer, because it is slower
or because others use it, takes a broker as much longer. ``make estimates`` starts brokers and
compares; its report is ``tests/broker/reports/estimates.md``.
"""

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass
from logtool.startup.disks import MIB, PIECE, Disks, DiskSample, cached_pass
from logtool.startup.partition import PartitionForecast

BROKER_BYTES_PER_SECOND = (350 * MIB, 2048 * MIB)
"""What one thread of a broker reads and checks of a log in the page cache: slowest and fastest."""
BATCH_SECONDS = (1.0e-6, 1.2e-6, 7.1e-6)
"""What a broker spends on each batch besides reading it: least, usual, most."""
LOG_SECONDS = (1e-3, 3.1e-3, 6e-3)
SEGMENT_SECONDS = (0.7e-3, 0.9e-3, 4.5e-3)
"""What it spends on each log of which it recovers a segment, and on each of these segments."""
LISTED_SECONDS = (1.2e-6, 1.7e-6, 7e-6)
"""What it spends on each file of a partition for each segment that it recovers: it lists them all
every time (`ProducerStateManager.loadSnapshots`)."""
SYNC_SECONDS = 0.65e-3
"""For how long it waits until the producer snapshot of a recovered segment is durable, usually."""
COMPILER_SECONDS = 1.2
"""Processor time of the Java compiler while a broker loads its logs, if that takes long enough."""
UNCOMPILED_SECONDS = 0.16
"""For how much longer loading takes, once, until its code is compiled: half of it is the time for
which it waits while the compiler has the processors."""
_SHARE = 0.19
"""What it reaches of the rate of that pass, in bytes."""
_PASS = 11_000 * MIB
_SAMPLE = 16 * MIB
"""Bytes of one log that are read once more."""
_MOST_STRAIN = 20.0
"""A pass that takes longer than that many times was in somebody's way for a moment."""
_SAMPLE_SECONDS = 0.1
"""Of processor time, for which they are: some thirty turns on a busy machine."""
_MANY = 500
"""Segments to be recovered from which on a start takes long, however small they are."""
_MOST_PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class ReadRates:
    """Bytes a second that one thread of a broker reads: at worst, on the whole, at best."""

    slow: float
    usual: float
    fast: float
    pieces: int = 0
    """Stretches that were timed here; 0 where the rate was given."""
    disks: Disks = field(default_factory=dict)
    """What each disk gave."""
    is_measured: bool = False
    strain: float = 1.0
    """How many times as long this machine takes, as busy as it is, as the one measured."""

    @property
    def disk(self) -> float | None:
        """Return what the slowest disk gave past the page cache; None where that was not tried."""
        return min((one.past_cache for one in self.disks.values() if one.past_cache), default=None)

    def disk_under(self, log_dir: Path) -> DiskSample | None:
        """Return what the disk gave that a log dir lies on; None where that was not tried."""
        device = files.device_of(log_dir) if self.disks else None
        return None if device is None else self.disks.get(device)

    @property
    def basis(self) -> str:
        """Return what they rest on: ``given`` or ``measured``."""
        return "measured" if self.is_measured else "given"


def known(
    forecasts: Sequence[PartitionForecast],
    given: float | None = None,
    *,
    disks: Disks | None = None,
) -> ReadRates | None:
    """Return the rate `given`, else those at which logs were loaded here.

    None where too little was read to tell. Without `disks` nothing more is read.
    """
    if given:
        return ReadRates(given, given, given)
    many = sum(forecast.recovered for forecast in forecasts) >= _MANY
    if not many and sum(forecast.bytes_read for forecast in forecasts) < PIECE:
        return None
    return measured(forecasts, disks, None if disks is None else of_pass(forecasts))


def measured(
    forecasts: Iterable[PartitionForecast],
    disks: Disks | None = None,
    through: float | None = None,
) -> ReadRates | None:
    """Return the rates at which logs were loaded here; None where too little was read to tell.

    `through` is what a pass over a log in the page cache reaches, in bytes a second.
    """
    pieces = sorted(rate for forecast in forecasts for rate in forecast.rates)
    if not pieces and through is None:
        return None
    slowest, fastest = BROKER_BYTES_PER_SECOND
    tenth = len(pieces) // 10
    best = min(pieces[-1 - tenth], fastest) if pieces else fastest
    slow = min(pieces[tenth] if pieces else slowest, slowest)
    strain = min(_PASS / through, _MOST_STRAIN) if through else 1.0
    # All stretches are equally long: what they take together is the harmonic mean.
    mean = len(pieces) / math.fsum(1 / rate for rate in pieces) if pieces else best
    usual = min(mean, best) if through is None else _SHARE * _PASS / strain
    known = ReadRates(
        slow=slow,
        usual=usual,
        fast=max(best, usual),
        pieces=len(pieces),
        disks=disks or {},
        is_measured=True,
        strain=strain,
    )
    return replace(known, slow=min(slow, usual, known.disk or slow))


def of_pass(forecasts: Iterable[PartitionForecast]) -> float | None:
    """Return the bytes a second of a pass over a log in the page cache; None without one.

    It is of the partition of which most is read at a start, which it was a moment before.
    """
    most = sorted(forecasts, key=lambda one: -one.bytes_read)[:_MOST_PARTITIONS]
    for forecast in most:
        log = _largest_log(forecast.request.path) if forecast.bytes_read else None
        with suppress(UnreadableError):
            size, seconds = cached_pass(log, _SAMPLE, _SAMPLE_SECONDS) if log else (0, 0)
            if size:
                return size / seconds
    return None


def _largest_log(directory: Path) -> Path | None:
    """Return the largest log of a partition; None without one."""
    logs = [path for path in directory.glob("*.log") if path.is_file()]
    return max(logs, key=files.size_at, default=None)
