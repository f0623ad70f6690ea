"""The undo directories of a log dir: what was applied there, and whether it was undone."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from logtool.apply import records
from logtool.apply.dirfd import OpenDir
from logtool.apply.parsing import PlanState
from logtool.errors import RefusedError, UnreadableError
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AppliedCommand:
    """A command that ran with ``--apply``, as its undo directory shows it."""

    log_dir: Path
    time: str | None
    """Time at which the changes began (RFC 3339); None if no change was made yet."""
    state: PlanState
    state_time: str | None
    """Time of `state` (RFC 3339); None if the changes did not end."""
    command: str
    files: int
    """Files that the command changed."""
    undo_dir: Path


def applied_commands(places: Iterable[Path]) -> Iterator[AppliedCommand | UnreadableError]:
    """Yield the commands applied to log dirs, the oldest first.

    A place is a log dir, whose undo directories have default names next to it, an undo directory,
    or a directory that holds undo directories.
    """
    for place in places:
        if not place.is_dir():
            yield UnreadableError(place, "no such directory", missing=not place.exists())
            continue
        found: list[AppliedCommand] = []
        for path in _undo_dirs(place.resolve()):
            try:
                known = records.read(OpenDir(path))
            except RefusedError as error:
                yield UnreadableError(path, str(error).removeprefix(f"{path}: "))
                continue
            found.append(
                AppliedCommand(
                    log_dir=known.log_dir,
                    time=known.time,
                    state=known.state,
                    state_time=known.state_time,
                    command=known.command,
                    files=len(known.steps),
                    undo_dir=path,
                )
            )
        yield from sorted(found, key=lambda one: (one.time or "", one.undo_dir))


def _undo_dirs(place: Path) -> Iterator[Path]:
    if (place / records.NAME).exists():
        yield place
        return
    prefix = f"{place.name}{records.DEFAULT_INFIX}"
    yield from (one for one in place.parent.iterdir() if one.name.startswith(prefix))
    yield from (one for one in place.iterdir() if (one / records.NAME).exists())
