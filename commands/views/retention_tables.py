"""The objects that `retention` prints: logtool.retention/1."""

from typing import Final

from logtool.commands.views.retention_key_tables import COPIES, COPY
from logtool.schemas.columns import Column, Kind, Table, count, offset, size, timed
from logtool.schemas.document import Document

_STAYS = "it is deleted in the first round"
_NO_RULE = "no rule deletes it"
_OBSTACLES = (
    "high-watermark", "empty-active", "policy", "no-limit", "within-size", "future-timestamp",
    "age", "older-segment", "cleaner-disabled",
)  # fmt: skip
_TOPIC = Column("topic", Kind.STRING, "name of the topic", value="directory.topic")
_NUMBER = Column("partition", Kind.INT32, "number of the partition", value="directory.partition")
SETTING: Final = Table("setting", "setting", (
    Column("name", Kind.STRING, "name of the topic's setting"),
    Column("value", Kind.STRING, "its value"),
    Column("source", Kind.STRING, "place of the value: --with, the topic, this broker or all "
           "brokers in the metadata log, --broker-config, or Kafka's default",
           words=("option", "topic", "broker", "all-brokers", "file", "default")),
), note="A setting with its source.",
    made_from="logtool.metadata.setting_values:SettingValue")  # fmt: skip
_NO_BATCH = "the log has no batch with this timestamp"
STAMP: Final = Table("stamp", "odd timestamp", (
    offset("base_offset", "base offset of the segment"),
    Column("timestamp", Kind.INT64, "largest timestamp, as it is stored", "ms since 1970"),
    Column("unit", Kind.STRING, "the unit in which it is a recent time",
           null="it is not a recent time in another unit",
           words=("seconds", "microseconds", "nanoseconds")),
    Column("meant", Kind.TIMESTAMP, "the time that it means in that unit, or in milliseconds",
           "UTC", "out of the range of calendar dates"),
    offset("first_offset", "first offset of the batch", _NO_BATCH),
    offset("last_offset", "last offset of the batch", _NO_BATCH),
    Column("producer_id", Kind.INT64, "producer id of the batch",
           null=f"{_NO_BATCH}, or the producer has no id"),
    Column("counts", Kind.BOOL, "whether the start knows it; false for a batch that came after the "
           "clean-shutdown marker, which counts only without the marker"),
), note="The first batch with the largest timestamp of a segment, if that timestamp is in the "
        "future or in another unit than milliseconds.",
    made_from="logtool.retention.stamp:WrongTimestamp")  # fmt: skip
_BEHIND = Table("behind", "segment", (
    offset("base_offset", "base offset"),
    *timed("timestamp_ms", "largest timestamp, as the broker has it", None),
), made_from="logtool.retention.run:SegmentRetention")  # fmt: skip
_NOTHING = "the first round deletes no offset from the log start on"
_EARLY = Table("early", "early deletion", (
    count("segments", "segments whose records are younger than retention.ms by the time that their "
          "timestamps mean in seconds"),
    size("bytes", "bytes of the .log files of these segments"),
    offset("first_offset", "first offset of these"),
    offset("last_offset", "last offset of these",
           "the log goes as a whole, and its end is not known"),
    *timed("newest_ms", "time that the largest of these timestamps means", None),
    Column("age_ms", Kind.INT64, "age of that record at the start", "ms"),
), made_from="logtool.retention.early:EarlyDeletion")  # fmt: skip
PARTITION: Final = Table("partition", "partition", (
    _TOPIC,
    _NUMBER,
    Column("path", Kind.PATH, "the partition dir"),
    count("segments", "segments", "count"),
    size("bytes", "bytes of the .log files"),
    count("first_segments", "segments that the first round deletes"),
    size("first_bytes", "bytes of the .log files of these segments"),
    count("first_offsets", "offsets of these segments, from the log start on; a compacted log has "
          "fewer records", null="the log goes as a whole, and its end is not known"),
    offset("deleted_first_offset", "first offset that the first round deletes, from the log start "
           "on", _NOTHING),
    offset("deleted_last_offset", "last offset that the first round deletes",
           f"{_NOTHING}, or the log goes as a whole, and its end is not known"),
    size("freed_bytes", "first_bytes less those without --with; negative if --with keeps more",
         null="there is no --with"),
    Column("obstacle", Kind.STRING, "why the oldest segment that stays does so",
           null="the first round deletes every segment", words=_OBSTACLES),
    offset("blocked_at", "base offset of the oldest segment that stays",
           "the first round deletes every segment"),
    *timed("next_ms", "time of the round that deletes the oldest segment that stays",
           f"the first round deletes every segment, or {_NO_RULE}"),
    offset("high_watermark", "high watermark that counts",
           "it reaches the log end, because no other replica is in sync"),
    count("by_mtime", "segments whose modification time counts, because they have no timestamp"),
    count("after_marker", "segments that changed after the clean-shutdown marker was written: the "
          "start trusts the marker and their time indexes, and does not read them"),
    Column("after_copy", Kind.BOOL, "whether only segments that were copied to remote storage are "
           "deleted", value="limits.is_copied"),
    Column("settings", Kind.OBJECT, "the policy and the limits that count",
           of=SETTING, many=True),
    Column("stamp", Kind.OBJECT, "timestamp that keeps the log, lets a segment go early, or would "
           "keep the log without the clean-shutdown marker",
           null="no timestamp is odd", of=STAMP),
    Column("early", Kind.OBJECT, "segments that the first round deletes too early, because their "
           "timestamps are in seconds", null="there is no such segment", of=_EARLY),
    Column("behind", Kind.OBJECT, "the next segment with a timestamp in the future: it keeps the "
           "log once the first such segment is gone", null="there is no such segment", of=_BEHIND),
), note="One partition, and what retention deletes of it.",
    type="partition", made_from="logtool.retention.run:PartitionRetention")  # fmt: skip
SEGMENT: Final = Table("segment", "segment", (
    Column("topic", Kind.STRING, "name of the topic", value="of.directory.topic"),
    Column("partition", Kind.INT32, "number of the partition", value="of.directory.partition"),
    Column("path", Kind.PATH, "the .log file"),
    offset("base_offset", "base offset"),
    size("size", "bytes of the .log file"),
    Column("is_active", Kind.BOOL, "whether the broker appends to it"),
    *timed("timestamp_ms", "largest timestamp, as the broker has it", None),
    Column("timestamp_source", Kind.STRING, "place of the timestamp",
           words=("time-index", "batches", "mtime")),
    Column("rule", Kind.STRING, "the rule that deletes it", null=_NO_RULE,
           words=("log-start", "size", "time")),
    Column("round", Kind.INT64, "number of the round that deletes it, from 1 on", null=_NO_RULE),
    *timed("deleted_ms", "time of that round", _NO_RULE),
    Column("obstacle", Kind.STRING, "why it stays after the first round", null=_STAYS,
           words=_OBSTACLES),
    offset("held_by", "base offset of the older segment that keeps it",
           "no older segment decides"),
), note="One segment, and when retention deletes it.",
    type="segment", made_from="logtool.retention.run:SegmentRetention")  # fmt: skip
REMOTE: Final = Table("remote", "remote part of a partition", (
    Column("topic", Kind.STRING, "name of the topic", value="lineage.remote.topic"),
    Column("partition", Kind.INT32, "number of the partition", value="lineage.remote.number"),
    Column("path", Kind.PATH, "the partition dir"),
    count("segments", "remote segments that are not deleted"),
    size("remote_bytes", "bytes of the remote segments that brokers use"),
    size("only_local_bytes", "bytes of the local segments that the size of the log counts, too"),
    size("total_bytes", "size of the log, which retention.bytes limits: the sum of both"),
    Column("settings", Kind.OBJECT, "retention.ms and retention.bytes", of=SETTING, many=True),
    count("due_segments", "remote segments that the leader deletes"),
    size("due_bytes", "bytes of these"),
    Column("rules", Kind.STRINGS, "the rules that delete them",
           words=("log-start", "size", "time")),
    offset("log_start_offset", "log start offset after that"),
    *timed("next_ms", "time at which the oldest remote segment that stays is too old",
           "none stays, or there is no limit of age"),
    count("at_risk_segments", "further remote segments that a leader before 4.3.2 may delete, "
          "because it counts local segments twice (KAFKA-20732)"),
    size("at_risk_bytes", "bytes of these"),
), note="The remote part of one partition, and what its leader deletes of it.",
    type="remote", made_from="logtool.remote.expiry:RemoteRetention")  # fmt: skip
TOTAL: Final = Table("total", "run", (
    count("partitions", "partitions"),
    count("segments", "segments"),
    size("bytes", "bytes of the .log files"),
    count("first_segments", "segments that first rounds delete"),
    size("first_bytes", "bytes of the .log files of these segments"),
    size("freed_bytes", "first_bytes less those without --with", null="there is no --with"),
    count("compacted", "partitions of compacted topics; the log cleaner deletes their segments"),
    *timed("start_ms", "assumed start of the broker", None),
    *timed("first_ms", "time of the first round, but for compacted topics", None),
    Column("every_ms", Kind.INT64, "time between rounds", "ms"),
    Column("settings", Kind.OBJECT, "the settings that set these times", of=SETTING, many=True),
    Column("topics_known", Kind.BOOL, "whether a metadata log says the settings of topics"),
), note="The sum of all partitions.", type="total",
    made_from="logtool.commands.views.retention:Total")  # fmt: skip
DOCUMENT: Final = Document(
    name="retention",
    title="Objects that logtool retention prints",
    tables=(PARTITION, SEGMENT, REMOTE, TOTAL, COPY, COPIES),
)
