"""A run of ``dump``: objects or lines on standard output, counts, or a file of columns."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from logtool.commands import options, output
from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.block_lines import BlockLines
from logtool.commands.printing.writers import Columns, Object, TableColumn, columns, keep
from logtool.commands.program import parsing
from logtool.commands.program.record_selectors import Selectors
from logtool.commands.program.shown_content import DumpContent
from logtool.commands.views import dump_export, dump_notes
from logtool.commands.views.dump_layouts import RECORD_CSV, SCHEMA_IDS, STATE, Layouts, row_types
from logtool.commands.views.dump_tables import COUNT, DOCUMENT
from logtool.dump.blocks import Block
from logtool.dump.log import Filter
from logtool.dump.schema_ids import SchemaIds
from logtool.dump.selecting import parse_content
from logtool.dump.stream import Count, Dump, PartitionCount, TotalCount
from logtool.dump.values import EVERYTHING, Values, parse_offsets, parse_timestamps, show_record
from logtool.erasure.states import Marking
from logtool.errors import RefusedError, UnreadableError, UsageError
from logtool.exits import Exit
from logtool.formats import _rendering
from logtool.lazy_dataclass import dataclass
from logtool.log.inputs import GivenPaths
from logtool.running.summary import Summary
from logtool.running.workers import Pace
from logtool.schemas.columns import Way

if TYPE_CHECKING:
    from logtool.commands.printing.dump_parquet import ParquetFile  # with pyarrow

_SHOW_BAD_RECORDS = ("table", "markdown", "json", "ndjson")
"""Formats in which a record of a batch with a wrong CRC cannot be taken for a sound one."""
_COUNT_ROWS = columns("type", *COUNT.names(Way.CSV))
_COUNT_TABLE = keep((
    TableColumn("topic", lambda obj: obj["topic"]),
    *columns("partition", "records", "path"),
), "topic", "partition", "records", "path")  # fmt: skip


def run(
    inputs: options.AnyInputs,
    shown: DumpContent,
    selectors: Selectors,
    running: options.Running,
    settings: OutputSettings,
    *,
    output_file: str | None,
) -> Exit:
    """Print the selected content of files, or write it to `output_file`; return the exit status."""
    whole = settings.format == "parquet" or settings.format in dump_export.FORMATS
    if whole and running.max_duration:
        raise UsageError(f"use only one of --max-duration and --format {settings.format}")
    asked, meaning = _asked(inputs, shown, selectors, settings, running.pace())
    job, table, form = asked.job(), None, settings.format
    formless = form == "parquet" and not asked.shown.records
    if (form == "kafka" or formless) and job.has_redpanda():
        raise UsageError(f"--format {form} does not support Redpanda files")
    if output_file is not None:
        target = options.local_path(output_file)
        table = _parquet_file(target, asked.inputs.paths, records=asked.shown.records)
    view, lines = _look(job, asked, table)
    report = Report(settings=settings, view=view, summary=job.summary, inputs=asked.inputs)
    job.progress.on_progress = report.show
    if meaning:
        report.note(meaning, "dim")
    if selectors.count:
        job.in_blocks = True
        return report.consume(Count(job), CountPrinter(report, job))
    if asked.is_export:
        export = dump_export.ExportPrinter(report, job, looked_for=selectors.any_given)
        return report.consume(export.records(asked.job()), export)
    if table:
        return _write(report, job, table, asked)
    job.in_blocks = lines is not None
    with closing(lines) if lines else nullcontext():
        items: Iterable[Object | Block | memoryview | UnreadableError]
        items = lines.among(job) if lines else job
        if asked.marks:
            items = Marking(job.logs(), job.summary.pace).among(job)
        printer = DumpPrinter(report, job, asked)
        if shown.schema_ids:
            printer.schemas = SchemaIds(asked.inputs)
        return report.consume(items, printer)


@dataclass(frozen=True, slots=True)
class _DumpRequest:
    """Request of a command line."""

    settings: OutputSettings
    inputs: GivenPaths
    shown: DumpContent
    selectors: Selectors
    chosen: Filter
    pace: Pace

    @property
    def marks(self) -> bool:
        """Return whether the records with a key are printed with their states."""
        form = self.settings.format
        is_other = self.is_export or self.selectors.count or form in ("kafka", "parquet")
        return bool(self.selectors.key) and not is_other

    @property
    def is_export(self) -> bool:
        """Return whether the records are for a producer."""
        return self.settings.format in dump_export.FORMATS

    @property
    def reads_leftovers(self) -> bool:
        """Return whether logs that no broker loads are searched too: not to produce records."""
        is_copy = self.is_export or self.selectors.missing_in is not None
        return self.selectors.any_given and not is_copy

    def job(self) -> Dump:
        """Return a dump that has not begun."""
        pace, missing = self.pace, None
        if self.selectors.missing_in is not None:
            # With the comparison of copies, which no other dump needs.
            from logtool.dump.missing import MissingIn

            missing = MissingIn(
                self.inputs.paths,
                self.selectors.missing_in,
                self.inputs.selection,
                pace=pace,
                flavour=self.inputs.flavour,
            )
        return Dump(
            paths=self.inputs.paths,
            missing=missing,
            chosen=self.chosen,
            selection=self.inputs.selection,
            limit=self.shown.limit,
            once=self.selectors.once,
            leftovers=self.reads_leftovers,
            limits_records=self.is_export or self.selectors.any_given,
            flavour=self.inputs.flavour,
            summary=Summary(found=0 if self.selectors.any_given else None, pace=pace),
        )


def _asked(
    inputs: options.AnyInputs,
    shown: DumpContent,
    selectors: Selectors,
    settings: OutputSettings,
    pace: Pace,
) -> tuple[_DumpRequest, str | None]:
    """Return the request, and a line on the times that are meant, None if it is not needed.

    UsageError for a range or a content filter that is not valid.
    """
    content = parse_content(
        keys=selectors.key or (),
        values=selectors.value or (),
        headers=selectors.header or (),
        patterns=selectors.grep or (),
        paths=selectors.json_path or (),
    )
    is_export = settings.format in dump_export.FORMATS
    compares = selectors.once or selectors.missing_in is not None
    selects = selectors.count or compares or selectors.any_given or is_export
    bad_records = shown.records and not selects and settings.format in _SHOW_BAD_RECORDS
    if selects:
        shown = replace(shown, records=True)
    takes_bytes = selectors.count or is_export or settings.format == "parquet"
    timestamps, meaning = EVERYTHING, None
    if shown.timestamp is not None:
        timestamps, meaning = parse_timestamps(shown.timestamp, parsing.now_ms())
    chosen = Filter(
        offsets=EVERYTHING if shown.offset is None else parse_offsets(shown.offset),
        timestamps=timestamps,
        producer_id=shown.producer,
        records=shown.records,
        content=content,
        max_batch_memory=parsing.parse_batch_memory(shown.max_batch_memory),
        decode=shown.decodes and not takes_bytes,
        secrets=shown.secrets,
        bad_records=bad_records,
    )
    return _DumpRequest(settings, inputs.with_buckets(), shown, selectors, chosen, pace), meaning


def _look(
    job: Dump, asked: _DumpRequest, table: "ParquetFile | None"
) -> tuple[View, BlockLines | None]:
    """Return the view, and what makes the lines of blocks where the format lets us."""
    settings, shown = asked.settings, asked.shown
    if shown.schema_ids:
        _check_schema_ids(asked)
    if asked.selectors.count:
        if settings.format in ("kafka", "parquet", *dump_export.FORMATS):
            raise UsageError(f"use only one of --count and --format {settings.format}")
        if shown.limit is not None:
            raise UsageError("use only one of --count and --limit")
        return _count_view(verbose=settings.verbose), None
    layouts = Layouts(records=shown.records, marked=asked.marks)
    shown_columns = layouts.delimited(job.kinds())
    lines: dict[str, Callable[[Object], str | None]] = {}
    of_blocks = None
    if asked.is_export:
        lines[settings.format] = dump_export.render
    elif table:
        lines["parquet"] = table.item
    elif settings.format == "kafka":
        from logtool.commands.printing import kafka_lines  # with the tables of brokers' own topics

        lines["kafka"], of_blocks = kafka_lines.of_objects(), kafka_lines.of_blocks()
    elif not (shown.schema_ids or asked.marks):
        of_blocks = _block_lines(settings, Values(shown.values), shown_columns)
    shown_columns = (*shown_columns, *(SCHEMA_IDS if shown.schema_ids else ()))
    view = View(
        schema=DOCUMENT.schema,
        columns=(*shown_columns, *(STATE if asked.marks else ())),
        layout=layouts.table,
        lines=lines,
        row_types=row_types(records=shown.records),
    )
    return view, of_blocks


def _check_schema_ids(asked: _DumpRequest) -> None:
    """Raise UsageError for options that --schema-ids does not go with."""
    form = asked.settings.format
    if asked.selectors.count or form in ("kafka", "parquet", *dump_export.FORMATS):
        other = "--count" if asked.selectors.count else f"--format {form}"
        raise UsageError(f"use only one of --schema-ids and {other}")
    if not asked.shown.records:
        raise UsageError("--schema-ids requires --records, or an option that selects records")


def _count_view(*, verbose: bool) -> View:
    """Return the view of the counts; a table leaves out partitions without one unless `verbose`."""

    def layout(obj: Object) -> Columns | str | None:
        if obj["type"] == "count":
            return _COUNT_TABLE if obj["records"] or verbose else None
        if obj["type"] == "total":
            partitions = text.count(obj["partitions"], "partition")
            return f"{text.count(obj['records'], 'record')} in {partitions}"
        if obj["reason"] == "unreadable":
            return None
        return text.escape(f"!! {obj['reason']}: {output.describe_error(obj)}")

    return View(
        schema=DOCUMENT.schema,
        columns=_COUNT_ROWS,
        layout=layout,
        row_types=frozenset({"count", "total"}),
    )


def _block_lines(settings: OutputSettings, values: Values, chosen: Columns) -> BlockLines | None:
    """Return the maker of lines from blocks; None if single objects are printed instead."""
    if not _rendering.COMPILED or settings.fields:
        return None  # single objects are faster then, or have other fields
    form = settings.format
    if form in ("json", "ndjson"):
        return BlockLines(values, document=form == "json")
    # Of a meta.properties before a log, a column has the name of one of records and is not it.
    taken = {column.title: column for column in RECORD_CSV}
    if settings.csv_safe:
        return None  # the compiled loop writes cells as they are
    if form in ("csv", "tsv") and all(
        taken.get(column.title, column) is column for column in chosen if column.title == "key"
    ):
        delimiter = "," if form == "csv" else "\t"
        return BlockLines(values, chosen, delimiter, escaped=settings.escapes_cells)
    return None


class DumpPrinter(Printer[Object | Block | memoryview]):
    """Prints objects and the lines of blocks, and in the end what was read."""

    def __init__(self, report: Report, job: Dump, asked: _DumpRequest) -> None:
        self._report = report
        self._job = job
        self._values = Values(asked.shown.values)
        self._looked_for = asked.selectors.any_given
        self._raw = report.settings.format in report.view.lines
        self._units = dump_notes.Units() if report.settings.format == "table" else None
        self.schemas: SchemaIds | None = None
        """Set if schema ids are wanted."""

    def show(self, item: Object | Block | memoryview) -> None:
        """Print an object, or the lines of many."""
        if isinstance(item, memoryview):
            self._report.lines(item)
        elif isinstance(item, Block):
            raise TypeError("an unexpected block of a dump")
        else:
            if self._units:
                self._units.note(item)
            shown = item if self._raw else show_record(item, self._values)
            if self.schemas and item["type"] == "record":
                shown = self.schemas.named(item, shown)
            self._report.item(shown)

    def finish(self) -> None:
        """Print the schema ids of each topic, if they are wanted."""
        for use in self.schemas.uses() if self.schemas else ():
            self._report.item(DOCUMENT.row(use))
        for found in self._job.missing.found if self._job.missing else ():
            self._report.item(DOCUMENT.row(found))

    def last_lines(self) -> Iterator[Line]:
        """Yield the notes on unknown content, and the summary of the dump."""
        yield from self._units.lines() if self._units else ()
        yield from dump_notes.last_lines(self._report, self._job, looked_for=self._looked_for)


class CountPrinter(Printer[Object | PartitionCount | TotalCount]):
    """Prints counts, and in the end what was read."""

    def __init__(self, report: Report, job: Dump) -> None:
        self._report = report
        self._job = job

    def show(self, item: Object | PartitionCount | TotalCount) -> None:
        """Print a count, or an error in its place."""
        self._report.item(item if isinstance(item, dict) else DOCUMENT.row(item))

    def last_lines(self) -> Iterator[Line]:
        """Yield the notes on unknown content, and the summary of the dump."""
        return dump_notes.last_lines(self._report, self._job)


def _write(report: Report, job: Dump, table: "ParquetFile", asked: _DumpRequest) -> Exit:
    """Write a file of columns; return the exit status.

    The file must learn of every exception while the report is open, so as to leave nothing.
    """
    job.in_blocks = True
    with report, table.open():
        for item in job:
            if isinstance(item, UnreadableError):
                report.unreadable(item)
            elif isinstance(item, Block):
                table.block(item)
            else:
                report.item(item)
        if job.summary.has_no_partition:
            asked.inputs.require()  # so that no empty table is left
    for line, style in dump_notes.last_lines(report, job, looked_for=asked.selectors.any_given):
        report.note(line, style)
    return report.exit_status()


def _parquet_file(target: Path, paths: Sequence[Path], *, records: bool) -> "ParquetFile":
    """Return the file to write; end the command where it cannot or must not be written."""
    # What Arrow writes with has pools of its own, which cost a tenth of the time in page faults. It
    # asks for their kind once, when it is imported.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    try:
        from logtool.commands.printing import dump_parquet
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        output.error("--format parquet needs pyarrow: pip install 'kafka-logtool[parquet]'")
        raise typer.Exit(Exit.USAGE) from error
    if reason := dump_parquet.refusal(target, paths):
        raise RefusedError(f"--output: {reason}; nothing was written")
    return dump_parquet.ParquetFile(target, records=records)
