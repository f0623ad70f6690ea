"""Fuzz all targets, one behind the other: ``make fuzz FUZZ_ARGS='--seconds 60'``.

Each runs under libFuzzer in a process of its own, from the committed corpus and a seed. What breaks
a property is kept in build/fuzz, and the line that is printed runs it again.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from fuzz import targets
from fuzz.builds import CHECKED, ROOT
from fuzz.seeds import CORPUS

FOUND = ROOT / "build" / "fuzz"
_RUNS = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_COVERED = re.compile(r"cov: (\d+)")
SLOW = {"scan", "kernel-walk", "kernel-decode", "kernel-render", "batch-header", "records"}
"""Those that take several times as long as the others, and get a third of the runs of each."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one target."""

    target: str
    runs: int
    covered: int
    seconds: float
    status: int


def fuzz(target: str, runs: int, seconds: int, seed: int) -> Result:
    """Run one target until either is used up (0: without limit)."""
    artifacts = FOUND / target
    artifacts.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as grown:
        command = [
            sys.executable, "-m", "fuzz.one", target, f"-seed={seed}", "-max_len=1200",
            "-print_final_stats=1", f"-artifact_prefix={artifacts}/", "-rss_limit_mb=1024",
            *([f"-runs={runs}"] if runs else []),
            *([f"-max_total_time={seconds}"] if seconds else []),
            grown, str(CORPUS / target),
        ]  # fmt: skip
        paths = f"{ROOT / 'tests'}{os.pathsep}{ROOT}"
        environment = os.environ | {"PYTHONPATH": paths}
        done = subprocess.run(
            command, env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False,
            errors="replace",
        )  # fmt: skip
    count, covered = _RUNS.findall(done.stderr), _COVERED.findall(done.stderr)
    if done.returncode or not count:
        sys.stderr.write(done.stderr[-6000:])
        sys.stderr.write(f"again: PYTHONPATH=tests {sys.executable} -m fuzz.one {target} FILE\n")
    return Result(
        target, int(count[-1]) if count else 0, int(covered[-1]) if covered else 0,
        time.monotonic() - started, done.returncode or (0 if count else 1),
    )  # fmt: skip


def report(results: list[Result], words: str) -> str:
    """Return the page that is committed."""
    lines = [
        "# Fuzzing",
        "",
        f"{sum(one.runs for one in results):,} executions, "
        f"{sum(one.status != 0 for one in results)} properties broken.",
        "",
        "Every input is made by libFuzzer (atheris), guided by what it covers of the Python text",
        "of `formats/` and the scan; `tests/fuzz/*.py` say what must hold. The `kernel-` targets",
        "hold the plain text, the compiled build and the one that checks every index against each",
        "other.",
        "",
        f"Again: `nice make fuzz FUZZ_ARGS='{words}'` (Python {platform.python_version()}, "
        f"{platform.machine()}). What libFuzzer draws depends on the seed and its release alone.",
        "",
        "| target | executions | edges covered | seconds | broken |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for one in results:
        lines.append(
            f"| {one.target} | {one.runs:,} | {one.covered:,} | {one.seconds:.0f} | "
            f"{int(one.status != 0)} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Run what the command line asks for; returns 1 where a property was broken."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all, if none is given")
    parser.add_argument("--runs", type=int, default=0, help="executions of all targets in all")
    parser.add_argument("--seconds", type=int, default=0, help="time of all targets in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-j", "--jobs", type=int, default=1, help="targets at the same time")
    parser.add_argument("--report", type=Path, help="write a page there")
    chosen = parser.parse_args(arguments)
    if not chosen.runs and not chosen.seconds:
        chosen.seconds = 60
    if not all((CHECKED / f"{name}.so").exists() for name in ("_kernels", "_rendering")):
        sys.exit("the checked kernels are missing: make fuzz builds them")
    names = chosen.targets or targets.names()
    shares = {name: 1 if name in SLOW else 3 for name in names}
    whole, results = sum(shares.values()), []
    # All beside each other would need no more time than one: each has its part of the seconds.
    each = max(1, chosen.seconds * chosen.jobs // len(names)) if chosen.seconds else 0

    def of(name: str) -> Result:
        return fuzz(name, -(-chosen.runs * shares[name] // whole), each, chosen.seed)

    with ThreadPoolExecutor(chosen.jobs) as threads:
        for one in threads.map(of, names):
            results.append(one)
            sys.stdout.write(
                f"{one.target:24} {one.runs:>10,} executions, {one.covered:>5,} edges, "
                f"{one.seconds:>6.0f} s{'  BROKEN' if one.status else ''}\n"
            )
            sys.stdout.flush()
    sys.stdout.write(f"{sum(one.runs for one in results):,} executions\n")
    if chosen.report:
        again = [word for word in arguments if not word.startswith("--report")]
        chosen.report.write_text(report(results, " ".join(again)))
    return int(any(one.status for one in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
