"""The objects that `stat` prints: logtool.stat/1."""

from dataclasses import replace
from typing import Final

from logtool.schemas.columns import Column, Kind, Table, timed
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

_NO_TOPIC = "the directory is not named TOPIC-NUMBER"
_EMPTY = "there is no sound batch"
_TOPIC = Column("topic", Kind.STRING, "name of the topic", null=_NO_TOPIC)
_DIR = Column("path", Kind.PATH, "the partition dir")
_IN_TOPIC = (_TOPIC, Column("partition", Kind.INT32, "number of the partition", null=_NO_TOPIC))
_COUNTED = Column("partitions", Kind.INT64, "partition dirs that were read; each copy counts",
                  "count")  # fmt: skip
_TOPICS = Column("topics", Kind.INT64, "topics that were read; all partition dirs without a topic "
                 "count as one topic", "count")  # fmt: skip


def _count(name: str, meaning: str, value: str) -> Column:
    return Column(name, Kind.INT64, meaning, "count", value=f"statistics.{value}")


def _bytes(name: str, meaning: str, value: str, null: str | None = None) -> Column:
    return Column(name, Kind.INT64, meaning, "bytes", null, value=f"statistics.{value}")


def _offset(name: str, meaning: str) -> Column:
    return Column(name, Kind.INT64, meaning, "offset", _EMPTY, value=f"statistics.{name}")


def _ratio(name: str, meaning: str, null: str, unit: str | None = None) -> Column:
    return Column(name, Kind.FLOAT, meaning, unit, null, value=f"statistics.{name}", digits=3)


def _time(which: str, meaning: str) -> tuple[Column, ...]:
    columns = timed(f"{which}_timestamp_ms", meaning, "no sound batch has a time")
    values = (f"statistics.{which}_ms", f"statistics.{which}_timestamp")
    return tuple(replace(one, value=value) for one, value in zip(columns, values, strict=True))


_BATCH_SIZE = Table("batch_size", "range of batch sizes", (
    Column("below", Kind.INT64, "a power of two; the batches are smaller, but at least half as "
           "large", "bytes"),
    Column("batches", Kind.INT64, "batches in the range", "count"),
), made_from="logtool.stat.statistics:SizeRange")  # fmt: skip
_TIMELINE = Table("timeline", "span of time", (
    Column("start_ms", Kind.INT64, "time at which the first bucket begins", "ms since 1970"),
    Column("width_ms", Kind.INT64, "width of each bucket", "ms"),
    Column("bytes", Kind.NUMBERS, "bytes in each bucket; at most 64 buckets", "bytes"),
), made_from="logtool.stat.statistics:Timeline")  # fmt: skip

_OLD_FORMAT = Table("old_format", "old message format", (
    Column("magic", Kind.INT32, "0 or 1"),
    Column("batches", Kind.INT64, "batches of this format", "count"),
    Column("first_offset", Kind.INT64, "first offset of these batches", "offset"),
    Column("last_offset", Kind.INT64, "last offset of these batches", "offset"),
    *timed("first_timestamp_ms", "smallest timestamp of these batches", "magic 0 has no time"),
    *timed("last_timestamp_ms", "largest timestamp of these batches", "magic 0 has no time"),
), made_from="logtool.checks.old_formats:FormatExtent")  # fmt: skip
_COUNTS = (
    _count("segments", "segments, including those that were not read", "segments"),
    _count("unread_segments", "segments that could not be read, or that were not read because the "
           "time was over",
           "unread_segments"),
    _bytes("log_bytes", "bytes of the logs that were read", "bytes"),
    _bytes("index_bytes", "bytes of the indexes", "index_bytes"),
    _count("batches", "sound batches", "batches"),
    _count("records", "records in sound batches", "records"),
    _ratio("records_per_batch", "mean number of records in a sound batch", _EMPTY),
    _bytes("batch_size_min", "size of the smallest sound batch", "batch_size_min", _EMPTY),
    _bytes("batch_size_median", "median of the sizes of sound batches", "sizes.median", _EMPTY),
    _bytes("batch_size_max", "size of the largest sound batch", "batch_size_max", _EMPTY),
    Column("batch_sizes", Kind.OBJECT, "number of batches by size, in powers of two; empty ranges "
           "in between are included", value="statistics.batch_sizes", of=_BATCH_SIZE, many=True),
    Column("codecs", Kind.COUNTS, "batches by codec", "count",
           value="statistics.batches_by_codec"),
    _ratio("compression_ratio", "decompressed bytes of the records, divided by their stored bytes",
           "nothing was decompressed (no --level records)"),
    _count("producers", "different producer ids", "producer_count"),
    Column("old_formats", Kind.OBJECT, "batches of magic 0 and 1; empty if all have magic 2",
           value="statistics.old_formats", of=_OLD_FORMAT, many=True),
    _count("transactional_batches", "batches of transactions", "transactional"),
    _count("control_batches", "batches with control records", "control"),
)  # fmt: skip
_OFFSETS = (
    _offset("first_offset", "first offset of a sound batch"),
    _offset("last_offset", "last offset of a sound batch"),
)
_NO_SPAN = "no sound batch has a time, or all have the same time"
_REST = (
    *_time("first", "smallest timestamp of a sound batch"),
    *_time("last", "largest timestamp of a sound batch"),
    Column("span_ms", Kind.INT64, "time from the first timestamp to the last", "ms",
           "no sound batch has a time", value="statistics.span_ms"),
    _ratio("records_per_second", "records per second of this time", _NO_SPAN, "count"),
    _ratio("bytes_per_second", "bytes of logs per second of this time", _NO_SPAN, "bytes"),
    Column("bytes_over_time", Kind.OBJECT, "bytes of batches by their largest timestamp, in "
           "buckets of equal width", null="no sound batch has a time",
           value="statistics.bytes_over_time", of=_TIMELINE),
    _count("damaged_ranges", "ranges of bytes that are not sound batches", "damaged_ranges"),
    _bytes("damaged_bytes", "bytes of the damaged ranges", "damaged_bytes"),
    _bytes("unused_bytes", "zero bytes at the end of an active segment, left by preallocation",
           "unused_bytes"),
)  # fmt: skip
_STATISTICS = "logtool.stat.statistics:StatisticsOf"
PARTITION: Final = Table("partition", "partition", (
    _DIR, *_IN_TOPIC, *_COUNTS, *_OFFSETS, *_REST,
), note="One partition: the sums of its segments.", type="partition",
    made_from=_STATISTICS)  # fmt: skip
SEGMENT: Final = Table("segment", "segment", (
    Column("path", Kind.PATH, "the .log file"), *_IN_TOPIC,
    Column("segment", Kind.INT64, "base offset of the segment", "offset"),
    *_COUNTS, *_OFFSETS, *_REST,
), note="One segment, with --segments; the object of the partition follows.", type="segment",
    made_from=_STATISTICS)  # fmt: skip
TOPIC: Final = Table("topic", "topic", (
    _TOPIC, _COUNTED, *_COUNTS, *_REST,
), note="All partitions of a topic that were read; each copy counts.", type="topic",
    made_from=_STATISTICS)  # fmt: skip
TOTAL: Final = Table("total", "run", (
    _TOPICS, _COUNTED, *_COUNTS, *_REST,
), note="The total of everything that was read.", type="total", made_from=_STATISTICS)  # fmt: skip


def _size(name: str, meaning: str) -> Column:
    return Column(name, Kind.INT64, meaning, "bytes", value=f"sizes.{name}")


def _on_disk(name: str, meaning: str) -> Column:
    null = "the files are behind a URL"
    return Column(name, Kind.INT64, meaning, "bytes", null, value=f"sizes.known_{name}")


_SIZES = (
    Column("segments", Kind.INT64, "segments", "count", value="sizes.segments"),
    Column("files", Kind.INT64, "files", "count", value="sizes.files"),
    _size("bytes", "sizes of all files"),
    _size("log_bytes", "sizes of the logs"),
    _size("index_bytes", "sizes of the indexes"),
    _size("other_bytes", "sizes of snapshots, checkpoints, and files of other names"),
    _size("going_bytes", "sizes of files and partitions that wait to be deleted; the other sizes "
          "include them"),
    _on_disk("disk_bytes", "blocks that all files take up on the disk"),
    _on_disk("disk_log_bytes", "blocks that the logs take up"),
    _on_disk("disk_index_bytes", "blocks that the indexes take up"),
)  # fmt: skip
_SIZES_OF = "logtool.stat.sizes:SizesOf"
PARTITION_SIZE: Final = Table("partition_size", "partition", (
    _DIR, *_IN_TOPIC, *_SIZES,
), note="One partition with --level quick: only names and sizes.", type="partition_size",
    made_from=_SIZES_OF)  # fmt: skip
TOPIC_SIZE: Final = Table("topic_size", "topic", (
    _TOPIC, _COUNTED, *_SIZES,
), note="A topic with --level quick: the sums of its partitions.", type="topic_size",
    made_from=_SIZES_OF)  # fmt: skip
TOTAL_SIZE: Final = Table("total_size", "run", (
    _TOPICS, _COUNTED, *_SIZES,
), note="All topics with --level quick.", type="total_size", made_from=_SIZES_OF)  # fmt: skip

_ODD_TIME = "An implausible timestamp or an old message format, as logtool verify reports it."
DOCUMENT: Final = Document(
    name="stat",
    title="Objects that logtool stat prints",
    tables=(
        PARTITION, SEGMENT, TOPIC, TOTAL, PARTITION_SIZE, TOPIC_SIZE, TOTAL_SIZE,
        replace(FINDING, note=_ODD_TIME),
    ),
)  # fmt: skip
