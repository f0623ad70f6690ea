"""The progress of Spark jobs: reported while the driver waits, and described in Spark's UI."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext

POLL_SECONDS = 0.25


def tasks(context: "SparkContext") -> tuple[int, int]:
    """Return the number of finished tasks of the stages under way, and the number of all tasks."""
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
    """Describe the jobs of this thread, and report their tasks from another thread."""
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
