"""Names of output that is not complete yet, and changes of a log dir that were not finished.

A file is written under the name ``.TOKEN.logtool-unfinished`` next to its place, and gets its own
name when it is complete. A directory of output has a folder ``logtool-unfinished`` until the run
that writes it ends (`logtool.apply.output_tree`). A change of a log dir has an undo directory
(`logtool.apply.journal`), by default next to the log dir.
"""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

WORK = "logtool-unfinished"
"""Name of the folder in which a run collects what is not complete."""
ENDING = f".{WORK}"
"""Ending of the names of files that are not complete."""
UNDO = ".logtool-undo-"
"""Part of the name of an undo directory behind that of its log dir."""
JOURNAL = "journal.ndjson"
"""Name of the journal in an undo directory."""
_BEGUN = frozenset({"committed", "undoing", "redoing"})
"""States of a change that is made in part."""


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


def changes(log_dir: Path) -> Iterator[tuple[Path, str]]:
    """Yield the undo directory and the command of each unfinished change of a log dir.

    A journal that another user could have written is left out.
    """
    home = Path(os.path.realpath(log_dir))
    with suppress(OSError):
        for place in sorted(home.parent.iterdir()):
            if place.name.startswith(f"{home.name}{UNDO}"):
                with suppress(OSError, ValueError, KeyError, IndexError, TypeError):
                    first, last = _ends_of_journal(place)
                    if first["log_dir"] == str(home) and last.get("state", "committed") in _BEGUN:
                        yield place, str(first["command"])


def _ends_of_journal(place: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the first and the last line of a trusted journal; OSError, ValueError."""
    for path in (place, place / JOURNAL):
        status = path.stat()
        is_open = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if is_open or status.st_uid not in (0, os.geteuid()):
            raise PermissionError(path)
    lines = (place / JOURNAL).read_bytes().splitlines()
    return json.loads(lines[0]), json.loads(lines[-1])
