"""Starts brokers on log dirs with each fault, and writes down what they did and what was foretold.

Run as a script it writes ``tests/broker/reports/log-dirs.md``; its status is 1 where they differ.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from logtool.findings import catalogue

# A script, not a module of the test run: `broker` is found beside it. So is a folder `logtool`,
# where the catalogue is not: it is read before.
catalogue()
sys.path.append(str(Path(__file__).resolve().parent.parent))

from broker import log_dirs  # noqa: E402
from broker.install import HERE  # noqa: E402

VERSIONS = ("3.3.2", "3.7.2", "3.9.2", "4.3.1")
REPORT = HERE / "reports" / "log-dirs.md"
_HEAD = """# What a broker with three log dirs does, and what `logtool plan` says

Written by `make log-dirs`. One start for each line and release. The log dirs are a, b and c; a has
the metadata log, b the fault where nothing else is said. A dash: that release writes no directory
ids, so that there is nothing to change. Where the two differ, both stand there.
"""


def main() -> int:
    """Write the report; returns 1 where a broker did something else than was foretold."""
    rows: dict[str, list[str]] = {fault.name: [fault.about] for fault in log_dirs.FAULTS}
    starts = wrong = 0
    with tempfile.TemporaryDirectory(prefix="logtool-log-dirs-") as temporary:
        work = Path(temporary)
        for column, version in enumerate(VERSIONS, 1):
            base = work / f"base-{version}"
            log_dirs.make_base(version, base)
            for fault, home in log_dirs.cases(version, base, work):
                told = log_dirs.foretold(version, home)
                done = log_dirs.outcome(version, home)
                same = told == log_dirs.without_error(done) and told.indexes == done.indexes
                starts, wrong = starts + 1, wrong + (not same)
                text = str(done) if same else f"**{done}**, foretold: {told}"
                rows[fault.name].append(text)
                print(version, fault.name, text, flush=True)
            for cells in rows.values():
                cells += ["-"] * (column + 1 - len(cells))
    titles = ("fault", *VERSIONS)
    lines = [_HEAD, f"{starts} starts, {wrong} foretold wrongly.\n"]
    lines += [f"| {' | '.join(titles)} |", "| --- " * len(titles) + "|"]
    lines += ["| " + " | ".join(cells) + " |" for cells in rows.values()]
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
