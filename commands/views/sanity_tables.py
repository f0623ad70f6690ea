"""The objects that `sanity` prints: logtool.sanity/1."""

from dataclasses import replace
from typing import Final

from logtool.schemas.columns import Column, Kind, Table
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

_PATH = Column("path", Kind.PATH, "the log dir or partition dir")
_START = Column("mode", Kind.STRING, "kind of start; eager: Kafka up to 2.2, which checks all "
                "indexes; lazy: Kafka since 2.3, which checks the indexes of active segments",
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
    _count("partitions", "partitions in the directory"),
    _count("segments", "segments of the partitions"),
    _count("index_files", "index files of the segments"),
    Column("index_bytes", Kind.INT64, "bytes of the index files", "bytes"),
    _count("maps", "files that an eager broker keeps mapped: the offset index and the time index "
           "of every segment"),
    _count("max_map_count", "files that one process may map (vm.max_map_count)", "most_maps",
           "the operating system does not show the limit"),
), note="The indexes to check.", type="directory",
    made_from="logtool.sanity.results:MeasuredDir")  # fmt: skip

_NO_READERS = "no first readers were timed (no --first-access)"
MEASUREMENT: Final = Table("measurement", "kind of start", (
    _PATH,
    Column("mode", Kind.STRING, "kind of start (eager or lazy), or a step after a lazy start",
           words=("eager", "lazy", "first-access", "become-leader", "background")),
    _count("threads", "threads that load logs"),
    _count("repeat", "runs that were timed"),
    Column("cache", Kind.STRING, "whether the indexes were dropped from the page cache before each "
           "run",
           null="the page cache was left unchanged (no --cold)",
           words=("dropped", "partly", "kept", "unknown")),
    _count("segments_opened", "segments with an opened index", "run.cost.segments"),
    _count("files_opened", "index files that were opened", "run.cost.files"),
    Column("bytes_read", Kind.INT64, "bytes of the opened files that were checked", "bytes",
           value="run.cost.bytes"),
    Column("disk_bytes", Kind.INT64, "bytes that came from the disk", "bytes",
           "the operating system does not count these bytes", value="run.usage.disk_bytes"),
    _count("minor_faults", "page faults without a read from the disk",
           "run.usage.minor_faults"),
    _count("major_faults", "page faults with a read from the disk", "run.usage.major_faults"),
    _seconds("seconds", "time of the checks", value="run.seconds"),
    _seconds("service_seconds", "time until clients could be served",
             "the step follows a start, and clients are already served", "run.service_seconds"),
    _seconds("offset_index_seconds", "time spent on offset indexes"),
    _seconds("time_index_seconds", "time spent on time indexes"),
    _seconds("transaction_index_seconds", "time spent on transaction indexes"),
    _seconds("seconds_per_segment", "time of the checks for each segment opened",
             "no segment was opened", digits=9),
    Column("speed_up", Kind.FLOAT, "speed-up over an eager start, until clients are served",
           null="no eager start was measured", digits=2),
    _count("seen", "findings that this start sees"),
    _count("missed", "findings that other starts see and this start does not",
           null="other starts were not checked (--no-verify, or no eager start)"),
    _count("readers", "first readers of inactive segments", "reader_count", _NO_READERS),
    _seconds("reader_mean_seconds", "mean waiting time of a first reader", _NO_READERS),
    _seconds("reader_max_seconds", "longest waiting time of a first reader", _NO_READERS),
    _count("forced", "segments checked at once because a later segment is damaged", "run.forced",
           "only become-leader and background check such segments"),
), note="One kind of start, or a step after a start; with --repeat, the run with the median time.",
    type="measurement", made_from="logtool.sanity.results:Measurement")  # fmt: skip
LOAD: Final = Table("load", "kind of start", (
    _PATH,
    _START,
    Column("releases", Kind.STRING, "Kafka releases that start this way"),
    _count("partitions", "partitions that are loaded"),
    _count("segments", "segments of the partitions"),
    _count("threads", "threads that load logs"),
    _count("snapshots_written", "producer snapshots that the start writes for logs without a "
           "snapshot",
           "snapshots"),
    _seconds("seconds_low", "shortest estimated time of the whole load"),
    _seconds("seconds_high", "longest estimated time of the whole load"),
    _seconds("check_seconds", "measured time of the index checks"),
    _seconds("open_seconds", "measured time to open logs and to read leader epochs, topic ids and "
             "producer snapshots"),
), note="An estimate of the whole load of a broker whose files are in the page cache, and the "
        "measured times.",
    type="load", made_from="logtool.sanity.broker_load:Load")  # fmt: skip

_UNKNOWN = "the samples do not separate this part from the rest"
MODEL: Final = Table("model", "kind of start", (
    _PATH,
    _START,
    _count("samples", "partitions to which the model was fitted"),
    _seconds("seconds_per_partition", "time for each partition", _UNKNOWN, digits=12),
    _seconds("seconds_per_segment", "time for each segment", _UNKNOWN, digits=12),
    _seconds("seconds_per_byte", "time for each byte that is checked", _UNKNOWN,
             digits=12),
    Column("r_squared", Kind.FLOAT, "share of the differences between partitions that the model "
           "explains, at most 1", null="the partitions do not differ", digits=4),
), note="The time of a start as a sum over partitions, segments and bytes.", type="model",
    made_from="logtool.sanity.model:Model")  # fmt: skip

_TOO_FEW = "there are too few samples"
_NO_BROKERS = "the projection is for a single broker (no --brokers)"
PROJECTION: Final = Table("projection", "kind of start and requested size", (
    _PATH,
    _START,
    _count("partitions", "partitions of the projected broker", "size.partitions", digits=0),
    _count("segments", "segments of the projected broker", "size.segments", digits=0),
    Column("bytes", Kind.INT64, "bytes that are checked", "bytes", value="size.bytes", digits=0),
    _seconds("seconds", "time of the index checks"),
    _seconds("seconds_low", "lower end of the interval in which 95 of 100 such starts lie",
             _TOO_FEW),
    _seconds("seconds_high", "upper end of the interval in which 95 of 100 such starts lie",
             _TOO_FEW),
    _seconds("load_seconds_low", "shortest estimated time of the whole load"),
    _seconds("load_seconds_high", "longest estimated time of the whole load"),
    _count("brokers", "brokers that are restarted one after the other", null=_NO_BROKERS),
    _seconds("bounce_seconds_low", "shortest time of the loads of all these brokers", _NO_BROKERS),
    _seconds("bounce_seconds_high", "longest time of the loads of all these brokers", _NO_BROKERS),
    Column("doubts", Kind.STRINGS, "reasons not to rely on the projection"),
), note="The time of a start of a broker of another size, computed with the model.",
    type="projection",
    made_from="logtool.sanity.model:Projection")  # fmt: skip
SEEN: Final = Table("finding", "finding", (
    *(replace(column, value=f"finding.{column.value or column.name}")
      for column in FINDING.columns),
    Column("seen_by", Kind.STRING, "the first kind of start that sees the problem; lazy: every "
           "start sees it", words=("lazy", "eager", "neither"), value="by"),
    Column("risk", Kind.STRING, "consequence: when a broker meets the problem, and what the broker "
           "then does"),
), note="One problem, or one fact worth knowing.", type="finding",
    made_from="logtool.sanity.judging:Seen")  # fmt: skip

DOCUMENT: Final = Document(
    name="sanity",
    title="Objects that logtool sanity prints",
    tables=(DIRECTORY, MEASUREMENT, LOAD, MODEL, PROJECTION, SEEN),
)
