"""The columns of every table: the only declaration, used by `dump`, `scan` and the data source.

A column has the same name, type and meaning in each way. Offsets are Kafka's, positions are bytes
in a file, times are milliseconds since 1970 with a timestamp in the next column, null means "none".
A change of the columns of a table raises `VERSION`.
"""

from dataclasses import replace
from typing import Final

from logtool.schemas.columns import (
    DUMP,
    EVERY_WAY,
    JSON,
    PRINTED,
    TABLES,
    Column,
    Kind,
    Payload,
    Table,
    Way,
    count,
    offset,
    timed,
)

VERSION: Final = 4
"""One version for all tables, in the metadata of every file and in the manifest of each run."""

_NO_NAME = "the name of the directory has no topic and partition"
_TOPIC_PARTITION = (
    Column("topic", Kind.STRING, "name of the topic", null=_NO_NAME),
    Column("partition", Kind.INT32, "number of the partition", null=_NO_NAME),
)
_LOG_DIR = (
    Column("log_dir", Kind.STRING, "absolute path of the log dir, or of the parent of the "
           "partition dir", null="the row is not about a log dir", ways=TABLES),
    Column("node_id", Kind.INT32, "node id or broker id in the meta.properties of the log dir",
           null="the log dir has no readable id", ways=TABLES),
)  # fmt: skip
_DIR = (
    *_LOG_DIR, *_TOPIC_PARTITION,
    Column("directory", Kind.STRING, "name of the partition dir; shows -future, -delete, -stray",
           null="the row is not about a partition dir", ways=TABLES),
)  # fmt: skip
_SEGMENT = Column("segment", Kind.INT64, "base offset of the segment: the number in the name of "
                  "its .log", "offset")  # fmt: skip
_OF_FILE = (
    Column("path", Kind.STRING, "path of the file, as it was given or found below a path that was "
           "given",
           ways=DUMP),
    *_DIR,
    Column("segment", Kind.INT64, _SEGMENT.meaning, "offset", null="the file is not a segment"),
)  # fmt: skip
_OF_SEGMENT = (*_DIR, _SEGMENT)
_PRODUCER = (
    Column("producer_id", Kind.INT64, "id of the producer", null="none"),
    Column("producer_epoch", Kind.INT16, "epoch of the producer", null="none"),
)
_TIMESTAMP_TYPE = Column(
    "timestamp_type", Kind.STRING, "origin of the time: the producer or the broker",
    null="magic 0, which has no timestamps", words=("CreateTime", "LogAppendTime"),
)  # fmt: skip
_LEADER_EPOCH = Column("leader_epoch", Kind.INT32, "epoch of the leader that took the batch",
                       null="unknown")  # fmt: skip
_CONTROL_TYPE = (
    "ABORT, COMMIT, LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS, "
    "or UNKNOWN(N)"
)
_TRANSACTIONAL = Column("transactional", Kind.BOOL, "true if the row belongs to a transaction")


_SCAN = frozenset({Way.SCAN})
_BATCHES = Table("batches", "batch", (
    *_OF_FILE,
    Column("position", Kind.INT64, "byte in the file where the batch begins", "byte"),
    Column("size", Kind.INT64, "size of the whole batch", "bytes"),
    Column("magic", Kind.INT8, "version of the batch format: 0, 1 or 2"),
    offset("base_offset", "first offset of the batch; equal to last_offset for magic 0 and 1"),
    offset("last_offset", "last offset of the batch"),
    Column("record_count", Kind.INT32, "number of records, from the header of the batch",
           null="magic 0 and 1, which store no count"),
    Column("codec", Kind.STRING, "none, gzip, snappy, lz4, zstd, or unknown(N)"),
    _TIMESTAMP_TYPE,
    *timed("base_timestamp_ms", "time of the first record",
           "no time, or a delete horizon in its place"),
    *timed("max_timestamp_ms", "largest time of the records", "none"),
    *timed("delete_horizon_ms", "time from which the cleaner may remove the tombstones or the "
           "marker", "none"),
    _LEADER_EPOCH,
    *_PRODUCER,
    Column("base_sequence", Kind.INT32, "sequence number of the first record", null="none"),
    Column("last_sequence", Kind.INT32, "sequence number of the last record; wraps after "
           "2147483647", null="none"),
    _TRANSACTIONAL,
    Column("control", Kind.BOOL, "true if the batch holds control records, which consumers do not "
           "get"),
    Column("control_type", Kind.STRING, f"type of the first control record: {_CONTROL_TYPE}",
           null="not a control batch, or its record does not decode"),
    Column("coordinator_epoch", Kind.INT32, "coordinator epoch of a transaction marker",
           null="none"),
    Column("attributes", Kind.INT16, "attributes of the batch, as stored"),
    Column("crc", Kind.UINT32, "CRC of the batch, as stored; CRC-32C for magic 2, CRC-32 before"),
    Column("crc_valid", Kind.BOOL, "true if the CRC matches; if not, the other columns may be "
           "wrong. The tables have no such batches", ways=DUMP),
    Column("term", Kind.INT64, "only Redpanda: the term in the name of the segment",
           null="the batch is Kafka's", ways=_SCAN | {Way.SOURCE}),
    Column("batch_type", Kind.STRING, "only Redpanda: the type of the batch, such as raft_data",
           null="the batch is Kafka's", ways=_SCAN | {Way.SOURCE}),
), EVERY_WAY, type="batch")  # fmt: skip

_IN_CELLS = EVERY_WAY - JSON
"""Ways in which the size of a key is a column; JSON has the size inside the key."""
_WITHOUT_SECRETS = "; in a metadata log secrets are replaced by stars unless you ask for them"
_RECORDS = Table("records", "record", (
    *_OF_FILE,
    Column("batch_position", Kind.INT64, "byte in the file where the batch of the record begins",
           "byte"),
    offset("offset", "offset of the record"),
    _TIMESTAMP_TYPE,
    *timed("timestamp_ms", "time of the record", "none"),
    _LEADER_EPOCH,
    *_PRODUCER,
    Column("sequence", Kind.INT32, "sequence number of the record", null="none"),
    _TRANSACTIONAL,
    Column("control", Kind.BOOL, "true for a control record, which consumers do not get"),
    Column("control_type", Kind.STRING, _CONTROL_TYPE,
           null="not a control record, or the record does not decode"),
    Column("control_record", Kind.OBJECT, "decoded control record: version, type, name, data",
           null="not a control record, or the record does not decode", ways=DUMP),
    Column("control_error", Kind.STRING, "reason for which a control record does not decode",
           null="the control record decodes, or the record is not a control record", ways=DUMP),
    Column("crc", Kind.UINT32, "CRC as stored in messages of magic 0 and 1",
           null="magic 2, which stores no CRC per record"),
    Column("header_count", Kind.INT32, "number of headers", "count",
           ways=EVERY_WAY - DUMP | {Way.PARQUET}),
    Column("key_size", Kind.INT32, "size of the key", "bytes", "the key is null",
           ways=_IN_CELLS, payload=Payload.LENGTH),
    Column("value_size", Kind.INT32, "size of the value", "bytes", "the value is null",
           ways=_IN_CELLS, payload=Payload.LENGTH),
    Column("key_hash", Kind.UINT32, "CRC-32C of the key", None, "the key is null",
           ways=TABLES, payload=Payload.HASH),
    Column("value_hash", Kind.UINT32, f"CRC-32C of the value{_WITHOUT_SECRETS}", None,
           "the value is null",
           ways=TABLES, payload=Payload.HASH),
    Column("key", Kind.BINARY, "key of the record", None, "the key is null", payload=Payload.FULL),
    Column("value", Kind.BINARY, f"value of the record{_WITHOUT_SECRETS}",
           None, "the value is null: a tombstone in a compacted log", payload=Payload.FULL),
    Column("headers", Kind.HEADERS, "headers of the record in order; an empty list for a record "
           "without headers",
           payload=Payload.FULL),
), EVERY_WAY, type="record")  # fmt: skip

_SPANNED = (
    *timed(
        "first_timestamp_ms",
        "least time in the headers of the batches",
        "the headers have no times",
    ),
    *timed(
        "last_timestamp_ms",
        "largest time in the headers of the batches",
        "the headers have no times",
    ),
)
_SEGMENTS = Table("segments", "segment", (
    *_OF_SEGMENT,
    offset("next_segment", "base offset of the next segment", "the segment is the active one"),
    Column("log_bytes", Kind.INT64, "size of the .log at the time of listing", "bytes"),
    Column("offset_index_bytes", Kind.INT64, "size of the .index", "bytes", "the segment has no "
           ".index"),
    Column("time_index_bytes", Kind.INT64, "size of the .timeindex", "bytes", "the segment has no "
           ".timeindex"),
    Column("transaction_index_bytes", Kind.INT64, "size of the .txnindex", "bytes",
           "the segment has no .txnindex"),
    *timed("modified_ms", "time of the last write to the .log", None),
    Column("read", Kind.BOOL, "true if the .log was read from start to end"),
    count("batches", "sound batches"),
    count("records", "records in sound batches"),
    count("transactional_batches", "sound batches that belong to transactions"),
    count("control_batches", "sound batches with control records"),
    offset("first_offset", "base offset of the first sound batch",
           "the segment has no sound batch"),
    offset("last_offset", "largest offset of a sound batch", "the segment has no sound batch"),
    *_SPANNED,
    Column("first_leader_epoch", Kind.INT32, "leader epoch of the first batch that has one",
           null="no batch has a leader epoch"),
    Column("last_leader_epoch", Kind.INT32, "leader epoch of the last batch that has one",
           null="no batch has a leader epoch"),
    Column("batch_bytes", Kind.INT64, "size of all sound batches", "bytes"),
    Column("largest_batch_bytes", Kind.INT64, "size of the largest sound batch", "bytes"),
    count("damaged_ranges", "ranges of bytes that are not a sound batch"),
    Column("damaged_bytes", Kind.INT64, "size of the damaged ranges", "bytes"),
    Column("unused_bytes", Kind.INT64, "zeros at the end of an active segment", "bytes"),
), TABLES)  # fmt: skip

_NOT_LOOKED_AT: Final = "the input could not be read"
_GAPS = Table("gaps", "range of missing offsets between batches, or behind a lost log end", (
    *_DIR,
    offset("first_offset", "first offset that no sound batch covers"),
    offset("last_offset", "last offset of the range"),
    count("missing", "number of missing offsets"),
    Column("kind", Kind.STRING, "place of the gap",
           words=("head", "between-batches", "between-segments", "lost-end")),
    Column("reason", Kind.STRING, "reason as logtool gaps gives it"),
    Column("evidence", Kind.STRING, "evidence for the reason"),
    offset("before_segment", "segment of the batch before the gap", "no batch before the gap"),
    offset("after_segment", "segment of the batch after the gap; at the end of the log the last "
           "segment"),
    Column("damaged", Kind.BOOL, "true if the place holds bytes that are not a sound batch"),
), _SCAN)  # fmt: skip
_PRODUCERS = Table("producers", "producer id and epoch in a partition", (
    *_DIR,
    Column("producer_id", Kind.INT64, "id of the producer"),
    Column("producer_epoch", Kind.INT16, "epoch of the producer", null="none"),
    offset("first_offset", "base offset of the first batch with data"),
    offset("last_offset", "last offset of the last batch with data"),
    Column("first_sequence", Kind.INT32, "sequence number of the first batch",
           null="the batches have no sequence numbers"),
    Column("last_sequence", Kind.INT32, "last sequence number of the last batch",
           null="the batches have no sequence numbers"),
    count("batches", "batches with data"),
    Column("records", Kind.INT64, "records in the batches with data", "count",
           "magic 0 and 1, which store no count"),
    *_SPANNED,
    count("sequence_breaks", "batches whose first sequence number does not follow the last "
          "sequence number before it"),
), _SCAN)  # fmt: skip
_TRANSACTIONS = Table("transactions", "transaction in a partition", (
    *_DIR,
    Column("producer_id", Kind.INT64, "id of the producer"),
    Column("producer_epoch", Kind.INT16, "epoch of the producer in the first batch", null="none"),
    offset("first_offset", "base offset of the first batch"),
    offset("last_offset", "offset of the marker; for an open transaction the last offset of its "
           "last batch"),
    Column("outcome", Kind.STRING, "outcome of the transaction",
           words=("committed", "aborted", "open")),
    count("batches", "batches with data"),
    Column("records", Kind.INT64, "records in the batches with data", "count",
           "magic 0 and 1, which store no count"),
    *timed("first_timestamp_ms", "least time in the headers of the batches",
           "the headers have no times"),
    *timed("last_timestamp_ms", "largest time in the headers of the batches and of the marker",
           "the headers have no times"),
    Column("coordinator_epoch", Kind.INT32, "coordinator epoch of the marker",
           null="the transaction is open"),
), _SCAN)  # fmt: skip
_FINDINGS = Table("findings", "finding of logtool verify, or input that could not be read", (
    Column("number", Kind.INT64, "number of the finding, in the order in which logtool verify "
           "reports findings",
           ways=_SCAN),
    Column("code", Kind.STRING, "code of the finding; see logtool explain", null=_NOT_LOOKED_AT,
           pattern="^[a-z0-9-]+/[a-z0-9-]+$"),
    Column("severity", Kind.STRING, "severity of the finding; unreadable: the input could not be "
           "read",
           words=("error", "warning", "info", "unreadable")),
    Column("broker", Kind.STRING, "reaction of a broker",
           null=_NOT_LOOKED_AT,
           words=("always", "if-unclean", "never", "refuses-to-start")),
    Column("remedy", Kind.STRING, "way to mend it: broker: the next start mends it; recover: "
           "recover --apply mends it without loss; checkpoint: checkpoint rebuild --apply mends "
           "it; remote: remote restore takes it from remote storage; loss: mending costs records; "
           "replica: another copy is needed; none: nothing is to be mended, or an operator does it",
           null=_NOT_LOOKED_AT,
           words=("broker", "recover", "checkpoint", "remote", "loss", "replica", "none")),
    Column("path", Kind.STRING, "path of the file or directory",
           null="the finding is not about a single file"),
    *_LOG_DIR,
    Column("topic", Kind.STRING, "name of the topic", null="the finding is not about a partition"),
    Column("partition", Kind.INT32, "number of the partition",
           null="the finding is not about a partition"),
    Column("directory", Kind.STRING, "name of the partition dir",
           null="the finding is not about a partition dir",
           ways=TABLES),
    offset("segment", "base offset of the segment", "the finding is not about one segment"),
    Column("position", Kind.INT64, "byte in the file", "byte",
           "the finding has no single position"),
    Column("length", Kind.INT64, "bytes affected", "bytes", "the finding affects no bytes"),
    offset("first_offset", "first offset affected", "the finding affects no offsets"),
    offset("last_offset", "last offset affected", "the finding affects no offsets"),
    Column("message", Kind.STRING, "expected and found values"),
    Column("next", Kind.STRING, "command to run next", null="no command follows"),
), _SCAN | JSON, type="finding")  # fmt: skip
FINDING: Final = replace(
    _FINDINGS, name="finding", each="finding", made_from="logtool.findings:Finding", ways=PRINTED,
    note="A fault or a fact worth knowing.", columns=tuple(
        replace(
            column,
            meaning="severity of the finding" if column.name == "severity" else column.meaning,
            null=None if column.null == _NOT_LOOKED_AT else column.null,
            words=tuple(word for word in column.words if word != "unreadable"),
            kind=Kind.PATH if column.name == "path" else column.kind,
        )
        for column in _FINDINGS.by(Way.NDJSON)
    ),
)  # fmt: skip
"""The finding that `verify` prints; an input that could not be read is there an object of another
type."""
_REPLICAS = Table("replicas", "copy of a partition that several of the log dirs hold", (
    *_DIR,
    Column("copies", Kind.INT32, "log dirs of this run that hold the partition; each has a row",
           "count"),
    offset("first_offset", "first offset of this copy", "the copy is empty"),
    offset("last_offset", "last offset of this copy", "the copy is empty"),
    Column("last_leader_epoch", Kind.INT32, "leader epoch of the last batch",
           null="the copy is empty"),
    count("batches", "sound batches of this copy"),
    count("shared_batches", "sound batches that every other copy has too, with the same CRC, size "
          "and header fields outside the CRC"),
    offset("diverges_at", "least offset at which another copy has a different batch that "
           "compaction does not explain, or an overlapping batch", "nowhere"),
    count("only_here", "batches at offsets where no other copy has a batch, inside the offset "
          "range of all copies: lost, damaged or compacted there"),
    count("behind", "offsets by which this copy is behind the copy with the largest log end"),
), _SCAN)  # fmt: skip
_KAFKA = Table("kafka", "record as a consumer gets it", (
    Column("key", Kind.BINARY, "key of the record", null="the key is null"),
    Column("value", Kind.BINARY, "value of the record", null="the value is null"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    offset("offset", "offset of the record"),
    Column("timestamp", Kind.TIMESTAMP, "time of the record; one millisecond before 1970 for a "
           "record without a time",
           "UTC", "out of the range of calendar dates"),
    Column("timestampType", Kind.INT32, "0 CreateTime, 1 LogAppendTime, -1 magic 0, which has no "
           "timestamps"),
    Column("headers", Kind.KAFKA_HEADERS, "headers of the record; with the option includeHeaders",
           null="the record has no headers"),
), frozenset({Way.SOURCE}), "Exactly the columns and types of spark.read.format(\"kafka\").",
)  # fmt: skip

_HISTORY = Table("history", "run and topic", tuple(
    replace(column, ways=frozenset({Way.HISTORY}))
    for column in (
        Column("run_id", Kind.STRING, "id of the run"),
        *timed("at_ms", "time at which the run had read the logs", None),
        Column("topic", Kind.STRING, "name of the topic",
               null="partition dirs without a topic, and findings about log dirs"),
        count("partition_dirs", "partition dirs; each copy counts separately"),
        count("segments", "segments in the partition dirs"),
        Column("log_bytes", Kind.INT64, "size of all .log files", "bytes"),
        count("records", "records in sound batches"),
        Column("damaged_bytes", Kind.INT64, "bytes that no sound batch covers", "bytes"),
        *timed("last_timestamp_ms", "largest time in the headers of sound batches",
        "the headers have no times"),
        count("errors", "findings that are errors"),
        count("warnings", "findings that are warnings"),
    )
), frozenset({Way.HISTORY}),
    "Every run of scan has this table, under the name _history.")  # fmt: skip

ALL: Final = {
    table.name: table
    for table in (_SEGMENTS, _BATCHES, _RECORDS, _GAPS, _PRODUCERS, _TRANSACTIONS, _FINDINGS,
                  _REPLICAS, _KAFKA, _HISTORY)
}  # fmt: skip
"""Every table by its name."""
