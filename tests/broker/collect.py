"""Lets brokers load damaged partitions and keeps the outcomes, for work without a broker.

``python tests/broker/collect.py --into DIR [--version 4.3.1] [--seed 1] [--count 300]`` writes
``DIR/<version>/cases/<case>/``, the input of the broker, and ``DIR/<version>/outcomes.pickle``:
``{"cases": [Case], "outcomes": {name: Outcome}}`` (unpickle with ``tests`` on the path).
"""

from __future__ import annotations

import argparse
import pickle
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from broker import damaged, recovery, sources
from broker.install import VERSIONS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--version", action="append")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    options = parser.parse_args()
    for version in options.version or VERSIONS:
        collect(version, options.into / version, options.seed, options.count)


def collect(version: str, home: Path, seed: int, count: int) -> None:
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home) as temporary:
        work = Path(temporary)

        begun = time.monotonic()
        cases = damaged.cases(
            version, sources.unpacked_in(work), work / "cases", seed=seed, count=count
        )
        made = time.monotonic()
        found = recovery.outcomes(version, cases, work)
        ended = time.monotonic()
        # The old cases are removed just before the new ones and their outcomes appear.
        shutil.rmtree(home / "cases", ignore_errors=True)
        (work / "cases").rename(home / "cases")
    cases = [replace(case, path=home / "cases" / case.name) for case in cases]
    content = {"cases": cases, "outcomes": found}
    (home / "outcomes.pickle").write_bytes(pickle.dumps(content))
    kinds = Counter(outcome.kind for outcome in found.values())
    print(f"{version}: {dict(kinds)}; cases {made - begun:.0f} s, brokers {ended - made:.0f} s")
    for error, times in Counter(o.error.split("/")[0][:90] for o in found.values()).most_common():
        print(f"  {times:4} {error}")


if __name__ == "__main__":
    main()
