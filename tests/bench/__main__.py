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
    coordinating,
    pipeline,
    readers,
    rebuilding,
    recovery,
    rows,
    salvaging,
    segments,
    starts,
)
from bench.report import Machine, as_json, as_markdown
from bench.rows import ROOT, Bench, Row
from broker.install import KAFKA_4

from logtool.formats import _kernels

HERE = Path(__file__).parent
ROWS = {
    **rows.ROWS, **readers.ROWS, **starts.ROWS, **recovery.ROWS, **segments.ROWS,
    **pipeline.ROWS, **rebuilding.ROWS, **salvaging.ROWS, **coordinating.ROWS,
}  # fmt: skip


def main() -> None:
    options = _options()
    if not _kernels.COMPILED:
        sys.exit("bench: the kernels are not compiled; a C compiler is needed")
    bench = Bench(ROOT / "build" / "bench", options.quick)
    bench.home.mkdir(parents=True, exist_ok=True)
    machine = _machine()
    start = time.monotonic()
    results = {name: _measure(name, bench) for name in options.only or ROWS}
    _say(f"done in {time.monotonic() - start:.0f} s")
    target = options.into or (bench.home if options.quick or options.only else HERE)
    target.mkdir(parents=True, exist_ok=True)
    machine = replace(machine, commit=_joined(machine.commit, _commit()))
    arguments = sys.argv[1:]
    (target / "report.json").write_text(as_json(results, machine, arguments))
    (target / "REPORT.md").write_text(as_markdown(results, machine, arguments))
    _say(f"wrote REPORT.md and report.json to {os.path.relpath(target)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="small inputs, pairs of two: only to see that it runs"
    )
    parser.add_argument(
        "--only", action="append", choices=list(ROWS), help="measure this alone; repeatable"
    )
    parser.add_argument(
        "--into", type=Path, metavar="DIR", help="where the report goes; by default beside this "
        "program, of a part of the jobs into build/bench",
    )  # fmt: skip
    return parser.parse_args()


def _measure(name: str, bench: Bench) -> list[Row]:
    """Return the rows of one job; one that fails leaves a row and does not stop the others."""
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
    """Return what was measured: a commit, and whether more than that."""
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
