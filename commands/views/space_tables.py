"""The objects that `space` prints: logtool.space/1."""

from typing import Final

from logtool.commands.views.retention_tables import SETTING
from logtool.schemas.columns import Column, Kind, Table, count, offset, size, timed
from logtool.schemas.document import Document

TOPIC: Final = Table("topic", "topic", (
    Column("topic", Kind.STRING, "name of the topic",
           null="the files lie outside of partition dirs"),
    count("partitions", "partition dirs, also those that wait to be deleted"),
    size("bytes", "bytes by the sizes of the files; a preallocated index counts as a whole"),
    size("disk_bytes", "bytes of the blocks that the files take"),
    size("leftover_bytes", "bytes of blocks that the broker frees by itself when it starts"),
    size("unlimited_bytes", "bytes of .log files that retention never deletes, because "
         "retention.ms and retention.bytes are -1"),
    Column("delete_delay", Kind.OBJECT, "the setting by which a running broker deletes .deleted "
           "files and -delete dirs: so long after it has renamed them", of=SETTING,
           null="no file of the topic waits for that"),
    Column("by_kind", Kind.COUNTS, "bytes of blocks of each kind: log, index, deleted, temporary, "
           "stray, future, metadata-log, other", "bytes"),
), note="One topic in all log dirs.", type="topic",
    made_from="logtool.space.run:TopicSpace")  # fmt: skip
FILE_SYSTEM: Final = Table("file_system", "file system", (
    Column("paths", Kind.PATHS, "log dirs in it"),
    size("capacity_bytes", "size of the file system"),
    size("free_bytes", "bytes that a user other than root can still write"),
    size("disk_bytes", "bytes of the blocks that these log dirs take"),
    size("day_bytes", "bytes of .log files that are produced in a day, by the timestamps of the "
         "week before newest_ms", "forecast.day_bytes"),
    size("short_bytes", "bytes of these in logs that cover less than an hour, whose growth may be "
         "no more than a burst", "forecast.short_bytes"),
    size("freed_bytes", "bytes of .log files that retention deletes in the day after --at",
         "forecast.freed_bytes"),
    *timed("newest_ms", "largest timestamp that is not later than --at", "there is no record"),
    *timed("full_ms", "time at which no byte is free, if as much is produced as before",
           "that is more than a year away"),
    size("start_bytes", "bytes of the blocks that a start writes at most: indexes and snapshots "
         "of recovered segments, checkpoints", "room.start_bytes"),
    size("recovery_bytes", "bytes of these that are indexes and snapshots",
         "room.recovery_bytes"),
    size("cleaner_bytes", "bytes that the log cleaner writes at most before it frees any: the "
         "closed segments of the largest compacted log, for each thread", "room.cleaner_bytes"),
    size("index_growth_bytes", "bytes by which a start makes the files of indexes longer; they "
         "are holes, which take no blocks", "room.index_growth_bytes"),
), note="One file system that has log dirs.", type="file-system",
    made_from="logtool.space.run:FileSystemSpace")  # fmt: skip
STEP: Final = Table("step", "step", (
    Column("kind", Kind.STRING, "what it frees: files that the broker removes by itself, or "
           "segments that retention deletes later", words=("leftovers", "segments")),
    Column("path", Kind.PATH, "the partition dir or log dir"),
    Column("topic", Kind.STRING, "name of the topic", null="the files lie outside of partitions"),
    Column("partition", Kind.INT32, "number of the partition",
           null="the step removes no records"),
    size("bytes", "bytes of the blocks that it frees"),
    count("segments", "segments that it deletes"),
    offset("before_offset", "records below this offset go", "the step removes no records"),
    *timed("deleted_ms", "time at which retention deletes the last of these segments",
           "the step removes no records"),
), note="One step that frees bytes; steps come in the order of their cost.", type="step",
    made_from="logtool.space.freeing:FreeingStep")  # fmt: skip
TOTAL: Final = Table("total", "run", (
    count("topics", "topics"),
    count("partitions", "partition dirs"),
    size("bytes", "bytes by the sizes of the files"),
    size("disk_bytes", "bytes of the blocks that the files take"),
    size("leftover_bytes", "bytes of blocks that the broker frees by itself when it starts"),
    size("stray_bytes", "bytes of blocks of stray partition dirs, which no broker deletes"),
    size("preallocated_bytes", "bytes of blocks of indexes of active segments that hold no entry "
         "yet"),
    size("cleaner_heap_bytes", "bytes of the broker's heap that the buffers of the log cleaner "
         "take"),
    size("wanted_bytes", "bytes of --free", null="there is no --free"),
    size("step_bytes", "bytes of the blocks that the steps free"),
    Column("offsets_file", Kind.STRING, "content of the file for kafka-delete-records.sh "
           "--offset-json-file", null="no step removes records"),
    Column("trim_command", Kind.STRING, "command that shows the same steps for a broker that is "
           "stopped", null="there is no step"),
    size("trim_bytes", "bytes of the blocks that this command frees", null="there is no step"),
    Column("trim_keeps", Kind.STRINGS, "partitions in which this command keeps segments of a step, "
           "because they reach above the checkpointed high watermark"),
    Column("trim_refused", Kind.STRING, "reason why this command refuses",
           null="it does not refuse"),
), note="The sum of all topics.", type="total",
    made_from="logtool.commands.views.space:SpaceTotal")  # fmt: skip
DOCUMENT: Final = Document(
    name="space",
    title="Objects that logtool space prints",
    tables=(TOPIC, FILE_SYSTEM, STEP, TOTAL),
)
