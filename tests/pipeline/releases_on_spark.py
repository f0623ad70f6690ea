"""Tries the pipeline in short on releases of Spark, and once on Spark Connect; writes the report.

Run as ``python -m pipeline.releases_on_spark``; ``make spark-releases`` does so. Each release is
installed without its dependencies into a folder of its own, which stands before all others on the
path of imports.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
REPORT = TESTS / "bench" / "reports" / "spark-releases.md"
RELEASES = ("4.0.0", "4.1.4", "4.2.1", "4.3.0")
CONNECT = ("grpcio", "grpcio-status", "googleapis-common-protos", "zstandard")
"""Packages of ``pyspark[connect]`` that the extra `spark` does not name."""
_SECONDS = 900


def installed(work: Path, release: str) -> Path:
    """Return the folder of a release, installed the first time."""
    target = work / release
    return _installed(target, "--no-deps", f"pyspark=={release}")


def connect(work: Path) -> Path:
    """Return the folder of the packages of Spark Connect, installed the first time."""
    return _installed(work / "connect", *CONNECT)


def _installed(target: Path, *arguments: str) -> Path:
    if not target.is_dir():
        part = target.with_name(f"{target.name}.part")
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check",
               "--target", str(part), *arguments]  # fmt: skip
        subprocess.run(pip, check=True)
        part.rename(target)
    return target


def in_short(way: str, *folders: Path) -> tuple[list[dict[str, Any]], str | None]:
    """Run the steps with packages of these folders; return them, and the error of the process."""
    outside = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    before = [*map(str, folders), str(TESTS), os.environ.get("PYTHONPATH", "")]
    outside |= {"PYTHONPATH": os.pathsep.join(filter(None, before))}
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "pipeline.in_short", way, home]
        done = subprocess.run(command, env=outside, capture_output=True, text=True, check=False,
                              timeout=_SECONDS)  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return found, None if done.returncode == 0 else f"status {done.returncode}: {last}"


def main() -> int:
    """Try the releases and write the report; status 1 if a step failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=TESTS.parent / "build" / "spark-releases")
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("releases", nargs="*", default=RELEASES)
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    rows: list[str] = []
    failed, began = 0, time.monotonic()
    ways = [(release, "classic") for release in arguments.releases]
    for release, way in [*ways, (arguments.releases[-1], "connect")]:
        more = [connect(work)] if way == "connect" else []
        found, error = in_short(way, installed(work, release), *more)
        name = f"{release}, Spark Connect" if way == "connect" else release
        rows += [
            f"| {name} | {one['step']} | {one['error'] or 'ok'} | {one['seconds']} |"
            for one in found
        ]
        if not error and {one["release"] for one in found} != {release}:
            error = f"it imported {sorted({one['release'] for one in found})}"
        if error:
            rows.append(f"| {name} | the process | {error} | |")
        failed += bool(error) + sum(bool(one["error"]) for one in found)
        # Written after each release, so a run that is ended early keeps its results.
        arguments.report.write_text(report(rows, failed, time.monotonic() - began))
    sys.stdout.write(arguments.report.read_text())
    return 1 if failed else 0


def report(rows: list[str], failed: int, seconds: float) -> str:
    """Return the report as Markdown."""
    return "\n".join([
        "# Releases of Spark", "",
        "`make spark-releases` writes this file. The truth is a parse that shares no code with "
        "logtool (`tests/pipeline/plain_parse.py`): each step compares its rows with it.", "",
        f"Python {sys.version.split()[0]}, {seconds:.0f} s; {failed} steps failed.", "",
        "| pyspark | step | result | seconds |", "|---|---|---|---|", *rows, "",
    ])  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
