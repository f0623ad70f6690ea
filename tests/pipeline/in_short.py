"""A program that tries the pipeline in short on the release of Spark that it imports.

It prints a line of JSON for each step, with its seconds and its error. The truth is the parse of
`pipeline.plain_parse`::

    python -m pipeline.in_short WAY FOLDER

WAY is ``classic`` or ``connect``: a local server of Spark Connect, which has no `scan`.
"""

import json
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

    spark = SparkSession.builder.remote("local[2]").getOrCreate()
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

    if way == "classic":
        yield "scan", scan


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
