"""What the pipeline takes, in a process with a Spark session of its own: prints JSON.

Run as ``python -m bench.on_spark HOME TOTAL PAIRS``; `bench.pipeline` makes rows of it.
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

from logtool.pipeline import answers, questions
from logtool.pipeline.engine import SparkEngine
from logtool.pipeline.gap_rows import EDGES, INNER
from logtool.pipeline.questions_facts import FACTS
from logtool.pipeline.scan import Scan
from logtool.pipeline.session import session
from logtool.pipeline.storage import begin
from logtool.pipeline.tables import DEFAULT, Payload
from logtool.schedule import Budget
from logtool.verify import Verification

SIZES = {"1 KiB": KIB, "16 KiB": 16 * KIB}
BATCH_ROWS = (5_000_000, 20_000_000, 50_000_000)
_CORES = 2
_PARTITIONS, _SEGMENT, _GAP = 64, 10_000, 400
"""Of the gap job: partitions, batches in a segment, batches from one gap to the next."""


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
    sound(Verification([log_dir], budget=Budget(engine=SparkEngine(spark))))


def sound(job: Verification) -> None:
    if any(item.severity == "error" for item in job):
        raise AssertionError("the input is not sound")


def scan(
    spark: Any, log_dir: Path, home: Path, wanted: Sequence[str] = ("batches",)
) -> dict[str, int]:
    """Write tables; returns the bytes of each."""
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
        "scan --tables segments,batches,findings": partial(
            scan, spark, log_dir, home, ("segments", "batches", "findings")
        ),
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
    }
    for job in jobs.values():
        job()
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(count):
        for name, job in jobs.items():
            taken[name].append(timed(job))
    return taken


def growth(spark: Any, log_dir: Path, home: Path, count: int) -> list[dict[str, float]]:
    """Return what a scan of 1, 4 and 16 GiB takes; the largest is the same files four times."""
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
    """Give the files of a partition, or of its segment `stem`, one more name each."""
    target.mkdir(parents=True)
    for file in source.iterdir():
        if file.stem.startswith(stem):
            (target / file.name).hardlink_to(file)


def resident() -> int:
    """Return the bytes of the largest resident set that this process had: the driver's Python."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def heap(spark: Any) -> int:
    """Return the bytes in use in the JVM, driver and executor in one, after a collection."""
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    spark._jvm.java.lang.System.gc()
    return int(runtime.totalMemory() - runtime.freeMemory())


def gap_job(spark: Any, rows: int, home: Path) -> float:
    """Return the seconds of the gap job on what a pass over so many batches leaves."""
    place = home / f"gaps-{rows}"
    if not place.is_dir():
        make_stretches(place, rows)
    edges, inner = (
        answers.read(spark, [str(place / f"{name}.parquet")], schema)
        for name, schema in (("edges", EDGES), ("inner", INNER))
    )
    facts = answers.read(spark, [str(place / "facts.parquet")], FACTS)
    output = home / "tables"
    shutil.rmtree(output, ignore_errors=True)
    run = begin(str(output), "one")
    job = partial(answers.write, run.staging, "gaps", questions.gaps(edges, inner, facts))
    return min(timed(job) for _ in range(2))


def make_stretches(place: Path, rows: int) -> None:
    """Write edges, inner gaps and facts of a compacted log of so many batches of one record."""
    segments = rows // _SEGMENT
    number = np.arange(segments)
    partition, inside = number % _PARTITIONS, number // _PARTITIONS
    # A gap of one offset behind each `_GAP` batches, and one behind each segment.
    span = _SEGMENT + _SEGMENT // _GAP
    base = inside * span
    last = inside == inside.max()

    def common(partition: Any, segment: Any) -> dict[str, Any]:
        count = len(partition)
        return {
            "log_dir": np.full(count, "/data"), "node_id": np.zeros(count, np.int32),
            "topic": np.full(count, "bench"), "partition": partition.astype(np.int32),
            "directory": np.char.add("bench-", partition.astype(str)), "segment": segment,
        }  # fmt: skip

    def known(schema: Any, columns: dict[str, Any], count: int) -> Any:
        def column(field: Any) -> Any:
            value = columns.get(field.name, 0)
            if isinstance(value, int | bool):
                value = np.full(count, value)
            return pa.array(value).cast(field.type)

        return pa.table([column(field) for field in schema], schema=schema)

    ends = base + span - 2
    edges = known(EDGES, {
        **common(partition, base), "read": True, "batches": _SEGMENT, "first_offset": base,
        "last_offset": ends, "next_segment": pa.array(base + span, mask=last),
        "inner_gaps": _SEGMENT // _GAP - 1,
    }, segments)  # fmt: skip
    at = (np.arange(_SEGMENT // _GAP - 1) + 1) * (_GAP + 1) - 1
    first = (base[:, None] + at[None, :]).ravel()
    times = len(at)
    inner = known(INNER, {
        **common(np.repeat(partition, times), np.repeat(base, times)),
        "first_offset": first, "last_offset": first, "position": first * 100,
    }, len(first))  # fmt: skip
    facts = pa.Table.from_pylist([
        {"log_dir": "/data", "directory": f"bench-{n}", "log_start": 0, "policy": "compact",
         "policy_source": "the metadata log", "cleaner_offset": None, "clean": True,
         "first_base": 0, "witness_offsets": [], "witness_names": [], "witness_snapshots": []}
        for n in range(_PARTITIONS)
    ], schema=FACTS)  # fmt: skip
    place.mkdir(parents=True)
    for name, table in (("edges", edges), ("inner", inner), ("facts", facts)):
        parquet.write_table(table, place / f"{name}.parquet")


if __name__ == "__main__":
    main()
