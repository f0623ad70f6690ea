"""A run of ``kafka-dump-log``: the lines of Kafka's own tool, file by file."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TypeVar

import numpy as np

from logtool.checks import index_sanity
from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing import kafka_lines
from logtool.commands.printing.block_lines import BlockLines
from logtool.commands.printing.writers import Object
from logtool.commands.views.dump_notes import unknown_notes
from logtool.disk import files
from logtool.dump.blocks import Block
from logtool.dump.index import IndexDump
from logtool.dump.log import Filter
from logtool.dump.stream import Dump
from logtool.errors import UnreadableError
from logtool.exits import Exit
from logtool.formats.names import FileKind, parse_partition_file
from logtool.formats.record_batch import Column
from logtool.lazy_dataclass import dataclass
from logtool.running.summary import Summary

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


Item = TypeVar("Item")
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
    decoded = wanted.topic is not None
    blocks = None
    if wanted.metadata:
        blocks = kafka_lines.of_blocks(contents=wanted.contents, decoded=decoded)
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


class _OffsetGaps:
    """The places of one log where the next record does not have the next offset."""

    def __init__(self, name: str) -> None:
        self._path = Path(name).absolute()
        self._last = -1
        self._found: dict[int, int] = {}
        """The offset of the next record by that of the one before."""

    def watch(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items of a dump, and note the offsets of their records."""
        for item in items:
            if isinstance(item, Block) and item.records:
                self._add(item.records.offset)
            elif isinstance(item, dict) and item["type"] == "record":
                self._add(np.array([item["offset"]]))
            yield item

    def _add(self, offsets: Column) -> None:
        if len(offsets):
            before = np.concatenate(([self._last], offsets[:-1]))
            rows = np.flatnonzero(offsets != before + 1)
            self._found.update(zip(before[rows].tolist(), offsets[rows].tolist(), strict=True))
            self._last = int(offsets[-1])

    def lines(self) -> Iterator[Line]:
        """Yield the lines of Kafka's tool, in the order of its ``TreeMap`` (Kafka 4.3).

        In that release the first record follows -1, so that only a log from offset 0 has no line.
        """
        if self._found:
            yield f"Non-consecutive offsets in {self._path}", None
        for before, offset in sorted(self._found.items()):
            yield f"  {before} is followed by {offset}", None


class _Job:
    """Lines that the tool prints for files; `summary` is filled meanwhile."""

    def __init__(self, wanted: KafkaDump, summary: Summary, blocks: BlockLines | None) -> None:
        self._wanted = wanted
        self._summary = summary
        self._blocks = blocks
        """Maker of the lines of blocks; None if each object is a line of its own."""
        self._gaps: list[_OffsetGaps] = []

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
        for gaps in self._gaps:
            yield from gaps.lines()

    def _dump(self, name: str) -> Iterator[Printed | UnreadableError]:
        wanted = self._wanted
        chosen = Filter(records=wanted.contents or wanted.deep, decode=wanted.topic is not None)
        job = Dump(
            [files.path_of(name)],
            chosen,
            as_topic=wanted.topic,
            stop=wanted.max_bytes,
            in_blocks=self._blocks is not None,
            commits_in_blocks=True,
            summary=self._summary,
        )
        gaps = _OffsetGaps(name)
        self._gaps.append(gaps)
        items = gaps.watch(job)
        for item in self._blocks.among(items) if self._blocks else items:
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
        if is_offsets and len(data) < index_sanity.ENTRY_SIZES[known.kind]:
            yield _line(f"{name} is empty.")
            return
        check = index_sanity.check_offset_index if is_offsets else index_sanity.check_time_index
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
