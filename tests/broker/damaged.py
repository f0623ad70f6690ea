"""Damaged partitions by the hundred, each made from a sound one by a seed.

A case is a directory that no broker has seen, what the checkpoints of its log dir say about it, and
whether there is a clean marker. The damages themselves are in `damages`; here they are dealt out.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from random import Random

from broker import damages, sources
from broker.damages import UnfitError


@dataclass(frozen=True)
class Settings:
    """What one start of a broker has in common for all its cases."""

    index_interval: int
    """``log.index.interval.bytes``."""
    index_size: int
    """``log.index.size.max.bytes``."""


SETTINGS = (Settings(4096, 65536), Settings(200, 65536), Settings(200, 128))
"""Dense indexes show more; in the smallest ones there is no room for them."""
_SHARES = (6, 12, 1)


@dataclass(frozen=True)
class Case:
    """One damaged partition; the checkpoints have no row where an offset is None."""

    name: str
    """Also the name of its topic; the partition is 0."""
    path: Path
    """What the broker gets a copy of."""
    source: str
    damage: tuple[str, ...]
    recovery_point: int | None
    log_start: int | None
    clean: bool
    """Whether the log dir has a clean marker."""
    settings: Settings

    @property
    def description(self) -> str:
        done = "; ".join(self.damage) or "no damage"
        clean = "clean" if self.clean else "unclean"
        return (
            f"{self.name}: {self.source}: {done}; {clean}, recovery point {self.recovery_point}, "
            f"log start {self.log_start}, {self.settings}"
        )


def cases(
    version: str, scenarios: sources.Scenarios, home: Path, *, seed: int, count: int
) -> list[Case]:
    """Make `count` damaged partitions in `home`, the same for the same seed but for times."""
    home.mkdir(parents=True, exist_ok=True)
    return [
        _case(version, scenarios, home, number, Random(f"{seed} {number}"))
        for number in range(count)
    ]


def _case(version: str, scenarios: sources.Scenarios, home: Path, number: int, rng: Random) -> Case:
    name = f"case{number:04}"
    path = home / name
    settings = rng.choices(SETTINGS, _SHARES)[0]
    # One after the other, so that none is left out by chance.
    kinds = [] if number % 25 == 0 else [damages.ALL[number % len(damages.ALL)]]
    kinds += [rng.choice(damages.ALL)] * (rng.random() < 0.2 and bool(kinds))
    for _ in range(100):
        shutil.rmtree(path, ignore_errors=True)
        source = sources.put(version, scenarios, path, rng)
        recovery_point, log_start = _recovery_point(path, rng), _log_start(path, rng)
        try:
            done = tuple(kind(path, rng) for kind in kinds)
        except UnfitError:
            continue
        clean = rng.random() < 0.25
        return Case(name, path, source, done, recovery_point, log_start, clean, settings)
    raise AssertionError(f"no source fits {kinds}")


def _recovery_point(path: Path, rng: Random) -> int | None:
    bases, end = sources.base_offsets(path), sources.end_offset(path)
    usual = bases[-1]
    unusual = (None, 0, rng.choice(bases), rng.randint(bases[0], end), end, end + 1, end + 1000)
    return rng.choices((usual, bases[0], *unusual), (6, 6, 4, 4, 4, 2, 2, 1, 1))[0]


def _log_start(path: Path, rng: Random) -> int | None:
    bases, end = sources.base_offsets(path), sources.end_offset(path)
    unusual = (rng.choice(bases), rng.randint(bases[0], end), end, end + rng.randint(1, 50))
    return rng.choices((None, *unusual), (40, 2, 6, 1, 1))[0]
