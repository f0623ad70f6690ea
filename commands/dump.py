"""``logtool dump``: print what the files of a data directory hold. Writes nothing."""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.commands.program import parsing
from logtool.commands.program.record_selectors import Selectors
from logtool.commands.program.spread import Without, spread
from logtool.errors import UsageError
from logtool.exits import Exit
from logtool.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from logtool.commands.output import OutputSettings, Report, View
    from logtool.commands.printing.dump_parquet import ParquetFile
    from logtool.commands.printing.writers import Object
    from logtool.dump.log import Filter
    from logtool.dump.selecting import Content
    from logtool.dump.stream import Dump
    from logtool.errors import UnreadableError
    from logtool.log.inputs import GivenPaths


class DumpFormat(StrEnum):
    """As `Format`, the lines of Kafka's own tool, a file of columns, and lines for producers."""

    _ignore_ = "members each"
    members = vars()
    for each in options.Format:
        members[each.name] = each.value
    KAFKA = "kafka"
    PARQUET = "parquet"
    KCAT = "kcat"
    CONSOLE_PRODUCER = "console-producer"


EXPORTS = (DumpFormat.KCAT, DumpFormat.CONSOLE_PRODUCER)
"""Formats for a producer."""
_AS_TABLE = DumpFormat(options.Format.TABLE)


class ValuesChoice(StrEnum):
    """How bytes of a log are printed; see `logtool.dump.values.Values`."""

    UTF8 = "utf8"
    HEX = "hex"
    BASE64 = "base64"
    LEN = "len"


class Decoding(StrEnum):
    """Whether records of brokers' own topics are taken apart."""

    AUTO = "auto"
    NONE = "none"


FormatOption = Annotated[
    DumpFormat,
    typer.Option(
        "-f",
        "--format",
        help="Format of standard output; kafka prints the lines of kafka-dump-log.sh, parquet "
        "writes --output and prints nothing, kcat and console-producer print records for these "
        "tools to produce again.",
        show_default=True,
    ),
]


@dataclass(frozen=True, slots=True)
class Shown:
    """What of the files is printed, and how their bytes look."""

    records: Annotated[bool, typer.Option("--records", help="Print the records in each batch.")] = (
        False
    )
    values: Annotated[
        ValuesChoice,
        typer.Option(
            "--values",
            help="How keys, values and headers are printed; utf8 falls back to base64 where bytes "
            "are not UTF-8, len prints sizes alone.",
        ),
    ] = ValuesChoice.UTF8
    decode: Annotated[
        Decoding,
        typer.Option(
            "--decode",
            help="Whether records of brokers' own topics, such as __consumer_offsets, are printed "
            "as the fields they hold (auto), or as bytes. With --values they are bytes, too.",
        ),
    ] = Decoding.AUTO
    secrets: Annotated[
        bool,
        typer.Option(
            "--show-secrets",
            help="Print passwords, SCRAM keys and ids of delegation tokens, too.",
        ),
    ] = False
    offset: Annotated[
        str | None,
        typer.Option(
            "--offset",
            metavar="A..B",
            help="Print only offsets A through B; either may be left out.",
        ),
    ] = None
    timestamp: Annotated[
        str | None,
        typer.Option(
            "--timestamp",
            metavar="A..B",
            help="Print only timestamps A through B: milliseconds, a time such as "
            "2026-11-22T10:30:00Z (UTC without a zone), a date for its whole day, -2h (also s, m, "
            "d, w), now, today or yesterday.",
        ),
    ] = None
    producer: Annotated[
        int | None,
        typer.Option("--producer", metavar="ID", help="Print only what producer ID wrote."),
    ] = None
    max_batch_memory: options.MaxBatchMemory = options.MAX_BATCH_MEMORY
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="N",
            min=1,
            help="Stop after N batches, records and entries; after N records where records are "
            "looked for by what they hold.",
        ),
    ] = None

    def filter(self, content: "Content") -> "tuple[Filter, str | None]":
        """Return what of a log is meant, and what to say of its times where they were not plain.

        UsageError for a range that is none.
        """
        from logtool.dump.log import Filter
        from logtool.dump.values import EVERYTHING, parse_offsets, parse_timestamps

        timestamps, told = EVERYTHING, None
        if self.timestamp is not None:
            timestamps, told = parse_timestamps(self.timestamp, parsing.now_ms())
        chosen = Filter(
            offsets=EVERYTHING if self.offset is None else parse_offsets(self.offset),
            timestamps=timestamps,
            producer_id=self.producer,
            records=self.records,
            content=content,
            max_batch_memory=parsing.parse_batch_memory(self.max_batch_memory),
            decode=self.decode is Decoding.AUTO and self.values is ValuesChoice.UTF8,
            secrets=self.secrets,
        )
        return chosen, told


Output = Annotated[
    str | None,
    typer.Option(
        "--output", metavar="FILE", help="The file that --format parquet writes; must not exist."
    ),
]


@spread
def dump(
    *,
    inputs: options.AnyInputs,
    shown: Shown,
    selectors: Selectors,
    format: FormatOption = _AS_TABLE,
    output_file: Output = None,
    printing: Annotated[options.Printing, Without("format")],
) -> None:
    """Print what the files of a data directory hold, record by record where they hold records.

    Takes logs (also .deleted, .cleaned and .swap), KRaft snapshots, the three kinds of index,
    producer snapshots, offset checkpoints, leader epochs, partition.metadata, meta.properties,
    quorum-state and the marker of a clean shutdown. It prints all files of a directory in order;
    with --records or a filter, only its logs.

    Of Redpanda it takes segments and base indexes, by name or in a directory; with --records or a
    filter it prints records of data, with Raft's offsets. Kafka offsets of batches are known in the
    namespace kafka, from offset 0 or Raft's snapshot on and not behind damage.

    Where a log is damaged the dump says so, and goes on at the next batch that is provably sound.

    Records of __consumer_offsets, __transaction_state, __share_group_state, __remote_log_metadata
    and __cluster_metadata are printed as the fields they hold: a key or value has `json` in place
    of `utf8`. --decode none prints bytes. Passwords, SCRAM keys and ids of delegation tokens are
    left out, or replaced by stars where bytes are printed, unless --show-secrets is given.

    Records are found by --key, --value, --header, --grep and --json-path in all partitions of the
    given paths, compressed or not; control records are no such records. --count tells how many
    there are.

    'logtool kafka-dump-log' takes the command line of kafka-dump-log.sh. Of --format kafka, too,
    the lines are those of Kafka 4.3, whatever release wrote the log.

    --format parquet writes one table to --output: batches, or with --records records. Its columns
    are the fields of ndjson; keys, values and headers are binary, times are timestamps in UTC
    beside their milliseconds. It needs pip install 'kafka-logtool[parquet]'.

    --format kcat and --format console-producer print records as kcat -P or
    kafka-console-producer.sh takes them in, and say on stderr with which options. They look at all
    records first, and print none where one would be produced wrongly. Timestamps are not kept; the
    guide logtool-recipes shows how to produce records again with all that they have.

    Examples:
      logtool dump --records --offset 4711..4800 data/orders-0
      logtool dump --topic orders --key customer-17 --timestamp yesterday.. data
      logtool dump --topic orders --json-path '$.order.state=failed' --count data
      logtool dump --format ndjson data/orders-0/*.log | jq -c 'select(.type == "batch")'
      logtool dump --format kafka --records data/orders-0/00000000000000000000.log

    Exit status:
      0    everything was printed
      1    something is damaged; what could be read was printed
      2
      4    some input could not be read, or a batch is beyond --max-batch-memory, or nothing matched
      5    --output exists or lies in what is dumped, or a record cannot be said in the format;
           nothing was written
      130

    """
    settings = printing.settings(format)
    if (settings.format == "parquet") != (output_file is not None):
        raise UsageError("--format parquet and --output FILE need each other")
    content = selectors.content()
    if selectors.count or selectors.any_given or settings.format in EXPORTS:
        shown = replace(shown, records=True)
    chosen, told = shown.filter(content)
    if selectors.count or settings.format in (*EXPORTS, "parquet"):
        chosen = replace(chosen, decode=False)  # these take bytes
    _run(_Asked(settings, inputs.resolved(), shown, selectors, chosen, told), output_file)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a command line asks for."""

    settings: "OutputSettings"
    inputs: "GivenPaths"
    shown: Shown
    selectors: Selectors
    chosen: "Filter"
    told: str | None
    """What is to be said of the times."""

    @property
    def is_export(self) -> bool:
        """Return whether the records are for a producer."""
        return self.settings.format in EXPORTS

    def job(self) -> "Dump":
        """Return a dump that has not begun."""
        from logtool.dump.stream import Dump

        return Dump(
            paths=self.inputs.paths,
            chosen=self.chosen,
            selection=self.inputs.selection,
            limit=self.shown.limit,
            limits_records=self.is_export or self.selectors.any_given,
            flavour=self.inputs.flavour,
        )


def _run(asked: _Asked, output_file: str | None) -> None:
    from logtool.commands.output import Report
    from logtool.commands.views import dump

    job, table = asked.job(), None
    form = asked.settings.format
    formless = form == DumpFormat.PARQUET and not asked.shown.records
    if (form == DumpFormat.KAFKA or formless) and job.has_redpanda():
        raise UsageError(f"--format {form} has no form for the files of Redpanda")
    if output_file is not None:
        target = options.local_path(output_file)
        table = _parquet_file(target, asked.inputs.paths, records=asked.shown.records)
    view = _view(job, asked, table)
    report = Report(settings=asked.settings, view=view, summary=job.summary, inputs=asked.inputs)
    if asked.told:
        report.note(asked.told, "dim")
    if asked.selectors.count:
        _count(report, job)
    elif asked.is_export:
        _export(report, asked.job(), job)
    else:
        _print(report, job, asked.shown, table, asked.inputs)
    for line in dump.unknown_notes(job.unknown, job.unknown_tags):
        report.note(line)
    looked_for = asked.selectors.any_given and not asked.selectors.count
    dump.conclude(report, job.matched if looked_for else None)
    raise typer.Exit(report.exit_status())


def _view(job: "Dump", asked: _Asked, table: "ParquetFile | None") -> "View":
    from logtool.commands import output
    from logtool.commands.output import View
    from logtool.commands.views import dump

    settings, shown = asked.settings, asked.shown
    if asked.selectors.count:
        if settings.format not in list(options.Format):
            raise UsageError(f"--count and --format {settings.format} contradict each other")
        if shown.limit is not None:
            raise UsageError("--count and --limit contradict each other")
        from logtool.commands.views import dump_count

        return dump_count.make(verbose=settings.verbose)
    layouts = dump.Layouts(records=shown.records)
    lines: dict[str, Callable[[Object], str | None]] = {}
    if settings.format == "kafka":
        from logtool.commands.printing import kafka_text

        lines["kafka"] = kafka_text.render_safely if output.is_terminal() else kafka_text.render
    elif asked.is_export:
        from logtool.commands.views import dump_export

        lines = dict.fromkeys(EXPORTS, dump_export.render)
    if table:
        lines["parquet"] = table.item
    return View(
        schema=dump.SCHEMA,
        columns=layouts.delimited(job.kinds()),
        layout=layouts.table,
        lines=lines,
        row_types=dump.row_types(records=shown.records),
    )


def _export(report: "Report", first: "Dump", job: "Dump") -> None:
    """Print the records of `job` for a producer, after a look at the same ones in `first`."""
    from logtool.commands.views import dump_export

    export = None
    with report:
        first.progress.on_progress = job.progress.on_progress = report.show
        export = dump_export.looked_at(report.settings.format, first)
        dump_export.print_all(report, job, export)
    for line in dump_export.notes(export) if export else ():
        report.note(line)


def _count(report: "Report", job: "Dump") -> None:
    from logtool.commands.views.dump_tables import DOCUMENT
    from logtool.dump.counting import Count

    job.in_blocks = True
    with report:
        job.progress.on_progress = report.show
        for item in Count(job):
            if isinstance(item, Exception):
                report.unreadable(item)
            else:
                report.item(item if isinstance(item, dict) else DOCUMENT.row(item))


def _print(
    report: "Report", job: "Dump", shown: Shown, table: "ParquetFile | None", given: "GivenPaths"
) -> None:
    """Print what is dumped as it is read, in blocks of many objects where the format lets us."""
    from logtool.commands.views import dump
    from logtool.dump.blocks import Block
    from logtool.dump.values import Values, show_record

    values, chosen = Values(shown.values), report.settings.format
    columns, safe = report.view.columns, report.settings.csv_safe
    lines = None if table else dump.block_lines(chosen, values, columns, csv_safe=safe)
    job.in_blocks = bool(table or lines)
    raw = chosen in report.view.lines
    with report, table.open() if table else closing(lines) if lines else nullcontext():
        job.progress.on_progress = report.show
        items: Iterable[Object | Block | memoryview | UnreadableError]
        items = lines.among(job) if lines else job
        for item in items:
            if isinstance(item, Exception):
                report.unreadable(item)
            elif isinstance(item, memoryview):
                report.lines(item)
            elif isinstance(item, Block):
                assert table
                table.block(item)
            else:
                report.item(item if raw else show_record(item, values))
        if table and job.summary.has_no_partition:
            given.require()  # so that no empty table is left


def _parquet_file(target: Path, paths: Sequence[Path], *, records: bool) -> "ParquetFile":
    """Return the file to write, or end the command where it cannot or must not be written."""
    from logtool.commands import output

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
        output.error(f"--output: {reason}; nothing was written")
        raise typer.Exit(Exit.REFUSED)
    return dump_parquet.ParquetFile(target, records=records)
