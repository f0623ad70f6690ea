"""The objects that `txns` prints: logtool.txns/1."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from logtool.schemas.columns import JSON, Column, Kind, Table, count, offset, timed
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

_NO_NAME = "the directory is not named TOPIC-NUMBER"
_NO_ENTRY = "no entry is known"
_IN_PLACE = (
    Column("path", Kind.PATH, "the partition dir, or the log", value="audited.path"),
    Column("topic", Kind.STRING, "name of the topic", null=_NO_NAME, value="audited.topic"),
    Column("partition", Kind.INT32, "number of the partition", null=_NO_NAME,
           value="audited.partition"),
)  # fmt: skip


PARTITION: Final = Table("partition", "partition", (
    Column("path", Kind.PATH, "the partition dir, or the log"),
    Column("topic", Kind.STRING, "name of the topic", null=_NO_NAME),
    Column("partition", Kind.INT32, "number of the partition", null=_NO_NAME),
    count("segments", "segments"),
    offset("first_offset", "base offset of the first segment", None, "start_offset"),
    offset("log_end_offset", "end of the log", None, "end_offset"),
    offset("high_watermark", "high watermark in replication-offset-checkpoint",
           "the checkpoint has no row of the partition"),
    offset("last_stable_offset", "offset up to which consumers with read_committed can read once "
           "all records are replicated"),
    offset("last_stable_offset_later", "last stable offset once the transactions that end by "
           "themselves have ended; log_end_offset if no other is open"),
    Column("pinned_by", Kind.INT64, "id of the producer whose open transaction holds back the last "
           "stable offset", null="no transaction is open"),
    count("producers", "producers known at the end of the log", "producer_count"),
    count("open", "transactions without a marker, including hanging ones", "open_count"),
    count("hanging", "open transactions that no coordinator ends",
          "hanging_count"),
    count("aborted", "transactions that were aborted", "aborted_count"),
    count("committed", "transactions that were committed", "committed_count"),
    Column("damaged", Kind.BOOL, "whether damage may have destroyed a marker"),
    Column("unread", Kind.BOOL, "whether a segment could not be read, so that its markers are not "
           "known", ways=JSON),
), note="One partition: the numbers of producers and transactions in its log.",
    type="partition", made_from="logtool.txns.open_transactions:PartitionTransactions")  # fmt: skip


def _entry_state(of: str, null: str | None) -> tuple[Column, ...]:
    """Return the columns of the state of an entry; with `null` there may be no entry."""

    def null_or(why: str) -> str:
        return why if null is None else f"{null}, or {why}"

    def timed_state(name: str, meaning: str, why: str) -> Iterator[Column]:
        for one in timed(name, meaning, null_or(why)):
            yield replace(one, value=f"{of}.{one.name}")

    return (
        Column("state", Kind.STRING, "state of the entry, as kafka-transactions.sh prints it",
               null=null, value=f"{of}.state"),
        Column("producer_id", Kind.INT64, "id of the producer in the entry", null=null,
               value=f"{of}.producer_id"),
        Column("producer_epoch", Kind.INT16, "epoch of the producer in the entry", null=null,
               value=f"{of}.producer_epoch"),
        *timed_state("started_ms", "time at which the transaction began",
                     "no transaction has begun"),
        Column("age_ms", Kind.INT64, "time since the transaction began", "ms",
               null_or("no transaction has begun"), value=f"{of}.age_ms"),
        Column("timeout_ms", Kind.INT64, "time after which the coordinator aborts a transaction",
               "ms", null, value=f"{of}.timeout_ms"),
        *timed_state("times_out_ms", "time at which the coordinator aborts the transaction",
                     "the entry has no such time"),
        *timed_state("last_update_ms", "time of the last change of the entry",
                     "the entry has no such time"),
    )  # fmt: skip


_ACCOUNT = Table("account", "open transaction that was looked up in __transaction_state", (
    Column("relation", Kind.STRING, "relation of the entries to the transaction; listed: an entry "
           "lists the transaction and the coordinator will end it; not-listed: the entry of the "
           "producer does not list the transaction; no-entry: no entry has the producer; not-here: "
           "the entry may be in a partition of __transaction_state that was not given",
           words=("listed", "not-listed", "no-entry", "not-here"),
           value="account.relation"),
    Column("transactional_id", Kind.STRING, "transactional id of the producer",
           null="not known", value="account.transactional_id"),
    *_entry_state("entry", _NO_ENTRY),
    offset("after_marker", "offset of a marker before the transaction that is not older than the "
           "last update of the entry, so that the transaction began after that of the entry",
           "no marker shows that", "account.after_marker"),
    Column("may_be_committed", Kind.BOOL, "whether an abort may lose committed records: the entry "
           "is CompleteCommit, and no marker shows that the transaction began after that commit; "
           "or is_older is true, and a lost entry may have committed the transaction",
           value="account.may_be_committed"),
    offset("committed_at", "offset of the entry that committed the transaction; the partition has "
           "lost the marker", "the transaction is not known to be committed",
           "account.committed_at"),
    Column("is_older", Kind.BOOL, "whether the entry has an older epoch than the transaction, so "
           "that newer entries are lost, or not here", value="account.is_older"),
), note="An open transaction according to the entries of __transaction_state.",
    made_from="logtool.txns.objects:PrintedAccount")  # fmt: skip
TRANSACTION: Final = Table("transaction", "transaction in a partition", (
    *_IN_PLACE,
    Column("state", Kind.STRING, "state of the transaction; hanging: no coordinator ends it; "
           "unknown: open for longer than a coordinator allows, or until its broker stopped, but "
           "the state of its coordinator was not read or is lost; "
           "marker-lost: committed by its coordinator, but the log has "
           "lost the marker", words=("open", "hanging", "unknown", "marker-lost",
                                       "aborted", "committed"),
           value="one.state"),
    Column("producer_id", Kind.INT64, "id of the producer", value="one.producer_id"),
    Column("producer_epoch", Kind.INT16, "epoch of the producer in the first batch",
           null="the first batch is missing", value="one.producer_epoch"),
    offset("first_offset", "first offset of the transaction", None, "one.first_offset"),
    offset("last_offset", "offset of the marker; if the transaction is open, offset of the last "
           "batch",
           "the transaction is open and the last batch is missing", "one.last_offset"),
    Column("started_ms", Kind.INT64, "time of the first record, set by the client",
           "ms since 1970", "the first batch or its time is missing", value="one.started_ms"),
    Column("started", Kind.TIMESTAMP, "started_ms as a timestamp", "UTC",
           "started_ms is null, or outside the range of a timestamp"),
    Column("age_ms", Kind.INT64, "time since the first record", "ms",
           "the transaction has ended, or started_ms is null", value="one.age_ms"),
    Column("pins_last_stable_offset", Kind.BOOL, "whether the transaction holds back the last "
           "stable offset",
           value="one.pins"),
    Column("abort", Kind.STRING, "command line that aborts the transaction on a broker",
           null="the transaction is not known to hang, its records may be committed ones, or no "
           "such command is known"),
    Column("ask", Kind.STRING, "command line that asks a running cluster whether the transaction "
           "hangs",
           null="the transaction has ended, abort has its command, its coordinator will end it, "
           "or no such command is known"),
    Column("describe", Kind.STRING, "command line that shows the transactional id at its "
           "coordinator in a running cluster",
           null="ask is null, or the transactional id is not known", ways=JSON),
    Column("reason", Kind.STRING, "why the transaction hangs, or counts as "
           "committed; if its state is unknown, what is missing to know it",
           null="the state is another one", ways=JSON),
    Column("after_restart", Kind.STRING, "what a start of the application does while the "
           "transaction hangs",
           null="the coordinator does not hand out an epoch that the transaction has", ways=JSON),
    Column("advice", Kind.STRING, "how the transaction ends by itself, or why not to abort it",
           null="the transaction has ended, or it is not known that a coordinator will end it"),
    Column("coordinator", Kind.OBJECT, "entry of the coordinator in __transaction_state",
           null="the transaction has ended, or __transaction_state was not read", of=_ACCOUNT),
), note="One transaction. An open transaction has advice (if its coordinator will end it), the "
        "command that aborts it (if it hangs), or the command that asks a cluster about it (also "
        "if it hangs and its records may be committed ones).",
    type="transaction", made_from="logtool.txns.objects:PrintedTransaction")  # fmt: skip
_ENTRY_PARTITION = Table("entry_partition", "partition that an entry lists", (
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    Column("state", Kind.STRING, "state of the transaction in the partition; not-here: the "
           "partition was not read",
           words=("open", "committed", "aborted", "nothing", "not-here")),
), made_from="logtool.txns.joining:PartOfEntry")  # fmt: skip
COORDINATOR: Final = Table("coordinator", "transactional id", (
    Column("path", Kind.PATH, "the partition dir of __transaction_state",
           value="joined.entry.path"),
    Column("topic", Kind.STRING, "name of the topic", words=("__transaction_state",)),
    Column("partition", Kind.INT32, "number of the partition of __transaction_state",
           value="joined.entry.number"),
    offset("offset", "offset of the last record of the transactional id", None,
           "joined.entry.offset"),
    Column("transactional_id", Kind.STRING, "the transactional id",
           value="joined.entry.transactional_id"),
    *_entry_state("now", None),
    Column("previous_producer_id", Kind.INT64, "previous producer id of the transactional id",
           null="the entry has no such value"),
    Column("next_producer_id", Kind.INT64, "next producer id of the transactional id",
           null="the entry has no such value"),
    Column("next_producer_epoch", Kind.INT16, "next producer epoch of the transactional id",
           null="the entry has no such value"),
    Column("transaction_version", Kind.INT16, "transaction version of the client; from 2 on each "
           "transaction has an epoch of its own",
           value="joined.entry.transaction_version"),
    Column("log_epoch", Kind.INT16, "newest epoch of the producer in the partitions that were "
           "read: newer entries are lost, or not here", null="it is not newer than that of the "
           "entry", ways=JSON),
    Column("log_epoch_in", Kind.STRING, "partition with log_epoch, as topic-partition",
           null="log_epoch is null", ways=JSON),
    Column("contradiction", Kind.STRING, "log_epoch in words", null="log_epoch is null", ways=JSON),
    count("open", "partitions in which the transaction is open", "joined.open"),
    count("committed", "partitions in which the transaction is committed", "joined.committed"),
    count("aborted", "partitions in which the transaction is aborted", "joined.aborted"),
    count("nothing", "partitions without a trace of the transaction", "joined.nothing"),
    count("not_here", "partitions that were not read", "joined.not_here"),
    Column("partitions", Kind.OBJECT, "partitions that the entry lists", value="joined.partitions",
           of=_ENTRY_PARTITION, many=True),
    Column("advice", Kind.STRING, "what the coordinator will do to end the transaction",
           null="there is no transaction to end"),
    Column("terminate", Kind.STRING, "command line that makes the coordinator abort the "
           "transaction",
           null="the transaction is not ongoing"),
), note="One transactional id in __transaction_state, from its last record. In each of its "
        "partitions the transaction is open, ended by a marker, or absent, or the "
        "partition was not read.",
    type="coordinator", made_from="logtool.txns.objects:PrintedEntry")  # fmt: skip
PRODUCER: Final = Table("producer", "producer in a partition", (
    *_IN_PLACE,
    Column("producer_id", Kind.INT64, "id of the producer"),
    Column("producer_epoch", Kind.INT16, "epoch of the producer", value="one.epoch"),
    Column("last_sequence", Kind.INT32, "last sequence number", null="the entry has no such value"),
    offset("last_offset", "last offset with data", "the entry has no such value"),
    *timed("last_timestamp_ms", "time of the last batch or marker", "the entry has no such value"),
    Column("coordinator_epoch", Kind.INT32, "epoch of the coordinator that wrote the last marker",
           null="the producer has no marker"),
    offset("transaction_first_offset", "first offset of the open transaction",
           "no transaction is open"),
), note="The state of one producer at the end of the log.",
    type="producer", made_from="logtool.txns.objects:PrintedProducer")  # fmt: skip
DOCUMENT: Final = Document(
    name="txns",
    title="Objects that logtool txns prints",
    tables=(PARTITION, TRANSACTION, COORDINATOR, PRODUCER, FINDING),
)
