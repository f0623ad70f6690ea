"""The columns of the entries that `dump` and `dump-index` print of files without batches.

Each kind of file has one table, named after its ``kind``; the row of `FILE` comes before the
entries of a file.
"""

from collections.abc import Iterable
from typing import Final

from logtool.schemas.columns import JSON, Column, Kind, Table, Way, timed

_WAYS: Final = frozenset({Way.NDJSON, Way.CSV})
CHECKPOINTS: Final = (
    "recovery-point-offset-checkpoint", "replication-offset-checkpoint",
    "log-start-offset-checkpoint", "cleaner-offset-checkpoint",
)  # fmt: skip
"""The kinds of file that are offset checkpoints: all of one table."""

_PATH = Column("path", Kind.STRING, "the file, as it was given or found below what was given")
_KIND = "what sort of file it is"
_POSITION = Column("position", Kind.INT64, "byte in the file where the entry begins", "byte")
_ENTRY = Column("entry", Kind.INT64, "number of the entry, from 0", "count")
_RELATIVE = (
    Column("offset", Kind.INT64, "the offset", "offset"),
    Column("relative_offset", Kind.INT64, "the same as it is stored, less the base offset of the "
           "segment"),
)  # fmt: skip

FILE: Final = Table("file", "file, before what it holds", (
    _PATH,
    Column("kind", Kind.STRING, _KIND),
    Column("state", Kind.STRING, "what the end of its name says",
           words=("live", "deleted", "cleaned", "swap", "part", "tmp")),
    Column("topic", Kind.STRING, "name of the topic", null="it lies in no partition dir"),
    Column("partition", Kind.INT32, "number of the partition", null="it lies in no partition dir"),
    Column("base_offset", Kind.INT64, "the offset in its name", "offset", "its name has none"),
    Column("epoch", Kind.INT32, "the epoch in its name", null="its name has none"),
    Column("size", Kind.INT64, "size of the file", "bytes"),
    Column("entries", Kind.INT64, "entries in it", "count", "it holds batches"),
    Column("padding", Kind.INT64, "preallocated zeros after the entries", "bytes",
           "there are never any"),
), JSON, type="file")  # fmt: skip


def _stamped(meaning: str) -> Iterable[Column]:
    """Return a time for people first: entries are looked at in tables."""
    return reversed(tuple(timed("timestamp_ms", meaning, None)))


def _entries(
    name: str, row: str, *columns: Column, kinds: tuple[str, ...] = (), entry: bool = False
) -> Table:
    common = (_PATH, Column("kind", Kind.STRING, _KIND, words=kinds or (name,)), _POSITION)
    chosen = (*common, *((_ENTRY,) if entry else ()), *columns)
    return Table(name, row, chosen, _WAYS, type="entry")


_TABLES = (
    _entries(
        "offset-index", "entry of an offset index", *_RELATIVE,
        Column("log_position", Kind.INT64, "byte in the .log that it points at", "byte in the "
               ".log"),
        entry=True,
    ),
    _entries(
        "time-index", "entry of a time index",
        *_stamped("largest time of the records up to the offset"), *_RELATIVE,
        entry=True,
    ),
    _entries(
        "transaction-index", "aborted transaction in a transaction index",
        Column("version", Kind.INT16, "version of the entry"),
        Column("producer_id", Kind.INT64, "id of the producer"),
        Column("first_offset", Kind.INT64, "first offset of the transaction", "offset"),
        Column("last_offset", Kind.INT64, "offset of its marker", "offset"),
        Column("last_stable_offset", Kind.INT64, "last stable offset when it was aborted",
               "offset"),
        entry=True,
    ),
    _entries(
        "producer-snapshot", "producer in a producer snapshot",
        Column("producer_id", Kind.INT64, "id of the producer"),
        Column("producer_epoch", Kind.INT16, "epoch of the producer"),
        Column("coordinator_epoch", Kind.INT32, "of its last transaction marker; -1: none"),
        Column("current_txn_first_offset", Kind.INT64, "first offset of its open transaction",
               "offset", "it has none open"),
        *_stamped("time of its last batch; -1: none"),
        Column("first_sequence", Kind.INT32, "first sequence number of its last batch",
               null="no batch is remembered"),
        Column("last_sequence", Kind.INT32, "last sequence number of its last batch",
               null="no batch is remembered"),
        Column("last_offset", Kind.INT64, "last offset of its last batch", "offset",
               "no batch is remembered"),
        Column("offset_delta", Kind.INT32, "from the first to the last offset of its last batch",
               null="no batch is remembered"),
    ),
    _entries(
        "leader-epoch-checkpoint", "leader epoch",
        Column("leader_epoch", Kind.INT32, "the epoch"),
        Column("start_offset", Kind.INT64, "offset at which it began", "offset"),
    ),
    _entries(
        "partition-metadata", "partition.metadata",
        Column("version", Kind.INT32, "version of the file", null="the file does not say"),
        Column("topic_id", Kind.STRING, "id of the topic", null="the file does not say"),
    ),
    _entries(
        "meta-properties", "line of meta.properties",
        Column("key", Kind.STRING, "name of the property"),
        Column("value", Kind.STRING, "its value"),
    ),
    _entries(
        "clean-shutdown", "marker of a clean shutdown",
        Column("version", Kind.INT32, "version of the file", null="the file does not say"),
        Column("broker_epoch", Kind.INT64, "epoch of the broker", null="the file does not say"),
    ),
    _entries(
        "quorum-state", "quorum-state",
        Column("data_version", Kind.INT32, "version of the file", null="the file does not say"),
        Column("leader_epoch", Kind.INT32, "epoch of the quorum", null="the file does not say"),
        Column("leader_id", Kind.INT32, "node that leads", null="the file does not say"),
        Column("voted_id", Kind.INT32, "node that was voted for", null="the file does not say"),
        Column("voted_directory_id", Kind.STRING, "log dir that was voted for",
               null="the file does not say"),
        Column("current_voters", Kind.NUMBERS, "nodes that vote", null="the file does not say"),
        Column("cluster_id", Kind.OBJECT, "whatever the file has as clusterId",
               null="the file does not say"),
        Column("applied_offset", Kind.OBJECT, "whatever the file has as appliedOffset",
               null="the file does not say"),
    ),
    _entries(
        "redpanda-segment", "batch in a segment of Redpanda",
        Column("size", Kind.INT64, "of the whole batch", "bytes"),
        Column("batch_type", Kind.STRING, "what it is for, in Redpanda's words; a number where "
               "the type is of a later release"),
        Column("term", Kind.INT64, "Raft term of its leader, from the name of the segment"),
        Column("raft_base_offset", Kind.INT64, "its first Raft offset", "offset"),
        Column("raft_last_offset", Kind.INT64, "its last Raft offset", "offset"),
        Column("kafka_base_offset", Kind.INT64, "its first Kafka offset", "offset",
               "its type has none, or the files do not tell"),
        Column("kafka_last_offset", Kind.INT64, "its last Kafka offset", "offset",
               "its type has none, or the files do not tell"),
        Column("record_count", Kind.INT32, "records in it as its header says"),
        Column("codec", Kind.STRING, "none, gzip, snappy, lz4, zstd, or unknown(N)"),
        Column("timestamp_type", Kind.STRING, "who set the time: the producer or the broker",
               words=("CreateTime", "LogAppendTime")),
        *timed("base_timestamp_ms", "time of its first record", "none"),
        *timed("max_timestamp_ms", "largest time of its records", "none"),
        Column("producer_id", Kind.INT64, "id of the producer", null="none"),
        Column("producer_epoch", Kind.INT16, "epoch of the producer", null="none"),
        Column("base_sequence", Kind.INT32, "sequence number of its first record", null="none"),
        Column("transactional", Kind.BOOL, "whether it belongs to a transaction"),
        Column("control", Kind.BOOL, "whether it holds control records"),
        Column("attributes", Kind.INT16, "the attributes of its header, as stored"),
        Column("crc", Kind.UINT32, "its CRC-32C, as stored: that of the same batch in Kafka"),
        Column("header_crc", Kind.UINT32, "CRC-32C of its header, as stored"),
    ),
    _entries(
        "redpanda-base-index", "entry of a base index of Redpanda",
        Column("raft_offset", Kind.INT64, "first Raft offset of the batch it leads to", "offset"),
        Column("relative_offset", Kind.INT64, "the same as it is stored"),
        *_stamped("time of that batch"),
        Column("log_position", Kind.INT64, "byte in the segment that it points at", "byte in the "
               "segment"),
        Column("version", Kind.INT16, "version of the index"),
        Column("base_offset", Kind.INT64, "the offset to which those of the index are relative",
               "offset"),
        Column("max_offset", Kind.INT64, "last Raft offset of the segment, as the index has it",
               "offset"),
        entry=True,
    ),
    _entries(
        "offset-checkpoint", "partition in an offset checkpoint",
        Column("topic", Kind.STRING, "name of the topic"),
        Column("partition", Kind.INT32, "number of the partition"),
        Column("offset", Kind.INT64, "the offset of it that the file is about", "offset"),
        kinds=CHECKPOINTS,
    ),
)  # fmt: skip

ALL: Final = {table.name: table for table in (FILE, *_TABLES)}
"""Every table by its name."""
