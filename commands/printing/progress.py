"""The progress of a long read on stderr: a bar on a terminal, a line now and then elsewhere.

It draws only; where to is decided by `output`.
"""

import time
from typing import TYPE_CHECKING, TextIO

from logtool.commands.printing import text

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

REDRAW_SECONDS = 0.1
LINE_SECONDS = 10.0


class ProgressBar:
    """Shows bytes done, rate and time left; draws nothing unless `wanted`."""

    def __init__(self, stream: TextIO, *, wanted: bool) -> None:
        self._stream = stream
        self._wanted = wanted
        self._terminal = wanted and stream.isatty()
        self._started = self._drawn = time.monotonic()
        self._bar: tuple[Progress, TaskID] | None = None
        self._shown = False

    def update(self, done: int, total: int, name: str, *, at_once: bool = False) -> None:
        """Take the state; draws at most some times a second, on a terminal `at_once` if asked."""
        now = time.monotonic()
        least = REDRAW_SECONDS if self._terminal else LINE_SECONDS
        if not self._wanted or (now - self._drawn < least and not (at_once and self._terminal)):
            return
        self._drawn = now
        if self._terminal:
            self._draw(done, total, name)
        else:
            self._stream.write(f"logtool: {progress_line(done, total, now - self._started)}\n")
            self._stream.flush()

    def hide(self) -> None:
        """Take the bar away so that a line can be printed; the next update brings it back."""
        if self._bar and self._shown:
            self._bar[0].stop()
            self._shown = False

    def _draw(self, done: int, total: int, name: str) -> None:
        if self._bar is None:
            self._bar = self._make(total)
        bar, task = self._bar
        if not self._shown:
            bar.start()
            self._shown = True
        bar.update(task, completed=done, total=total, name=text.escape(name), refresh=True)

    def _make(self, total: int) -> "tuple[Progress, TaskID]":
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        bar = Progress(
            BarColumn(bar_width=24),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[name]}", markup=False),
            console=Console(file=self._stream),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        return bar, bar.add_task("", total=total, name="")


def progress_line(done: int, total: int, seconds: float) -> str:
    """Return the state as a line of text."""
    share = f" ({done * 100 // total} %)" if total else ""
    rate = f", {text.rate(done, seconds)}" if seconds > 0 else ""
    return f"{text.size(done)} of {text.size(total)}{share}{rate}"
