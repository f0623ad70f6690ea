"""The objects that `sanity` prints: logtool.sanity/1."""

from dataclasses import replace
from typing import Final

from logtool.schemas.columns import Column, Kind, Table
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

_PATH = Column("path", Kind.PATH, "the log dir or partition dir")
_START = Column("mode", Kind.STRING, "kind of start; eager: all indexes are checked, as up to "
                "Kafka 2.2; lazy: those of active segments, as since 2.3",
                words=("eager", "lazy"))  # fmt: skip


def _count(
    name: str,
    meaning: str,
    value: str | None = None,
    null: str | None = None,
    digits: int | None = None,
) -> Column:
    return Column(name, Kind.INT64, meaning, "count", null, value=value, digits=digits)


def _seconds(
    name: str, meaning: str, null: str | None = None, value: str | None = None, digits: int = 6
) -> Column:
    return Column(name, Kind.FLOAT, meaning, "s", null, value=value, digits=digits)


DIRECTORY: Final = Table("directory", "log dir or partition dir", (
    _PATH,
    _count("partitions", "partitions in it"),
    _count("segments", "segments of these partitions"),
    _count("index_files", "index files of these segments"),
    Column("index_bytes", Kind.INT64, "bytes of these files", "bytes"),
    _count("maps", "files that an eager broker keeps mapped: the offset and the time index of "
           "every segment"),
    _count("max_map_count", "files that one process may map (vm.max_map_count)", "most_maps",
           "the system does not say it"),
), note="The indexes that there are to check.", type="directory",
    made_from="logtool.sanity.results:MeasuredDir")  # fmt: skip

_NO_READERS = "no first readers were timed (--first-access)"
MEASUREMENT: Final = Table("measurement", "kind of start", (
    _PATH,
    Column("mode", Kind.STRING, "kind of start (eager or lazy), or what follows a lazy one",
           words=("eager", "lazy", "first-access", "become-leader", "background")),
    _count("threads", "threads that load logs"),
    _count("repeat", "runs that were timed"),
    Column("cache", Kind.STRING, "whether the page cache forgot the indexes before each run",
           null="it was left as it was (no --cold)",
           words=("dropped", "partly", "kept", "unknown")),
    _count("segments_opened", "segments of which some index was opened", "run.cost.segments"),
    _count("files_opened", "index files that were opened", "run.cost.files"),
    Column("bytes_read", Kind.INT64, "bytes of these files that were looked at", "bytes",
           value="run.cost.bytes"),
    Column("disk_bytes", Kind.INT64, "bytes that came from the disk", "bytes",
           "the system does not count them", value="run.usage.disk_bytes"),
    _count("minor_faults", "page faults that took nothing from the disk",
           "run.usage.minor_faults"),
    _count("major_faults", "page faults that waited for the disk", "run.usage.major_faults"),
    _seconds("seconds", "time of the checks", value="run.seconds"),
    _seconds("service_seconds", "time until clients could be served",
             "it follows a start, and they are served already", "run.service_seconds"),
    _seconds("offset_index_seconds", "time spent on offset indexes"),
    _seconds("time_index_seconds", "time spent on time indexes"),
    _seconds("transaction_index_seconds", "time spent on transaction indexes"),
    _seconds("seconds_per_segment", "time of the checks for each segment opened",
             "no segment was opened", digits=9),
    Column("speed_up", Kind.FLOAT, "times as fast as an eager start, until clients are served",
           null="nothing to compare was measured", digits=2),
    _count("seen", "findings that it sees"),
    _count("missed", "findings that others see and it does not",
           null="others were not searched for (--no-verify, or no eager start)"),
    _count("readers", "first readers of inactive segments", "reader_count", _NO_READERS),
    _seconds("reader_mean_seconds", "time that such a reader waits on average", _NO_READERS),
    _seconds("reader_max_seconds", "time that such a reader waits at most", _NO_READERS),
    _count("forced", "segments checked at once because a later one was found bad", "run.forced",
           "only become-leader and background do that"),
), note="One kind of start, or what follows it; of --repeat the run of median time.",
    type="measurement", made_from="logtool.sanity.results:Measurement")  # fmt: skip
LOAD: Final = Table("load", "kind of start", (
    _PATH,
    _START,
    Column("releases", Kind.STRING, "Kafka releases that start this way"),
    _count("partitions", "partitions that are loaded"),
    _count("segments", "segments of these partitions"),
    _count("threads", "threads that load logs"),
    _count("snapshots_written", "producer snapshots that the start writes, for logs that have none",
           "snapshots"),
    _seconds("seconds_low", "time of the whole load at least, by estimate"),
    _seconds("seconds_high", "time of the whole load at most, by estimate"),
    _seconds("check_seconds", "time of the index checks, as measured here"),
    _seconds("open_seconds", "time to open logs and to read leader epochs, topic ids and producer "
             "snapshots, as measured here"),
), note="An estimate of the whole load of a broker whose files are in the page cache, and the "
        "times that were measured here.",
    type="load", made_from="logtool.sanity.broker_load:Load")  # fmt: skip

_UNKNOWN = "the samples do not separate it from the rest"
MODEL: Final = Table("model", "kind of start", (
    _PATH,
    _START,
    _count("samples", "partitions that it was fitted to"),
    _seconds("seconds_per_partition", "time for each partition", _UNKNOWN, digits=12),
    _seconds("seconds_per_segment", "time for each segment", _UNKNOWN, digits=12),
    _seconds("seconds_per_byte", "time for each byte that is looked at", _UNKNOWN,
             digits=12),
    Column("r_squared", Kind.FLOAT, "share of the differences between partitions that the sum "
           "explains, at most 1", null="there is nothing to explain", digits=4),
), note="The time of a start as a sum over partitions, segments and bytes.", type="model",
    made_from="logtool.sanity.model:Model")  # fmt: skip

_TOO_FEW = "there are too few samples for it"
_NO_BROKERS = "one broker only is asked for (no --brokers)"
PROJECTION: Final = Table("projection", "kind of start and size asked for", (
    _PATH,
    _START,
    _count("partitions", "partitions of that size", "size.partitions", digits=0),
    _count("segments", "segments of that size", "size.segments", digits=0),
    Column("bytes", Kind.INT64, "bytes that are looked at", "bytes", value="size.bytes", digits=0),
    _seconds("seconds", "time of the index checks"),
    _seconds("seconds_low", "lower end of the interval in which 95 of 100 such starts lie",
             _TOO_FEW),
    _seconds("seconds_high", "upper end of the interval in which 95 of 100 such starts lie",
             _TOO_FEW),
    _seconds("load_seconds_low", "time of the whole load at least, by estimate"),
    _seconds("load_seconds_high", "time of the whole load at most, by estimate"),
    _count("brokers", "brokers that are restarted one after the other", null=_NO_BROKERS),
    _seconds("bounce_seconds_low", "time of the loads of all these brokers at least", _NO_BROKERS),
    _seconds("bounce_seconds_high", "time of the loads of all these brokers at most", _NO_BROKERS),
    Column("doubts", Kind.STRINGS, "reasons not to rely on it"),
), note="The time of a start at another size, by the model.", type="projection",
    made_from="logtool.sanity.model:Projection")  # fmt: skip
SEEN: Final = Table("finding", "finding", (
    *(replace(column, value=f"finding.{column.value or column.name}")
      for column in FINDING.columns),
    Column("seen_by", Kind.STRING, "the first kind of start that sees it; lazy: every start sees "
           "it", words=("lazy", "eager", "neither"), value="by"),
    Column("risk", Kind.STRING, "consequence: when it is met, and what a broker then does"),
), note="One thing that is wrong or worth knowing.", type="finding",
    made_from="logtool.sanity.judging:Seen")  # fmt: skip

DOCUMENT: Final = Document(
    name="sanity",
    title="What logtool sanity prints",
    tables=(DIRECTORY, MEASUREMENT, LOAD, MODEL, PROJECTION, SEEN),
)
