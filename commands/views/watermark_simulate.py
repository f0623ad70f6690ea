"""Output of simulated steps, and of the result of a simulation."""

from collections.abc import Iterator

from logtool.commands import options
from logtool.commands.output import Line, Printer, Report, View
from logtool.commands.printing.writers import Object, columns
from logtool.commands.views.watermark_tables import DOCUMENT, STATE, SUB_STEP
from logtool.exits import Exit
from logtool.running.summary import ActionSummary
from logtool.schemas.columns import Way
from logtool.watermark.simulation.scenario import SimulationVerdict, play, read, verdict
from logtool.watermark.simulation.state_machine import TruncationRule

_STATE = columns(*(name for name in STATE.names(Way.CSV) if name != "time_ms"))
_SUB_STEP = columns(*(name for name in SUB_STEP.names(Way.CSV) if name != "event"))
_STEPS_CSV = columns("type", *dict.fromkeys(c.title for c in (*_STATE, *_SUB_STEP)))


def run(printing: options.Printing, *, scenario: str, rule: str | None, steps: bool) -> Exit:
    """Print the steps of a scenario and what it comes to; `rule` takes the place of its own."""
    settings = printing.settings()
    chosen = read(scenario)
    # Played before anything is printed: a scenario that makes no sense is wrong usage.
    rows: list[Object] = []
    for step in play(chosen, TruncationRule(rule) if rule else None):
        rows += map(DOCUMENT.row, step.sub_steps() if steps else ())
        rows += map(DOCUMENT.row, (*step.states(), *step.answers()))
    outcome = verdict(step.replicas)
    summary = ActionSummary(to_do=outcome.is_bad)
    report = Report(settings=settings, view=_view(steps=steps), summary=summary)
    if settings.verbose:
        report.note(f"{chosen.title}\n{chosen.about}")
    return report.consume([*rows, DOCUMENT.row(outcome)], SimulationPrinter(report, outcome))


def _view(*, steps: bool) -> View:
    """Return the view, with what is done for each event if `steps`."""
    layouts = {"state": _STATE, "substep": _SUB_STEP}
    return View(
        schema=DOCUMENT.schema,
        columns=_STEPS_CSV if steps else _STATE,
        layout=lambda obj: layouts.get(obj["type"]),
        row_types=frozenset(layouts if steps else ("state",)),
        sparse=steps,
    )


class SimulationPrinter(Printer[Object]):
    """Prints objects as they are, and in the end the outcome for people."""

    def __init__(self, report: Report, outcome: SimulationVerdict) -> None:
        self._report = report
        self._outcome = outcome

    def show(self, item: Object) -> None:
        """Print one object."""
        self._report.item(item)

    def last_lines(self) -> Iterator[Line]:
        """Yield the line with the committed offset, the losses, and the differences of replicas."""
        outcome = self._outcome
        parts = [f"by {outcome.truncation}: {outcome.committed_offset} committed"]
        parts += [f"offset {offset} LOST" for offset in outcome.lost_offsets]
        parts += [
            f"replica {one.node} DIFFERS from its leader from offset {one.from_offset} on"
            for one in outcome.diverged
        ]
        parts += [f"acknowledged record {name} LOST" for name in outcome.acknowledged_lost]
        parts += [f"the producer of {records} still waits" for records in outcome.waiting]
        yield ", ".join(parts), "warning" if outcome.is_bad else "good"
