"""A run of ``checkpoint rebuild``: checkpoints are mended by what the logs hold."""

from dataclasses import replace
from pathlib import Path

from logtool.checkpoints.rebuild import CheckpointRebuild
from logtool.commands import options
from logtool.commands.program import parsing
from logtool.commands.views.checkpoint import EditRun
from logtool.disk import shell
from logtool.errors import UnreadableError
from logtool.exits import Exit
from logtool.log.inputs import GivenPaths
from logtool.running.budget import Budget
from logtool.running.run import Run
from logtool.running.summary import ActionSummary


def run(
    inputs: options.LocalInputs,
    running: options.Running,
    printing: options.Printing,
    *,
    target: Path | None,
    apply: bool,
    undo_dir: Path | None,
) -> Exit:
    """Print how the checkpoints at `target` change, and change them; return the exit status."""
    settings = printing.settings()
    path = target or parsing.here()
    given, summary = GivenPaths([path], inputs.selection), ActionSummary()
    job = EditRun(
        settings=settings,
        log_dir=path,
        apply=False,
        undo_dir=undo_dir,
        command=f"logtool checkpoint rebuild --apply {shell.path(path)}",
        summary=summary,
    )
    budget = Budget(running.threads, running.pace())
    try:
        found = CheckpointRebuild(
            path=path, selection=given.selection, run=Run(budget=budget), summary=summary
        )
    except UnreadableError as error:
        problems = [error]
        return job.run(lambda: problems)
    job = replace(job, log_dir=found.log_dir, apply=apply, inputs=given)
    return job.run(lambda: found)
