"""Output of a run of logtool that has not come to its end, found by its name."""

from collections.abc import Iterator
from pathlib import Path

from logtool.disk import files, unfinished
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
