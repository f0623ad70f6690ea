"""Output of the commands that changed log dirs: logtool.undo/1."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from logtool.apply.history import AppliedCommand, applied_commands
from logtool.apply.parsing import PlanState
from logtool.commands import options
from logtool.commands.output import Line, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import columns, keep
from logtool.commands.views.rows import RowPrinter
from logtool.disk import shell
from logtool.exits import Exit
from logtool.running.summary import ActionSummary
from logtool.schemas.columns import Column, Kind, Table, count
from logtool.schemas.document import Document

APPLIED: Final = Table("applied", "command that ran with --apply", (
    Column("time", Kind.STRING, "time at which the changes began (RFC 3339)",
           null="no change was made yet"),
    Column("state", Kind.STRING, "prepared: no file was changed; committed, undoing or redoing: "
           "the command, undo or redo was interrupted, and the same command finishes it; done: the "
           "changes were made; undone: they were undone; redone: they were made again",
           words=("prepared", "committed", "done", "undoing", "undone", "redoing", "redone")),
    Column("state_time", Kind.STRING, "time at which the changes came to this state",
           null="the changes did not end"),
    count("files", "files that the command changed"),
    Column("command", Kind.STRING, "command line that made the changes"),
    Column("undo_dir", Kind.PATH, "the undo directory"),
    Column("log_dir", Kind.PATH, "the log dir that was changed"),
), note="A command that changed a log dir, from its undo directory.", type="applied",
    made_from="logtool.apply.history:AppliedCommand")  # fmt: skip
DOCUMENT: Final = Document(
    name="undo", title="Objects that logtool undo --list prints", tables=(APPLIED,)
)
SCHEMA = DOCUMENT.schema


def run(places: Sequence[Path], printing: options.Printing) -> Exit:
    """Print the commands that changed the log dirs at `places`; return the exit status."""
    settings, summary = printing.settings(), ActionSummary()
    rows = keep(columns("time", "state", "files", "command", "undo_dir"), "state", "undo_dir")
    view = View(
        schema=SCHEMA,
        columns=rows,
        layout=lambda obj: rows if obj["type"] == "applied" else None,
        row_types=frozenset({"applied"}),
    )
    report = Report(settings, view, summary)
    return report.consume(applied_commands(places), ListPrinter(report))


class ListPrinter(RowPrinter[AppliedCommand]):
    """Prints the commands, and how to undo or redo the last one."""

    def __init__(self, report: Report) -> None:
        super().__init__(report, DOCUMENT.row)
        self._changed: list[AppliedCommand] = []
        self._number = 0

    def show(self, item: AppliedCommand) -> None:
        """Print one command."""
        super().show(item)
        self._number += 1
        if item.state != PlanState.PREPARED:
            self._changed.append(item)

    def last_lines(self) -> Iterator[Line]:
        """Yield the number of commands, the last to undo, and the one whose undo came last."""
        made = [one for one in self._changed if one.state != PlanState.UNDONE]
        last = {one.log_dir: one for one in sorted(made, key=lambda one: one.time or "")}
        for one in last.values():
            which = f" of {one.log_dir}" if len(last) > 1 else ""
            yield f"undo the last{which}: logtool undo --apply {shell.path(one.undo_dir)}", None
        newest = max(self._changed, key=lambda one: one.state_time or "", default=None)
        if newest and newest.state == PlanState.UNDONE:
            again = f"logtool undo --redo --apply {shell.path(newest.undo_dir)}"
            yield f"redo the last undo: {again}", None
        yield f"{text.count(self._number, 'command')} with --apply", None
