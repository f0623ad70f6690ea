"""The tables of what ``gaps`` prints."""

from typing import Final

from logtool.schemas.columns import JSON, Column, Kind, Table, count, offset, size, timed
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

_NO_NAME = "the directory's name has none"
_NO_KAFKA = "it is not known, or the log has one kind of offset only"
_OF_GHOSTS = "the stretch is of ghosts"
_REASONS = (
    "compaction", "retention", "control-batch", "aborted", "segment-missing", "truncation-hole",
    "damage", "unknown",
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
    count("gaps", "gaps that have the reason"),
    count("offsets", "offsets missing in these gaps"),
), made_from="logtool.gaps.ledger:ReasonCounts")  # fmt: skip


def _sums(of: str = "") -> tuple[Column, ...]:
    """Return the counts of a partition and of a topic; `of` is where those of the log are."""
    return (
        count("offsets", "offsets from the log start to the log end: visible, control and missing "
              "ones", f"{of}offsets"),
        count("visible", "records that a consumer with read_uncommitted is given",
              f"{of}visible"),
        count("control", "control records, which no consumer is given", f"{of}control"),
        count("aborted", "visible records that a consumer with read_committed is not given",
              f"{of}aborted"),
        count("missing", "offsets that are not on disk, from the log start on"),
        Column("missing_share", Kind.FLOAT, "missing offsets as a share of all"),
        Column("reasons", Kind.OBJECT, "the gaps by the reason why offsets are missing",
               words=_REASONS, of=_REASON_COUNTS, by_name=True),
        count("losses", "gaps that may mean loss"),
        count("ghosts", "empty batches that would fill the gaps", "ghost_count"),
        count("ghosts_of_losses", "empty batches that would fill gaps that may mean loss"),
        size("ghost_bytes", "size of the empty batches, each a header of 61 bytes"),
        size("ghost_bytes_by_rfc", "size of the empty batches at the 57 bytes that the RFC "
             "counts"),
        size("log_bytes", "size of the sound batches"),
        Column("ghost_share", Kind.FLOAT, "size of the empty batches, as a share of that of the "
               "sound batches"),
    )  # fmt: skip


_PARTITION = Table("partition", "partition", (
    *_place("listed."),
    offset("log_start_offset", "start of the log", None, "result.ledger.log_start"),
    offset("log_end_offset", "offset after the last batch, or the base offset of an empty segment "
           "after it", None, "result.ledger.log_end"),
    offset("first_visible_offset", "first offset with a record that a consumer is given",
           "there is no such record", "result.ledger.first_visible"),
    offset("last_visible_offset", "last offset with a record that a consumer is given",
           "there is no such record", "result.ledger.last_visible"),
    *_sums("result.ledger."),
    Column("cleanup_policy", Kind.STRING, "cleanup policy of the topic", null="it is not known",
           value="result.subject.facts.cleaning.policy"),
    count("damages", "ranges of bytes that are not sound batches", "result.ledger.damages"),
    count("overlaps", "places where batches lie at offsets that earlier ones have",
          "result.ledger.overlaps"),
    offset("kafka_log_start_offset", "Kafka's offset for log_start_offset, which is Raft's in "
           "Redpanda", _NO_KAFKA),
    offset("kafka_log_end_offset", "Kafka's offset for log_end_offset, which is Raft's in "
           "Redpanda", _NO_KAFKA),
    Column("kafka_offsets_from", Kind.STRING, "source of the first Kafka offset, in Redpanda",
           null="there is none, or the log is Kafka's", value="kafka.source"),
    Column("kafka_offsets_unknown", Kind.STRING, "why Kafka's offsets are not known, in Redpanda",
           null="they are known, or the log has one kind of offset only", value="kafka.hidden"),
), note="A partition, from its log start to its log end.",
    type="partition", made_from="logtool.gaps.objects:PartitionGaps")  # fmt: skip
GAP = Table("gap", "range of offsets that are missing, or that a consumer is not given", (
    *_place(),
    Column("kind", Kind.STRING, "where the offsets are missing",
           words=("head", "between-batches", "between-segments", "in-batch", "end")),
    offset("first_offset", "first offset of the range"),
    offset("last_offset", "last offset of the range", "it is not known where the range ends"),
    Column("kafka_first_offset", Kind.INT64, "Kafka's offset for first_offset, which is Raft's in "
           "Redpanda", "offset", _NO_KAFKA, ways=JSON),
    Column("kafka_last_offset", Kind.INT64, "Kafka's offset for last_offset, which is Raft's in "
           "Redpanda", "offset", _NO_KAFKA, ways=JSON),
    count("missing", "offsets in the range that have no record, or none for a consumer"),
    Column("reason", Kind.STRING, "why the offsets are missing", words=_REASONS),
    Column("loss", Kind.BOOL, "whether the gap may mean loss"),
    Column("evidence", Kind.STRING, "facts that the reason rests on"),
    offset("before_segment", "base offset of the segment with the batch before the gap, or around "
           "it", "no batch is before it, or only consumers lack the offsets"),
    offset("after_segment", "base offset of the segment with the batch after the gap, or around "
           "it; at the end of the log that of the last segment", "the gap is below the log start, "
           "or only consumers lack the offsets"),
    Column("position", Kind.INT64, "byte where the batch after the gap begins, or that around it",
           "byte", "no batch follows"),
    Column("leader_epoch", Kind.INT32, "leader epoch of the batch after the gap, or around it",
           null="it is not known, or no batch follows"),
    *timed("before_timestamp_ms", "largest time of the batch before the gap, or around it",
           "there is none, or it is not known"),
    *timed("after_timestamp_ms", "largest time of the batch after the gap, or around it",
           "there is none, or it is not known"),
    count("ghosts", "empty batches that would fill the gap"),
    size("ghost_bytes", "size of the empty batches that would fill the gap"),
), note="Offsets that are missing, or that a consumer is not given.", type="gap")  # fmt: skip
_GHOST = Table("ghost", "batch without records that would fill a gap or a part of it", (
    *_place(),
    offset("first_offset", "first offset that the ghost covers"),
    offset("last_offset", "last offset that the ghost covers"),
    Column("leader_epoch", Kind.INT32, "leader epoch of the ghost"),
    Column("epoch_from", Kind.STRING, "source of leader_epoch",
           words=("leader-epoch-checkpoint", "following-batch")),
    Column("following_leader_epoch", Kind.INT32, "leader epoch of the batch after the gap, which "
           "the RFC gives the ghost"),
    Column("checkpoint_leader_epochs", Kind.NUMBERS, "leader epochs of the offsets by "
           "leader-epoch-checkpoint, in order; empty where that file is not sound"),
    Column("reason", Kind.STRING, "why the offsets are missing"),
    Column("loss", Kind.BOOL, "whether the gap may mean loss"),
    Column("size", Kind.INT64, "size of the ghost", "bytes", always=61),
    Column("size_by_rfc", Kind.INT64, "size of the ghost as the RFC counts it", "bytes",
           always=57),
), note="A batch without records that would fill a gap or a part of it.",
    type="ghost")  # fmt: skip
_STRETCH = Table("stretch", "run of batches without a gap, or of ghosts, that a follower is sent", (
    *_place(),
    Column("ghost", Kind.BOOL, "whether the stretch is of ghosts and not of batches"),
    Column("reason", Kind.STRING, "why the offsets of the ghosts are missing",
           null="the stretch is of batches"),
    offset("first_offset", "first offset of the leader"),
    offset("last_offset", "last offset of the leader"),
    offset("without_ghosts_first_offset", "first offset in the follower if no ghosts are sent",
           _OF_GHOSTS),
    offset("without_ghosts_last_offset", "last offset in the follower if no ghosts are sent",
           _OF_GHOSTS),
), note="Batches without a gap, or ghosts, that a follower is sent.",
    type="stretch")  # fmt: skip
_SENT_GHOST = Table("sent_ghost", "ghost that is sent in a round", (
    offset("first_offset", "first offset that the ghost covers"),
    offset("last_offset", "last offset that the ghost covers"),
    Column("leader_epoch", Kind.INT32, "leader epoch of the ghost"),
), made_from="logtool.gaps.follower_fetches:SentGhost")  # fmt: skip
_ROUND = Table("round", "round of the recovery of a follower", (
    *_place("listed."),
    Column("round", Kind.INT64, "number of the round, from 1 on", value="one.number"),
    offset("start_offset", "next offset of the follower when the round begins", None,
           "one.start_offset"),
    offset("first_offset", "base offset of the first batch that is read", None,
           "one.first_offset"),
    offset("last_offset", "last offset of the last batch that is read", None, "one.last_offset"),
    count("batches", "batches that are read", "one.batches"),
    size("size", "size of the batches that are read", "one.size"),
    Column("ghosts", Kind.OBJECT, "ghosts that fill the gaps before the batches",
           value="one.sent", of=_SENT_GHOST, many=True),
    offset("base_batch_offset_before", "first offset that was sent, as known before the round",
           "it is the first round", "one.base_before"),
    offset("last_batch_offset_before", "last offset that was sent, as known before the round",
           "it is the first round", "one.last_before"),
    offset("base_batch_offset", "first offset that was sent, as known after the round", None,
           "one.base"),
    offset("last_batch_offset", "last offset that was sent, as known after the round", None,
           "one.last"),
), note="One round of the recovery of a follower (--rounds): the batches read, the ghosts that "
        "fill the gaps before them, and the first and the last offset sent, before and after.",
    type="round", made_from="logtool.gaps.objects:PartitionRound")  # fmt: skip
_TOPIC = Table("topic", "topic", (
    Column("topic", Kind.STRING, "name of the topic"),
    count("partitions", "partitions of the topic that were read"),
    *_sums(),
), note="The sums of the partitions of a topic.",
    type="topic", made_from="logtool.gaps.objects:TopicGaps")  # fmt: skip
DOCUMENT: Final = Document(
    name="gaps",
    title="What logtool gaps prints",
    tables=(_PARTITION, GAP, _GHOST, _STRETCH, _ROUND, _TOPIC, FINDING),
)
