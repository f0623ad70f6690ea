"""The objects that several commands print, such as errors, the summary and actions."""

from typing import Final

from logtool.schemas.columns import Column, Kind, Table

SEVERITIES: Final = Table("severities", "summary", (
    Column("error", Kind.INT64, "findings that are errors", "count"),
    Column("warning", Kind.INT64, "findings that are warnings", "count"),
    Column("info", Kind.INT64, "findings that are worth knowing", "count"),
), made_from="logtool.running.summary:SeverityCounts")  # fmt: skip
SUMMARY: Final = Table("summary", "run", (
    Column("complete", Kind.BOOL, "whether everything that was asked for was read"),
    Column("partitions", Kind.INT64, "partitions that were read", "count"),
    Column("segments", Kind.INT64, "segments that were read", "count"),
    Column("batches", Kind.INT64, "sound batches that were read", "count"),
    Column("records", Kind.INT64, "records in these batches", "count"),
    Column("bytes", Kind.INT64, "bytes of logs that were read", "bytes"),
    Column("elapsed_s", Kind.FLOAT, "time since the command began", "s"),
    Column("findings", Kind.OBJECT, "findings by severity", value="severity_counts",
           of=SEVERITIES),
    Column("codes", Kind.COUNTS, "findings by code", value="code_counts"),
    Column("next", Kind.STRINGS, "commands to run next, each once, in the order found"),
), note="The last line. complete is false after an interrupt, when something could not be read, "
        "and when nothing matched.",
    type="summary", made_from="logtool.running.summary:Summary")  # fmt: skip

_SINGLE = "it is about no single file"
ERROR: Final = Table("error", "input that could not be read", (
    Column("path", Kind.STRING, "the file or directory", null=_SINGLE),
    Column("position", Kind.INT64, "byte in the file", "byte", "it is about no single place"),
    Column("length", Kind.INT64, "bytes affected", "bytes", "it is about no bytes"),
    Column("reason", Kind.STRING, "what kind of error it is"),
    Column("message", Kind.STRING, "what is wrong"),
), note="Bytes that cannot be shown, an input that could not be read (reason: unreadable), a path "
        "at which nothing matched (nothing-matched), a file that could not be written "
        "(unwritable), or what was not done for safety's sake (refused).",
    type="error")  # fmt: skip

_NOT_PARTITION = "it is about no partition"
ACTION: Final = Table("action", "thing that happens to a partition or its log dir", (
    Column("action", Kind.STRING, "what happens", words=(
        "truncate", "append", "replace", "create", "remove", "rename", "recover", "refuse",
        "lacks", "fill", "unfilled", "zombie", "overlap", "discard", "offline", "unknown", "stray",
        "delete", "keep", "adopt", "ignore", "unnoticed", "move", "promote", "limits", "in-use",
        "finish", "damaged", "impossible")),
    Column("path", Kind.PATH, "the file or directory"),
    Column("target", Kind.PATH, "the new name of a file, or the copy that damage is filled from",
           null="it has none"),
    Column("topic", Kind.STRING, "name of the topic", null=_NOT_PARTITION),
    Column("partition", Kind.INT32, "number of the partition", null=_NOT_PARTITION),
    Column("segment", Kind.INT64, "base offset of the segment", "offset",
           "it is not about one segment"),
    Column("position", Kind.INT64, "byte from which on something goes", "byte",
           "it is about no single place"),
    Column("length", Kind.INT64, "bytes that go, or that are written", "bytes",
           "it is about no bytes"),
    Column("first_offset", Kind.INT64, "first offset that is lost; of fill and unfilled the first "
           "of the range", "offset", "no offset, or it is not known"),
    Column("last_offset", Kind.INT64, "last offset that is lost; of fill and unfilled the last of "
           "the range", "offset", "no offset, or it is not known"),
    Column("lost_bytes", Kind.INT64, "bytes of batches that are lost", "bytes", value="loss.bytes"),
    Column("lost_batches", Kind.INT64, "sound batches that are lost", "count",
           value="loss.batches"),
    Column("lost_records", Kind.INT64, "records that are lost", "count", value="loss.records"),
    Column("lost_bad_batches", Kind.INT64, "batches that are not sound and whose headers can be "
           "believed", "count", value="loss.bad_batches"),
    Column("lost_bad_records", Kind.INT64, "of lost_records, those in bad batches", "count",
           value="loss.bad_records"),
    Column("lost_behind_damage", Kind.INT64, "of lost_batches, those that are lost only because of "
           "the damage before them", "count", value="loss.batches_behind_damage"),
    Column("below_high_watermark", Kind.BOOL, "whether offsets that were acknowledged are lost",
           null="the high watermark is not known", value="loss.below_high_watermark"),
    Column("reason", Kind.STRING, "why it happens"),
), note="One thing that happens. truncate, append (the undoing of truncate), replace, create, "
        "remove and rename change a file; recover reads a segment again; fill (damage that the "
        "batches of another copy replace, target: the partition dir that has them), unfilled "
        "(damage of which nothing proves what stood there), refuse, offline, unknown, stray, "
        "ignore, unnoticed, zombie (a segment that a truncation had removed and that came back), "
        "overlap (segments of which leader epochs do not say which is right), move (a copy goes on "
        "to another log dir), promote (it becomes the partition), discard (it goes with its "
        "records), limits (what is not known of log dirs that were not given), in-use, finish, "
        "damaged (a log) and impossible (an index or snapshot to be built) change none.",
    type="action", made_from="logtool.actions:Action")  # fmt: skip
UNDO: Final = Table("undo", "undo directory", (
    Column("path", Kind.PATH, "the directory"),
), note="The directory from which logtool undo puts back what was changed.",
    type="undo")  # fmt: skip

COPY_STATUSES: Final = (
    "other-topic", "diverged", "damaged", "missing", "compacted", "disjoint", "behind", "same",
    "alone",
)  # fmt: skip
"""The relations between copies of a partition, the gravest first."""
_COMPARED_BATCH = Table("batch", "batch at which two copies diverge", (
    Column("segment", Kind.INT64, "base offset of its segment", "offset"),
    Column("position", Kind.INT64, "byte in the log of the segment where it begins", "byte"),
    Column("size", Kind.INT64, "size of the batch with its header", "bytes"),
    Column("base_offset", Kind.INT64, "first offset", "offset"),
    Column("last_offset", Kind.INT64, "last offset", "offset"),
    Column("leader_epoch", Kind.INT32, "epoch of the leader that took the batch; -1: not known"),
    Column("crc", Kind.UINT32, "CRC that its header has"),
    Column("record_count", Kind.INT32, "records in it; -1: not known, as in a compressed wrapper "
           "of magic 0 or 1"),
), note="A batch of one of two copies that diverge.",
    made_from="logtool.copies.batches:CopyBatch")  # fmt: skip
_LACKS = Table("lacks", "copy of two that are compared", (
    Column("compacted", Kind.INT64, "batches that compaction removed, or left with fewer records",
           "count"),
    Column("damaged", Kind.INT64, "batches that are damaged in it", "count"),
    Column("missing", Kind.PAIRS, "ranges that are missing for no known reason, each with its "
           "first and last offset", "offset"),
    Column("before", Kind.INT64, "batches before the start of its log", "count"),
    Column("behind", Kind.INT64, "batches after the end of its log", "count"),
), note="Batches that the other copy has and this one lacks.",
    made_from="logtool.copies.pair:Lacks")  # fmt: skip
_NO_DIVERGENCE = "they do not diverge, or topic ids differ"
_NOTHING_COMMON = "they have no offset in common, or topic ids differ"
PAIR: Final = Table("pair", "two copies of a partition", (
    Column("topic", Kind.STRING, "name of the topic", value="left.topic"),
    Column("partition", Kind.INT32, "number of the partition", value="left.partition"),
    Column("left", Kind.STRING, "name of the one copy: id of its node, or its path where the id is "
           "not known or not the only one", value="left.label"),
    Column("right", Kind.STRING, "name of the other copy, by the same rule", value="right.label"),
    Column("status", Kind.STRING, "how the copies relate to each other; the gravest counts",
           words=COPY_STATUSES),
    Column("first_offset", Kind.INT64, "first offset that both may have", "offset",
           _NOTHING_COMMON),
    Column("end_offset", Kind.INT64, "offset after the last that both may have", "offset",
           _NOTHING_COMMON),
    Column("left_end_offset", Kind.INT64, "end of the log of the left copy", "offset",
           value="left.log_end"),
    Column("right_end_offset", Kind.INT64, "end of the log of the right copy", "offset",
           value="right.log_end"),
    Column("equal_batches", Kind.INT64, "batches that are the same in both, byte for byte",
           "count", value="equal"),
    Column("rewritten_batches", Kind.INT64, "batches that compaction left in two shapes", "count",
           value="rewritten"),
    Column("diverges_at", Kind.INT64, "first offset at which the copies diverge", "offset",
           _NO_DIVERGENCE),
    Column("left_batch", Kind.OBJECT, "batch of the left copy at the divergence, or the first "
           "after it", null=f"it has none there, {_NO_DIVERGENCE}", of=_COMPARED_BATCH),
    Column("right_batch", Kind.OBJECT, "batch of the right copy at the divergence, or the first "
           "after it", null=f"it has none there, {_NO_DIVERGENCE}", of=_COMPARED_BATCH),
    Column("left_lacks", Kind.OBJECT, "batches that only the right copy has, up to a divergence",
           of=_LACKS),
    Column("right_lacks", Kind.OBJECT, "batches that only the left copy has, up to a divergence",
           of=_LACKS),
    Column("common_epoch", Kind.NUMBERS, "the last leader epoch that both know, and its first "
           "offset", null="they share none, or topic ids differ"),
    Column("epochs_diverge_at", Kind.INT64, "offset from which on their leader epochs differ",
           "offset", "they do not differ, or topic ids do"),
), note="Two copies of a partition compared, over the offsets that both may have.",
    type="pair", made_from="logtool.copies.pair:CopyPair")  # fmt: skip
