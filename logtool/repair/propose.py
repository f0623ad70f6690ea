"""The command that repairs a log from another copy that is at hand."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from logtool.disk import files, shell
from logtool.errors import UnreadableError
from logtool.log import opening
from logtool.log.redpanda import REDPANDA
from logtool.repair.sources import copies


def repair(path: Path, places: Sequence[Path], offset: int | None = None) -> str | None:
    """Return the command line, quoted for a shell; None if no place holds another copy.

    With `offset`, a copy that ends at or before that offset does not count: only a copy with the
    batch shows whether its leader epoch is right.

    `path` is a partition dir; `places` are log dirs and partition dirs, in order of preference.
    None for Redpanda: `salvage` uses its copies, but a recovery does not.
    """
    if files.is_remote(path) or not path.is_dir() or opening.try_flavour(path) is REDPANDA:
        return None
    local = [place for place in places if not files.is_remote(place)]
    others = [place for place in local if _holds_another(place, path, offset)]
    if not others:
        return None
    words = [f"--fill-from {shell.path(place)}" for place in others]
    return " ".join(["logtool recover --apply", *words, shell.path(path)])


def _holds_another(place: Path, path: Path, offset: int | None) -> bool:
    own = path.resolve()
    others = (copy for copy in copies(own.name, [place]) if copy.resolve() != own)
    return any(offset is None or _reaches(copy, offset) for copy in others)


def _reaches(path: Path, offset: int) -> bool:
    """Return whether a log has a batch at or behind an offset."""
    with suppress(UnreadableError):
        for segment in reversed(opening.open_partition(path).segments):
            chunks = segment.batches(payload=False)
            if any(bool((chunk.table.last_offset >= offset).any()) for chunk in chunks):
                return True
            if segment.base_offset <= offset:
                break
    return False
