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

_NO_NAME = "the directory's name tells none"
_TOPIC_PARTITION = (
    Column("topic", Kind.STRING, "name of the topic", null=_NO_NAME),
    Column("partition", Kind.INT32, "number of the partition", null=_NO_NAME),
)
_LOG_DIR = (
    Column("log_dir", Kind.STRING, "the log dir as it was given, absolute, or what holds the "
           "partition dir", null="it is about no log dir", ways=TABLES),
    Column("node_id", Kind.INT32, "node id or broker id of its meta.properties",
           null="it tells none", ways=TABLES),
)  # fmt: skip
_DIR = (
    *_LOG_DIR, *_TOPIC_PARTITION,
    Column("directory", Kind.STRING, "name of the partition dir: tells -future, -delete, -stray",
           null="it is about no partition dir", ways=TABLES),
)  # fmt: skip
_SEGMENT = Column("segment", Kind.INT64, "base offset of the segment, the number in the name of "
                  "its .log", "offset")  # fmt: skip
_OF_FILE = (
    Column("path", Kind.STRING, "the file, as it was given or found below what was given",
           ways=DUMP),
    *_DIR,
    Column("segment", Kind.INT64, _SEGMENT.meaning, "offset", null="the file is no segment"),
)  # fmt: skip
_OF_SEGMENT = (*_DIR, _SEGMENT)
_PRODUCER = (
    Column("producer_id", Kind.INT64, "id of the producer", null="none"),
    Column("producer_epoch", Kind.INT16, "epoch of the producer", null="none"),
)
_TIMESTAMP_TYPE = Column(
    "timestamp_type", Kind.STRING, "who set the time: the producer or the broker",
    null="magic 0, which has no times", words=("CreateTime", "LogAppendTime"),
)  # fmt: skip
_LEADER_EPOCH = Column("leader_epoch", Kind.INT32, "epoch of the leader that took the batch",
                       null="unknown")  # fmt: skip
_CONTROL_TYPE = (
    "ABORT, COMMIT, LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS, "
    "or UNKNOWN(N)"
)
_TRANSACTIONAL = Column("transactional", Kind.BOOL, "whether it belongs to a transaction")


_SCAN = frozenset({Way.SCAN})
_BATCHES = Table("batches", "batch", (
    *_OF_FILE,
    Column("position", Kind.INT64, "byte in the file where it begins", "byte"),
    Column("size", Kind.INT64, "of the whole entry", "bytes"),
    Column("magic", Kind.INT8, "version of its format: 0, 1 or 2"),
    offset("base_offset", "first offset; equal to last_offset for magic 0 and 1"),
    offset("last_offset", "last offset"),
    Column("record_count", Kind.INT32, "records in it as its header says",
           null="magic 0 and 1, which store none"),
    Column("codec", Kind.STRING, "none, gzip, snappy, lz4, zstd, or unknown(N)"),
    _TIMESTAMP_TYPE,
    *timed("base_timestamp_ms", "time of its first record",
           "none, or a delete horizon took its place"),
    *timed("max_timestamp_ms", "largest time of its records", "none"),
    *timed("delete_horizon_ms", "when its tombstones or its marker may go", "none"),
    _LEADER_EPOCH,
    *_PRODUCER,
    Column("base_sequence", Kind.INT32, "sequence number of its first record", null="none"),
    Column("last_sequence", Kind.INT32, "sequence number of its last record; wraps after "
           "2147483647", null="none"),
    _TRANSACTIONAL,
    Column("control", Kind.BOOL, "whether it holds control records, which no consumer sees"),
    Column("control_type", Kind.STRING, f"of its first control record: {_CONTROL_TYPE}",
           null="no control batch, or its record does not decode"),
    Column("coordinator_epoch", Kind.INT32, "of a transaction marker", null="none"),
    Column("attributes", Kind.INT16, "the bits as stored"),
    Column("crc", Kind.UINT32, "as stored; CRC-32C for magic 2, CRC-32 before"),
    Column("crc_valid", Kind.BOOL, "whether the CRC matches; where not, the other columns may be "
           "wrong. The tables have no such batches", ways=DUMP),
    Column("term", Kind.INT64, "of Redpanda: the term in the name of its segment",
           null="it is Kafka's", ways=_SCAN | {Way.SOURCE}),
    Column("batch_type", Kind.STRING, "of Redpanda: what the batch is, such as raft_data",
           null="it is Kafka's", ways=_SCAN | {Way.SOURCE}),
), EVERY_WAY, type="batch")  # fmt: skip

_IN_CELLS = EVERY_WAY - JSON
"""Ways in which the size of a key is a column; JSON has the size inside the key."""
_WITHOUT_SECRETS = ", in a metadata log with stars for its secrets unless they are asked for"
_RECORDS = Table("records", "record", (
    *_OF_FILE,
    Column("batch_position", Kind.INT64, "byte in the file where its batch begins", "byte"),
    offset("offset", "its offset"),
    _TIMESTAMP_TYPE,
    *timed("timestamp_ms", "its time", "none"),
    _LEADER_EPOCH,
    *_PRODUCER,
    Column("sequence", Kind.INT32, "its sequence number", null="none"),
    _TRANSACTIONAL,
    Column("control", Kind.BOOL, "whether it is a control record, which no consumer sees"),
    Column("control_type", Kind.STRING, _CONTROL_TYPE,
           null="no control record, or it does not decode"),
    Column("control_record", Kind.OBJECT, "a control record decoded: version, type, name, data",
           null="no control record, or it does not decode", ways=DUMP),
    Column("control_error", Kind.STRING, "why a control record does not decode",
           null="it does, or is none", ways=DUMP),
    Column("crc", Kind.UINT32, "as stored in messages of magic 0 and 1", null="magic 2"),
    Column("header_count", Kind.INT32, "how many headers it has", "count",
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
    Column("key", Kind.BINARY, "the key", None, "the key is null", payload=Payload.FULL),
    Column("value", Kind.BINARY, f"the value{_WITHOUT_SECRETS}", None, "the value is null: a "
           "tombstone, where the log is compacted", payload=Payload.FULL),
    Column("headers", Kind.HEADERS, "its headers in their order; none is an empty list",
           payload=Payload.FULL),
), EVERY_WAY, type="record")  # fmt: skip

_SPANNED = (
    *timed("first_timestamp_ms", "least time that its batches tell", "they tell none"),
    *timed("last_timestamp_ms", "largest time that its batches tell", "they tell none"),
)
_SEGMENTS = Table("segments", "segment", (
    *_OF_SEGMENT,
    offset("next_segment", "base offset of the segment after it", "the active one"),
    Column("log_bytes", Kind.INT64, "size of the .log as it was listed", "bytes"),
    Column("offset_index_bytes", Kind.INT64, "size of the .index", "bytes", "there is none"),
    Column("time_index_bytes", Kind.INT64, "size of the .timeindex", "bytes", "there is none"),
    Column("transaction_index_bytes", Kind.INT64, "size of the .txnindex", "bytes",
           "there is none"),
    *timed("modified_ms", "when the .log was last written to", None),
    Column("read", Kind.BOOL, "whether the .log was read from start to end"),
    count("batches", "sound batches"),
    count("records", "records in sound batches"),
    count("transactional_batches", "of these batches, those of transactions"),
    count("control_batches", "of these batches, those with control records"),
    offset("first_offset", "base offset of the first sound batch", "there is none"),
    offset("last_offset", "largest offset of a sound batch", "there is none"),
    *_SPANNED,
    Column("first_leader_epoch", Kind.INT32, "of the first batch that has one", null="none has"),
    Column("last_leader_epoch", Kind.INT32, "of the last batch that has one", null="none has"),
    Column("batch_bytes", Kind.INT64, "of sound batches together", "bytes"),
    Column("largest_batch_bytes", Kind.INT64, "of the largest sound batch", "bytes"),
    count("damaged_ranges", "ranges of bytes that are no sound batch"),
    Column("damaged_bytes", Kind.INT64, "in these ranges together", "bytes"),
    Column("unused_bytes", Kind.INT64, "zeros at the end of an active segment", "bytes"),
), TABLES)  # fmt: skip

_NOT_LOOKED_AT: Final = "it could not be looked at"
_GAPS = Table("gaps", "range of missing offsets between batches", (
    *_DIR,
    offset("first_offset", "first offset that no sound batch covers"),
    offset("last_offset", "last one"),
    count("missing", "offsets from the first to the last"),
    Column("kind", Kind.STRING, "where they are missing",
           words=("head", "between-batches", "between-segments")),
    Column("reason", Kind.STRING, "as logtool gaps says"),
    Column("evidence", Kind.STRING, "what the reason rests on"),
    offset("before_segment", "segment of the batch before", "there is none"),
    offset("after_segment", "segment of the batch after it, or the last one, if empty"),
    Column("damaged", Kind.BOOL, "whether bytes that are no sound batch lie there"),
), _SCAN)  # fmt: skip
_PRODUCERS = Table("producers", "producer and epoch in a partition", (
    *_DIR,
    Column("producer_id", Kind.INT64, "id of the producer"),
    Column("producer_epoch", Kind.INT16, "epoch of the producer", null="none"),
    offset("first_offset", "base offset of its first batch with data"),
    offset("last_offset", "of its last batch with data"),
    Column("first_sequence", Kind.INT32, "of its first batch", null="it has none"),
    Column("last_sequence", Kind.INT32, "of its last batch", null="it has none"),
    count("batches", "its batches with data"),
    Column("records", Kind.INT64, "records in them", "count",
           "magic 0 and 1, which store no number"),
    *_SPANNED,
    count("sequence_breaks", "batches whose first sequence number is not the one after the last "
          "of the batch before"),
), _SCAN)  # fmt: skip
_TRANSACTIONS = Table("transactions", "transaction in a partition", (
    *_DIR,
    Column("producer_id", Kind.INT64, "id of the producer"),
    Column("producer_epoch", Kind.INT16, "epoch of the producer in its first batch", null="none"),
    offset("first_offset", "base offset of its first batch"),
    offset("last_offset", "of its marker; while it is open, of its last batch"),
    Column("outcome", Kind.STRING, "how it ended", words=("committed", "aborted", "open")),
    count("batches", "its batches with data"),
    Column("records", Kind.INT64, "records in them", "count",
           "magic 0 and 1, which store no number"),
    *timed("first_timestamp_ms", "least time that its batches tell", "they tell none"),
    *timed("last_timestamp_ms", "largest time that its batches and its marker tell",
           "they tell none"),
    Column("coordinator_epoch", Kind.INT32, "of the marker", null="it is open"),
), _SCAN)  # fmt: skip
_FINDINGS = Table("findings", "finding of logtool verify, and for each input that could not be "
                  "read", (
    Column("number", Kind.INT64, "rises in the order in which logtool verify tells them",
           ways=_SCAN),
    Column("code", Kind.STRING, "see logtool explain", null=_NOT_LOOKED_AT,
           pattern="^[a-z0-9-]+/[a-z0-9-]+$"),
    Column("severity", Kind.STRING, "unreadable: it could not be looked at",
           words=("error", "warning", "info", "unreadable")),
    Column("broker", Kind.STRING, "whether a broker does something about it",
           null=_NOT_LOOKED_AT,
           words=("always", "if-unclean", "never", "refuses-to-start")),
    Column("path", Kind.STRING, "the file or directory", null="it is about no single one"),
    *_LOG_DIR,
    Column("topic", Kind.STRING, "name of the topic", null="it is about no partition"),
    Column("partition", Kind.INT32, "number of the partition", null="it is about no partition"),
    Column("directory", Kind.STRING, "name of the partition dir", null="it is about none",
           ways=TABLES),
    offset("segment", "base offset of the segment", "it is not about one segment"),
    Column("position", Kind.INT64, "byte in the file", "byte", "it is about no single place"),
    Column("length", Kind.INT64, "bytes affected", "bytes", "it is about no bytes"),
    offset("first_offset", "first offset affected", "it is about no offsets"),
    offset("last_offset", "last offset affected", "it is about no offsets"),
    Column("message", Kind.STRING, "what was expected and what was found"),
    Column("next", Kind.STRING, "the command to run next", null="there is none"),
), _SCAN | JSON, type="finding")  # fmt: skip
FINDING: Final = replace(
    _FINDINGS, name="finding", each="finding", made_from="logtool.findings:Finding", ways=PRINTED,
    note="One thing that is wrong or worth knowing.", columns=tuple(
        replace(
            column, meaning="how grave it is" if column.name == "severity" else column.meaning,
            null=None if column.null == _NOT_LOOKED_AT else column.null,
            words=tuple(word for word in column.words if word != "unreadable"),
            kind=Kind.PATH if column.name == "path" else column.kind,
        )
        for column in _FINDINGS.by(Way.NDJSON)
    ),
)  # fmt: skip
"""The finding that `verify` prints; an input that could not be read is there an object of another
type."""
_REPLICAS = Table("replicas", "copy of a partition, of those that several of the log dirs hold", (
    *_DIR,
    Column("copies", Kind.INT32, "log dirs of this run that hold the partition, each a row",
           "count"),
    offset("first_offset", "of this copy", "it is empty"),
    offset("last_offset", "of this copy", "it is empty"),
    Column("last_leader_epoch", Kind.INT32, "of the last batch", null="it is empty"),
    count("batches", "sound ones"),
    count("shared_batches", "of these, how many every other copy has too, the same in CRC, size "
          "and all that no CRC covers"),
    offset("diverges_at", "least offset at which another copy has a batch that is not the same, "
           "nor what compaction leaves of it, or one that overlaps", "nowhere"),
    count("only_here", "batches at offsets where no other copy has one, inside the range of "
          "offsets of all copies: lost, damaged or compacted there"),
    count("behind", "offsets that the copy with the largest log end is ahead"),
), _SCAN)  # fmt: skip
_KAFKA = Table("kafka", "record that a consumer would be given", (
    Column("key", Kind.BINARY, "the key", null="the key is null"),
    Column("value", Kind.BINARY, "the value", null="the value is null"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    offset("offset", "its offset"),
    Column("timestamp", Kind.TIMESTAMP, "its time; one millisecond before 1970 where it has none",
           "UTC", "no calendar has it"),
    Column("timestampType", Kind.INT32, "0 CreateTime, 1 LogAppendTime, -1 magic 0, which has "
           "none"),
    Column("headers", Kind.KAFKA_HEADERS, "its headers; with the option includeHeaders",
           null="it has none"),
), frozenset({Way.SOURCE}), "Exactly the columns and types of spark.read.format(\"kafka\").",
)  # fmt: skip

_HISTORY = Table("history", "run and topic", tuple(
    replace(column, ways=frozenset({Way.HISTORY}))
    for column in (
        Column("run_id", Kind.STRING, "the run, by its id"),
        *timed("at_ms", "when the run had read the logs", None),
        Column("topic", Kind.STRING, "name of the topic",
               null="partition dirs without one, and findings about log dirs"),
        count("partition_dirs", "partition dirs, each copy by itself"),
        count("segments", "segments in them"),
        Column("log_bytes", Kind.INT64, "of all .log files", "bytes"),
        count("records", "in sound batches"),
        Column("damaged_bytes", Kind.INT64, "that no sound batch covers", "bytes"),
        *timed("last_timestamp_ms", "largest that a sound batch tells", "none does"),
        count("errors", "findings that are errors"),
        count("warnings", "findings that are warnings"),
    )
), frozenset({Way.HISTORY}), "Every run of scan has it, under the name _history.")  # fmt: skip

ALL: Final = {
    table.name: table
    for table in (_SEGMENTS, _BATCHES, _RECORDS, _GAPS, _PRODUCERS, _TRANSACTIONS, _FINDINGS,
                  _REPLICAS, _KAFKA, _HISTORY)
}  # fmt: skip
"""Every table by its name."""
