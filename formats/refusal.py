"""The place at which a broker refuses a small text file, and the kind of exception that it raises.

The kind decides the outcome: an I/O error takes the log dir offline; any other exception ends the
start, or the reader of the file ignores it. The first fault in the file counts.
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
