"""From what was measured to other sizes: the time of a start as a sum over its partitions.

Each partition is a sample of ``a + b * segments + c * bytes looked at``, fitted by least squares.
Where the samples cannot tell terms apart (all partitions of one size), or a term would come out
below 0, a simpler sum is taken; the last has the one term that the start goes by.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from logtool.sanity.measuring import Run
from logtool.sanity.results import Mode

_SUMS = {
    Mode.EAGER: ((0, 1, 2), (0, 1), (1,)),
    Mode.LAZY: ((0, 1, 2), (0, 1), (0,)),
}
"""Terms to try: 0 per partition, 1 per segment, 2 per byte."""
_DISTINCT = 1e-3
"""Smallest part of a term that must not follow from the others for it to be told apart."""


@dataclass(frozen=True, slots=True)
class Size:
    """What the time of a start depends on."""

    partitions: float
    segments: float
    bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Target:
    """The size that is asked for; None: in proportion to what else is given."""

    partitions: int | None = None
    segments: int | None = None

    def size(self, measured: Size) -> Size:
        """Return all of it, by what was measured where nothing was said."""
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

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "type": "projection",
            "path": str(self.path),
            "mode": str(self.mode),
            "partitions": round(self.size.partitions),
            "segments": round(self.size.segments),
            "bytes": round(self.size.bytes),
            "seconds": round(self.seconds, 6),
        }


@dataclass(frozen=True, slots=True)
class Model:
    """The fitted sum; a term that was not told apart is None."""

    path: Path
    mode: Mode
    measured: Size
    samples: int
    terms: tuple[float | None, float | None, float | None]
    """Seconds per partition, per segment and per byte, with as many threads as measured."""
    r_squared: float | None
    """Part of what differs between partitions that the sum explains; None where nothing does."""

    def at(self, target: Target) -> Projection:
        """Return the time at another size."""
        size = target.size(self.measured)
        amounts = (size.partitions, size.segments, size.bytes)
        known = zip(self.terms, amounts, strict=True)
        seconds = sum((term or 0.0) * amount for term, amount in known)
        return Projection(path=self.path, mode=self.mode, size=size, seconds=seconds)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        names = ("seconds_per_partition", "seconds_per_segment", "seconds_per_byte")
        rounded = [None if term is None else round(term, 12) for term in self.terms]
        return {
            "type": "model",
            "path": str(self.path),
            "mode": str(self.mode),
            "samples": self.samples,
            **dict(zip(names, rounded, strict=True)),
            "r_squared": None if self.r_squared is None else round(self.r_squared, 4),
        }


def fit(path: Path, mode: Mode, run: Run) -> Model | None:
    """Return the model of a run; None where there was nothing to do."""
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
    # Threads take less than the sum of what the partitions took, and a start more than that.
    pace = run.seconds / float(seconds.sum())
    coefficients = dict(zip(chosen, (terms * pace).tolist(), strict=True))
    size = Size(len(samples), *(float(total) for total in rows[:, 1:].sum(axis=0)))
    told_apart = (coefficients.get(0), coefficients.get(1), coefficients.get(2))
    # Without a constant the sum may explain less than the mean does.
    r_squared = max(0.0, 1 - left / spread) if spread and 0 in chosen and len(chosen) > 1 else None
    return Model(
        path=path,
        mode=mode,
        measured=size,
        samples=len(samples),
        terms=told_apart,
        r_squared=r_squared,
    )


def _solved(
    rows: npt.NDArray[np.float64], seconds: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64] | None:
    """Return the least squares, or None where terms are not told apart or one is below 0."""
    scale = np.sqrt((rows**2).sum(axis=0))
    if not scale.all():
        return None
    terms, _, rank, _ = np.linalg.lstsq(rows / scale, seconds, rcond=_DISTINCT)
    if rank < len(scale) or (terms < 0).any():
        return None
    solved: npt.NDArray[np.float64] = terms / scale
    return solved
