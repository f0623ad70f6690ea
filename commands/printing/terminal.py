"""The columns of a terminal, and the colour of a stream."""

import os
import shutil
import sys
from typing import TextIO

STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan", "good": "green", "dim": "dim"}
"""Styles of a text, in the words of rich."""


def width_of(stream: TextIO, *, wide: bool) -> int | None:
    """Return the columns that lines on `stream` may have, None where they may have any length.

    They are those of the terminal, or of the variable COLUMNS, for standard output in a pipe too.
    `wide` sets no limit.
    """
    is_set = stream is sys.stdout and os.environ.get("COLUMNS", "").isdecimal()
    if wide or not (stream.isatty() or is_set):
        return None
    return shutil.get_terminal_size().columns


def takes_color(choice: str, stream: TextIO) -> bool:
    """Return whether `stream` gets colour: a terminal does, unless TERM or NO_COLOR says no."""
    if choice != "auto":
        return choice == "always"
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(value: str, style: str | None, choice: str, stream: TextIO) -> str:
    """Return `value` in one of `STYLES`, if `stream` takes colour."""
    if style is None or not takes_color(choice, stream):
        return value
    from rich.style import Style

    return Style.parse(STYLES[style]).render(value)


def paint_stdout(value: str, style: str, choice: str) -> str:
    """Return `value` in one of `STYLES`, if stdout takes colour."""
    return paint(value, style, choice, sys.stdout)


def is_terminal() -> bool:
    """Return whether stdout is a terminal, which must not get raw control characters."""
    return sys.stdout.isatty()
