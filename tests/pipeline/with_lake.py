"""A program that runs the recipe of the guide `logtool-fleets` on Delta Lake and on Iceberg.

A process of its own, because a process can have only one session, with one set of jars. It prints
JSON: for each format the rows of both runs, the rows of the lake table at both runs, and
the rows that the second run changed::

    python -m pipeline.with_lake FOLDER JARS
"""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline.places import span
from pyspark.sql import DataFrame, SparkSession
from readme import ROOT, recipes

from logtool.spark.scan import manifest
from logtool.spark.scan.scan import Scan
from logtool.spark.session import session

RUNS = FIRST, SECOND = "monday", "tuesday"
TABLES = {"delta": "segments", "iceberg": "batches"}
"""A table for each format: each merge takes seconds."""


def settings(folder: str, jars: str) -> dict[str, str]:
    """Return the settings for a session with both formats."""
    delta, iceberg = (
        "io.delta.sql.DeltaSparkSessionExtension",
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    )
    return {
        "spark.jars": jars,
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.extensions": f"{delta},{iceberg}",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": f"{folder}/iceberg",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }


def write(log_dir: Path, name: str, base: int, end: int) -> None:
    """Write a log with a batch for each ten offsets."""
    (log_dir / name).mkdir(parents=True, exist_ok=True)
    data = b"".join(span(at, at + 9) for at in range(base, end, 10))
    (log_dir / name / f"{base:020d}.log").write_bytes(data)


def scans(spark: SparkSession, folder: Path) -> str:
    """Scan a log dir before and after it grew and lost a partition; return the output."""
    log_dir, output = folder / "broker-1", str(folder / "tables")
    for name, base, end in (("orders-0", 0, 30), ("orders-0", 30, 50), ("gone-0", 0, 20)):
        write(log_dir, name, base, end)
    Scan(spark, [log_dir], output, FIRST, wanted=tuple(TABLES.values())).run()
    write(log_dir, "orders-0", 30, 60)
    write(log_dir, "orders-0", 60, 70)
    shutil.rmtree(log_dir / "gone-0")
    Scan(spark, [log_dir], output, SECOND, wanted=tuple(TABLES.values()), since=FIRST).run()
    return output


def rows(frame: DataFrame) -> list[str]:
    """Return rows as sorted JSON, without the name of the run."""
    texts = [str(text) for text in frame.drop("run_id").toJSON().collect()]
    return sorted(texts)


def main(folder: str, jars: str) -> None:
    """Run the recipe, and print what it made."""
    recipe: dict[str, Callable[..., Any]] = {}
    (text,) = recipes((ROOT / "man" / "logtool-fleets.md").read_text())
    exec(text, recipe)  # the guide itself
    found: dict[str, Any] = {}
    with session("local[2]", settings(folder, jars)) as spark:
        output = scans(spark, Path(folder))
        for kind, table in TABLES.items():
            target = f"delta.`{folder}/delta`" if kind == "delta" else f"lake.logs.{table}"
            for run_id in RUNS:
                recipe["merge"](spark, kind, target, table, output, run_id)
            changed = spark.table(target).where(f"run_id = '{SECOND}'")
            found[kind] = {
                "runs": [
                    rows(spark.read.parquet(*manifest.files(output, table, run_id)))
                    for run_id in RUNS
                ],
                "lake": [rows(recipe["at_run"](spark, kind, target, name)) for name in RUNS],
                "now": rows(spark.table(target)),
                "changed": sorted(map(list, changed.select("topic", "segment").collect())),
            }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
