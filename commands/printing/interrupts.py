"""Signals: those that end a command while output is written, and SIGUSR1 for a status line."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from logtool.errors import ending

_DEFAULTS = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
"""The signals that end a command, and what Python does about each unless somebody changed it."""


class Interrupts:
    """Ctrl-C, SIGTERM and SIGHUP end a command in order, and never tear a line.

    While a line is written a signal waits for its end; a second one does not.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._writing = False
        self._waiting: int | None = None

    def catch(self) -> None:
        """Take over each of the signals, unless somebody else has, such as nohup."""
        with contextlib.suppress(ValueError):  # not in the main thread: none arrive here
            for number, default in _DEFAULTS.items():
                if signal.getsignal(number) == default:
                    self._before[number] = signal.signal(number, self._on_signal)

    def release(self) -> None:
        """Give the signals back."""
        while self._before:
            signal.signal(*self._before.popitem())

    @contextlib.contextmanager
    def delayed(self) -> Iterator[None]:
        """Hold the signals back while a line is written."""
        self._writing = True
        try:
            yield
        finally:
            self._writing = False
        if self._waiting is not None:
            number, self._waiting = self._waiting, None
            raise ending(number)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._writing and self._waiting is None:
            self._waiting = number
            return
        raise ending(number)


@contextlib.contextmanager
def status_on_signal(report: Callable[[], None]) -> Iterator[None]:
    """Call `report` on each SIGUSR1; if one arrives during that call, call it again afterwards."""
    asked = 0

    def caught(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked += 1
        if asked > 1:
            return  # a call inside of the call would nest without end under many signals
        while asked:
            report()
            asked -= 1

    before: Any = None
    with contextlib.suppress(ValueError):  # not in the main thread: none arrive here
        before = signal.signal(signal.SIGUSR1, caught)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGUSR1, before)
