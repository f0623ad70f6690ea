"""Two policies of recovery after a kill, side by side: what each reads, and what it misses.

Up to Kafka 0.8.0 the last segment of every log was recovered, whatever was flushed; since 0.8.1
(KAFKA-615) all segments are, from the one with the recovery point on. After an orderly stop neither
reads anything.
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
    """What is recovered after a kill."""

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
    """What recovery by a policy reads, how long that takes, and what stays unseen."""

    policy: Policy
    segments: int
    bytes: int
    """Of logs, those that are read once more for the producer state among them."""
    seconds_low: float
    seconds: float
    seconds_high: float
    unread_segments: int
    unread_bytes: int
    missed: tuple[Missed, ...]
    """Of what is known: what neither policy reads was not read here."""


@dataclass(frozen=True, slots=True)
class PolicyComparison:
    """The outlooks of policies, side by side."""

    outlooks: tuple[Outlook, ...]


def compare(
    forecasts: Sequence[PartitionForecast],
    policies: Sequence[Policy],
    threads: int,
    rates: ReadRates | None,
) -> PolicyComparison:
    """Return the outlook of each policy.

    Without `rates` those of a broker with the logs in the page cache are taken.
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
    """Return what recovering the last segment alone would have read; no producer was known then."""
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
