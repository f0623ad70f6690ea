"""The lines for people behind a dump: what is not known here, and what was read."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from logtool.commands.output import Line, Report
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object
from logtool.dump.files import find_inputs
from logtool.dump.stream import Dump
from logtool.findings import Severity
from logtool.formats.names import FileKind
from logtool.retention import stamp
from logtool.retention.stamp import Unit

if TYPE_CHECKING:
    from logtool.dump.missing import MissingRecords


class Units:
    """The first timestamp in each unit that is not milliseconds."""

    def __init__(self) -> None:
        self._firsts: dict[Unit, int] = {}
        self._now_ms = time.time_ns() // 1_000_000

    def note(self, item: Object) -> None:
        """Note the timestamp of a batch or a record."""
        value = item.get("max_timestamp_ms" if item["type"] == "batch" else "timestamp_ms")
        if isinstance(value, int) and value > 0 and (unit := stamp.unit_of(value, self._now_ms)):
            self._firsts.setdefault(unit, value)

    def lines(self) -> Iterator[Line]:
        """Yield a line for each unit."""
        for unit, first in self._firsts.items():
            means = stamp.meaning(first, unit)
            yield f"timestamp {first} is in {unit}, not in milliseconds: {means}", "warning"


def last_lines(report: Report, job: Dump, *, looked_for: bool = False) -> Iterator[Line]:
    """Yield the lines behind a dump; with `looked_for`, how many records were found, too."""
    for line in unknown_notes(job.unknown, job.unknown_tags):
        yield line, None
    for found in job.missing.found if job.missing else ():
        yield _missing_note(found), None
    if looked_for:
        read = text.count(job.summary.records, "record")
        where = text.count(job.summary.partitions, "partition")
        yield f"{text.count(job.matched, 'record')} found; read: {read} in {where}", "dim"
        if not job.leftovers and (unread := _unread(job)):
            some = text.count(unread, "file")
            line = f"not read: {some} that no broker loads, such as .deleted files"
            yield f"{line}; logtool retention --key reads all files", "warning"
    yield from summary_lines(report)


def _unread(job: Dump) -> int:
    """Return the number of logs that no broker loads, and that the search left out."""
    every, _ = find_inputs(
        job.paths, job.selection, job.chosen.offsets, job.flavour, leftovers=True
    )
    read = {log.path for log in job.logs()}
    return sum(log.path not in read for log in every if log.name.kind is FileKind.LOG)


def _missing_note(found: "MissingRecords") -> str:
    """Return the line about the records of one copy that another lacks."""
    path, other = (text.escape(str(one)) for one in (found.path, found.other))
    line = f"{path}: {text.count(found.records, 'record')} printed that {other} lacks"
    if found.first_offset is not None and found.last_offset is not None:
        line += f", {text.offsets(found.first_offset, found.last_offset)}"
    left_out = (
        (found.repeated, "that it has at another offset"),
        (found.aborted, "of aborted transactions"),
        (found.open, "of open transactions"),
    )
    parts = [f"{text.count(number, 'record')} {what}" for number, what in left_out if number]
    line += f"; left out: {', '.join(parts)}" if parts else ""
    if found.headless:
        some = text.count(found.headless, "record")
        line += f"; {some} of transactions that begin before the first missing record"
    return line


def summary_lines(report: Report) -> Iterator[Line]:
    """Yield the counts of dumped data, but only with -v, after damage or after an interrupt."""
    summary = report.summary
    damage = summary.severities[Severity.ERROR]
    if not (report.settings.verbose or damage or (summary.bytes and not summary.complete)):
        return
    parts = [
        text.count(summary.segments, "segment"),
        text.count(summary.batches, "batch", "batches"),
        text.count(summary.records, "record"),
        text.size(summary.bytes),
    ]
    state = text.state(summary)
    harm = f"; {text.count(damage, 'damaged place')}" if damage else ""
    yield f"{state}{', '.join(parts)}{harm}", "error" if harm or state else "dim"


def unknown_notes(unknown: Counter[tuple[str, int]], tags: Counter[str]) -> Iterator[str]:
    """Yield a line for each type of record that was printed as bytes because it is not known.

    And one for each topic whose records had tagged fields that are not: these are bytes in the
    JSON, under ``unknownTaggedFields``.
    """
    for (topic, kind), count in sorted(unknown.items()):
        records = text.count(count, "record")
        yield (
            f"{topic}: logtool does not know the version of {records} of type {kind}; "
            "their content is printed without decoding"
        )
    for topic, count in sorted(tags.items()):
        fields = text.count(count, "tagged field")
        yield f"{topic}: logtool does not know {fields}; printed as bytes (unknownTaggedFields)"
