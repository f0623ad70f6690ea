"""What producers wrote, and which transactions they ended: windows over their batches.

Only batches with a producer id are sorted. The log tells both, and nothing else: what retention or
compaction took is not there. A marker whose transaction left no batches has no row, and one that
compaction emptied ends nothing; `logtool txns` believes a producer snapshot of what lies below the
log start too.
"""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from logtool.formats import control_record
from logtool.formats.record_batch import SEQUENCES
from logtool.pipeline.questions_common import DIR, as_table, in_place


def producers(batches: DataFrame) -> DataFrame:
    """Return the table ``producers``.

    A sequence break is a batch whose first sequence number is not the one behind the last of the
    batch before, of the same producer and epoch in the same directory; numbers go on with 0 behind
    2147483647. Compaction takes batches, so a compacted log has breaks; so has a log with the same
    batch twice. A batch without a number, which no broker takes, breaks nothing.
    """
    own = [*DIR, "producer_id", "producer_epoch"]
    behind = Window.partitionBy(*own).orderBy("base_offset", "segment", "position")
    expected = (sql.lag("last_sequence").over(behind).cast("long") + 1) % SEQUENCES
    first, last = _edges()
    found = (
        _data(batches)
        .withColumn("broken", sql.col("base_sequence") != expected)
        .groupBy(*own)
        .agg(
            sql.min("base_offset").alias("first_offset"),
            sql.max("last_offset").alias("last_offset"),
            first("base_sequence").alias("first_sequence"),
            last("last_sequence").alias("last_sequence"),
            sql.count("*").alias("batches"),
            sql.sum("record_count").alias("records"),
            first("base_timestamp_ms").alias("first_timestamp_ms"),
            last("max_timestamp_ms").alias("last_timestamp_ms"),
            sql.count_if("broken").alias("sequence_breaks"),
        )
    )
    return as_table(found, "producers")


def transactions(batches: DataFrame) -> DataFrame:
    """Return the table ``transactions``.

    The markers before a batch are counted, of its producer in its directory: batches with the same
    count are of one transaction, which the next marker ends. The epoch is that of the first batch:
    since transactions of version 2 a marker has the one behind it.
    """
    own = [*DIR, "producer_id"]
    marker = sql.col("control") & sql.col("control_type").isin(
        int(control_record.ABORT), int(control_record.COMMIT)
    )
    before = (
        Window.partitionBy(*own)
        .orderBy("segment", "position")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    data = sql.col("transactional") & ~sql.col("control")
    first, last = _edges(~sql.col("marker"))

    def of_marker(name: str) -> Column:
        return sql.max(sql.when(sql.col("marker"), sql.col(name)))

    ended = of_marker("control_type")
    found = (
        in_place(batches.where(sql.col("producer_id").isNotNull()))
        .where(data | marker)
        .withColumn("marker", marker)
        .withColumn("ended", sql.coalesce(sql.count_if("marker").over(before), sql.lit(0)))
        .groupBy(*own, "ended")
        .agg(
            first("producer_epoch").alias("producer_epoch"),
            first("base_offset").alias("first_offset"),
            sql.coalesce(of_marker("base_offset"), last("last_offset")).alias("last_offset"),
            sql.when(ended == int(control_record.COMMIT), "committed")
            .when(ended == int(control_record.ABORT), "aborted")
            .otherwise("open")
            .alias("outcome"),
            sql.count_if(~sql.col("marker")).alias("batches"),
            sql.sum(sql.when(~sql.col("marker"), sql.col("record_count"))).alias("records"),
            first("base_timestamp_ms").alias("first_timestamp_ms"),
            sql.coalesce(of_marker("max_timestamp_ms"), last("max_timestamp_ms")).alias(
                "last_timestamp_ms"
            ),
            of_marker("coordinator_epoch").alias("coordinator_epoch"),
        )
        .where(sql.col("batches") > 0)
    )
    return as_table(found, "transactions")


def _data(batches: DataFrame) -> DataFrame:
    return in_place(batches.where(sql.col("producer_id").isNotNull() & ~sql.col("control")))


def _edges(chosen: Column | None = None) -> tuple[Callable[[str], Column], Callable[[str], Column]]:
    """Return functions from a column to its value in the first and the last row by place."""
    place = sql.struct("segment", "position")
    if chosen is not None:
        place = sql.when(chosen, place)
    return (lambda name: sql.min_by(name, place)), (lambda name: sql.max_by(name, place))
