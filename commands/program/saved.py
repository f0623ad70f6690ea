"""What `salvage` and `undelete` share: where they write, and one run of either."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

Output = Annotated[
    Path,
    typer.Option(
        "--output",
        metavar="DIR",
        parser=options.local_path,
        help="Write what is saved into DIR, which must be new or empty and lie in no log dir.",
    ),
]


@dataclass(frozen=True, slots=True)
class Saved:
    """What `salvage` is told; `undelete` is told the same."""

    inputs: options.LocalInputs
    output: Path
    fill_from: "Sequence[Path]"
    running: options.Running
    printing: options.Printing
    retry: Path | None = None
    """The output of an earlier run on a failing disk."""
    records: str | None = None
    """The format in which the records of what is saved are written, too."""
    damaged: bool = False
    """Whether what decodes of rejected bytes is written, too."""

    def run(self, *, deleted: bool) -> int:
        """Save what can be saved and print it; returns the exit status."""
        from logtool.commands.output import Report
        from logtool.commands.views import salvage
        from logtool.repair.output import Output
        from logtool.repair.salvage import Salvage
        from logtool.running.summary import ActionSummary

        settings, summary = self.printing.settings(), ActionSummary()
        given = self.inputs.resolved()
        report = Report(settings=settings, view=salvage.make(), summary=summary, inputs=given)
        job = Salvage(
            paths=given.paths,
            output=Output(self.output),
            fill_from=self.fill_from,
            retry=self.retry,
            deleted=deleted,
            selection=given.selection,
            flavour=given.flavour,
            run=self.running.run(report),
            summary=summary,
        )
        extras = None
        if self.records is not None or self.damaged:
            from logtool.commands.program.saved_records import Extras

            extras = Extras(job.output, self.records, self.damaged)
        return salvage.run(job, report, summary, extras)
