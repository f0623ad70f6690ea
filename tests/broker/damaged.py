"""Damaged partitions by the hundred, each made from a sound one by a seed.

A case is a directory that no broker has loaded, its rows in the checkpoints of the log dir, and
the presence of a clean marker. The modules imported below define the damages. A random generator
chooses the details of each damage.
"""

from __future__ import annotations

import shutil
import struct
from dataclasses import dataclass
from pathlib import Path
from random import Random

from broker import damaged_files, damaged_logs, damaged_state, sources
from broker.damage_tools import Damage, UnfitError
from broker.install import release


@dataclass(frozen=True)
class Settings:
    """Settings of one start, shared by all its cases."""

    index_interval: int
    """``log.index.interval.bytes``."""
    index_size: int
    """``log.index.size.max.bytes``."""


SETTINGS = (Settings(4096, 65536), Settings(200, 65536), Settings(200, 128))
"""Dense indexes show more errors; the smallest index size leaves no room for many entries."""
_SHARES = (6, 12, 1)


DAMAGES: tuple[Damage, ...] = (
    damaged_logs.flip_in_header,
    damaged_logs.flip_in_header,
    damaged_logs.flip_in_payload,
    damaged_logs.set_field,
    damaged_logs.set_field,
    damaged_logs.set_size,
    damaged_logs.overflow,
    damaged_logs.overflow_without_index,
    damaged_logs.extreme_offset,
    damaged_logs.old_messages,
    damaged_logs.old_messages,
    damaged_logs.legacy_messages,
    damaged_logs.replace_marker,
    damaged_logs.append_batch,
    damaged_logs.repeat_batches,
    damaged_logs.drop_batches,
    damaged_logs.swap_batches,
    damaged_logs.cut_log,
    damaged_logs.cut_log,
    damaged_logs.zero_log,
    damaged_logs.append_garbage,
    damaged_files.remove_files,
    damaged_files.remove_files,
    damaged_files.remove_index_and_damage,
    damaged_files.orphans,
    damaged_files.remove_segment,
    damaged_files.empty_segment,
    damaged_files.leftovers,
    damaged_files.leftovers,
    damaged_files.swap_of_many,
    damaged_files.strange_files,
    damaged_files.directory_for_file,
    damaged_files.bad_index,
    damaged_files.index_beyond,
    damaged_state.bad_transaction_index,
    damaged_state.new_transaction_index,
    damaged_state.bad_snapshot,
    damaged_state.other_producers,
    damaged_state.another_snapshot,
    damaged_state.bad_epochs,
    damaged_state.malformed_epochs,
)


@dataclass(frozen=True)
class Case:
    """One damaged partition; for an offset of None the checkpoint has no row."""

    name: str
    """The name of the case and of its topic; the partition is 0."""
    path: Path
    """The directory; the broker gets a copy of it."""
    source: str
    damage: tuple[str, ...]
    recovery_point: int | None
    log_start: int | None
    clean: bool
    """True if the log dir has a clean marker."""
    settings: Settings
    purpose: str = "stray"
    """``stray``: loaded like a log in use, as ``future`` is, which the oldest releases know;
    ``delete``: loaded, but never recovered."""

    @property
    def directory(self) -> str:
        """The name of the directory in the log dir of the broker."""
        return f"{self.name}-0.0123456789abcdef0123456789abcdef-{self.purpose}"

    @property
    def description(self) -> str:
        done = "; ".join(self.damage) or "no damage"
        clean = "clean" if self.clean else "unclean"
        return (
            f"{self.name}: {self.source}: {done}; {clean}, recovery point {self.recovery_point}, "
            f"log start {self.log_start}, {self.settings}, -{self.purpose}"
        )


def cases(
    version: str, scenarios: sources.Scenarios, home: Path, *, seed: int, count: int
) -> list[Case]:
    """Make `count` damaged partitions for a release; a seed gives the same cases except for times.

    The partitions are parts of the fixture of that release or of the nearest one.
    """
    home.mkdir(parents=True, exist_ok=True)
    return [
        _case(version, scenarios, home, number, Random(f"{seed} {number}"))
        for number in range(count)
    ]


def _case(version: str, scenarios: sources.Scenarios, home: Path, number: int, rng: Random) -> Case:
    name = f"case{number:04}"
    path = home / name
    settings = rng.choices(SETTINGS, _SHARES)[0]
    # The damages take turns, so every damage is used.
    kinds = [] if number % 25 == 0 else [DAMAGES[number % len(DAMAGES)]]
    kinds += [rng.choice(DAMAGES)] * (rng.random() < 1 / 3 and bool(kinds))
    for _ in range(100):
        shutil.rmtree(path, ignore_errors=True)
        source = sources.put(sources.fixture_of(version), scenarios, path, rng)
        recovery_point, log_start = _recovery_point(path, rng), _log_start(path, rng)
        try:
            done = tuple(_damaged(kind, path, rng) for kind in kinds)
        except (UnfitError, IsADirectoryError, FileExistsError, OverflowError, struct.error):
            # The last two errors: the first damage left an offset too large for the second damage.
            continue
        clean = rng.random() < 0.25
        loaded = "stray" if knows_stray(version) else "future"
        purpose = rng.choices((loaded, "delete"), (40, 1))[0]
        return Case(name, path, source, done, recovery_point, log_start, clean, settings, purpose)
    raise AssertionError(f"no source fits {kinds}")


def _damaged(kind: Damage, path: Path, rng: Random) -> str:
    if not sources.logs(path):
        raise UnfitError
    return kind(path, rng)


def knows_stray(version: str) -> bool:
    """Return whether a release loads a ``-stray`` directory and leaves it unchanged."""
    return release(version) >= (3, 7)


def _recovery_point(path: Path, rng: Random) -> int | None:
    bases, end = sources.base_offsets(path), sources.end_offset(path)
    usual = bases[-1]
    unusual = (None, 0, rng.choice(bases), rng.randint(bases[0], end), end, end + 1, end + 1000)
    return rng.choices((usual, bases[0], *unusual), (6, 6, 4, 4, 4, 2, 2, 1, 1))[0]


def _log_start(path: Path, rng: Random) -> int | None:
    bases, end = sources.base_offsets(path), sources.end_offset(path)
    unusual = (rng.choice(bases), rng.randint(bases[0], end), end, end + rng.randint(1, 50))
    return rng.choices((None, *unusual), (40, 2, 6, 1, 1))[0]
