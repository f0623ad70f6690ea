"""A comparison of two policies of recovery after a kill: the bytes read, the damage missed.

Up to Kafka 0.8.0 the broker recovered the last segment of every log, flushed or not. Since 0.8.1
(KAFKA-615) it recovers all segments from the one with the recovery point on. After an orderly stop
neither reads anything.
"""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from logtool.lazy_dataclass import dataclass
from logtool.startup.duration import duration
from logtool.startup.partition import PartitionForecast
from logtool.startup.rates import BROKER_BYTES_PER_SECOND, ReadRates


class Policy(StrEnum):
    """Choice of the segments that are recovered after a kill."""

    LAST_SEGMENT = "last-segment"
    RECOVERY_POINT = "recovery-point"


@dataclass(frozen=True, slots=True)
class Missed:
    """Damage in a file that a policy does not read."""

    path: Path
    position: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Outlook:
    """Costs of recovery by one policy, and the damage that it misses."""

    policy: Policy
    segments: int
    bytes: int
    """Bytes of logs that are read, with those read once more for the producer state."""
    seconds_low: float
    seconds: float
    seconds_high: float
    unread_segments: int
    unread_bytes: int
    missed: tuple[Missed, ...]
    """Damage missed, as far as known: what neither policy reads was not read here either."""


@dataclass(frozen=True, slots=True)
class PolicyComparison:
    """The outlooks of policies, next to each other."""

    outlooks: tuple[Outlook, ...]


def compare(
    forecasts: Sequence[PartitionForecast],
    policies: Sequence[Policy],
    threads: int,
    rates: ReadRates | None,
) -> PolicyComparison:
    """Return the outlook of each policy.

    Without `rates`, it uses those of a broker with the logs in the page cache.
    """
    slow, fast = BROKER_BYTES_PER_SECOND
    known = rates or ReadRates(slow, (slow + fast) / 2, fast)
    return PolicyComparison(
        tuple(_outlook(forecasts, policy, threads, known) for policy in policies)
    )


def _outlook(
    forecasts: Sequence[PartitionForecast], policy: Policy, threads: int, rates: ReadRates
) -> Outlook:
    missed = [_unnoticed(forecast) for forecast in forecasts]
    if policy is Policy.LAST_SEGMENT:
        missed = [
            (*one, *(Missed(*place) for place in forecast.damaged_before_last))
            for one, forecast in zip(missed, forecasts, strict=True)
        ]
        forecasts = [_by_last_segment(forecast) for forecast in forecasts]
    time = duration(forecasts, threads, rates)
    return Outlook(
        policy=policy,
        segments=sum(one.recovered for one in forecasts),
        bytes=time.bytes,
        seconds_low=time.seconds_low,
        seconds=time.seconds,
        seconds_high=time.seconds_high,
        unread_segments=sum(one.segments - one.recovered for one in forecasts),
        unread_bytes=sum(one.log_bytes - one.bytes_scanned for one in forecasts),
        missed=tuple(place for places in missed for place in places),
    )


def _by_last_segment(forecast: PartitionForecast) -> PartitionForecast:
    """Return the forecast of recovering the last segment alone; 0.8.0 had no producer state."""
    if forecast.request.start.clean or not forecast.segments:
        return replace(forecast, recovered=0, bytes_scanned=0, bytes_replayed=0, batches_scanned=0)
    share = forecast.last_bytes / forecast.bytes_scanned if forecast.bytes_scanned else 0
    return replace(
        forecast,
        recovered=1,
        bytes_scanned=forecast.last_bytes,
        bytes_replayed=0,
        batches_scanned=round(forecast.batches_scanned * min(share, 1)),
    )


def _unnoticed(forecast: PartitionForecast) -> tuple[Missed, ...]:
    found = (action for action in forecast.actions if action.action == "unnoticed")
    return tuple(Missed(action.path, action.position, action.reason) for action in found)
