"""The objects that `groups` prints: logtool.groups/1."""

from typing import Final

from logtool.schemas.columns import Column, Kind, Table, count, offset, size
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

_NOT_HERE = "the partition is not in the given log dirs"
_NO_CALENDAR = "the time is outside the range of a timestamp"
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


def _doubt(what: str, value: str | None = None, topic: str = "__consumer_offsets") -> Column:
    """Return the column that says whether newer records may be lost."""
    meaning = f"whether newer {what} may be lost: the partition of {topic} has lost records"
    return Column("in_doubt", Kind.BOOL, meaning, value=value)


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
    _number("leader_epoch", "leader epoch of the last batch", "the log has no epoch"),
), made_from="logtool.groups.run:OffsetsCopy")  # fmt: skip
PARTITION: Final = Table("partition", "partition of __consumer_offsets that was read", (
    Column("path", Kind.PATH, "the partition dir", value="loaded.listed.path"),
    _text("topic", "name of the topic: __consumer_offsets", value="loaded.listed.topic"),
    _number("partition", "number of the partition", value="loaded.listed.number"),
    offset("first_offset", "first offset of the log", value="loaded.first_offset"),
    offset("log_end_offset", "end of the log", value="loaded.end_offset"),
    _number("leader_epoch", "leader epoch of the last batch", "the log has no epoch",
            "loaded.last_leader_epoch"),
    count("records", "records that were read", "loaded.records"),
    size("bytes", "size of the batches that were read", "loaded.bytes"),
    count("keys", "different keys of these records", "loaded.keys"),
    count("unknown_records", "records of unknown types", "loaded.unknown_records"),
    count("unreadable_records", "records that neither logtool nor a coordinator can read",
          "loaded.wrong_records"),
    Column("other_copies", Kind.OBJECT, "copies of the partition that were not read",
           value="others", of=_COPY, many=True),
), note="One partition of __consumer_offsets, and the copies of it that were not read.",
    type="partition", made_from="logtool.groups.run:OffsetsPartition")  # fmt: skip

_NOT_CLASSIC = "the group is not a classic group, or no record gives the value"
_ONLY_OFFSETS = "the group only commits offsets, or is dead"
GROUP: Final = Table("group", "group", (
    _text("group", "name of the group", value="name"),
    Column("group_type", Kind.STRING, "type of the group", words=_TYPES, value="type"),
    Column("state", Kind.STRING, "state of the group after its coordinator has loaded it; Dead: "
           "only records of a deleted group are left", words=_STATES),
    count("members", "members of the group", "member_count"),
    _number("epoch", "epoch of the group; the generation of a classic group", _ONLY_OFFSETS),
    _text("protocol_type", "type of protocol of a classic group, such as consumer", _NOT_CLASSIC),
    _text("protocol", "how a classic group assigns its partitions, such as range", _NOT_CLASSIC),
    _text("leader", "id of the member that leads a classic group", _NOT_CLASSIC),
    Column("source_topics", Kind.STRINGS, "topics that a streams group reads, by its topology",
           null="the group is not a streams group, or no record gives its topology"),
    *_time("state_ms", "state_since", "time at which a classic group entered its state",
           _NOT_CLASSIC),
    _number("offsets_partition", "number of the partition of __consumer_offsets that stores the "
            "group"),
    count("offsets", "committed offsets of the group", "offset_count"),
    count("pending", "commits of the group in open transactions", "pending_count"),
    _doubt("records of the group"),
    Column("aborted", Kind.STRINGS, "offsets in newer commits of aborted transactions, which do "
           "not count and differ from those that do, as TOPIC-NUMBER=OFFSET"),
    Column("lacking", Kind.STRINGS, "partitions of a share group that its coordinator has "
           "initialized, but whose start offset is not in the partition of __share_group_state "
           "that should store it, as TOPIC-NUMBER"),
    count("records", "records of the group in __consumer_offsets", "sizes.records"),
    size("bytes", "size of the records of the group before compression", "sizes.bytes"),
    count("superseded_records", "records of the group that have a newer record with the same key",
          "sizes.superseded_records"),
    size("superseded_bytes", "size of the superseded records before compression",
         "sizes.superseded_bytes"),
    Column("only_sizes", Kind.BOOL, "whether only sizes are printed, without members and offsets "
           "(--sizes)"),
), note="One group.", type="group", made_from="logtool.groups.state:GroupState")  # fmt: skip

_NO_RECORD = "no record gives the value"
MEMBER: Final = Table("member", "member of a group", (
    _GROUP,
    _text("member", "id of the member", value="member.member_id"),
    _text("instance_id", "group.instance.id of the member", "the member is not a static member",
          "member.instance_id"),
    _text("client_id", "client.id of the member", _NO_RECORD, "member.client_id"),
    _text("client_host", "host of the member", _NO_RECORD, "member.client_host"),
    _text("rack_id", "rack of the member", "the member gives no rack", "member.rack_id"),
    _number("epoch", "epoch of the member", "the member has no epoch"),
    Column("topics", Kind.STRINGS, "topics that the member subscribes to",
           null="the subscription cannot be read", value="member.topics"),
    _text("regular_expression", "regular expression of the topics that the member subscribes to",
          "the member gives no expression", "member.regular_expression"),
    Column("assigned", Kind.STRINGS, "partitions of the member as TOPIC-NUMBER, with the topic id "
           "if the name is not known; tasks of a streams group as SUBTOPOLOGY-NUMBER"),
), note="One member of a group.", type="member",
    made_from="logtool.groups.state:GroupMember")  # fmt: skip

OFFSET: Final = Table("offset", "committed offset", (
    _GROUP,
    _TOPIC,
    _PARTITION,
    offset("offset", "the committed offset"),
    *_LOG_ENDS,
    offset("last_stable_offset", "last stable offset of the partition", _NOT_HERE, "last_stable"),
    Column("lag", Kind.INT64, "distance of the offset to the log end; negative if the offset is "
           "beyond the log end",
           null=_NOT_HERE),
    count("stable_lag", "distance of the offset to the last stable offset; 0 if the offset is "
          "ahead of it", null=_NOT_HERE),
    Column("place", Kind.STRING, "where the offset lies in the partition's log", words=_PLACES),
    _text("topic_id", "id of the topic for which the offset was committed",
          "the commit has only the name of the topic"),
    Column("topic_is", Kind.STRING, "whether the offset was committed for the topic that has this "
           "name today", words=("same", "other", "gone", "unknown")),
    _text("member", "id of the member that owned the partition when the offset was committed",
          "the log does not record the value"),
    *_COMMITTED,
    *_time("expires_ms", "expires", "time at which the offset expires", "the offset does not "
           "expire"),
    Column("expired", Kind.BOOL, "whether the offset has expired and no open transaction holds a "
           "newer commit"),
    Column("pending", Kind.BOOL, "whether an open transaction holds a newer commit"),
    _doubt("commits of the offset"),
    _METADATA,
    _number("leader_epoch", "leader epoch of the last record that was consumed",
            "the commit has no leader epoch"),
    _RECORD,
    offset("aborted_offset", "offset in a newer commit of an aborted transaction, which does not "
           "count", "the newest record for the partition is not a commit in an aborted "
           "transaction"),
), note="A committed offset. The offsets of the log are those in the given log dirs.",
    type="offset",
    made_from="logtool.groups.committed_offset:CommittedOffset")  # fmt: skip

SHARE: Final = Table("share-offset", "partition that a share group reads", (
    _GROUP,
    _text("topic", "name of the topic", "no metadata log has the id of the topic"),
    _text("topic_id", "id of the topic"),
    _PARTITION,
    offset("start_offset", "offset at which the group begins to read", "the partition is not "
           "initialized yet",
           "state.start_offset"),
    count("delivered", "records from the start offset on that need no further delivery, as the "
          "log records it",
          "state.delivered", null="the log does not record the value"),
    offset("next_offset", "first offset that is delivered after a start of the broker: the first "
           "from the start offset on that is neither acknowledged nor archived",
           "the partition is not initialized yet"),
    count("acknowledged", "records from the start offset on that are acknowledged"),
    count("archived", "records from the start offset on that are archived: rejected, or delivered "
          "as often as the group allows"),
    _doubt("states of the partition", topic="__share_group_state"),
    _number("state_partition", "number of the partition of __share_group_state that stores the "
            "state", value="state.stored_in"),
    *_LOG_ENDS,
    Column("lag", Kind.INT64, "log end minus start offset minus delivered",
           null="one of these values is not known"),
    Column("place", Kind.STRING, "where the start offset lies in the partition's log",
           words=_PLACES),
    _number("leader_epoch", "leader epoch of the partition in the state record",
            value="state.leader_epoch"),
    *_time("written_ms", "written", "time of the state record", value="state.written_ms"),
    offset("record_offset", "offset of the state record in the partition of __share_group_state",
           value="state.record_offset"),
), note="The offset at which a share group begins to read a partition, from __share_group_state.",
    type="share-offset", made_from="logtool.groups.share_groups:ShareOffset")  # fmt: skip

DELIVERY: Final = Table("share-delivery", "records with the same delivery state in a share group", (
    _text("group", "name of the group", value="share.group"),
    _text("topic", "name of the topic", "no metadata log has the id of the topic", "share.topic"),
    _text("topic_id", "id of the topic", value="share.topic_id"),
    _number("partition", "number of the partition", value="share.partition"),
    offset("first_offset", "first offset of the records", value="delivery.first"),
    offset("last_offset", "last offset of the records", value="delivery.last"),
    _text("delivery_state", "state of the records: acknowledged, archived (rejected, or delivered "
          "as often as the group allows) or available (released)", value="state"),
    count("deliveries", "how often the records were delivered", "delivery.times"),
    Column("again", Kind.BOOL, "whether the records are delivered again"),
    offset("record_offset", "offset of the newest record with the state in the partition of "
           "__share_group_state", value="delivery.record_offset"),
), note="Records of a partition that a share group reads, with their last delivery state "
        "(--history), as far as the log still has it.",
    type="share-delivery", made_from="logtool.groups.share_groups:ShareDelivery")  # fmt: skip

REMOVED: Final = Table("removed-offset", "last offset of a partition without a committed offset", (
    _GROUP,
    _TOPIC,
    _PARTITION,
    offset("offset", "the offset that was committed last"),
    *_COMMITTED,
    offset("record_offset", "offset of the tombstone in the partition of __consumer_offsets"),
), note="The last offset of a partition whose committed offset expired or was deleted, as long as "
        "the log still has the commit. Offsets of deleted topics are left out if the group has "
        "others.",
    type="removed-offset", made_from="logtool.groups.state:RemovedOffset")  # fmt: skip

PENDING: Final = Table("pending", "commit in an open transaction", (
    _GROUP,
    _TOPIC,
    _PARTITION,
    offset("offset", "the offset to be committed"),
    Column("producer_id", Kind.INT64, "id of the producer of the transaction"),
    *_COMMITTED,
    _METADATA,
    _RECORD,
), note="A commit in a transaction without a marker: the commit has no effect yet.", type="pending",
    made_from="logtool.groups.state:PendingCommit")  # fmt: skip

_NO_PARTITION = "the record is not about a partition"
_NO_RECORD_YET = "no record of the group itself precedes this record"
EVENT: Final = Table("event", "record of a group, or the end of a transaction with a commit of the "
                     "group", (
    offset("record_offset", "offset of the record, or of the marker that ended the transaction"),
    *_time("time_ms", "time", "time of the commit, of the record or of the marker",
           "the marker is not known"),
    _text("event", "commit, transactional-commit, delete-offset, the name of another record, or "
          "how the transaction ended: committed or aborted", value="what"),
    Column("deleted", Kind.BOOL, "whether the record is a tombstone"),
    _text("topic", "name of the topic", _NO_PARTITION),
    _number("partition", "number of the partition", _NO_PARTITION),
    offset("offset", "the committed offset", "the record is not a commit"),
    count("set_back", "how far this offset lies below the one that was committed before",
          null="it does not lie below one"),
    Column("ended", Kind.NUMBERS, "offsets of the records of the transaction that ended here, "
           "which are commits of the group: they count from here on, or never if it was aborted"),
    _text("member", "at a commit, id of the member that owned the partition; otherwise id of the "
          "member that the record is about", "the record is not about a member, or the log does "
          "not record the id"),
    Column("producer_id", Kind.INT64, "id of the producer of the transaction",
           null="the record is not in a transaction"),
    _text("state", "state of the group after the record", _NO_RECORD_YET),
    count("members", "members of the group after the record"),
    _number("epoch", "epoch of the group after the record", _NO_RECORD_YET),
), note="A record of one group, or the end of a transaction in which the group committed.",
    type="event",
    made_from="logtool.groups.history:GroupEvent")  # fmt: skip

RESTORE: Final = Table("restore", "group with offsets to restore", (
    _text("group", "name of the group", value="group.name"),
    Column("group_type", Kind.STRING, "type of the group", words=_TYPES, value="group.type"),
    Column("state", Kind.STRING, "state of the group", words=_STATES, value="group.state"),
    count("members", "members of the group", "group.member_count"),
    count("offsets", "offsets that the command commits", "offset_count"),
    count("left_out", "offsets of deleted topics, which the command does not commit"),
    count("metadata_left_out", "offsets whose metadata the command does not commit: the file of "
          "Kafka's tool has no place for it", "metadata_count"),
    count("removed_left_out", "removed offsets that the command does not commit: see --removed"),
    Column("outside", Kind.STRINGS, "offsets that lie beyond the end or before the start of the "
           "log: Kafka's tool commits the log end or the log start instead, as "
           "TOPIC-NUMBER=OFFSET"),
    Column("later", Kind.STRINGS, "partitions that had no committed offset at the moment of --at, "
           "and keep the offset that was committed later, as TOPIC-NUMBER=OFFSET"),
    Column("sets_back", Kind.STRINGS, "partitions whose present committed offset is larger than "
           "the one that the command commits (--at), as TOPIC-NUMBER=PRESENT:RESTORED"),
    _text("command", "the command", "no offset was committed at the moment of --at, or all offsets "
          "of the group are removed"),
    _doubt("commits of the group", "group.in_doubt"),
    Column("share_commands", Kind.STRINGS, "for a share group: the commands that set its start "
           "offsets by hand, to where delivery goes on"),
    Column("shares_in_doubt", Kind.STRINGS, "partitions of a share group whose newer states may be "
           "lost, as TOPIC-NUMBER"),
    _text("removal", "the command that removes the offsets in `later`",
          "no offset was committed later for another partition"),
), note="The command that commits the offsets of one group again.", type="restore",
    made_from="logtool.groups.restoring:Restore")  # fmt: skip

DOCUMENT: Final = Document(
    name="groups",
    title="Objects that logtool groups prints",
    tables=(PARTITION, GROUP, MEMBER, OFFSET, REMOVED, SHARE, DELIVERY, PENDING, EVENT, RESTORE,
            FINDING),
)  # fmt: skip
