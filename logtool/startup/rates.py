"""The rates at which logs are read, as a range, and the time that a broker needs to load them.

While logs are loaded, each stretch of 4 MiB is timed. The fastest tenth and the slowest tenth are
the range. Most of the log may have come from the page cache, which is empty after a reboot: the
rate of the disks past the page cache is the slow end if it is slower (`disks`).

The time that a broker needs is calibrated to this machine: 16 MiB of memory are copied and checked
with CRC-32C, as bytes of logs come from the page cache. The constants are processor time of the
thread of Kafka 4.3.1 that loads, on two cores where that pass reaches `_PASS`. Those for bytes and
batches were measured with logs of 192 MiB in batches of 200 B, 1 KiB, 16 KiB and 1 MiB, the others
with 1 to 100 logs of 1 to 500 small segments. If the pass takes longer on this machine, because it
is slower or busy, a broker takes longer by the same factor.
``make estimates`` starts brokers and compares; its report is
``tests/broker/reports/estimates.md``.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from pathlib import Path

from logtool.disk import files
from logtool.lazy_dataclass import dataclass
from logtool.startup.disks import MIB, PIECE, Disks, DiskSample, memory_pass
from logtool.startup.partition import PartitionForecast

BROKER_BYTES_PER_SECOND = (350 * MIB, 2048 * MIB)
"""Bytes a second of a log in the page cache that a broker's thread reads: slowest and fastest."""
BATCH_SECONDS = (1.0e-6, 1.2e-6, 7.1e-6)
"""Seconds that a broker spends on each batch in addition to reading it: least, usual, most."""
LOG_SECONDS = (1e-3, 3.1e-3, 6e-3)
SEGMENT_SECONDS = (0.7e-3, 0.9e-3, 4.5e-3)
"""Seconds for each log of which a segment is recovered, and for each of these segments."""
LISTED_SECONDS = (1.2e-6, 1.7e-6, 7e-6)
"""Seconds for each file of a partition, for each segment recovered: the broker lists all files
every time (`ProducerStateManager.loadSnapshots`)."""
SYNC_SECONDS = 0.65e-3
"""Usual seconds until the producer snapshot of a recovered segment is durable."""
COMPILER_SECONDS = 1.2
"""Seconds of processor time of the Java compiler during a load, if that takes long enough."""
UNCOMPILED_SECONDS = 0.16
"""Seconds that loading takes longer, once, until its code is compiled: half of it is the time in
which it waits while the compiler has the processors."""
LEAST, MOST = 0.7, 2.0
"""Ends of the range of a calibrated estimate, as shares of it. Of the 66 starts of the report, on a
machine three times as fast as that of the calibration, 60 are in it, and both ends are within a
factor of 3 of the time of 65."""
MOST_CROWDING = 2.0
"""Largest factor by which other processes that want a processor raise the upper end."""
_SHARE = 0.19
"""Rate at which a broker loads, as a share of the rate of the pass, both in bytes."""
_PASS = 11_000 * MIB
_MOST_STRAIN = 20.0
"""Largest strain that counts: a slower pass was held up by something else for a moment."""
_PASS_SECONDS = 0.1
"""Seconds of processor time for the pass: about thirty time slices on a busy machine."""
MANY = 500
"""Number of segments to recover from which on a start takes long, however small they are."""


@dataclass(frozen=True, slots=True)
class ReadRates:
    """Bytes a second that one thread of a broker reads: slowest, usual, fastest."""

    slow: float
    usual: float
    fast: float
    pieces: int = 0
    """Stretches that were timed here; 0 if the rate was given."""
    disks: Disks = field(default_factory=dict)
    """Samples of the disks."""
    is_measured: bool = False
    is_calibrated: bool = False
    """True if a pass over memory showed how fast this machine is."""
    strain: float = 1.0
    """Factor by which this machine, as busy as it is, is slower than the one of the constants."""

    @property
    def disk(self) -> float | None:
        """Return the rate of the slowest disk past the page cache; None if that was not tried."""
        return min((one.past_cache for one in self.disks.values() if one.past_cache), default=None)

    def disk_under(self, log_dir: Path) -> DiskSample | None:
        """Return the sample of the disk of a log dir; None if there is no sample."""
        device = files.device_of(log_dir) if self.disks else None
        return None if device is None else self.disks.get(device)

    @property
    def basis(self) -> str:
        """Return the basis of the rates: ``given`` or ``measured``."""
        return "measured" if self.is_measured else "given"


def known(
    forecasts: Sequence[PartitionForecast],
    given: float | None = None,
    *,
    disks: Disks | None = None,
) -> ReadRates | None:
    """Return the rate `given`, else the rates at which logs were loaded here.

    None if too little was read for a rate. Without `disks` nothing more is read.
    """
    if given:
        return ReadRates(given, given, given)
    many = sum(forecast.recovered for forecast in forecasts) >= MANY
    if not many and sum(forecast.bytes_read for forecast in forecasts) < PIECE:
        return None
    return measured(forecasts, disks, None if disks is None else memory_pass(_PASS_SECONDS))


def measured(
    forecasts: Iterable[PartitionForecast],
    disks: Disks | None = None,
    through: float | None = None,
) -> ReadRates | None:
    """Return the rates at which logs were loaded here; None if too little was read for a rate.

    `through` is the rate of a pass over memory, in bytes a second.
    """
    pieces = sorted(rate for forecast in forecasts for rate in forecast.rates)
    if not pieces and through is None:
        return None
    slowest, fastest = BROKER_BYTES_PER_SECOND
    tenth = len(pieces) // 10
    best = min(pieces[-1 - tenth], fastest) if pieces else fastest
    slow = min(pieces[tenth] if pieces else slowest, slowest)
    strain = min(_PASS / through, _MOST_STRAIN) if through else 1.0
    # All stretches are equally long, so that their mean rate is the harmonic mean.
    mean = len(pieces) / math.fsum(1 / rate for rate in pieces) if pieces else best
    usual = min(mean, best) if through is None else _SHARE * _PASS / strain
    known = ReadRates(
        slow=slow,
        usual=usual,
        fast=max(best, usual),
        pieces=len(pieces),
        disks=disks or {},
        is_measured=True,
        is_calibrated=through is not None,
        strain=strain,
    )
    return replace(known, slow=min(slow, usual, known.disk or slow))
