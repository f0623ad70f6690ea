"""The objects that `cluster` prints: logtool.cluster/1."""

from typing import Final

from logtool.schemas.columns import Column, Kind, Table, count, offset
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

_NOT_GIVEN = "the volume was not given"
_NO_LOG = "the volume has no metadata log that can be read"
VOLUME: Final = Table("volume", "volume of a node", (
    Column("path", Kind.PATH, "the log dir", null=_NOT_GIVEN),
    Column("status", Kind.STRING, "state of the volume", words=(
        "online", "cordoned", "offline", "absent", "unregistered", "metadata", "unidentified",
        "unknown", "other-cluster", "swapped", "doubled", "moved", "ahead", "empty")),
    Column("detail", Kind.STRING, "reason of the state", null="the state says all"),
    Column("double_of", Kind.PATH, "volume of the same node that is judged in its place",
           null="the state is not doubled"),
    Column("given_node", Kind.INT32, "node id on the command line", null="no id was given"),
    Column("node", Kind.INT32, "node id in meta.properties, or of the node that lacks the volume",
           null="there is no meta.properties, or it has no such line"),
    Column("cluster_id", Kind.STRING, "cluster id in meta.properties", null="as for node"),
    Column("directory_id", Kind.STRING, "id of the log dir in meta.properties, or in the metadata "
           "log for a volume that was not given", null="no file has the id"),
    count("partitions", "live partitions in it; for an absent volume, replicas that the metadata "
          "log gives to it"),
    Column("clean", Kind.BOOL, "whether its node stopped cleanly", null=_NOT_GIVEN),
    Column("kafka", Kind.STRING, "release with which its node registered last",
           null="no registration shows the release"),
    offset("metadata_end_offset", "end of its metadata log", _NO_LOG, "metadata_end"),
    Column("metadata_epoch", Kind.INT32, "leader epoch of the last record of its metadata log",
           null=_NO_LOG),
    Column("metadata_timestamp_ms", Kind.INT64, "time of the last record of its metadata log, by "
           "the clock of the controller", "ms", f"{_NO_LOG}, or the log has no time",
           value="metadata_ms"),
    Column("ahead_of", Kind.NUMBERS, "node ids of the controllers that may win the election and "
           "end before its newest snapshot of the metadata log"),
    Column("restored", Kind.STRINGS, "lines of the meta.properties that it should have, where the "
           "metadata log shows which log dir it is; empty if its own file counts"),
), note="One volume: a log dir that was given, or one that a node of the cluster lacks.",
    type="volume", made_from="logtool.cluster.volumes:Volume")  # fmt: skip
CONTROLLERS: Final = Table("controllers", "run", (
    Column("voters", Kind.NUMBERS, "node ids of the voters; empty if no copy names them"),
    Column("missing", Kind.NUMBERS, "node ids of the voters without a given copy",
           value="quorum.missing_nodes"),
    Column("has_majority", Kind.BOOL, "whether the given copies are enough to elect a controller",
           null="no copy names the voters"),
    Column("may_win", Kind.NODES, "node ids of the voters that a majority of the given voters may "
           "elect, the one with the longest metadata log first", value="nodes"),
    Column("is_sure", Kind.BOOL, "whether the metadata logs of all that may win have the same end"),
    Column("node", Kind.INT32, "node id of the copy that the brokers get, which counts for all "
           "that follows", null="not known", value="leader.node"),
    Column("path", Kind.PATH, "directory of this copy", value="leader.path"),
    Column("not_assumed", Kind.STRING, "why the node of --controller is not taken to win",
           null="it is taken to win, or the option was not given"),
    Column("unlikely", Kind.STRING, "why the node of --controller, which is taken to win, is not "
           "expected to", null="it may win, or the option was not given"),
    offset("log_end_offset", "end of this copy", value="leader.log_end"),
    Column("last_epoch", Kind.INT32, "leader epoch of the last batch of this copy",
           value="leader.last_epoch"),
    count("behind", "offsets by which this copy ends before the longest copy, also that of a "
          "broker"),
    Column("lacks_changes", Kind.BOOL, "whether it lacks, or may lack, other records of the "
           "longest copy than NoOpRecord"),
    offset("diverges_at", "first offset at which two copies diverge", "no two copies diverge",
           "quorum.diverges_at"),
    Column("problem", Kind.STRING, "why this copy cannot be read to its end", null="it can be read",
           value="unread"),
    Column("command", Kind.STRING, "command that compares the copies in full"),
), note="The election of a controller among the given copies of the metadata log.",
    type="controllers", made_from="logtool.cluster.controllers:Controllers")  # fmt: skip
NODE_ACTION: Final = Table("action", "action on a log dir", (
    Column("node", Kind.INT32, "id of the node that starts", null="not known"),
    Column("action", Kind.STRING, "kind of the action, as in plan", value="action.action"),
    Column("path", Kind.PATH, "the file or directory", value="action.path"),
    Column("reason", Kind.STRING, "reason for the action", value="action.reason"),
), note="An action at the start of one node that is about a log dir as a whole.", type="action",
    made_from="logtool.cluster.run:NodeAction")  # fmt: skip
_CUT = Table("cut", "follower that cuts the end of its log", (
    Column("node", Kind.INT32, "id of the node of the follower", null="not known"),
    Column("path", Kind.PATH, "the partition dir of the follower"),
    offset("log_end_offset", "end of its log before", value="log_end"),
    offset("offset", "first offset that it cuts"),
    count("offsets", "offsets that it cuts"),
), made_from="logtool.cluster.partitions:FollowerCut")  # fmt: skip
_LEADER = Table("leader", "replica that may lead", (
    Column("node", Kind.INT32, "id of the node of the replica", null="not known"),
    Column("path", Kind.PATH, "the partition dir"),
    Column("election", Kind.STRING, "kind of election, as in watermark",
           words=("clean", "last-known-leader", "unclean")),
    Column("may_be_elected", Kind.BOOL, "whether controllers may elect it without a request of a "
           "person"),
    offset("log_end_offset", "end of its log after the load", value="log_end"),
    offset("high_watermark", "checkpointed high watermark", "the checkpoint has no row"),
    count("acknowledged_lost", "acknowledged offsets that are lost if it leads, with those of "
          "nowhere"),
    count("may_be_lost", "further offsets that may have been acknowledged",
          null="the number is not known"),
    Column("cuts", Kind.OBJECT, "followers that cut the end of their logs", of=_CUT, many=True),
    offset("open_transaction", "first offset of the oldest transaction that is open at its end",
           "no transaction is open"),
    Column("is_new", Kind.BOOL, "whether the node has no copy, and makes an empty log: the others "
           "cut all they have if it leads"),
    Column("unread_bytes", Kind.INT64, "bytes of its log below the recovery point, which neither "
           "the start nor this command reads", "bytes"),
), made_from="logtool.cluster.partitions:LeaderOutlook")  # fmt: skip
PARTITION: Final = Table("partition", "partition", (
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    Column("topic_id", Kind.STRING, "topic id in the metadata log of the controllers",
           null="that log does not have the partition"),
    Column("status", Kind.STRING, "the gravest that may happen", words=(
        "in-order", "may-lose", "loses", "leaderless", "may-be-leaderless", "stray", "no-copy")),
    Column("image_leader", Kind.INT32, "leader in that log", null="that log has no leader"),
    Column("in_sync", Kind.NUMBERS, "node ids of the replicas in sync in that log"),
    Column("eligible", Kind.NUMBERS, "node ids of the eligible leader replicas in that log"),
    Column("elected", Kind.NODES, "nodes that controllers may elect without a request of a person",
           value="elected_nodes"),
    Column("may_be_leaderless", Kind.BOOL, "whether the last node in sync may be one without a "
           "copy"),
    Column("best_leader", Kind.INT32, "node that loses least as leader", null="there is no copy",
           value="best_node"),
    Column("leaders", Kind.OBJECT, "the replicas as leaders, those first that controllers may "
           "elect", of=_LEADER, many=True),
    Column("missing", Kind.NUMBERS, "nodes of replicas without a usable copy"),
    Column("away", Kind.NUMBERS, "those of missing that have no replica after the start either, "
           "not even an empty one"),
    Column("strays", Kind.NODES, "nodes whose copy becomes a stray"),
    Column("unloaded", Kind.NODES, "nodes whose copy no broker loads, for another reason"),
    Column("may_be_longer", Kind.BOOL, "whether a volume that is absent, or not identified, may "
           "hold a longer copy: until it is there, no unclean election should take place"),
    count("nowhere", "acknowledged offsets that no copy has; they are lost with every leader"),
), note="One partition at the start. End offsets and high watermarks are exclusive.",
    type="partition", made_from="logtool.cluster.partitions:PartitionOutlook")  # fmt: skip
OTHER_TOPIC: Final = Table("other-topic", "topic id that the metadata log does not have", (
    Column("topic", Kind.STRING, "name of the topic"),
    Column("topic_id", Kind.STRING, "topic id in partition.metadata"),
    Column("image_id", Kind.STRING, "topic id of this name in the metadata log of the "
           "controllers",
           null="that log has no topic of this name"),
    Column("nodes", Kind.NUMBERS, "nodes with partitions of this topic id"),
    offset("removed_offset", "offset of the record that removed the topic", "that log has no such "
           "record: the topic was removed before its snapshot, or created after its end"),
), note="A topic that was deleted, made again or created between the copies.", type="other-topic",
    made_from="logtool.cluster.partitions:OtherTopic")  # fmt: skip
AHEAD: Final = Table("ahead", "committed offset ahead of a leader", (
    Column("group", Kind.STRING, "name of the group"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    offset("offset", "committed offset, by the furthest copy of __consumer_offsets"),
    offset("log_end_offset", "smallest log end of the leaders that may be elected",
           value="log_end"),
    count("ahead", "offsets between the two"),
    Column("nodes", Kind.NODES, "nodes of the leaders whose log ends before the offset"),
), note="A group that has read records which a leader that may be elected does not have.",
    type="ahead", made_from="logtool.cluster.offsets:AheadOffset")  # fmt: skip
STEP: Final = Table("step", "step of the start", (
    Column("number", Kind.INT32, "number of the step, from 1 on"),
    Column("text", Kind.STRING, "the step in words"),
    Column("command", Kind.STRING, "command line for a shell", null="the step has no command"),
    Column("file_name", Kind.STRING, "name of a file that the command reads",
           null="the command reads no file"),
    Column("file", Kind.STRING, "content of that file", null="the command reads no file"),
    Column("starts", Kind.NUMBERS, "nodes that the step starts"),
), note="One step of the start that loses least.", type="step",
    made_from="logtool.cluster.order:Step")  # fmt: skip
_NO_TIME = "no volume has a metadata log that can be read and has a time"
VERDICT: Final = Table("cluster", "run", (
    Column("start", Kind.STRING, "start: in any order; in-order: by the steps; do-not-start: mend "
           "volumes, nodes or controllers first", words=("start", "in-order", "do-not-start")),
    Column("first_timestamp_ms", Kind.INT64, "time of the oldest volume", "ms", _NO_TIME,
           value="first_ms"),
    Column("last_timestamp_ms", Kind.INT64, "time of the newest volume", "ms", _NO_TIME,
           value="last_ms"),
    Column("spread_ms", Kind.INT64, "time between them", "ms", _NO_TIME),
    count("partitions", "partitions that were judged"),
    count("losing", "partitions in which acknowledged records may go with an elected leader"),
    count("may_lose", "further partitions in which records may go that may be acknowledged"),
    count("without_leader", "partitions that have, or may have, no leader without a request of a "
          "person"),
    count("without_copy", "partitions of which no volume has a copy"),
    count("strays", "directories that become strays"),
    count("ahead_offsets", "committed offsets of groups ahead of a leader that may be elected"),
    count("repairs", "replicas, damaged or without their end, that another volume can fill before "
          "the start"),
    Column("unread_bytes", Kind.INT64, "bytes of logs below the recovery points; no start reads "
           "them, and this command does not look for damage in them", "bytes"),
    Column("verify", Kind.STRING, "command that checks these logs",
           null="the start reads all logs"),
    count("deleted", "directories that end in -delete, which the brokers delete after the start"),
    Column("undelete", Kind.STRING, "command that saves the records in these directories",
           null="there are no such directories"),
), note="The outcome for the cluster as a whole.", type="cluster",
    made_from="logtool.cluster.run:ClusterVerdict")  # fmt: skip
DOCUMENT: Final = Document(
    name="cluster",
    title="Objects that logtool cluster prints",
    tables=(
        VOLUME, CONTROLLERS, NODE_ACTION, PARTITION, OTHER_TOPIC, AHEAD, FINDING, STEP, VERDICT,
    ),
)  # fmt: skip
