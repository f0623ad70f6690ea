"""Where a broker's reader gives up on a small text file, and with which kind of exception.

The kind decides what becomes of it: an I/O error takes the log dir offline, any other exception
ends the start or is swallowed, by whoever reads the file. What is wrong first in the file counts.
"""

from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """The first thing that Kafka's reader does not take."""

    message: str
    """Expected and found values."""
    position: int
    """Byte position in the file where it begins."""
    is_io_error: bool
    """True for an ``IOException``; False for a ``RuntimeException``."""
