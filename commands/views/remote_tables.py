"""The objects that `remote` prints: logtool.remote/1."""

from typing import Final

from logtool.commands.output import OutputSettings
from logtool.commands.printing import terminal, text
from logtool.commands.printing.writers import Object
from logtool.remote.contents import CONTENTS
from logtool.remote.lineage import PLACES
from logtool.remote.rebuild import Lack
from logtool.schemas.columns import Column, Kind, Table, count, offset, size, timed
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

_STATES = ("copy-started", "copy-finished", "delete-started", "delete-finished")
_DELETIONS = ("delete-marked", "delete-started", "delete-finished")
_NOT_HERE = "no log dir that was given has the partition, or --at was given"
_NOT_REMOTE = "remote storage has no offset of the partition"


def _text(name: str, meaning: str, value: str, null: str | None = None) -> Column:
    return Column(name, Kind.STRING, meaning, null=null, value=value)


def _number(name: str, meaning: str, value: str, null: str | None = None) -> Column:
    return Column(name, Kind.INT32, meaning, null=null, value=value)


_OF_SEGMENT = (
    _text("topic", "name of the topic", "lineage.remote.topic"),
    _number("partition", "number of the partition", "lineage.remote.number"),
)
METADATA: Final = Table("metadata-partition", "partition of __remote_log_metadata that was read", (
    Column("path", Kind.PATH, "the partition dir"),
    _number("partition", "number of the partition", "number"),
    offset("log_start_offset", "first offset of the log", value="log_start"),
    offset("log_end_offset", "offset behind the last record that was read", value="log_end"),
    count("records", "records that were read"),
    count("missing_records", "offsets from 0 to the end without a record that was read"),
    count("unknown_records", "records of a type or version that is not known"),
    count("keyed_records", "records with a key"),
    *timed("first_ms", "timestamp of the first record", "there is no record"),
    *timed("last_ms", "largest timestamp", "there is no record"),
), note="The copy of a partition of the topic with the metadata of remote segments.",
    type="metadata-partition", made_from="logtool.remote.loading:MetadataLog")  # fmt: skip
PARTITION: Final = Table("partition", "partition with remote segments", (
    _text("topic", "name of the topic", "remote.topic"),
    _text("topic_id", "id of the topic", "remote.topic_id"),
    _number("partition", "number of the partition", "remote.number"),
    _number("metadata_partition", "partition of __remote_log_metadata with its records",
            "metadata.number"),
    Column("path", Kind.PATH, "partition dir of the furthest local copy", null=_NOT_HERE),
    offset("log_start_offset", "row of log-start-offset-checkpoint; 0 without one", _NOT_HERE,
           "log_start"),
    offset("local_start_offset", "first offset of the first local segment", _NOT_HERE,
           "local_start"),
    offset("log_end_offset", "end of the furthest local copy", _NOT_HERE, "log_end"),
    offset("remote_start_offset", "first offset that brokers find in remote storage", _NOT_REMOTE,
           "remote_start"),
    offset("remote_end_offset", "offset behind the last that brokers find in remote storage",
           _NOT_REMOTE, "remote_end"),
    size("remote_bytes", "size of the copied segments"),
    count("copied", "segments that are copied and not deleted"),
    count("copying", "segments whose copy is not finished"),
    count("deleting", "segments whose deletion is not finished"),
    count("deleted", "deleted segments of which records are left"),
    count("unjudged_deletions", "deletions that are not compared with retention, because a setting "
          "may be in the broker's own file"),
    Column("deletion", Kind.STRING, "state of the deletion of all segments", null="none began",
           words=_DELETIONS, value="remote.deletion_word"),
), note="One partition with its remote and its local part.", type="partition",
    made_from="logtool.remote.lineage:PartitionLineage")  # fmt: skip
RANGE: Final = Table("range", "range of offsets in the same place", (
    *_OF_SEGMENT,
    offset("first_offset", "first offset"),
    offset("last_offset", "last offset"),
    _number("leader_epoch", "leader epoch of the offsets", "leader_epoch", "no file gives it"),
    Column("place", Kind.STRING, "where the offsets are: in both parts, in one of them, hidden (in "
           "remote storage, but between local segments, where consumers skip them), nowhere, "
           "deleted in the past, or not known", words=PLACES),
    count("segments", "remote segments in which brokers find them"),
), note="Offsets of one leader epoch that are in the same place.", type="range",
    made_from="logtool.remote.lineage:LineageRange")  # fmt: skip
SEGMENT: Final = Table("remote-segment", "remote segment", (
    _text("topic", "name of the topic", "topic"),
    _number("partition", "number of the partition", "partition"),
    _text("segment_id", "id of the segment", "segment.segment_id"),
    offset("first_offset", "first offset", value="segment.start_offset"),
    offset("last_offset", "last offset", value="segment.end_offset"),
    Column("state", Kind.STRING, "state by the last record", words=_STATES,
           value="segment.state_word"),
    Column("referenced", Kind.BOOL, "whether brokers find offsets in it",
           value="segment.is_referenced"),
    Column("forgotten", Kind.BOOL, "whether a null value removed it", value="segment.is_forgotten"),
    size("bytes", "size of its log", "segment.size"),
    Column("leader_epochs", Kind.PAIRS, "leader epochs, each with its first offset in the segment",
           value="segment.leader_epochs"),
    _number("broker", "node id of the broker that copied it", "segment.broker_id"),
    Column("max_timestamp_ms", Kind.INT64, "largest timestamp of its records", "ms since 1970",
           value="segment.max_timestamp_ms"),
    Column("copy_started_ms", Kind.INT64, "time at which the copy began", "ms since 1970",
           value="segment.started_ms"),
    Column("copy_finished_ms", Kind.INT64, "time at which the copy was finished", "ms since 1970",
           "it was not", value="segment.copied_ms"),
    Column("delete_started_ms", Kind.INT64, "time at which the deletion began", "ms since 1970",
           "none began", value="segment.deleting_ms"),
    Column("delete_finished_ms", Kind.INT64, "time at which the deletion was finished",
           "ms since 1970", "it was not", value="segment.deleted_ms"),
    offset("record_offset", "offset of its first record in the partition of __remote_log_metadata",
           value="segment.record_offset"),
), note="One remote segment, as the records of __remote_log_metadata have it.",
    type="remote-segment",
    made_from="logtool.commands.views.remote_lineage:LineageSegment")  # fmt: skip
OBJECTS: Final = Table("remote-objects", "segment in remote storage", (
    _text("topic", "name of the topic", "objects.name.topic"),
    _text("topic_id", "id of the topic", "objects.name.topic_id"),
    _number("partition", "number of the partition", "objects.name.partition"),
    _text("segment_id", "id of the segment", "objects.name.segment_id"),
    Column("path", Kind.PATH, "the object with the log, or another one without it",
           value="objects.path"),
    offset("base_offset", "first offset by the name of the objects",
           value="objects.name.base_offset"),
    offset("first_offset", "first offset of the batches", "the batches were not read"),
    offset("last_offset", "last offset of the batches", "the batches were not read"),
    Column("objects", Kind.INT32, "objects of the segment", "count", value="object_count"),
    size("bytes", "size of the objects", "objects.bytes"),
    Column("log_bytes", Kind.INT64, "size of the log, unpacked", "bytes", "not known",
           value="result.log_size"),
    Column("content", Kind.STRING, "whether every batch was checked, or is encrypted, or could not "
           "be read",
           words=CONTENTS, value="result.content"),
    Column("state", Kind.STRING, "state by the last record in __remote_log_metadata",
           null="no log dirs were given, or no record names the segment", words=_STATES),
), note="The objects of one segment, and what was checked of them.", type="remote-objects",
    made_from="logtool.remote.verification:CheckedRemoteSegment")  # fmt: skip
_LACKS = tuple(str(one) for one in Lack)
REBUILD_PARTITION: Final = Table("rebuild-partition", "partition in a bucket", (
    Column("topic", Kind.STRING, "name of the topic"),
    Column("topic_id", Kind.STRING, "id of the topic"),
    _number("partition", "number of the partition", "number"),
    count("segments", "segments with all their objects; not those whose copy was not finished"),
    size("bytes", "bytes of their logs"),
    offset("first_offset", "first offset of these", "no segment is whole"),
    offset("end_offset", "offset behind the last of these", "no segment is whole"),
    count("missing_offsets", "offsets between these that no segment has"),
    Column("leader_epochs", Kind.PAIRS, "leader epochs of these, each with its first offset"),
    count("unrecorded_segments", "segments of which no record is in the log dirs"),
    count("absent_segments", "copied segments, by the records, of which objects are missing"),
    Column("metadata_partition", Kind.INT32, "partition of __remote_log_metadata that brokers read "
           "for the partition", null="the number of its partitions is not known"),
    Column("path", Kind.PATH, "partition dir of the furthest local copy", null="none is in the "
           "log dirs"),
    Column("lacks", Kind.STRINGS, "what a new cluster lacks: the topic id; records of segments; "
           "leader epochs in a local copy; objects; offsets", words=_LACKS),
), note="One partition in a bucket, and what a new cluster lacks to read it.",
    type="rebuild-partition", made_from="logtool.remote.rebuild:RebuildPartition")  # fmt: skip
REBUILD_TOPIC: Final = Table("rebuild-topic", "topic in a bucket", (
    Column("topic", Kind.STRING, "name of the topic"),
    Column("topic_id", Kind.STRING, "id of the topic"),
    count("partitions", "partitions; by the objects alone, the least number"),
    Column("replicas", Kind.INT32, "replicas of its first partition", "count",
           "the metadata log does not have the topic"),
    Column("settings", Kind.STRINGS, "settings of the topic, as NAME=VALUE",
           null="the metadata log does not have the topic"),
    Column("source", Kind.STRING, "where the number of partitions is from",
           words=("metadata-log", "objects")),
    count("segments", "segments of its partitions"),
    size("bytes", "bytes of their logs"),
), note="One topic in a bucket.", type="rebuild-topic",
    made_from="logtool.remote.rebuild:RebuildTopic")  # fmt: skip
RESTORED: Final = Table("restored-partition", "partition dir that was written", (
    Column("topic", Kind.STRING, "name of the topic"),
    Column("topic_id", Kind.STRING, "id of the topic"),
    _number("partition", "number of the partition", "number"),
    Column("replicas", Kind.NODES, "node ids of its replicas, the preferred one first; empty "
           "without a metadata log that has them"),
    offset("first_offset", "first offset in remote storage"),
    offset("end_offset", "offset behind the last in remote storage, at which the new log begins"),
    offset("high_watermark", "high watermark of the lost copy: records from end_offset up to it "
           "were acknowledged and are lost", "no log dir has a row of it"),
    Column("leader_epochs", Kind.PAIRS, "leader epochs, each with its first offset"),
    count("segments", "remote segments that its leader uses"),
    size("bytes", "bytes of their logs"),
    Column("has_producers", Kind.BOOL, "true if it has the producer snapshot of the last segment"),
    Column("replaces", Kind.PATH, "empty partition dir that it takes the place of",
           null="no log dir has one"),
    Column("path", Kind.PATH, "the new partition dir"),
), note="One partition dir that remote restore has written.",
    type="restored-partition", made_from="logtool.remote.restore:RestoredPartition")  # fmt: skip
MENDED: Final = Table("mended-partition", "files that were written for a partition dir", (
    Column("topic", Kind.STRING, "name of the topic"),
    Column("topic_id", Kind.STRING, "id of the topic"),
    _number("partition", "number of the partition", "number"),
    Column("of", Kind.PATH, "the partition dir that lacks them"),
    Column("leader_epochs", Kind.PAIRS, "leader epochs in the new leader-epoch-checkpoint, each "
           "with its first offset; empty without one"),
    Column("segments", Kind.PAIRS, "first and last offset of each segment"),
    Column("files", Kind.STRINGS, "names of the files"),
    Column("replaces", Kind.PATH, "present leader-epoch-checkpoint that must make way",
           null="it does not exist, or stays"),
    Column("path", Kind.PATH, "the new directory with the files"),
), note="Files that remote restore has written for a partition dir that lacks them.",
    type="mended-partition", made_from="logtool.remote.mending:MendedPartition")  # fmt: skip
DOCUMENT: Final = Document(
    name="remote",
    title="Objects that logtool remote prints",
    tables=(
        METADATA,
        PARTITION,
        RANGE,
        SEGMENT,
        OBJECTS,
        REBUILD_PARTITION,
        REBUILD_TOPIC,
        RESTORED,
        MENDED,
        FINDING,
    ),
)


def finding_line(obj: Object, settings: OutputSettings) -> str:
    """Return a finding as a line of a table."""
    severity = obj["severity"]
    label = terminal.paint_stdout(f"{severity.upper():<7}", severity, settings.color)
    place = text.escape(str(obj["path"]))
    place += "" if obj["position"] is None else f" @{obj['position']}"
    return f"{label}  {obj['code']}  {place}  {text.escape(obj['message'])}"
