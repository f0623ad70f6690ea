"""Edits carried out through a journal next to the log dir, so that they can be undone."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from logtool import apply
from logtool.apply import Journal
from logtool.checkpoints.edit import Edit, kind_of
from logtool.formats.names import FileKind


def log_dir_of(path: Path) -> Path:
    """Return the log dir that a checkpoint belongs to: its directory, or the one above that."""
    parent = path.absolute().parent
    return parent.parent if kind_of(path) is FileKind.LEADER_EPOCH_CHECKPOINT else parent


@contextmanager
def locked_log_dir(log_dir: Path, undo_dir: Path | None = None) -> Iterator[list[Path]]:
    """Hold the lock of a log dir; yields the undo directories of what was left unfinished there.

    That is finished first: what is judged must not be half of a change. `undo_dir` is one that was
    asked for, which may hold such a change too.
    """
    with apply.locked(log_dir):
        yield [action.path for action in apply.finish_earlier(log_dir, undo_dir)]


def carry_out(edits: Sequence[Edit], log_dir: Path, undo_dir: Path | None, command: str) -> Path:
    """Do what the edits say; returns the undo directory. The lock must be held."""
    place = undo_dir or apply.default_undo_dir(log_dir)
    journal = Journal.begin(place, log_dir, command)
    journal.stage([edit.action.change for edit in edits if edit.action.change])
    journal.commit()
    journal.carry_out()
    return journal.undo_dir
