"""The standard streams, in any state: closed, full, or without a reader."""

import contextlib
import errno
import os
import sys
from typing import TextIO

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors that only a write raises."""


def occupy() -> bool:
    """Make the three standard descriptors usable; returns whether standard output is open.

    A closed descriptor is given to ``/dev/null``: otherwise the next file that is opened gets its
    number, and whatever a library writes to standard error ends in that file. A closed standard
    error takes what is written to it and drops it; a closed standard output cannot do its job.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(number, True)
    os.close(number)
    if sys.stderr is None:
        sys.stderr = _null()
    if sys.stdout is not None:
        return True
    sys.stdout = _null()
    return False


def problem_of_stdout() -> OSError | None:
    """Return why standard output takes no more, None where it does; a closed pipe is raised."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        return error
    return None


def discard_stdout() -> None:
    """Let the rest of the output go nowhere: its reader has gone."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _null() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - it stays open


def utf8_stream(stream: TextIO) -> TextIO:
    """Let a stream take any text, in every locale."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure and (getattr(stream, "encoding", "") or "").lower() != "utf-8":
        reconfigure(encoding="utf-8")
    if reconfigure and stream.errors != "backslashreplace":
        reconfigure(errors="backslashreplace")
    return stream
