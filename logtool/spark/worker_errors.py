"""Errors inside Spark's Python workers, each in one sentence."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from logtool.errors import LogtoolError

_OF_A_WORKER: Final = "PYTHON_WORKER_FACTORY"
"""Start of the names of the variables with the address to which Spark's Python workers connect."""


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Let Spark pass on the sentence of an error without the lines of code that raised it."""
    try:
        yield
    except LogtoolError as error:
        # Spark's worker sends its traceback, and ends. Only there: the limit is the process's own.
        if any(name.startswith(_OF_A_WORKER) for name in os.environ):
            sys.tracebacklimit = 0
        raise error from None
