"""A run of ``rebuild-index``: what is built and what cannot be, and how that looks."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from logtool.actions import Action
from logtool.commands import options
from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing import terminal, text
from logtool.commands.printing.writers import Object
from logtool.commands.program import parsing
from logtool.commands.program.start_options import StartingBroker
from logtool.commands.views import actions
from logtool.disk import shell
from logtool.errors import LogtoolError, UsageError
from logtool.exits import Exit
from logtool.rebuild import BLOCKED, KINDS, FileChoice, IndexRebuild, RebuildConsent
from logtool.running.summary import ActionSummary
from logtool.schemas.printed import ACTION

_STYLES = {"remove": "warning"} | dict.fromkeys(BLOCKED, "error")


def make(settings: OutputSettings) -> View:
    """Return the view of `rebuild-index`: that of every plan, with a line for each file."""
    return replace(actions.make(settings), lines={"table": lambda obj: _line(obj, settings)})


def run(
    inputs: options.AnyLocalInputs,
    broker: StartingBroker,
    running: options.Running,
    printing: options.Printing,
    *,
    kinds: Sequence[str],
    snapshot_every: str | None,
    everything: bool,
    apply: bool,
    undo_dir: Path | None,
    output: Path | None,
) -> Exit:
    """Build indexes, or print which ones would be built; return the exit status."""
    settings, summary, given = printing.settings(), ActionSummary(), inputs.resolved()
    report = Report(settings=settings, view=make(settings), summary=summary, inputs=given)
    job = IndexRebuild(
        paths=given.paths,
        wanted=_wanted(kinds, snapshot_every, everything=everything),
        consent=RebuildConsent(apply, undo_dir, output, shell.join(["logtool", *sys.argv[1:]])),
        selection=given.selection,
        indexing=broker.indexing(inputs.broker),
        run=running.run(report), summary=summary, flavour=given.flavour,
    )  # fmt: skip
    return report.consume(job, RebuildPrinter(report, summary, job))


def _wanted(kinds: Sequence[str], snapshot_every: str | None, *, everything: bool) -> FileChoice:
    """Return the files to build; UsageError for `snapshot_every` if `kinds` exclude snapshots."""
    every = None
    if snapshot_every is not None:
        every = parsing.parse_size("--snapshot-every", snapshot_every)
        if kinds and "snapshot" not in kinds:
            raise UsageError("--snapshot-every needs --kind snapshot")
    chosen = frozenset(KINDS[name] for name in kinds or KINDS)
    return FileChoice(chosen, everything, every)


class RebuildPrinter(Printer[Action | LogtoolError]):
    """Prints what is built and what cannot be, then the undo directories."""

    def __init__(self, report: Report, summary: ActionSummary, job: IndexRebuild) -> None:
        self._report = report
        self._summary = summary
        self._job = job
        self._built = self._blocked = 0

    def show(self, item: Action | LogtoolError) -> None:
        """Print one action, or why something was not done."""
        if isinstance(item, Action):
            self._built += item.change is not None
            self._blocked += item.action in BLOCKED
            self._report.item(ACTION.row(item))
        else:
            self._report.not_done(item)

    def finish(self) -> None:
        """Print the undo directories, and say whether there is something to do."""
        job = self._job
        for undo_dir in job.undo_dirs:
            self._report.item(actions.undo_object(undo_dir))
        writes = job.consent.apply or job.consent.output is not None
        self._summary.to_do = self._blocked > 0 or (self._built > 0 and not writes)

    def last_lines(self) -> Iterator[Line]:
        """Yield how much was looked at and what was built."""
        status = self._report.exit_status()
        yield self._last_line(status), {0: "good", 1: "warning"}.get(int(status))

    def _last_line(self, status: Exit) -> str:
        summary, consent = self._summary, self._job.consent
        looked = f"{text.state(summary)}{text.count(summary.segments, 'segment')} checked"
        files = text.count(self._built, "file")
        blocked = self._blocked
        tail = f"; {text.count(blocked, 'obstacle')}, see above" if blocked else ""
        if not self._built:
            return f"{looked}, nothing to build{'' if summary.complete else ' there'}{tail}"
        if consent.output is not None:
            return f"{looked}, {files} built in {consent.output}{tail}"
        if summary.unfinished:
            return f"{looked}, only part of {files} changed{tail}"
        if self._job.undo_dirs:
            return f"{looked}, {files} changed{tail}"
        if consent.apply or status not in (Exit.OK, Exit.FINDINGS):
            return f"{looked}, {files} to change; nothing was written{tail}"
        return f"{looked}, {files} to change; nothing was written; add --apply to do it{tail}"


def _line(obj: Object, settings: OutputSettings) -> str | None:
    """Return an action as a person reads it."""
    if obj["type"] == "undo":
        return actions.undo_line(obj["path"])
    if obj["type"] != "action":
        return None
    action = str(obj["action"])
    place = text.escape(obj["path"])
    if obj["position"] is not None:
        place += f" @{obj['position']}"
    elif obj["length"] is not None:
        place += f", {text.size(obj['length'])}"
    label = f"{action:<10}"
    if action in _STYLES:
        label = terminal.paint_stdout(label, _STYLES[action], settings.color)
    return f"{label} {place}: {text.escape(obj['reason'])}"
