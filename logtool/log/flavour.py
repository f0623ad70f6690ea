"""Whose files lie in a directory: told by names, unless whoever started the program says it."""

from enum import StrEnum


class Flavour(StrEnum):
    """Who wrote a directory."""

    KAFKA = "kafka"
    REDPANDA = "redpanda"


_forced: list[Flavour | None] = [None]


def force(flavour: Flavour | None) -> None:
    """Take every directory for one of this flavour from now on; None: as names tell."""
    _forced[0] = flavour


def forced() -> Flavour | None:
    """Return what was forced."""
    return _forced[0]
