"""Output of space: a row for each topic, for each file system, and for each step of --free."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from logtool.commands import options
from logtool.commands.output import Line, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object, TableColumn, columns, keep
from logtool.commands.program import parsing
from logtool.commands.views.leftovers import short_name, undelete_lines
from logtool.commands.views.space_tables import DOCUMENT, FILE_SYSTEM, STEP, TOPIC, TOTAL
from logtool.disk import shell
from logtool.exits import Exit
from logtool.lazy_dataclass import dataclass
from logtool.log.inputs import GivenPaths
from logtool.metadata.setting_values import SettingSource
from logtool.retention import settings as retention_settings
from logtool.running.summary import Summary
from logtool.schemas.columns import Way
from logtool.space import trim_forecast
from logtool.space.freeing import FreeingStep, offsets_file
from logtool.space.run import FileSystemSpace, SpaceOptions, SpaceRun, TopicSpace
from logtool.space.trim_forecast import TrimForecast
from logtool.space.trimming import TrimOptions

SCHEMA = DOCUMENT.schema
_DELETE_RECORDS = (
    "kafka-delete-records.sh --bootstrap-server HOST:9092 --offset-json-file offsets.json"
)

_MOST = 10
"""Topics that one line names."""


def run(
    inputs: options.LocalInputs,
    running: options.Running,
    printing: options.Printing,
    *,
    at: str,
    free: str | None,
) -> Exit:
    """Print topics, file systems and steps; return the exit status."""
    chosen, given = printing.settings(), inputs.of_one_broker()
    at_ms, meaning = parsing.parse_moment("--at", at)
    wanted = None if free is None else parsing.parse_size("--free", free)
    view = View(
        schema=SCHEMA,
        columns=columns(*TOPIC.names(Way.CSV)),
        layout=_layout(),
        row_types=frozenset({TOPIC.name}),
        sparse=True,
    )
    report = Report(settings=chosen, view=view, summary=Summary(), inputs=given)
    static = inputs.broker.take(*retention_settings.SPACE_FROM_FILE)

    def forecast(steps: Sequence[FreeingStep]) -> TrimForecast:
        options = TrimOptions(at_ms=at_ms, free_bytes=wanted, static=static)
        return trim_forecast.forecast(given.paths, options, given.selection, steps)

    job = SpaceRun(
        given.paths,
        SpaceOptions(at_ms, wanted, static),
        selection=given.selection,
        run=running.run(report),
    )
    printer = SpacePrinter(
        report, job, wanted, meaning if at != "now" else None, _trim_command(given, free), forecast
    )
    status = report.consume(job, printer)
    short = wanted is not None and printer.total.step_bytes < wanted
    return Exit.FINDINGS if status is Exit.OK and short else status


@dataclass(slots=True)
class SpaceTotal:
    """The sums of a run."""

    wanted_bytes: int | None
    topics: int = 0
    partitions: int = 0
    bytes: int = 0
    disk_bytes: int = 0
    leftover_bytes: int = 0
    stray_bytes: int = 0
    preallocated_bytes: int = 0
    cleaner_heap_bytes: int = 0
    step_bytes: int = 0
    offsets_file: str | None = None
    trim_command: str | None = None
    trim_bytes: int | None = None
    trim_keeps: Sequence[str] = ()
    trim_refused: str | None = None


class SpacePrinter(Printer[TopicSpace | FileSystemSpace | FreeingStep]):
    """Prints topics, file systems and steps, and adds the topics up."""

    def __init__(
        self,
        report: Report,
        job: SpaceRun,
        wanted: int | None,
        meaning: str | None,
        trim: str,
        forecast: Callable[[Sequence[FreeingStep]], TrimForecast],
    ) -> None:
        """Begin; `trim` is the command that takes the steps, `forecast` returns what it frees."""
        self._report, self._job, self._meaning, self._trim = report, job, meaning, trim
        self._forecast = forecast
        self.total = SpaceTotal(wanted)
        self._systems: list[FileSystemSpace] = []
        self._topics: list[TopicSpace] = []
        """Topics of which something is to be said after the table."""
        self._paths: Sequence[Path] = report.inputs.paths if report.inputs else ()
        self._deleted = False
        """True if a step frees a directory that waits to be deleted."""

    def show(self, item: TopicSpace | FileSystemSpace | FreeingStep) -> None:
        """Print one object."""
        total, summary = self.total, self._report.summary
        if isinstance(item, TopicSpace):
            total.topics += item.topic is not None
            total.partitions += item.partitions
            total.bytes += item.bytes
            total.disk_bytes += item.disk_bytes
            total.leftover_bytes += item.leftover_bytes
            summary.partitions += item.partitions
            summary.bytes += item.bytes
            if item.delete_delay or item.unlimited_bytes:
                self._topics.append(item)
            self._report.item(TOPIC.row(item))
        elif isinstance(item, FileSystemSpace):
            self._systems.append(item)
            self._report.item(FILE_SYSTEM.row(item))
        else:
            total.step_bytes += item.bytes
            self._deleted |= item.path.name.endswith("-delete")
            self._report.item(STEP.row(item))

    def finish(self) -> None:
        """Print the sums."""
        self.total.stray_bytes = self._job.stray_bytes
        self.total.cleaner_heap_bytes = self._job.cleaner_heap_bytes
        self.total.offsets_file = offsets_file(self._job.steps)
        self.total.preallocated_bytes = self._job.preallocated_bytes
        if self._job.steps:
            self.total.trim_command = self._trim
            found = self._forecast(self._job.steps)
            self.total.trim_bytes, self.total.trim_keeps = found.bytes, found.above_watermark
            self.total.trim_refused = found.refused
        self._report.item(TOTAL.row(self.total))

    def last_lines(self) -> Iterator[Line]:
        """Yield the growth of each file system, the bytes that cost nothing, and the last steps."""
        total = self.total
        if self._meaning:
            yield self._meaning, "dim"
        for system in self._systems:
            yield from _growth(system)
            yield _start(system)
        if total.leftover_bytes:
            line = f"{text.size(total.leftover_bytes)} wait to be deleted: the broker frees them "
            if delays := _named(self._topics, _delay):
                line += (
                    f"file.delete.delay.ms after it has renamed them, or when it starts ({delays})"
                )
            else:
                line += "when it starts"
            yield line, None
            if self._deleted:
                yield from undelete_lines(self._paths)
        if kept := _named(self._topics, _unlimited):
            why = "retention.ms and retention.bytes are -1"
            yield f"retention never deletes anything of {kept}: {why}", None
        if 2 * total.preallocated_bytes > total.disk_bytes:
            share = text.share(total.preallocated_bytes, total.disk_bytes)
            yield (
                f"{share} are preallocated index files of active segments; a broker cuts off what "
                "holds no entry when it stops cleanly, or begins another segment",
                None,
            )
        if total.stray_bytes:
            yield (
                f"{text.size(total.stray_bytes)} in stray partition dirs, which no broker deletes: "
                "logtool may-delete says if other copies have their data",
                None,
            )
        if total.wanted_bytes is not None:
            yield from self._freed(total.wanted_bytes)
        if state := text.state(self._report.summary):
            yield state.removesuffix(": "), "warning"

    def _freed(self, wanted: int) -> Iterator[Line]:
        total = self.total
        if total.step_bytes < wanted:
            yield (
                f"the steps free {text.size(total.step_bytes)} of the {text.size(wanted)}: "
                "retention deletes no other closed segment",
                "warning",
            )
        else:
            yield f"the steps free {text.size(total.step_bytes)}", None
        if total.offsets_file is not None:
            yield (
                "on a running cluster, these commands delete the records of these segments; no "
                "command brings them back:",
                None,
            )
            yield f"  echo {shell.quote(total.offsets_file)} > offsets.json", None
            yield f"  {_DELETE_RECORDS}", None
        if total.trim_command is not None:
            yield f"for a broker that is stopped, this command {_trimmed(total)}:", None
            yield f"  {total.trim_command}", None


def _named(topics: Sequence[TopicSpace], what: Callable[[TopicSpace], str]) -> str:
    """Return the sentence about topics, at most `_MOST`; an empty text without one."""
    said = [f"{one.topic} {found}" for one in topics if (found := what(one))]
    more = [f"and {len(said) - _MOST} more"] if len(said) > _MOST else []
    return ", ".join([*said[:_MOST], *more])


def _delay(topic: TopicSpace) -> str:
    delay = topic.delete_delay
    if delay is None:
        return ""
    by_default = " by default" if delay.source is SettingSource.DEFAULT else ""
    return f"{text.duration(delay.number / 1000)}{by_default}"


def _unlimited(topic: TopicSpace) -> str:
    return text.size(topic.unlimited_bytes) if topic.unlimited_bytes else ""


def _trimmed(total: SpaceTotal) -> str:
    """Return the bytes that the command frees, and why these are fewer than those of the steps."""
    if total.trim_refused:
        return f"frees nothing, because it refuses: {total.trim_refused}"
    line = f"shows what it would remove, {text.size(total.trim_bytes or 0)}"
    if total.trim_keeps:
        named = ", ".join(total.trim_keeps[:3])
        more = len(total.trim_keeps) - 3
        named += f" and {more} more" if more > 0 else ""
        line += (
            f" of {text.size(total.step_bytes)}, because it removes only what lies below the "
            f"checkpointed high watermark, which is lower in {named}"
        )
    return line


def _trim_command(given: GivenPaths, free: str | None) -> str:
    """Return the command that shows the steps for a stopped broker."""
    words = ["logtool trim", shell.option("--free", free or ""), str(given.selection)]
    return " ".join([*filter(None, words), *map(shell.path, given.paths)])


def _growth(system: FileSystemSpace) -> Iterator[Line]:
    paths = ", ".join(str(path) for path in system.paths[:3])
    paths += f" and {len(system.paths) - 3} more" if len(system.paths) > 3 else ""
    free = f"{text.size(system.free_bytes)} of {text.size(system.capacity_bytes)} free"
    if system.forecast is None or system.newest is None:
        yield f"{paths}: {free}", None
        return
    rate = f"{text.size(system.forecast.day_bytes)} a day"
    if system.forecast.short_bytes:
        short = text.size(system.forecast.short_bytes)
        rate += f" ({short} of it by logs that cover less than an hour)"
    until = f"full on {system.full[:10]}" if system.full else "not full within a year"
    style = "warning" if system.full else None
    yield f"{paths}: {free}; {rate} in the week up to {system.newest[:10]}: {until}", style


def _start(system: FileSystemSpace) -> Line:
    """Return the line on what a start needs; a warning if it is more than is free."""
    room, free = system.room, system.free_bytes
    needed = room.start_bytes + room.cleaner_bytes
    line = f"a start writes up to {text.size(room.start_bytes)} to this disk"
    if room.cleaner_bytes:
        line += f", and the log cleaner up to {text.size(room.cleaner_bytes)} after it"
    if needed <= free:
        return line, None
    return f"{line}: free {text.size(needed - free)} more, or the broker may stop", "warning"


def _layout() -> Callable[[Object], Columns | None]:
    by_type = {
        "topic": keep(_TOPIC, "topic", "disk", "log", "index", "leftovers", "other"),
        "step": keep(_STEP, "free", "in", "bytes", "records", "retention"),
    }
    return lambda obj: by_type.get(str(obj["type"]))


def _kind(*kinds: str) -> Callable[[Object], str]:
    def shown(obj: Object) -> str:
        found = sum(obj["by_kind"].get(kind, 0) for kind in kinds)
        return text.size(found) if found else ""

    return shown


def _before(obj: Object) -> str:
    return "" if obj["before_offset"] is None else f"below {obj['before_offset']:,}"


_TOPIC: Sequence[TableColumn] = (
    TableColumn("topic", lambda obj: obj["topic"] or "(outside of partitions)"),
    TableColumn("partitions", lambda obj: obj["partitions"]),
    TableColumn("disk", lambda obj: text.size(obj["disk_bytes"])),
    TableColumn("log", _kind("log", "metadata-log")),
    TableColumn("index", _kind("index")),
    TableColumn("leftovers", _kind("deleted", "temporary")),
    TableColumn("stray", _kind("stray")),
    TableColumn("future", _kind("future")),
    TableColumn("other", _kind("other")),
)
_STEP: Sequence[TableColumn] = (
    TableColumn("free", lambda obj: obj["kind"]),
    TableColumn("in", lambda obj: short_name(obj["path"])),
    TableColumn("bytes", lambda obj: text.size(obj["bytes"])),
    TableColumn("segments", lambda obj: obj["segments"] or ""),
    TableColumn("records", _before),
    TableColumn("retention", lambda obj: str(obj["deleted"] or "")[:16].replace("T", " ")),
)
