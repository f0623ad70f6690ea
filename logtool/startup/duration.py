"""How long a broker takes to load the logs of a log dir."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from logtool.startup.partition import PartitionForecast

_WORTH_TIMING = 4 * 1024 * 1024
"""Bytes of a log from which on the time to read it says something."""
BATCH_SECONDS = 2.8e-6
"""What a broker spends on each batch besides reading it: Kafka 4.3.1 as tests/bench measured it."""


@dataclass(frozen=True, slots=True)
class Duration:
    """How long the logs of a log dir take to load."""

    threads: int
    bytes_per_second: float
    """Of each thread."""
    bytes: int
    seconds: float
    critical: Path | None
    """The partition that takes longest; no number of threads makes it quicker than that."""
    critical_seconds: float
    probe_timeout_s: int
    """What a liveness probe should wait at least: twice the time, and a minute for the rest."""

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        return {
            "type": "duration",
            "threads": self.threads,
            "bytes_per_second": round(self.bytes_per_second),
            "bytes": self.bytes,
            "seconds": round(self.seconds, 3),
            "critical": None if self.critical is None else str(self.critical),
            "critical_seconds": round(self.critical_seconds, 3),
            "probe_timeout_s": self.probe_timeout_s,
        }


def measured_rate(forecasts: Iterable[PartitionForecast]) -> float | None:
    """Return the bytes a second at which logs were loaded here; None where too little was read."""
    read = [forecast for forecast in forecasts if forecast.bytes_read >= _WORTH_TIMING]
    return (
        sum(forecast.bytes_read for forecast in read) / sum(forecast.seconds for forecast in read)
        if read
        else None
    )


def duration(
    forecasts: Iterable[PartitionForecast], threads: int, bytes_per_second: float
) -> Duration:
    """Return how long `threads` of a broker need at a rate of reading each.

    The logs are dealt out in their order, as a broker does.
    """
    busy = [0.0] * threads
    total, critical, longest = 0, None, 0.0
    for forecast in forecasts:
        seconds = forecast.bytes_read / bytes_per_second + forecast.batches_scanned * BATCH_SECONDS
        total += forecast.bytes_read
        if seconds > longest:
            critical, longest = forecast.request.path, seconds
        busy[busy.index(min(busy))] += seconds
    probe = math.ceil(2 * max(busy) + 60)
    return Duration(
        threads=threads,
        bytes_per_second=bytes_per_second,
        bytes=total,
        seconds=max(busy),
        critical=critical,
        critical_seconds=longest,
        probe_timeout_s=probe,
    )
