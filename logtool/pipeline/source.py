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
``payload``     of ``records``: ``none`` (the default), ``length``, ``hash`` or ``full``
``limit``       bytes that one batch may decompress to; one of more has no rows of records
``bundle_bytes``  about the bytes that one task reads; by default 32 to 128 MiB
``prune``       ``false`` reads every byte of the partitions, whatever names and indexes say

The names are those of Spark's own source ``kafka``. That one asks a broker for the offset at which
a time begins and reads on from there; here each record is judged by its own time.

Spark does not tell a data source which columns it needs: give ``.schema("topic string, ...")``, or
`columns`, and only those are made. Filters (``where``) choose rows after they were read, and save
nothing: up to 4.3, Spark applies the filters of one use of a DataFrame to every other use of it
when a source in Python takes them, so this one takes none.

Damage gives no rows, nor does a file that cannot be read; a ``segments`` row says ``read`` false.
To be told of either use `logtool verify` or `scan`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
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

from logtool import remote
from logtool.data_dir import Selection
from logtool.errors import UsageError
from logtool.formats import compression
from logtool.pipeline import tables
from logtool.pipeline.reading import TABLES, Asked, Piece, gathered, plan, read
from logtool.pipeline.rows import Payload
from logtool.pipeline.wanted import Wanted, parse_offsets

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
    given = dict(options)
    columns: Sequence[str] | None = given.pop("columns", None)
    reader = spark.read.format(NAME).option("table", table)
    for name, value in given.items():
        reader = reader.option(name, value)
    if columns is not None:
        reader = reader.schema(_chosen(table, columns))
    return reader.load([str(path) for path in paths])


class KafkaLog(DataSource):
    """The format ``kafka-log``; see the module."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns of the table that the options name."""
        return spark_schema(_option(self.options, "table", TABLES[0], TABLES))

    def reader(self, schema: StructType) -> "KafkaLogReader":
        """Return what reads the columns of `schema`; UsageError where there is no such column."""
        return KafkaLogReader(self.options, schema)


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
        table = _option(options, "table", TABLES[0], TABLES)
        known = spark_schema(table)
        for column in schema:
            if column.name not in known.names:
                raise UsageError(f"the table {table} has no column {column.name!r}")
            if known[column.name].dataType != column.dataType:
                kind = known[column.name].dataType.simpleString()
                raise UsageError(f"the column {column.name} of {table} is {kind}")
        self._paths = _paths(options)
        self._bundle_bytes = _number(options, "bundle_bytes", 0) or None
        self._asked = Asked(
            table, tuple(schema.names), _wanted(options, table),
            prune=_option(options, "prune", "true", ("true", "false")) == "true",
            payload=Payload(_option(options, "payload", Payload.NONE, tuple(Payload))),
            limit=_number(options, "limit", compression.DEFAULT_LIMIT),
        )  # fmt: skip

    def partitions(self) -> Sequence[InputPartition]:
        """Return what the tasks read, one at least."""
        bundles = plan(self._paths, self._asked, self._bundle_bytes)
        return [Bundle(pieces) for pieces in bundles] or [Bundle(())]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of one task as `pyarrow.RecordBatch`es."""
        asked = self._asked
        schema = pa.schema(
            [pa.field(name, _TYPES[_arrow_types(asked.table)[name]][1]) for name in asked.columns]
        )
        pieces = partition.pieces if isinstance(partition, Bundle) else ()
        rows = gathered(chain.from_iterable(read(piece, asked) for piece in pieces))
        for some in rows:
            yield some.cast(schema)


@cache
def spark_schema(table: str) -> StructType:
    """Return the columns of a table as Spark has them; the comment of each says what it is."""
    return StructType(
        [
            StructField(name, _TYPES[kind][0], True, {"comment": _text(table, name)})
            for name, kind in _arrow_types(table).items()
        ]
    )


@cache
def _arrow_types(table: str) -> dict[str, Any]:
    return {column.name: column.type for column in tables.schema(table)}


def _text(table: str, name: str) -> str:
    return next(text for one, _, text in tables.described()[table] if one == name)


def _chosen(table: str, columns: Sequence[str]) -> StructType:
    known = spark_schema(table)
    for name in columns:
        if name not in known.names:
            raise UsageError(f"the table {table} has no column {name!r}")
    return StructType([known[name] for name in columns])


def _wanted(options: Mapping[str, str], table: str) -> Wanted:
    """Return what the options want; UsageError where they make no sense."""
    topics = tuple(one.strip() for one in options.get("topic", "").split(",") if one.strip())
    numbers = [one.strip() for one in options.get("partition", "").split(",") if one.strip()]
    if odd := [one for one in numbers if not one.isdecimal()]:
        raise UsageError(f"option partition: expected numbers as in 0,1,2; found {odd[0]!r}")
    for name in ("startingTimestamp", "endingTimestamp"):
        if table == "segments" and name in options:
            raise UsageError(f"option {name} is about records and batches, not about segments")
    return Wanted(
        selection=Selection(topics=topics, partitions=tuple(map(int, numbers))),
        starting_offsets=parse_offsets(
            "startingOffsets", options.get("startingOffsets", "earliest")
        ),
        ending_offsets=parse_offsets("endingOffsets", options.get("endingOffsets", "latest")),
        starting_timestamp=_time(options, "startingTimestamp"),
        ending_timestamp=_time(options, "endingTimestamp"),
    )


def _time(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is not None and not text.isdecimal():
        raise UsageError(f"option {name}: expected milliseconds since 1970, found {text!r}")
    return None if text is None else int(text)


def _option(options: Mapping[str, str], name: str, default: str, values: Sequence[str]) -> str:
    value = options.get(name, default)
    if value not in values:
        raise UsageError(f"option {name}: expected {', '.join(values)}, found {value!r}")
    return value


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isdecimal():
        raise UsageError(f"option {name}: expected a number of bytes, found {text!r}")
    return int(text)


def _paths(options: Mapping[str, str]) -> list[Path]:
    """Return the paths of ``load``: one as Spark hands it on, several as a list in JSON."""
    several = options.get("paths")
    texts = json.loads(several) if several else [options["path"]] if "path" in options else []
    if not texts:
        raise UsageError('expected a path: load("/var/lib/kafka/data")')
    # What executors on other machines take for the current directory is none of theirs.
    return [remote.parse(text).absolute() for text in texts]
