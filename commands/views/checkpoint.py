"""Printing and making changes of checkpoints."""

import difflib
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import field, replace
from pathlib import Path

from logtool.actions import Action
from logtool.checkpoints.carry_out import carry_out, locked_log_dir
from logtool.checkpoints.edit import Edit
from logtool.commands.output import OutputSettings, Report, View
from logtool.commands.printing import text
from logtool.commands.views import actions
from logtool.disk import shell
from logtool.errors import UnreadableError
from logtool.exits import Exit
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log.inputs import GivenPaths
from logtool.running.summary import ActionSummary
from logtool.schemas.printed import ACTION


def of_edits(settings: OutputSettings, diffs: dict[str, str]) -> View:
    """Return the view of what changes; `diffs` are the differences of the files, by their path."""
    return replace(
        actions.make(settings), lines={"table": lambda obj: diffs.get(obj.get("path") or "")}
    )


@dataclass(frozen=True, slots=True)
class EditRun:
    """Edits that are shown and, where that is wanted, made."""

    settings: OutputSettings
    log_dir: Path
    apply: bool
    undo_dir: Path | None
    command: str
    """The command line that makes the edits; the undo directory names it."""
    summary: ActionSummary = field(default_factory=ActionSummary)
    inputs: GivenPaths | None = None
    unchanged: str = "nothing to change"
    """Text that is printed if there is nothing to do."""

    def run(self, find: Callable[[], Iterable[Edit | Action | UnreadableError]]) -> Exit:
        """Show the edits of `find`; with `apply`, make them if all were found; return status.

        An action among them is a file that cannot be repaired.
        """
        diffs: dict[str, str] = {}
        edits: list[Edit] = []
        left: list[Action] = []
        undo_dir = None
        summary = self.summary
        report = Report(
            settings=self.settings,
            view=of_edits(self.settings, diffs),
            summary=summary,
            inputs=self.inputs,
        )
        none: list[Path] = []
        holding = locked_log_dir(self.log_dir, self.undo_dir) if self.apply else nullcontext(none)
        # The report is outside: it is what takes signals, also while an earlier change is finished.
        with report, holding as finished:
            for place in finished:
                report.note(
                    f"an interrupted earlier change was completed first; to undo it: {_undo(place)}"
                )
            for item in find():
                if isinstance(item, UnreadableError):
                    report.unreadable(item)
                    continue
                if isinstance(item, Action):
                    left.append(item)
                    diffs[str(item.path)] = f"{text.escape(str(item.path))}: {item.reason}"
                    report.item(ACTION.row(item))
                    continue
                edits.append(item)
                diffs[str(item.action.path)] = difference(item)
                report.item(ACTION.row(item.action))
            summary.to_do = bool(left) or (bool(edits) and not self.apply)
            if self.apply and edits and summary.complete:
                undo_dir = carry_out(edits, self.log_dir, self.undo_dir, self.command)
                report.item(actions.undo_object(undo_dir))
        for edit in edits:
            self._explain(report, edit)
        if left:
            report.note(f"{text.count(len(left), 'file')} not repaired", "error")
        self._conclude(report, edits, undo_dir)
        return report.exit_status()

    def _explain(self, report: Report, edit: Edit) -> None:
        for reason in edit.reasons:
            report.note(f"{edit.action.path}: {reason}")
        marker = self.log_dir / FileKind.CLEAN_SHUTDOWN
        if edit.action.path.name == FileKind.RECOVERY_POINT_CHECKPOINT and marker.exists():
            report.note(
                f"{marker} exists: a broker that finds this marker does not recover any log"
            )

    def _conclude(self, report: Report, edits: list[Edit], undo_dir: Path | None) -> None:
        state = text.state(self.summary)
        count = f"{state}{text.count(len(edits), 'file')}"
        if undo_dir:
            report.note(f"{count} changed; to undo it: {_undo(undo_dir)}", "good")
        elif edits and self.summary.unfinished:
            report.note(f"{count} to change; only part of that is done", "error")
        elif edits and self.apply:
            report.note(f"{count} to change; nothing was written", "error")
        elif edits:
            report.note(f"{count} to change; nothing was written; add --apply to do it", "warning")
        elif not self.summary.nothing_read([self.log_dir]):
            report.note(f"{state}{self.unchanged}", None if state else "good")


def difference(edit: Edit) -> str:
    """Return the unified difference of a file's text, fit for a terminal and for patch(1)."""
    name, change = text.escape(str(edit.action.path)), edit.action.change
    before = name if change and change.seen else "/dev/null"
    after = "/dev/null" if change and change.content is None else name
    lines = difflib.unified_diff(_lines(edit.before), _lines(edit.after), before, after)
    return "\n".join(line.removesuffix("\n") for line in lines)


def _undo(undo_dir: Path) -> str:
    return f"logtool undo --apply {shell.path(undo_dir)}"


def _lines(data: bytes) -> list[str]:
    """Return the lines of a file, each with its end; the last says where it has none."""
    content = data.decode("utf-8", "backslashreplace")
    lines = [f"{text.escape(line)}\n" for line in content.split("\n")]
    if lines[-1] == "\n":
        return lines[:-1]
    lines[-1] += "\\ No newline at end of file\n"
    return lines
