"""The tables that are questions across segments: from staged tables to staged tables."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from logtool.pipeline import questions, tables
from logtool.pipeline.storage import Part, Run, Staging, filesystem
from logtool.pipeline.unit_rows import HELPERS
from logtool.pipeline.watching import watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ANSWERS = ("gaps", "producers", "transactions", "replicas")
_PART = "path string, rows long, size long"
_OF_SPARK = ("file://", "hdfs://")
"""Places that Spark reads by itself wherever it is installed."""
_PATTERN = frozenset("*?[]{}\\")
"""With any of these Spark takes a path for a pattern."""


def answer(
    spark: "SparkSession", run: Run, wanted: Sequence[str], log_dirs: Sequence[Path],
    on_step: Callable[[str], None], on_wait: Callable[[str], None] = lambda _: None,
) -> None:  # fmt: skip
    """Write the tables of `wanted` that are answers; `on_wait` hears how far each question is."""

    def staged(table: str) -> "DataFrame":
        return read(spark, run.files(table), HELPERS.get(table) or tables.schema(table))

    asked: dict[str, Callable[[], DataFrame]] = {
        "gaps": lambda: questions.gaps(
            staged("_edges"), staged("_inner"), questions.facts(spark, log_dirs)
        ),
        "producers": lambda: questions.producers(staged("batches")),
        "transactions": lambda: questions.transactions(staged("batches")),
        "replicas": lambda: questions.replicas(staged("batches"), staged("segments")),
    }
    questions_asked = [name for name in ANSWERS if name in wanted]
    for number, name in enumerate(questions_asked, 1):
        step = f"question {number} of {len(questions_asked)}: {name}"
        on_step(step)
        on_wait(step)

        def on_tasks(done: int, total: int, step: str = step) -> None:
            on_wait(f"{step}, {done} of {total} tasks done")

        with watched(spark.sparkContext, step, on_tasks):
            run.add(write(run.staging, name, asked[name]()))


def read(spark: "SparkSession", files: Sequence[str], schema: Any) -> "DataFrame":
    """Return Parquet files as a DataFrame; without any it has no rows."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = _signed(schema)
    kinds = from_arrow_schema(schema)
    if not files:
        return spark.createDataFrame([], kinds)
    if "://" not in files[0]:
        # Where Spark has another default, a plain path would be taken for one of that. It takes
        # what stands in a URL as it is: nothing is escaped.
        files = [f"file://{Path(name).absolute()}" for name in files]
    if files[0].startswith(_OF_SPARK) and not _PATTERN.intersection(files[0]):
        return spark.read.schema(kinds).parquet(*files)
    slices = min(len(files), 4 * spark.sparkContext.defaultParallelism)
    names = spark.createDataFrame([(name,) for name in files], "path string").repartition(slices)
    return names.mapInArrow(partial(_rows_of, schema=schema), kinds)


def write(staging: Staging, table: str, rows: "DataFrame") -> list[Part]:
    """Write a DataFrame with the columns of `table` from the executors."""
    done = rows.mapInArrow(partial(_write_rows, staging=staging, table=table), _PART).collect()
    return [Part(table, one.path, one.rows, one.size) for one in done]


def _rows_of(names: Iterator[Any], schema: Any) -> Iterator[Any]:
    for batch in names:
        for url in batch.column(0).to_pylist():
            found, path = filesystem(url)
            with parquet.ParquetFile(found.open_input_file(path)) as file:
                for rows in file.iter_batches():
                    yield rows.cast(schema)


def _write_rows(batches: Iterator[Any], staging: Staging, table: str) -> Iterator[Any]:
    schema = tables.schema(table)
    with staging.writer(table) as writer:
        for rows in batches:
            writer.write(rows.cast(schema))
    yield pa.RecordBatch.from_pylist(
        [{"path": one.path, "rows": one.rows, "size": one.size} for one in writer.parts],
        pa.schema([("path", pa.string()), ("rows", pa.int64()), ("size", pa.int64())]),
    )


def _signed(schema: Any) -> Any:
    """Return a schema with no unsigned type, which Spark has none of."""
    fields = [
        field.with_type(pa.int64()) if field.type == pa.uint32() else field for field in schema
    ]
    return pa.schema([field.remove_metadata() for field in fields])
