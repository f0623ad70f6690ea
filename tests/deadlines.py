"""Deadlines of waits for a condition: they only end a test that would never end."""

import time

SLACK = 4
"""Times by which a loaded machine may be slower than an idle one."""


def deadline_in(seconds: float) -> float:
    """Return the time of `time.monotonic` at which a wait ends.

    It is `SLACK` times as far away as the seconds, which are plenty for an idle machine.
    """
    return time.monotonic() + SLACK * seconds
