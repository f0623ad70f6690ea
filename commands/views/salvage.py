"""A run of ``salvage`` or ``undelete``: what is saved of each partition, and what is not."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from logtool.commands import options
from logtool.commands.output import Line, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object, columns
from logtool.commands.program.bucket_inputs import require_local
from logtool.commands.views.findings import FurtherFindings
from logtool.disk import shell
from logtool.errors import LogtoolError, UsageError
from logtool.exits import Exit
from logtool.findings import Finding
from logtool.formats import wording
from logtool.log.automq import AUTOMQ
from logtool.repair.output import OutputDir
from logtool.repair.salvage import Salvage
from logtool.repair.saved import Saved
from logtool.running.summary import ActionSummary
from logtool.schemas.salvaged import DOCUMENT

SCHEMA = DOCUMENT.schema
_COLUMNS = columns(
    "type", "topic", "partition", "path", "target", "log_start_offset", "log_end_offset",
    "segments", "batches", "records", "bytes", "filled_batches", "filled_bytes", "rejects",
    "rejected_bytes", "outcome", "position", "length", "kind", "first_offset", "last_offset",
    "filled_from", "proof", "crc32c", "sha256", "producer_id", "producer_epoch", "lost_from",
    "command", "map", "unread", "reason", "readable_again",
)  # fmt: skip
_HIDDEN = "logtool explain checkpoint/log-start-behind"
_MARKDOWN = columns("type", "path", "batches", "records", "rejects", "reason")
_ROWS = frozenset({"partition", "reject", "transaction", "records", "decoded", "image"})


def make() -> View:
    """Return the view of `salvage` and `undelete`."""
    return View(
        schema=SCHEMA,
        columns=_COLUMNS,
        layout=lambda obj: _MARKDOWN if obj["type"] in _ROWS else None,
        lines={"table": _line},
        row_types=_ROWS,
        sparse=True,
    )


def run(
    inputs: options.LocalInputs,
    running: options.Running,
    printing: options.Printing,
    *,
    output: Path,
    deleted: bool = False,
    fill_from: Sequence[Path] = (),
    retry: Path | None = None,
    records: str | None = None,
    damaged: bool = False,
    to_kafka: bool = False,
) -> Exit:
    """Save what is sound or, with `deleted`, what waits for its deletion; return the exit status.

    With `records` the records of what is saved are written, too, in that format; with `damaged`
    what decodes of the rejected bytes.
    """
    settings, summary = printing.settings(), ActionSummary()
    given = inputs.with_buckets()
    if not to_kafka and given.output_flavour == AUTOMQ.name:
        given = inputs.resolved()
    if to_kafka and given.output_flavour != AUTOMQ.name:
        text_of = "--to kafka requires a bucket of AutoMQ and the log dir of its metadata log; "
        raise UsageError(f"{text_of}'logtool convert --to kafka' converts segments of Redpanda")
    require_local(given.paths)
    report = Report(settings=settings, view=make(), summary=summary, inputs=given)
    job = Salvage(
        paths=given.paths,
        output=OutputDir(output),
        fill_from=fill_from,
        retry=retry,
        deleted=deleted,
        selection=given.selection,
        flavour=given.flavour,
        run=running.run(report),
        summary=summary,
    )
    items = _with_records(job, records, damaged) if records is not None or damaged else job
    printer = SalvagePrinter(
        report, summary, job, deleted=deleted, with_records=records is not None
    )
    return report.consume(items, printer)


def _with_records(
    job: Salvage, records: str | None, damaged: bool
) -> Iterator[Saved | Finding | LogtoolError]:
    """Yield the items of `job`, and after each saved item the files with its records."""
    # Two options need it, and it imports all of dump.
    from logtool.commands.program.salvage_output import Extras

    extras = Extras(job.output, records, damaged)
    for item in job:
        yield item
        if not isinstance(item, LogtoolError | Finding):
            yield from extras.after(item)


class SalvagePrinter(Printer[Saved | Finding | LogtoolError]):
    """Prints what is saved and what is not, and counts for the last line."""

    def __init__(
        self,
        report: Report,
        summary: ActionSummary,
        job: Salvage,
        *,
        deleted: bool,
        with_records: bool,
    ) -> None:
        """Print the results of a job; with `deleted` it brings back what waits for deletion.

        `with_records` says that the records of what is saved are written, too.
        """
        self._report = report
        self._summary = summary
        self._job = job
        self._deleted = deleted
        self._with_records = with_records
        self._further = FurtherFindings(report)
        self._rejects = self._filled = self._files = self._written = self._readable_again = 0
        self._unwritten: dict[str, int] = {}
        """Records of each saved partition, by path, until the file with its records is written."""
        self._of_brokers = 0
        """Records of these partitions that are not in the files: brokers wrote them."""

    def show(self, item: Saved | Finding | LogtoolError) -> None:
        """Print one object, an error in what was saved, or why something was not saved."""
        if isinstance(item, Finding):
            self._further.take(item)
            return
        if isinstance(item, LogtoolError):
            # A file of records that cannot be written counts as refused: the partition is saved.
            self._summary.refused = True
            self._report.refused(item)
            return
        obj = DOCUMENT.row(item)
        if obj["type"] == "partition":
            self._rejects += obj["rejects"]
            self._filled += obj["filled_batches"]
            self._unwritten[obj["path"]] = obj["records"]
            self._readable_again += obj["readable_again"] is not None
        elif obj["type"] == "records":
            self._files += 1
            self._written += obj["records"]
            self._of_brokers += self._unwritten.pop(obj["path"], obj["records"]) - obj["records"]
        self._report.item(obj)

    def last_lines(self) -> Iterator[Line]:
        """Yield how much was saved, and how much was not."""
        yield from self._further.last_lines()
        summary = self._summary
        batches = text.count(summary.batches, "batch", "batches")
        partitions = text.count(summary.partitions, "partition")
        place = self._job.output.given
        line = f"{text.state(summary)}{batches} of {partitions} saved in {place}"
        if self._filled:
            line += f", {self._filled:,} of these batches from other copies"
        if self._rejects:
            line += f"; {text.count(self._rejects, 'range')} rejected"
        if strays := self._job.strays:
            yield _strays(strays, place, alone=not summary.partitions), "warning"
        if self._with_records:
            yield self._of_records(), None
        if self._readable_again:
            where = text.count(self._readable_again, "partition")
            what = f"deleted records may be readable again in {where}"
            yield f"{what}; to hide them: {_HIDDEN}", "info"
        if self._deleted and summary.partitions:
            yield (
                "'A topic was deleted by mistake' shows how it gets back into its cluster: "
                "logtool man recipes | man -l -",
                None,
            )
        yield line, {0: "good", 1: "warning"}.get(int(self._report.exit_status()))

    def _of_records(self) -> str:
        """Return the line on the files with records, and the records that are in none of them."""
        files = text.count(self._files, "partition")
        place = self._job.output.given / "records"
        line = f"{text.count(self._written, 'record')} of {files} written in {place}"
        left = []
        if self._of_brokers:
            left.append(f"{self._of_brokers:,} that brokers wrote in them")
        if self._unwritten:
            why = "of brokers' own topics" + (" or refused" if self._summary.refused else "")
            others = text.count(len(self._unwritten), "partition")
            left.append(f"{sum(self._unwritten.values()):,} of {others} {why}")
        return f"{line}; left out: {', '.join(left)}" if left else line


def _strays(strays: Sequence[Path], output: Path, *, alone: bool) -> str:
    """Return the line about directories that hold records and were not deleted.

    `alone`: nothing was saved, so that the command may use the same output.
    """
    count = text.count(len(strays), "directory is", "directories are")
    places = shell.partition_dirs(strays)
    line = "no file waits for its deletion, but " if alone else "not saved: "
    line += f"{count} set aside as stray, with all files "
    line += f"(first: {text.escape(str(strays[0]))}); to save the records: "
    target = output if alone else output.with_name(f"{output.name}-stray")
    return f"{line}logtool salvage --output {shell.path(target)} {places}"


def _line(obj: Object) -> str | None:
    """Return an object as a person reads it."""
    if obj["type"] == "partition":
        return _partition(obj)
    if obj["type"] == "transaction":
        return f"  transaction  {text.escape(obj['reason'])}"
    if obj["type"] == "records":
        count, target = text.count(obj["records"], "record"), _below_output(obj, 2)
        again = text.escape(f"; to produce them again: {obj['command']}") if obj["command"] else ""
        return f"  records      {count} in {target}{again}"
    if obj["type"] == "decoded":
        count, target = text.count(obj["records"], "damaged record"), _below_output(obj, 3)
        why = f": {text.escape(obj['reason'])}" if obj["reason"] else ""
        if obj["proven"]:
            why = f", {obj['proven']:,} of them with a matching CRC of their own{why}"
        return f"  decoded      {count} in {target}{why}"
    if obj["type"] == "image":
        what = f"{text.size(obj['unread'])} of {text.escape(obj['path'])} cannot be read"
        return (
            f"  image        {what}; {_below_output(obj, 3)} holds the rest, a map lies next to it"
        )
    if obj["type"] != "reject":
        return None
    place = f"{text.escape(obj['path'])} @{obj['position']}, {text.size(obj['length'])}"
    line = f"  {obj['kind']:<11}  {place}: {text.escape(obj['reason'])}"
    first, last = obj["first_offset"], obj["last_offset"]
    if first is not None:
        span = wording.offsets(first, last) if last is not None else f"offsets from {first} on"
        line += f"; {span}"
    if obj["filled_from"]:
        line += f"; filled from {text.escape(obj['filled_from'])}: {obj['proof']}"
    elif obj["proof"]:
        line += f"; {text.escape(obj['proof'])}"
    return line


def _below_output(obj: Object, parts: int) -> str:
    """Return where a file lies in the output, which the last line names."""
    return text.escape("/".join(Path(obj["target"]).parts[-parts:]))


def _partition(obj: Object) -> str:
    span = wording.extent(obj["log_start_offset"], obj["log_end_offset"])
    saved = text.count(obj["batches"], "batch", "batches")
    said = [f"{text.escape(obj['path'])}: {saved} saved, {span}"]
    if obj["filled_batches"]:
        said.append(f"{obj['filled_batches']:,} of these batches from another copy")
    if obj["rejects"]:
        ranges = text.count(obj["rejects"], "range")
        said.append(f"{ranges} rejected ({text.size(obj['rejected_bytes'])})")
    if obj["readable_again"] is not None:
        said.append(f"records below offset {obj['readable_again']} may have been deleted before")
    if obj["reason"]:
        said.append(f"A BROKER WOULD NOT START: {text.escape(obj['reason'])}")
    return ", ".join(said)
