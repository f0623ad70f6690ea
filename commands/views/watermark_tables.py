"""The objects that `watermark` and `watermark simulate` print: logtool.watermark/2."""

from typing import Final

from logtool.schemas.columns import JSON, Column, Kind, Table, offset
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

_NO_ID = "the node id is not known"
_NOT_LOADED = "no broker starts with the replica"
_NO_WATERMARK = f"{_NOT_LOADED}, or the replica keeps no high watermark (Redpanda)"
_NO_EPOCH = f"{_NOT_LOADED}, or the log has no leader epoch"


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
           null="no id can be read"),
    _node("node", "id of the node of the replica"),
    Column("outcome", Kind.STRING, "result of the load; stray: the broker sets the replica aside",
           words=("loads", "refuses", "offline", "unknown", "stray")),
    Column("reason", Kind.STRING, "why no broker starts with the replica",
           null="no reason was found",
           value="failure"),
    offset("recovery_point", "checkpointed recovery point", "the checkpoint has no row of the "
           "replica"),
    offset("high_watermark", "checkpointed high watermark", "the checkpoint has no row of the "
           "replica",
           "checkpointed"),
    offset("log_start_offset", "start of the log", _NOT_LOADED, "offsets.log_start"),
    offset("local_log_start_offset", "first offset of the local segments; offsets below it, from "
           "log_start_offset on, are in remote storage", _NOT_LOADED, "offsets.local_log_start"),
    offset("initial_high_watermark", "high watermark with which the broker begins", _NO_WATERMARK,
           "offsets.high_watermark"),
    offset("committed_offset", "offset below which the records are known to be committed",
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
    Column("tail", Kind.STRING, "sound, or the code of the finding at the end of the log"),
    _count("acknowledged_gone", "offsets below the checkpointed high watermark that the log of the "
           "replica has lost"),
    _count("lost_records", "sound records that the broker cuts when it loads the log"),
    Column("unread_bytes", Kind.INT64, "bytes of the log below the recovery point, which neither "
           "the load nor this command reads", "bytes", ways=JSON),
), note="One replica after its broker has loaded it. High watermark, last stable offset and log "
        "end are exclusive.",
    type="replica", made_from="logtool.watermark.replica:Replica")  # fmt: skip
_UNCOUNTED = "the offsets cannot be counted"
GROUP: Final = Table("group", "partition", (
    *_place(),
    Column("replicas", Kind.NODES, "node ids of the replicas that are compared", value="nodes"),
    Column("in_sync", Kind.NODES, "node ids of the replicas in sync; if the metadata log has none, "
           "of those that last were"),
    Column("in_sync_from", Kind.STRING, "source of in_sync; all: there is no metadata log, and all "
           "replicas count as in sync", words=("metadata", "all")),
    Column("eligible", Kind.NUMBERS, "node ids of the eligible leader replicas in the metadata log",
           value="elr"),
    _count("least_in_sync", "in-sync replicas that the high watermark needs to rise"),
    Column("not_looked_at", Kind.NODES, "node ids of in-sync replicas that were not given"),
    Column("not_given", Kind.NUMBERS, "node ids of the replicas in the metadata log of which no "
           "copy was given"),
    _node("leader", "node id of the leader in the metadata log",
          "no metadata log names a leader"),
    offset("expected_high_watermark", "the smallest log end of the given in-sync replicas; if "
           "fewer than least_in_sync are in sync, the checkpointed high watermark",
           "no in-sync replica was given", "high_watermark"),
    offset("committed_offset", "offset below which the records are known to be committed",
           value="committed"),
    Column("committed_from", Kind.STRING, "source of committed_offset; checkpoint: the high "
           "watermarks in checkpoints; alone: a replica led and was alone in the ISR, so that all "
           "its offsets count; in-sync: all in-sync replicas have the offsets; majority: a "
           "majority of the given replicas has them (Redpanda)",
           words=("checkpoint", "alone", "in-sync", "majority")),
    _node("furthest", "node id of the replica with the most records of the newest leader epoch",
          value="furthest.node"),
    _node("assumed_leader", "node id of the assumed next leader",
          value="assumed.node"),
    _count("acknowledged_lost", "acknowledged offsets that are lost if the assumed leader leads, "
           "with those of nowhere"),
    _count("nowhere", "acknowledged offsets that no given copy has, by the checkpointed high "
           "watermarks; they are lost with every leader"),
    _count("may_be_lost", "further offsets that may have been acknowledged and that the assumed "
           "leader lacks: nodes of not_looked_at were in sync and the assumed leader was not, or "
           "it was in sync and lacks acknowledged offsets, as the copies are of different moments",
           _UNCOUNTED),
    Column("topic_id", Kind.STRING, "topic id of the replicas that are compared",
           null="no replica has one, or as many replicas have another one, and no metadata log "
           "says which is right"),
    Column("other_topic", Kind.NODES, "node ids of replicas of another topic of this name, with "
           "another topic id; they are left out of the other results",
           value="nodes_of_other_topic"),
    _node("best_leader", "id of the node that loses least as leader",
          "no metadata log shows who may lead"),
    Column("keep_stopped", Kind.NODES, "node ids of replicas that controllers may elect by "
           "themselves, and that lose records which best_leader has, although best_leader loses "
           "only those of nowhere"),
), note="The replicas of a partition together. Records that all in-sync replicas have count as "
        "committed.",
    type="group", made_from="logtool.watermark.replica_group:ReplicaGroup")  # fmt: skip
CHOICE: Final = Table("choice", "replica that may lead", (
    *_place("replica."),
    _node("node", "id of the node of the replica", value="replica.node"),
    Column("path", Kind.PATH, "the partition dir", value="replica.path"),
    Column("election", Kind.STRING, "kind of election; clean: the replica is in sync or an "
           "eligible leader replica; last-known-leader: controllers of 4.x elect the replica by "
           "themselves once no in-sync or eligible replica is left",
           words=("clean", "last-known-leader", "unclean"),
           value="standing.election"),
    Column("in_sync", Kind.BOOL, "whether the replica is in the ISR of the metadata log",
           value="standing.in_sync"),
    Column("eligible", Kind.BOOL, "whether the replica is an eligible leader replica",
           value="standing.eligible"),
    Column("unclean_stop", Kind.BOOL, "whether the next start of the broker removes the replica "
           "from the in-sync and the eligible leader replicas", value="standing.loses_it"),
    offset("log_end_offset", "end of the log after the load", value="replica.log_end"),
    _count("acknowledged_lost", "acknowledged offsets that are lost if the replica leads, with "
           "those of nowhere"),
    _count("may_be_lost", "further offsets that may have been acknowledged and that the replica "
           "lacks, as for the assumed leader", _UNCOUNTED),
), note="One replica as the next leader: the kind of election, and the loss.",
    type="choice", made_from="logtool.watermark.replica_group:Choice")  # fmt: skip
TRUNCATION: Final = Table("truncation", "follower", (
    *_place("follower."),
    _node("leader", "node id of the assumed leader", value="leader.node"),
    _node("follower", "node id of the follower", value="follower.node"),
    Column("path", Kind.PATH, "the partition dir of the follower", value="follower.path"),
    offset("log_end_offset", "end of the log of the follower after the load",
           value="follower.log_end"),
    offset("by_high_watermark", "offset to which the follower truncates by the high watermark, as "
           "before Kafka 0.11"),
    _count("removed_by_high_watermark", "offsets that truncation by the high watermark removes"),
    offset("diverges_from", "first offset at which the logs differ after truncation by the high "
           "watermark", "the logs do not differ"),
    offset("by_leader_epoch", "offset to which the follower truncates by leader epochs, as since "
           "Kafka 0.11"),
    _count("removed_by_leader_epoch", "offsets that the truncation by leader epochs removes"),
    _count("epoch_requests", "requests to the leader for the end offset of an epoch",
           value="requests"),
    Column("epoch_unknown", Kind.BOOL, "whether one of the two replicas has lost its leader "
           "epochs, so that epochs cannot decide", value="unknown"),
    _count("acknowledged_lost", "committed offsets of the follower that the leader lacks"),
), note="The truncation of a follower if the assumed leader led.", type="truncation",
    made_from="logtool.watermark.replica_group:FollowerTruncation")  # fmt: skip

_STEP = (
    Column("step", Kind.INT64, "number of the event; 0 for the start"),
    Column("event", Kind.STRING, "the event, as in the scenario"),
)
_NOT_SERVED = "the replica does not lead, or is down"
STATE: Final = Table("state", "state of a replica after each event", (
    *_STEP,
    Column("time_ms", Kind.INT64, "time since the scenario began", "ms"),
    _node("node", "id of the node", None),
    Column("role", Kind.STRING, "role of the node", words=("leader", "follower", "down")),
    Column("leader_epoch", Kind.INT32, "last leader epoch of the log", null="the log has no epoch"),
    offset("log_end_offset", "end of the log"),
    offset("remote_log_end_offset", "end of the log that the leader knows: the offset of the last "
           "fetch", "the replica is the leader, or the leader does not know the log end"),
    offset("high_watermark", "high watermark that the replica knows"),
    offset("last_stable_offset", "offset below which every transaction is decided, up to the high "
           "watermark that the replica knows"),
    Column("in_sync", Kind.BOOL, "whether the replica is in sync"),
    Column("looked_at", Kind.STRING, "occasion on which the leader checked whether the high "
           "watermark may rise", null="the replica is not the leader, or the leader did not check",
           words=("became leader", "in-sync replicas shrank", "produce", "fetch")),
    Column("answers", Kind.STRING, "answers that producers get in this step; empty for followers"),
    Column("records", Kind.STRING, "names of the records in the log"),
    Column("read_uncommitted", Kind.STRING, "records that a consumer with read_uncommitted gets "
           "from the replica", null=_NOT_SERVED),
    Column("read_committed", Kind.STRING, "records that a consumer with read_committed gets from "
           "the replica", null=_NOT_SERVED),
), note="One replica after one event of a simulation.", type="state",
    made_from="logtool.watermark.simulation.scenario:ReplicaState")  # fmt: skip
SUB_STEP: Final = Table("substep", "step of the processing of an event", (
    *_STEP,
    Column("number", Kind.INT64, "number of the step within the event, from 1 on"),
    Column("part", Kind.STRING, "processed request or response", value="done.part", words=(
        "produce request at the leader", "fetch request at the leader",
        "fetch response at the follower")),
    _node("node", "id of the node of the log, log end or high watermark; for a remote log end "
          "offset, id of the follower", None, "done.node"),
    Column("does", Kind.STRING, "kind of the step", value="done.does", words=(
        "fetch offset of the request", "write to the log", "log end offset",
        "remote log end offset", "high watermark", "high watermark in the response",
        "answer to the producer")),
    offset("before", "the offset before the step",
           "the step sends or writes data, or no offset was "
           "known", "done.before"),
    offset("after", "the offset after the step, or the offset that is sent", "the step changes or "
           "sends no offset",
           "done.after"),
    Column("records", Kind.STRING, "names of the records that are written or sent"),
), note="One step of the processing of a produce or fetch request, in order (--steps).",
    type="substep", made_from="logtool.watermark.simulation.scenario:NumberedSubStep")  # fmt: skip
ANSWER: Final = Table("answer", "produce request with an outcome", (
    *_STEP,
    Column("acks", Kind.STRING, "acks of the request: the producer waits for nothing (0), for the "
           "log of the leader (1), or for the high watermark (all)", value="request.acks",
           words=("0", "1", "all")),
    Column("answer", Kind.STRING, "answer to the producer, or the reason why there is no answer",
           value="request.answer", words=(
               "acknowledged", "not awaited", "NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER",
               "the leader is gone")),
    offset("first_offset", "offset of the first record, or the end of the log if nothing was "
           "written", value="request.offset"),
    Column("records", Kind.STRING, "names of the records of the request", value="request.names"),
), note="The outcome of a produce request in a step of a simulation.", type="answer",
    made_from="logtool.watermark.simulation.scenario:DecidedRequest")  # fmt: skip

_DIVERGENCE = Table("divergence", "follower whose records differ from those of the leader", (
    _node("node", "id of the follower", None),
    offset("from_offset", "first offset at which the logs differ"),
), made_from="logtool.watermark.simulation.scenario:Divergence")  # fmt: skip
VERDICT: Final = Table("verdict", "simulation", (
    Column("truncation", Kind.STRING, "rule by which followers truncate their logs",
           words=("high-watermark", "leader-epoch")),
    offset("committed_offset", "offset below which records were committed"),
    Column("lost_offsets", Kind.NUMBERS, "offsets of committed records that the leader lacks"),
    Column("acknowledged_lost", Kind.STRINGS, "names of acknowledged records that the leader "
           "lacks"),
    Column("waiting", Kind.STRINGS, "names of the records of each produce request without an "
           "answer"),
    Column("diverged", Kind.OBJECT, "followers whose records differ from those of the leader",
           of=_DIVERGENCE, many=True),
), note="The outcome of a simulation.", type="verdict",
    made_from="logtool.watermark.simulation.scenario:SimulationVerdict")  # fmt: skip

DOCUMENT: Final = Document(
    name="watermark",
    title="Objects that logtool watermark prints",
    tables=(REPLICA, GROUP, CHOICE, TRUNCATION, STATE, SUB_STEP, ANSWER, VERDICT, FINDING),
    version=2,
)
