"""The objects that `lookup` prints: logtool.lookup/1."""

from typing import Final

from logtool.schemas.columns import Column, Kind, Table, offset, timed
from logtool.schemas.document import Document

_NO_NAME = "the directory's name has none"
_NOT_FOUND = "nothing was found"
_NO_BATCH = "no batch was found"
_NO_RECORD = "no record was found in the batch"


LOOKUP: Final = Table("lookup", "question", (
    Column("path", Kind.PATH, "the partition dir"),
    Column("topic", Kind.STRING, "name of the topic", null=_NO_NAME),
    Column("partition", Kind.INT32, "number of the partition", null=_NO_NAME),
    Column("asked", Kind.STRING, "kind of question: for an offset, a timestamp, or an end of "
           "the log", words=("offset", "timestamp", "earliest", "latest")),
    offset("asked_offset", "the offset that was asked for", "it was no offset"),
    *timed("asked_timestamp_ms", "the timestamp that was asked for", "it was no timestamp"),
    offset("log_start_offset", "start of the log"),
    offset("log_end_offset", "end of the log as a broker finds it when it loads the log",
           "a broker cannot find it"),
    Column("found", Kind.BOOL, "whether reading the log finds anything"),
    Column("agree", Kind.BOOL, "whether the indexes and reading the log lead to the same record"),
    offset("kafka_offset", "Kafka offset of the Raft offset that reading a log of Redpanda finds",
           "it is a log of Kafka, nothing was found, or the Kafka offset is not known or does not "
           "exist"),
    Column("message", Kind.STRING, "the answer in words"),
), note="The question and the answer to it.", type="lookup")  # fmt: skip
PLACE: Final = Table("place", "way to search", (
    Column("path", Kind.PATH, "the .log that it is in", null=_NOT_FOUND, value="location.path"),
    Column("by", Kind.STRING, "way to search: by the indexes as a broker uses them, or by reading "
           "the log", words=("index", "scan")),
    offset("segment", "base offset of the segment", _NOT_FOUND, "location.segment"),
    Column("position", Kind.INT64, "byte in the .log where the batch begins", "byte", _NO_BATCH,
           value="location.position"),
    Column("size", Kind.INT64, "size of the batch", "bytes", _NO_BATCH, value="location.size"),
    offset("base_offset", "first offset of the batch", _NO_BATCH, "location.base_offset"),
    offset("last_offset", "last offset of the batch", _NO_BATCH, "location.last_offset"),
    Column("record", Kind.INT64, "number of the record in the batch, from 0", null=_NO_RECORD,
           value="location.record"),
    offset("offset", "offset of the record; for latest the end of the log", _NO_RECORD,
           "location.offset"),
    Column("timestamp_ms", Kind.INT64, "time of the record", "ms since 1970",
           f"{_NO_RECORD}, or it has no time", value="location.timestamp_ms"),
    Column("timestamp", Kind.TIMESTAMP, "timestamp_ms as a timestamp", "UTC",
           f"{_NO_RECORD}, it has no time, or no calendar has it", value="location.timestamp"),
    Column("leader_epoch", Kind.INT32, "epoch of the leader that took the batch",
           null="no batch was found, or it has none", value="location.leader_epoch"),
    Column("problem", Kind.STRING, "reason why the search stopped, or did not reach the records",
           null="there is none", value="location.problem"),
), note="The place that one way to search leads to.", type="place",
    made_from="logtool.lookup.run:FoundPlace")  # fmt: skip
DOCUMENT: Final = Document(
    name="lookup", title="What logtool lookup prints", tables=(LOOKUP, PLACE)
)
