"""How much of the machine a run may take, and what may look at its segments in another place."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass
from logtool.running.workers import OnBytes, OutOfTimeError, Pace

if TYPE_CHECKING:
    # Whoever only loads logs needs none of them.
    from logtool.checks.pieces import PieceReport
    from logtool.checks.report import SegmentReport, Task
    from logtool.log.dir import Partition
    from logtool.log.flavour import Flavour
    from logtool.running.resume import Memory

WORTH_A_POOL = 64 * 1024 * 1024
"""Bytes of log from which on several threads are quicker than one that need not start them."""


class Runner(Protocol):
    """What looks at units: `Workers` of this process, or executors elsewhere."""

    jobs: int

    def run(
        self, work: "Sequence[Sequence[Task]]", order: "Callable[[Sequence[Task]], Any]"
    ) -> "Iterator[list[SegmentReport | PieceReport] | OutOfTimeError]":
        """Yield the reports of each unit, in the order given."""

    def again(
        self, piece: "Sequence[Task]"
    ) -> "list[SegmentReport | PieceReport] | OutOfTimeError":
        """Return the reports of a unit whose bytes were counted before."""


class Engine(Protocol):
    """What looks at segments in another place than this process."""

    window: int
    """Segments that are planned ahead."""

    def piece_bytes(self, total: int) -> int:
        """Return about how large the pieces of a segment are to be, of so many bytes in all."""

    def partitions(
        self, paths: Sequence[Path], flavour: "Flavour | None" = None
    ) -> "Iterator[Partition | UnreadableError]":
        """Yield what `logtool.log.opening.try_partition` returns for each path."""

    def runner(self, on_bytes: OnBytes) -> AbstractContextManager[Runner]:
        """Return what looks at units, and tells `on_bytes` of the bytes dealt with."""


class Earlier(Protocol):
    """What was found by an earlier run, so that it need not be looked at again."""

    def known(self, tasks: "Sequence[Task]") -> "Sequence[SegmentReport | None]":
        """Return the reports of tasks whose segments are still the same; None for any other."""

    def remember(self, task: "Task", report: "SegmentReport") -> None:
        """Take the report of a segment that was looked at now."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of the machine a verification may take."""

    jobs: int = 1
    """Threads."""
    pace: Pace = field(default_factory=Pace)
    drop_cache: bool = False
    """Whether pages of the page cache are given back once they are read."""
    memory: "Memory | None" = None
    """What was checked in earlier runs: the least recently checked comes first."""
    engine: Engine | None = None
    """Where else the segments are looked at; then `jobs` and `pace` say nothing."""
    earlier: Earlier | None = None
    """What an earlier run knows of the segments."""
