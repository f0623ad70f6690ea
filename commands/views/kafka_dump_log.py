"""A run of ``kafka-dump-log``: the lines of Kafka's own tool, file by file."""

from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext

from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing import kafka_lines
from logtool.commands.printing.block_lines import BlockLines
from logtool.commands.printing.writers import Object
from logtool.commands.views.dump_notes import unknown_notes
from logtool.disk import files
from logtool.dump.index import IndexDump
from logtool.dump.log import Filter
from logtool.dump.stream import Dump
from logtool.errors import UnreadableError
from logtool.exits import Exit
from logtool.formats.names import FileKind, parse_partition_file
from logtool.lazy_dataclass import dataclass
from logtool.running.summary import Summary
from logtool.sanity import kafka_check

_DUMPED = (".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot")
_CHECKED = (".index", ".timeindex")


@dataclass(frozen=True, slots=True)
class KafkaDump:
    """Options for the content of each file to print."""

    topic: str | None
    """Internal topic as whose records all records are decoded; None prints them as they are."""
    contents: bool
    deep: bool
    metadata: bool
    max_bytes: int | None
    sanity: bool
    verify: bool


Printed = Object | memoryview | Line
"""An object, the lines of many, or a line for people."""


def run(names: Sequence[str], wanted: KafkaDump) -> Exit:
    """Print the files that are named; return the exit status."""
    shown = kafka_lines.of_objects()

    def lines(obj: Object) -> str | None:
        if obj["type"] == "line":
            return str(obj["line"])
        return shown(obj, metadata=wanted.metadata, contents=wanted.contents)

    view = View(schema="", columns=(), layout=lambda _: None, lines={"kafka": lines})
    report = Report(OutputSettings(format="kafka", progress=False), view, Summary())
    blocks = kafka_lines.of_blocks(contents=wanted.contents) if wanted.metadata else None
    job = _Job(wanted, report.summary, blocks)
    with closing(blocks) if blocks else nullcontext():
        return report.consume(job.all(names), KafkaDumpPrinter(report))


class KafkaDumpPrinter(Printer[Printed]):
    """Prints objects, the lines of blocks, and lines for people among them."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def show(self, item: Printed) -> None:
        """Print one item."""
        if isinstance(item, memoryview):
            self._report.lines(item)
        elif isinstance(item, tuple):
            self._report.note(*item)
        else:
            self._report.item(item)


class _Job:
    """Lines that the tool prints for files; `summary` is filled meanwhile."""

    def __init__(self, wanted: KafkaDump, summary: Summary, blocks: BlockLines | None) -> None:
        self._wanted = wanted
        self._summary = summary
        self._blocks = blocks
        """Maker of the lines of blocks; None if each object is a line of its own."""

    def all(self, names: Sequence[str]) -> Iterator[Printed | UnreadableError]:
        """Yield the output for each file, and the errors of files that cannot be read."""
        for name in names:
            if not name.endswith(_DUMPED):
                yield _line(f"Dumping {name}")
                yield f"Ignoring unknown file {name}", "warning"
            elif self._wanted.sanity and name.endswith(_CHECKED):
                yield from self._check(name)
            else:
                yield from self._dump(name)
                if name.endswith(_CHECKED):
                    yield from self._compare(name)

    def _dump(self, name: str) -> Iterator[Printed | UnreadableError]:
        wanted = self._wanted
        chosen = Filter(records=wanted.contents or wanted.deep, decode=wanted.topic is not None)
        job = Dump(
            [files.path_of(name)],
            chosen,
            as_topic=wanted.topic,
            stop=wanted.max_bytes,
            in_blocks=self._blocks is not None,
            summary=self._summary,
        )
        for item in self._blocks.among(job) if self._blocks else job:
            if isinstance(item, dict):
                yield from self._of_object(name, item)
            elif isinstance(item, UnreadableError | memoryview):
                yield item
        for line in unknown_notes(job.unknown, job.unknown_tags):
            yield f"{name}: {line}", None

    def _of_object(self, name: str, obj: Object) -> Iterator[Printed]:
        if obj["type"] == "error":
            yield f"{name}: {obj['message']}", "error"
        # Kafka's tool prints the name as it was given.
        named = {**obj, "path": name} if obj["type"] == "file" else obj
        if not (self._wanted.verify and obj["type"] == "entry" and name.endswith(_CHECKED)):
            yield named

    def _check(self, name: str) -> Iterator[Printed | UnreadableError]:
        """Yield whether an index passes what a broker checks at its start."""
        yield _line(f"Dumping {name}")
        path = files.path_of(name)
        try:
            data = files.read_small(path)
        except UnreadableError as error:
            yield error
            return
        known = parse_partition_file(path.name)
        is_offsets = known.kind is FileKind.OFFSET_INDEX
        if is_offsets and len(data) < kafka_check.ENTRY_SIZES[known.kind]:
            yield _line(f"{name} is empty.")
            return
        check = kafka_check.check_offset_index if is_offsets else kafka_check.check_time_index
        finding = check(lambda at, size: data[at : at + size], len(data), known.offset or 0)
        if finding is None:
            yield _line(f"{name} passed sanity check.")
        else:
            self._summary.add(finding)
            yield f"{name} failed the sanity check: {finding.message}", "error"

    def _compare(self, name: str) -> Iterator[Line]:
        """Yield the entries of an index that contradict the log; other entries are not printed."""
        for item in IndexDump([files.path_of(name)], join_log=True, summary=self._summary):
            if isinstance(item, dict) and item.get("verdict") not in (None, "right", "unknown"):
                place = f"entry {item['entry']} (offset {item['offset']})"
                yield f"{name}: {place} does not match the log: {item['verdict']}", "warning"


def _line(text: str) -> Object:
    return {"type": "line", "line": text}
