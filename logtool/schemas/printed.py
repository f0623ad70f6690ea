"""The objects that several commands print, such as errors, the summary and actions."""

from typing import Final

from logtool.schemas.columns import JSON, Column, Kind, Table

SEVERITIES: Final = Table("severities", "summary", (
    Column("error", Kind.INT64, "findings that are errors", "count"),
    Column("warning", Kind.INT64, "findings that are warnings", "count"),
    Column("info", Kind.INT64, "findings that are only information", "count"),
), made_from="logtool.running.summary:SeverityCounts")  # fmt: skip
SUMMARY: Final = Table("summary", "run", (
    Column("complete", Kind.BOOL, "true if logtool read everything that was asked for"),
    Column("partitions", Kind.INT64, "partitions that were read", "count"),
    Column("segments", Kind.INT64, "segments that were read", "count"),
    Column("batches", Kind.INT64, "sound batches that were read", "count"),
    Column("records", Kind.INT64, "records in the sound batches", "count"),
    Column("bytes", Kind.INT64, "bytes of logs that were read", "bytes"),
    Column("elapsed_s", Kind.FLOAT, "time since the command began", "s"),
    Column("findings", Kind.OBJECT, "number of findings by severity", value="severity_counts",
           of=SEVERITIES),
    Column("codes", Kind.COUNTS, "number of findings by code", value="code_counts"),
    Column("partition_list", Kind.BOOL, "whether a metadata log or an offset checkpoint names the "
           "partitions that should exist; if none does, absent partitions are not found",
           null="the command does not look for absent partitions"),
    Column("found", Kind.INT64, "records that a search by content found", "count",
           null="the command does not search records by content"),
    Column("next", Kind.STRINGS, "commands to run next, each once, in the order in which they were "
           "found"),
), note="The last line. complete is false after an interrupt, when something could not be read, "
        "and when nothing matched.",
    type="summary", made_from="logtool.running.summary:Summary")  # fmt: skip

_SINGLE = "the problem is not in a single file"
ERROR: Final = Table("error", "input that could not be read", (
    Column("path", Kind.STRING, "path of the file or directory", null=_SINGLE),
    Column("position", Kind.INT64, "byte in the file", "byte",
           "the problem has no single position"),
    Column("length", Kind.INT64, "bytes affected", "bytes", "the problem affects no bytes"),
    Column("reason", Kind.STRING, "kind of the problem"),
    Column("message", Kind.STRING, "description of the problem"),
), note="Bytes that cannot be shown, an input that could not be read (reason: unreadable), a path "
        "at which nothing matched (nothing-matched), a file that could not be written "
        "(unwritable), or an action that logtool refused for safety (refused).",
    type="error")  # fmt: skip

_NOT_PARTITION = "the action is not about a partition"
ACTION: Final = Table("action", "action on a partition or its log dir", (
    Column("action", Kind.STRING, "kind of the action", words=(
        "truncate", "append", "replace", "create", "remove", "rename", "recover", "refuse",
        "lacks", "hide", "fill", "unfilled", "diverges",
        "zombie", "overlap", "discard", "offline", "unknown", "stray",
        "delete", "erase", "keep", "absent", "lost", "ahead", "leaderless", "adopt", "ignore",
        "unnoticed", "reappear", "move",
        "promote", "purge", "tiered", "limits", "in-use", "finish", "damaged", "impossible")),
    Column("path", Kind.PATH, "path of the file or directory"),
    Column("target", Kind.PATH, "new name of a file, the copy from which damage is filled, "
           "or the copy from which the log diverges",
           null="the action has no target"),
    Column("topic", Kind.STRING, "name of the topic", null=_NOT_PARTITION),
    Column("partition", Kind.INT32, "number of the partition", null=_NOT_PARTITION),
    Column("segment", Kind.INT64, "base offset of the segment", "offset",
           "the action is not about one segment"),
    Column("position", Kind.INT64, "byte from which the file is changed", "byte",
           "the action has no single position"),
    Column("length", Kind.INT64, "bytes that are removed or written", "bytes",
           "the action affects no bytes"),
    Column("first_offset", Kind.INT64, "first offset that is lost, is absent or reappears; for "
           "fill and unfilled the first offset of the range, for diverges the first that differs",
           "offset",
           "the action is about no offsets, or they are not known"),
    Column("last_offset", Kind.INT64, "last offset that is lost, is absent or reappears; for fill "
           "and unfilled the last offset of the range", "offset",
           "the action is about no offsets, or they are not known"),
    Column("lost_bytes", Kind.INT64, "bytes of batches that are lost", "bytes", value="loss.bytes"),
    Column("lost_batches", Kind.INT64, "sound batches that are lost", "count",
           value="loss.batches"),
    Column("lost_records", Kind.INT64, "records that are lost", "count", value="loss.records"),
    Column("lost_bad_batches", Kind.INT64, "batches that are damaged but have a plausible header",
           "count", value="loss.bad_batches"),
    Column("lost_bad_records", Kind.INT64, "part of lost_records that is in bad batches", "count",
           value="loss.bad_records"),
    Column("lost_behind_damage", Kind.INT64, "part of lost_batches that is lost only because of "
           "damage before it", "count", value="loss.batches_behind_damage"),
    Column("below_high_watermark", Kind.BOOL, "true if acknowledged offsets are lost",
           null="the high watermark is not known", value="loss.below_high_watermark"),
    Column("reason", Kind.STRING, "reason of the action"),
), note="One action. truncate, append (which undoes truncate), replace, create, remove, rename "
        "and erase (a file that Kafka did not write is removed with a segment) change a file; "
        "recover reads a segment again; fill (the batches of another copy replace "
        "damage, target: the partition dir that has these batches), unfilled (damage for which no "
        "copy has proven batches), refuse, offline, unknown, stray, ignore, unnoticed, zombie (a "
        "segment that a truncation had removed and that came back), overlap (segments between "
        "which leader epochs do not decide), move (the copy to another log dir continues), "
        "promote (the future replica becomes the partition), reappear (records that were "
        "deleted are readable again), discard (a replica is deleted with "
        "its records), purge (the broker deletes a directory that ends in -delete), limits (facts "
        "that are not known because log dirs were not given), in-use, finish, ahead (batches have "
        "a leader epoch above that of the metadata log), damaged (a log) and impossible (an index "
        "or snapshot that cannot be built) change no file.",
    type="action", made_from="logtool.actions:Action")  # fmt: skip
UNDO: Final = Table("undo", "undo directory", (
    Column("path", Kind.PATH, "path of the undo directory"),
), note="The directory from which logtool undo restores the changed files.",
    type="undo")  # fmt: skip

COPY_STATUSES: Final = (
    "other-topic", "diverged", "damaged", "unread", "missing", "compacted", "disjoint",
    "behind", "same", "alone",
)  # fmt: skip
"""The relations between copies of a partition, the gravest first."""
_COMPARED_BATCH = Table("batch", "batch at which two copies diverge", (
    Column("segment", Kind.INT64, "base offset of the segment that holds the batch", "offset"),
    Column("position", Kind.INT64, "byte in the log of the segment where the batch begins", "byte"),
    Column("size", Kind.INT64, "size of the batch with its header", "bytes"),
    Column("base_offset", Kind.INT64, "first offset of the batch", "offset"),
    Column("last_offset", Kind.INT64, "last offset of the batch", "offset"),
    Column("leader_epoch", Kind.INT32, "epoch of the leader that took the batch; -1: not known"),
    Column("crc", Kind.UINT32, "CRC in the header of the batch"),
    Column("record_count", Kind.INT32, "number of records; -1: not known, for example in a "
           "compressed wrapper of magic 0 or 1"),
), note="A batch of one of two copies that diverge.",
    made_from="logtool.copies.batches:CopyBatch")  # fmt: skip
_LACKS = Table("lacks", "one of two copies that are compared", (
    Column("compacted", Kind.INT64, "batches that compaction removed, or left with fewer records",
           "count"),
    Column("damaged", Kind.INT64, "batches that are damaged in this copy", "count"),
    Column("missing", Kind.PAIRS, "ranges that are missing for an unknown reason, each with its "
           "first and last offset", "offset"),
    Column("before", Kind.INT64, "batches before the log start of this copy", "count"),
    Column("behind", Kind.INT64, "batches after the log end of this copy", "count"),
), note="Batches that the other copy has, but not this copy.",
    made_from="logtool.copies.pair:Lacks")  # fmt: skip
_NO_DIVERGENCE = "the copies do not diverge, or topic ids differ"
_NOTHING_COMMON = "the copies have no offset in common, or topic ids differ"
PAIR: Final = Table("pair", "two copies of a partition", (
    Column("topic", Kind.STRING, "name of the topic", value="left.topic"),
    Column("partition", Kind.INT32, "number of the partition", value="left.partition"),
    Column("left", Kind.STRING, "name of the left copy: id of its node, or its path if the id is "
           "not known or not unique", value="left.label"),
    Column("right", Kind.STRING, "name of the right copy: id of its node, or its path if the id is "
           "not known or not unique", value="right.label"),
    Column("status", Kind.STRING, "relation between the copies; if several apply, the most severe",
           words=COPY_STATUSES),
    Column("first_offset", Kind.INT64, "first offset that both copies may have", "offset",
           _NOTHING_COMMON),
    Column("end_offset", Kind.INT64, "offset after the last offset that both copies may have",
           "offset",
           _NOTHING_COMMON),
    Column("left_end_offset", Kind.INT64, "log end of the left copy", "offset",
           value="left.log_end"),
    Column("right_end_offset", Kind.INT64, "log end of the right copy", "offset",
           value="right.log_end"),
    Column("equal_batches", Kind.INT64, "batches that are the same in both copies, byte for byte",
           "count", value="equal"),
    Column("rewritten_batches", Kind.INT64, "batches that compaction left in two different forms",
           "count",
           value="rewritten"),
    Column("diverges_at", Kind.INT64, "first offset at which the copies diverge", "offset",
           _NO_DIVERGENCE),
    Column("left_batch", Kind.OBJECT, "batch of the left copy at the divergence, or the first "
           "batch after it", null=f"the left copy has no batch there, {_NO_DIVERGENCE}",
           of=_COMPARED_BATCH),
    Column("right_batch", Kind.OBJECT, "batch of the right copy at the divergence, or the first "
           "batch after it", null=f"the right copy has no batch there, {_NO_DIVERGENCE}",
           of=_COMPARED_BATCH),
    Column("left_different", Kind.INT64, "batches of the left copy from the divergence on that the "
           "right copy does not have, as far as both reach", "count", ways=JSON),
    Column("right_different", Kind.INT64, "batches of the right copy from the divergence on that "
           "the left copy does not have, as far as both reach", "count", ways=JSON),
    Column("meets_at", Kind.INT64, "offset from which on the batches are the same again, up to the "
           "end of the shorter copy", "offset", f"they differ up to the end, {_NO_DIVERGENCE}",
           ways=JSON),
    Column("left_lacks", Kind.OBJECT, "batches that only the right copy has, up to a divergence",
           of=_LACKS),
    Column("right_lacks", Kind.OBJECT, "batches that only the left copy has, up to a divergence",
           of=_LACKS),
    Column("common_epoch", Kind.NUMBERS, "last leader epoch that both copies have, and its first "
           "offset", null="the copies share no epoch, or topic ids differ"),
    Column("epochs_diverge_at", Kind.INT64, "first offset at which the leader epochs differ",
           "offset", "the leader epochs do not differ, or topic ids differ"),
), note="Two copies of a partition compared, over the offsets that both copies may have.",
    type="pair", made_from="logtool.copies.pair:CopyPair")  # fmt: skip
