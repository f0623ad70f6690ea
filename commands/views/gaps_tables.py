"""The tables of what ``gaps`` prints."""

from typing import Final

from logtool.schemas.columns import JSON, Column, Kind, Table, count, offset, size, timed
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

_NO_NAME = "the directory is not named TOPIC-NUMBER"
_NO_KAFKA = "the offset is not known, or the log has only one kind of offset"
_OF_GHOSTS = "the stretch consists of ghosts"
_REASONS = (
    "compaction", "retention", "remote", "control-batch", "aborted", "segment-missing",
    "end-missing", "truncation-hole", "damage", "unknown",
)  # fmt: skip


def _place(of: str = "") -> tuple[Column, ...]:
    """Return the columns that say which partition it is; `of` is where its `Partition` is."""
    return (
        Column("path", Kind.PATH, "the partition dir, or the log", value=f"{of}path"),
        Column("topic", Kind.STRING, "name of the topic", null=_NO_NAME, value=f"{of}topic"),
        Column("partition", Kind.INT32, "number of the partition", null=_NO_NAME,
               value=f"{of}number"),
    )  # fmt: skip


_REASON_COUNTS = Table("reason_counts", "reason", (
    count("gaps", "gaps with this reason"),
    count("offsets", "offsets missing in these gaps"),
), made_from="logtool.gaps.ledger:ReasonCounts")  # fmt: skip


def _sums(of: str = "") -> tuple[Column, ...]:
    """Return the counts of a partition and of a topic; `of` is where those of the log are."""
    return (
        count("offsets", "offsets from the log start to the log end, and lost ones behind it: "
              "visible, control and missing ones", f"{of}offsets"),
        count("visible", "records that a consumer with read_uncommitted gets",
              f"{of}visible"),
        count("control", "control records, which no consumer gets", f"{of}control"),
        count("aborted", "visible records that a consumer with read_committed does not get",
              f"{of}aborted"),
        count("missing", "offsets from the log start on that are not on disk"),
        Column("missing_share", Kind.FLOAT, "missing offsets as a share of all offsets"),
        Column("reasons", Kind.OBJECT, "the gaps, by the reason why their offsets are missing",
               words=_REASONS, of=_REASON_COUNTS, by_name=True),
        count("losses", "gaps that may mean loss"),
        count("ghosts", "empty batches that would fill the gaps", "ghost_count"),
        count("ghosts_of_losses", "empty batches that would fill gaps that may mean loss"),
        size("ghost_bytes", "size of the empty batches, each a header of 61 bytes"),
        size("ghost_bytes_by_rfc", "size of the empty batches at the 57 bytes that the RFC "
             "counts"),
        size("log_bytes", "size of the sound batches"),
        Column("ghost_share", Kind.FLOAT, "size of the empty batches as a share of the size of the "
               "sound batches"),
    )  # fmt: skip


_PARTITION = Table("partition", "partition", (
    *_place("listed."),
    offset("log_start_offset", "start of the log; first lost offset where its beginning is lost",
           None, "result.ledger.log_start"),
    offset("log_end_offset", "offset after the last batch, or the base offset of an empty segment "
           "after it", None, "result.ledger.log_end"),
    offset("checkpointed_end_offset", "largest offset that the log reached by the high watermark "
           "and the recovery point in its log dir", "the log dir has no such row, so that a lost "
           "end may not show", "result.subject.facts.checkpointed_end"),
    offset("first_visible_offset", "first offset with a record that a consumer gets",
           "there is no such record", "result.ledger.first_visible"),
    offset("last_visible_offset", "last offset with a record that a consumer gets",
           "there is no such record", "result.ledger.last_visible"),
    *_sums("result.ledger."),
    Column("cleanup_policy", Kind.STRING, "cleanup policy of the topic", null="not known",
           value="result.subject.facts.cleaning.policy"),
    count("damages", "ranges of bytes that are not sound batches", "result.ledger.damages"),
    count("overlaps", "places where batches have the same offsets as earlier batches",
          "result.ledger.overlaps"),
    offset("kafka_log_start_offset", "Kafka offset of log_start_offset, which is a Raft "
           "offset in Redpanda", _NO_KAFKA),
    offset("kafka_log_end_offset", "Kafka offset of log_end_offset, which is a Raft offset "
           "in Redpanda", _NO_KAFKA),
    Column("kafka_offsets_from", Kind.STRING, "source of the first Kafka offset, in Redpanda",
           null="there is no such source, or the log is a Kafka log", value="kafka.source"),
    Column("kafka_offsets_unknown", Kind.STRING, "why the Kafka offsets are not known, in a log of "
           "Redpanda",
           null="the Kafka offsets are known, or the log has only one kind of offset",
           value="kafka.hidden"),
), note="A partition, from its log start to its log end.",
    type="partition", made_from="logtool.gaps.objects:PartitionGaps")  # fmt: skip
GAP = Table("gap", "range of offsets that are missing, or that a consumer does not get", (
    *_place(),
    Column("kind", Kind.STRING, "where the offsets are missing",
           words=("head", "between-batches", "between-segments", "in-batch", "end",
                  "lost-end")),
    offset("first_offset", "first offset of the range"),
    offset("last_offset", "last offset of the range", "the end of the range is not known"),
    Column("kafka_first_offset", Kind.INT64, "Kafka offset of first_offset, which is a Raft offset "
           "in Redpanda", "offset", _NO_KAFKA, ways=JSON),
    Column("kafka_last_offset", Kind.INT64, "Kafka offset of last_offset, which is a Raft offset "
           "in Redpanda", "offset", _NO_KAFKA, ways=JSON),
    count("missing", "offsets in the range without a record, or without a record that a consumer "
          "gets"),
    Column("reason", Kind.STRING, "why the offsets are missing", words=_REASONS),
    Column("loss", Kind.BOOL, "whether the gap may mean loss"),
    Column("evidence", Kind.STRING, "facts that support the reason"),
    offset("before_segment", "base offset of the segment with the batch before the gap, or around "
           "it", "no batch precedes the gap, or the offsets are on disk and only consumers do not "
           "get them"),
    offset("after_segment", "base offset of the segment with the batch after the gap, or around "
           "it; at the end of the log the last segment", "the gap is below the log start, or the "
           "offsets are on disk and only consumers do not get them"),
    Column("position", Kind.INT64, "byte where the batch after the gap begins, or that around it",
           "byte", "no batch follows"),
    Column("leader_epoch", Kind.INT32, "leader epoch of the batch after the gap, or around it",
           null="the epoch is not known, or no batch follows"),
    *timed("before_timestamp_ms", "largest time of the batch before the gap, or around it",
           "there is no such batch, or the time is not known"),
    *timed("after_timestamp_ms", "largest time of the batch after the gap, or around it",
           "there is no such batch, or the time is not known"),
    count("ghosts", "empty batches that would fill the gap"),
    size("ghost_bytes", "size of the empty batches that would fill the gap"),
), note="Offsets that are missing, or that a consumer does not get.", type="gap")  # fmt: skip
_GHOST = Table("ghost", "batch without records that would fill a gap or a part of it", (
    *_place(),
    offset("first_offset", "first offset that the ghost covers"),
    offset("last_offset", "last offset that the ghost covers"),
    Column("leader_epoch", Kind.INT32, "leader epoch of the ghost"),
    Column("epoch_from", Kind.STRING, "source of leader_epoch",
           words=("leader-epoch-checkpoint", "following-batch")),
    Column("following_leader_epoch", Kind.INT32, "leader epoch of the batch after the gap; the RFC "
           "uses it for the ghost"),
    Column("checkpoint_leader_epochs", Kind.NUMBERS, "leader epochs of the offsets in "
           "leader-epoch-checkpoint, in order; empty if that file is damaged"),
    Column("reason", Kind.STRING, "why the offsets are missing"),
    Column("loss", Kind.BOOL, "whether the gap may mean loss"),
    Column("size", Kind.INT64, "size of the ghost", "bytes", always=61),
    Column("size_by_rfc", Kind.INT64, "size of the ghost as the RFC counts it", "bytes",
           always=57),
), note="A batch without records that would fill a gap or a part of it.",
    type="ghost")  # fmt: skip
_STRETCH = Table("stretch", "run of batches without a gap, or of ghosts, that the leader sends to "
                 "a follower", (
    *_place(),
    Column("ghost", Kind.BOOL, "whether the stretch consists of ghosts rather than batches"),
    Column("reason", Kind.STRING, "why the offsets of the ghosts are missing",
           null="the stretch consists of batches"),
    offset("first_offset", "first offset of the stretch in the leader"),
    offset("last_offset", "last offset of the stretch in the leader"),
    offset("without_ghosts_first_offset", "first offset of the stretch in the follower if the "
           "leader sends no ghosts",
           _OF_GHOSTS),
    offset("without_ghosts_last_offset", "last offset of the stretch in the follower if the leader "
           "sends no ghosts",
           _OF_GHOSTS),
), note="Batches without a gap, or ghosts, that the leader sends to a follower.",
    type="stretch")  # fmt: skip
_SENT_GHOST = Table("sent_ghost", "ghost that the leader sends in a round", (
    offset("first_offset", "first offset that the ghost covers"),
    offset("last_offset", "last offset that the ghost covers"),
    Column("leader_epoch", Kind.INT32, "leader epoch of the ghost"),
), made_from="logtool.gaps.follower_fetches:SentGhost")  # fmt: skip
_ROUND = Table("round", "round of the recovery of a follower", (
    *_place("listed."),
    Column("round", Kind.INT64, "number of the round, from 1 on", value="one.number"),
    offset("start_offset", "next offset of the follower at the beginning of the round", None,
           "one.start_offset"),
    offset("first_offset", "base offset of the first batch that the leader reads", None,
           "one.first_offset"),
    offset("last_offset", "last offset of the last batch that the leader reads",
           None, "one.last_offset"),
    count("batches", "batches that the leader reads", "one.batches"),
    size("size", "size of the batches that the leader reads", "one.size"),
    Column("ghosts", Kind.OBJECT, "ghosts that fill the gaps before the batches",
           value="one.sent", of=_SENT_GHOST, many=True),
    offset("base_batch_offset_before", "first offset sent so far, before the round",
           "the round is the first one", "one.base_before"),
    offset("last_batch_offset_before", "last offset sent so far, before the round",
           "the round is the first one", "one.last_before"),
    offset("base_batch_offset", "first offset sent so far, after the round", None,
           "one.base"),
    offset("last_batch_offset", "last offset sent so far, after the round", None,
           "one.last"),
), note="One round of the recovery of a follower (--rounds): the batches that the leader reads, "
        "the ghosts that fill the gaps before these batches, and the first and last offset "
        "sent before and after the round.",
    type="round", made_from="logtool.gaps.objects:PartitionRound")  # fmt: skip
_TOPIC = Table("topic", "topic", (
    Column("topic", Kind.STRING, "name of the topic"),
    count("partitions", "partitions of the topic that were read"),
    *_sums(),
), note="The sums of the partitions of a topic.",
    type="topic", made_from="logtool.gaps.objects:TopicGaps")  # fmt: skip
DOCUMENT: Final = Document(
    name="gaps",
    title="Objects that logtool gaps prints",
    tables=(_PARTITION, GAP, _GHOST, _STRETCH, _ROUND, _TOPIC, FINDING),
)
