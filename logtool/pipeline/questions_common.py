"""What the questions have in common."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema

from logtool.checks.batches import MOST_RELATIVE_OFFSET
from logtool.formats.record_batch import MAGIC
from logtool.pipeline import tables

DIR: Final = ["log_dir", "node_id", "topic", "partition", "directory"]
"""The columns that tell a partition dir."""
KEY: Final = ["log_dir", "directory"]
"""Those of them that are never null, and enough."""


def in_place(batches: DataFrame) -> DataFrame:
    """Return the batches whose offsets their segment can hold; nothing is held against others."""
    low = (sql.col("base_offset") < sql.col("segment")) & (sql.col("magic") >= MAGIC)
    high = sql.col("last_offset") - sql.col("segment") > MOST_RELATIVE_OFFSET
    return batches.where(~(low | high))


def as_table(found: DataFrame, name: str) -> DataFrame:
    """Return the columns of a table, in its order and with its types."""
    kinds = from_arrow_schema(tables.schema(name))
    return found.select(*(sql.col(one.name).cast(one.dataType).alias(one.name) for one in kinds))
