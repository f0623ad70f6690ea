"""One run over many logs: its progress, its budget and its threads."""

from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import TypeVar

from logtool.lazy_dataclass import dataclass
from logtool.running.budget import WORTH_A_POOL, Budget
from logtool.running.workers import OnBytes, Workers

Work = TypeVar("Work")
Result = TypeVar("Result")


@dataclass(slots=True)
class Progress:
    """Bytes dealt with and to deal with; `on_progress` is called with it after each step."""

    bytes_done: int = 0
    bytes_total: int = 0
    """Bytes known so far; each log dir that is listed adds its own."""
    path: Path = Path()
    """The file or directory that is being read."""
    on_progress: "Callable[[Progress], None] | None" = None

    def advance(self, count: int, path: Path | None = None) -> None:
        """Count bytes that were dealt with, of `path` or else of the path as before."""
        self.bytes_done += count
        if path is not None:
            self.path = path
        if self.on_progress:
            self.on_progress(self)


@dataclass(slots=True)
class Run(Progress):
    """Progress within a budget. The caller sets `bytes_total`."""

    budget: Budget = field(default_factory=Budget)

    def workers(
        self, function: Callable[[Work, OnBytes], Result], size: int | None = None
    ) -> Workers[Work, Result]:
        """Return threads that call `function`: one alone where there is little to read.

        `size` is the bytes that they read; None: all of the run.
        """
        size = self.bytes_total if size is None else size
        jobs = self.budget.jobs if size >= WORTH_A_POOL else 1
        return Workers(
            function=function, jobs=jobs, pace=self.budget.pace, on_progress=self.advance
        )

    @property
    def ran_out(self) -> bool:
        """Return whether time was over before everything was read."""
        return self.budget.pace.ran_out

    def restarted(self) -> "Run":
        """Return a run within the same budget that begins at zero."""
        return Run(on_progress=self.on_progress, budget=self.budget)
