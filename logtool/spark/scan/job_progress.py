"""How far the jobs of Spark are: told while the driver waits for one, and in Spark's own pages."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext

POLL_SECONDS = 0.25


def tasks(context: "SparkContext") -> tuple[int, int]:
    """Return how many tasks of the stages under way are done, and how many there are."""
    done = total = 0
    with suppress(Exception):  # Where the connection is broken the job ends, and says so.
        tracker = context.statusTracker()
        for stage in map(tracker.getStageInfo, tracker.getActiveStageIds()):
            if stage:
                done, total = done + stage.numCompletedTasks, total + stage.numTasks
    return done, total


@contextmanager
def watched(
    context: "SparkContext", description: str, on_tasks: Callable[[int, int], None]
) -> Iterator[None]:
    """Give the jobs of this thread a description, and tell of their tasks from another thread."""
    stopped = threading.Event()

    def poll() -> None:
        while not stopped.wait(POLL_SECONDS):
            on_tasks(*tasks(context))

    context.setJobDescription(f"logtool: {description}")
    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
        with suppress(Exception):  # A broken connection must not hide what broke it.
            context.setJobDescription("logtool")
