"""A run of ``recover``: what is done or would be, and how to undo it."""

import sys
from collections.abc import Iterator
from pathlib import Path

from logtool.actions import HINDRANCES, Action
from logtool.commands import options
from logtool.commands.output import Line, Report
from logtool.commands.printing import text
from logtool.commands.program.recovery_options import ApplyOptions, RecoveryMode, StartPoint
from logtool.commands.program.start_options import StartingBroker
from logtool.commands.views import actions, mending
from logtool.commands.views.action_printer import NO_PARTITION, ActionPrinter
from logtool.disk import shell
from logtool.errors import LogtoolError, UsageError
from logtool.exits import Exit
from logtool.log.inputs import GivenPaths
from logtool.running.summary import ActionSummary
from logtool.startup.partition import PartitionForecast
from logtool.startup.recover import ApplyConsent, Recover


def run(
    inputs: options.AnyLocalInputs,
    begin: StartPoint,
    way: RecoveryMode,
    broker: StartingBroker,
    consented: ApplyOptions,
    running: options.Running,
    printing: options.Printing,
) -> Exit:
    """Recover logs, or print what that would change; return the exit status."""
    settings, summary = printing.settings(), ActionSummary()
    points, selection = begin.points(inputs.selection)
    given = inputs.of_one_broker(selection)
    report = Report(settings=settings, view=actions.make(settings), summary=summary, inputs=given)
    assumed = way.assumed(broker, begin, inputs.broker)
    consent = ApplyConsent(
        apply=consented.apply,
        accepted=consented.accepted,
        mark_clean=consented.mark_clean,
        undo_dir=consented.undo_dir,
        command=shell.join(["logtool", *sys.argv[1:]]),
    )
    _check_flavour(given, begin, way, consented)
    job = Recover(given.paths, assumed, consent, selection, points, running.run(report))
    job.named_by, job.flavour = begin.named_by, given.flavour
    return report.consume(job, RecoverPrinter(report, summary, job))


def _check_flavour(
    given: GivenPaths, begin: StartPoint, way: RecoveryMode, consented: ApplyOptions
) -> None:
    """UsageError where something is asked for that a directory of Redpanda knows nothing of."""
    named = begin.from_offset or begin.truncate_to
    if given.output_flavour and (named or way.supplements or way.fill_from or consented.mark_clean):
        raise UsageError(
            "--from-offset, --truncate-to, --strategy supplement, --fill-from and --mark-clean do "
            "not support Redpanda, and PATH is a Redpanda directory; 'logtool salvage "
            "--fill-from' writes a complete copy"
        )


class RecoverPrinter(ActionPrinter):
    """The same with the undo directories, and what the last lines say of a recovery."""

    def __init__(self, report: Report, summary: ActionSummary, job: Recover) -> None:
        super().__init__(report, summary)
        self._job = job
        self._changes = 0

    def show(self, item: Action | PartitionForecast | LogtoolError) -> None:
        """Print one item, and count the changes."""
        super().show(item)
        summary, consent = self._summary, self._job.consent
        if isinstance(item, Action):
            self._changes += item.change is not None
            summary.to_do |= item.action == "finish" and not consent.apply
            summary.to_do |= item.action == "absent"
            # Marking clean mends what it can, and refuses where more is wrong.
            summary.to_do |= item.action in HINDRANCES and not consent.mark_clean
        elif isinstance(item, PartitionForecast):
            self._changes += sum(action.change is not None for action in item.actions)
            summary.to_do |= item.outcome != "loads"

    def finish(self) -> None:
        """Print the undo directories, and say whether there is something to do."""
        for undo in self._job.undo_dirs:
            self._report.item(actions.undo_object(undo))
        to_make = self._changes > 0 and not self._job.consent.apply
        self._summary.to_do |= to_make or self._counts["unfilled"] + self._counts["diverges"] > 0

    def last_lines(self) -> Iterator[Line]:
        """Yield the last lines of a recovery, and the undo commands if no row shows them."""
        for line in self._last_lines():
            yield line, None
        interrupted, undo_dirs = self._summary.interrupted, self._job.undo_dirs
        if interrupted or self._report.settings.format in ("csv", "tsv", "markdown"):
            for undo in undo_dirs:
                yield actions.undo_line(undo), None
        if interrupted and undo_dirs:
            yield "or continue with the same command", None

    def _last_lines(self) -> Iterator[str]:
        job, summary, forecasts = self._job, self._summary, self._forecasts
        if self._withheld:
            yield self._withheld_line(failed=summary.unwritten > 0 and job.made < self._changes)
        losing = list(mending.names(self._losing))
        for one in forecasts:
            name = f"{one.request.topic}-{one.request.partition}"
            target, end = one.request.start.truncate_to, one.log_end
            is_shorter = target is not None and one.outcome == "loads" and end <= target
            if is_shorter and name not in losing:
                nothing = f"there is nothing to cut from offset {target} on"
                yield f"{one.request.path}: the log ends at {end}; {nothing}"
        is_explained = self._counts["unfilled"] or self._counts["diverges"]
        for log_dir in () if is_explained else self._stopped_in_order():
            where = "" if summary.complete else " in what could be read"
            nothing = f"nothing to recover after a clean stop{where}"
            check = f"logtool verify {shell.path(log_dir)}"
            yield (
                f"{log_dir}: {nothing}; damage was not looked for: run '{check}' first; --full "
                "recovers all logs, and cuts them at damage"
            )
        stopped = sum(forecast.outcome != "loads" for forecast in forecasts)
        if stopped:
            what = "it" if stopped == 1 else "them"
            partitions = text.count(stopped, "partition")
            yield f"{partitions} not changed: a broker would not load {what}"
        for purpose, command in self._hidden_lines():
            yield f"{purpose}: {command}"
        for command in self._rebuilding():
            yield f"to repair checkpoint files: {command}"
        yield from self._unchecked_lines()
        all_made = self._all_made
        if self._counts["fill"]:
            verb = "filled" if all_made else "to be filled"
            yield f"{text.count(self._counts['fill'], 'range')} {verb}"
        if unfilled := self._counts["unfilled"]:
            yield f"{text.count(unfilled, 'damaged range')} that no other copy fills"
        if diverging := self._counts["diverges"]:
            yield (
                f"{text.count(diverging, 'divergence')} from a copy, where nothing is filled: find "
                "out first which copy is right"
            )
        is_decided = all_made or summary.unfinished
        yield from self._losses("lost" if is_decided else "would be lost")
        below = [one for one in self._losing if _is_below_its_watermark(one)]
        if below and all_made:
            yield (
                f"the next start lowers the high watermark of {', '.join(mending.names(below))} to "
                "the end of the log; until then verify and doctor report the lost offsets"
            )
        if self._losing and not job.consent.apply:
            options = " ".join(shell.option("--accept-loss", name) for name in losing)
            yield f"to accept that: {options}"
        yield text.state(summary) + self._verdict()

    @property
    def _all_made(self) -> bool:
        return self._job.consent.apply and self._job.made == self._changes

    def _verdict(self) -> str:
        """Return how many of the changes were made."""
        job, summary, changes = self._job, self._summary, self._changes
        files = text.count(changes, "change")
        if not job.consent.apply and changes:
            outcome = (
                "--apply refuses while a file of the log dir cannot be read"
                if job.blocked
                else "add --apply to do it"
            )
            return f"{files} to make; nothing was written; {outcome}"
        if not changes and summary.exit_status() == 0:
            return "nothing to do" if self._forecasts else NO_PARTITION
        if summary.unfinished:
            return f"only part of {files} made"
        if not job.made:
            return "nothing was changed"
        return f"{files} made" if self._all_made else f"{job.made:,} of {files} made"

    def _stopped_in_order(self) -> Iterator[Path]:
        """Yield the log dirs whose logs a broker takes as they are, none of which loses records."""
        recovered: dict[Path, int] = {}
        losing = set(mending.names([*self._losing, *self._hiding]))
        for forecast in self._forecasts:
            if forecast.request.start.clean:
                log_dir = forecast.request.path.parent
                acts = f"{forecast.request.topic}-{forecast.request.partition}" in losing
                recovered[log_dir] = recovered.get(log_dir, 0) + forecast.recovered + acts
        return (log_dir for log_dir, count in recovered.items() if not count)


def _is_below_its_watermark(one: PartitionForecast) -> bool:
    """Return whether the log then ends below its high watermark, which stays as it is."""
    return bool(one.lost_acknowledged) and one.request.start.truncate_to is None
