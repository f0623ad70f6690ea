"""A program that tries the pipeline in short on the release of Spark that it imports.

It prints a line of JSON for each step, with its seconds and its error. The truth is the parse of
`pipeline.plain_parse`::

    python -m pipeline.in_short WAY FOLDER

WAY is ``classic`` or ``connect``: a local server of Spark Connect, where `scan` says that it needs
another session.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyspark
from pipeline import campaign
from pipeline.conftest import QUICK
from pipeline.plain_parse import Row, parse
from pyspark.errors import PySparkException

from logtool.errors import LogtoolError
from logtool.spark import connect
from logtool.spark.scan import manifest
from logtool.spark.scan.scan import Scan
from logtool.spark.session import session
from logtool.spark.source import source

SEED = 3


@contextmanager
def session_of(way: str) -> Iterator[Any]:
    """Yield a session."""
    if way == "classic":
        with session("local[2,4]", QUICK) as spark:
            yield spark
        return
    from pyspark.sql import SparkSession

    # The server starts its workers with the python3 of the PATH, unless this says otherwise.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.remote("local[2]")
    for name, value in {**QUICK, "spark.ui.showConsoleProgress": "false"}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if not connect.is_connect(spark):
        raise AssertionError(f"{type(spark)} is no session of Spark Connect")
    try:
        yield spark
    finally:
        spark.stop()


def same(found: list[Row], wanted: list[Row]) -> None:
    """Raise AssertionError for other rows."""
    if campaign.in_order(found) != campaign.in_order(wanted):
        raise AssertionError(f"{len(found)} rows, not the {len(wanted)} of the truth")


def collected(frame: Any, names: list[str]) -> list[Row]:
    """Return the rows of a frame as the truth has them."""
    return [
        {name: bytes(value) if isinstance(value, bytearray) else value
         for name, value in row.asDict().items()} for row in frame.select(*names).collect()
    ]  # fmt: skip


def refused_with(text: str, job: Callable[[], object]) -> None:
    """Raise AssertionError for a job that does not fail, or fails with another message."""
    try:
        job()
    except (LogtoolError, PySparkException) as error:
        if text not in f"{type(error).__name__}: {error}":
            raise AssertionError(f"not {text}: {error}") from error
    else:
        raise AssertionError(f"no error with {text}")


def steps(spark: Any, way: str, folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the name of each step with the function that does it."""
    home = campaign.write_log_dir(folder / "logs", SEED)
    truth = parse(home)
    for table in ("batches", "records", "kafka"):
        rows = campaign.expected(truth, table)

        def read(table: str = table, rows: list[Row] = rows) -> None:
            reader = spark.read.format("kafka-log").option("table", table)
            reader = reader.option("payload", "full") if table == "records" else reader
            same(collected(reader.load(str(home)), list(rows[0])), rows)

        yield f"spark.read of {table}", read

    def lost() -> None:
        log = max(home.rglob("*.log"))
        kept = log.rename(log.with_suffix(".kept"))
        log.symlink_to("elsewhere")
        try:
            refused_with("LostDataError", lambda: source.batches(spark, home).collect())
        finally:
            kept.rename(log)

    yield "a log that cannot be read", lost

    def missing() -> None:
        # On Spark Connect only the server has the paths, and answers when the rows are asked for.
        refused_with("No such file", lambda: source.batches(spark, "/nowhere").collect())

    yield "a path that does not exist", missing

    def stream() -> None:
        names = list(truth.batches[0])
        query = (
            spark.readStream.format("kafka-log").option("table", "batches").load(str(home))
            .select(*names).writeStream.format("parquet").option("path", str(folder / "rows"))
            .option("checkpointLocation", str(folder / "checkpoint")).start()
        )  # fmt: skip
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        same(collected(spark.read.parquet(str(folder / "rows")), names), truth.batches)

    yield "spark.readStream of batches", stream

    def scan() -> None:
        Scan(spark, [home], str(folder / "tables"), "one").run()
        files = manifest.files(str(folder / "tables"), "batches")
        count = len(duckdb.read_parquet(files).fetchall())
        if count != len(truth.batches):
            raise AssertionError(f"{count} rows, not the {len(truth.batches)} of the truth")

    def refused() -> None:
        refused_with("Spark Connect", scan)

    yield ("scan", scan) if way == "classic" else ("scan, refused in one sentence", refused)


def main(way: str, folder: str) -> None:
    """Do all steps."""

    def say(step: str, began: float, error: str | None = None) -> None:
        seconds = round(time.monotonic() - began, 1)
        found = {"release": pyspark.__version__, "step": step, "seconds": seconds, "error": error}
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()

    began = time.monotonic()
    with session_of(way) as spark:
        source.register(spark)
        say("start of the session", began)
        for name, step in steps(spark, way, Path(folder)):
            began, error = time.monotonic(), None
            try:
                step()
            except Exception as caught:  # the other steps go on
                error = f"{type(caught).__name__}: {str(caught).strip().splitlines()[0]}"
            say(name, began, error)


if __name__ == "__main__":
    main(*sys.argv[1:])
