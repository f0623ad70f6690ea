"""A run of ``checkpoint set``: one row of a checkpoint is set or removed."""

from dataclasses import replace
from pathlib import Path

from logtool.checkpoints.carry_out import log_dir_of
from logtool.checkpoints.edit import Edit, remove, set_row
from logtool.commands import options
from logtool.commands.views.checkpoint import EditRun
from logtool.disk import shell
from logtool.errors import UsageError
from logtool.exits import Exit


def run(
    file: Path,
    printing: options.Printing,
    *,
    row: str | None,
    offset: str | None,
    delete: bool,
    apply: bool,
    undo_dir: Path | None,
) -> Exit:
    """Print how `file` changes, and change it; return the exit status."""
    settings = printing.settings()
    if delete == (offset is not None) or (row is None and not delete):
        raise UsageError("give ROW and OFFSET, ROW and --delete, or only --delete")

    def edits() -> list[Edit]:
        edit = remove(file) if row is None else set_row(file, row, offset)
        return [edit] if edit else []

    words = [word for word in (row, offset) if word]
    options_given = "--apply --delete" if delete else "--apply"
    command = f"logtool checkpoint set {options_given} {shell.path(file)} {_arguments(words)}"
    job = EditRun(
        settings=settings,
        log_dir=log_dir_of(file),
        apply=apply,
        undo_dir=undo_dir,
        command=command.strip(),
    )
    if delete:
        missing = f"{file} does not exist" if row is None else f"{file} has no row of {row}"
        job = replace(job, unchanged=f"{missing}; nothing to change")
    return job.run(edits)


def _arguments(words: list[str]) -> str:
    """Return the words behind a path, also those that look like options."""
    dashed = any(word.startswith("-") for word in words)
    return shell.join(["--", *words] if dashed else words)
