"""The progress of a long read on stderr: a bar on a terminal, a line now and then elsewhere.

It draws only; where to is decided by `output`.
"""

import os
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from logtool.commands.printing import text

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

REDRAW_SECONDS = 0.1
LINE_SECONDS = 10.0
SLOW_LINE_SECONDS = 30.0
"""Time between two lines of a job that runs for minutes or hours."""
_WIDE, _BAR, _SHORT_BAR = 100, 24, 10
"""Columns from which on the bar is as long as it gets, and how long it is there and below."""


class ProgressBar:
    """Shows what is read, how much of it, the rate and the time to go; nothing unless `wanted`."""

    def __init__(self, stream: TextIO, *, wanted: bool) -> None:
        self._stream = stream
        self._wanted = wanted
        self._terminal = wanted and stream.isatty()
        self._started = self._drawn = time.monotonic()
        self._bar: tuple[Progress, TaskID] | None = None
        self._columns = _WIDE
        self._shown = False

    def update(self, done: int, total: int, name: str, *, at_once: bool = False) -> None:
        """Take the state; draws at most some times a second, on a terminal `at_once` if asked."""
        now = time.monotonic()
        least = REDRAW_SECONDS if self._terminal else LINE_SECONDS
        if not self._wanted or (now - self._drawn < least and not (at_once and self._terminal)):
            return
        self._drawn = now
        line = progress_line(done, total, now - self._started, name)
        if self._terminal:
            self._draw(done, total, line if total else text.escape(name))
        else:
            self._stream.write(f"logtool: {line}\n")
            self._stream.flush()

    def hide(self) -> None:
        """Take the bar away so that a line can be printed; the next update brings it back."""
        if self._bar and self._shown:
            self._bar[0].stop()
            self._shown = False

    def _draw(self, done: int, total: int, line: str) -> None:
        if self._bar is None:
            self._bar = self._make(total)
        bar, task = self._bar
        if not self._shown:
            bar.start()
            self._shown = True
        room = self._columns - (_BAR if self._columns >= _WIDE else _SHORT_BAR) - 2
        shown = line if len(line) <= room else f"{line[: room - 3]}..."
        bar.update(task, completed=done, total=total, line=shown, refresh=True)

    def _make(self, total: int) -> "tuple[Progress, TaskID]":
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._columns = shutil.get_terminal_size().columns
        bar = Progress(
            BarColumn(bar_width=_BAR if self._columns >= _WIDE else _SHORT_BAR),
            TextColumn("{task.fields[line]}", markup=False),
            console=Console(file=self._stream),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        return bar, bar.add_task("", total=total, line="")


class ProgressLines:
    """Prints the state of a long job as a line: at once, and again every half a minute.

    A thread prints, because the job may wait in one call for a long time. It has its own copy of
    the stream's descriptor: the start of Spark captures what is written to stderr.
    """

    def __init__(
        self, stream: TextIO, name: str, wait: Callable[[float], bool] | None = None
    ) -> None:
        """Print the first line; `wait` waits that many seconds, and returns True at the end."""
        self._stream = stream
        self._descriptor: int | None = None
        with suppress(OSError, ValueError):  # A stream of a test has no descriptor.
            self._descriptor = os.dup(stream.fileno())
        self._state = (0, 0, name)
        self._started = time.monotonic()
        self._end = threading.Event()
        self._wait = wait or self._end.wait
        self._print(text.escape(name))
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()

    def update(self, done: int, total: int, name: str) -> None:
        """Take the state of the next line."""
        self._state = (done, total, name)

    def close(self) -> None:
        """Print no further line."""
        self._end.set()
        self._thread.join()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _go_on(self) -> None:
        while not self._wait(SLOW_LINE_SECONDS):
            done, total, name = self._state
            elapsed = time.monotonic() - self._started
            waits = not (done or total)
            line = text.escape(name) if waits else progress_line(done, total, elapsed, name)
            self._print(f"{line} (after {text.duration(elapsed)})")

    def _print(self, line: str) -> None:
        with suppress(OSError, ValueError):  # No one reads it any more.
            if self._descriptor is None:
                self._stream.write(f"logtool: {line}\n")
                self._stream.flush()
            else:
                os.write(self._descriptor, f"logtool: {line}\n".encode())


def progress_line(done: int, total: int, seconds: float, name: str = "") -> str:
    """Return the state as a line of text: how much, how fast, how long it takes yet, and of what.

    ``1.5 of 4.0 GiB (37 %), 214.0 MiB/s, 12.0 s to go, orders-3/00000000000000000000.log``
    """
    parts = [f"{text.share(done, total)} ({done * 100 // total} %)" if total else text.size(done)]
    if seconds > 0:
        parts.append(text.rate(done, seconds))
        if 0 < done < total:
            parts.append(f"{text.duration((total - done) * seconds / done)} to go")
    # Of a path the partition and the file say enough.
    short = "/".join(name.split("/")[-2:]) if name.startswith("/") or "://" in name else name
    if short and short != ".":
        parts.append(text.escape(short))
    return ", ".join(parts)
