"""Copies of partitions held against each other, batch by batch, with the rules of `logtool diff`.

Only live directories of partitions that lie in more than one log dir are looked at. All copies of
what begins at one offset come down to one row: which copies have it, as bits, and whether they have
the same. So a partition of many batches needs no more memory than one of few.

Two copies of a batch are the same if its bytes are. They are what compaction leaves of one batch if
all that it keeps is the same (`logtool.replica_pair`), and the number of records differs or one has
a delete horizon. Anything else is divergence, and so are batches that overlap without beginning
together.

What may differ from `logtool diff`: that takes what lies below the checkpointed log start for gone,
and of a log of magic 0 or 1 knows by its checkpoints that it was compacted. And of more than two
copies of one batch, some of them compacted, it tells those apart that differ beside that.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from logtool.formats.record_batch import MAGIC
from logtool.pipeline.questions_common import DIR, as_table, in_place

_PARTITION: Final = ["topic", "partition"]
_KEPT: Final = [
    "last_offset", "leader_epoch", "magic", "producer_id", "producer_epoch", "base_sequence",
    "timestamp_type", "transactional", "control",
]  # fmt: skip
"""What compaction leaves as it is; see `logtool.replica_pair`."""
MOST_COPIES: Final = 62
"""Of one partition that are held against each other: bits of a number."""


def replicas(batches: DataFrame, segments: DataFrame) -> DataFrame:
    """Return the table ``replicas``."""
    copies = _copies(segments)
    offsets = _offsets(batches, copies)
    found = _told(offsets, copies).join(
        _overlapping(offsets, copies), [*_PARTITION, "log_dir"], "left"
    )
    every = (
        copies.join(found, [*_PARTITION, "log_dir"], "left")
        .withColumn("diverges_at", sql.least("differs_at", "overlaps_at"))
        .fillna(0, ["shared_batches", "only_here"])
        .withColumn("behind", sql.col("furthest") - sql.col("log_end"))
    )
    return as_table(every, "replicas")


def _copies(segments: DataFrame) -> DataFrame:
    """Return one row for each copy: its columns, ``bit``, and the range of its offsets."""
    live = sql.col("directory") == sql.concat_ws("-", "topic", "partition")
    filled = sql.when(sql.col("batches") > 0, sql.col("segment"))
    every = Window.partitionBy(*_PARTITION)
    return (
        segments.where(live)
        .groupBy(*DIR)
        .agg(
            sql.min("first_offset").alias("first_offset"),
            sql.max("last_offset").alias("last_offset"),
            sql.max_by("last_leader_epoch", filled).alias("last_leader_epoch"),
            sql.sum("batches").alias("batches"),
            sql.min("segment").alias("log_start"),
            sql.greatest(sql.max("segment"), sql.max("last_offset") + 1).alias("log_end"),
        )
        .withColumn("copies", sql.count("*").over(every).cast("int"))
        .where(sql.col("copies") > 1)
        .withColumn("number", sql.row_number().over(every.orderBy("log_dir")))
        .withColumn("furthest", sql.max("log_end").over(every))
        .withColumn(
            "bit",
            sql.when(
                sql.col("number") <= MOST_COPIES,
                sql.expr("shiftleft(cast(1 as bigint), number - 1)"),
            ).otherwise(sql.lit(0).cast("long")),
        )
    )


def _offsets(batches: DataFrame, copies: DataFrame) -> DataFrame:
    """Return one row for each offset at which a batch of any copy begins.

    ``held`` has the bits of the copies that have it, ``wanted`` those whose range it lies in.
    """
    ranges = copies.groupBy(*_PARTITION).agg(
        sql.collect_list(sql.struct("bit", "log_start", "log_end")).alias("ranges"),
        sql.bit_or("bit").alias("all"),
    )
    kept = sql.xxhash64(*_KEPT)
    rewritten = (sql.col("least_count") != sql.col("most_count")) | sql.col("cleaned")
    return (
        in_place(batches)
        .join(
            copies.select("log_dir", "directory", *_PARTITION, "bit"),
            ["log_dir", "directory", *_PARTITION],
        )
        .select(
            *_PARTITION, "base_offset", "last_offset", "bit", "magic", "record_count",
            kept.alias("kept"),
            sql.xxhash64("crc", "size").alias("bytes"),
            sql.col("delete_horizon_ms").isNotNull().alias("cleaned"),
        )
        .groupBy(*_PARTITION, "base_offset")
        .agg(
            sql.bit_or("bit").alias("held"),
            sql.max("last_offset").alias("last_offset"),
            (sql.min("kept") == sql.max("kept")).alias("kept"),
            (sql.min("bytes") == sql.max("bytes")).alias("bytes"),
            sql.min("record_count").alias("least_count"),
            sql.max("record_count").alias("most_count"),
            sql.bool_or("cleaned").alias("cleaned"),
            sql.min("magic").alias("magic"),
        )
        .join(ranges, _PARTITION)
        .withColumn("same", sql.col("kept") & sql.col("bytes"))
        .withColumn(
            "differs",
            ~sql.col("same") & ~(sql.col("kept") & rewritten & (sql.col("magic") >= MAGIC)),
        )
        .withColumn(
            "wanted",
            sql.expr(
                "aggregate(ranges, 0L, (bits, one) -> bits | if(base_offset >= one.log_start"
                " and base_offset < one.log_end, one.bit, 0L))"
            ),
        )
        .select(
            *_PARTITION, "base_offset", "last_offset", "held", "wanted", "all", "ranges", "same",
            "differs",
        )
    )  # fmt: skip


def _told(offsets: DataFrame, copies: DataFrame) -> DataFrame:
    """Return for each copy what the offsets say at which it has a batch."""
    everywhere = sql.col("held") == sql.col("all")
    alone = (sql.bit_count("held") == 1) & (sql.col("wanted") == sql.col("all"))
    by_bits = offsets.groupBy(*_PARTITION, "held").agg(
        sql.count_if(everywhere & sql.col("same")).alias("shared_batches"),
        sql.count_if(alone).alias("only_here"),
        sql.min(sql.when(sql.col("differs"), sql.col("base_offset"))).alias("differs_at"),
    )
    return (
        by_bits.join(copies.select(*_PARTITION, "log_dir", "bit"), _PARTITION)
        .where(sql.col("held").bitwiseAND(sql.col("bit")) != 0)
        .groupBy(*_PARTITION, "log_dir")
        .agg(
            sql.sum("shared_batches").alias("shared_batches"),
            sql.sum("only_here").alias("only_here"),
            sql.min("differs_at").alias("differs_at"),
        )
    )


def _overlapping(offsets: DataFrame, copies: DataFrame) -> DataFrame:
    """Return for each copy the least offset at which one overlaps that begins elsewhere.

    Of such a pair each is missing in the copy of the other, which few batches are: only these are
    sorted, for each two copies by themselves.
    """
    order = Window.partitionBy(*_PARTITION, "low", "high").orderBy("base_offset")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    reach = sql.max(sql.struct("last_offset", "base_offset", "bit")).over(before)
    return (
        offsets.where(sql.col("held") != sql.col("wanted"))
        .withColumn("own", sql.explode("ranges"))
        .where(sql.col("held").bitwiseAND(sql.col("own.bit")) != 0)
        .withColumn("other", sql.explode("ranges"))
        .where(sql.col("wanted").bitwiseAND(sql.col("other.bit")) != 0)
        .where(sql.col("held").bitwiseAND(sql.col("other.bit")) == 0)
        .select(
            *_PARTITION, "base_offset", "last_offset", "own.bit",
            sql.least("own.bit", "other.bit").alias("low"),
            sql.greatest("own.bit", "other.bit").alias("high"),
        )
        .withColumn("reach", reach)
        .where(sql.col("reach.last_offset") >= sql.col("base_offset"))
        .where(sql.col("reach.bit") != sql.col("bit"))
        .select(
            *_PARTITION, sql.explode(sql.array("low", "high")).alias("bit"),
            sql.col("reach.base_offset").alias("overlaps_at"),
        )
        .join(copies.select(*_PARTITION, "log_dir", "bit"), [*_PARTITION, "bit"])
        .groupBy(*_PARTITION, "log_dir")
        .agg(sql.min("overlaps_at").alias("overlaps_at"))
    )  # fmt: skip
