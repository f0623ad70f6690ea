"""The tables that answer questions across segments, made from the rows that a pass staged.

Few staged bytes are answered in this process, many in one Spark job, in which the rows of a
partition come together in one task. Gaps in a bucket of AutoMQ are answered in a job, too, because
the facts about its partitions take long to read. Both ways run the same function, and a task holds
one partition at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from logtool.disk.files import is_assembled
from logtool.formats.record_batch import Column
from logtool.lazy_dataclass import dataclass
from logtool.spark.questions import answering
from logtool.spark.questions.facts import FACTS, facts_by_directory, facts_of
from logtool.spark.questions.range_summary import STRETCHES
from logtool.spark.scan.batches_of_run import look
from logtool.spark.scan.job_progress import watched
from logtool.spark.scan.manifest import TableFile
from logtool.spark.scan.runs import ScanRun
from logtool.spark.scan.storage import Staging
from logtool.spark.scan.store import filesystem
from logtool.spark.scan.unit_rows import STAGED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LITTLE: Final = 64 * 1024 * 1024
"""Most bytes of staged files, compressed, that this process answers itself."""
_ROWS_AT_ONCE: Final = 4096
_BOTH: Final = pa.schema([*STRETCHES, *(one for one in FACTS if one.name not in STRETCHES.names)])
"""Rows of stretches, and rows of facts: each has nulls for the other's columns."""
_PART = "name string, path string, rows long, size long"


def answer(
    spark: "SparkSession",
    run: ScanRun,
    wanted: Sequence[str],
    log_dirs: Sequence[Path],
    on_step: Callable[[str], None],
    on_wait: Callable[[str], None] = lambda _: None,
) -> None:
    """Write the tables of `wanted` that are answers; `on_wait` gets the progress as text."""
    asked = [name for name in answering.NAMES if name in wanted]
    if not asked:
        return
    step = f"questions: {', '.join(asked)}"
    on_step(step)
    on_wait(step)
    files = run.files(STAGED)
    if run.size(STAGED) <= LITTLE and not ("gaps" in asked and any(map(is_assembled, log_dirs))):
        run.add(Questions(run.here, tuple(asked), tuple(log_dirs)).answer_here(files))
        return
    work = Questions(run.staging, tuple(asked), tuple(log_dirs))

    def on_tasks(done: int, total: int) -> None:
        on_wait(f"{step}, {done} of {total} tasks done")

    with watched(spark.sparkContext, step, on_tasks):
        run.add(work.answer_on(spark, files))


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions asked of the rows that a pass staged; the object is sent to executors."""

    staging: Staging
    tables: tuple[str, ...]
    log_dirs: tuple[Path, ...]
    """Log dirs and partition dirs whose facts are read for gaps."""

    def answer_here(self, files: Sequence[str]) -> list[TableFile]:
        """Answer in this process, from files of `STAGED`."""
        parts = [*map(_table, files), *map(facts_rows, self._with_facts)]
        if not parts:
            return []
        rows = pa.concat_tables(map(_padded, parts))
        ordered = rows.sort_by([(name, "ascending") for name in answering.ORDER])
        return self.write(ordered.to_batches())

    def answer_on(self, spark: "SparkSession", files: Sequence[str]) -> list[TableFile]:
        """Answer in executors, in one job."""
        from pyspark.sql.pandas.types import from_arrow_schema

        kinds = from_arrow_schema(_BOTH)
        cores = spark.sparkContext.defaultParallelism
        inputs: list[str | Path] = [*files, *self._with_facts]

        def read(numbers: Iterator[Any]) -> Iterator[Any]:
            for batch in numbers:
                for number in batch.column(0).to_pylist():
                    one = inputs[number]
                    table = _table(one) if isinstance(one, str) else facts_rows(one)
                    yield from _padded(table).to_batches()

        def write(batches: Iterator[Any]) -> Iterator[Any]:
            yield pa.RecordBatch.from_pylist(
                [
                    {"name": part.table, "path": part.path, "rows": part.rows, "size": part.size}
                    for part in self.write(batches)
                ],
                pa.schema(
                    [
                        ("name", pa.string()),
                        ("path", pa.string()),
                        ("rows", pa.int64()),
                        ("size", pa.int64()),
                    ]
                ),
            )

        tasks = min(len(inputs), 4 * cores)
        rows: DataFrame = spark.range(0, len(inputs), 1, tasks).mapInArrow(read, kinds)
        sorted_rows = rows.repartition("topic", "partition").sortWithinPartitions(*answering.ORDER)
        done = sorted_rows.mapInArrow(write, _PART).collect()
        return [
            TableFile(table=one.name, path=one.path, rows=one.rows, size=one.size) for one in done
        ]

    @property
    def _with_facts(self) -> tuple[Path, ...]:
        return self.log_dirs if "gaps" in self.tables else ()

    def write(self, batches: Iterable[Any]) -> list[TableFile]:
        """Write the answers from rows that come in `answering.ORDER`; returns the files."""
        with ExitStack() as stack:
            writers = {name: stack.enter_context(self.staging.writer(name)) for name in self.tables}
            for rows in _partitions(batches):
                is_fact = pc.is_valid(rows.column("log_start"))
                facts = facts_by_directory(rows.filter(is_fact))
                stretches = rows.filter(pc.invert(is_fact)).select(STRETCHES.names)
                for name, found in answering.answers(stretches, self.tables, facts, look):
                    writers[name].write(found)
        return [part for writer in writers.values() for part in writer.parts]


def facts_rows(log_dir: Path) -> Any:
    """Return the facts of a log dir as a table, with the columns that place them."""
    return pa.Table.from_batches([facts_of(log_dir)], FACTS)


def _table(url: str) -> Any:
    found, path = filesystem(url)
    with found.open_input_file(path) as file, parquet.ParquetFile(file) as known:
        return known.read(use_threads=False)  # a file of one is small, and a task has one core


def _padded(table: Any) -> Any:
    """Return a table with all columns of both kinds of rows."""
    count = len(table)
    return pa.table(
        [
            table.column(one.name).cast(one.type)
            if one.name in table.column_names
            else pa.nulls(count, one.type)
            for one in _BOTH
        ],
        schema=_BOTH,
    )


def _partitions(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows as tables of whole partitions, some thousand rows each if they are small."""
    waiting: list[Any] = []
    count = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        count += batch.num_rows
        if count < _ROWS_AT_ONCE:
            continue
        rows = pa.Table.from_batches(waiting)
        end = _start_of_last(rows)
        if end:
            yield rows.slice(0, end)
        waiting, count = rows.slice(end).to_batches(), len(rows) - end
    if waiting:
        yield pa.Table.from_batches(waiting)


def _start_of_last(rows: Any) -> int:
    """Return the first row of the last partition."""
    topics, partitions = rows.column("topic"), rows.column("partition")
    last = topics[-1], partitions[-1]
    other = np.ones(len(rows), bool)
    for column, value in zip((topics, partitions), last, strict=True):
        same = pc.equal(column, value) if value.is_valid else pc.is_null(column)
        other &= pc.fill_null(same, False).to_numpy(zero_copy_only=False)
    elsewhere: Column = np.flatnonzero(~other)
    return int(elsewhere[-1]) + 1 if len(elsewhere) else 0
