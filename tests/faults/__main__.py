"""Apply each seeded fault, and see that the listed tests notice it: ``make faults``.

``PYTHONPATH=tests python -m faults`` copies the tree to a temporary directory, runs the listed test
files without a fault, and then, for each entry of ``faults.toml``, the test files of this entry
with its fault. A fault is noticed if a test fails. Run it before and after a change of tests: each
fault that was noticed before has to be noticed after it.

Status 0: all faults are noticed; 1: at least one is not; 2: an entry does not fit the tree, a test
fails without a fault, or a run of pytest is neither passed nor failed.
"""

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from faults.entries import LIST, ROOT, EntryError, Fault, applied, load

REPORT = Path(__file__).with_name("REPORT.md")
_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", "build", "dist", ".*_cache", ".hypothesis", "*.egg-info"
)
_CLEAN, _FAILED = 0, 1
"""Statuses of pytest."""
_LONGEST = 900
"""Seconds after which a run of pytest is stopped."""
_LONGEST_TEST = 120
_FAILURE = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of running the tests of one fault."""

    fault: Fault
    status: int | None
    """Exit status of pytest; None if it was stopped after 15 minutes."""
    noticed_by: str
    """The first test that failed; empty without one."""
    seconds: float
    output: str

    @property
    def noticed(self) -> bool:
        """Return whether a test failed."""
        return self.status == _FAILED

    @property
    def is_error(self) -> bool:
        """Return whether pytest neither passed nor failed, as when a test file does not load."""
        return self.status not in (_CLEAN, _FAILED)

    def __str__(self) -> str:
        word = "ERROR" if self.is_error else "noticed" if self.noticed else "NOT NOTICED"
        by = f"pytest ended with {self.status}" if self.is_error else self.noticed_by
        text = f"{word:11} {self.seconds:4.0f} s  {self.fault.name}"
        return f"{text}  {by}" if by else text


class Trees:
    """Copies of a tree, one for each run of pytest at a time."""

    def __init__(self, root: Path, home: Path, count: int) -> None:
        self.count = count
        self._free: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(count):
            tree = home / f"tree{number}"  # No name of a partition dir: tests run in it
            shutil.copytree(root, tree, symlinks=True, ignore=_LEFT_OUT)
            self._free.put(tree)

    def clean(self, tests: Sequence[str]) -> tuple[int | None, str]:
        """Run test files without a fault; returns the status and the output of pytest."""
        tree = self._free.get()
        try:
            return _pytest(tree, tests)
        finally:
            self._free.put(tree)

    def faulty(self, fault: Fault, number: int) -> Result:
        """Run the test files of a fault with it."""
        tree = self._free.get()
        started = time.monotonic()
        try:
            with applied(fault, tree, number):
                status, output = _pytest(tree, fault.tests, "-x")
        finally:
            self._free.put(tree)
        failures = _FAILURE.findall(output)
        noticed_by = failures[0] if failures and status == _FAILED else ""
        return Result(fault, status, noticed_by, time.monotonic() - started, output)


def _pytest(tree: Path, tests: Sequence[str], *options: str) -> tuple[int | None, str]:
    command = [
        sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "--tb=line", "-rfE",
        "-m", "not broker and not spark and not long", "-o", f"timeout={_LONGEST_TEST}",
        f"--basetemp={tree}.tmp", *options, *tests,
    ]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": f"{tree}{os.pathsep}{tree / 'tests'}"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=_LONGEST, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, f"pytest was stopped after {_LONGEST} seconds\n"
    return done.returncode, done.stdout


def main(arguments: Sequence[str], root: Path = ROOT, listed: Path = LIST) -> int:
    """Run the tests with each fault; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="make faults", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", metavar="NAME", action="append", help="this fault; repeatable")
    parser.add_argument("--record", action="store_true", help=f"write {REPORT.relative_to(ROOT)}")
    parser.add_argument("--jobs", metavar="N", type=int, default=2, help="runs at a time (2)")
    chosen = parser.parse_args(arguments)
    if chosen.record and chosen.only:
        parser.error("--record needs all faults: leave out --only")
    if chosen.jobs < 1:
        parser.error("--jobs must be at least 1")
    started = time.monotonic()
    try:
        faults = _chosen(load(listed), chosen.only)
        for fault in faults:
            fault.faulty(root)
    except EntryError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="faults-") as home:
        trees = Trees(root, Path(home), min(chosen.jobs, len(faults)))
        if not _passes(trees, faults):
            return 2
        results = _results(trees, faults)
    missed = sum(not one.noticed and not one.is_error for one in results)
    errors = sum(one.is_error for one in results)
    sys.stdout.write(
        f"{len(results)} faults: {len(results) - missed - errors} noticed, {missed} not noticed, "
        f"{errors} errors; {time.monotonic() - started:.0f} s\n"
    )
    if chosen.record:
        REPORT.write_text(report(results), "utf-8")
    return 2 if errors else 1 if missed else 0


def _chosen(faults: Sequence[Fault], only: Sequence[str] | None) -> list[Fault]:
    if not only:
        return list(faults)
    unknown = set(only) - {fault.name for fault in faults}
    if unknown:
        raise EntryError(f"no entry has the name {min(unknown)}")
    return [fault for fault in faults if fault.name in only]


def _passes(trees: Trees, faults: Sequence[Fault]) -> bool:
    """Return whether all listed tests pass without a fault, and print those that do not."""
    started = time.monotonic()
    tests = sorted({test for fault in faults for test in fault.tests})
    parts = [part for n in range(trees.count) if (part := tests[n :: trees.count])]
    with ThreadPoolExecutor(trees.count) as pool:
        bad = [one for one in pool.map(trees.clean, parts) if one[0] != _CLEAN]
    for status, output in bad:
        failures = _FAILURE.findall(output)
        names = ", ".join(failures) if failures else output[-2000:]
        sys.stderr.write(f"without a fault pytest ends with {status}: {names}\n")
    if not bad:
        seconds = time.monotonic() - started
        sys.stdout.write(f"without a fault {len(tests)} test files pass; {seconds:.0f} s\n")
        sys.stdout.flush()
    return not bad


def _results(trees: Trees, faults: Sequence[Fault]) -> list[Result]:
    """Run the tests of each fault, and print a line for each in the order of the list."""
    results = []
    with ThreadPoolExecutor(trees.count) as pool:
        for result in pool.map(trees.faulty, faults, range(len(faults))):
            results.append(result)
            sys.stdout.write(f"{result}\n")
            if result.is_error:
                sys.stdout.write(result.output[-2000:])
            sys.stdout.flush()
    return results


def report(results: Sequence[Result]) -> str:
    """Return the page that is committed."""
    missed = sum(not one.noticed for one in results)
    rows = [
        f"| {one.fault.name} | `{one.fault.file}` | {one.fault.wrong} "
        f"| {f'`{one.noticed_by}`' if one.noticed else 'not noticed'} |"
        for one in results
    ]
    return "\n".join(
        (
            "# Seeded faults",
            "",
            f"{len(results)} faults, {len(results) - missed} noticed, {missed} not noticed.",
            "`make faults FAULTS_ARGS=--record` writes this page. The last column has the first",
            "test that fails with the fault; later tests are not run.",
            "",
            "| Fault | File | Wrong with it | Noticed by |",
            "|---|---|---|---|",
            *rows,
            "",
        )
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
