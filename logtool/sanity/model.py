"""Projection of measured times to other sizes: the time of a start as a sum over its partitions.

Each partition is a sample of ``a + b * segments + c * bytes looked at``, fitted by least squares.
If the samples cannot separate terms (all partitions of one size), or a term would be below 0, a
simpler sum is taken; the last has the one term that the start depends on most. The part that a sum
leaves unexplained makes the interval of a projection, and doubts about a projection come with it.
"""

import math
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from logtool.formats import wording
from logtool.lazy_dataclass import dataclass
from logtool.sanity import broker_load
from logtool.sanity.measuring import TimedStart
from logtool.sanity.results import Mode

_SUMS = {
    Mode.EAGER: ((0, 1, 2), (0, 1), (1,)),
    Mode.LAZY: ((0, 1, 2), (0, 1), (0,)),
}
"""Terms to try: 0 per partition, 1 per segment, 2 per byte."""
FEW_SAMPLES = 30
POOR_FIT = 0.5
"""Least R2 of a sum that a projection should rest on."""
FAR = 100.0
"""Multiple of the measured segments from which on a projection is doubted."""
_DEVIATIONS = 1.96
"""Standard deviations on either side that hold 95 of 100."""
_DISTINCT = 1e-3
"""Smallest part of a term that must not follow from the others, so that they can be separated."""


@dataclass(frozen=True, slots=True)
class Size:
    """The quantities on which the time of a start depends."""

    partitions: float
    segments: float
    bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Target:
    """The size to project to; a number not given (None) is in proportion to the others."""

    partitions: int | None = None
    segments: int | None = None
    rate: float | None = None
    """Bytes a second that are written to this one broker, as leader and as follower."""
    retention: float = 0.0
    """Seconds for which these bytes are kept; only with `rate`."""
    segment_bytes: int = 1 << 30
    """``segment.bytes``; only with `rate`."""

    def size(self, measured: Size) -> Size:
        """Return the whole size; numbers not given follow from the measured size."""
        if self.rate is not None:
            partitions = self.partitions or measured.partitions
            # Each partition has an active segment in addition to those that are full.
            segments = partitions + self.rate * self.retention / self.segment_bytes
            return Target(partitions=round(partitions), segments=round(segments)).size(measured)
        if self.segments is not None:
            ratio = self.segments / measured.segments
        else:
            ratio = (self.partitions or 0) / measured.partitions
        return Size(
            measured.partitions * ratio if self.partitions is None else self.partitions,
            measured.segments * ratio,
            measured.bytes * ratio,
        )


@dataclass(frozen=True, slots=True)
class Projection:
    """The time of a start at another size."""

    path: Path
    mode: Mode
    size: Size
    seconds: float
    """Seconds of the index checks, by the measured terms."""
    interval: tuple[float, float] | None
    """Seconds between which 95 of 100 such starts lie, if partitions differ as the measured ones;
    None if there are too few samples."""
    load: tuple[float, float]
    """Seconds of the whole load of a broker, least and most: see `broker_load`."""
    brokers: int | None
    """Brokers of this size that are restarted one after the other; None if not given."""
    doubts: tuple[str, ...]
    """Reasons why the projection should not be relied on."""

    @property
    def seconds_low(self) -> float | None:
        """Return the lower end of the interval; None without one."""
        return None if self.interval is None else self.interval[0]

    @property
    def seconds_high(self) -> float | None:
        """Return the upper end of the interval; None without one."""
        return None if self.interval is None else self.interval[1]

    @property
    def load_seconds_low(self) -> float:
        """Return how long the whole load takes at least."""
        return self.load[0]

    @property
    def load_seconds_high(self) -> float:
        """Return how long the whole load takes at most."""
        return self.load[1]

    @property
    def bounce_seconds_low(self) -> float | None:
        """Return how long the loads of all brokers take at least; None without a number of them."""
        return None if self.brokers is None else self.brokers * self.load_seconds_low

    @property
    def bounce_seconds_high(self) -> float | None:
        """Return how long the loads of all brokers take at most; None without a number of them."""
        return None if self.brokers is None else self.brokers * self.load_seconds_high


@dataclass(frozen=True, slots=True)
class Model:
    """The fitted sum; None for a term that could not be separated from the others."""

    path: Path
    mode: Mode
    measured: Size
    samples: int
    terms: tuple[float | None, float | None, float | None]
    """Seconds per partition, per segment and per byte, with as many threads as measured."""
    r_squared: float | None
    """Share of the variance between partitions that the sum explains; None without variance."""
    scatter: float | None = None
    """Variance of a partition around the sum, in square seconds; None with too few samples."""
    unsure: npt.NDArray[np.float64] | None = field(default=None, compare=False)
    """Covariance of the terms that are known, in their order."""
    threads: int = 1
    largest: int = 0
    """Segments of the largest partition."""

    @property
    def seconds_per_partition(self) -> float | None:
        """Return the seconds for each partition."""
        return self.terms[0]

    @property
    def seconds_per_segment(self) -> float | None:
        """Return the seconds for each segment."""
        return self.terms[1]

    @property
    def seconds_per_byte(self) -> float | None:
        """Return the seconds for each byte that is looked at."""
        return self.terms[2]

    def at(self, target: Target, brokers: int | None = None) -> Projection:
        """Return the projection to another size, for so many brokers one after the other."""
        size = target.size(self.measured)
        amounts = (size.partitions, size.segments, size.bytes)
        known = zip(self.terms, amounts, strict=True)
        seconds = sum((term or 0.0) * amount for term, amount in known)
        return Projection(
            path=self.path,
            mode=self.mode,
            size=size,
            seconds=seconds,
            interval=self._interval(seconds, amounts),
            load=broker_load.seconds(
                self.mode, size.partitions, size.segments, threads=self.threads
            ),
            brokers=brokers,
            doubts=tuple(self._doubts(size)),
        )

    def _interval(
        self, seconds: float, amounts: tuple[float, float, float]
    ) -> tuple[float, float] | None:
        if self.scatter is None or self.unsure is None:
            return None
        pairs = zip(self.terms, amounts, strict=True)
        known = np.array([amount for term, amount in pairs if term is not None])
        variance = float(known @ self.unsure @ known) + self.scatter * amounts[0]
        margin = _DEVIATIONS * math.sqrt(max(variance, 0.0))
        return max(0.0, seconds - margin), seconds + margin

    def _doubts(self, size: Size) -> Iterator[str]:
        """Yield the reasons why a projection to a size should not be relied on."""
        if self.samples < FEW_SAMPLES:
            yield f"the estimate is based on only {wording.count(self.samples, 'partition')}"
        if self.r_squared is not None and self.r_squared < POOR_FIT:
            yield (
                f"the sizes of partitions explain only {100 * self.r_squared:.0f} % of the variance"
            )
        times = size.segments / self.measured.segments
        if times > FAR:
            yield f"the estimate is for {times:,.0f} times as many segments as were measured"
        each = size.segments / size.partitions
        if each > 2 * self.largest:
            yield (
                f"the estimate is for {each:,.0f} segments in each partition, but the largest "
                f"measured partition has {self.largest:,}"
            )


def fit(path: Path, mode: Mode, run: TimedStart, threads: int = 1) -> Model | None:
    """Return the model of a run; None if no partition has a segment or no sum fits."""
    samples = [sample for sample in run.samples if sample.segments]
    if not samples:
        return None
    rows = np.array([(1.0, one.segments, one.bytes) for one in samples])
    seconds = np.array([one.seconds for one in samples])
    for chosen in _SUMS[mode]:
        terms = _solved(rows[:, chosen], seconds)
        if terms is not None:
            break
    else:
        return None
    spread = float(((seconds - seconds.mean()) ** 2).sum())
    left = float(((seconds - rows[:, chosen] @ terms) ** 2).sum())
    # Threads take less time than the sum over the partitions, and a start takes more than that.
    pace = run.seconds / float(seconds.sum())
    coefficients = dict(zip(chosen, (terms * pace).tolist(), strict=True))
    size = Size(len(samples), *(float(total) for total in rows[:, 1:].sum(axis=0)))
    per_term = (coefficients.get(0), coefficients.get(1), coefficients.get(2))
    # Without a constant the sum may explain less than the mean does.
    r_squared = max(0.0, 1 - left / spread) if spread and 0 in chosen and len(chosen) > 1 else None
    spare = len(samples) - len(chosen)
    scatter = left / spare * pace**2 if spare > 0 else None
    columns = rows[:, chosen]
    return Model(
        path=path,
        mode=mode,
        measured=size,
        samples=len(samples),
        terms=per_term,
        r_squared=r_squared,
        scatter=scatter,
        unsure=None if scatter is None else scatter * np.linalg.pinv(columns.T @ columns),
        threads=threads,
        largest=max(sample.segments for sample in samples),
    )


def _solved(
    rows: npt.NDArray[np.float64], seconds: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64] | None:
    """Return the least squares; None if terms cannot be separated or one is below 0."""
    scale = np.sqrt((rows**2).sum(axis=0))
    if not scale.all():
        return None
    terms, _, rank, _ = np.linalg.lstsq(rows / scale, seconds, rcond=_DISTINCT)
    if rank < len(scale) or (terms < 0).any():
        return None
    solved: npt.NDArray[np.float64] = terms / scale
    return solved
