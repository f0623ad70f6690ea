"""Names of output that is not complete yet.

A file is written under the name ``.TOKEN.logtool-unfinished`` next to its place, and gets its own
name when it is complete. A directory of output has a folder ``logtool-unfinished`` until the run
that writes it ends (`logtool.apply.output_tree`).
"""

from contextlib import suppress
from pathlib import Path

WORK = "logtool-unfinished"
"""Name of the folder in which a run collects what is not complete."""
ENDING = f".{WORK}"
"""Ending of the names of files that are not complete."""


def is_unfinished(name: str) -> bool:
    """Return whether a file or folder has the name of output that is not complete."""
    return name == WORK or (name.startswith(".") and name.endswith(ENDING))


def near(path: Path) -> Path | None:
    """Return the unfinished output that a path lies in or holds; None if all is complete.

    The folder of a run lies up to four levels above a partition dir that the run makes.
    """
    named = next((one for one in (path, *path.parents) if is_unfinished(one.name)), None)
    if named:
        return named
    with suppress(OSError):
        if inside := next((one for one in path.iterdir() if is_unfinished(one.name)), None):
            return inside
    above = path.absolute().parents[:4]
    with suppress(OSError):
        return next((one / WORK for one in above if (one / WORK).is_dir()), None)
    return None
