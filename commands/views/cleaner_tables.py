"""The objects that `cleaner` prints: logtool.cleaner/1."""

from typing import Final

from logtool.commands.views.retention_tables import SETTING, STAMP
from logtool.schemas.columns import Column, Kind, Table, count, offset, size, timed
from logtool.schemas.document import Document

_NOT_READ = "the log was not read, because it is not cleaned"
_NO_FAULT = "nothing stops the cleaning"
_NO_TRANSACTION = "no transaction is open"
_NOT_MEASURED = "--sizes was not given, or nothing is cleaned"
_ROLL = Table("roll", "active segment", (
    *timed("after_ms", "time from which on an append begins another segment, by the first batch of "
           "the segment and `age`; segment.jitter.ms may make it earlier",
           "the first batch has no timestamp"),
    Column("age", Kind.OBJECT, "the setting that limits its age: segment.ms, or "
           "max.compaction.lag.ms if that is smaller", of=SETTING),
    size("bytes_left", "bytes that may be appended before another segment begins"),
    Column("size", Kind.OBJECT, "the setting that limits its size: segment.bytes", of=SETTING),
), note="The end of the active segment.",
    made_from="logtool.cleaner.roll:SegmentRoll")  # fmt: skip
_SIZES = Table("sizes", "cleaned segments", (
    count("records", "records of the closed segments that the cleaning reads; control records do "
          "not count"),
    count("records_after", "records that it leaves"),
    size("bytes", "bytes of the .log files of these segments"),
    size("bytes_after", "bytes that it leaves, about"),
    count("tombstones_due", "tombstones that it deletes because their delete horizon has passed"),
    Column("is_exact", Kind.BOOL, "whether the numbers of records are exact; if not, they are an "
           "estimate from a part of the keys"),
), note="The segments that a cleaning reads, before and after it.",
    made_from="logtool.cleaner.sizes:CleanedSizes")  # fmt: skip
PARTITION: Final = Table("partition", "partition", (
    Column("topic", Kind.STRING, "name of the topic", value="directory.topic"),
    Column("partition", Kind.INT32, "number of the partition", value="directory.partition"),
    Column("path", Kind.PATH, "the partition dir"),
    count("segments", "segments"),
    size("bytes", "bytes of the .log files"),
    offset("checkpoint", "row in cleaner-offset-checkpoint", "there is no row"),
    offset("first_dirty_offset", "first offset to clean", value="extent.first_dirty_offset"),
    Column("dirty_source", Kind.STRING, "what sets it: the row, or the log start because there is "
           "no row, or because the row is below the log start or above the log end",
           words=("checkpoint", "no-row", "row-below-log-start", "row-above-log-end"),
           value="extent.source"),
    offset("first_uncleanable_offset", "base offset of the first segment that cannot be cleaned; "
           "below the first dirty offset if that lies in this segment",
           value="extent.first_uncleanable_offset"),
    size("clean_bytes", "bytes of the segments that begin before the first dirty offset",
         value="extent.clean_bytes"),
    size("cleanable_bytes", "bytes of the segments that can be cleaned; one with the first dirty "
         "offset inside it is clean, too", value="extent.cleanable_bytes"),
    size("uncleanable_bytes", "bytes of the segments from the first uncleanable offset on",
         value="extent.uncleanable_bytes"),
    Column("dirty_ratio", Kind.FLOAT, "cleanable bytes as a share of the clean and the cleanable "
           "ones", value="extent.ratio", digits=6),
    Column("is_cleaned", Kind.BOOL, "whether the cleaner cleans it"),
    offset("checkpoint_after", "row after that; smaller if the offset map of the cleaner gets full",
           "there is no row"),
    Column("obstacle", Kind.STRING, "why it is not cleaned", null="it is cleaned", words=(
        "cleaner-disabled", "checkpoint-unreadable", "future-copy", "empty", "active-segment",
        "open-transaction", "high-watermark", "min-lag", "dirty-ratio", "damaged-batch",
        "offset-overflow")),
    *timed("due_ms", "time at which age alone ends the obstacle: min.compaction.lag.ms or "
           "max.compaction.lag.ms", "age alone does not end it"),
    offset("last_stable_offset", "last stable offset", value="stable.offset"),
    Column("producer_id", Kind.INT64, "producer id of the oldest open transaction",
           null=_NO_TRANSACTION),
    offset("transaction_first_offset", "first offset of that transaction", _NO_TRANSACTION),
    Column("future_copy", Kind.PATH, "the future copy", null="no other log dir has a copy"),
    Column("fault_path", Kind.PATH, "the .log file that stops the cleaning", null=_NO_FAULT),
    Column("fault_position", Kind.INT64, "byte of it", "bytes", _NO_FAULT),
    Column("fault", Kind.STRING, "what is wrong there", null=_NO_FAULT),
    count("horizons", "batches with a delete horizon that the cleaning reads", null=_NOT_READ),
    count("horizons_due", "batches whose tombstones or transaction markers it deletes, because "
          "their delete horizon has passed", null=_NOT_READ),
    count("old_formats", "batches of magic 0 and 1 that the cleaning reads; Kafka 4.0 and later "
          "write what is left of them with magic 2", null=_NOT_READ),
    count("without_key", "records without a key, which it deletes",
          null="no records were read: --records was not given, or the log is not cleaned"),
    Column("sizes", Kind.OBJECT, "the records and bytes that the cleaning leaves", of=_SIZES,
           null="--sizes was not given, the log is not cleaned, or a record cannot be read"),
    Column("roll", Kind.OBJECT, "when the active segment ends, which can be cleaned then", of=_ROLL,
           null="it is not the active segment that keeps the partition from being cleaned"),
    Column("stamp", Kind.OBJECT, "timestamp in the future that makes a segment younger than "
           "min.compaction.lag.ms", null="the obstacle is not min-lag, or the timestamp is not in "
           "the future", of=STAMP),
    Column("settings", Kind.OBJECT, "the settings of the topic that count", of=SETTING, many=True),
), note="One compacted partition, and what the log cleaner does with it.",
    type="partition", made_from="logtool.cleaner.run:PartitionCleaning")  # fmt: skip
TOTAL: Final = Table("total", "run", (
    count("partitions", "compacted partitions"),
    size("bytes", "bytes of their .log files"),
    count("cleaned", "partitions that are cleaned"),
    size("cleanable_bytes", "cleanable bytes of these"),
    count("in_order", "partitions with nothing to clean yet, or too little: those with the "
          "obstacles active-segment, empty and dirty-ratio"),
    count("kept", "partitions that another obstacle keeps from being cleaned"),
    size("bytes_before", "bytes of the segments that were measured", null=_NOT_MEASURED),
    size("bytes_after", "bytes that are left of these, about", null=_NOT_MEASURED),
    Column("obstacles", Kind.COUNTS, "partitions that are not cleaned, by obstacle"),
    *timed("at_ms", "assumed time of the round", None),
    Column("settings", Kind.OBJECT, "the settings of the broker", of=SETTING, many=True),
    Column("topics_known", Kind.BOOL, "whether a metadata log says the settings of topics"),
), note="The sum of all compacted partitions.", type="total",
    made_from="logtool.commands.views.cleaner:CleanerTotal")  # fmt: skip
DOCUMENT: Final = Document(
    name="cleaner",
    title="Objects that logtool cleaner prints",
    tables=(PARTITION, TOTAL),
)
