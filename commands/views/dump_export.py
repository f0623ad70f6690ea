"""Lines for producers of the command line: `dump --format kcat` and `console-producer`."""

from collections.abc import Iterator, Mapping
from typing import Any

from logtool.commands import output
from logtool.commands.output import Line, Printer, Report
from logtool.commands.printing import terminal, text
from logtool.commands.views import dump_notes
from logtool.dump.blocks import Block
from logtool.dump.export import ConsoleProducer, Export, Kcat
from logtool.dump.records import Object
from logtool.dump.stream import Dump
from logtool.errors import UnreadableError

FORMATS: dict[str, type[Export]] = {"kcat": Kcat, "console-producer": ConsoleProducer}
_TOGETHER = 256 * 1024
"""Bytes of lines that are printed at once."""


def render(obj: Mapping[str, Any]) -> None:
    """Print nothing of an object in its place: only errors, on stderr."""
    if obj["type"] == "error":
        output.error(output.describe_error(obj))


class ExportPrinter(Printer[Object | Block]):
    """Prints a line for each record, and in the end what a person must know of the lines."""

    def __init__(self, report: Report, job: Dump, *, looked_for: bool) -> None:
        self._report = report
        self._job = job
        self._looked_for = looked_for
        self._export = FORMATS[report.settings.format]()
        self._settled = False
        self._raw = not terminal.is_terminal()
        self._waiting = bytearray()

    def records(self, same: Dump) -> Iterator[Object | Block | UnreadableError]:
        """Yield the items of the job, after a check of all records of a dump of the `same` files.

        RefusedError if the format cannot express one of the records.
        """
        same.progress.on_progress = self._report.show
        for obj in same:
            if isinstance(obj, dict) and _is_record(obj):
                self._export.look(obj)
        self._export.settle()
        self._settled = True
        yield from self._job

    def show(self, item: Object | Block) -> None:
        """Print the line of a record, many at once."""
        if isinstance(item, Block):
            raise TypeError("an unexpected block of a dump")
        if not _is_record(item):
            self._report.item(item)
            return
        line = self._export.line(item)
        self._waiting += line if self._raw else _safe(line)
        if len(self._waiting) > _TOGETHER:
            self.finish()

    def finish(self) -> None:
        """Print the lines that wait."""
        self._report.lines(memoryview(bytes(self._waiting)))
        self._waiting.clear()

    def last_lines(self) -> Iterator[Line]:
        """Yield how to produce the records, what is lost of them, and what was read."""
        if self._settled:
            for line in _notes(self._export):
                yield line, None
        yield from dump_notes.last_lines(self._report, self._job, looked_for=self._looked_for)


def _notes(export: Export) -> Iterator[str]:
    """Yield notes on the lines for people: the command to produce them, and the data they lack."""
    if not export.records:
        return
    yield f"{text.count(export.records, 'record')}; to produce them again: {export.command()}"
    lost = "timestamps of records are lost"
    if len(export.partitions) > 1:
        lost = f"timestamps and partition numbers ({len(export.partitions)}) of records are lost"
    yield f"{lost}; the guide logtool-recipes shows how to keep them"
    if export.transactional:
        what = text.count(export.transactional, "record")
        yield (
            f"{what} of transactions {'is' if export.transactional == 1 else 'are'} included, "
            "even if the transaction was aborted or is open: see logtool txns --all"
        )


def _is_record(obj: Object) -> bool:
    """Return whether an object is a record of a client."""
    return obj["type"] == "record" and not obj["control"]


def _safe(line: bytes) -> bytes:
    """Return a line for a terminal, which must not get control characters."""
    said = text.escape(line.decode("utf-8", "backslashreplace").removesuffix("\n"))
    return f"{said}\n".encode()
