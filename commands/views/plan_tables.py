"""The objects that `plan` and the commands that repair print: logtool.plan/1."""

from typing import Final

from logtool.schemas.columns import Column, Kind, Table, count, offset, size
from logtool.schemas.document import Document
from logtool.schemas.printed import ACTION, UNDO
from logtool.schemas.tables import FINDING

_NO_TOPIC = "the directory's name has none"
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


_PLAYBACK = Table("playback", "partition that is supplemented", (
    offset("time_index_checkpoint", "offset in the last entry of the time index",
           value="playback.time_index"),
    offset("transaction_index_checkpoint", "offset up to which the aborted transactions are "
           "entered", value="playback.transaction_index"),
    Column("transaction_index_checkpoint_from", Kind.STRING, "source of it: the largest of the "
           "three, or the last entry where the file is torn",
           words=("last-entry", "recovery-point", "snapshot"),
           value="playback.transaction_index_from"),
    offset("producer_snapshot_checkpoint", "offset of the newest producer snapshot that can be "
           "read; the start of the log without one", value="playback.producer_snapshot"),
    offset("starting_offset", "the smaller one of the checkpoints of the transaction index and of "
           "the producer snapshot", value="playback.starting_offset"),
    offset("replayed_from", "offset of the newest snapshot at or below the starting offset, or "
           "the start of the log", value="playback.replayed_from"),
    Column("trusted", Kind.BOOL, "whether no CRC was compared and headers alone were read "
           "(--trust-log)"),
    size("bytes_saved", "how much less of the log is read than to rebuild"),
    size("unchecked_bytes", "bytes of the logs whose CRCs are not compared because they are "
         "trusted"),
), made_from="logtool.startup.partition:PartitionForecast")  # fmt: skip
FORECAST: Final = Table("partition", "partition that a broker loads", (
    *_PLACE,
    Column("outcome", Kind.STRING, "how the load ends",
           words=("loads", "refuses", "offline", "unknown")),
    Column("reason", Kind.STRING, "why it does not load", null="it loads", value="failure"),
    Column("clean", Kind.BOOL, "whether the log dir counts as stopped cleanly",
           value="request.start.clean"),
    offset("log_start_offset", "start of the log after the load", value="log_start"),
    offset("recovery_point", "recovery point before the load",
           value="request.start.recovery_point"),
    offset("new_recovery_point", "recovery point after the load", value="recovery_point"),
    offset("high_watermark", "checkpointed high watermark", "the checkpoint has no row of it",
           "request.high_watermark"),
    offset("log_end_offset", "end of the log after the load", value="log_end"),
    offset("broker_log_end_offset", "where a broker ends the log, which empties a segment whose "
           "offsets go backwards", "it does not start, for a batch whose offset lies outside of "
           "its segment", "broker_log_end"),
    offset("recover_log_end_offset", "where logtool recover ends it by default, which cuts only "
           "what is out of order, or outside of its segment", "it does not load",
           "recover_log_end"),
    count("segments", "segments"),
    count("recovered_segments", "segments that are recovered", "recovered"),
    size("bytes_scanned", "bytes of log that are read to recover segments"),
    size("bytes_replayed", "bytes of log that are read once more for the producer state"),
    size("bytes_applied", "bytes of the batches that are applied to the producer state"),
    count("records_applied", "records of the batches that are applied to the producer state"),
    count("unread_segments", "segments below the recovery point that are not recovered: only "
          "logtool verify says whether their logs are sound"),
    size("unread_bytes", "bytes of the logs of these segments"),
    Column("playback", Kind.OBJECT, "where indexes and producer state are supplemented: the "
           "offsets up to which they are known, and where the log is played back from",
           null="a rebuild, or a log that was stopped cleanly", value="supplemented", of=_PLAYBACK),
    Column("distrust", Kind.STRING, "why the log was checked although --trust-log was given",
           null="it was not", value="why_checked"),
    count("lost_batches", "sound batches that are lost"),
    count("lost_records", "records that are lost"),
    size("lost_bytes", "bytes of log that are lost"),
    Column("lost_acknowledged", Kind.INT64, "offsets below the checkpointed high watermark that "
           "the log lacks when it is loaded", "count", "no high watermark is known"),
    Column("fix", Kind.STRING, "the command line that repairs the log from another copy",
           null="none of the other paths holds one"),
), note="One partition as a broker loads it.", type="partition",
    made_from="logtool.startup.partition:PartitionForecast")  # fmt: skip

_DISK = Table("disk", "disk", (
    Column("log_dir", Kind.PATH, "the first log dir on it"),
    _rate("bytes_per_second", "rate past the page cache, in a second", "past_cache",
          "it cannot be read past the page cache"),
    _rate("uncached_bytes_per_second", "rate through the page cache, in a second, of logs that "
          "were not in it", "through_cache", "all of them were in it"),
    _seconds("first_seconds", "time until the first bytes of such a log came", 6),
), made_from="logtool.startup.disks:DiskSample")  # fmt: skip
_SLOW = Table("slow_partition", "partition that takes long to load", (
    Column("path", Kind.PATH, "the partition dir", value="forecast.request.path"),
    Column("topic", Kind.STRING, "name of the topic", null=_NO_TOPIC,
           value="forecast.request.topic"),
    Column("partition", Kind.INT32, "number of the partition", null=_NO_TOPIC,
           value="forecast.request.partition"),
    _seconds("seconds", "time to load it, at the usual rate"),
    _seconds("seconds_low", "time to load it, at the fastest rate"),
    _seconds("seconds_high", "time to load it, at the slowest rate"),
    count("recovered_segments", "segments that are read from their first byte",
          "forecast.recovered"),
    Column("recovered_why", Kind.COUNTS, "these segments by the reason", "count",
           value="forecast.why"),
    size("bytes_scanned", "bytes of the logs of these segments", "forecast.bytes_scanned"),
    size("bytes_replayed", "bytes read once more for the state of producers",
         "forecast.bytes_replayed"),
    count("batches", "batches of these segments", "forecast.batches_scanned"),
    count("indexes_changed", "offset, time and transaction indexes that are made, or come out "
          "other than they are", "forecast.indexes_changed"),
    count("producers", "producers that are known at the end of the log", "forecast.producers"),
), note="How long one partition takes to load, and what takes the time.",
    made_from="logtool.startup.duration:Slow")  # fmt: skip
DURATION: Final = Table("duration", "start", (
    count("threads", "threads that load logs, for each log dir"),
    _rate("bytes_per_second", "usual rate of each thread, in a second: where it is measured, the "
          "rate of a broker by that of a pass over a log in the page cache", "rates.usual"),
    _rate("bytes_per_second_low", "the slowest tenth of the stretches timed here, or the disk "
          "itself, or what a broker was measured to do at worst", "rates.slow"),
    _rate("bytes_per_second_high", "the fastest tenth of the stretches timed here, or what a "
          "broker was measured to do at best", "rates.fast"),
    Column("rate_from", Kind.STRING, "given: the rates are that of --read-rate",
           words=("given", "measured"), value="rates.basis"),
    count("pieces", "stretches of the logs that were timed here; 0 where the rate was given",
          "rates.pieces"),
    _rate("disk_bytes_per_second", "rate of the slowest disk past the page cache, in a second",
          "rates.disk", "that was not tried, or cannot be"),
    Column("disks", Kind.OBJECT, "the disks under the log dirs of which a broker reads something; "
           "empty where they were not measured", of=_DISK, many=True),
    size("bytes", "bytes of log that are read"),
    _seconds("seconds", "time at bytes_per_second, with what a broker spends on each batch, each "
             "segment and each log, and with what its own compiler takes from it; what was not in "
             "the page cache comes from the disk first"),
    _seconds("seconds_low", "time at bytes_per_second_high, with the least that a broker spends on "
             "each batch"),
    _seconds("seconds_high", "time at bytes_per_second_low, with the most that a broker spends on "
             "each batch"),
    Column("critical", Kind.PATH, "the partition that takes longest", null="nothing is read"),
    _seconds("critical_seconds", "time that this partition takes; 0 without one"),
    Column("probe_timeout_s", Kind.INT64, "how long a liveness probe should wait at least", "s"),
    Column("slowest", Kind.OBJECT, "the partitions that take longest, the worst first, ten at most",
           of=_SLOW, many=True),
), note="How long a broker takes to load the logs, as a range: at the fastest and the slowest rate "
        "of each thread, given or measured.",
    type="duration", made_from="logtool.startup.duration:Duration")  # fmt: skip

_MISSED = Table("missed", "damage that a policy does not read", (
    Column("path", Kind.PATH, "the file"),
    Column("position", Kind.INT64, "byte in the file", "byte", "it is not known"),
    Column("reason", Kind.STRING, "what is wrong there"),
), made_from="logtool.startup.policies:Missed")  # fmt: skip
_POLICY = Table("policy", "policy of recovery", (
    Column("policy", Kind.STRING, "last-segment: the last segment of each log, as up to Kafka "
           "0.8.0; recovery-point: from the segment with the recovery point on, as today",
           words=("last-segment", "recovery-point")),
    count("segments", "segments that are read"),
    size("bytes", "bytes of logs that are read, those once more for the producer state among "
         "them"),
    _seconds("seconds", "time at the usual rate: measured here, given, or that of a broker with "
             "the logs in the page cache", 6),
    _seconds("seconds_low", "time at the fastest rate", 6),
    _seconds("seconds_high", "time at the slowest rate", 6),
    count("unread_segments", "segments that are not read"),
    size("unread_bytes", "bytes of the logs that are not read"),
    Column("missed", Kind.OBJECT, "damage that is known and that the policy does not read; what "
           "neither policy reads was not read here either", of=_MISSED, many=True),
), note="What recovery after a kill reads by one policy.",
    made_from="logtool.startup.policies:Outlook")  # fmt: skip
POLICIES: Final = Table("policies", "comparison", (
    Column("policies", Kind.OBJECT, "the policies, in the order asked for", value="outlooks",
           of=_POLICY, many=True),
), note="Policies of recovery side by side; only with --policy.", type="policies",
    made_from="logtool.startup.policies:PolicyComparison")  # fmt: skip

DOCUMENT: Final = Document(
    name="plan",
    title="What logtool plan, recover, rebuild-index, undo and checkpoint rebuild or set print",
    tables=(FORECAST, ACTION, DURATION, FINDING, POLICIES, UNDO),
)
