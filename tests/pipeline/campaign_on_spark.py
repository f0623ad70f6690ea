"""The campaign on a real Spark: predicates, faults of a store and kills; writes the report.

Run as ``python -m pipeline.campaign_on_spark``; ``make spark-campaign`` does so.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyspark
from pipeline import campaign, kills
from pipeline.campaign import (
    COMPLETE,
    FAILED,
    QUESTIONS,
    REFUSALS,
    TABLES,
    Bucket,
    Verdicts,
    expected,
    in_order,
)
from pipeline.conftest import QUICK
from pipeline.plain_parse import Row, Tables
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from logtool.errors import LogtoolError
from logtool.spark.session import SparkError, session
from logtool.spark.source import source

REPORT = Path(__file__).parents[1] / "bench" / "reports" / "spark-campaign.md"
_TABLES: dict[str, Callable[[SparkSession, Path], DataFrame]] = {
    "batches": source.batches,
    "records": partial(source.records, payload="full"),
    "kafka": source.kafka,
    "gaps": source.gaps,
    "producers": source.producers,
    "transactions": source.transactions,
}
_ERRORS = (PySparkException, SparkError, LogtoolError)


def conditions(rng: random.Random, rows: list[Row], count: int) -> Iterator[str]:
    """Yield conditions of every kind on columns by chance, with values that occur."""
    names = [name for name in rows[0] if name not in ("key", "value")]
    for _ in range(count):
        first, second = (_condition(rng, rows, rng.choice(names)) for _ in range(2))
        yield rng.choice((
            first, f"not ({first})", f"({first}) and ({second})", f"({first}) or ({second})",
        ))  # fmt: skip


def _condition(rng: random.Random, rows: list[Row], name: str) -> str:
    low, high = (_literal(rng.choice(rows)[name]) for _ in range(2))
    return rng.choice((
        f"{name} = {low}", f"{name} <=> {low}", f"{name} <> {low}", f"{name} in ({low}, {high})",
        f"{name} is null", f"{name} is not null", f"{name} < {low}", f"{name} >= {low}",
        f"{name} between {low} and {high}", f"cast({name} as string) like '%1%'",
        f"coalesce({name}, {high}) = {low}",
    ))  # fmt: skip


def _literal(value: Any) -> str:
    return "null" if value is None else repr(value) if isinstance(value, str) else str(value)


def rows_of(frame: DataFrame, names: list[str]) -> list[Row]:
    """Collect the columns that are compared."""
    found = [row.asDict() for row in frame.select(*names).collect()]
    return [
        {name: bytes(value) if isinstance(value, bytearray) else value
         for name, value in row.items()} for row in found
    ]  # fmt: skip


def try_tables(
    spark: SparkSession, home: Path, truth: Tables, count: int, verdicts: Verdicts
) -> None:
    """Compare all rows with the independent parse, and predicates with the cached rows."""
    rng = random.Random(home.name)
    for table, frame_of in _TABLES.items():
        rows = expected(truth, table)
        names = list(rows[0])
        found = rows_of(frame_of(spark, home), names)
        verdict = COMPLETE if in_order(found) == in_order(rows) else "other rows"
        verdicts.add(f"Spark: all rows of {table}", verdict, f"{home}", COMPLETE)
        cached = frame_of(spark, home).select(*names).cache()
        for condition in conditions(rng, rows, count):
            fresh = rows_of(frame_of(spark, home).where(condition), names)
            same = in_order(fresh) == in_order(rows_of(cached.where(condition), names))
            verdict = COMPLETE if same else "other rows"
            verdicts.add(f"Spark: where on {table}", verdict, condition, COMPLETE)
        cached.unpersist()


def judge(job: Callable[[], list[Row]], wanted: list[Row]) -> str:
    """Return the verdict on a strict query."""
    try:
        rows = job()
    except _ERRORS:
        return FAILED
    return COMPLETE if in_order(rows) == in_order(wanted) else campaign.SILENT


def try_store(
    spark: SparkSession, store: Bucket, home: Path, truth: Tables, table: str, verdicts: Verdicts
) -> None:
    """Refuse objects while Spark lists, and while its workers read."""
    url, rows = store.put(home, f"{home.name}-{table}-spark"), expected(truth, table)
    names, log = list(rows[0]), sorted(home.rglob("*.log"))[0]

    def query() -> list[Row]:
        return rows_of(_TABLES[table](spark, url), names)

    for moment, name in campaign.moments(log, table).items():
        if moment == "planning":  # the campaign without a session has it
            continue
        for status, answer in REFUSALS.items():
            store.faults.refused[name] = answer
            verdict = store.under_faults(partial(judge, query, rows))
            case = f"Spark: {table}, S3 {status} at {moment}"
            verdicts.add(case, verdict, name, COMPLETE, FAILED)
    verdicts.add(f"Spark: {table}, S3 without a fault", judge(query, rows), str(url), COMPLETE)


def report(verdicts: Verdicts, arguments: argparse.Namespace, seconds: float) -> str:
    """Return the report as Markdown."""
    rows = [f"| {kind} | {verdict} | {count} |"
            for (kind, verdict), count in sorted(verdicts.counts.items())]  # fmt: skip
    wrong = [f"- {case}" for case in verdicts.wrong] or ["None."]
    return "\n".join([
        "# Campaign on the data source and scan", "",
        "`make spark-campaign` writes this file. The truth is a parse that shares no code with "
        "logtool (`tests/pipeline/plain_parse.py`, `tests/pipeline/plain_questions.py`).", "",
        f"{arguments.seeds} log dirs, {arguments.options} rounds of options each, "
        f"{arguments.predicates} predicates for each table, {arguments.kills} kills of each kind, "
        f"pyspark {pyspark.__version__}, "
        f"Python {sys.version.split()[0]}, {seconds:.0f} s.", "",
        "- complete: the rows of the truth", "- failed: the query fails, or the run is not kept",
        "- killed: SIGKILL to the JVM that the campaign started, or to children of it",
        "- reported: with `failOnDataLoss=false`, a warning names what is missing", "",
        "| cases | verdict | number |", "|---|---|---|", *rows, "",
        "## Wrong: other rows, or a loss without a word", "", *wrong, "",
    ])  # fmt: skip


def main() -> int:
    """Run the campaign; status 1 if a verdict is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--options", type=int, default=20)
    parser.add_argument("--predicates", type=int, default=100)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--report", type=Path, default=REPORT)
    arguments = parser.parse_args()
    began, verdicts = time.monotonic(), Verdicts()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for seed in range(arguments.seeds):
            home, truth = campaign.make(root, seed)
            for number in range(arguments.options):
                campaign.try_options(home, truth, random.Random(seed * 1000 + number), verdicts)
        for table in TABLES:
            campaign.try_local(partial(campaign.make, root, 1), table, verdicts)
        home, truth = campaign.make(root, 2)
        with campaign.bucket(root) as store:
            for table in TABLES:
                campaign.try_store(store, home, truth, table, verdicts)
                campaign.try_store_that_refuses(store, home, truth, table, verdicts)
            with session("local[2,4]", QUICK) as spark:
                try_tables(spark, home, truth, arguments.predicates, verdicts)
                for table in ("batches", *QUESTIONS):
                    try_store(spark, store, home, truth, table, verdicts)
        kills.try_kills(root, arguments.kills, verdicts)
    text = report(verdicts, arguments, time.monotonic() - began)
    arguments.report.write_text(text)
    sys.stdout.write(text)
    return 1 if verdicts.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
