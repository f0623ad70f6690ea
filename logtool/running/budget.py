"""The share of the machine that a run may take."""

from collections.abc import Iterable
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from logtool.disk.files import MOST_MAPPED
from logtool.lazy_dataclass import dataclass
from logtool.running.workers import Pace

if TYPE_CHECKING:
    # Only a run with --resume needs the module.
    from logtool.running.resume import Memory

WORTH_A_POOL = 64 * 1024 * 1024
"""Bytes of log from which on several threads are quicker than one that need not start them."""
_SLOWEST = 1024 * 1024
"""Bytes per second at which stretches are shortest; below that they would be of little use."""


def stretch_at(bytes_per_second: float | None, threads: int) -> int | None:
    """Return the value of `LogFile.stretch` for a rate; None if logs may be mapped.

    All threads together read no more ahead of the pace than the rate allows in an eighth of a
    second, but for a batch in which a stretch ends: it is read whole.
    """
    if bytes_per_second is None:
        return None
    share = int(max(bytes_per_second, _SLOWEST) / 8 / max(threads, 1))
    return None if share >= MOST_MAPPED else max(share, 1)


@dataclass(frozen=True, slots=True)
class Budget:
    """The share of the machine that a run may take."""

    jobs: int = 1
    """Threads."""
    pace: Pace = field(default_factory=Pace)
    drop_cache: bool = False
    """True if pages of the page cache are given back once they are read."""
    memory: "Memory | None" = None
    """The segments that earlier runs checked; the least recently checked is checked first."""

    def in_turn(self, paths: Iterable[Path]) -> list[Path]:
        """Return paths in the order in which to check them."""
        return self.memory.in_turn(paths) if self.memory else list(paths)
