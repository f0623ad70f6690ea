"""The objects that `watermark` and `watermark simulate` print: logtool.watermark/2."""

from typing import Final

from logtool.schemas.columns import Column, Kind, Table, offset
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

_NO_ID = "its node id is not known"
_NOT_LOADED = "no broker comes up with the replica"
_NO_WATERMARK = f"{_NOT_LOADED}, or it keeps no high watermark (Redpanda)"
_NO_EPOCH = f"{_NOT_LOADED}, or its log has no leader epoch"


def _count(name: str, meaning: str, null: str | None = None, value: str | None = None) -> Column:
    return Column(name, Kind.INT64, meaning, "count", null, value=value)


def _node(name: str, meaning: str, null: str | None = _NO_ID, value: str | None = None) -> Column:
    return Column(name, Kind.INT32, meaning, null=null, value=value)


def _place(prefix: str = "") -> tuple[Column, ...]:
    return (
        Column("topic", Kind.STRING, "name of the topic", value=f"{prefix}topic"),
        Column("partition", Kind.INT32, "number of the partition", value=f"{prefix}partition"),
    )


REPLICA: Final = Table("replica", "replica of a partition", (
    Column("path", Kind.PATH, "the partition dir"),
    *_place(),
    Column("topic_id", Kind.STRING, "id of the topic in partition.metadata",
           null="nothing can be read there"),
    _node("node", "id of its node"),
    Column("outcome", Kind.STRING, "how the load ends; stray: the broker puts the replica aside",
           words=("loads", "refuses", "offline", "unknown", "stray")),
    Column("reason", Kind.STRING, "why no broker comes up with it", null="no reason was found",
           value="failure"),
    offset("recovery_point", "checkpointed recovery point", "the checkpoint has no row of it"),
    offset("high_watermark", "checkpointed high watermark", "the checkpoint has no row of it",
           "checkpointed"),
    offset("log_start_offset", "start of the log", _NOT_LOADED, "offsets.log_start"),
    offset("initial_high_watermark", "high watermark with which the broker begins", _NO_WATERMARK,
           "offsets.high_watermark"),
    offset("committed_offset", "offset below which its records are known to have been committed",
           _NO_WATERMARK, "offsets.committed"),
    offset("last_stable_offset", "offset below which every transaction is decided", _NOT_LOADED,
           "offsets.last_stable"),
    offset("log_end_offset", "end of the log after the load", _NOT_LOADED, "offsets.log_end"),
    _count("uncommitted_records", "records from the high watermark to the end of the log",
           _NO_WATERMARK, "offsets.uncommitted_records"),
    Column("leader_epoch", Kind.INT32, "last leader epoch", null=_NO_EPOCH,
           value="offsets.leader_epoch"),
    offset("epoch_start_offset", "first offset of this leader epoch", _NO_EPOCH,
           "offsets.epoch_start"),
    Column("tail", Kind.STRING, "sound, or the code of what is wrong at the end of the log"),
    _count("acknowledged_gone", "offsets below the checkpointed high watermark that the log of "
           "this replica has lost"),
    _count("lost_records", "sound records that the broker cuts when it loads the log"),
), note="One replica as its broker would load it. High watermark, last stable offset and log end "
        "are exclusive.",
    type="replica", made_from="logtool.watermark.replica:Replica")  # fmt: skip
_UNCOUNTED = "they cannot be counted"
GROUP: Final = Table("group", "partition", (
    *_place(),
    Column("replicas", Kind.NODES, "node ids of the replicas that are compared", value="nodes"),
    Column("in_sync", Kind.NODES, "node ids of the replicas in sync"),
    Column("in_sync_from", Kind.STRING, "source of in_sync; all: without a metadata log all count "
           "as in sync", words=("metadata", "all")),
    Column("eligible", Kind.NUMBERS, "node ids of the eligible leader replicas, by the metadata "
           "log", value="elr"),
    _count("least_in_sync", "replicas in sync that it takes for the high watermark to rise"),
    Column("not_looked_at", Kind.NODES, "node ids in sync of which there is no replica to look at"),
    _node("leader", "node id of the leader, by the metadata log",
          "no metadata log names a leader"),
    offset("expected_high_watermark", "the least log end of the replicas in sync that were looked "
           "at; where fewer are in sync than least_in_sync, the checkpointed high watermark",
           "no replica in sync was looked at", "high_watermark"),
    offset("committed_offset", "offset below which records are known to have been committed",
           value="committed"),
    _node("furthest", "node id of the replica with the most records of the newest leader epoch",
          value="furthest.node"),
    _node("assumed_leader", "node id of the replica that is taken to lead next",
          value="assumed.node"),
    _count("acknowledged_lost", "acknowledged offsets that are lost if the assumed leader leads"),
    _count("may_be_lost", "offsets that may have been acknowledged and that the assumed leader "
           "lacks, because nodes of not_looked_at were in sync and it was not", _UNCOUNTED),
    Column("other_topic", Kind.NODES, "node ids of replicas that belong to another topic of that "
           "name, by its topic id; they take no part in the rest", value="nodes_of_other_topic"),
), note="The replicas of a partition together. What all in sync have counts as committed.",
    type="group", made_from="logtool.watermark.replica_group:ReplicaGroup")  # fmt: skip
CHOICE: Final = Table("choice", "replica that may lead", (
    *_place("replica."),
    _node("node", "id of its node", value="replica.node"),
    Column("path", Kind.PATH, "the partition dir", value="replica.path"),
    Column("election", Kind.STRING, "how it may be elected; clean: it is in sync or an eligible "
           "leader replica; last-known-leader: controllers of 4.x elect it by themselves once no "
           "replica is left that is either", words=("clean", "last-known-leader", "unclean"),
           value="standing.election"),
    Column("in_sync", Kind.BOOL, "whether it is in sync", value="standing.in_sync"),
    Column("eligible", Kind.BOOL, "whether it is an eligible leader replica",
           value="standing.eligible"),
    Column("unclean_stop", Kind.BOOL, "whether the next start of its broker takes it out of those "
           "in sync and of the eligible ones", value="standing.loses_it"),
    offset("log_end_offset", "end of its log after the load", value="replica.log_end"),
    _count("acknowledged_lost", "acknowledged offsets that are lost if it leads"),
    _count("may_be_lost", "offsets that may have been acknowledged and that this replica lacks, "
           "because nodes that were not looked at were in sync and it was not", _UNCOUNTED),
), note="One replica as the next leader: how it may be elected, and what it costs.",
    type="choice", made_from="logtool.watermark.replica_group:Choice")  # fmt: skip
TRUNCATION: Final = Table("truncation", "follower", (
    *_place("follower."),
    _node("leader", "node id of the assumed leader", value="leader.node"),
    _node("follower", "node id of the follower", value="follower.node"),
    Column("path", Kind.PATH, "the partition dir of the follower", value="follower.path"),
    offset("log_end_offset", "end of the log of the follower after the load",
           value="follower.log_end"),
    offset("by_high_watermark", "where it cuts its log by the high watermark, as before Kafka "
           "0.11"),
    _count("removed_by_high_watermark", "offsets that it cuts by the high watermark"),
    offset("diverges_from", "first offset at which the logs differ once it has cut by the high "
           "watermark", "they do not differ"),
    offset("by_leader_epoch", "where it cuts its log by leader epochs, as since Kafka 0.11"),
    _count("removed_by_leader_epoch", "offsets that it cuts by leader epochs"),
    _count("epoch_requests", "times that it asks the leader where an epoch ends",
           value="requests"),
    Column("epoch_unknown", Kind.BOOL, "whether the leader epochs of one of the two are gone, so "
           "that they decide nothing", value="unknown"),
    _count("acknowledged_lost", "committed offsets of the follower that the leader lacks"),
), note="Where a follower would cut its log if the assumed leader led.", type="truncation",
    made_from="logtool.watermark.replica_group:FollowerTruncation")  # fmt: skip

_STEP = (
    Column("step", Kind.INT64, "number of the event; 0 for the start"),
    Column("event", Kind.STRING, "the event, as the scenario has it"),
)
_NOT_SERVED = "it does not lead, or is down"
STATE: Final = Table("state", "replica behind each event", (
    *_STEP,
    Column("time_ms", Kind.INT64, "time since the scenario began", "ms"),
    _node("node", "id of the node", None),
    Column("role", Kind.STRING, "role of the node", words=("leader", "follower", "down")),
    Column("leader_epoch", Kind.INT32, "last leader epoch of its log", null="its log has none"),
    offset("log_end_offset", "end of its log"),
    offset("remote_log_end_offset", "end of its log as far as the leader knows: the offset of its "
           "last fetch", "it is the leader itself, or the leader knows nothing of it"),
    offset("high_watermark", "high watermark that it knows"),
    offset("last_stable_offset", "offset below which every transaction is decided, by the high "
           "watermark that it knows"),
    Column("in_sync", Kind.BOOL, "whether it is in sync"),
    Column("looked_at", Kind.STRING, "occasion on which the leader looked whether its high "
           "watermark may rise", null="it is not the leader, or the leader did not look",
           words=("became leader", "in-sync replicas shrank", "produce", "fetch")),
    Column("answers", Kind.STRING, "answers that producers get in this step; empty for the "
           "followers"),
    Column("records", Kind.STRING, "names of the records in its log"),
    Column("read_uncommitted", Kind.STRING, "records that a consumer gets from it that reads "
           "uncommitted ones", null=_NOT_SERVED),
    Column("read_committed", Kind.STRING, "records that a consumer gets from it that reads "
           "committed ones alone", null=_NOT_SERVED),
), note="One replica behind one event of a simulation.", type="state",
    made_from="logtool.watermark.simulation.scenario:ReplicaState")  # fmt: skip
SUB_STEP: Final = Table("substep", "thing that is done for an event", (
    *_STEP,
    Column("number", Kind.INT64, "its place among the things that are done for the event, from 1 "
           "on"),
    Column("part", Kind.STRING, "request or response that is processed", value="done.part", words=(
        "produce request at the leader", "fetch request at the leader",
        "fetch response at the follower")),
    _node("node", "id of the node whose log, log end or high watermark it is; of a remote log end "
          "offset the follower whose log end it is", None, "done.node"),
    Column("does", Kind.STRING, "thing that is done", value="done.does", words=(
        "fetch offset of the request", "write to the log", "log end offset",
        "remote log end offset", "high watermark", "high watermark in the response",
        "answer to the producer")),
    offset("before", "the offset until then", "something is sent or written, or no offset was "
           "known", "done.before"),
    offset("after", "the offset from then on, or the offset that is sent", "it is about no offset",
           "done.after"),
    Column("records", Kind.STRING, "names of the records that are written or sent"),
), note="One thing that is done while a produce or a fetch is processed, in its turn (--steps).",
    type="substep", made_from="logtool.watermark.simulation.scenario:NumberedSubStep")  # fmt: skip
ANSWER: Final = Table("answer", "produce request that is decided", (
    *_STEP,
    Column("acks", Kind.STRING, "acks of the request: the producer waits for nothing (0), for the "
           "log of the leader (1), or for its high watermark (all)", value="request.acks",
           words=("0", "1", "all")),
    Column("answer", Kind.STRING, "answer that the producer gets, or why it gets none",
           value="request.answer", words=(
               "acknowledged", "not awaited", "NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER",
               "the leader is gone")),
    offset("first_offset", "offset of its first record, or the end of the log where nothing was "
           "written", value="request.offset"),
    Column("records", Kind.STRING, "names of its records", value="request.names"),
), note="The outcome of a produce request in a step of a simulation.", type="answer",
    made_from="logtool.watermark.simulation.scenario:DecidedRequest")  # fmt: skip

_DIVERGENCE = Table("divergence", "follower that holds other records than the leader", (
    _node("node", "id of the follower", None),
    offset("from_offset", "first offset at which the logs differ"),
), made_from="logtool.watermark.simulation.scenario:Divergence")  # fmt: skip
VERDICT: Final = Table("verdict", "simulation", (
    Column("truncation", Kind.STRING, "rule by which followers cut their logs",
           words=("high-watermark", "leader-epoch")),
    offset("committed_offset", "offset below which records were committed"),
    Column("lost_offsets", Kind.NUMBERS, "offsets of committed records that the leader lacks"),
    Column("acknowledged_lost", Kind.STRINGS, "names of acknowledged records that the leader "
           "lacks"),
    Column("waiting", Kind.STRINGS, "names of the records of each produce request that has no "
           "answer yet"),
    Column("diverged", Kind.OBJECT, "followers that hold other records than the leader",
           of=_DIVERGENCE, many=True),
), note="The outcome of a simulation.", type="verdict",
    made_from="logtool.watermark.simulation.scenario:SimulationVerdict")  # fmt: skip

DOCUMENT: Final = Document(
    name="watermark",
    title="What logtool watermark prints",
    tables=(REPLICA, GROUP, CHOICE, TRUNCATION, STATE, SUB_STEP, ANSWER, VERDICT, FINDING),
    version=2,
)
