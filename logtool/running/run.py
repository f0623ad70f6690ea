"""One run over many logs: what it may take of the machine, its threads, and how far it is."""

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, TypeVar

from logtool.lazy_dataclass import dataclass
from logtool.running.budget import WORTH_A_POOL, Budget
from logtool.running.progress import Progress
from logtool.running.workers import OnBytes, Workers

if TYPE_CHECKING:
    from logtool.running.schedule import Schedule

Work = TypeVar("Work")
Result = TypeVar("Result")


@dataclass(slots=True)
class Run(Progress):
    """Progress within a budget. Whoever knows how much there is to read sets `bytes_total`."""

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

    def schedule(self) -> "Schedule":
        """Return what runs the checks of segments in threads."""
        # Whoever only loads logs checks none.
        from logtool.running.schedule import Schedule

        return Schedule(self.budget, self.advance)

    def anew(self) -> "Run":
        """Return a run within the same budget that begins at zero."""
        return Run(on_progress=self.on_progress, budget=self.budget)
