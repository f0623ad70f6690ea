"""Rows of segments that have not changed since an earlier run, taken over into this run.

A file of which every row is still wanted gets one more name: a hard link on a disk, a copy inside
the store in a bucket. A file with rows of segments that changed, or are gone, is written again
without these rows. So each run has all of its files, and the earlier run may be removed.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from logtool.errors import RefusedError
from logtool.lazy_dataclass import dataclass
from logtool.spark.questions.answering import LISTS_OF
from logtool.spark.scan import manifest, store
from logtool.spark.scan.incremental import REPORTS, TABLE, KeptReports, SegmentKey
from logtool.spark.scan.job_progress import watched
from logtool.spark.scan.manifest import Manifest, TableFile
from logtool.spark.scan.runs import ScanRun
from logtool.spark.scan.storage import Staging
from logtool.spark.scan.unit_rows import STAGED
from logtool.spark.session import job_failed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COPIES_AT_ONCE: Final = 16
LITTLE: Final = 64 * 1024 * 1024
"""Most bytes that this process rewrites itself: a Spark job would take longer for them."""
_SEPARATOR: Final = "\0"


def load(output: str, run: Manifest) -> KeptReports:
    """Return the reports that a run keeps for a later run; RefusedError if a file is gone."""
    parts = [part for part in run.parts if part.table == TABLE]
    rows = [_read(output, part).cast(REPORTS) for part in parts]
    return KeptReports(pa.concat_tables([*rows, REPORTS.empty_table()]).combine_chunks())


def carry(
    spark: "SparkSession", run: ScanRun, known: Manifest, earlier: KeptReports
) -> dict[str, str]:
    """Add the rows of the kept segments to a run; returns the new name of each old file."""
    parts = {part.path: part for part in known.parts}
    whole, mixed = [], []
    for path, (keys, every) in earlier.files_of().items():
        if keys and path in parts:
            if every:
                whole.append(parts[path])
            else:
                mixed.append((parts[path], frozenset(keys)))
    copied = _copied(run.staging, whole)
    if sum(part.size for part, _ in mixed) <= LITTLE:
        rewritten = [_Rewriting(run.here)(one) for one in mixed]
    else:
        rewritten = _rewritten(spark, _Rewriting(run.staging), mixed)
    renamed = dict(zip((part.path for part in whole), copied, strict=True))
    renamed |= {old.path: new for (old, _), new in zip(mixed, rewritten, strict=True) if new}
    if f"{STAGED}.{LISTS_OF['replicas']}" in known.about.get("staged", ()):
        _rename(run.here, renamed)
    run.add(renamed.values())
    return {old: part.path for old, part in renamed.items()}


def _copied(staging: Staging, parts: Sequence[TableFile]) -> list[TableFile]:
    """Give files of another run a name in this one too."""
    place = store.store_at(staging.output)

    def copy(part: TableFile) -> TableFile:
        name = part.path.rpartition("/")[2]
        target = f"{staging.path}/{part.table}/{name}"
        try:
            with store.translated(staging.output):
                place.copy(part.path, target)
        except FileNotFoundError as error:
            raise _gone(staging.output, part) from error
        return TableFile(table=part.table, path=target, rows=part.rows, size=part.size)

    if "://" not in staging.output:
        return [copy(part) for part in parts]
    with ThreadPoolExecutor(_COPIES_AT_ONCE) as pool:
        return list(pool.map(copy, parts))


def _rename(staging: Staging, renamed: dict[str, TableFile]) -> None:
    """Write the rows of `STAGED` again, with the names that files of batches have in this run."""
    for old, part in list(renamed.items()):
        if part.table == STAGED:
            rows = _read(staging.output, part)
            at = rows.schema.get_field_index("file")
            names = [
                _name_now(name, renamed, staging.output) for name in rows.column(at).to_pylist()
            ]
            with staging.writer(STAGED, rows.schema) as writer:
                changed = rows.set_column(at, rows.schema.field(at), pa.array(names, pa.string()))
                for batch in changed.to_batches():
                    writer.write(batch)
            renamed[old] = writer.parts[0]


def _name_now(name: str | None, renamed: dict[str, TableFile], output: str) -> str | None:
    # The output may have moved since the name was written.
    below = name and f"{manifest.DATA}/{name.rpartition(f'/{manifest.DATA}/')[2]}"
    return f"{output}/{renamed[below].path}" if below in renamed else None


def _rewritten(
    spark: "SparkSession",
    work: "_Rewriting",
    mixed: Sequence[tuple[TableFile, frozenset[SegmentKey]]],
) -> list[TableFile | None]:
    context = spark.sparkContext
    slices = min(len(mixed), 4 * context.defaultParallelism)
    step = f"{len(mixed):,} files of the earlier run"
    try:
        with watched(context, step, lambda _done, _total: None):
            return list(context.parallelize(mixed, slices).map(work).collect())
    except Exception as error:
        raise job_failed(error) from error


@dataclass(frozen=True, slots=True)
class _Rewriting:
    """Function that writes a file again with the rows of some segments; it is sent to executors."""

    staging: Staging

    def __call__(self, one: tuple[TableFile, frozenset[SegmentKey]]) -> TableFile | None:
        part, keys = one
        wanted = pa.array([_SEPARATOR.join(map(str, key)) for key in keys], pa.string())
        found, path = store.filesystem(f"{self.staging.output}/{part.path}")
        try:
            source = found.open_input_file(path)
        except FileNotFoundError as error:
            raise _gone(self.staging.output, part) from error
        with (
            parquet.ParquetFile(source) as file,
            self.staging.writer(part.table, file.schema_arrow) as writer,
        ):
            for rows in file.iter_batches():
                writer.write(rows.filter(pc.is_in(_keys(rows), value_set=wanted)))
        return next(iter(writer.parts), None)


def _keys(rows: Any) -> Any:
    """Return the `SegmentKey` of each row as a text."""
    log_dir, directory, segment = (rows.column(name) for name in SegmentKey._fields)
    return pc.binary_join_element_wise(log_dir, directory, segment.cast(pa.string()), _SEPARATOR)


def _read(output: str, part: TableFile) -> Any:
    found, path = store.filesystem(f"{output.rstrip('/')}/{part.path}")
    try:
        with (
            store.translated(output),
            found.open_input_file(path) as file,
            parquet.ParquetFile(file) as known,
        ):
            return known.read(use_threads=False)
    except FileNotFoundError as error:
        raise _gone(output, part) from error


def _gone(output: str, part: TableFile) -> RefusedError:
    return RefusedError(
        f"{output}: {part.path} of the earlier run is gone: another process has just "
        "replaced or removed this file"
    )


def earlier_run(output: str, run_id: str) -> Manifest:
    """Return the complete run of ``--since``; RefusedError if it, or its reports, do not exist."""
    known = manifest.find(output, run_id)
    if not any(part.table == TABLE for part in known.parts):
        raise RefusedError(f"{output}: run {run_id} has no data that --since could reuse")
    return known
