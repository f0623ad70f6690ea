"""The list of slow tests, `tests/slow.txt`: ``python tests/slow_tests.py`` measures and writes it.

A test function is slow if a case of it takes `LIMIT` seconds of processor time on average, with its
fixtures and child processes. ``make test`` leaves slow tests to ``make test-slow``. A new test is
not in the list, so ``make test`` runs it until the list is written again.
"""

import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("slow.txt")
LIMIT = 0.4
MEASURED = "not broker and not spark and not browser and not kills and not long"
_OUTPUT = "LOGTOOL_TEST_TIMES"
"""The environment variable with the directory for measured times."""


@cache
def slow_functions() -> frozenset[str]:
    """Return the node ids of slow test functions, without parameters."""
    return frozenset(LIST.read_text().split())


def function_of(node_id: str) -> str:
    """Return the node id of a test without its parameters."""
    return node_id.partition("[")[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Write the processor time of a test, its fixtures and its child processes to a file."""
    before = sum(os.times()[:4])
    result = yield
    taken = sum(os.times()[:4]) - before
    with (Path(os.environ[_OUTPUT]) / str(os.getpid())).open("a") as file:
        file.write(f"{taken:.3f} {function_of(item.nodeid)}\n")
    return result


def main() -> int:
    """Run the tests, and write the list; return the exit status of pytest."""
    with tempfile.TemporaryDirectory() as home:
        words = ["-m", "pytest", "-q", "-p", "slow_tests", "-n", "2", "-m", MEASURED, *sys.argv[1:]]
        path = os.pathsep.join(filter(None, [str(LIST.parent), os.environ.get("PYTHONPATH")]))
        done = subprocess.run(
            [sys.executable, *words], env=os.environ | {_OUTPUT: home, "PYTHONPATH": path}
        )
        times = defaultdict[str, list[float]](list)
        for file in Path(home).iterdir():
            for line in file.read_text().splitlines():
                taken, name = line.split(" ", 1)
                times[name].append(float(taken))
    if done.returncode == 0:
        slow = [name for name, each in times.items() if sum(each) / len(each) >= LIMIT]
        LIST.write_text("".join(f"{name}\n" for name in sorted(slow)))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
