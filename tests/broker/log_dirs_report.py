"""Starts brokers on log dirs with each fault, and compares the outcomes with those of `plan`.

The script writes ``tests/broker/reports/log-dirs.md``. The exit status is 1 for a difference.
"""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

# A script, not a module of the test run: it adds the folder of `broker` to the path.
sys.path.append(str(Path(__file__).resolve().parent.parent))

from broker import log_dirs
from broker.install import HERE

VERSIONS = ("3.3.2", "3.7.2", "3.9.2", "4.3.1")
REPORT = HERE / "reports" / "log-dirs.md"
_HEAD = """# Starts of brokers with three log dirs, and predictions of `logtool plan`

Written by `make log-dirs`. One start for each line and release. The log dirs are a, b and c; a has
the metadata log. b has the fault unless the line names another log dir. A dash: the release writes
no directory ids. If outcome and prediction differ, the cell has both.
"""


@dataclass
class Column:
    """The outcomes of one release, by fault."""

    cells: dict[str, str] = field(default_factory=dict)
    wrong: int = 0


def of_release(version: str, work: Path) -> Column:
    """Start a broker of one release on log dirs with each fault."""
    column, base = Column(), work / f"base-{version}"
    log_dirs.make_base(version, base)
    for fault, home in log_dirs.cases(version, base, work):
        predicted = log_dirs.predicted(version, home)
        done = log_dirs.outcome(version, home)
        same = predicted == log_dirs.without_error(done) and predicted.indexes == done.indexes
        column.wrong += not same
        column.cells[fault.name] = str(done) if same else f"**{done}**, predicted: {predicted}"
        print(version, fault.name, column.cells[fault.name], flush=True)
    return column


def main() -> int:
    """Write the report; return 1 if an outcome differs from its prediction."""
    with (
        tempfile.TemporaryDirectory(prefix="logtool-log-dirs-") as temporary,
        ThreadPoolExecutor(len(VERSIONS)) as pool,
    ):
        columns = list(pool.map(lambda version: of_release(version, Path(temporary)), VERSIONS))
    starts, wrong = sum(len(one.cells) for one in columns), sum(one.wrong for one in columns)
    titles = ("fault", *VERSIONS)
    lines = [_HEAD, f"{starts} starts, {wrong} predicted wrongly.\n"]
    lines += [f"| {' | '.join(titles)} |", "| --- " * len(titles) + "|"]
    for fault in log_dirs.FAULTS:
        cells = [one.cells.get(fault.name, "-") for one in columns]
        lines.append(f"| {' | '.join([fault.about, *cells])} |")
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
