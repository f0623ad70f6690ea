"""Lines for producers of the command line: `dump --format kcat` and `console-producer`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from logtool.commands import output
from logtool.commands.output import Report
from logtool.commands.printing import text
from logtool.dump.blocks import Block
from logtool.dump.export import ConsoleProducer, Export, Kcat
from logtool.dump.records import Object
from logtool.dump.stream import Dump

FORMATS: dict[str, type[Export]] = {"kcat": Kcat, "console-producer": ConsoleProducer}
_TOGETHER = 256 * 1024
"""Bytes of lines that are printed at once."""


def looked_at(chosen: str, job: Dump) -> Export:
    """Return how every record of a dump is said; RefusedError where one cannot be."""
    export = FORMATS[chosen]()
    for obj in _records(job):
        export.look(obj)
    export.settle()
    return export


def render(obj: Mapping[str, Any]) -> None:
    """Print nothing of an object in its place: only errors are told, on stderr."""
    if obj["type"] == "error":
        output.error(output.describe_error(obj))


def print_all(report: Report, job: Dump, export: Export) -> None:
    """Print the lines of a dump's records."""
    raw = not output.is_terminal()
    waiting = bytearray()
    for item in job:
        if isinstance(item, Exception):
            report.unreadable(item)
        elif isinstance(item, Block):
            raise TypeError("a dump whose blocks nobody asked for")
        elif item["type"] == "record" and not item["control"]:
            line = export.line(item)
            waiting += line if raw else _safe(line)
            if len(waiting) > _TOGETHER:
                report.lines(memoryview(bytes(waiting)))
                waiting.clear()
        else:
            report.item(item)
    report.lines(memoryview(bytes(waiting)))


def notes(export: Export) -> Iterator[str]:
    """Yield what a person must know of the lines."""
    if not export.records:
        return
    yield f"{text.count(export.records, 'record')}; to produce them again: {export.command()}"
    lost = "their timestamps are not kept"
    if len(export.partitions) > 1:
        count = text.count(len(export.partitions), "partition")
        lost += f", nor which of {count} they are of"
    yield f"{lost}; the guide logtool-recipes shows how to keep them"
    if export.transactional:
        what = text.count(export.transactional, "record")
        yield (
            f"{what} of transactions {'is' if export.transactional == 1 else 'are'} among them, "
            "also of those that were aborted or are open: see logtool txns --all"
        )


def _records(job: Iterable[object]) -> Iterator[Object]:
    for item in job:
        if isinstance(item, dict) and item["type"] == "record" and not item["control"]:
            yield item


def _safe(line: bytes) -> bytes:
    """Return a line for a terminal, which must not get control characters."""
    said = text.escape(line.decode("utf-8", "backslashreplace").removesuffix("\n"))
    return f"{said}\n".encode()
