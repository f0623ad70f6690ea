"""``logtool undo``: put back what a command with --apply changed."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.commands.printing import text
from logtool.commands.program.spread import Without, spread
from logtool.schemas.printed import ACTION

if TYPE_CHECKING:
    from logtool.actions import Action
    from logtool.apply import Journal
    from logtool.commands.output import Report
    from logtool.commands.printing.writers import Object
    from logtool.running.summary import ActionSummary

UndoneDir = Annotated[
    Path,
    typer.Argument(
        metavar="UNDO_DIR",
        help="What the command that changed files named.",
        show_default=False,
        parser=options.local_path,
    ),
]


@spread
def undo(
    *,
    undo_dir: UndoneDir,
    apply: options.Apply = False,
    printing: Annotated[options.Printing, Without("progress", "verbose")],
) -> None:
    """Put back what a command with --apply changed: every byte, name, mode, owner and time.

    Without --apply it writes nothing and prints what it would put back. It undoes a change that was
    completed, and one that was stopped half way. If undo itself is stopped, run it again.

    If a file is neither what it was before the change nor what it was after it, something else has
    changed it, such as a broker that was started meanwhile. Then undo puts nothing back at all.

    The command does what the undo directory says. Therefore the directory must belong to you or to
    root, and nobody else may be able to write there. Nothing outside of its log dir is changed, and
    no symbolic link is followed there.

    The undo directory stays, and can be removed afterwards.

    Examples:
      logtool undo /var/lib/kafka/data.logtool-undo-20260102T030405Z
      logtool undo --apply /var/lib/kafka/data.logtool-undo-20260102T030405Z

    Exit status:
      0    with --apply: it was put back; without: nothing to put back
      1    without --apply: there is something to put back
      2
      4    some file could not be read or written; the message says how to go on
      5    refused: a broker holds the log dir, a file was changed by somebody else, the
           directory is no undo directory, or somebody else than you and root owns it or may
           write there
      130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP); the same command goes on

    """
    from logtool.apply import Journal
    from logtool.commands.output import Report
    from logtool.commands.views import actions
    from logtool.errors import RefusedError
    from logtool.running.summary import ActionSummary

    settings = printing.settings()
    summary = ActionSummary()
    view = replace(actions.make(settings), lines={"table": _line})
    report = Report(settings=settings, view=view, summary=summary)
    journal, count = None, 0
    with report:
        try:
            journal = Journal.open(undo_dir)
            for action in _put_back(journal, apply=apply):
                report.item(ACTION.row(action))
                count += 1
        except RefusedError as error:
            summary.refused = True
            report.refused(error)
        else:
            summary.to_do = not apply and journal.can_be_undone
    if journal and summary.complete and not summary.refused:
        _conclude(report, journal, summary, count)
    raise typer.Exit(report.exit_status())


def _put_back(journal: "Journal", *, apply: bool) -> "list[Action]":
    """Return what is put back, after it was done if `apply` says so."""
    from logtool.apply import locked
    from logtool.formats.names import FileKind

    if not apply or not journal.can_be_undone:
        if apply and (journal.log_dir / FileKind.LOCK).exists():
            with locked(journal.log_dir):
                pass  # which removes the lock that a kill left
        return journal.undo_actions()
    # Printed only afterwards: a reader that leaves the pipe must not stop it half way.
    done: list[Action] = []
    with locked(journal.log_dir):
        journal.undo(done.append)
    return done


def _conclude(report: "Report", journal: "Journal", summary: "ActionSummary", count: int) -> None:
    if summary.to_do:
        changes = text.count(count, "change")
        what = f"{changes} of '{journal.command}' to take back in {journal.log_dir}"
        report.note(f"{what}; nothing was written; add --apply to do it", "warning")
        return
    if journal.state == "prepared":
        done = "no file was changed yet, there is nothing to put back"
    else:
        done = f"{journal.log_dir} is as it was before '{journal.command}'"
    report.note(f"{done}; {journal.undo_dir} can be removed", "good")


def _line(obj: "Object") -> str | None:
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
