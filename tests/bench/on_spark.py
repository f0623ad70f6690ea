"""Measures the pipeline in a process with its own Spark session, and prints JSON.

Run as ``python -m bench.on_spark HOME TOTAL PAIRS``; `bench.pipeline` makes rows of the JSON.
"""

import json
import resource
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from bench.generate import KIB, Spec, generate
from bench.measure import timed
from pyarrow import parquet

from logtool.running.budget import Budget
from logtool.schemas.arrow import DEFAULT, Payload
from logtool.spark.engine import SparkEngine
from logtool.spark.questions.range_summary import Inner, RangeSummary, as_rows
from logtool.spark.scan import answers
from logtool.spark.scan.runs import begin
from logtool.spark.scan.scan import Scan
from logtool.spark.session import session
from logtool.verify import Verification

SIZES = {"1 KiB": KIB, "16 KiB": 16 * KIB}
BATCH_ROWS = (5_000_000, 20_000_000, 50_000_000)
SOME = ("segments", "batches", "findings")
MANY_PRODUCERS, SMALL_PARTITIONS = 100, 20_000
_CORES = 2
_PARTITIONS, _SEGMENT, _GAP = 64, 10_000, 400
"""The gap job: partitions, batches in a segment, batches from one gap to the next."""


def main() -> None:
    home, total, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    found: dict[str, Any] = {}
    began = time.perf_counter()
    with session(f"local[{_CORES},4]", {}) as spark:
        found["session_s"] = time.perf_counter() - began
        four = {
            name: generate(home, Spec(size, 4 * total, segment_size=total)).parent
            for name, size in SIZES.items()
        }
        found["first_s"] = timed(partial(verify, spark, four["16 KiB"]))
        found["engines"] = {
            name: engines(spark, log_dir, home, count) for name, log_dir in four.items()
        }
        busy = Spec(KIB, 4 * total, segment_size=total, producers=MANY_PRODUCERS)
        busy_dir = generate(home, busy).parent
        found["engines"][f"1 KiB, {MANY_PRODUCERS} producers"] = engines(
            spark, busy_dir, home, count
        )
        small = small_partitions(home, SMALL_PARTITIONS if total >= 2**30 else 500)
        found["small"] = {"count": len(list(small.iterdir())), **engines(spark, small, home, count)}
        found["since"] = {
            name: since(spark, log_dir, home, count) for name, log_dir in four.items()
        }
        found["growth"] = growth(spark, four["16 KiB"], home, count)
        rows = BATCH_ROWS[:1] if total < 2**30 else BATCH_ROWS
        two = generate(home, Spec(200, total)).parent
        found["costs"] = {
            name: costs(spark, log_dir, home) for name, log_dir in {"200 B": two, **four}.items()
        }
        found["gaps"] = {str(number): gap_job(spark, number, home) for number in rows}
    json.dump(found, sys.stdout)


def local(log_dir: Path) -> None:
    sound(Verification([log_dir], budget=Budget(2)))


def verify(spark: Any, log_dir: Path) -> None:
    sound(Verification([log_dir], engine=SparkEngine(spark)))


def sound(job: Verification) -> None:
    if any(item.severity == "error" for item in job):
        raise AssertionError("the input is not sound")


def scan(
    spark: Any, log_dir: Path, home: Path, wanted: Sequence[str] = ("batches",)
) -> dict[str, int]:
    """Write tables; return the size of each."""
    output = home / "tables"
    shutil.rmtree(output, ignore_errors=True)
    payload = Payload.HASH if "records" in wanted else Payload.NONE
    job = Scan(spark, [log_dir], str(output), "one", wanted=wanted, payload=payload)
    job.run()
    return job.sizes


def costs(spark: Any, log_dir: Path, home: Path) -> dict[str, float]:
    """Return core-hours for a TiB of each job, and the bytes of batches for a byte of log."""
    size = sum(path.stat().st_size for path in log_dir.glob("*/*.log"))
    jobs: dict[str, Callable[[], object]] = {
        "verify --engine spark": partial(verify, spark, log_dir),
        "scan --tables segments,batches,findings": partial(scan, spark, log_dir, home, SOME),
        "scan --tables records --payload hash": partial(scan, spark, log_dir, home, ("records",)),
        "scan": partial(scan, spark, log_dir, home, DEFAULT),
    }
    found = {}
    for name, job in jobs.items():
        job()
        hours = min(timed(job) for _ in range(2)) * _CORES / 3600
        found[name] = hours * 2**40 / size
    found["batches"] = scan(spark, log_dir, home)["batches"] / size
    return found


def engines(spark: Any, log_dir: Path, home: Path, count: int) -> dict[str, list[float]]:
    """Return the seconds of each engine, taken in turns, warm."""
    jobs: dict[str, Callable[[], object]] = {
        "local": partial(local, log_dir),
        "verify": partial(verify, spark, log_dir),
        "scan": partial(scan, spark, log_dir, home),
        "some": partial(scan, spark, log_dir, home, SOME),
        "all": partial(scan, spark, log_dir, home, DEFAULT),
    }
    for job in jobs.values():
        job()
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(count):
        for name, job in jobs.items():
            taken[name].append(timed(job))
    return taken


def since(spark: Any, log_dir: Path, home: Path, count: int) -> dict[str, list[float]]:
    """Return the seconds of full runs, and of runs that find every segment unchanged, in turns."""
    output = home / "since"
    shutil.rmtree(output, ignore_errors=True)
    taken: dict[str, list[float]] = {"full": [], "since": []}
    for number in range(count + 1):
        for name, before in (("full", None), ("since", f"full-{number}")):
            job = Scan(spark, [log_dir], str(output), f"{name}-{number}", since=before)
            took = timed(job.run)
            if number:  # warm
                taken[name].append(took)
            if before and job.carried != job.summary.segments:
                raise AssertionError("not every segment was taken over")
    return taken


def small_partitions(home: Path, count: int) -> Path:
    """Return a log dir of partitions with one segment, all hard links to one file."""
    log_dir = home / f"small-{count}"
    if not log_dir.is_dir():
        source = generate(home, Spec(KIB, 4 * KIB))
        part = home / f"small-{count}.part"
        shutil.rmtree(part, ignore_errors=True)
        for number in range(count):
            link(source, part / f"small-{number}", "")
        part.rename(log_dir)
    return log_dir


def growth(spark: Any, log_dir: Path, home: Path, count: int) -> list[dict[str, float]]:
    """Return the figures of a scan of 1, 4 and 16 GiB; the largest has each file four times."""
    (source,) = (path for path in log_dir.iterdir() if path.is_dir())
    firsts = sorted(source.glob("*.log"))
    small, large = home / "growth-1", home / "growth-16"
    for target in (small, large):
        shutil.rmtree(target, ignore_errors=True)
    link(source, small / "bench-0", firsts[0].stem)
    for number in range(4):
        link(source, large / f"bench-{number}", "")
    found = []
    for place in (small, log_dir, large):
        size = sum(path.stat().st_size for path in place.glob("*/*.log"))
        scan(spark, place, home)
        seconds = [timed(partial(scan, spark, place, home)) for _ in range(max(2, count - 2))]
        found.append(
            {"bytes": size, "seconds": statistics.median(seconds), "driver": resident(),
             "heap": heap(spark)}
        )  # fmt: skip
    return found


def link(source: Path, target: Path, stem: str) -> None:
    """Make hard links to the files of a partition, or of its segment `stem`."""
    target.mkdir(parents=True)
    for file in source.iterdir():
        if file.stem.startswith(stem):
            (target / file.name).hardlink_to(file)


def resident() -> int:
    """Return the largest resident set of this process, the driver's Python, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def heap(spark: Any) -> int:
    """Return the used bytes of the JVM, with driver and executor, after a collection."""
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    spark._jvm.java.lang.System.gc()
    return int(runtime.totalMemory() - runtime.freeMemory())


def gap_job(spark: Any, rows: int, home: Path) -> float:
    """Return the seconds of the gap question after a pass over `rows` batches."""
    place = home / f"stretches-{rows}"
    if not place.is_dir():
        make_stretches(place, rows)
    output = home / "tables"
    shutil.rmtree(output, ignore_errors=True)
    run = begin(str(output), "one")
    asked = answers.Questions(run.staging, ("gaps",), (place,))
    job = partial(asked.answer_on, spark, [str(place / "stretches.parquet")])
    taken = min(timed(job) for _ in range(2))
    run.abandon()
    return taken


def make_stretches(place: Path, rows: int) -> None:
    """Write the stretches of a log with `rows` batches of one record, and its partition dirs."""
    for number in range(_PARTITIONS):
        folder = place / f"bench-{number}"
        folder.mkdir(parents=True)
        (folder / f"{0:020d}.log").touch()
    # A gap of one offset follows each `_GAP` batches and each segment.
    span = _SEGMENT + _SEGMENT // _GAP
    inside = (np.arange(_SEGMENT // _GAP - 1) + 1) * (_GAP + 1) - 1
    stretches = []
    for number in range(rows // _SEGMENT):
        at, partition = number // _PARTITIONS, number % _PARTITIONS
        base, last = at * span, (number + _PARTITIONS) * _SEGMENT >= rows
        stretches.append(RangeSummary(
            {
                "log_dir": str(place), "node_id": None, "topic": "bench", "partition": partition,
                "directory": f"bench-{partition}", "segment": base, "start_position": 0,
                "next_segment": None if last else base + span, "read": True, "batches": _SEGMENT,
                "first_offset": base, "last_offset": base + span - 2, "damages": 0,
                "damaged_head": False, "damaged_tail": False, "sound_batches": _SEGMENT,
            },
            {"inner": Inner(base + inside, base + inside, np.zeros_like(inside))},
        ))  # fmt: skip
    parquet.write_table(pa.Table.from_batches([as_rows(stretches)]), place / "stretches.parquet")


if __name__ == "__main__":
    main()
