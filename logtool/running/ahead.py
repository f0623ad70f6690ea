"""One thread that works ahead of the caller, for steps that release the interpreter's lock."""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

Result = TypeVar("Result")


class OneAhead(Generic[Result]):
    """Does one thing at a time: `begin` it, do something else, and `end` it.

    The next one may be begun before that, so that the thread goes on with it at once; each `end`
    is that of the first that was not ended. What it does must end by itself. The thread starts with
    the first thing, and `close` ends it; signals are for the thread of the caller, also while that
    waits.
    """

    def __init__(self) -> None:
        self._asked: SimpleQueue[Callable[[], Result] | None] = SimpleQueue()
        self._results: SimpleQueue[Result | Exception] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def begin(self, work: Callable[[], Result]) -> None:
        """Let the thread call `work`."""
        if self._thread is None:
            thread = threading.Thread(target=self._run, daemon=True)
            thread.start()
            # Only now: a signal before this leaves no thread that `close` could not join.
            self._thread = thread
        self._asked.put(work)

    def end(self) -> Result:
        """Wait for what was begun, and return what it returned; what it raised is raised here."""
        outcome = self._results.get()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def close(self) -> None:
        """End the thread, once what was begun is done; its result is lost."""
        if self._thread is not None:
            self._asked.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while work := self._asked.get():
            outcome: Result | Exception
            try:
                outcome = work()
            except Exception as error:
                outcome = error
            del work  # and what it holds, before anybody hears of its end
            self._results.put(outcome)
