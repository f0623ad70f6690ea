"""Compares logtool with brokers on many more damaged partitions than CI has time for.

``python tests/broker/campaign.py [--count 1000] [--seed 100] [--version 4.3.1]`` makes as many for
each release and lets a broker load them. It compares the forecast and the recovery of logtool with
the result and writes ``tests/broker/reports/recovery.md``, which keeps the rows of other releases.
The exit status is 1 for a difference.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

from broker import damaged, differences, recovery, sources  # noqa: E402
from broker.install import KAFKA_NEWEST, LOADING_VERSIONS, release  # noqa: E402

REPORT = HERE / "reports" / "recovery.md"
VERSIONS = (KAFKA_NEWEST, *LOADING_VERSIONS)
CHOICES = (*VERSIONS, "4.2.1", "4.1.1", "4.0.2")
"""Releases that `--version` takes; a run without it has those in `VERSIONS`."""
AT_ONCE = 250
"""Cases that one set of starts loads."""


@dataclass
class Figures:
    """The results for the cases of one release."""

    cases: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    damages: Counter[int] = field(default_factory=Counter)
    clean: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--version", choices=CHOICES, action="append")
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--report", type=Path, default=REPORT)
    options = parser.parse_args()
    found: dict[str, Figures] = {}
    for version in options.version or VERSIONS:
        found[version] = Figures()
        for seed in range(options.seed, options.seed + -(-options.count // AT_ONCE)):
            run(version, seed, min(AT_ONCE, options.count - found[version].cases), found[version])
    options.report.parent.mkdir(exist_ok=True)
    old = options.report.read_text().splitlines() if options.report.exists() else []
    options.report.write_text(report(found, options.seed, old))
    return 1 if any(figures.wrong for figures in found.values()) else 0


def run(version: str, seed: int, count: int, figures: Figures) -> None:
    """Add the cases of one seed to the figures of a release."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="logtool-campaign-") as temporary:
        work = Path(temporary)
        cases = damaged.cases(
            version, sources.unpacked_in(work), work / "cases", seed=seed, count=count
        )
        outcomes = recovery.outcomes(version, cases, work)
        wrong = differences.forecast(version, cases, outcomes)
        wrong += differences.recovery(version, cases, outcomes, work / "recovered")
    figures.cases += len(cases)
    figures.kinds.update(outcome.kind for outcome in outcomes.values())
    figures.damages.update(len(case.damage) for case in cases)
    figures.clean += sum(case.clean for case in cases)
    figures.wrong += [f"seed {seed}: {text}" for text in wrong]
    figures.seconds += time.monotonic() - begun
    print(f"{version}, seed {seed}: {len(cases)} cases, {len(wrong)} differences", flush=True)
    for text in wrong:
        print(f"  {text}", flush=True)


def report(found: dict[str, Figures], seed: int, old: Sequence[str]) -> str:
    """Return the report in Markdown; `old` are its lines, kept for releases that did not run."""
    columns = ("release", "first seed", "cases", "two damages", "clean", "loaded", "refuses",
               "offline", "differences")  # fmt: skip
    lines = [
        "# Loading of damaged logs, compared with brokers",
        "",
        "Written by `make campaign`. Each case is a partition with damage made by a seed.",
        f"{AT_ONCE} cases have one seed. Outcome, log start, log end and",
        "every file that `plan` predicts, and every file that `recover --apply --cut-as-broker`",
        "leaves, are compared with those of the broker. A table of CONTRIBUTING.md lists what is",
        "not compared. A clean log dir is one whose broker was stopped in order.",
        "",
        f"| {' | '.join(columns)} |",
        f"|{' --- |' * len(columns)}",
    ]
    rows = {line.split()[1]: [line] for line in old if re.match(r"\| \d", line)}
    for line in old:
        version, _, text = line.removeprefix("- ").partition(": ")
        if text and version in rows:
            rows[version].append(line)
    for version, figures in found.items():
        kinds = [figures.kinds[kind] for kind in ("loaded", "refuses", "offline")]
        numbers = (seed, figures.cases, figures.damages[2], figures.clean, *kinds)
        row = f"| {version} | {' | '.join(map(str, numbers))} | {len(figures.wrong)} |"
        rows[version] = [row, *(f"- {version}: {text}" for text in figures.wrong)]
    ordered = [rows[version] for version in sorted(rows, key=release, reverse=True)]
    lines += [row for row, *_ in ordered]
    lines += ["", *(text for _, *wrong in ordered for text in wrong)]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.exit(main())
