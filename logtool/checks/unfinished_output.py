"""Work of logtool that has not come to its end: outputs, and changes of a log dir."""

from collections.abc import Iterator
from pathlib import Path

from logtool.disk import files, shell, unfinished
from logtool.findings import Finding


def check_output(path: Path) -> Iterator[Finding]:
    """Yield a finding if a path holds, or lies in, the output of a run that has not ended."""
    found = None if files.is_remote(path) else unfinished.near(path)
    if found:
        text = (
            "an output of logtool is not complete: the run that wrote it was stopped, or still "
            "runs; the same command replaces the output"
        )
        yield Finding("data-dir/unfinished", text, path=found)


def check_change(log_dir: Path) -> Iterator[Finding]:
    """Yield a finding for each change of a log dir that logtool began and did not finish.

    Undo directories are searched for next to the log dir, where they are by default.
    """
    if files.is_remote(log_dir) or files.is_assembled(log_dir):
        return
    for place, command in unfinished.changes(log_dir):
        undo = f"logtool undo --apply {shell.path(place)}"
        text = f"{log_dir} is changed in part: a command was stopped; to finish it, run it again: "
        yield Finding("data-dir/unfinished-change", text + command, path=place, next=undo)
