"""The objects that `groups` prints: logtool.groups/1."""

from typing import Final

from logtool.schemas.columns import Column, Kind, Table, count, offset, size
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

_NOT_HERE = "the partition is not on these disks"
_NO_CALENDAR = "no calendar has it"
_TYPES = ("classic", "consumer", "share", "streams")
_STATES = ("Empty", "Stable", "Assigning", "Reconciling", "NotReady", "Dead")
_PLACES = ("in", "below-start", "beyond-end", "unknown")


def _text(name: str, meaning: str, null: str | None = None, value: str | None = None) -> Column:
    return Column(name, Kind.STRING, meaning, null=null, value=value)


def _number(name: str, meaning: str, null: str | None = None, value: str | None = None) -> Column:
    return Column(name, Kind.INT32, meaning, null=null, value=value)


def _time(
    name: str, stamp: str, meaning: str, null: str | None = None, value: str | None = None
) -> tuple[Column, Column]:
    """Return a time twice, as `timed` does; the timestamp has a name of its own."""
    why = f"{null}, or {_NO_CALENDAR}" if null else _NO_CALENDAR
    return (
        Column(name, Kind.INT64, meaning, "ms since 1970", null, value=value),
        Column(stamp, Kind.TIMESTAMP, f"{name} as a timestamp", "UTC", why),
    )


_GROUP = _text("group", "name of the group")
_TOPIC = _text("topic", "name of the topic")
_PARTITION = _number("partition", "number of the partition")
_LOG_ENDS = (
    offset("log_start_offset", "start of the partition's log", _NOT_HERE, "log_start"),
    offset("log_end_offset", "end of the partition's log", _NOT_HERE, "log_end"),
)
_COMMITTED = _time("commit_ms", "committed", "time of the commit")
_METADATA = _text("metadata", "text that was committed with the offset")
_RECORD = offset("record_offset", "offset of the commit in the partition of __consumer_offsets")

_COPY = Table("copy", "copy that was not read", (
    Column("path", Kind.PATH, "the partition dir", value="listed.path"),
    offset("log_end_offset", "end of the log", value="extent.log_end"),
    _number("leader_epoch", "leader epoch of the last batch", "it has none"),
), made_from="logtool.groups.run:OffsetsCopy")  # fmt: skip
PARTITION: Final = Table("partition", "partition of __consumer_offsets that was read", (
    Column("path", Kind.PATH, "the partition dir", value="loaded.listed.path"),
    _text("topic", "name of the topic: __consumer_offsets", value="loaded.listed.topic"),
    _number("partition", "number of the partition", value="loaded.listed.number"),
    offset("first_offset", "first offset of the log", value="loaded.first_offset"),
    offset("log_end_offset", "end of the log", value="loaded.end_offset"),
    _number("leader_epoch", "leader epoch of the last batch", "it has none",
            "loaded.last_leader_epoch"),
    count("records", "records that were read", "loaded.records"),
    size("bytes", "size of the batches that were read", "loaded.bytes"),
    count("keys", "different keys of these records", "loaded.keys"),
    count("unknown_records", "records of types that are not known", "loaded.unknown_records"),
    count("unreadable_records", "records that a coordinator cannot read either",
          "loaded.wrong_records"),
    Column("other_copies", Kind.OBJECT, "copies of the partition that were not read",
           value="others", of=_COPY, many=True),
), note="One partition of __consumer_offsets, and the copies of it that were not read.",
    type="partition", made_from="logtool.groups.run:OffsetsPartition")  # fmt: skip

_NOT_CLASSIC = "it is no classic group, or no record says so"
_ONLY_OFFSETS = "the group only commits offsets, or it is dead"
GROUP: Final = Table("group", "group", (
    _text("group", "name of the group", value="name"),
    Column("group_type", Kind.STRING, "type of the group", words=_TYPES, value="type"),
    Column("state", Kind.STRING, "state after its coordinator has loaded it; Dead: only records of "
           "a deleted group are left", words=_STATES),
    count("members", "members of the group", "member_count"),
    _number("epoch", "epoch of the group; the generation of a classic group", _ONLY_OFFSETS),
    _text("protocol_type", "type of protocol of a classic group, such as consumer", _NOT_CLASSIC),
    _text("protocol", "how a classic group assigns its partitions, such as range", _NOT_CLASSIC),
    _text("leader", "id of the member that leads a classic group", _NOT_CLASSIC),
    *_time("state_ms", "state_since", "time at which a classic group got its state", _NOT_CLASSIC),
    _number("offsets_partition", "number of the partition of __consumer_offsets that has its "
            "records"),
    count("offsets", "committed offsets of the group", "offset_count"),
    count("pending", "commits of the group in open transactions", "pending_count"),
    count("records", "records of the group in __consumer_offsets", "sizes.records"),
    size("bytes", "size of these records before compression", "sizes.bytes"),
    count("superseded_records", "of these records, those with a newer record of the same key",
          "sizes.superseded_records"),
    size("superseded_bytes", "size of the superseded records before compression",
         "sizes.superseded_bytes"),
    Column("only_sizes", Kind.BOOL, "whether its members and offsets are not printed (--sizes)"),
), note="One group.", type="group", made_from="logtool.groups.state:GroupState")  # fmt: skip

_NO_RECORD = "no record says so"
MEMBER: Final = Table("member", "member of a group", (
    _GROUP,
    _text("member", "id of the member", value="member.member_id"),
    _text("instance_id", "group.instance.id of the member", "it is no static member",
          "member.instance_id"),
    _text("client_id", "client.id of the member", _NO_RECORD, "member.client_id"),
    _text("client_host", "host of the member", _NO_RECORD, "member.client_host"),
    _text("rack_id", "rack of the member", "it has none", "member.rack_id"),
    _number("epoch", "epoch of the member", "it has none"),
    Column("topics", Kind.STRINGS, "topics that the member subscribes to",
           null="they cannot be read", value="member.topics"),
    _text("regular_expression", "regular expression of the topics that the member subscribes to",
          "it has none", "member.regular_expression"),
    Column("assigned", Kind.STRINGS, "partitions of the member as TOPIC-NUMBER, with the id of the "
           "topic where its name is not known; tasks of a streams group as SUBTOPOLOGY-NUMBER"),
), note="One member of a group.", type="member",
    made_from="logtool.groups.state:GroupMember")  # fmt: skip

OFFSET: Final = Table("offset", "committed offset", (
    _GROUP,
    _TOPIC,
    _PARTITION,
    offset("offset", "the committed offset"),
    *_LOG_ENDS,
    offset("last_stable_offset", "last stable offset of the partition", _NOT_HERE, "last_stable"),
    Column("lag", Kind.INT64, "how far the offset is behind the log end; negative beyond it",
           null=_NOT_HERE),
    count("stable_lag", "how far the offset is behind the last stable offset; 0 where it is ahead "
          "of it", null=_NOT_HERE),
    Column("place", Kind.STRING, "where the offset lies in the partition's log", words=_PLACES),
    _text("topic_id", "id of the topic that the offset was committed for",
          "the commit has its name alone"),
    Column("topic_is", Kind.STRING, "whether it was committed for the topic that has the name "
           "today", words=("same", "other", "gone", "unknown")),
    _text("member", "id of the member that owned the partition when the offset was committed",
          "the log does not say"),
    *_COMMITTED,
    *_time("expires_ms", "expires", "time at which the offset expires", "it does not expire"),
    Column("expired", Kind.BOOL, "whether it has expired, and no open transaction holds a newer "
           "commit"),
    Column("pending", Kind.BOOL, "whether an open transaction holds a newer commit"),
    _METADATA,
    _number("leader_epoch", "leader epoch of the last record that was consumed",
            "the commit has none"),
    _RECORD,
), note="A committed offset. The offsets of the log are those on these disks.", type="offset",
    made_from="logtool.groups.committed_offset:CommittedOffset")  # fmt: skip

SHARE: Final = Table("share-offset", "partition that a share group reads", (
    _GROUP,
    _text("topic", "name of the topic", "no metadata log has its id"),
    _text("topic_id", "id of the topic"),
    _PARTITION,
    offset("start_offset", "offset at which the group begins to read", "it is not initialized yet",
           "state.start_offset"),
    count("delivered", "records from the start offset on that were delivered and are done",
          "state.delivered", null="the log does not say"),
    *_LOG_ENDS,
    Column("lag", Kind.INT64, "log end less the start offset and less delivered",
           null="one of them is not known"),
    Column("place", Kind.STRING, "where the start offset lies in the partition's log",
           words=_PLACES),
    _number("leader_epoch", "leader epoch of the partition in the record of this state",
            value="state.leader_epoch"),
    *_time("written_ms", "written", "time of the record of this state", value="state.written_ms"),
    offset("record_offset", "offset of this record in the partition of __share_group_state",
           value="state.record_offset"),
), note="Where a share group begins to read a partition, by __share_group_state.",
    type="share-offset", made_from="logtool.groups.share_groups:ShareOffset")  # fmt: skip

PENDING: Final = Table("pending", "commit in an open transaction", (
    _GROUP,
    _TOPIC,
    _PARTITION,
    offset("offset", "the offset that is to be committed"),
    Column("producer_id", Kind.INT64, "id of the producer of the transaction"),
    *_COMMITTED,
    _METADATA,
    _RECORD,
), note="A commit in a transaction that has no marker yet: it does not count.", type="pending",
    made_from="logtool.groups.state:PendingCommit")  # fmt: skip

_NO_PARTITION = "it is about no partition"
_NO_RECORD_YET = "no record of the group's own stands before it"
EVENT: Final = Table("event", "record of a group, and end of a transaction in which it committed", (
    offset("record_offset", "offset of the record, or of the marker that ended the transaction"),
    *_time("time_ms", "time", "time of the commit, of the record or of the marker", "it has none"),
    _text("event", "commit, transactional-commit, delete-offset, the name of another record, or "
          "how the transaction ended: committed or aborted", value="what"),
    Column("deleted", Kind.BOOL, "whether the record is a tombstone"),
    _text("topic", "name of the topic", _NO_PARTITION),
    _number("partition", "number of the partition", _NO_PARTITION),
    offset("offset", "the committed offset", "it is no commit"),
    _text("member", "id of the member that owned the partition at a commit, else of the member "
          "that the record is about", "it is about no member, or the log does not say"),
    Column("producer_id", Kind.INT64, "id of the producer of the transaction",
           null="it is in no transaction"),
    _text("state", "state of the group after it", _NO_RECORD_YET),
    count("members", "members of the group after it"),
    _number("epoch", "epoch of the group after it", _NO_RECORD_YET),
), note="A record of one group, or the end of a transaction in which it committed.", type="event",
    made_from="logtool.groups.history:GroupEvent")  # fmt: skip

RESTORE: Final = Table("restore", "group with offsets to restore", (
    _text("group", "name of the group", value="group.name"),
    Column("group_type", Kind.STRING, "type of the group", words=_TYPES, value="group.type"),
    Column("state", Kind.STRING, "state of the group", words=_STATES, value="group.state"),
    count("members", "members of the group", "group.member_count"),
    count("offsets", "offsets that the command commits", "offset_count"),
    count("left_out", "offsets of deleted topics, which the command does not commit"),
    _text("command", "the command"),
), note="The command that commits the offsets of one group again.", type="restore",
    made_from="logtool.groups.restoring:Restore")  # fmt: skip

DOCUMENT: Final = Document(
    name="groups",
    title="What logtool groups prints",
    tables=(PARTITION, GROUP, MEMBER, OFFSET, SHARE, PENDING, EVENT, RESTORE, FINDING),
)
