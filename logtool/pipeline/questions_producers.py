"""What producers wrote, and which transactions they ended: windows over their batches.

Only batches with a producer id are sorted. The log tells both, and nothing else: what retention or
compaction took is not there. A marker whose transaction left no batches has no row, and one that
compaction emptied ends nothing; `logtool txns` believes a producer snapshot of what lies below the
log start too.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from logtool.formats import control_record
from logtool.formats.record_batch import SEQUENCES
from logtool.pipeline.questions_common import DIR, KEY, as_table, in_place


def producers(batches: DataFrame) -> DataFrame:
    """Return the table ``producers``.

    A sequence break is a batch whose first sequence number is not the one behind the last of the
    batch before, of the same producer and epoch in the same directory; numbers go on with 0 behind
    2147483647. Compaction takes batches, so a compacted log has breaks; so has a log with the same
    batch twice. A batch without a number, which no broker takes, breaks nothing.
    """
    own = ["producer_id", "producer_epoch"]
    order = Window.partitionBy(*KEY, *own).orderBy("base_offset", "segment", "position")
    expected = (sql.lag("last_sequence").over(order).cast("long") + 1) % SEQUENCES
    found = (
        in_place(batches.where(sql.col("producer_id").isNotNull() & ~sql.col("control")))
        .withColumn("broken", sql.col("base_sequence") != expected)
        .withColumn("first", sql.lag("base_offset").over(order).isNull())
        .withColumn("last", sql.lead("base_offset").over(order).isNull())
        .groupBy(*DIR, *own)
        .agg(
            sql.min("base_offset").alias("first_offset"),
            sql.max("last_offset").alias("last_offset"),
            _at("first", "base_sequence").alias("first_sequence"),
            _at("last", "last_sequence").alias("last_sequence"),
            sql.count("*").alias("batches"),
            sql.sum("record_count").alias("records"),
            _at("first", "base_timestamp_ms").alias("first_timestamp_ms"),
            _at("last", "max_timestamp_ms").alias("last_timestamp_ms"),
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
    marker = sql.col("control") & sql.col("control_type").isin(
        int(control_record.ABORT), int(control_record.COMMIT)
    )
    data = sql.col("transactional") & ~sql.col("control")
    order = Window.partitionBy(*KEY, "producer_id").orderBy("segment", "position")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    kind, own = _at("marker", "control_type"), ~sql.col("marker")
    found = (
        in_place(batches.where(sql.col("producer_id").isNotNull()))
        .where(data | marker)
        .withColumn("marker", marker)
        .withColumn("ended", sql.coalesce(sql.count_if("marker").over(before), sql.lit(0)))
        .withColumn("first", own & sql.coalesce(sql.lag("marker").over(order), sql.lit(True)))
        .withColumn("last", own & sql.coalesce(sql.lead("marker").over(order), sql.lit(True)))
        .groupBy(*DIR, "producer_id", "ended")
        .agg(
            _at("first", "producer_epoch").alias("producer_epoch"),
            _at("first", "base_offset").alias("first_offset"),
            sql.coalesce(_at("marker", "base_offset"), _at("last", "last_offset")).alias(
                "last_offset"
            ),
            sql.when(kind == int(control_record.COMMIT), "committed")
            .when(kind == int(control_record.ABORT), "aborted")
            .otherwise("open")
            .alias("outcome"),
            sql.count_if(own).alias("batches"),
            sql.sum(sql.when(own, sql.col("record_count"))).alias("records"),
            _at("first", "base_timestamp_ms").alias("first_timestamp_ms"),
            sql.coalesce(_at("marker", "max_timestamp_ms"), _at("last", "max_timestamp_ms")).alias(
                "last_timestamp_ms"
            ),
            _at("marker", "coordinator_epoch").alias("coordinator_epoch"),
        )
        .where(sql.col("batches") > 0)
    )
    return as_table(found, "transactions")


def _at(flag: str, name: str) -> Column:
    """Return what a column holds in the one row of a group that has a flag."""
    return sql.max(sql.when(sql.col(flag), sql.col(name)))
