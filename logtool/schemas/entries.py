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

_PATH = Column(
    "path", Kind.STRING, "path of the file, as it was given or found below a path that was given"
)
_KIND = "kind of the file"
AUTOMQ: Final = ("automq-object", "automq-record", "automq-range-index", "automq-reservation")
"""The kinds of entries in objects of AutoMQ, which are files of one kind."""
_POSITION = Column("position", Kind.INT64, "byte in the file where the entry begins", "byte")
_ENTRY = Column("entry", Kind.INT64, "number of the entry, from 0", "count")
_RELATIVE = (
    Column("offset", Kind.INT64, "offset of the entry", "offset"),
    Column("relative_offset", Kind.INT64, "offset as stored: less the base offset of the segment"),
)  # fmt: skip

FILE: Final = Table("file", "file; the row comes before its entries", (
    _PATH,
    Column("kind", Kind.STRING, _KIND),
    Column("state", Kind.STRING, "state of the file, from the end of its name",
           words=("live", "deleted", "cleaned", "swap", "part", "tmp")),
    Column("topic", Kind.STRING, "name of the topic", null="the file is not in a partition dir"),
    Column("partition", Kind.INT32, "number of the partition",
           null="the file is not in a partition dir"),
    Column("base_offset", Kind.INT64, "offset in the name of the file",
           "offset", "the name has no offset"),
    Column("epoch", Kind.INT32, "epoch in the name of the file", null="the name has no epoch"),
    Column("size", Kind.INT64, "size of the file", "bytes"),
    Column("entries", Kind.INT64, "entries in the file", "count", "the file holds batches"),
    Column("padding", Kind.INT64, "preallocated zeros after the entries", "bytes",
           "files of this kind have no padding"),
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
        Column("log_position", Kind.INT64, "byte in the .log to which the entry points",
               "byte in the .log"),
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
        Column("last_offset", Kind.INT64, "offset of the transaction marker", "offset"),
        Column("last_stable_offset", Kind.INT64, "last stable offset at the time of the abort",
               "offset"),
        entry=True,
    ),
    _entries(
        "producer-snapshot", "producer in a producer snapshot",
        Column("producer_id", Kind.INT64, "id of the producer"),
        Column("producer_epoch", Kind.INT16, "epoch of the producer"),
        Column("coordinator_epoch", Kind.INT32, "coordinator epoch of the last transaction marker "
               "of the producer; -1: no marker"),
        Column("current_txn_first_offset", Kind.INT64, "first offset of the open transaction of "
               "the producer",
               "offset", "no transaction is open"),
        *_stamped("time of the last batch of the producer; -1: no time"),
        Column("first_sequence", Kind.INT32, "first sequence number of the last batch of the "
               "producer",
               null="the snapshot has no batch of the producer"),
        Column("last_sequence", Kind.INT32, "last sequence number of the last batch of the "
               "producer",
               null="the snapshot has no batch of the producer"),
        Column("last_offset", Kind.INT64, "last offset of the last batch of the producer", "offset",
               "the snapshot has no batch of the producer"),
        Column("offset_delta", Kind.INT32, "difference between first and last offset of the last "
               "batch of the producer",
               null="the snapshot has no batch of the producer"),
    ),
    _entries(
        "leader-epoch-checkpoint", "leader epoch",
        Column("leader_epoch", Kind.INT32, "the leader epoch"),
        Column("start_offset", Kind.INT64, "first offset of the leader epoch", "offset"),
    ),
    _entries(
        "partition-metadata", "partition.metadata",
        Column("version", Kind.INT32, "version of the file", null="the file has no version"),
        Column("topic_id", Kind.STRING, "id of the topic", null="the file has no topic id"),
    ),
    _entries(
        "meta-properties", "line of meta.properties",
        Column("key", Kind.STRING, "name of the property"),
        Column("value", Kind.STRING, "value of the property"),
    ),
    _entries(
        "clean-shutdown", "marker of a clean shutdown",
        Column("version", Kind.INT32, "version of the file", null="the file has no version"),
        Column("broker_epoch", Kind.INT64, "epoch of the broker", null="the file has no epoch"),
    ),
    _entries(
        "quorum-state", "quorum-state",
        Column("data_version", Kind.INT32, "version of the file", null="the file has no version"),
        Column("leader_epoch", Kind.INT32, "epoch of the quorum", null="the file has no epoch"),
        Column("leader_id", Kind.INT32, "id of the leader", null="the file has no leader"),
        Column("voted_id", Kind.INT32, "id of the node that got the vote",
               null="the file has no vote"),
        Column("voted_directory_id", Kind.STRING, "directory id of the voter that got the vote",
               null="the file has no directory id"),
        Column("current_voters", Kind.NUMBERS, "ids of the voters", null="the file has no voters"),
        Column("cluster_id", Kind.OBJECT, "value of clusterId in the file",
               null="the file has no clusterId"),
        Column("applied_offset", Kind.OBJECT, "value of appliedOffset in the file",
               null="the file has no appliedOffset"),
    ),
    _entries(
        "redpanda-segment", "batch in a Redpanda segment",
        Column("size", Kind.INT64, "size of the whole batch", "bytes"),
        Column("batch_type", Kind.STRING, "type of the batch, as Redpanda calls it; a number for a "
               "type that logtool does not know"),
        Column("term", Kind.INT64, "Raft term of the leader, from the name of the segment"),
        Column("raft_base_offset", Kind.INT64, "first Raft offset of the batch", "offset"),
        Column("raft_last_offset", Kind.INT64, "last Raft offset of the batch", "offset"),
        Column("kafka_base_offset", Kind.INT64, "first Kafka offset of the batch", "offset",
               "batches of this type have no Kafka offset, or the files do not contain it"),
        Column("kafka_last_offset", Kind.INT64, "last Kafka offset of the batch", "offset",
               "batches of this type have no Kafka offset, or the files do not contain it"),
        Column("record_count", Kind.INT32, "number of records, from the header of the batch"),
        Column("codec", Kind.STRING, "none, gzip, snappy, lz4, zstd, or unknown(N)"),
        Column("timestamp_type", Kind.STRING, "origin of the time: the producer or the broker",
               words=("CreateTime", "LogAppendTime")),
        *timed("base_timestamp_ms", "time of the first record", "none"),
        *timed("max_timestamp_ms", "largest time of the records", "none"),
        Column("producer_id", Kind.INT64, "id of the producer", null="none"),
        Column("producer_epoch", Kind.INT16, "epoch of the producer", null="none"),
        Column("base_sequence", Kind.INT32, "sequence number of the first record", null="none"),
        Column("transactional", Kind.BOOL, "true if the batch belongs to a transaction"),
        Column("control", Kind.BOOL, "true if the batch holds control records"),
        Column("attributes", Kind.INT16, "attributes in the header of the batch, as stored"),
        Column("crc", Kind.UINT32, "CRC-32C of the batch, as stored; the same batch in Kafka has "
               "the same CRC"),
        Column("header_crc", Kind.UINT32, "CRC-32C of the header, as stored"),
    ),
    _entries(
        "redpanda-base-index", "entry of a Redpanda base index",
        Column("raft_offset", Kind.INT64, "first Raft offset of the batch to which the entry "
               "points", "offset"),
        Column("relative_offset", Kind.INT64, "offset as stored"),
        *_stamped("time of the batch to which the entry points"),
        Column("log_position", Kind.INT64, "byte in the segment to which the entry points",
               "byte in the segment"),
        Column("version", Kind.INT16, "version of the index"),
        Column("base_offset", Kind.INT64, "offset to which the offsets of the index are relative",
               "offset"),
        Column("max_offset", Kind.INT64, "last Raft offset of the segment, from the index",
               "offset"),
        entry=True,
    ),
    _entries(
        "automq-object", "entry in the index block of an object of AutoMQ",
        Column("stream", Kind.INT64, "id of the stream"),
        Column("start_offset", Kind.INT64, "first offset of the stream in the blocks"),
        Column("end_offset", Kind.INT64, "offset after the last one in the blocks"),
        Column("record_count", Kind.INT32, "records of the stream in the blocks"),
        Column("block_position", Kind.INT64, "byte in the object where the blocks begin", "byte"),
        Column("block_size", Kind.INT32, "size of the blocks", "bytes"),
        Column("linked_object", Kind.INT64, "id of the object with the blocks",
               null="the object itself has the blocks"),
        entry=True,
    ),
    _entries(
        "automq-record", "record of a stream in an object of AutoMQ",
        Column("wal_offset", Kind.INT64, "offset of the record in the WAL",
               null="the object is not one of a WAL"),
        Column("stream", Kind.INT64, "id of the stream; -1: a record without content"),
        Column("stream_epoch", Kind.INT64, "epoch of the stream"),
        Column("base_offset", Kind.INT64, "first offset of the stream in the record"),
        Column("end_offset", Kind.INT64, "offset after the last one in the record"),
        Column("size", Kind.INT32, "size of the content", "bytes"),
        Column("batches", Kind.INT32, "batches of Kafka in the content", "count"),
        Column("link", Kind.BOOL, "true if the content says in which WAL the data is"),
    ),
    _entries(
        "automq-range-index", "range in the index of a node of AutoMQ",
        Column("stream", Kind.INT64, "id of the stream"),
        Column("start_offset", Kind.INT64, "first offset of the range"),
        Column("end_offset", Kind.INT64, "offset after the last one of the range"),
        Column("object", Kind.INT64, "id of the object with the range"),
    ),
    _entries(
        "automq-reservation", "owner of a WAL of AutoMQ",
        Column("node", Kind.INT64, "id of the node"),
        Column("node_epoch", Kind.INT64, "epoch of the node"),
        Column("failover", Kind.BOOL, "true if another node recovers the WAL"),
    ),
    _entries(
        "offset-checkpoint", "partition in an offset checkpoint",
        Column("topic", Kind.STRING, "name of the topic"),
        Column("partition", Kind.INT32, "number of the partition"),
        Column("offset", Kind.INT64, "offset of the partition in the checkpoint", "offset"),
        kinds=CHECKPOINTS,
    ),
)  # fmt: skip

ALL: Final = {table.name: table for table in (FILE, *_TABLES)}
"""Every table by its name."""
