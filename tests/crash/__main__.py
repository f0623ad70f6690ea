"""The whole campaign of kills: ``make kills``; with names of commands, only these, on stdout."""

import os
import sys
import tarfile
import tempfile
from pathlib import Path

from crash import kills

TESTS = Path(__file__).parents[1]

if __name__ == "__main__":
    # A process that dies loses nothing that it wrote: fsync, which is slow, may be left out.
    os.fsync = lambda fd: None
    with tempfile.TemporaryDirectory() as home:
        with tarfile.open(TESTS / "data" / "4.3.1" / "killed.tar.xz") as tar:
            tar.extractall(home, filter="tar")
        source = Path(home) / "killed"
        report = TESTS / "bench" / "reports" / "kills" / "REPORT.md"
        sys.exit(kills.main(source, report, sys.argv[1:]))
