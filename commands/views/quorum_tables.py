"""The objects that `quorum` prints: logtool.quorum/1."""

from typing import Final

from logtool.schemas.columns import JSON, Column, Kind, Table
from logtool.schemas.document import Document
from logtool.schemas.printed import ACTION, PAIR, UNDO

_ENDPOINT = Table("endpoint", "address of a voter", (
    Column("listener", Kind.STRING, "name of the listener"),
    Column("host", Kind.STRING, "host name or IP address"),
    Column("port", Kind.INT32, "port"),
), made_from="logtool.quorum.voters:Endpoint")  # fmt: skip
_VOTER = Table("voter", "voter of a metadata quorum", (
    Column("node", Kind.INT32, "node id"),
    Column("directory_id", Kind.STRING, "id of the log dir with the metadata log",
           null="the quorum is static"),
    Column("endpoints", Kind.OBJECT, "addresses of the voter; in a static quorum only "
           "controller.quorum.voters gives them", of=_ENDPOINT, many=True),
), note="A node that votes.", made_from="logtool.quorum.voters:Voter")  # fmt: skip
_NO_VOTERS = "nothing in the copy names the voters"
_NO_STATE = "the copy has no quorum-state, or quorum-state has no such field"
COPY: Final = Table("copy", "copy of the metadata log", (
    Column("copy", Kind.STRING, "name of the copy: node id, or the path if the id is not known or "
           "not unique", value="label"),
    Column("node", Kind.INT32, "id of the node of the copy", null="not known"),
    Column("role", Kind.STRING, "whether the node is one of the voters that the copy names",
           null="the node or the voters are not known", words=("voter", "observer")),
    Column("path", Kind.PATH, "the directory of the metadata log"),
    Column("cluster_id", Kind.STRING, "cluster id in meta.properties",
           null="there is no meta.properties, or it has no such line"),
    Column("directory_id", Kind.STRING, "id of the log dir in meta.properties",
           null="there is no meta.properties, or it has no such line"),
    Column("log_start_offset", Kind.INT64, "start of the log", "offset",
           value="batches.log_start"),
    Column("log_end_offset", Kind.INT64, "end of the log, or of the newest snapshot if that is "
           "ahead of the log", "offset", value="log_end"),
    Column("last_epoch", Kind.INT32, "leader epoch of the last batch, or of the newest snapshot if "
           "that is ahead of the log"),
    Column("batches", Kind.INT64, "batches before the first damage", "count",
           value="usable_batches"),
    Column("records", Kind.INT64, "records in the batches", "count", value="usable_records"),
    Column("bytes", Kind.INT64, "bytes of the .log files", "bytes", value="batches.bytes"),
    Column("snapshots", Kind.PAIRS, "end offset and epoch of each snapshot, by epoch",
           value="snapshot_ends", ways=JSON),
    Column("kraft_version", Kind.INT32, "kraft.version: 0 in a static quorum"),
    Column("voters", Kind.OBJECT, "voters that the copy names",
           null=_NO_VOTERS, of=_VOTER, many=True,
           ways=JSON),
    Column("voters_from", Kind.STRING, "source of the voters", null=_NO_VOTERS,
           words=("log", "snapshot", "quorum-state")),
    Column("voters_offset", Kind.INT64, "offset of the batch with the control record, or end "
           "offset of the snapshot", "offset", "the source is neither a control record nor a "
           "snapshot"),
    Column("leader", Kind.INT32, "leader in quorum-state; -1: no leader", null=_NO_STATE),
    Column("leader_epoch", Kind.INT32, "epoch of the last election in quorum-state",
           null=_NO_STATE),
    Column("voted_for", Kind.INT32, "node in quorum-state that the node voted for; -1: no vote",
           null=_NO_STATE),
    Column("damaged_ranges", Kind.INT64, "damaged ranges; an unfinished append does not count",
           "count", value="batches.damaged_ranges"),
    Column("unfinished_position", Kind.INT64, "position of an unfinished append in the last .log "
           "file, which a start cuts off", "bytes", "the log ends with a whole batch"),
    Column("unfinished_bytes", Kind.INT64, "bytes of the unfinished append", "bytes",
           "the log ends with a whole batch"),
    Column("problems", Kind.STRINGS, "parts that no controller could read, one line for each part",
           ways=JSON),
), note="One copy of the metadata log, up to its first damage.", type="copy",
    made_from="logtool.quorum.copy:MetadataCopy")  # fmt: skip
LOSS: Final = Table("loss", "copy with batches that the copy to keep lacks", (
    Column("copy", Kind.STRING, "name of the copy", value="copy.label"),
    Column("first_offset", Kind.INT64, "first offset that the copy to keep lacks", "offset"),
    Column("last_offset", Kind.INT64, "last offset that the copy to keep lacks", "offset"),
    Column("batches", Kind.INT64, "batches that the copy to keep lacks", "count"),
    Column("records", Kind.INT64, "records in the batches", "count"),
), note="Batches that one copy has and the copy to keep lacks.",
    made_from="logtool.quorum.verdict:CopyLoss")  # fmt: skip
STRAY: Final = Table("stray", "partition dir that becomes a stray", (
    Column("node", Kind.INT32, "node id of the log dir", null="not known"),
    Column("path", Kind.PATH, "the partition dir"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    Column("action", Kind.STRING, "action of the broker; stray: it gives the directory a name that "
           "ends in -stray; delete: it deletes the directory (before 3.7)",
           words=("stray", "delete")),
    Column("reason", Kind.STRING, "reason for the action"),
    Column("offsets", Kind.INT64, "offsets of its log", "count"),
), note="A partition dir that the copy to keep does not give to its node.",
    made_from="logtool.quorum.strays:StrayDir")  # fmt: skip
_UNVOTED = Table("unvoted", "records of one kind", (
    Column("record", Kind.STRING, "kind of the records; KRaft snapshot: only a snapshot is left of "
           "them; unreadable: the rest of the log"),
    Column("count", Kind.INT64, "number of the records", "count"),
), made_from="logtool.quorum.unvoted:RecordCount")  # fmt: skip
_LACK = Table("lack", "voter that lacks changes", (
    Column("copy", Kind.STRING, "name of the copy of the voter", value="copy.label"),
    Column("first_offset", Kind.INT64, "first offset that it lacks", "offset"),
    Column("last_offset", Kind.INT64, "last offset that it lacks", "offset"),
    Column("records", Kind.OBJECT, "records that it lacks", of=_UNVOTED, many=True),
    Column("command", Kind.STRING, "command that gives it the copy to keep; quoted for a shell"),
), note="A given voter whose log lacks changes that the copy to keep has.",
    made_from="logtool.quorum.giving:VoterLack")  # fmt: skip
_CHANGE = Table("change", "change of the metadata that is lost", (
    Column("kind", Kind.STRING, "kind of the entity, as in metadata diff", value="entity.kind"),
    Column("name", Kind.STRING, "name of the entity", value="entity.name"),
    Column("difference", Kind.STRING, "whether the entity disappears, comes back, or gets an "
           "earlier state", value="word", words=("removed", "added", "changed")),
), note="An entity that differs between the furthest of the given copies and the copy to keep.",
    made_from="logtool.metadata.difference:Difference")  # fmt: skip
_UNKNOWN_VOTERS = "no copy names the voters"
QUORUM: Final = Table("quorum", "run", (
    Column("copies", Kind.STRINGS, "names of the given copies", value="labels"),
    Column("voters", Kind.OBJECT, "voters that the copy to keep names",
           null=_UNKNOWN_VOTERS, of=_VOTER,
           many=True),
    Column("voters_from", Kind.STRING, "source of the voters", null=_UNKNOWN_VOTERS,
           words=("log", "snapshot", "quorum-state", "controller.quorum.voters")),
    Column("kraft_version", Kind.INT32, "kraft.version of the copy to keep: 0 in a static quorum",
           value="keep.kraft_version"),
    Column("majority", Kind.INT32, "number of voters that make a majority",
           "count", _UNKNOWN_VOTERS),
    Column("missing", Kind.NUMBERS, "node ids of the voters without a given copy",
           value="missing_nodes"),
    Column("majority_offset", Kind.INT64, "offset below which the given copies of a majority of "
           "the voters have all records", "offset", "fewer copies than a majority were given"),
    Column("majority_at_most", Kind.INT64, "largest possible offset below which a majority has all "
           "records; the end of the copy to keep, if the given voters have lost records of it",
           "offset", "copies that were not given may have more records"),
    Column("committed_at_least", Kind.INT64, "end of the newest snapshot, below which all records "
           "were committed; 0 without a snapshot", "offset"),
    Column("diverges_at", Kind.INT64, "first offset at which two copies diverge", "offset",
           "no two copies diverge"),
    Column("diverging", Kind.OBJECT, "the two copies that diverge at that offset", null=
           "no two copies diverge",
           value="diverges", of=PAIR),
    Column("keep", Kind.STRING, "name of the copy to keep: the one with the highest last epoch and "
           "then the longest log; with --voters, of those of the new voters",
           value="keep.label"),
    Column("keep_path", Kind.PATH, "the directory of the copy to keep", value="keep.path"),
    Column("keep_epoch", Kind.INT32, "leader epoch of the last batch of the copy to keep",
           value="keep.last_epoch"),
    Column("keep_end_offset", Kind.INT64, "end of the log of the copy to keep", "offset",
           value="keep.log_end"),
    Column("lost", Kind.OBJECT, "batches that other copies have and the copy to keep lacks",
           value="losses", of=LOSS, many=True),
    Column("strays", Kind.OBJECT, "partition dirs next to the given copies that become strays at a "
           "start with the copy to keep", of=STRAY, many=True),
    Column("unvoted", Kind.OBJECT, "records of the copy to keep, that of a node without a vote, "
           "which no given voter has; empty with the copies of fewer than a majority",
           of=_UNVOTED, many=True),
    Column("voters_are_behind", Kind.BOOL, "whether unvoted has other records than NoOpRecord: the "
           "given voters lost data, or their volumes are of an earlier moment"),
    Column("lacking", Kind.OBJECT, "the given voters, with what they lack of the copy to keep; "
           "empty if voters_are_behind is false", of=_LACK, many=True),
    Column("rolled_back", Kind.STRINGS, "names of the copies that end before changes which their "
           "own node wrote as the leader of an epoch: volumes of an earlier moment",
           value="rolled_back_labels"),
    Column("heir_strays", Kind.OBJECT, "partition dirs that become strays if no controller gets "
           "the copy to keep, that of a broker; empty if copying is null", of=STRAY, many=True),
    Column("heir_losses", Kind.OBJECT, "changes of the metadata that are then lost",
           of=_CHANGE, many=True),
    Column("unknown", Kind.STRING, "sentence about facts that are not known because copies "
           "are missing", null="nothing"),
    Column("brokers_not_given", Kind.NUMBERS, "node ids of the brokers whose copies were not given "
           "and may have newer records; empty if the given copies have every committed record"),
    Column("copying", Kind.STRING, "command that first gives the copy to keep, which is that of a "
           "broker, to a controller; quoted for a shell",
           null="a controller has the copy to keep, no controller needs it, or none is given"),
    Column("command", Kind.STRING, "command that gives the copy to keep the voters that are left; "
           "HOST:PORT stands for an address that no file has",
           null="a majority of the voters has a copy, the voters are not known, or no copy is that "
           "of a node that can be a controller"),
), note="The result for all copies together.", type="quorum",
    made_from="logtool.quorum.verdict:Quorum")  # fmt: skip
REWRITE: Final = Table("rewrite", "change of the voters", (
    Column("copy", Kind.STRING, "name of the copy to keep", value="copy.label"),
    Column("path", Kind.PATH, "the directory of the copy to keep", value="copy.path"),
    Column("voters", Kind.OBJECT, "the new voters", of=_VOTER, many=True),
    Column("gone", Kind.NUMBERS, "node ids of the former voters that no longer vote"),
    Column("leader_epoch", Kind.INT32, "leader epoch with which the new voters begin",
           value="epoch"),
    Column("offset", Kind.INT64, "offset of the written control record", "offset",
           "the quorum is static"),
    Column("unclean_partitions", Kind.INT64, "partitions without an in-sync replica; only an "
           "unclean election can give them a leader", "count", value="unclean"),
    Column("lost_changes", Kind.OBJECT, "changes that another given copy has and the copy to keep "
           "lacks", of=_CHANGE, many=True),
    Column("unaccepted", Kind.STRINGS, "partitions that become strays, and __cluster_metadata-0 if "
           "changes are lost, that no --accept-loss names", value="unaccepted_names"),
    Column("settings", Kind.SETTINGS, "settings that the configuration files of all nodes must "
           "have, by key"),
), note="The change that --voters makes to the copy to keep; action objects follow if the change "
        "needs actions.",
    type="rewrite", made_from="logtool.quorum.rewrite:Rewrite")  # fmt: skip
DOCUMENT: Final = Document(
    name="quorum",
    title="Objects that logtool quorum prints",
    tables=(COPY, QUORUM, REWRITE, ACTION, UNDO),
)
