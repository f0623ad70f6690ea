"""Fuzz all targets: ``make fuzz FUZZ_ARGS='--seconds 60'``.

Each target runs under libFuzzer in its own process, from the committed corpus and a seed. The
folder build/fuzz keeps the inputs that break a property, and the printed line runs them again.
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
"""Targets several times as slow as the others; they get a third of the runs of the others."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one target."""

    target: str
    runs: int
    covered: int
    seconds: float
    status: int


def fuzz(target: str, runs: int, seconds: int, seed: int) -> Result:
    """Run one target up to the number of runs or the time (0: without limit)."""
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
    """Return the text of the committed report."""
    lines = [
        "# Fuzzing",
        "",
        f"{sum(one.runs for one in results):,} executions, "
        f"{sum(one.status != 0 for one in results)} properties broken.",
        "",
        "libFuzzer (atheris) makes every input, guided by the coverage of the Python text of",
        "`formats/` and the scan; `tests/fuzz/*.py` define the properties. The `kernel-` targets",
        "compare the plain text, the compiled build and the build that checks every index.",
        "",
        f"Again: `nice make fuzz FUZZ_ARGS='{words}'` (Python {platform.python_version()}, "
        f"{platform.machine()}). The inputs depend only on the seed and the release of libFuzzer.",
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
    """Run the targets of the command line; return 1 if a property was broken."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all, if none is given")
    parser.add_argument("--runs", type=int, default=0, help="total executions of all targets")
    parser.add_argument("--seconds", type=int, default=0, help="total time of all targets")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-j", "--jobs", type=int, default=1, help="targets at the same time")
    parser.add_argument("--report", type=Path, help="write a report there")
    chosen = parser.parse_args(arguments)
    if not chosen.runs and not chosen.seconds:
        chosen.seconds = 60
    if not all((CHECKED / f"{name}.so").exists() for name in ("_kernels", "_rendering")):
        sys.exit("the checked kernels are missing: make fuzz builds them")
    names = chosen.targets or targets.names()
    shares = {name: 1 if name in SLOW else 3 for name in names}
    whole, results = sum(shares.values()), []
    # Each target gets its part of the seconds; parallel jobs add up.
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
