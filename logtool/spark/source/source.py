"""The data source ``kafka-log``: log dirs as tables of a Spark session, read in place.

::

    from logtool.spark.source import source

    source.register(spark)
    spark.read.format("kafka-log").option("table", "batches").load("/var/lib/kafka/data")
    source.records(spark, "/data/1", "/data/2", payload="length", columns=["topic", "offset"])

Paths may be globs, as in ``load("/mnt/broker-*/data")``; a folder that has no match is left out.
Options, all as text; those on partitions, offsets and times save reading, too:

``table``       ``batches`` (the default), ``records``, ``segments``, ``gaps``, ``producers``,
                ``transactions`` or ``findings``; the columns are those of ``logtool schema TABLE``,
                but Spark has no unsigned integers: they are long. ``gaps``, ``producers`` and
                ``transactions`` have the rows that `logtool scan` writes; a row that reaches into
                the wanted offsets comes whole: see `logtool.spark.source.question_rows`.
                ``findings`` has the damage in the logs of the same selection, and inputs
                that cannot be read: see `logtool.spark.source.finding_rows`. Or ``kafka``, which
                has the columns and rows of ``spark.read.format("kafka")``: see
                `logtool.spark.source.kafka_table`
``topic``       topics or globs of them, separated by commas
``partition``   partition numbers, separated by commas
``startingOffsets``, ``endingOffsets``  first offset, and the one behind the last: ``earliest``,
                ``latest``, one number for every partition, or JSON with one for each, such as
                ``{"orders":{"0":23,"1":-2}}``; batches that reach into the range come whole,
                segments are chosen by their names
``startingTimestamp``, ``endingTimestamp``  first time, and the one behind the last, in ms since
                1970: records by their own timestamp, batches by their largest one
``payload``     how much ``records`` has of keys and values: ``none`` (the default), ``length``,
                ``hash`` or ``full``; columns that need more do not exist
``showSecrets`` ``true`` leaves passwords, SCRAM keys and ids of delegation tokens in ``records`` of
                a metadata log; by default stars stand in their place, and hashes are of these
``maxDecompressedBytes``  bytes that one batch of ``records`` may decompress to, by default 256 MiB;
                one of more ends the job with its place, and is a row of ``findings``
``includeHeaders``  for the table ``kafka``: ``true`` makes the column ``headers``
``subscribe``, ``subscribePattern``, ``assign``  for the table ``kafka``: topics, or partitions
``startingOffsetsByTimestamp``, ``endingOffsetsByTimestamp``  for the table ``kafka``: times for
                each partition as JSON
``bundleBytes`` approximate bytes that one task reads; by default 32 to 128 MiB
``prune``       ``false`` reads every byte of the partitions, and goes by no names and indexes

The names are those of Spark's own source ``kafka``. Spark's source asks a broker for the offset at
which a time begins and reads on from there, and so does the table ``kafka``. In the other tables
each record is judged by its own time.

Spark does not pass to a data source which columns it needs: give ``.schema("topic string, ...")``,
or `columns`, and only those are made. Filters (``where``) choose rows after they were read, and
save nothing: up to 4.3, Spark applies the filters of one use of a DataFrame to every other use of
it when a source in Python takes them, so this one takes none.

An option or a column that does not exist is an error of one sentence. Nothing is written to log
dirs.

A table of Spark's catalog keeps its options: see `logtool.spark.source.catalog_table`.

A read fails with LostDataError if a log that was listed is unreadable, gone, shorter or replaced
when it is read. With the option ``failOnDataLoss`` as ``false`` it warns in the log of the process,
and returns the remaining rows. A log that grew meanwhile is no loss. Damage in a log gives no rows
and does not fail: the table ``findings`` counts it.

``spark.readStream`` reads ``batches``, ``records`` and ``kafka`` of log dirs while they grow: see
`logtool.spark.source.stream_offsets`. It begins at ``startingOffsets`` and takes no other limit.
It also fails where retention or a truncation took rows that it has not read yet.
``maxOffsetsPerTrigger`` is refused, as Spark 4.0 does not say to a source in Python where a
micro-batch begins.

Directories of Redpanda are read, too: offsets are Raft's, leader epochs are terms, ``records`` are
those of data, and `batches` have all types. The table ``kafka`` and streams are of Kafka alone.

The row in ``segments`` of a log that cannot be read has ``read`` false, where the read goes on.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import (
    ArrayType,
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
    TimestampType,
)

from logtool.errors import UsageError
from logtool.log import inputs
from logtool.schemas import arrow
from logtool.schemas.arrow import Payload
from logtool.spark.connect import is_connect
from logtool.spark.source import (
    catalog_table,
    finding_rows,
    kafka_options,
    kafka_table,
    listing,
    question_rows,
)
from logtool.spark.source import options as source_options
from logtool.spark.source.options import Options
from logtool.spark.source.read_tasks import Task
from logtool.spark.source.reading import ReadOptions, gathered, plan, read_all
from logtool.spark.source.stream_offsets import Growing
from logtool.spark.source.streaming import KafkaLogStreamReader
from logtool.spark.worker_errors import in_one_sentence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME: Final = catalog_table.FORMAT
_log = logging.getLogger("logtool.spark")
_HEADERS: Final = arrow.schema("records").field("headers").type
_KAFKA_HEADERS: Final = arrow.schema(kafka_table.NAME).field("headers").type


def _pairs(key: DataType) -> DataType:
    return ArrayType(StructType([StructField("key", key), StructField("value", BinaryType())]))


_TYPES: Final[Mapping[Any, tuple[DataType, Any]]] = {
    pa.string(): (StringType(), pa.string()),
    pa.binary(): (BinaryType(), pa.binary()),
    pa.bool_(): (BooleanType(), pa.bool_()),
    pa.int8(): (ByteType(), pa.int8()),
    pa.int16(): (ShortType(), pa.int16()),
    pa.int32(): (IntegerType(), pa.int32()),
    pa.int64(): (LongType(), pa.int64()),
    pa.uint32(): (LongType(), pa.int64()),
    arrow.TIME: (TimestampType(), pa.timestamp("us", "UTC")),
    _HEADERS: (_pairs(BinaryType()), _HEADERS),
    _KAFKA_HEADERS: (_pairs(StringType()), _KAFKA_HEADERS),
}
"""For each Arrow type, the type of the column in Spark and the Arrow type that Spark takes."""


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


def gaps(spark: "SparkSession", *paths: Any, **options: Any) -> "DataFrame":
    """Return the missing offsets; see `batches`. One task reads all of a partition."""
    return _table(spark, "gaps", paths, options)


def producers(spark: "SparkSession", *paths: Any, **options: Any) -> "DataFrame":
    """Return the producers of each partition; see `gaps`."""
    return _table(spark, "producers", paths, options)


def transactions(spark: "SparkSession", *paths: Any, **options: Any) -> "DataFrame":
    """Return the transactions of each partition; see `gaps`."""
    return _table(spark, "transactions", paths, options)


def findings(spark: "SparkSession", *paths: Any, **options: Any) -> "DataFrame":
    """Return the findings of ``logtool verify --level records``; see `batches`."""
    return _table(spark, finding_rows.NAME, paths, options)


def kafka(spark: "SparkSession", *paths: Any, **options: Any) -> "DataFrame":
    """Return the rows that ``spark.read.format("kafka")`` reads from one broker; see `batches`."""
    return _table(spark, kafka_table.NAME, paths, options)


def _table(
    spark: "SparkSession", table: str, paths: Sequence[Any], options: Mapping[str, Any]
) -> "DataFrame":
    register(spark)
    given = {name: _text_of(value) for name, value in options.items() if name != "columns"}
    # Spark would report these errors in more words.
    asked = source_options.parse(
        {**given, "table": table, "paths": json.dumps([str(path) for path in paths])}
    )
    if not is_connect(spark):
        _check_paths(asked.paths)
    reader = spark.read.format(NAME).option("table", table).options(**given)
    if (columns := options.get("columns")) is not None:
        reader = reader.schema(_chosen(asked, columns))
    return reader.load([str(path) for path in paths])


def _text_of(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_paths(paths: Sequence[Path]) -> None:
    """Raise UnreadableError for a path that has nothing of Kafka or Redpanda."""
    for path in listing.expanded(paths):
        inputs.kind_of(path, redpanda=True)


class KafkaLog(DataSource):
    """The format ``kafka-log``; see the module."""

    def __init__(self, options: dict[str, str]) -> None:
        """Take the options, and warn once of those without an effect."""
        super().__init__(options)
        with suppress(UsageError):  # `schema` and `reader` raise it, in one sentence
            if ignored := source_options.parse(options).without_effect:
                _log.warning(kafka_options.warning(ignored))

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns of the table that the options name."""
        with in_one_sentence():
            asked = source_options.parse(self.options)
            _check_paths(asked.paths)
            return _keeping(catalog_table.to_keep(self.options), _columns(asked))

    def reader(self, schema: StructType) -> "KafkaLogReader":
        """Return the reader of the columns of `schema`; UsageError for an unknown column."""
        with in_one_sentence():
            return KafkaLogReader(self._given(schema), schema)

    def streamReader(self, schema: StructType) -> KafkaLogStreamReader:  # noqa: N802  (Spark's)
        """Return the reader of the columns of `schema` while log dirs grow."""
        with in_one_sentence():
            given = self._given(schema)
            options = source_options.parse(given, stream=True)
            reader = KafkaLogReader(given, schema, stream=True)
            growing = Growing(
                paths=options.paths,
                asked=reader.asked,
                bundle_bytes=options.bundle_bytes,
                fail_on_data_loss=options.fail_on_data_loss,
            )
            return KafkaLogStreamReader(growing, reader.rows)

    def _given(self, schema: StructType) -> Mapping[str, str]:
        """Return the options, with those of the catalog's table where it has some."""
        return catalog_table.restore(self.options, schema[0].metadata if len(schema) else {})

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        """Refuse to write."""
        with in_one_sentence():
            raise UsageError(_READ_ONLY)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: N802
        """Refuse to write."""
        with in_one_sentence():
            raise UsageError(_READ_ONLY)


_READ_ONLY = (
    "kafka-log only reads, because only a broker may write log dirs: write the rows "
    'in another format, such as parquet, or send them to a broker with format("kafka")'
)


class Bundle(InputPartition):
    """The pieces that one task reads."""

    def __init__(self, pieces: Sequence[Task]) -> None:
        """Take pieces of one or more segments, or partition dirs to check."""
        super().__init__(None)
        self.pieces = tuple(pieces)


class KafkaLogReader(DataSourceReader):
    """The reader of a batch query: it plans in the driver and reads in executors."""

    def __init__(
        self, options: Mapping[str, str], schema: StructType, *, stream: bool = False
    ) -> None:
        """Parse the options; UsageError for an option or a column that does not exist."""
        self._options = found = source_options.parse(options, stream=stream)
        known = _columns(found)
        _chosen(found, schema.names)
        for column in schema:
            if known[column.name].dataType != column.dataType:
                kind = known[column.name].dataType.simpleString()
                raise UsageError(f"the column {column.name} of {found.table} is {kind}")
        self.asked = ReadOptions(
            table=found.table,
            columns=tuple(schema.names),
            wanted=found.wanted,
            prune=found.prune,
            payload=found.payload,
            limit=found.max_decompressed_bytes,
            show_secrets=found.show_secrets,
            fail_on_data_loss=found.fail_on_data_loss,
        )

    def partitions(self) -> Sequence[InputPartition]:
        """Return the bundle of each task, at least one."""
        with in_one_sentence():
            given = self._options
            if given.table == finding_rows.NAME:
                checks = finding_rows.plan(given.paths, given.wanted)
                return [Bundle(tasks) for tasks in checks] or [Bundle(())]
            if given.table in question_rows.TABLES:
                fails, size = given.fail_on_data_loss, given.bundle_bytes
                some = question_rows.plan(given.paths, given.table, given.wanted, size, fails=fails)
                return [Bundle(tasks) for tasks in some] or [Bundle(())]
            bundles = plan(given.paths, self.asked, given.bundle_bytes, given.min_partitions)
            return [Bundle(pieces) for pieces in bundles] or [Bundle(())]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of one task as `pyarrow.RecordBatch`es."""
        pieces = partition.pieces if isinstance(partition, Bundle) else ()
        with in_one_sentence():
            yield from self.rows(pieces)

    def rows(self, pieces: Sequence[Task]) -> Iterator[Any]:
        """Yield the rows of pieces; LostDataError for a log that cannot be read."""
        asked = self.asked
        schema = pa.schema(
            [pa.field(name, _TYPES[_arrow_types(asked.table)[name]][1]) for name in asked.columns]
        )
        for some in gathered(read_all(pieces, asked)):
            yield some.cast(schema)


def _keeping(options: Mapping[str, str], columns: StructType) -> StructType:
    """Return the columns with options in the metadata of the first."""
    first = columns[0]
    metadata = {**first.metadata, **options}
    kept = StructField(first.name, first.dataType, first.nullable, metadata)
    return StructType([kept, *columns.fields[1:]])


@cache
def spark_schema(table: str, payload: Payload = Payload.FULL) -> StructType:
    """Return the columns of a table as Spark has them; the comment of each says what it is."""
    return StructType(
        [
            StructField(
                column.name,
                _TYPES[column.type][0],
                True,
                {"comment": (column.metadata or {}).get(b"description", b"").decode()},
            )
            for column in arrow.schema(table, payload)
        ]
    )


def _columns(asked: Options) -> StructType:
    """Return the columns that the table has with these options."""
    known = spark_schema(asked.table, asked.payload)
    if asked.table != kafka_table.NAME:
        return known
    # Spark's own source has no comments on the meaning of the columns either.
    chosen = [column for column in known if asked.include_headers or column.name != "headers"]
    return StructType([StructField(column.name, column.dataType, True) for column in chosen])


@cache
def _arrow_types(table: str) -> dict[str, Any]:
    return {column.name: column.type for column in arrow.schema(table)}


def _chosen(asked: Options, columns: Sequence[str]) -> StructType:
    """Return the columns of these names; UsageError where one does not exist."""
    table, known = asked.table, _columns(asked)
    for name in columns:
        if name in known.names:
            continue
        if name == "headers" and table == kafka_table.NAME:
            raise UsageError("the column headers of kafka needs the option includeHeaders=true")
        if name in _arrow_types(table):
            needed = arrow.PAYLOAD_OF[name]
            raise UsageError(f"the column {name} of {table} needs the option payload={needed}")
        raise UsageError(f"the table {table} has no column {name!r}")
    return StructType([known[name] for name in columns])
