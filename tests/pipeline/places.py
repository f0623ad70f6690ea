"""Helpers of the tests of the pipeline: log dirs, batches and runs of logtool."""

import os
import subprocess
import sys
from pathlib import Path

from logtool.formats import record, record_batch

LOGTOOL = [sys.executable, "-m", "logtool"]


def homes(folder: Path) -> list[Path]:
    """Return the log dirs of a scenario: it, or those in it."""
    if (folder / "meta.properties").exists():
        return [folder]
    return sorted(path for path in folder.iterdir() if path.is_dir())


def span(first: int, last: int, count: int | None = None, **header: int) -> bytes:
    """Return a batch of those offsets with as many records, by default one for each."""
    count = last - first + 1 if count is None else count
    payload = record.encode([record.Record(number, value=b"v") for number in range(count)])
    return record_batch.encode(
        payload, base_offset=first, last_offset_delta=last - first, record_count=count, **header
    )


def logtool(*arguments: object, **outside: str) -> "subprocess.CompletedProcess[str]":
    """Run a command line in a process of its own, with more variables in its environment."""
    return subprocess.run(
        [*LOGTOOL, *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=400, env=os.environ | outside,
    )  # fmt: skip
