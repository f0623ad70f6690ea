"""Signals: Ctrl-C while output is written, and SIGUSR1 for a status line."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


class Interrupts:
    """Ctrl-C never tears a line: while one is written it waits for the end; a second does not."""

    def __init__(self) -> None:
        self._before: Any = None
        self._writing = False
        self._waiting = False

    def catch(self) -> None:
        """Take over Ctrl-C, unless somebody else has."""
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            with contextlib.suppress(ValueError):  # not in the main thread: none arrive here
                self._before = signal.signal(signal.SIGINT, self._on_interrupt)

    def release(self) -> None:
        """Give Ctrl-C back."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold Ctrl-C back while a line is written."""
        self._writing = True
        try:
            yield
        finally:
            self._writing = False
        if self._waiting:
            self._waiting = False
            raise KeyboardInterrupt

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._writing and not self._waiting:
            self._waiting = True
            return
        raise KeyboardInterrupt


@contextlib.contextmanager
def status_on_signal(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` whenever SIGUSR1 arrives."""
    before: Any = None
    with contextlib.suppress(ValueError):  # not in the main thread: none arrive here
        before = signal.signal(signal.SIGUSR1, lambda number, frame: tell())
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGUSR1, before)
