"""All targets by name: a function of any bytes that raises if a property does not hold."""

from collections.abc import Callable
from types import CodeType

from fuzz import kernels, logs, small_files

Target = Callable[[bytes], None]


def all_targets(instrument: Callable[[CodeType], CodeType] | None = None) -> dict[str, Target]:
    """Return every target; `instrument` instruments modules that are loaded as plain text."""
    return {**small_files.TARGETS, **logs.TARGETS, **kernels.targets(instrument)}


def names() -> list[str]:
    """Return the names of all targets."""
    return sorted(all_targets())
