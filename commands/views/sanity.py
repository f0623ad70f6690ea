"""Output of the costs and the results of sanity checks for a person."""

import re
from collections.abc import Iterator, Sequence

from logtool.commands import options
from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object, TableColumn, columns
from logtool.commands.program import broker_config, parsing
from logtool.commands.views.sanity_tables import DOCUMENT, MEASUREMENT
from logtool.errors import UsageError
from logtool.exits import Exit
from logtool.findings import Severity
from logtool.sanity.model import Target
from logtool.sanity.results import Mode
from logtool.sanity.run import Procedure, Result, Sanity
from logtool.schemas.columns import Way

SCHEMA = DOCUMENT.schema
_COLUMNS = columns(*MEASUREMENT.names(Way.CSV))
_FINDING = columns("severity", "code", "seen_by", "path", "position", "message")
_BY_COUNT = {"segments", "partitions"}
_COUNT = re.compile(r"[1-9][0-9]{0,14}")


def _time(key: str) -> TableColumn:
    return TableColumn(
        _TITLES[key], lambda obj: "" if obj[key] is None else text.duration(obj[key])
    )


_TITLES = {
    "seconds": "index checks",
    "service_seconds": "before serving",
    "offset_index_seconds": "offset",
    "time_index_seconds": "time idx",
    "transaction_index_seconds": "txn",
    "seconds_per_segment": "per segment",
}
_MODEL: Columns = (
    TableColumn("model of", lambda obj: obj["mode"]),
    TableColumn("per partition", lambda obj: _term(obj["seconds_per_partition"])),
    TableColumn("per segment", lambda obj: _term(obj["seconds_per_segment"])),
    TableColumn("per byte", lambda obj: _term(obj["seconds_per_byte"])),
    TableColumn("R2", lambda obj: obj["r_squared"]),
    TableColumn("samples", lambda obj: f"{obj['samples']:,}"),
)
_PROJECTION: Columns = (
    TableColumn("projected", lambda obj: obj["mode"]),
    TableColumn("partitions", lambda obj: f"{obj['partitions']:,}"),
    TableColumn("segments", lambda obj: f"{obj['segments']:,}"),
    TableColumn("index checks", lambda obj: text.duration(obj["seconds"])),
    TableColumn("95 of 100", lambda obj: _span(obj, "seconds")),
    TableColumn("estimated load", lambda obj: _span(obj, "load_seconds")),
    TableColumn("of all brokers", lambda obj: _span(obj, "bounce_seconds")),
)
_LOAD: Columns = (
    TableColumn("load of a broker", lambda obj: f"{obj['mode']}, {obj['releases']}"),
    TableColumn("estimate", lambda obj: _span(obj, "seconds")),
    TableColumn("threads", lambda obj: obj["threads"]),
    TableColumn("snapshots written", lambda obj: f"{obj['snapshots_written']:,}"),
    TableColumn("checks measured", lambda obj: text.duration(obj["check_seconds"])),
    TableColumn("other files measured", lambda obj: text.duration(obj["open_seconds"])),
)
_MEASUREMENT: Columns = (
    TableColumn("start", lambda obj: obj["mode"]),
    _time("seconds"),
    _time("service_seconds"),
    TableColumn("speed-up", lambda obj: "" if obj["speed_up"] is None else f"{obj['speed_up']}x"),
    TableColumn("opened", lambda obj: f"{obj['files_opened']:,}"),
    TableColumn("read", lambda obj: text.size(obj["bytes_read"])),
    TableColumn("from disk", lambda obj: _disk(obj["disk_bytes"])),
    TableColumn("faults", lambda obj: f"{obj['minor_faults']:,}+{obj['major_faults']:,}"),
    _time("offset_index_seconds"),
    _time("time_index_seconds"),
    _time("transaction_index_seconds"),
    _time("seconds_per_segment"),
    TableColumn("each waits", lambda obj: _reader(obj)),
    TableColumn("forced", lambda obj: "" if obj["forced"] is None else f"{obj['forced']:,}"),
    TableColumn("sees", lambda obj: obj["seen"]),
    TableColumn("misses", lambda obj: obj["missed"]),
)


def run(
    inputs: options.AnyLocalInputs,
    running: options.Running,
    printing: options.Printing,
    *,
    mode: str,
    threads: int | None,
    repeat: int,
    cold: bool,
    verify: bool,
    first_access: int,
    become_leader: int,
    background_threads: int,
    project: Sequence[str],
    brokers: int | None,
    limits: str | None,
) -> Exit:
    """Print the measurements as they are made; return the exit status."""
    given = inputs.of_one_broker()
    later = (first_access, become_leader, background_threads)
    if given.output_flavour and (mode == "lazy" or any(later) or project):
        raise UsageError(
            "--mode lazy, --first-access, --become-leader, --background-threads and --project do "
            "not support Redpanda, and PATH is a Redpanda directory; a start of "
            "Redpanda reads every base index"
        )
    if brokers and not project:
        raise UsageError("--brokers needs --project, which gives the size of a broker")
    procedure = Procedure(
        modes=(Mode.EAGER, Mode.LAZY) if mode == "both" else (Mode(mode),),
        readers=first_access,
        new_leaders=become_leader,
        background_threads=background_threads,
        limits=parsing.parse_limits(limits),
        targets=tuple(map(_parse_size, project)),
        brokers=brokers,
        threads=threads or inputs.broker.number(broker_config.THREADS, 1),
        repeat=repeat,
        cold=cold,
        verify=verify,
    )
    job = Sanity(
        given.paths,
        procedure,
        selection=given.selection,
        pace=running.pace(),
        flavour=given.flavour,
    )
    settings = printing.settings()
    view = make(settings, models=bool(project))
    report = Report(settings=settings, view=view, summary=job.summary, inputs=given)
    return report.consume(job, SanityPrinter(report, job))


def _parse_size(given: str) -> Target:
    """Return the target of ``segments=31800,partitions=6360`` or ``rate=80M,retention=7d``."""
    parts = [part.partition("=")[::2] for part in given.split(",")]
    size = dict(parts)
    grows = {"rate", "retention"} <= size.keys()
    allowed = {"partitions", "rate", "retention", "segment-bytes"} if grows else _BY_COUNT
    counts = [value for name, value in parts if name in _BY_COUNT]
    is_good = len(size) == len(parts) and size.keys() <= allowed
    if not is_good or not all(map(_COUNT.fullmatch, counts)):
        raise UsageError(
            f"--project {given}: expected segments=N or partitions=N, each once, such as "
            "segments=31800,partitions=6360, or rate=SIZE,retention=TIME, such as "
            "rate=80M,retention=7d,partitions=6360,segment-bytes=1G"
        )
    partitions = int(size["partitions"]) if "partitions" in size else None
    if not grows:
        return Target(partitions, int(size["segments"]) if "segments" in size else None)
    return Target(
        partitions,
        rate=parsing.parse_size("--project", size["rate"]),
        retention=parsing.parse_duration("--project", size["retention"]),
        segment_bytes=parsing.parse_size("--project", size.get("segment-bytes", "1G")),
    )


def make(settings: OutputSettings, *, models: bool) -> View:
    """Return the view of `sanity`; people want the models that something was projected by."""
    return View(
        schema=SCHEMA,
        columns=_COLUMNS,
        layout=lambda obj: _layout(obj, settings, models or settings.verbose),
        row_types=frozenset({"measurement"}),
        sparse=True,
    )


class SanityPrinter(Printer[Result]):
    """Prints the results as they come, and keeps their objects for the last lines."""

    def __init__(self, report: Report, job: Sanity) -> None:
        self._report = report
        self._job = job
        self._objects: list[Object] = []

    def show(self, item: Result) -> None:
        """Print one result."""
        self._objects.append(DOCUMENT.row(item))
        self._report.item(self._objects[-1])

    def last_lines(self) -> Iterator[Line]:
        """Yield the log dirs that are in use, then doubts and risks, the verdict last."""
        for finding in self._job.in_use:
            yield f"{finding.path}: {finding.message}", None
        style = None if self._report.exit_status() else "good"
        for line in self._lines():
            yield line, style

    def _lines(self) -> Iterator[str]:
        for obj in self._objects:
            if obj["type"] == "directory" and (obj["max_map_count"] or obj["maps"]) < obj["maps"]:
                yield (
                    f"{obj['path']}: an eager broker keeps {obj['maps']:,} maps, more than "
                    f"vm.max_map_count allows ({obj['max_map_count']:,})"
                )
            elif obj["type"] == "measurement" and obj["cache"] not in (None, "dropped"):
                yield _CACHE[obj["cache"]].format(f"{obj['path']}, {obj['mode']}")
            elif obj["type"] == "projection" and obj["doubts"]:
                yield (
                    f"do not rely on the projection of {obj['mode']} to {obj['segments']:,} "
                    f"segments: {'; '.join(obj['doubts'])}"
                )
        yield from _risks(self._objects, self._report)
        yield _verdict(self._objects, self._report)


def _risks(objects: Sequence[Object], report: Report) -> Iterator[str]:
    """Yield for each kind of finding that is shown what comes of it, and the next command."""
    shown_codes: set[str] = set()
    for obj in objects:
        if obj["type"] != "finding" or obj["code"] in shown_codes:
            continue
        if obj["severity"] == "info" and not report.settings.verbose:
            continue
        shown_codes.add(obj["code"])
        yield f"{obj['code']}: {obj['risk']} Next: {obj['next']}"


_CACHE = {
    "kept": "{}: not cold; the file system did not drop its cached data",
    "partly": "{}: only partly cold; part of the data stayed in the page cache",
    "unknown": "{}: it is not known whether the run was cold; the operating system does not count "
    "the bytes that it reads",
}


def _verdict(objects: Sequence[Object], report: Report) -> str:
    counts = report.summary.codes.total()
    seen = [obj["seen_by"] for obj in objects if obj["type"] == "finding"]
    what = "no findings"
    if counts:
        parts = ", ".join(
            f"{seen.count(by)} {words}" for by, words in _SEEN.items() if seen.count(by)
        )
        what = f"{text.count(counts, 'finding')}: {parts}"
    state = "" if report.summary.complete else "INCOMPLETE: "
    if report.summary.severities[Severity.INFO] and not report.settings.verbose:
        what += " (-v shows those of severity info)"
    segments = text.count(report.summary.segments, "segment")
    return f"{state}{what}; {text.count(report.summary.partitions, 'partition')}, {segments}"


_SEEN = {
    "lazy": "seen by every start",
    "eager": "seen by an eager start only",
    "neither": "seen by no start",
}


_TABLES = {
    "measurement": _MEASUREMENT, "load": _LOAD, "model": _MODEL, "projection": _PROJECTION,
}  # fmt: skip


def _layout(obj: Object, settings: OutputSettings, models: bool) -> Columns | str | None:
    if obj["type"] == "model" and not models:
        return None
    if obj["type"] in _TABLES:
        return _TABLES[obj["type"]]
    if obj["type"] == "directory":
        return (
            f"{text.escape(obj['path'])}: {text.count(obj['partitions'], 'partition')}, "
            f"{text.count(obj['segments'], 'segment')}, "
            f"{text.count(obj['index_files'], 'index file')} of {text.size(obj['index_bytes'])}"
        )
    if obj["type"] != "finding":
        return None
    return None if obj["severity"] == "info" and not settings.verbose else _FINDING


def _reader(obj: Object) -> str:
    """Return the mean and the longest wait of a first reader; empty if there is no reader."""
    if obj["readers"] is None:
        return ""
    mean, most = text.duration(obj["reader_mean_seconds"]), text.duration(obj["reader_max_seconds"])
    return f"{mean}, max {most}"


def _span(obj: Object, key: str) -> str:
    """Return a range of seconds; nothing where it is not known."""
    low, high = obj[f"{key}_low"], obj[f"{key}_high"]
    return "" if low is None else text.span(low, high, text.duration)


def _term(seconds: float | None) -> str:
    return "" if seconds is None else text.duration(seconds)


def _disk(count: int | None) -> str:
    return "" if count is None else text.size(count)
