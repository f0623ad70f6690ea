"""A run of ``undo``: what is put back or redone, and whether the undo directory is needed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from logtool.actions import Action
from logtool.apply import Journal, locked
from logtool.commands import options
from logtool.commands.output import Line, Printer, Report
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object
from logtool.commands.views import actions
from logtool.disk import shell
from logtool.errors import RefusedError
from logtool.exits import Exit
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.running.summary import ActionSummary
from logtool.schemas.printed import ACTION


def run(undo_dir: Path, printing: options.Printing, *, apply: bool, redo: bool) -> Exit:
    """Put back what a command changed, or with `redo` change it again; return the exit status.

    Without `apply`, print what that would be.
    """
    settings, summary = printing.settings(), ActionSummary()
    view = replace(actions.make(settings), lines={"table": _line})
    report = Report(settings=settings, view=view, summary=summary)
    job = _Undo(undo_dir, apply, redo)
    return report.consume(job, UndoPrinter(report, summary, job))


@dataclass(slots=True)
class _Undo:
    """One run: iterate for what is put back or redone, after it was done if `apply` says so."""

    undo_dir: Path
    apply: bool
    redo: bool
    journal: Journal | None = None
    """None until the undo directory was read."""

    def __iter__(self) -> Iterator[Action | RefusedError]:
        try:
            self.journal = Journal.open(self.undo_dir)
            found = self._changed(self.journal)
        except RefusedError as error:
            yield error
        else:
            yield from found

    @property
    def has_work(self) -> bool:
        """Return whether the undo or redo has something to do."""
        if self.journal is None:
            return False
        return self.journal.can_be_redone if self.redo else self.journal.can_be_undone

    def _changed(self, journal: Journal) -> list[Action]:
        if not self.apply or not self.has_work:
            if self.apply and (journal.log_dir / FileKind.LOCK).exists():
                with locked(journal.log_dir):
                    pass  # which removes the lock that a kill left
            return journal.redo_actions() if self.redo else journal.undo_actions()
        # Printed only afterwards: a reader that leaves the pipe must not stop it half way.
        done: list[Action] = []
        with locked(journal.log_dir):
            (journal.redo if self.redo else journal.undo)(done.append)
        return done


class UndoPrinter(Printer[Action | RefusedError]):
    """Prints what is put back or redone, and what remains to be done."""

    def __init__(self, report: Report, summary: ActionSummary, job: _Undo) -> None:
        self._report = report
        self._summary = summary
        self._job = job
        self._count = 0

    def show(self, item: Action | RefusedError) -> None:
        """Print one action, or why nothing was changed."""
        if isinstance(item, Action):
            self._report.item(ACTION.row(item))
            self._count += 1
        else:
            self._report.not_done(item)

    def finish(self) -> None:
        """Say whether there is something to put back or to redo."""
        if not self._summary.refused:
            self._summary.to_do = not self._job.apply and self._job.has_work

    def last_lines(self) -> Iterator[Line]:
        """Yield the outcome of the undo or redo; nothing if it was refused or is incomplete."""
        journal, summary = self._job.journal, self._summary
        if journal is None or summary.refused or not summary.complete:
            return
        if summary.to_do:
            changes = text.count(self._count, "change")
            word = "redo" if self._job.redo else "undo"
            what = f"{changes} of '{journal.command}' to {word} in {journal.log_dir}"
            yield f"{what}; nothing was written; add --apply to do it", "warning"
            return
        home = shell.path(journal.undo_dir)
        if self._job.redo:
            done = f"redo: {journal.log_dir} is in the state after '{journal.command}'"
            yield f"{done}; undo with: logtool undo --apply {home}", "good"
        elif journal.state == "prepared":
            done = "no file was changed yet; there is nothing to restore"
            yield f"{done}; {journal.undo_dir} can be removed", "good"
        else:
            done = f"{journal.log_dir} is in the state before '{journal.command}'"
            redo = f"redo with: logtool undo --redo --apply {home}"
            yield f"{done}; {journal.undo_dir} can be removed; {redo}", "good"


def _line(obj: Object) -> str | None:
    """Return an action as a person reads it."""
    if obj["type"] != "action":
        return None
    place = text.escape(obj["path"])
    if obj["position"] is not None:
        place += f" @{obj['position']}"
    if obj["target"] is not None:
        place += f" to {text.escape(obj['target'].rpartition('/')[2])}"
    if obj["length"]:
        place += f", {text.size(obj['length'])}"
    return f"{obj['action']:<8} {place}: {text.escape(obj['reason'])}"
