"""The command that repairs a log from another copy that is at hand."""

from collections.abc import Sequence
from pathlib import Path

from logtool.disk import files, shell
from logtool.log import opening
from logtool.log.redpanda import REDPANDA
from logtool.repair.sources import copies


def repair(path: Path, places: Sequence[Path]) -> str | None:
    """Return the command line, quoted for a shell; None if no place holds another copy.

    `path` is a partition dir; `places` are log dirs and partition dirs, in order of preference.
    None for Redpanda: `salvage` uses its copies, but a recovery does not.
    """
    if files.is_remote(path) or not path.is_dir() or opening.try_flavour(path) is REDPANDA:
        return None
    local = [place for place in places if not files.is_remote(place)]
    others = [place for place in local if _holds_another(place, path)]
    if not others:
        return None
    words = [f"--fill-from {shell.path(place)}" for place in others]
    return " ".join(["logtool recover --apply", *words, shell.path(path)])


def _holds_another(place: Path, path: Path) -> bool:
    own = path.resolve()
    return any(copy.resolve() != own for copy in copies(own.name, [place]))
