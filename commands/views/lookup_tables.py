"""The objects that `lookup` prints: logtool.lookup/1."""

from typing import Final

from logtool.schemas.columns import Column, Kind, Table, offset, timed
from logtool.schemas.document import Document

_NO_NAME = "the directory is not named TOPIC-NUMBER"
_NOT_FOUND = "nothing was found"
_NO_BATCH = "no batch was found"
_NO_RECORD = "no record was found in the batch"


LOOKUP: Final = Table("lookup", "question", (
    Column("path", Kind.PATH, "the partition dir"),
    Column("topic", Kind.STRING, "name of the topic", null=_NO_NAME),
    Column("partition", Kind.INT32, "number of the partition", null=_NO_NAME),
    Column("asked", Kind.STRING, "kind of lookup: an offset, a timestamp, or an end of the log",
           words=("offset", "timestamp", "earliest", "latest")),
    offset("asked_offset", "the offset to look up", "the lookup was not for an offset"),
    *timed("asked_timestamp_ms", "the timestamp to look up", "the lookup was not for a "
           "timestamp"),
    offset("log_start_offset", "start of the log"),
    offset("local_log_start_offset", "first offset of the local segments; offsets below it, from "
           "log_start_offset on, are in remote storage"),
    offset("log_end_offset", "end of the log that a broker finds when it loads the log",
           "a broker cannot find the end of the log"),
    Column("found", Kind.BOOL, "whether reading the log finds a record"),
    Column("agree", Kind.BOOL, "whether the indexes and reading the log lead to the same record"),
    offset("kafka_offset", "Kafka offset of the record that reading a log of Redpanda finds",
           "the log is a Kafka log, nothing was found, or the Kafka offset is not known or does "
           "not exist"),
    Column("message", Kind.STRING, "the result in words"),
), note="The lookup and its result.", type="lookup")  # fmt: skip
PLACE: Final = Table("place", "way to search", (
    Column("path", Kind.PATH, "the .log that holds the record",
           null=_NOT_FOUND, value="location.path"),
    Column("by", Kind.STRING, "way to search: through the indexes like a broker, or by reading the "
           "log", words=("index", "scan")),
    offset("segment", "base offset of the segment", _NOT_FOUND, "location.segment"),
    Column("position", Kind.INT64, "byte in the .log where the batch begins", "byte", _NO_BATCH,
           value="location.position"),
    Column("size", Kind.INT64, "size of the batch", "bytes", _NO_BATCH, value="location.size"),
    offset("base_offset", "first offset of the batch", _NO_BATCH, "location.base_offset"),
    offset("last_offset", "last offset of the batch", _NO_BATCH, "location.last_offset"),
    Column("record", Kind.INT64, "number of the record in the batch, from 0", null=_NO_RECORD,
           value="location.record"),
    offset("offset", "offset of the record; for latest, the end of the log", _NO_RECORD,
           "location.offset"),
    Column("timestamp_ms", Kind.INT64, "time of the record", "ms since 1970",
           f"{_NO_RECORD}, or the record has no time", value="location.timestamp_ms"),
    Column("timestamp", Kind.TIMESTAMP, "timestamp_ms as a timestamp", "UTC",
           f"{_NO_RECORD}, it has no time, or one that no timestamp can show",
           value="location.timestamp"),
    Column("leader_epoch", Kind.INT32, "leader epoch of the batch",
           null="no batch was found, or the batch has no leader epoch",
           value="location.leader_epoch"),
    Column("problem", Kind.STRING, "why the search stopped, or did not reach the records",
           null="the search found the records", value="location.problem"),
), note="The place that one way to search finds.", type="place",
    made_from="logtool.lookup.run:FoundPlace")  # fmt: skip
DOCUMENT: Final = Document(
    name="lookup", title="Objects that logtool lookup prints", tables=(LOOKUP, PLACE)
)
