"""A journal that is begun with the first change that there is for it."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from logtool.actions import Change
from logtool.apply.journal import Journal, default_undo_dir


class PendingJournal:
    """The changes of one log dir as they come; without any, no undo directory is made.

    The lock of the log dir is held. What was not committed when `stack` is left is discarded.
    """

    def __init__(
        self, log_dir: Path, *, undo_dir: Path | None, command: str, stack: ExitStack
    ) -> None:
        """Without an `undo_dir` it is one beside the log dir."""
        self._log_dir = log_dir
        self._undo_dir = undo_dir
        self._command = command
        self._stack = stack
        self.journal: Journal | None = None

    def stage(self, changes: Sequence[Change], *, first: bool = False) -> None:
        """Save what is needed to carry changes out, with `first` before all, and to undo them."""
        if not changes:
            return
        if self.journal is None:
            place = self._undo_dir or default_undo_dir(self._log_dir)
            self.journal = Journal.begin(place, self._log_dir, self._command)
            self._stack.callback(self.journal.discard)
        self.journal.stage(changes, first=first)
