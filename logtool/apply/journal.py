"""The undo directory: all that is needed to finish or undo a plan, and the state of the plan.

====================  ===================================================================
``journal.ndjson``    there from the commit on: ``begin``, one ``step`` per file,
                      ``directory`` with its mtime, ``commit``; then ``state`` lines
``000001.old``        of step 1: the whole old file (another name of it where the file
                      system allows), or the tail that is cut off
``000001.new``        of step 1: the content it gets
====================  ===================================================================

The lines are described in ``schemas/journal.json``. Paths are relative to the log dir.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from logtool.actions import Action, Change, FileChange
from logtool.apply import disk, outside, records, saving, states, stepping
from logtool.apply.dirfd import OpenDir, check_trusted
from logtool.apply.hints import hint
from logtool.apply.parsing import JournalRecord, PlanState
from logtool.apply.steps import Draft, FileStep, merge
from logtool.disk import shell
from logtool.errors import LogtoolError, RefusedError, UnreadableError
from logtool.log import opening
from logtool.log.redpanda import REDPANDA

_CARRIED_OUT = (PlanState.DONE, PlanState.REDONE)
_TO_CARRY_OUT = (PlanState.COMMITTED, PlanState.REDOING)
_ELSEWHERE = "free space on that disk, or use --undo-dir DIR on a disk with more room"
OnAction = Callable[[Action], None]


class Journal:
    """One undo directory and the plan in it; see `logtool.apply` for the order of calls."""

    def __init__(self, undo_dir: OpenDir, log_dir: Path, command: str) -> None:
        self._undo = undo_dir
        self.undo_dir = undo_dir.path
        self.log_dir = log_dir
        self.command = command
        """The command line that made the plan, for messages."""
        self.state = PlanState.PREPARED
        self.steps: list[FileStep] = []
        self._home: OpenDir | None = None
        self._times: dict[Path, int] = {}
        self._paths: set[Path] = set()
        self._made = False

    @classmethod
    def begin(cls, undo_dir: Path, log_dir: Path, command: str) -> "Journal":
        """Make the undo directory.

        RefusedError if it lies in a log dir, is in use, or another user may write there.
        """
        undo_dir, log_dir = undo_dir.resolve(), log_dir.resolve()
        with hint(undo_dir, f"nothing in {log_dir} was changed", _ELSEWHERE):
            outside.check(undo_dir, log_dir)
            if not undo_dir.exists():
                opened = disk.make_dir(OpenDir(undo_dir.parent), undo_dir)
                journal = cls(opened, log_dir, command)
                journal._made = True
            else:
                journal = cls(OpenDir(undo_dir), log_dir, command)
        with journal._given_up():
            # The name may have led elsewhere before: this checks the directory that is open.
            check_trusted(undo_dir, journal._undo.fd)
            if journal._undo.names():
                raise RefusedError(f"{undo_dir}: is not empty; use a new directory")
            journal._home = OpenDir(log_dir)
        return journal

    @classmethod
    def open(cls, undo_dir: Path) -> "Journal":
        """Read an undo directory; RefusedError if it is not one, or not to be trusted."""
        opened = OpenDir(undo_dir.resolve())
        known = records.read(opened)
        journal = cls(opened, known.log_dir, known.command)
        journal.state, journal.steps, journal._times = (
            known.state,
            known.steps,
            known.times,
        )
        return journal

    def stage(self, changes: Sequence[Change], *, first: bool = False) -> None:
        """Save what these changes need; all changes of one file belong into one call.

        They are carried out after the changes of earlier calls, with `first` before them. A later
        call may replace a file that an earlier call replaces. RefusedError if a file has changed
        since it was examined. After any error the undo directory is removed, and no file of the log
        dir was changed.
        """
        if self.state is not PlanState.PREPARED:
            raise ValueError(f"{self.undo_dir}: is {self.state}; no step can be added")
        with self._given_up():
            # Always the time of the log dir, too: the lock is made and removed there.
            self._times.setdefault(self.log_dir, os.fstat(self._log_dir.fd).st_mtime_ns)
            drafts = merge(map(_resolved, changes))
            freed = {draft.before for draft in drafts if draft.after is None}
            staged: set[Path] = set()
            at = 0 if first else len(self.steps)
            for number, draft in enumerate(drafts, len(self.steps) + 1):
                if earlier := self._replaced(draft):
                    step = saving.save_again(draft, number, earlier, self._log_dir, self._undo)
                else:
                    step = saving.save(draft, number, self._log_dir, self._undo, freed)
                    if not self._paths.isdisjoint(step.paths):
                        raise ValueError(f"{step.path} is changed by two calls of stage")
                self.steps.insert(at, step)
                staged.update(step.paths)
                at += 1
                for path in step.paths:
                    self._times.setdefault(path.parent, _mtime(self._log_dir, path))
            self._paths.update(staged)

    def _replaced(self, draft: Draft) -> FileStep | None:
        """Return the last step that replaces the file of a draft that replaces it again."""
        if draft.before not in self._paths:
            return None
        twice = (s for s in reversed(self.steps) if s.kind is draft.kind is FileChange.REPLACE)
        return next((s for s in twice if s.before == s.after == draft.before == draft.after), None)

    def commit(self) -> None:
        """Make everything durable; from here on the plan is carried out or undone."""
        if self.state is not PlanState.PREPARED:
            raise ValueError(f"{self.undo_dir}: is {self.state} already")
        with self._given_up():
            record = JournalRecord(
                log_dir=self.log_dir,
                command=self.command,
                state=self.state,
                steps=self.steps,
                times=self._times,
            )
            records.write(self._undo, record)
        self.state = PlanState.COMMITTED

    def discard(self) -> None:
        """Remove an undo directory that was not committed, as far as that is possible."""
        if self.state is PlanState.PREPARED:
            with suppress(LogtoolError, OSError):
                records.discard(self._undo, keep_dir=not self._made)
            self._undo.close()

    def carry_out(self, on_action: OnAction | None = None) -> None:
        """Change the log dir, or go on with it after a kill; RefusedError if a file was changed."""
        if self.state in _CARRIED_OUT:
            return
        if self.state not in _TO_CARRY_OUT:
            raise RefusedError(f"{self.undo_dir}: is {self.state}; {self._advice()}")
        room = "free space on that disk before you continue"
        with hint(self.undo_dir, self._way_on(), room, changes=True):
            progress = self._find()
            for item in _by_directory(progress, self._log_dir):
                for action in stepping.actions(item):
                    (on_action or _ignore)(action)
                stepping.carry_out(item, self._log_dir, self._undo)
            again = self.state is PlanState.REDOING
            self._enter(PlanState.REDONE if again else PlanState.DONE)

    def finish(self, on_action: OnAction | None = None) -> None:
        """Call `carry_out` after a kill or an error stopped it."""
        self.carry_out(on_action)

    @property
    def can_be_undone(self) -> bool:
        """Return whether `undo` has something to do, if only to record that the plan is undone."""
        return self.state not in (PlanState.PREPARED, PlanState.UNDONE)

    def undo_actions(self) -> list[Action]:
        """Return the actions that `undo` would take now; RefusedError if it would raise that."""
        if not self.can_be_undone:
            return []
        progress = self._find()
        stepping.check_saved(progress, self._undo)
        return [action for item in reversed(progress) for action in stepping.undo_actions(item)]

    def undo(self, on_action: OnAction | None = None) -> None:
        """Put everything back, also times of directories; RefusedError if a file has changed."""
        if not self.can_be_undone:
            return
        again = f"to continue, run again: {self._undo_command()}"
        with hint(self.undo_dir, again, "free space on that disk first", changes=True):
            progress = self._find()
            stepping.check_saved(progress, self._undo)
            if self.state is not PlanState.UNDOING:
                self._enter(PlanState.UNDOING)
            for item in _by_directory(progress[::-1], self._log_dir):
                for action in stepping.undo_actions(item):
                    (on_action or _ignore)(action)
                stepping.undo(item, self._log_dir, self._undo)
            for directory, mtime_ns in self._times.items():
                disk.set_dir_time(self._log_dir, directory, mtime_ns)
                disk.sync_dir(self._log_dir, directory)
            self._enter(PlanState.UNDONE)

    @property
    def can_be_redone(self) -> bool:
        """Return whether `redo` has something to do: the plan was undone, or a redo began."""
        return self.state in (PlanState.UNDONE, PlanState.REDOING)

    def redo_actions(self) -> list[Action]:
        """Return the actions that `redo` would take now; RefusedError if it would raise that."""
        if self.state in _CARRIED_OUT:
            return []
        return [action for item in self._to_redo() for action in stepping.actions(item)]

    def redo(self, on_action: OnAction | None = None) -> None:
        """Carry out a plan again that was undone.

        RefusedError if a file has changed since, or the plan or its undo is not finished.
        """
        if self.state in _CARRIED_OUT:
            return
        self._to_redo()
        if self.state is PlanState.UNDONE:
            self._enter(PlanState.REDOING)
        self.carry_out(on_action)

    def _to_redo(self) -> list[states.StepState]:
        """Return the progress of a redo; RefusedError if a file is not as the undo left it."""
        if not self.can_be_redone:
            raise RefusedError(f"{self.undo_dir}: is {self.state}; only an undone plan is redone")
        progress = self._find()
        changed = [item for item in progress if not item.is_untouched]
        if changed and self.state is PlanState.UNDONE:
            raise RefusedError(
                f"{changed[0].path}: is not as the undo left it; nothing was changed"
            )
        stepping.check_written(progress, self._undo)
        return progress

    @property
    def _log_dir(self) -> OpenDir:
        """The log dir, which is held open from its first use on."""
        if self._home is None:
            try:
                self._home = OpenDir(self.log_dir)
            except UnreadableError as error:
                if error.missing:
                    raise UnreadableError(self.log_dir, "does not exist") from error
                raise
            self._check_log_dir()
        return self._home

    def _check_log_dir(self) -> None:
        """Raise RefusedError for a directory that is not a log dir.

        A directory counts as a log dir if the plan itself removes the files that make it one.
        """
        gone = [step.path.name for step in self.steps if step.kind is FileChange.REMOVE]
        if not (
            outside.belongs_to_broker(self.log_dir)
            or any(map(outside.is_brokers, gone))
            or opening.flavour_at(self.log_dir) is REDPANDA
        ):
            raise RefusedError(f"{self.log_dir}: is not a log dir; nothing was changed")

    def _find(self) -> list[states.StepState]:
        settled = self.state in _CARRIED_OUT
        return states.find(self.steps, self._log_dir, self._undo, settled=settled)

    def _enter(self, state: PlanState) -> None:
        records.append_state(self._undo, state)
        self.state = state

    def _undo_command(self) -> str:
        return f"logtool undo --apply {shell.path(self.undo_dir)}"

    def _way_on(self) -> str:
        return (
            "the change is not finished and nothing is lost: run the same command again to "
            f"finish it, or undo it with: {self._undo_command()}"
        )

    def _advice(self) -> str:
        if self.state is PlanState.UNDOING:
            return f"to continue with the undo, run: {self._undo_command()}"
        return "there is nothing to finish"

    @contextmanager
    def _given_up(self) -> Iterator[None]:
        """Remove the undo directory if the block fails."""
        try:
            with hint(self.undo_dir, f"nothing in {self.log_dir} was changed", _ELSEWHERE):
                yield
        except BaseException:
            self.discard()
            raise


class PendingJournal:
    """The changes of one log dir, collected one by one; without any, no undo directory is made.

    The caller holds the lock of the log dir. A journal that is not committed when the caller leaves
    `stack` is discarded.
    """

    def __init__(
        self, log_dir: Path, *, undo_dir: Path | None, command: str, stack: ExitStack
    ) -> None:
        """Use the directory `undo_dir`, or without one a directory next to the log dir."""
        self._log_dir = log_dir
        self._undo_dir = undo_dir
        self._command = command
        self._stack = stack
        self.journal: Journal | None = None

    def stage(self, changes: Sequence[Change], *, first: bool = False) -> None:
        """Save what is needed to carry out and undo changes; `first` puts them before all."""
        if not changes:
            return
        if self.journal is None:
            place = self._undo_dir or default_undo_dir(self._log_dir)
            self.journal = Journal.begin(place, self._log_dir, self._command)
            self._stack.callback(self.journal.discard)
        self.journal.stage(changes, first=first)


def _mtime(home: OpenDir, path: Path) -> int:
    """Return the mtime of the directory that a file lies in."""
    with home.reach(path) as (fd, _):
        return os.fstat(fd).st_mtime_ns


def default_undo_dir(log_dir: Path) -> Path:
    """Return a free name next to `log_dir`: ``<log dir>.logtool-undo-<UTC time>``."""
    home = log_dir.resolve()
    now = time.time()
    while True:
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
        path = home.with_name(f"{home.name}{records.DEFAULT_INFIX}{stamp}")
        if not path.exists():
            return path
        now += 1


def find_unfinished(log_dir: Path, undo_dir: Path | None = None) -> list[Journal]:
    """Return the plans for `log_dir` that were begun and neither carried out nor undone.

    They are searched for next to the log dir and in `undo_dir`.
    """
    home = log_dir.resolve()
    places = set(home.parent.glob(f"{_escaped(home.name)}{records.DEFAULT_INFIX}*"))
    if undo_dir:
        places.add(undo_dir.resolve())
    found = []
    for path in sorted(places):
        if (path / records.NAME).exists():
            journal = _opened(path)
            unfinished = journal and journal.state in (*_TO_CARRY_OUT, PlanState.UNDOING)
            if journal and unfinished and journal.log_dir == home:
                found.append(journal)
    return found


def _opened(path: Path) -> Journal | None:
    """Read an undo directory that was found, not named on the command line.

    None for one of another user whose journal ends as done or undone: it may stay there.
    """
    try:
        return Journal.open(path)
    except RefusedError:
        if records.claims_to_be_ended(OpenDir(path.resolve())):
            return None
        raise


def finish_earlier(
    log_dir: Path, undo_dir: Path | None = None, *, dry_run: bool = False
) -> Iterator[Action]:
    """Finish plans that a kill interrupted, so that no half of a change is examined.

    Yield an action before each plan, also with `dry_run`, which changes nothing; its path is the
    undo directory. The caller must hold the lock, except for a dry run.
    """
    for journal in find_unfinished(log_dir, undo_dir):
        text = f"was not finished; logtool finishes this plan first: {journal.command}"
        yield Action(action="finish", path=journal.undo_dir, reason=text)
        if not dry_run:
            journal.finish()


def _by_directory(
    progress: Sequence[states.StepState], log_dir: OpenDir
) -> Iterator[states.StepState]:
    """Yield the steps to take, and make names durable after the last step in a directory.

    So a later step, such as the clean-shutdown marker, is never durable before an earlier one.
    """
    for item, following in zip(progress, [*progress[1:], None], strict=True):
        yield item
        home = item.step.path.parent
        if following is None or following.step.path.parent != home:
            disk.sync_dir(log_dir, home)


def _resolved(change: Change) -> Change:
    """Return the change with paths whose directories are resolved, without links."""
    home = change.path.parent.resolve()
    target = None if change.target is None else change.target.parent.resolve() / change.target.name
    return replace(change, path=home / change.path.name, target=target)


def _escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _ignore(action: Action) -> None:
    pass
