"""Where what was built goes: into a directory of its own, or in place through a journal."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from logtool.actions import Action, FileChange
from logtool.apply import Journal, PendingJournal, disk, outside
from logtool.apply.dirfd import OpenDir
from logtool.errors import RefusedError
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Consent:
    """What may be written."""

    apply: bool = False
    """In place."""
    undo_dir: Path | None = None
    """With `apply`; None: beside the log dir."""
    output: Path | None = None
    """A directory for copies; it is made."""
    command: str = "logtool rebuild-index"
    """What is run, for whoever finds the undo directory."""


class Output:
    """A directory that gets what was built: a folder for each partition dir."""

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self._folders: dict[Path, Path] = {}
        """The partition dir of each folder."""
        self._held: OpenDir | None = None

    def check(self, log_dirs: Sequence[Path]) -> None:
        """RefusedError where it is in use, or lies in a log dir."""
        for log_dir in log_dirs:
            outside.check(self._path, log_dir.resolve())

    def take(self, actions: Sequence[Action]) -> list[Action]:
        """Write what was built; returns the actions with where that is.

        A file that would only be removed is left out.
        """
        return [
            self._written(action, action.change.content)
            if action.change and action.change.content is not None
            else action
            for action in actions
            if action.action is not FileChange.REMOVE
        ]

    def _written(self, action: Action, content: bytes) -> Action:
        source = action.path.parent.resolve()
        folder = self._path / source.name
        if self._folders.setdefault(folder, source) != source:
            raise RefusedError(f"{folder}: is of {self._folders[folder]}, not of {source}")
        if self._held is None:
            self._held = _made(OpenDir(self._path.parent), self._path)
        home = _made(self._held, folder)
        target = folder / action.path.name
        disk.write_new(home, target, [content])
        disk.sync_dir(home, folder)
        return replace(action, target=target)


def _made(home: OpenDir, path: Path) -> OpenDir:
    """Return a directory in `home`, made where it is not there yet."""
    return OpenDir(path, home) if path.exists() else disk.make_dir(home, path)


class InPlace:
    """The changes of one log dir, saved as they come, then carried out; its lock is held."""

    def __init__(self, consent: Consent, log_dir: Path, stack: ExitStack) -> None:
        self._pending = PendingJournal(
            log_dir, undo_dir=consent.undo_dir, command=consent.command, stack=stack
        )

    @property
    def journal(self) -> Journal | None:
        """Return the journal, once there is a change."""
        return self._pending.journal

    def take(self, actions: Sequence[Action]) -> list[Action]:
        """Save what is needed to carry the actions out and to undo them."""
        self._pending.stage([action.change for action in actions if action.change])
        return list(actions)

    def carry_out(self) -> None:
        """Change the log dir."""
        if self.journal:
            self.journal.commit()
            self.journal.carry_out()
