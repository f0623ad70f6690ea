"""Measures logtool and writes the report: ``make bench``, see ``BENCH_ARGS="--help"``."""

import argparse
import os
import platform
import subprocess
import sys
import time
import traceback
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from bench import (
    against_base,
    coordinating,
    memory,
    parallel,
    pipeline,
    readers,
    rebuilding,
    recovery,
    rows,
    salvaging,
    scale,
    segments,
    starts,
)
from bench.report import Machine, Measured, Report, as_json, as_markdown, from_json, updated
from bench.rows import ROOT, Bench, Row
from broker.install import KAFKA_4

from logtool.formats import _kernels

HERE = Path(__file__).parent
ROWS = {
    **rows.ROWS, **readers.ROWS, **starts.ROWS, **recovery.ROWS, **segments.ROWS,
    **parallel.ROWS, **memory.ROWS, **pipeline.ROWS, **rebuilding.ROWS, **salvaging.ROWS,
    **coordinating.ROWS, **scale.ROWS,
}  # fmt: skip


def main() -> None:
    options = _options()
    if not _kernels.COMPILED:
        sys.exit("bench: the kernels are not compiled; a C compiler is needed")
    bench = Bench(ROOT / "build" / "bench", options.quick, options.drop_cache)
    bench.home.mkdir(parents=True, exist_ok=True)
    if options.base:
        jobs = options.only or list(against_base.JOBS)
        sys.exit(against_base.compare(bench, options.base, jobs, _commit()))
    is_part = options.quick or options.drop_cache or options.only
    target = HERE if options.update or not is_part else bench.home
    report: Report = {}
    if target == HERE:
        report = updated(from_json((HERE / "report.json").read_text()), {}, ROWS)
    start = time.monotonic()
    for name in options.only or ROWS:
        report = updated(report, {name: _measured(name, bench)}, ROWS)
        # Written after each job, so a run that is ended early keeps its results.
        (target / "report.json").write_text(as_json(report))
        (target / "REPORT.md").write_text(as_markdown(report))
    _say(f"done in {time.monotonic() - start:.0f} s")
    _say(f"wrote REPORT.md and report.json to {os.path.relpath(target)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small inputs and few pairs: a test of the benchmark",
    )
    parser.add_argument(
        "--only", action="append", choices=list(ROWS), help="measure this alone; repeatable"
    )
    parser.add_argument(
        "--update", action="store_true", help="put the jobs of --only into the committed report "
        "and keep its other jobs; without it the report of some jobs goes to build/bench",
    )  # fmt: skip
    parser.add_argument(
        "--drop-cache", action="store_true", help="remove the logs from the page cache before each "
        "run of verify and of its rival; the report goes to build/bench",
    )  # fmt: skip
    parser.add_argument(
        "--base", metavar="COMMIT", help="compare the command lines of some jobs with those of a "
        f"build of this commit: {', '.join(against_base.JOBS)}; goes to build/bench/BASE.md",
    )  # fmt: skip
    options = parser.parse_args()
    if options.base and (options.update or options.drop_cache):
        parser.error("--base excludes --update and --drop-cache")
    if options.base and not set(options.only or ()) <= set(against_base.JOBS):
        parser.error(f"--base compares these jobs: {', '.join(against_base.JOBS)}")
    if options.update and (options.quick or options.drop_cache):
        parser.error("--update excludes --quick and --drop-cache")
    return options


def _measured(name: str, bench: Bench) -> Measured:
    """Return the results of a job, with the commits before and after it."""
    machine, date = _machine(), time.strftime("%Y-%m-%d")
    rows = _rows(name, bench)
    return Measured(replace(machine, commit=_joined(machine.commit, _commit())), date, rows)


def _rows(name: str, bench: Bench) -> list[Row]:
    """Return the rows of one job; a failure adds a row and does not stop other jobs."""
    rows: list[Row] = []
    try:
        for row in ROWS[name](bench):
            rows.append(row)
            _say(f"{name}: {_line(row)}")
    except (AssertionError, subprocess.CalledProcessError) as error:
        traceback.print_exc()
        rows.append(Row(f"{name}, the rest", skipped=f"failed with {type(error).__name__}"))
    return rows


def _line(row: Row) -> str:
    values = row.skipped or " ".join(f"{value:.3g}" for value in row.values)
    verdict = {None: "", True: "met", False: "NOT MET"}[row.met]
    return f"{row.title}: {values} {verdict} ({row.note})"


def _machine() -> Machine:
    packages = ("numpy", "crc32c", "cramjam", "typer")
    versions = {name: version(name) for name in packages}
    return Machine(
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)),
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        versions={**versions, "logtool": version("kafka-logtool"), "Kafka": KAFKA_4},
        commit=_commit(),
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _commit() -> str:
    """Return the measured commit, and a note of uncommitted changes."""
    changed = _git(
        "status", "--porcelain", "--", "logtool", "commands", "formats", "pyproject.toml"
    )
    return _git("rev-parse", "--short", "HEAD") + (" with uncommitted changes" if changed else "")


def _joined(before: str, after: str) -> str:
    return before if before == after else f"{before} at the start, {after} at the end"


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def _say(text: str) -> None:
    sys.stderr.write(f"bench: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
