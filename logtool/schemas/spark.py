"""Columns in the words of Spark's SQL: no Spark is needed to say them."""

from collections.abc import Mapping
from typing import Final

from logtool.schemas.columns import Column, Kind, Table, Way
from logtool.schemas.documents import described

TYPES: Final[Mapping[Kind, str]] = {
    Kind.STRING: "string",
    Kind.BOOL: "boolean",
    Kind.INT8: "tinyint",
    Kind.INT16: "smallint",
    Kind.INT32: "int",
    Kind.INT64: "bigint",
    # Spark has no unsigned integers.
    Kind.UINT32: "bigint",
    Kind.TIMESTAMP: "timestamp",
    Kind.BINARY: "binary",
    Kind.HEADERS: "array<struct<key:binary,value:binary>>",
    Kind.KAFKA_HEADERS: "array<struct<key:string,value:binary>>",
    Kind.OBJECT: "string",
    Kind.NUMBERS: "array<bigint>",
}
"""The type of each kind, as ``simpleString`` of a DataType has it."""


def ddl(table: Table) -> str:
    """Return the columns that a table has in Spark, for ``CREATE TABLE`` or ``.schema(...)``."""
    way = next(
        (one for one in (Way.SCAN, Way.SOURCE, Way.HISTORY) if one in table.ways), Way.NDJSON
    )
    return ",\n".join(_line(column) for column in table.by(way))


def _line(column: Column) -> str:
    meaning = described(column).replace("\\", "\\\\").replace("'", "\\'")
    return f"`{column.name}` {TYPES[column.kind]} COMMENT '{meaning}'"
