"""How long a broker takes to load the logs of a log dir, and which of them take longest."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from typing import Any

from logtool.formats import wording
from logtool.loading.loaded import Why
from logtool.startup.partition import PartitionForecast
from logtool.startup.rates import BATCH_SECONDS, FROM_DISK, LOG_SECONDS, SEGMENT_SECONDS, Rates

MOST_NAMED = 10
"""Partitions that are named."""


@dataclass(frozen=True, slots=True)
class Slow:
    """How long one partition takes to load, and why."""

    forecast: PartitionForecast
    seconds_low: float
    seconds: float
    seconds_high: float

    @property
    def causes(self) -> Iterator[str]:
        """Yield what takes the time, in words, what is read first."""
        one = self.forecast
        batches = wording.count(one.batches_scanned, "batch", "batches")
        if one.bytes_scanned:
            segments = wording.count(one.recovered, "segment")
            yield f"{wording.size(one.bytes_scanned)} of {segments} in {batches}"
        for why, count in one.why.items():
            if why == Why.NO_INDEX:
                yield f"{wording.count(count, 'segment')} without offset index"
            elif why == Why.BAD_TRANSACTION_INDEX:
                yield f"{wording.count(count, 'segment')} with a bad transaction index"
        if one.indexes_changed:
            yield f"{wording.count(one.indexes_changed, 'index', 'indexes')} made or changed"
        if one.bytes_replayed:
            yield f"{wording.size(one.bytes_replayed)} once more for producers"
        if one.producers:
            yield wording.count(one.producers, "producer")

    def as_json(self) -> dict[str, Any]:
        """Return the object in the list of the slowest."""
        one = self.forecast
        return {
            "path": str(one.request.path),
            "topic": one.request.topic,
            "partition": one.request.partition,
            "seconds": round(self.seconds, 3),
            "seconds_low": round(self.seconds_low, 3),
            "seconds_high": round(self.seconds_high, 3),
            "recovered_segments": one.recovered,
            "recovered_why": dict(one.why),
            "bytes_scanned": one.bytes_scanned,
            "bytes_replayed": one.bytes_replayed,
            "batches": one.batches_scanned,
            "indexes_changed": one.indexes_changed,
            "producers": one.producers,
        }


@dataclass(frozen=True, slots=True)
class Duration:
    """How long the logs of a log dir take to load."""

    threads: int
    rates: Rates
    """Of each thread."""
    bytes: int
    seconds_low: float
    """At the fastest rate, with the least that a broker spends on a batch."""
    seconds: float
    """At the usual rate."""
    seconds_high: float
    """At the slowest rate, with the most that a broker spends on a batch."""
    slowest: Sequence[Slow]
    """Those partitions of which something is read that take longest, the worst first."""

    @property
    def probe_timeout_s(self) -> int:
        """Return what a liveness probe should wait at least.

        Twice the longest time, and a minute for the rest.
        """
        return math.ceil(2 * self.seconds_high + 60)

    @property
    def critical(self) -> Path | None:
        """Return the partition that takes longest; no number of threads is quicker than that."""
        return self.slowest[0].forecast.request.path if self.slowest else None

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        rates = self.rates
        return {
            "type": "duration",
            "threads": self.threads,
            "bytes_per_second": round(rates.usual),
            "bytes_per_second_low": round(rates.slow),
            "bytes_per_second_high": round(rates.fast),
            "rate_from": rates.basis,
            "pieces": rates.pieces,
            "disk_bytes_per_second": None if rates.disk is None else round(rates.disk),
            "bytes": self.bytes,
            "seconds": round(self.seconds, 3),
            "seconds_low": round(self.seconds_low, 3),
            "seconds_high": round(self.seconds_high, 3),
            "critical": None if self.critical is None else str(self.critical),
            "critical_seconds": round(self.slowest[0].seconds, 3) if self.slowest else 0.0,
            "probe_timeout_s": self.probe_timeout_s,
            "slowest": [one.as_json() for one in self.slowest],
        }


def duration(forecasts: Iterable[PartitionForecast], threads: int, rates: Rates) -> Duration:
    """Return how long `threads` of a broker need at a range of rates of reading each.

    The logs are dealt out in their order, as a broker does.
    """
    loads = [_timed(forecast, rates) for forecast in forecasts]
    read = (one for one in loads if one.forecast.bytes_read)
    return Duration(
        threads=threads,
        rates=rates,
        bytes=sum(one.forecast.bytes_read for one in loads),
        seconds_low=_dealt_out((one.seconds_low for one in loads), threads),
        seconds=_dealt_out((one.seconds for one in loads), threads),
        seconds_high=_dealt_out((one.seconds_high for one in loads), threads),
        slowest=nlargest(MOST_NAMED, read, key=lambda one: one.seconds),
    )


def _timed(forecast: PartitionForecast, rates: Rates) -> Slow:
    size, batches = forecast.bytes_read, forecast.batches_scanned
    least, most = BATCH_SECONDS
    low, usual, high = (
        of_log + forecast.recovered * of_segment if forecast.recovered else 0
        for of_log, of_segment in zip(LOG_SECONDS, SEGMENT_SECONDS, strict=True)
    )
    from_disk = min(forecast.cold_bytes, size) / (rates.disk * FROM_DISK) if rates.disk else 0
    seconds = (
        usual * max(rates.strain, 1)
        + from_disk
        + size / rates.usual
        + batches * rates.batch_seconds
    )
    return Slow(
        forecast=forecast,
        seconds_low=low + size / rates.fast + batches * least,
        seconds=seconds,
        seconds_high=max(high + size / rates.slow + batches * most, seconds),
    )


def _dealt_out(times: Iterable[float], threads: int) -> float:
    """Return when the last thread ends; each log goes to the thread that is free first."""
    busy = [0.0] * threads
    for seconds in times:
        busy[busy.index(min(busy))] += seconds
    return max(busy)
