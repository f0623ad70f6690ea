"""Kills of Python workers, executors and the driver's JVM while a query reads; no row is lost.

Each process that is killed is a child of the JVM that this process started. A query whose tasks
may be tried again is complete; otherwise it fails.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial, reduce
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb
import psutil
from bench.generate import MIB, Spec, generate
from pipeline import campaign
from pipeline.campaign import COMPLETE, FAILED, NO_FAULT, QUESTIONS, SILENT, Verdicts, in_order
from pipeline.conftest import QUICK
from pipeline.plain_parse import Row, parse
from processes import command_of, wait_for
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from logtool.errors import LogtoolError
from logtool.spark.scan import manifest
from logtool.spark.scan.scan import Scan
from logtool.spark.session import SparkError, session
from logtool.spark.source import source

COLUMNS = ("segment", "position", "base_offset", "crc")
ABOUT_PARTITIONS = ("log_dir", "topic", "partition", "first_offset", "last_offset")
"""Columns of the tables about whole partitions that are compared."""
_LOG_DIRS = 60
"""Log dirs of `campaign.make` that a query of these tables reads."""
_BUNDLE_BYTES = 100_000
_TRIES = 5
"""Times that a query is begun until a kill meets it."""
_SECONDS = 300
"""Most seconds that a query may take after a kill."""
_SETTINGS = {**QUICK, "spark.executor.memory": "512m", "spark.ui.liveUpdate.period": "0"}
_ERRORS = (PySparkException, SparkError, LogtoolError, Py4JError, ConnectionError)


def jvm() -> psutil.Process:
    """Return the JVM of the driver, which this process started."""
    gateway: Any = SparkContext._gateway
    return psutil.Process(gateway.proc.pid)


def _family(word: str) -> list[psutil.Process]:
    return [one for one in jvm().children(recursive=True) if word in command_of(one)]


def a_worker() -> list[psutil.Process]:
    """Return a Python worker that reads: a child of the daemon that forks them."""
    daemons = {one.pid for one in _family("pyspark.daemon")}
    with suppress(psutil.NoSuchProcess):
        return [one for one in _family("pyspark.daemon") if one.ppid() in daemons][:1]
    return []


def all_workers() -> list[psutil.Process]:
    """Return all Python workers, and the daemons that fork them."""
    return _family("pyspark.daemon")


def an_executor() -> list[psutil.Process]:
    """Return the JVM of an executor."""
    return _family("CoarseGrainedExecutor")[:1]


def all_executors() -> list[psutil.Process]:
    """Return the JVMs of all executors."""
    return _family("CoarseGrainedExecutor")


def the_driver() -> list[psutil.Process]:
    """Return the JVM of the driver."""
    return [jvm()]


Victims = Callable[[], list[psutil.Process]]
Query = Callable[[SparkSession, Path, Path], list[Row]]


def read(spark: SparkSession, home: Path, output: Path) -> list[Row]:
    """Return the rows of a query in many tasks."""
    del output
    frame = source.batches(spark, home, bundleBytes=_BUNDLE_BYTES)
    return [row.asDict() for row in frame.select(*COLUMNS).collect()]


def stream(spark: SparkSession, home: Path, output: Path) -> list[Row]:
    """Return the rows that a stream wrote into files."""
    frame = spark.readStream.format("kafka-log").option("bundleBytes", str(_BUNDLE_BYTES))
    rows = frame.load(str(home)).select(*COLUMNS)
    sink = rows.writeStream.format("parquet").option("path", str(output / "rows"))
    query = sink.option("checkpointLocation", str(output / "checkpoint")).start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    return [row.asDict() for row in spark.read.parquet(str(output / "rows")).collect()]


def scan(spark: SparkSession, home: Path, output: Path) -> list[Row]:
    """Return the rows of the run that `scan` writes."""
    Scan(spark, [home], str(output), "one", wanted=("batches", "records")).run()
    found = duckdb.read_parquet(manifest.files(str(output), "batches")).select(*COLUMNS)
    return [dict(zip(COLUMNS, row, strict=True)) for row in found.fetchall()]


def questions(spark: SparkSession, home: Path, output: Path) -> list[Row]:
    """Return the rows of the tables about whole partitions, with a task for each partition."""
    del output
    frames = [
        table(spark, home / "seed-*", bundleBytes=1).select(
            lit(name).alias("of"), *ABOUT_PARTITIONS
        )
        for name, table in zip(
            QUESTIONS, (source.gaps, source.producers, source.transactions), strict=True
        )
    ]
    return [row.asDict() for row in reduce(DataFrame.union, frames).collect()]


def scan_questions(spark: SparkSession, home: Path, output: Path) -> list[Row]:
    """Return the rows of the same tables of the run that `scan` writes."""
    Scan(spark, sorted(home.glob("seed-*")), str(output), "one", wanted=QUESTIONS).run()
    names = ("of", *ABOUT_PARTITIONS)
    return [
        dict(zip(names, (table, *row), strict=True))
        for table in QUESTIONS
        for row in duckdb.read_parquet(manifest.files(str(output), table))
        .select(*ABOUT_PARTITIONS)
        .fetchall()
    ]


def rows_about_partitions(home: Path) -> list[Row]:
    """Write log dirs below a directory, and return the rows that these two must have."""
    home.mkdir()
    found = [campaign.make(home, seed) for seed in range(_LOG_DIRS)]
    return [
        {"of": table, "log_dir": str(log_dir)} | {name: row[name] for name in ABOUT_PARTITIONS[1:]}
        for log_dir, truth in found
        for table in QUESTIONS
        for row in campaign.expected(truth, table)
    ]


def _is_reading(spark: SparkSession, done: int) -> bool:
    """Return whether tasks run, after so many were done."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(one) for one in tracker.getActiveStageIds()]
    return any(
        one is not None and one.numActiveTasks and one.numCompletedTasks >= done for one in stages
    )


def judge(job: "Future[list[Row]]", wanted: list[Row]) -> str:
    """Return the verdict on a query after its kill."""
    try:
        rows = job.result()
    except _ERRORS:
        return FAILED
    return COMPLETE if in_order(rows) == in_order(wanted) else SILENT


def under_a_kill(
    spark: SparkSession, query: Query, victims: Victims, done: int, home: Path, output: Path
) -> "Future[list[Row]] | None":
    """Run a query and kill the victims when tasks run; None where it ended before."""
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(query, spark, home, output)
        wait_for(lambda: job.done() or (_is_reading(spark, done) and victims()), 300)
        killed = [] if job.done() else victims()
        for one in killed:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        if not wait([job], _SECONDS).done:
            with suppress(*_ERRORS):
                spark.sparkContext.cancelAllJobs()
            raise AssertionError(f"the query did not end within {_SECONDS} s after a kill")
        return job if killed else None


TABLE: tuple[tuple[str, str, Query, Victims, int, str], ...] = (
    ("local[2,4]", "a Python worker, while rows are read", read, a_worker, 1, COMPLETE),
    ("local[2,4]", "all Python workers, while rows are read", read, all_workers, 1, COMPLETE),
    ("local[2,4]", "all Python workers, in a stream", stream, all_workers, 1, COMPLETE),
    ("local[2,4]", "all Python workers, in scan", scan, all_workers, 0, COMPLETE),
    ("local[2,4]", "all Python workers, while questions are answered", questions, all_workers, 1,
     COMPLETE),
    ("local[2,4]", "all Python workers, in scan of questions", scan_questions, all_workers, 0,
     COMPLETE),
    ("local[2,1]", "a Python worker, while questions are answered, with one attempt for each task",
     questions, a_worker, 1, FAILED),
    ("local[2,1]", "a Python worker, with one attempt for each task", read, a_worker, 1, FAILED),
    ("local-cluster[2,1,1024]", "an executor, while rows are read", read, an_executor, 1, COMPLETE),
    ("local-cluster[2,1,1024]", "all executors, while rows are read", read, all_executors, 1,
     COMPLETE),
    ("local-cluster[2,1,1024]", "an executor, while questions are answered", questions,
     an_executor, 1, COMPLETE),
    ("local-cluster[2,1,1024]", "an executor, in scan", scan, an_executor, 0, COMPLETE),
    ("local[2,4]", "the driver's JVM, while rows are read", read, the_driver, 1, FAILED),
)  # fmt: skip
"""Master, case, query, processes to kill, tasks that are done before, and the verdict allowed. The
last one leaves no JVM for others."""


def try_kills(root: Path, repeats: int, verdicts: Verdicts) -> None:
    """Kill processes of each kind; every kill must meet a query that runs."""
    home = generate(root / "kills", Spec(200, 16 * MIB, segment_size=MIB)).parent
    batches = [{name: row[name] for name in COLUMNS} for row in parse(home).batches]
    many = root / "many"
    about_partitions = rows_about_partitions(many)
    for master, group in groupby(TABLE, itemgetter(0)):
        with session(master, _SETTINGS) as spark:
            source.register(spark)
            for number, (_, case, query, victims, done, allowed) in enumerate(group):
                asks = query in (questions, scan_questions)
                place, wanted = (many, about_partitions) if asks else (home, batches)
                for repeat in range(1 if victims is the_driver else repeats):
                    kill = partial(under_a_kill, spark, query, victims, done, place)
                    outputs = (root / f"kills-{number}-{repeat}-{n}" for n in range(_TRIES))
                    met = next((job for output in outputs if (job := kill(output))), None)
                    verdict = judge(met, wanted) if met else NO_FAULT
                    verdicts.add(
                        f"killed in {master}: {case}", verdict, f"repeat {repeat}", allowed
                    )
