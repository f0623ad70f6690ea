"""The pipeline on local[2] against two local threads: rows for `__main__.ROWS`."""

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

from bench.generate import GIB, KIB, MIB, Spec
from bench.measure import Timing, environment, spread
from bench.rows import ROOT, Bar, Bench, Row, seconds

_BARS = {
    "verify": Bar(at_least=0.75), "scan": Bar(at_least=0.45), "some": Bar(at_least=0.6),
    "all": Bar(at_least=0.3),
}  # fmt: skip
_TITLES = {
    "verify": "verify --engine spark", "scan": "scan --tables batches",
    "some": "scan --tables segments,batches,findings", "all": "scan (every table but records)",
}  # fmt: skip
_SMALL = Bar(at_least=0.6)
_DEMO = (
    "import sys; from logtool.spark.session import session\nwith session('local[2,4]', {}): pass"
)
"""An empty session."""


def on_spark(bench: Bench) -> Iterator[Row]:
    """Time the pipeline with a running session, and the start of the session."""
    if not find_spec("pyspark") or not shutil.which("java"):
        yield Row("the pipeline", skipped="pyspark and Java 17 are needed: make test-spark")
        return
    command = [sys.executable, "-m", "bench.on_spark", str(bench.home), str(bench.total),
               str(bench.count)]  # fmt: skip
    outside = {**environment(), "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(command, env=outside, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    for name, taken in found["engines"].items():
        for job, title in _TITLES.items():
            timing = Timing(taken[job], taken["local"])
            yield Row(
                f"{title} on local[2], batches of {name}, {4 * bench.total / GIB:g} GiB, warm, "
                "against verify in two threads",
                timing.ratios, _BARS[job], note=seconds(timing), timing=timing,
            )  # fmt: skip
    for name, taken in found["since"].items():
        timing = Timing(taken["since"], taken["full"])
        yield Row(
            f"scan --since of a log dir that did not change on local[2], batches of {name}, "
            f"{4 * bench.total / GIB:g} GiB, warm, against a full scan",
            _shares(timing), Bar(at_most=0.05), note=seconds(timing), timing=timing,
        )  # fmt: skip
    small = found["small"]
    for job in ("verify", "some", "all"):
        timing = Timing(small[job], small["local"])
        yield Row(
            f"{_TITLES[job]} on local[2], {small['count']:,} partitions of 4 KiB, against verify "
            "in two threads",
            timing.ratios, _SMALL if job != "all" else None, note=seconds(timing), timing=timing,
        )  # fmt: skip
    timing = Timing(small["all"], small["verify"])
    yield Row(
        f"{_TITLES['all']} on local[2], {small['count']:,} partitions of 4 KiB, warm, against "
        "verify --engine spark",
        _shares(timing), Bar(at_most=3), note=seconds(timing), timing=timing,
    )  # fmt: skip
    yield _demo(bench, outside)
    yield _whole_command(bench, outside)
    yield Row("start of the Spark session", [found["session_s"]], unit="s")
    first = found["first_s"] - spread(found["engines"]["16 KiB"]["verify"])[0]
    yield Row("what the first job takes more than a later one", [first], unit="s")
    yield from _growth(found["growth"])
    for name, taken in found["costs"].items():
        for job, value in taken.items():
            if job == "batches":
                title = f"bytes of the table batches for a MiB of log, batches of {name}"
                yield Row(title, [value * MIB], unit="B")
            else:
                title = f"{job}, core-hours for a TiB, batches of {name}"
                yield Row(title, [value], unit="h", note="better of two")
    for rows, taken in found["gaps"].items():
        title = f"the question of gaps on what a pass over {int(rows):,} batches leaves"
        yield Row(title, [taken], unit="s", note="better of two")


def _demo(bench: Bench, outside: dict[str, str]) -> Row:
    """Time a scan of a log dir that a broker wrote, start of Spark included."""
    with tarfile.open(ROOT / "tests/data/4.3.1/clean.tar.xz") as tar:
        tar.extractall(bench.home / "demo", filter="tar")
    command = [sys.executable, "-m", "logtool", "scan", str(bench.home / "demo" / "clean"),
               "--output", str(bench.home / "demo-tables"), "--run-id", "demo", "--quiet",
               "--master", "local[2,4]"]  # fmt: skip
    empty = [sys.executable, "-c", _DEMO]
    shutil.rmtree(bench.home / "demo-tables", ignore_errors=True)
    timing = bench.pairs(*(
        partial(subprocess.run, one, env=outside, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        for one in (command, empty)
    ))  # fmt: skip
    title = "scan of the demo directory, whole command, against an empty Spark session"
    return Row(title, _shares(timing), Bar(at_most=3), note=seconds(timing), timing=timing)


def _whole_command(bench: Bench, outside: dict[str, str]) -> Row:
    """Time verify on Spark, start of the session included."""
    log_dir = str(bench.directory(Spec(KIB, 4 * bench.total, segment_size=bench.total)).parent)
    verify = [sys.executable, "-m", "logtool", "verify", log_dir, "--quiet"]
    ours = [*verify, "--engine", "spark", "--master", "local[2,4]"]
    empty, local = [sys.executable, "-c", _DEMO], [*verify, "--jobs", "2"]

    def run(*commands: list[str]) -> None:
        for one in commands:
            subprocess.run(one, env=outside, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)

    timing = bench.pairs(partial(run, ours), partial(run, empty, local))
    title = (f"verify --engine spark of {4 * bench.total / GIB:g} GiB in batches of 1 KiB, whole "
             "command, against verify in two threads and an empty Spark session")  # fmt: skip
    return Row(title, _shares(timing), Bar(at_most=1.5), note=seconds(timing), timing=timing)


def _shares(timing: Timing) -> list[float]:
    """Return the seconds of ours for one second of theirs, pair by pair."""
    return [ours / theirs for ours, theirs in zip(timing.ours, timing.theirs, strict=True)]


def _growth(found: list[dict[str, float]]) -> Iterator[Row]:
    one, four, many = found
    more = [(b["seconds"] - a["seconds"]) / (b["bytes"] - a["bytes"])
            for a, b in ((one, four), (four, many))]  # fmt: skip
    text = ", ".join(f"{one['bytes'] / GIB:.3g} GiB {one['seconds']:.2f} s" for one in found)
    yield Row(
        "scan --tables batches: a GiB more from 4 to 16 GiB against one more from 1 to 4",
        [more[1] / more[0]], Bar(0.85, 1.15), note=text,
    )  # fmt: skip
    text = ", ".join(f"{one['driver'] / 1e6:.0f} MB" for one in found)
    yield Row(
        "memory of the driver's Python at 16 times the data", [many["driver"] / one["driver"]],
        Bar(at_most=1.1), note=text,
    )  # fmt: skip
    text = ", ".join(f"{one['heap'] / 1e6:.0f} MB" for one in found)
    yield Row(
        "heap of the JVM after a collection, at 16 times the data", [many["heap"] / one["heap"]],
        Bar(at_most=1.25), note=text,
    )  # fmt: skip


ROWS = {"pipeline": on_spark}
