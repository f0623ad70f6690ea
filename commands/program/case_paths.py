"""Case files in the place of directories on a command line."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import ModuleType

    from logtool.log.inputs import NodeDir

ENDING = ".tar.zst"
"""Ending of the names of case files."""
_HOME = "logtool-case-"
"""Beginning of the names of the directories into which case files are expanded."""


class TakesCases:
    """Inputs of a command that takes case files."""

    __slots__ = ()
    takes_cases = True


def with_cases(given: "Sequence[NodeDir]", *, taken: bool) -> "list[NodeDir]":
    """Return the directories that are given, with those in a case file in its place.

    `taken` is True for a command that takes case files; UsageError for one that does not.
    """
    if not any(ENDING in str(one.path) for one in given):
        return list(given)
    return list(_opened().with_cases(given, taken=taken))


def require(
    given: "Sequence[Path]", *, records: bool = False, crcs: bool = False, blocks: bool = False
) -> None:
    """Raise UsageError if a path is of a case file that lacks what the command looks at.

    That is the framing of the records of some batches, the CRCs of some batches, or the blocks that
    files take on the disk, which no case file has.
    """
    cases = [path for path in given if _HOME in str(path)]
    if cases and (records or crcs or blocks):
        _opened().require(cases, records=records, crcs=crcs, blocks=blocks)


def _opened() -> "ModuleType":
    """Return the module that opens case files, which few runs need."""
    from logtool.case import given

    return given
