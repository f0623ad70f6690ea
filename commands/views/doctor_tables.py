"""The objects that `doctor` prints: logtool.doctor/1."""

from typing import Final

from logtool.schemas.columns import Column, Kind, Table, count, size
from logtool.schemas.document import Document
from logtool.schemas.printed import ACTION, SEVERITIES
from logtool.schemas.tables import FINDING

_STATE = Column("state", Kind.STRING, "how grave it is; good: nothing is wrong",
                words=("good", "info", "warning", "error"))  # fmt: skip
_NO_TOPIC = "the directory's name has none"
_TOO_LITTLE = "too little was read here to estimate it"
_NOT_SAID = "the file does not say it"


def _seconds(name: str, meaning: str) -> Column:
    return Column(name, Kind.FLOAT, meaning, "s", _TOO_LITTLE, digits=3)


_GROUP = Table("group", "kind of finding or action", (
    Column("name", Kind.STRING, "the code of the findings, or the kind of action"),
    _STATE,
    count("count", "findings or actions of this kind"),
    Column("path", Kind.PATH, "the file or directory of the first of them",
           null="it is about no single one"),
    Column("position", Kind.INT64, "byte in that file", "byte", "it is about no single place"),
    Column("message", Kind.STRING, "message of the first of them"),
), note="Findings of one code, or actions of one kind.",
    made_from="logtool.doctor.answers:FindingGroup")  # fmt: skip
_GROUPS = Column("groups", Kind.OBJECT, "findings or actions by their kind, the worst first",
                 of=_GROUP, many=True)  # fmt: skip
DAMAGE: Final = Table("damage", "run", (
    _STATE,
    Column("complete", Kind.BOOL, "whether every batch was checked, and everything could be read"),
    count("partitions", "partitions in the log dirs"),
    count("segments", "segments of these partitions"),
    count("looked_at_segments", "segments of which names, sizes, indexes and the end of the log "
          "were looked at", "looked_at"),
    count("checked_segments", "segments of which every batch was checked", "checked"),
    size("log_bytes", "bytes of the logs of all segments"),
    size("checked_bytes", "bytes of the logs of which every batch was checked"),
    count("unreadable", "inputs that could not be read"),
    Column("findings", Kind.OBJECT, "findings by severity", of=SEVERITIES),
    _GROUPS,
), note="The findings of logtool verify, and how much was looked at.", type="damage",
    made_from="logtool.doctor.answers:DamageAnswer")  # fmt: skip
START: Final = Table("start", "start of a broker", (
    _STATE,
    Column("complete", Kind.BOOL, "whether there was time for every partition, and everything "
           "could be read"),
    Column("refuses", Kind.BOOL, "whether the broker does not start, as far as is known"),
    count("partitions", "partitions that were looked at"),
    count("partitions_not_reached", "partitions for which there was no time", "not_reached"),
    count("partitions_not_loaded", "partitions that the broker does not load", "not_loaded"),
    count("segments", "segments of the partitions that were looked at"),
    count("recovered_segments", "segments that the broker recovers"),
    count("changed_files", "files that the broker cuts, rebuilds, renames or removes"),
    count("lost_records", "records that are lost"),
    Column("losing_partitions", Kind.STRINGS, "partitions that lose records or acknowledged "
           "offsets, as topic-partition", value="losing"),
    count("offline_log_dirs", "log dirs that the broker starts without", "offline"),
    size("read_bytes", "bytes of log that the broker reads"),
    _seconds("seconds", "time to read them in one thread, at the usual rate"),
    _seconds("seconds_low", "time to read them at the fastest rate that is likely, as the object "
             "duration of logtool plan has it"),
    _seconds("seconds_high", "time to read them at the slowest rate that is likely"),
    Column("bytes_per_second", Kind.INT64, "usual rate of the thread, in a second", "bytes",
           _TOO_LITTLE, digits=0),
    _GROUPS,
), note="The next start of the broker, as logtool plan says it; the action objects are the grave "
        "ones.",
    type="start", made_from="logtool.doctor.answers:NextStart")  # fmt: skip

_BELOW = Table("below", "partition that ends below its high watermark", (
    Column("path", Kind.PATH, "the partition dir", value="request.path"),
    Column("topic", Kind.STRING, "name of the topic", null=_NO_TOPIC, value="request.topic"),
    Column("partition", Kind.INT32, "number of the partition", null=_NO_TOPIC,
           value="request.partition"),
    Column("high_watermark", Kind.INT64, "checkpointed high watermark", "offset",
           value="request.high_watermark"),
    Column("log_end_offset", Kind.INT64, "end of the log after the load", "offset",
           value="log_end"),
    count("lost_acknowledged", "offsets below the high watermark that the log lacks when it is "
          "loaded"),
), made_from="logtool.startup.partition:PartitionForecast")  # fmt: skip
HIGH_WATERMARK: Final = Table("high_watermark", "run", (
    _STATE,
    count("partitions_known", "partitions of which a high watermark is known", "known"),
    Column("below", Kind.OBJECT, "partitions that end below their high watermark", of=_BELOW,
           many=True),
), note="Partitions that end below their checkpointed high watermark once they are loaded.",
    type="high_watermark", made_from="logtool.doctor.answers:HighWatermark")  # fmt: skip
BROKER: Final = Table("broker", "log dir", (
    _STATE,
    Column("path", Kind.PATH, "the log dir"),
    Column("in_use", Kind.BOOL, "whether a process holds the .lock of the log dir, or the pid.lock "
           "of Redpanda"),
    Column("pid", Kind.INT64, "id of that process",
           null="no process holds it, or the system does not say which one does"),
    Column("command", Kind.STRING, "name of its program",
           null="no process holds it, or the system does not say which one does"),
    Column("clean", Kind.BOOL, "whether the last broker stopped in order (.kafka_cleanshutdown)",
           null="Redpanda, which has no such file"),
), note="The process that holds the .lock of a log dir, and how the last one left it.",
    type="broker", made_from="logtool.doctor.answers:BrokerState")  # fmt: skip

_IDENTITY = Table("meta_properties", "meta.properties of a log dir", (
    Column("path", Kind.PATH, "the log dir"),
    Column("version", Kind.INT32, "version of the file", null=_NOT_SAID),
    Column("node_id", Kind.INT32, "id of the node", null=_NOT_SAID),
    Column("cluster_id", Kind.STRING, "id of the cluster", null=_NOT_SAID),
    Column("directory_id", Kind.STRING, "id of the log dir", null=_NOT_SAID),
), made_from="logtool.doctor.answers:Identity")  # fmt: skip
_NO_REGISTRATION = "no metadata log names a broker"
VERSIONS: Final = Table("versions", "run", (
    _STATE,
    Column("kafka", Kind.STRING, "release of the broker whose start is played"),
    Column("kafka_shown", Kind.STRING, "release of the broker that registered last in the metadata "
           "log", null=_NO_REGISTRATION, value="shown"),
    Column("metadata_version", Kind.INT32, "highest metadata.version that this broker supported",
           null=_NO_REGISTRATION),
    Column("mode", Kind.STRING, "how the cluster keeps its metadata",
           null="nothing in the log dirs says it", words=("kraft", "zookeeper")),
    Column("meta_properties", Kind.OBJECT, "the file meta.properties of each log dir that has one",
           value="identities", of=_IDENTITY, many=True),
), note="The release and the cluster that wrote the log dirs.", type="versions",
    made_from="logtool.doctor.answers:VersionsAnswer")  # fmt: skip
DISK: Final = Table("disk", "file system with log dirs", (
    _STATE,
    Column("paths", Kind.PATHS, "the log dirs on it"),
    size("total_bytes", "size of the file system", "total"),
    size("used_bytes", "bytes that are used", "used"),
    size("available_bytes", "bytes that this user may still write", "available"),
    Column("used_percent", Kind.INT32, "share of the bytes that is used, rounded up",
           "%"),
    Column("inodes_percent", Kind.INT32, "share of the inodes that is used, rounded up", "%",
           "the file system counts no inodes"),
    Column("read_only", Kind.BOOL, "whether it is mounted read-only"),
    size("log_dir_bytes", "bytes of the files in the log dirs, by their sizes", "logs"),
), note="A file system with log dirs. warning: 90 % of the bytes or inodes are used; error: 99 %.",
    type="disk", made_from="logtool.doctor.answers:DiskAnswer")  # fmt: skip
LIMIT: Final = Table("limit", "limit of a process", (
    _STATE,
    Column("name", Kind.STRING, "name of the limit", words=("open-files", "max-map-count")),
    count("needed", "how many a broker needs"),
    Column("allowed", Kind.INT64, "how many a process may have", "count",
           "any number, or the system does not say it"),
    Column("pid", Kind.INT64, "id of the running broker whose limit it is",
           null="it is the limit of this process, or of every process"),
), note="How many of something a broker needs, and how many a process may have.", type="limit",
    made_from="logtool.doctor.answers:Limit")  # fmt: skip
NEXT: Final = Table("next", "run", (
    Column("command", Kind.STRING, "the command line, as a shell takes it"),
    Column("reason", Kind.STRING, "purpose of the command"),
), note="The one command to run next.", type="next",
    made_from="logtool.doctor.answers:Next")  # fmt: skip
COMPONENT: Final = Table("component", "part of what logtool runs on", (
    _STATE,
    Column("name", Kind.STRING, "name of the program, package, limit or setting"),
    Column("found", Kind.BOOL, "whether it is there"),
    Column("version", Kind.STRING, "its version, or its value",
           null="it is not there, or it has none"),
    Column("detail", Kind.STRING, "more about it, such as where it is",
           null="there is no more to say"),
), note="A part of what logtool runs on: --environment prints these.", type="component",
    made_from="logtool.doctor.answers:Component")  # fmt: skip

DOCUMENT: Final = Document(
    name="doctor",
    title="What logtool doctor prints",
    tables=(
        FINDING, ACTION, DAMAGE, START, HIGH_WATERMARK, BROKER, VERSIONS, DISK, LIMIT, NEXT,
        COMPONENT,
    ),
)  # fmt: skip
