"""The objects that `doctor` prints: logtool.doctor/1."""

from typing import Final

from logtool.schemas.columns import Column, Kind, Table, count, offset, size, timed
from logtool.schemas.document import Document
from logtool.schemas.printed import ACTION, SEVERITIES
from logtool.schemas.tables import FINDING

_STATE = Column("state", Kind.STRING, "severity; good: nothing is wrong",
                words=("good", "info", "warning", "error"))  # fmt: skip
_NO_TOPIC = "the directory is not named TOPIC-NUMBER"
_TOO_LITTLE = "too few bytes were read to estimate the time"
_NOT_SAID = "the file has no such line"


def _seconds(name: str, meaning: str) -> Column:
    return Column(name, Kind.FLOAT, meaning, "s", _TOO_LITTLE, digits=3)


_GROUP = Table("group", "kind of finding or action", (
    Column("name", Kind.STRING, "the code of the findings, or the kind of action"),
    _STATE,
    count("count", "findings or actions of this kind"),
    Column("path", Kind.PATH, "the file or directory of the first finding or action",
           null="the finding is not about a single file"),
    Column("position", Kind.INT64, "byte position in this file",
           "byte", "the finding is not about a single position"),
    Column("message", Kind.STRING, "message of the first finding or action"),
    Column("partitions", Kind.STRINGS, "all partitions of these findings or actions, as "
           "TOPIC-NUMBER"),
), note="Findings of one code, or actions of one kind.",
    made_from="logtool.doctor.answers:FindingGroup")  # fmt: skip
_GROUPS = Column("groups", Kind.OBJECT, "findings or actions by kind, the worst first",
                 of=_GROUP, many=True)  # fmt: skip
NODE: Final = Table("node", "broker, if ID=DIR names several", (
    Column("node", Kind.INT32, "node id, as given in ID=DIR"),
    Column("paths", Kind.PATHS, "the directories of this broker"),
), note="The broker that the objects up to the next object of this type are about.", type="node",
    made_from="logtool.doctor.answers:ExaminedNode")  # fmt: skip
DAMAGE: Final = Table("damage", "run", (
    _STATE,
    Column("complete", Kind.BOOL, "whether every batch was checked, and everything could be read"),
    count("partitions", "partitions in the log dirs"),
    count("segments", "segments of these partitions"),
    count("looked_at_segments", "segments whose names, sizes, indexes and end of the log were "
          "checked", "looked_at"),
    count("checked_segments", "segments whose batches were all checked", "checked"),
    size("log_bytes", "bytes of the logs of all segments"),
    size("checked_bytes", "bytes of the logs whose batches were all checked"),
    count("unreadable", "inputs that could not be read"),
    Column("findings", Kind.OBJECT, "findings by severity", of=SEVERITIES),
    _GROUPS,
), note="The findings of logtool verify, and how much was checked.", type="damage",
    made_from="logtool.doctor.answers:DamageAnswer")  # fmt: skip
START: Final = Table("start", "start of a broker", (
    _STATE,
    Column("complete", Kind.BOOL, "whether every partition was checked and every input could be "
           "read"),
    Column("refuses", Kind.BOOL, "whether the broker refuses to start, as far as is known"),
    count("partitions", "partitions that were checked"),
    count("partitions_not_reached", "partitions that were not checked because the time was over",
          "not_reached"),
    count("partitions_not_loaded", "partitions that the broker does not load", "not_loaded"),
    Column("metadata_log", Kind.BOOL, "whether a log dir holds the metadata log, which is not "
           "counted here"),
    count("segments", "segments of the partitions that were checked"),
    count("recovered_segments", "segments that the broker recovers"),
    Column("cause", Kind.STRING, "why logs are recovered from their first segment on, as in "
           "logtool plan", null="no recovery point is missing"),
    count("changed_files", "files that the broker cuts, rebuilds, renames or removes"),
    count("lost_records", "records that are lost"),
    Column("losing_partitions", Kind.STRINGS, "partitions that lose records or acknowledged "
           "offsets, as topic-partition", value="losing"),
    count("purged_partitions", "directories that end in -delete, and that the broker deletes after "
          "its start", "purged"),
    count("reappearing_partitions", "partitions with deleted records that are readable again",
          "reappearing"),
    count("offline_log_dirs", "log dirs that the broker starts without", "offline"),
    size("read_bytes", "bytes of log that the broker reads"),
    _seconds("seconds", "time for one thread to read these bytes, at the usual rate"),
    _seconds("seconds_low", "time to read these bytes at the fastest likely rate, as in the object "
             "duration of logtool plan"),
    _seconds("seconds_high", "time to read these bytes at the slowest likely rate"),
    Column("bytes_per_second", Kind.INT64, "usual rate of the thread, in bytes per second", "bytes",
           _TOO_LITTLE, digits=0),
    _GROUPS,
), note="The next start of the broker, as logtool plan predicts it; action objects follow for "
        "serious actions only.",
    type="start", made_from="logtool.doctor.answers:NextStart")  # fmt: skip

_TOO_MANY = "there are too many partitions for a quick look"
_KEPT = Table("kept", "partition that is not compacted", (
    Column("path", Kind.PATH, "the partition dir"),
    Column("producer_id", Kind.INT64, "producer id of the oldest open transaction",
           null="the transaction is not known"),
    Column("first_offset", Kind.INT64, "first offset of that transaction", "offset",
           "the transaction is not known"),
), made_from="logtool.doctor.answers:KeptDirty")  # fmt: skip
_STAMPED = Table("stamped", "partition that retention keeps", (
    Column("path", Kind.PATH, "the partition dir"),
    offset("base_offset", "base offset of the segment with the timestamp"),
    *timed("until_ms", "time at which retention deletes the segment", None),
), made_from="logtool.doctor.answers:FutureStamped")  # fmt: skip
_EARLY = Table("early", "partition that loses records early", (
    Column("path", Kind.PATH, "the partition dir"),
    count("segments", "segments with timestamps in seconds that the first round deletes"),
    offset("first_offset", "first offset of these"),
    offset("last_offset", "last offset of these", "the log goes as a whole, and its end is not "
           "known"),
    *timed("newest_ms", "time that the largest of their timestamps means", None),
    Column("age_ms", Kind.INT64, "age of that record at the start", "ms"),
), made_from="logtool.doctor.answers:DeletedEarly")  # fmt: skip
_UNCLEANABLE = Table("uncleanable", "partition that the log cleaner gives up", (
    Column("path", Kind.PATH, "the .log file with the damage"),
    Column("position", Kind.INT64, "first byte of the damaged batch", "byte"),
), made_from="logtool.doctor.answers:UncleanablePartition")  # fmt: skip
AFTER_START: Final = Table("after_start", "run", (
    _STATE,
    Column("delay_ms", Kind.INT64, "time from the start to the first round of retention", "ms",
           _TOO_MANY),
    count("segments", "segments that this round deletes", null=_TOO_MANY),
    size("bytes", "bytes of the .log files of these segments", null=_TOO_MANY),
    count("partitions", "partitions of which it deletes segments", null=_TOO_MANY),
    Column("oldest", Kind.STRING, "the partition with the oldest of these segments, as "
           "topic-partition", null="the round deletes nothing, or " + _TOO_MANY),
    Column("kept", Kind.OBJECT, "compacted partitions that an open transaction keeps from being "
           "cleaned", of=_KEPT, many=True),
    Column("future_stamped", Kind.OBJECT, "partitions that retention keeps because of a timestamp "
           "more than a day in the future", of=_STAMPED, many=True),
    Column("early", Kind.OBJECT, "partitions of which the round deletes records too early, because "
           "their timestamps are in seconds", of=_EARLY, many=True),
    Column("uncleanable", Kind.OBJECT, "compacted partitions that the log cleaner gives up because "
           "of damage; after every batch was checked", of=_UNCLEANABLE, many=True),
    Column("cleaner_off", Kind.BOOL, "true if the broker's own file switches the log cleaner off: "
           "it then gives these partitions up once it is switched on"),
    Column("command", Kind.STRING, "command that shows more; quoted for a shell"),
), note="The first round of retention after the start, and partitions that stay as they are, as "
        "logtool retention and logtool cleaner predict them; only if there are any, or too many "
        "partitions to look at.", type="after_start",
    made_from="logtool.doctor.answers:SoonAfterStart")  # fmt: skip

_NO_AGE = "the first record of no open transaction is known"
TRANSACTIONS: Final = Table("transactions", "run", (
    _STATE,
    Column("complete", Kind.BOOL, "whether every partition was loaded and every coordinator in the "
           "log dirs could be read"),
    count("partitions", "partitions whose last stable offset is held back"),
    count("open", "transactions that are open, those that hang too"),
    count("hanging", "transactions that are hanging, as in logtool txns"),
    count("unknown", "old transactions whose coordinator's state is lost or not in the log dirs"),
    count("marker_lost", "committed transactions whose markers are lost"),
    Column("stuck", Kind.STRING, "partitions with transactions that are hanging, unknown or "
           "without their markers, as topic-partition", many=True),
    Column("oldest", Kind.STRING, "the partition of the oldest transaction, as topic-partition",
           null=_NO_AGE),
    Column("oldest_offset", Kind.INT64, "first offset of the oldest transaction", "offset",
           _NO_AGE),
    Column("age_ms", Kind.INT64, "time since the first record of the oldest transaction", "ms",
           _NO_AGE),
    Column("command", Kind.STRING, "command that lists the open transactions; quoted for a shell"),
), note="The transactions that are open after the start, with the state of their coordinators, as "
        "in logtool txns; only if there are any, and not for Redpanda.", type="transactions",
    made_from="logtool.doctor.answers:OpenTransactionsAnswer")  # fmt: skip

_BELOW = Table("below", "partition that ends below its high watermark", (
    Column("path", Kind.PATH, "the partition dir", value="request.path"),
    Column("topic", Kind.STRING, "name of the topic", null=_NO_TOPIC, value="request.topic"),
    Column("partition", Kind.INT32, "number of the partition", null=_NO_TOPIC,
           value="request.partition"),
    Column("high_watermark", Kind.INT64, "checkpointed high watermark", "offset",
           value="request.high_watermark"),
    Column("log_end_offset", Kind.INT64, "end of the log after the load", "offset",
           value="log_end"),
    count("lost_acknowledged", "offsets below the high watermark that the loaded log lacks"),
), made_from="logtool.startup.partition:PartitionForecast")  # fmt: skip
HIGH_WATERMARK: Final = Table("high_watermark", "run", (
    _STATE,
    count("partitions_known", "partitions with a known high watermark", "known"),
    Column("below", Kind.OBJECT, "partitions that end below their high watermark", of=_BELOW,
           many=True),
    count("partitions_not_reached", "partitions for which there was no time", "not_reached"),
), note="Partitions that end below their checkpointed high watermark after the load.",
    type="high_watermark", made_from="logtool.doctor.answers:HighWatermark")  # fmt: skip
BROKER: Final = Table("broker", "log dir", (
    _STATE,
    Column("path", Kind.PATH, "the log dir"),
    Column("in_use", Kind.BOOL, "whether a process holds the .lock of the log dir, or the pid.lock "
           "of Redpanda"),
    Column("pid", Kind.INT64, "id of the process that holds the lock",
           null="no process holds the lock, or the operating system does not show which process "
           "does"),
    Column("command", Kind.STRING, "program name of the process that holds the lock",
           null="no process holds the lock, or the operating system does not show which process "
           "does"),
    Column("clean", Kind.BOOL, "whether the last broker stopped cleanly (.kafka_cleanshutdown)",
           null="the log dir is of Redpanda, which has no such file"),
), note="The process that holds the .lock of a log dir, and whether the last broker stopped "
        "cleanly.",
    type="broker", made_from="logtool.doctor.answers:BrokerState")  # fmt: skip

_IDENTITY = Table("meta_properties", "meta.properties of a log dir", (
    Column("path", Kind.PATH, "the log dir"),
    Column("version", Kind.INT32, "version of the file", null=_NOT_SAID),
    Column("node_id", Kind.INT32, "id of the node", null=_NOT_SAID),
    Column("cluster_id", Kind.STRING, "id of the cluster", null=_NOT_SAID),
    Column("directory_id", Kind.STRING, "id of the log dir", null=_NOT_SAID),
), made_from="logtool.doctor.answers:Identity")  # fmt: skip
_NO_REGISTRATION = "no metadata log registers a broker"
VERSIONS: Final = Table("versions", "run", (
    _STATE,
    Column("kafka", Kind.STRING, "Kafka release whose start is simulated"),
    Column("kafka_shown", Kind.STRING, "release of the broker that registered last in the metadata "
           "log", null=_NO_REGISTRATION, value="shown"),
    Column("metadata_version", Kind.INT32, "highest metadata.version that this broker supports",
           null=_NO_REGISTRATION),
    Column("written_by", Kind.STRING, "releases that can have written the log dirs",
           null="no file bounds them"),
    Column("evidence", Kind.STRINGS, "facts that bound these releases"),
    Column("finalized", Kind.COUNTS, "level of each feature in the metadata log"),
    Column("finalized_name", Kind.STRING, "Kafka's name of the finalized metadata.version",
           null="the metadata log has no metadata.version"),
    Column("mode", Kind.STRING, "how the cluster keeps its metadata",
           null="the log dirs do not show it", words=("kraft", "zookeeper")),
    Column("meta_properties", Kind.OBJECT, "the file meta.properties of each log dir that has one",
           value="identities", of=_IDENTITY, many=True),
), note="The release and the cluster that wrote the log dirs.", type="versions",
    made_from="logtool.doctor.answers:VersionsAnswer")  # fmt: skip
OLD_FORMATS: Final = Table("old_formats", "run", (
    _STATE,
    Column("complete", Kind.BOOL, "whether every batch was checked, and everything could be read"),
    Column("partitions", Kind.STRINGS, "directories of the partitions that hold such batches"),
    Column("newest_reader", Kind.STRING, "newest known release of Kafka, whose brokers and Java "
           "clients still read them"),
), note="Batches of magic 0 or 1, if there are any; finding objects with the code "
        "batch/old-format have their offsets.", type="old_formats",
    made_from="logtool.doctor.answers:OldFormats")  # fmt: skip
DISK: Final = Table("disk", "file system with log dirs", (
    _STATE,
    Column("paths", Kind.PATHS, "the log dirs on the file system"),
    size("total_bytes", "size of the file system", "total"),
    size("used_bytes", "bytes in use", "used"),
    size("available_bytes", "bytes that this user may still write", "available"),
    Column("used_percent", Kind.INT32, "share of the bytes in use, rounded up",
           "%"),
    Column("inodes_percent", Kind.INT32, "share of the inodes in use, rounded up", "%",
           "the file system counts no inodes"),
    Column("read_only", Kind.BOOL, "whether the file system is mounted read-only"),
    size("log_dir_bytes", "total size of the files in the log dirs", "logs"),
), note="A file system with log dirs. warning: 90 % of the bytes or inodes are used; error: 99 %.",
    type="disk", made_from="logtool.doctor.answers:DiskAnswer")  # fmt: skip
LIMIT: Final = Table("limit", "limit of a process", (
    _STATE,
    Column("name", Kind.STRING, "name of the limit", words=("open-files", "max-map-count")),
    count("needed", "number that a broker needs"),
    Column("allowed", Kind.INT64, "number that a process may have", "count",
           "there is no limit, or the operating system does not show the limit"),
    Column("pid", Kind.INT64, "id of the running broker whose limit is shown",
           null="the limit is that of this process, or of every process"),
), note="A limit of the operating system, and the number that a broker needs.", type="limit",
    made_from="logtool.doctor.answers:Limit")  # fmt: skip
REMEDY: Final = Table("remedy", "way to repair findings above info", (
    FINDING["remedy"],
    count("findings", "findings with this remedy"),
    Column("command", Kind.STRING, "command that repairs, or that shows what a repair costs; "
           "quoted for a shell; COPY in it stands for the log dir of another broker",
           null="the next start of the broker suffices"),
), note="Findings above info by the way to repair them; replica comes twice if recover "
        "--fill-from repairs some of these findings, and not the others.", type="remedy",
    made_from="logtool.running.remedies:RemedyCount")  # fmt: skip
QUORUM: Final = Table("quorum", "run", (
    _STATE,
    Column("voters", Kind.NUMBERS, "node ids of the voters"),
    Column("missing", Kind.NUMBERS, "node ids of the voters whose log dirs were not given"),
    Column("command", Kind.STRING, "command that compares the copies of the metadata log; quoted "
           "for a shell"),
), note="The voters, if all brokers of a cluster were given and fewer controllers than a majority. "
        "It is not about one node, and comes after those.",
    type="quorum", made_from="logtool.doctor.answers:ControllersAnswer")  # fmt: skip
NEXT: Final = Table("next", "run", (
    Column("command", Kind.STRING, "the command line, quoted for a shell"),
    Column("reason", Kind.STRING, "purpose of the command"),
), note="The one command to run next.", type="next",
    made_from="logtool.doctor.answers:Next")  # fmt: skip
COMPONENT: Final = Table("component", "part of the environment of logtool", (
    _STATE,
    Column("name", Kind.STRING, "name of the program, package, limit or setting"),
    Column("found", Kind.BOOL, "whether the part exists"),
    Column("version", Kind.STRING, "version or value of the part",
           null="the part does not exist, or has no version or value"),
    Column("detail", Kind.STRING, "details, such as the path",
           null="there are no details"),
), note="A part of the environment of logtool, with --environment.", type="component",
    made_from="logtool.doctor.answers:Component")  # fmt: skip

DOCUMENT: Final = Document(
    name="doctor",
    title="Objects that logtool doctor prints",
    tables=(
        FINDING, ACTION, NODE, DAMAGE, START, AFTER_START, TRANSACTIONS, HIGH_WATERMARK, BROKER,
        VERSIONS, OLD_FORMATS, DISK, LIMIT, REMEDY, QUORUM, NEXT, COMPONENT,
    ),
)  # fmt: skip
