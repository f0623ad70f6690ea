"""Starts every release on the directories of every other, and compares logtool's verdicts.

``make releases`` keeps each outcome in its work directory as soon as it is seen, so that it can be
stopped and continued, and writes ``tests/broker/reports/releases.md``. Rows of directories that
were started by an earlier run in another work directory are kept. The exit status is 1 for a
difference.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

from broker.install import minor  # noqa: E402
from broker.release_table import RELEASES  # noqa: E402
from broker.releases import (  # noqa: E402
    Start,
    Written,
    all_written,
    difference,
    log_dir,
    predicted,
    start,
    write,
)

from logtool.metadata import releases  # noqa: E402

REPORT = HERE / "reports" / "releases.md"
Row = tuple[Written, Mapping[str, Start], list[str]]
"""A directory, its outcomes by release, and the differences."""
_HEAD = """\
# Starts of releases on the directories of other releases, compared with brokers

Written by `make releases`. A directory is named by the release that wrote it, the metadata.version
that it was formatted with, its kraft.version, and other features; `raised` means that the running
node raised metadata.version to the newest level of its release. `controller` and `broker` are nodes
with that role alone; the controller of a `broker` is of the release that wrote both. A real node of
each release starts on a copy. `plan --kafka-version all` predicts whether it starts, and the kind
of the first obstacle: the level of a feature, a record of the metadata log, or quorum-state.

**{cells} of {all} cells were started; {wrong} differ from the prediction.**

In the table `+` is a start, and a letter a refusal: l a level, r a record, q quorum-state,
? another error.
"""


class Outcomes:
    """The outcomes that were seen, kept in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: dict[tuple[str, str], Start] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            one = json.loads(line)
            cell = one.pop("directory"), one.pop("release")
            self._found[cell] = Start(**one)

    def get(self, written: Written, version: str) -> Start | None:
        """Return the outcome of a cell; None if it was not started yet."""
        return self._found.get((written.name, version))

    def keep(self, written: Written, version: str, seen: Start) -> None:
        """Keep the outcome of a cell."""
        self._found[written.name, version] = seen
        row = {"directory": written.name, "release": version, **asdict(seen)}
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def run(work: Path, deadline: float, only: str) -> Outcomes:
    """Start the cells that were not started yet, until time is over.

    ``only`` is a pattern, as in a shell, for the names of the directories.
    """
    work.mkdir(parents=True, exist_ok=True)
    outcomes = Outcomes(work / "outcomes.jsonl")
    for written in (one for one in all_written() if fnmatchcase(one.name, only)):
        for version in RELEASES:
            if time.monotonic() > deadline or outcomes.get(written, version):
                continue
            seen = start(written, write(written, work), version)
            outcomes.keep(written, version, seen)
            print(f"{written.name} {version}: {seen}", flush=True)
    return outcomes


def judged(work: Path, outcomes: Outcomes) -> Iterator[Row]:
    """Yield each directory, its outcomes by release, and the differences."""
    for written in all_written():
        seen = {version: one for version in RELEASES if (one := outcomes.get(written, version))}
        wrong = []
        expected = predicted(log_dir(written, write(written, work))) if seen else {}
        for version, one in seen.items():
            found = difference(expected[releases.text(minor(version))], one)
            wrong += [f"{written.name}, {version}: {found}"] if found else []
        yield written, seen, wrong


def report(rows: list[Row], before: str = "") -> str:
    """Return the report in Markdown.

    Rows of directories that were not started now are those of the report ``before``, with their
    differences.
    """
    old = {line.split(" | ")[0].removeprefix("| "): line for line in before.splitlines()}
    wrong, table = [], []
    for written, seen, found in rows:
        marks = [_mark(seen.get(version)) for version in RELEASES]
        line = f"| {written.name} | {' | '.join(marks)} |"
        if not seen and written.name in old:
            line = old[written.name]
            found = [text[2:] for text in old if text.startswith(f"- {written.name}, ")]
        table.append(line)
        wrong += found
    cells = sum(bool(mark.strip()) for line in table for mark in line.split("|")[2:-1])
    head = _HEAD.format(cells=cells, all=len(rows) * len(RELEASES), wrong=len(wrong))
    lines = [head, f"| directory | {' | '.join(RELEASES)} |", f"|{' --- |' * (len(RELEASES) + 1)}"]
    lines += [*table, "", *(f"- {text}" for text in wrong)]
    return "\n".join(lines).rstrip() + "\n"


def _mark(seen: Start | None) -> str:
    if seen is None:
        return ""
    return "+" if seen.starts else (seen.cause or "?")[0]


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", type=Path, default=Path("build/releases"))
    parser.add_argument("--minutes", type=float, default=1e6, help="stop after this time")
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--only", default="*", help="start these directories; a pattern")
    options = parser.parse_args()
    outcomes = run(options.work, time.monotonic() + 60 * options.minutes, options.only)
    rows = list(judged(options.work, outcomes))
    before = options.report.read_text() if options.report.exists() else ""
    options.report.write_text(report(rows, before))
    return 1 if any(found for *_, found in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
