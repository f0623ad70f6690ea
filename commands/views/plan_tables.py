"""The objects that `plan` and the commands that repair print: logtool.plan/1."""

from typing import Final

from logtool.schemas.columns import Column, Kind, Table, count, offset, size
from logtool.schemas.document import Document
from logtool.schemas.printed import ACTION, UNDO
from logtool.schemas.tables import FINDING

_NO_TOPIC = "the directory is not named TOPIC-NUMBER"
_PLACE = (
    Column("path", Kind.PATH, "the partition dir", value="request.path"),
    Column("topic", Kind.STRING, "name of the topic", null=_NO_TOPIC, value="request.topic"),
    Column("partition", Kind.INT32, "number of the partition", null=_NO_TOPIC,
           value="request.partition"),
)  # fmt: skip


def _seconds(name: str, meaning: str, digits: int = 3) -> Column:
    return Column(name, Kind.FLOAT, meaning, "s", digits=digits)


def _rate(name: str, meaning: str, value: str, null: str | None = None) -> Column:
    return Column(name, Kind.INT64, meaning, "bytes", null, value=value, digits=0)


_PLAYBACK = Table("playback", "partition with supplemented indexes", (
    offset("time_index_checkpoint", "offset in the last entry of the time index",
           value="playback.time_index"),
    offset("transaction_index_checkpoint", "offset up to which the transaction index lists the "
           "aborted transactions", value="playback.transaction_index"),
    Column("transaction_index_checkpoint_from", Kind.STRING, "source of this offset: the largest "
           "of the three, or the last entry if the file is torn",
           words=("last-entry", "recovery-point", "snapshot"),
           value="playback.transaction_index_from"),
    offset("producer_snapshot_checkpoint", "offset of the newest readable producer snapshot; "
           "without a snapshot, the start of the log", value="playback.producer_snapshot"),
    offset("starting_offset", "the smaller of the checkpoints of the transaction index and the "
           "producer snapshot", value="playback.starting_offset"),
    offset("replayed_from", "offset of the newest producer snapshot at or below the starting "
           "offset, or the start of the log", value="playback.replayed_from"),
    Column("trusted", Kind.BOOL, "whether only headers were read and no CRC was compared "
           "(--trust-log)"),
    size("bytes_saved", "bytes of the log that are not read, compared with a rebuild"),
    size("unchecked_bytes", "bytes of the trusted logs whose CRCs are not compared"),
), made_from="logtool.startup.partition:PartitionForecast")  # fmt: skip
FORECAST: Final = Table("partition", "partition that a broker loads", (
    *_PLACE,
    Column("outcome", Kind.STRING, "how the load ends",
           words=("loads", "refuses", "offline", "unknown")),
    Column("reason", Kind.STRING, "why the partition does not load", null="the partition loads",
           value="failure"),
    Column("clean", Kind.BOOL, "whether the log dir counts as stopped cleanly",
           value="request.start.clean"),
    offset("log_start_offset", "start of the log after the load", value="log_start"),
    offset("recovery_point", "recovery point before the load",
           value="request.start.recovery_point"),
    offset("new_recovery_point", "recovery point after the load", value="recovery_point"),
    offset("high_watermark", "checkpointed high watermark", "the checkpoint has no row of the "
           "partition",
           "request.high_watermark"),
    offset("log_end_offset", "end of the log after the load", value="log_end"),
    offset("broker_log_end_offset", "end of the log after a broker's recovery; a broker empties a "
           "segment where an index entry shows that offsets go backwards",
           "the broker does not start, because an offset of a batch lies outside the segment",
           "broker_log_end"),
    offset("recover_log_end_offset", "end of the log after logtool recover with its defaults; it "
           "cuts only batches that are out of order or outside their segment",
           "the partition does not load",
           "recover_log_end"),
    count("segments", "segments"),
    count("recovered_segments", "segments that are recovered", "recovered"),
    size("bytes_scanned", "bytes of log that are read to recover segments"),
    size("bytes_replayed", "bytes of log that are read again for the producer state"),
    size("bytes_applied", "bytes of the batches that are applied to the producer state"),
    count("records_applied", "records of the batches that are applied to the producer state"),
    count("unread_segments", "segments below the recovery point that are not recovered: only "
          "logtool verify shows whether their logs are sound"),
    size("unread_bytes", "bytes of the .log files of the segments"),
    Column("playback", Kind.OBJECT, "if indexes and producer state are supplemented: the offsets "
           "up to which they are known, and the offset from which the log is played back",
           null="the strategy is rebuild, or the log was stopped cleanly",
           value="supplemented", of=_PLAYBACK),
    Column("distrust", Kind.STRING, "why the log was checked although --trust-log was given",
           null="the log was not checked", value="why_checked"),
    count("lost_batches", "sound batches that are lost"),
    count("lost_records", "records that are lost"),
    size("lost_bytes", "bytes of log that are lost"),
    Column("lost_acknowledged", Kind.INT64, "offsets below the checkpointed high watermark that "
           "the log lacks after the load", "count", "no high watermark is known"),
    count("lost_before", "offsets in `lost_acknowledged` that were gone before this start: no "
          "batch that it loses has them"),
    Column("fix", Kind.STRING, "the command line that repairs the log from another copy",
           null="the other paths hold no copy of the partition"),
), note="The load of one partition by a broker.", type="partition",
    made_from="logtool.startup.partition:PartitionForecast")  # fmt: skip

_DISK = Table("disk", "disk", (
    Column("log_dir", Kind.PATH, "the first log dir on the disk"),
    _rate("bytes_per_second", "rate of reads that bypass the page cache, in bytes per second",
          "past_cache",
          "reads cannot bypass the page cache"),
    _rate("uncached_bytes_per_second", "rate of reads through the page cache, in bytes per second, "
          "for logs that were not cached", "through_cache", "all logs were in the page cache"),
    _seconds("first_seconds", "time until the first bytes of an uncached log arrived", 6),
), made_from="logtool.startup.disks:DiskSample")  # fmt: skip
_SLOW = Table("slow_partition", "partition that takes long to load", (
    Column("path", Kind.PATH, "the partition dir", value="forecast.request.path"),
    Column("topic", Kind.STRING, "name of the topic", null=_NO_TOPIC,
           value="forecast.request.topic"),
    Column("partition", Kind.INT32, "number of the partition", null=_NO_TOPIC,
           value="forecast.request.partition"),
    _seconds("seconds", "time to load the partition, at the usual rate"),
    _seconds("seconds_low", "least time to load the partition"),
    _seconds("seconds_high", "most time to load the partition"),
    count("recovered_segments", "segments that are read from their first byte",
          "forecast.recovered"),
    Column("recovered_why", Kind.COUNTS, "number of these segments, by reason", "count",
           value="forecast.why"),
    size("bytes_scanned", "bytes of the .log files of the segments", "forecast.bytes_scanned"),
    size("bytes_replayed", "bytes read again for the producer state",
         "forecast.bytes_replayed"),
    count("batches", "batches of the segments that are read", "forecast.batches_scanned"),
    count("indexes_changed", "offset, time and transaction indexes that are created or change",
          "forecast.indexes_changed"),
    count("producers", "producers known at the end of the log", "forecast.producers"),
), note="The time to load one partition, and its causes.",
    made_from="logtool.startup.duration:Slow")  # fmt: skip
DURATION: Final = Table("duration", "start", (
    count("threads", "threads that load logs, for each log dir"),
    _rate("bytes_per_second", "usual rate of each thread, in bytes per second; if measured, "
          "derived from one pass over a log in the page cache", "rates.usual"),
    _rate("bytes_per_second_low", "slowest likely rate: that of the slowest tenth of the timed "
          "stretches, of the disk, or the worst rate measured for a broker", "rates.slow"),
    _rate("bytes_per_second_high", "fastest likely rate: that of the fastest tenth of the timed "
          "stretches, or the best rate measured for a broker", "rates.fast"),
    Column("rate_from", Kind.STRING, "source of the rates; given: --read-rate",
           words=("given", "measured"), value="rates.basis"),
    count("pieces", "stretches of the logs that were timed; 0 if --read-rate gives the rate",
          "rates.pieces"),
    _rate("disk_bytes_per_second", "rate of the slowest disk without the page cache, in bytes per "
          "second",
          "rates.disk", "the rate was not measured, or cannot be measured"),
    Column("disks", Kind.OBJECT, "the disks under the log dirs that a broker reads; empty if they "
           "were not measured", of=_DISK, many=True),
    size("bytes", "bytes of log that are read"),
    _seconds("seconds", "time at bytes_per_second, plus the time of a broker for each batch, "
             "segment and log and for its compiler; bytes that were not in the page cache are "
             "first read from the disk"),
    _seconds("seconds_low", "time at bytes_per_second_high, with the shortest time of a broker for "
             "each batch"),
    _seconds("seconds_high", "time at bytes_per_second_low, with the longest time of a broker for "
             "each batch"),
    Column("critical", Kind.PATH, "the partition that takes longest to load",
           null="no partition is read"),
    _seconds("critical_seconds", "time to load the partition that takes longest; 0 if no partition "
             "is read"),
    Column("probe_timeout_s", Kind.INT64, "shortest time that a liveness probe should wait", "s"),
    Column("slowest", Kind.OBJECT, "the partitions that take longest to load, the longest first, "
           "at most ten",
           of=_SLOW, many=True),
), note="The time that a broker takes to load the logs, as a range.",
    type="duration", made_from="logtool.startup.duration:Duration")  # fmt: skip

_MISSED = Table("missed", "damage that a policy does not read", (
    Column("path", Kind.PATH, "the file"),
    Column("position", Kind.INT64, "byte in the file", "byte", "the position is not known"),
    Column("reason", Kind.STRING, "description of the damage"),
), made_from="logtool.startup.policies:Missed")  # fmt: skip
_POLICY = Table("policy", "policy of recovery", (
    Column("policy", Kind.STRING, "last-segment: Kafka up to 0.8.0 recovers the last segment of "
           "each log; recovery-point: Kafka today recovers from the segment with the recovery "
           "point on",
           words=("last-segment", "recovery-point")),
    count("segments", "segments that are read"),
    size("bytes", "bytes of logs that are read, including the second read for the producer state"),
    _seconds("seconds", "time at the usual rate: measured, given, or that of a broker with the "
             "logs in the page cache", 6),
    _seconds("seconds_low", "least time", 6),
    _seconds("seconds_high", "most time", 6),
    count("unread_segments", "segments that are not read"),
    size("unread_bytes", "bytes of the logs that are not read"),
    Column("missed", Kind.OBJECT, "known damage that the policy does not read; logtool did not "
           "read the parts that neither policy reads", of=_MISSED, many=True),
), note="The logs that recovery after a kill reads under one policy.",
    made_from="logtool.startup.policies:Outlook")  # fmt: skip
POLICIES: Final = Table("policies", "comparison", (
    Column("policies", Kind.OBJECT, "the policies, in the order of the option", value="outlooks",
           of=_POLICY, many=True),
), note="Policies of recovery side by side; only with --policy.", type="policies",
    made_from="logtool.startup.policies:PolicyComparison")  # fmt: skip

RELEASE: Final = Table("release", "release", (
    Column("kafka", Kind.STRING, "the release"),
    Column("outcome", Kind.STRING, "starts; refuses; strays: it starts and renames every partition "
           "to -stray", words=("starts", "refuses", "strays")),
    Column("first_metadata_version", Kind.INT32, "lowest metadata.version that the release "
           "supports", value="first_level"),
    Column("last_metadata_version", Kind.INT32, "highest metadata.version that the release "
           "supports", value="last_level"),
    Column("cause", Kind.STRING, "kind of the first obstacle: the level of a feature, a record of "
           "the metadata log, quorum-state, a log dir of ZooKeeper, or another file",
           null="the release starts",
           words=("level", "record", "quorum-state", "zookeeper", "file")),
    Column("reason", Kind.STRING, "the first obstacle", null="the release starts"),
    Column("path", Kind.PATH, "file of the first obstacle", null="the release starts"),
    Column("position", Kind.INT64, "byte in the file", "byte",
           "the release starts, or the obstacle has no position"),
), note="The start of one release on the log dirs; only with --kafka-version all.",
    type="release", made_from="logtool.startup.releases:ReleaseStart")  # fmt: skip

WAL: Final = Table("wal", "WAL of a node of AutoMQ", (
    Column("node", Kind.INT32, "id of the node", value="node_id"),
    Column("trim_offset", Kind.INT64, "offset of the WAL up to which its records are in objects of "
           "streams; -1: none is known"),
    count("objects", "objects of the WAL in the bucket"),
    count("skipped_objects", "objects whose records are in objects of streams, or that a fenced "
          "node wrote late"),
    count("taken_objects", "objects that are read"),
    count("dropped_objects", "objects behind a gap: their records are dropped without an error"),
    count("records", "records behind the trim offset in the objects that are read"),
    count("recovered_records", "records among them that no object of a stream has"),
    Column("fault", Kind.STRING, "why the node does not start", null="it starts"),
), note="The recovery of the WAL of one node; only for a bucket of AutoMQ.",
    type="wal", made_from="logtool.startup.automq:WalRecovery")  # fmt: skip
STREAM: Final = Table("stream", "open stream of AutoMQ", (
    Column("stream", Kind.INT64, "id of the stream", value="stream_id"),
    Column("node", Kind.INT32, "id of the node that has it open", null="not known",
           value="node_id"),
    Column("topic", Kind.STRING, "name of the topic", null="not known"),
    Column("partition", Kind.INT32, "number of the partition", null="not known"),
    Column("start_offset", Kind.INT64, "start of the stream"),
    Column("metadata_end_offset", Kind.INT64, "end of the stream in the metadata log"),
    Column("end_offset", Kind.INT64, "end of the stream after the recovery"),
    count("recovered_records", "records that only the WAL has"),
    Column("lost_offsets", Kind.INT64, "offsets behind the new end that are in the WAL behind a "
           "gap", "count"),
), note="An open stream before and after the recovery of the WAL; its unit is a record of Kafka, a "
    "byte of an index, or an entry. Only for a bucket of AutoMQ.",
    type="stream", made_from="logtool.startup.automq:StreamRecovery")  # fmt: skip
REPLAY: Final = Table("replay", "partition that a node of AutoMQ opens", (
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    Column("clean", Kind.BOOL, "whether the partition was closed in order; then nothing is "
           "replayed"),
    offset("log_start_offset", "start of the log"),
    offset("log_end_offset", "end of the log after the recovery of the WAL"),
    offset("recovery_point", "recovery point before the replay"),
    offset("new_recovery_point", "recovery point after the replay"),
    offset("snapshot", "offset of the producer snapshot that is loaded", "no snapshot is usable"),
    count("dropped_snapshots", "snapshots outside of log start and recovery point, which are "
          "dropped"),
    offset("time_index_checkpoint", "offset in the last entry of the time index", "no entry"),
    offset("transaction_index_checkpoint", "last offset of the last entry of the transaction index",
           "no entry"),
    offset("replayed_from", "first offset that is replayed", "nothing is replayed"),
    size("replayed_bytes", "bytes of the log that are replayed"),
    offset("full_replay_from", "first offset of a replay without checkpoints",
           "nothing is replayed"),
    size("full_replay_bytes", "bytes of the log in a replay without checkpoints"),
    offset("undone_log_start", "log start offset of a deletion of records that the crash undoes",
           "no deletion is undone"),
), note="A partition as its node opens it after the recovery of the WAL; only for a bucket of "
    "AutoMQ.",
    type="replay", made_from="logtool.startup.automq:PartitionReplay")  # fmt: skip

DOCUMENT: Final = Document(
    name="plan",
    title="Objects that logtool plan, recover, rebuild-index, undo and checkpoint rebuild or set "
    "print",
    tables=(FORECAST, ACTION, DURATION, FINDING, POLICIES, RELEASE, UNDO, WAL, STREAM, REPLAY),
)
