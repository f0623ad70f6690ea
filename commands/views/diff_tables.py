"""Tables of the objects that ``diff`` prints."""

from typing import Final

from logtool.commands.views.fingerprint_tables import FINGERPRINT
from logtool.copies.absent_copies import AbsentState
from logtool.copies.log_dirs import DifferenceKind
from logtool.schemas.columns import JSON, Column, Kind, Table
from logtool.schemas.document import Document
from logtool.schemas.printed import COPY_STATUSES, PAIR

_TOPIC = Column("topic", Kind.STRING, "name of the topic")
_NUMBER = Column("partition", Kind.INT32, "number of the partition")
_NO_METADATA = "the log dirs have no metadata log that names the partition"
PARTITION: Final = Table("partition", "partition", (
    _TOPIC,
    _NUMBER,
    Column("copies", Kind.STRINGS, "names of the copies: the node id, or the path if the id is not "
           "known or not unique", value="labels"),
    Column("status", Kind.STRING, "relation of the copies to each other; with several pairs, the "
           "worst one",
           words=COPY_STATUSES),
    Column("identical", Kind.BOOL, "whether all copies have the same batches, log start, log end "
           "and leader epochs, and no damage or the same damage; see the difference objects for "
           "indexes and producer snapshots",
           ways=JSON),
    Column("unequal", Kind.STRINGS, "log starts, log ends, leader epochs and bytes without a sound "
           "batch, if they differ, with the value of each copy", ways=JSON),
    Column("new_topic", Kind.BOOL, "whether the copies are of one log dir, and the topic was "
           "deleted and created again in between, by the metadata log of each: this is normal",
           value="is_new_topic", ways=JSON),
    Column("same_damage", Kind.BOOL, "whether all copies have damage, with the same bytes at the "
           "same places; an unfinished append counts", ways=JSON),
    Column("diverges_at", Kind.INT64, "first offset at which two copies diverge", "offset",
           "no two copies diverge"),
    Column("superset", Kind.STRINGS, "copies that have all batches that any copy has"),
    Column("behind", Kind.STRINGS, "copies that end before another copy and are the same up to "
           "their end"),
    Column("stuck", Kind.STRINGS, "copies in behind that do not catch up by following, because a "
           "batch that they lack has a larger leader epoch than a later batch"),
    Column("without_beginning", Kind.STRINGS, "copies that begin later than another, although "
           "their leader epochs begin before: retention did not delete their beginning"),
    Column("damaged", Kind.STRINGS, "copies with damage; an unfinished append does not count"),
    Column("unread", Kind.STRINGS, "copies of which a part cannot be read, and nothing is known to "
           "be damaged", ways=JSON),
    Column("unfilled", Kind.INT64, "damaged ranges that no other copy can fill; an unfinished "
           "append does not count", "count"),
    Column("in_sync", Kind.NUMBERS, "node ids of the in-sync replicas in the newest metadata log "
           "of the log dirs", null=_NO_METADATA),
    Column("eligible", Kind.NUMBERS, "node ids of the eligible leader replicas in the newest "
           "metadata log of the log dirs", null=_NO_METADATA),
    Column("foreign", Kind.STRINGS, "segments of copies that diverge whose batches are those of "
           "another partition, and the directory of that partition", ways=JSON),
    Column("next", Kind.STRING, "command line that says more about copies that diverge",
           null="no two copies diverge, they are copies of one log dir, or a copy is a digest or "
           "remote", value="next_command",
           ways=JSON),
    Column("fixes", Kind.STRINGS, "command lines that repair damaged or incomplete copies from "
           "other copies that are local directories"),
), note="The result for one partition; the objects of its copies, pairs and damage follow.",
    type="partition", made_from="logtool.copies.verdict:CopiesVerdict")  # fmt: skip
COPY: Final = Table("copy", "copy of a partition", (
    _TOPIC,
    _NUMBER,
    Column("copy", Kind.STRING, "name of the copy, as in the partition object", value="label"),
    Column("node", Kind.INT32, "id of the node of the copy", null="not known"),
    Column("path", Kind.STRING, "the partition dir that was read"),
    Column("topic_id", Kind.STRING, "topic id in partition.metadata of the copy",
           null="there is no partition.metadata"),
    Column("log_start_offset", Kind.INT64, "start of the log", "offset", value="log_start"),
    Column("log_end_offset", Kind.INT64, "end of the log", "offset", value="log_end"),
    Column("high_watermark", Kind.INT64, "checkpointed high watermark", "offset",
           "not known"),
    Column("segments", Kind.INT64, "segments", "count"),
    Column("batches", Kind.INT64, "sound batches", "count", value="tally.batches"),
    Column("records", Kind.INT64, "records in the sound batches", "count"),
    Column("bytes", Kind.INT64, "bytes of the .log files", "bytes"),
    Column("leader_epochs", Kind.PAIRS, "leader epochs in leader-epoch-checkpoint, each with its "
           "first offset, in order", value="epochs"),
    Column("batch_epochs", Kind.PAIRS, "leader epochs in the batches, each with its first offset, "
           "in order"),
    Column("compaction_hints", Kind.STRINGS, "signs that the copy was compacted",
           words=("cleaner-checkpoint", "delete-horizons", "partial-batches")),
    Column("damaged_ranges", Kind.INT64, "damaged ranges; an unfinished append does not count",
           "count"),
), note="One copy of the partition.", type="copy",
    made_from="logtool.copies.copy:Copy")  # fmt: skip
_NOT_COMPARED = "no other copy has a sound batch of the same offset and size, or a digest was given"
_LOSES_NONE = "no offset is missing because of the damage"
DAMAGE: Final = Table("damage", "damaged range of a copy", (
    Column("topic", Kind.STRING, "name of the topic", value="copy.topic"),
    Column("partition", Kind.INT32, "number of the partition", value="copy.partition"),
    Column("copy", Kind.STRING, "name of the copy, as in the partition object", value="copy.label"),
    Column("path", Kind.STRING, "the partition dir", value="copy.path"),
    Column("segment", Kind.INT64, "base offset of the segment", "offset", value="damage.segment"),
    Column("position", Kind.INT64, "byte in the .log where the damage begins", "byte",
           value="damage.position"),
    Column("length", Kind.INT64, "size of the damage in bytes", "bytes", value="damage.length"),
    Column("reason", Kind.STRING, "kind of damage", value="damage.reason"),
    Column("message", Kind.STRING, "description of the damage", value="damage.message"),
    Column("torn_tail", Kind.BOOL, "whether the damage is an unfinished append, which a kill "
           "leaves",
           value="damage.tail"),
    Column("first_offset", Kind.INT64, "first offset that is missing because of the damage",
           "offset",
           _LOSES_NONE),
    Column("last_offset", Kind.INT64, "last offset that is missing because of the damage", "offset",
           f"{_LOSES_NONE}, or the last is not known"),
    Column("filled_by", Kind.STRINGS, "copies in which all these offsets are sound"),
    Column("partly_filled_by", Kind.STRINGS, "copies in which some of these offsets are sound",
           value="partly_by"),
    Column("differs_from", Kind.STRING, "copy with a sound batch with which the damage was "
           "compared, byte by byte", null=_NOT_COMPARED),
    Column("differs_at", Kind.INT64, "first byte in the .log of this copy that differs from that "
           "batch", "byte", _NOT_COMPARED),
    Column("header_field", Kind.STRING, "field of the header of the batch that has this byte",
           null="the byte is not in the header, or was not compared"),
    Column("record_offset", Kind.INT64, "offset of the record that has this byte", "offset",
           "the byte is in no known record, or was not compared"),
    Column("differs_in_codec", Kind.STRING, "codec of the records, in which this byte names no "
           "record", null="the byte is not in compressed records, or was not compared"),
), note="A range of bytes without a sound batch, and the copies in which the missing offsets are "
        "sound.",
    type="damage", made_from="logtool.copies.verdict:DamageInCopy")  # fmt: skip
DIFFERENCE: Final = Table("difference", "difference between two log dirs", (
    Column("kind", Kind.STRING, "kind of the difference; absent: only one log dir has it; rows: "
           "the rows of a checkpoint differ; properties: values of meta.properties differ; bytes: "
           "files differ", words=tuple(DifferenceKind)),
    Column("path", Kind.PATH, "the file or directory, in the log dir that has it"),
    Column("other", Kind.PATH, "its place in the other log dir"),
    Column("count", Kind.INT64, "rows, properties or files that differ", "count"),
    Column("message", Kind.STRING, "description of the difference"),
    Column("position", Kind.INT64, "first byte that differs", "byte",
           "the file was not compared byte by byte"),
), note="A file or directory that differs between two copies or log dirs, or that only one has; "
        "only with --identical.",
    type="difference", made_from="logtool.copies.log_dirs:LogDirDifference")  # fmt: skip
ABSENT: Final = Table("absent", "partition that a copy of a log dir lacks", (
    _TOPIC,
    _NUMBER,
    Column("path", Kind.PATH, "the partition dir, in the copy of the log dir that has it"),
    Column("log_dir", Kind.PATH, "the copy of the log dir that lacks the partition"),
    Column("state", Kind.STRING, "missing: the metadata log of that copy gives it the partition, "
           "or its checkpoints have rows of it; not-assigned: its metadata log does not, so that "
           "the partition was created, deleted or moved in between, which is normal; unknown: it "
           "has no metadata log that can be read", words=tuple(AbsentState)),
    Column("next", Kind.STRING, "command line that copies the partition",
           null="it is not missing, or the two copies have different topics of this name"),
), note="A partition that only one of two copies of a log dir has, such as a log dir and its "
        "backup.",
    type="absent", made_from="logtool.copies.absent_copies:AbsentCopy")  # fmt: skip
DOCUMENT: Final = Document(
    name="diff",
    title="Objects that logtool diff prints",
    tables=(PARTITION, COPY, PAIR, DAMAGE, ABSENT, DIFFERENCE, FINGERPRINT),
)
