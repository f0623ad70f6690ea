"""Errors of the system while a plan is made or carried out, with the way to go on."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logtool.errors import UnreadableError, UnwritableError, mark_unfinished

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def hint(undo_dir: Path, state: str, room: str, *, changes: bool = False) -> Iterator[None]:
    """Add to an error of the system the state of the plan and the way to go on.

    `room` is the advice for a full disk. With `changes` the block changes files of the log dir.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        # From Ctrl-C or another signal: the caller that reports it also prints the note.
        if not hasattr(error, "__notes__"):
            error.add_note(f"stopped; {state}")
        if changes:
            mark_unfinished(error)
        raise
    except (UnwritableError, UnreadableError) as error:
        reason, said = error.reason, _with_room(error, state, room)
        raise _unwritable(error.path, reason, said, changes=changes) from error
    except OSError as error:
        path, reason = Path(str(error.filename or undo_dir)), error.strerror or str(error)
        said = _with_room(error, state, room)
        raise _unwritable(path, reason, said, changes=changes) from error


def _unwritable(path: Path, reason: str, said: str, *, changes: bool) -> UnwritableError:
    """Return the error to raise.

    A variable of `hint` with it would be a cycle, which keeps files open until it is collected.
    """
    error = UnwritableError(path, reason, said)
    if changes:
        mark_unfinished(error)
    return error


def _with_room(error: BaseException | None, state: str, room: str) -> str:
    """Return the state of the plan, and the advice if the error is that of a full disk."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            return f"{state}; {room}"
        error = error.__cause__
    return state
