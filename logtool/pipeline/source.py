"""The data source ``kafka-log``: log dirs as tables of a Spark session, with nothing written first.

::

    from logtool.pipeline import source

    source.register(spark)
    spark.read.format("kafka-log").option("table", "batches").load("/var/lib/kafka/data")
    source.records(spark, "/data/1", "/data/2", payload="length", columns=["topic", "offset"])

Options, all as text; those on partitions, offsets and times save reading, too:

``table``       ``batches`` (the default), ``records`` or ``segments``; the columns are those of
                `logtool.pipeline.tables`, but Spark has no unsigned integers: they are long
``topic``       topics or globs of them, separated by commas
``partition``   partition numbers, separated by commas
``startingOffsets``, ``endingOffsets``  from which offset on, and before which one: ``earliest``,
                ``latest``, one number for every partition, or JSON with one for each, such as
                ``{"orders":{"0":23,"1":-2}}``; batches that reach into it come whole, segments by
                their names
``startingTimestamp``, ``endingTimestamp``  from which time on, and before which one, in ms since
                1970: records by their own timestamp, batches by their largest one
``payload``     what ``records`` tells of keys and values: ``none`` (the default), ``length``,
                ``hash`` or ``full``; columns that it does not make do not exist
``maxDecompressedBytes``  bytes that one batch of ``records`` may decompress to, by default 256 MiB;
                one of more ends the job with its place
``bundleBytes`` about the bytes that one task reads; by default 32 to 128 MiB
``prune``       ``false`` reads every byte of the partitions, whatever names and indexes say

The names are those of Spark's own source ``kafka``. That one asks a broker for the offset at which
a time begins and reads on from there; here each record is judged by its own time.

Spark does not tell a data source which columns it needs: give ``.schema("topic string, ...")``, or
`columns`, and only those are made. Filters (``where``) choose rows after they were read, and save
nothing: up to 4.3, Spark applies the filters of one use of a DataFrame to every other use of it
when a source in Python takes them, so this one takes none.

An option or a column that does not exist is an error of one sentence. There is no stream of log
dirs, and nothing is written to them.

Damage gives no rows, nor does a file that cannot be read; a ``segments`` row says ``read`` false.
To be told of either use `logtool verify` or `scan`.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from logtool import data_dir
from logtool.errors import LogtoolError, UsageError
from logtool.pipeline import source_options, tables
from logtool.pipeline.reading import Asked, Piece, gathered, plan, read
from logtool.pipeline.source_options import Options
from logtool.pipeline.tables import Payload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME: Final = "kafka-log"
_TYPES: Final[Mapping[Any, tuple[DataType, Any]]] = {
    pa.string(): (StringType(), pa.string()),
    pa.binary(): (BinaryType(), pa.binary()),
    pa.bool_(): (BooleanType(), pa.bool_()),
    pa.int8(): (ByteType(), pa.int8()),
    pa.int16(): (ShortType(), pa.int16()),
    pa.int32(): (IntegerType(), pa.int32()),
    pa.int64(): (LongType(), pa.int64()),
    pa.uint32(): (LongType(), pa.int64()),
}
"""The type of a column in Spark, and what Spark takes for it."""


def register(spark: "SparkSession") -> None:
    """Make the format ``kafka-log`` known to a session."""
    spark.dataSource.register(KafkaLog)


def batches(spark: "SparkSession", *paths: Any, **options: Any) -> "DataFrame":
    """Return the batches of log dirs, partition dirs or ``.log`` files.

    `options` are those of the data source, and `columns`: the names of those to make.
    """
    return _table(spark, "batches", paths, options)


def records(spark: "SparkSession", *paths: Any, **options: Any) -> "DataFrame":
    """Return the records; see `batches`."""
    return _table(spark, "records", paths, options)


def segments(spark: "SparkSession", *paths: Any, **options: Any) -> "DataFrame":
    """Return the segments; see `batches`. Logs are read only for columns that need it."""
    return _table(spark, "segments", paths, options)


def _table(
    spark: "SparkSession", table: str, paths: Sequence[Any], options: Mapping[str, Any]
) -> "DataFrame":
    register(spark)
    given = {name: _text_of(value) for name, value in options.items() if name != "columns"}
    # Spark would tell the same in more words.
    asked = source_options.parse(
        {**given, "table": table, "paths": json.dumps([str(path) for path in paths])}
    )
    _check_paths(asked.paths)
    reader = spark.read.format(NAME).option("table", table).options(**given)
    if (columns := options.get("columns")) is not None:
        reader = reader.schema(_chosen(asked, columns))
    return reader.load([str(path) for path in paths])


def _text_of(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_paths(paths: Sequence[Path]) -> None:
    """Raise UnreadableError for a path that is nothing of Kafka's."""
    for path in paths:
        data_dir.classify(path)


class KafkaLog(DataSource):
    """The format ``kafka-log``; see the module."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns of the table that the options name."""
        with _in_one_sentence():
            asked = source_options.parse(self.options)
            _check_paths(asked.paths)
            return spark_schema(asked.table, asked.payload)

    def reader(self, schema: StructType) -> "KafkaLogReader":
        """Return what reads the columns of `schema`; UsageError where there is no such column."""
        with _in_one_sentence():
            return KafkaLogReader(self.options, schema)

    def streamReader(self, schema: StructType) -> Any:  # noqa: N802  (Spark's name)
        """Refuse to stream."""
        with _in_one_sentence():
            raise UsageError(
                "kafka-log reads log dirs as they are now and does not stream: use spark.read "
                'again, or ask a broker by spark.readStream.format("kafka")'
            )

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        """Refuse to write."""
        with _in_one_sentence():
            raise UsageError(_READ_ONLY)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: N802
        """Refuse to write."""
        with _in_one_sentence():
            raise UsageError(_READ_ONLY)


_READ_ONLY = (
    "kafka-log only reads, for a broker alone writes log dirs: write the rows in another format, "
    'such as parquet, or send them to a broker by format("kafka")'
)


@contextmanager
def _in_one_sentence() -> Iterator[None]:
    """Let Spark pass on the sentence of an error without the lines of code that raised it."""
    try:
        yield
    except LogtoolError as error:
        # Spark's worker sends its traceback, and ends. Only there: the limit is the process's own.
        if any(name.startswith(_OF_A_WORKER) for name in os.environ):
            sys.tracebacklimit = 0
        raise error from None


_OF_A_WORKER = "PYTHON_WORKER_FACTORY"
"""With this begin the variables by which Spark tells its Python workers where it listens."""


class Bundle(InputPartition):
    """What one task reads."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        """Take pieces of one or more segments."""
        super().__init__(None)
        self.pieces = tuple(pieces)


class KafkaLogReader(DataSourceReader):
    """Plans in the driver, reads in executors."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        """Read the options; UsageError where one, or a column, is none that exists."""
        self._options = found = source_options.parse(options)
        known = spark_schema(found.table, found.payload)
        _chosen(found, schema.names)
        for column in schema:
            if known[column.name].dataType != column.dataType:
                kind = known[column.name].dataType.simpleString()
                raise UsageError(f"the column {column.name} of {found.table} is {kind}")
        self._asked = Asked(
            found.table, tuple(schema.names), found.wanted, found.prune, found.payload,
            found.max_decompressed_bytes,
        )  # fmt: skip

    def partitions(self) -> Sequence[InputPartition]:
        """Return what the tasks read, one at least."""
        with _in_one_sentence():
            bundles = plan(self._options.paths, self._asked, self._options.bundle_bytes)
            return [Bundle(pieces) for pieces in bundles] or [Bundle(())]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of one task as `pyarrow.RecordBatch`es."""
        asked = self._asked
        schema = pa.schema(
            [pa.field(name, _TYPES[_arrow_types(asked.table)[name]][1]) for name in asked.columns]
        )
        pieces = partition.pieces if isinstance(partition, Bundle) else ()
        rows = gathered(chain.from_iterable(read(piece, asked) for piece in pieces))
        with _in_one_sentence():
            for some in rows:
                yield some.cast(schema)


@cache
def spark_schema(table: str, payload: Payload = Payload.FULL) -> StructType:
    """Return the columns of a table as Spark has them; the comment of each says what it is."""
    return StructType(
        [
            StructField(column.name, _TYPES[column.type][0], True,
                        {"comment": (column.metadata or {}).get(b"description", b"").decode()})
            for column in tables.schema(table, payload)
        ]
    )  # fmt: skip


@cache
def _arrow_types(table: str) -> dict[str, Any]:
    return {column.name: column.type for column in tables.schema(table)}


def _chosen(asked: Options, columns: Sequence[str]) -> StructType:
    """Return the columns of these names; UsageError where one does not exist."""
    table, known = asked.table, spark_schema(asked.table, asked.payload)
    for name in columns:
        if name in known.names:
            continue
        if name in _arrow_types(table):
            needed = tables.PAYLOAD_OF[name]
            raise UsageError(f"the column {name} of {table} needs the option payload={needed}")
        raise UsageError(f"the table {table} has no column {name!r}")
    return StructType([known[name] for name in columns])
