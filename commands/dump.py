"""``logtool dump``: print what the files of a data directory hold. Writes nothing."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.commands.program import parsing
from logtool.commands.program.spread import Without, spread
from logtool.errors import UsageError
from logtool.exits import Exit

if TYPE_CHECKING:
    from logtool.commands.output import Report, View
    from logtool.commands.printing.dump_parquet import ParquetFile
    from logtool.disk.log_dir import Inputs
    from logtool.dump.log import Filter
    from logtool.dump.stream import Dump

SCHEMA = "logtool.dump/2"


class DumpFormat(StrEnum):
    """As `Format`, the lines of Kafka's own tool, and a file of columns."""

    _ignore_ = "members each"
    members = vars()
    for each in options.Format:
        members[each.name] = each.value
    KAFKA = "kafka"
    PARQUET = "parquet"


_AS_TABLE = DumpFormat(options.Format.TABLE)


class ValuesChoice(StrEnum):
    """How bytes of a log are printed; see `logtool.dump.values.Values`."""

    UTF8 = "utf8"
    HEX = "hex"
    BASE64 = "base64"
    LEN = "len"


FormatOption = Annotated[
    DumpFormat,
    typer.Option(
        "-f",
        "--format",
        help="Format of standard output; kafka prints the lines of kafka-dump-log.sh, parquet "
        "writes --output and prints nothing.",
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
            help="Print only timestamps A through B: milliseconds, or RFC 3339 with a time zone.",
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
            "--limit", metavar="N", min=1, help="Stop after N batches, records and entries."
        ),
    ] = None

    def filter(self) -> "Filter":
        """Return what of a log is meant; UsageError for a range that is none."""
        from logtool.dump.log import Filter
        from logtool.dump.values import EVERYTHING, parse_offsets, parse_timestamps

        return Filter(
            offsets=EVERYTHING if self.offset is None else parse_offsets(self.offset),
            timestamps=EVERYTHING if self.timestamp is None else parse_timestamps(self.timestamp),
            producer_id=self.producer,
            records=self.records,
            max_batch_memory=parsing.parse_batch_memory(self.max_batch_memory),
        )


Output = Annotated[
    str | None,
    typer.Option(
        "--output", metavar="FILE", help="The file that --format parquet writes; must not exist."
    ),
]


@spread
def dump(
    *,
    inputs: options.Inputs,
    shown: Shown,
    format: FormatOption = _AS_TABLE,
    output_file: Output = None,
    printing: Annotated[options.Printing, Without("format")],
) -> None:
    """Print what the files of a data directory hold, record by record where they hold records.

    Takes logs (also .deleted, .cleaned and .swap), KRaft snapshots, the three kinds of index,
    producer snapshots, offset checkpoints, leader epochs, partition.metadata, meta.properties,
    quorum-state and the marker of a clean shutdown. It prints all files of a directory in order;
    with --records or a filter, only its logs.

    Where a log is damaged the dump says so, and goes on at the next batch that is provably sound.

    --format parquet writes one table to --output: batches, or with --records records. Its columns
    are the fields of ndjson; keys, values and headers are binary, times are timestamps in UTC
    beside their milliseconds. It needs pip install 'kafka-logtool[parquet]'.

    Examples:
      logtool dump --records --offset 4711..4800 data/orders-0
      logtool dump --format ndjson data/orders-0/*.log | jq -c 'select(.type == "batch")'
      logtool dump --format kafka --records data/orders-0/00000000000000000000.log

    Exit status:
      0    everything was printed
      1    something is damaged; what could be read was printed
      2    the command line makes no sense
      4    some input could not be read, or a batch is beyond --max-batch-memory, or nothing matched
      5    --output exists or lies in what is dumped; nothing was written
      130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)

    """
    from logtool.commands.output import Report
    from logtool.commands.views import dump
    from logtool.dump.stream import Dump

    settings = printing.settings(format)
    if (settings.format == "parquet") != (output_file is not None):
        raise UsageError("--format parquet and --output FILE need each other")
    given = inputs.resolved()
    job = Dump(
        paths=given.paths,
        chosen=shown.filter(),
        selection=given.selection,
        limit=shown.limit,
    )
    table = None
    if output_file is not None:
        target = options.local_path(output_file)
        table = _parquet_file(target, given.paths, records=shown.records)
    report = Report(
        settings=settings, view=_view(job, shown, table), summary=job.summary, inputs=given
    )
    _print(report, job, shown, table, given)
    dump.conclude(report)
    raise typer.Exit(report.exit_status())


def _view(job: "Dump", shown: Shown, table: "ParquetFile | None") -> "View":
    from logtool.commands import output
    from logtool.commands.output import View
    from logtool.commands.printing import kafka_text
    from logtool.commands.views import dump

    layouts = dump.Layouts(records=shown.records)
    lines = {"kafka": kafka_text.render_safely if output.is_terminal() else kafka_text.render}
    if table:
        lines["parquet"] = table.item
    return View(
        schema=SCHEMA,
        columns=layouts.delimited(job.kinds()),
        layout=layouts.table,
        lines=lines,
        row_types=dump.row_types(records=shown.records),
    )


def _print(
    report: "Report", job: "Dump", shown: Shown, table: "ParquetFile | None", given: "Inputs"
) -> None:
    """Print what is dumped as it is read, in blocks of many objects where the format lets us."""
    from logtool.commands.views import dump
    from logtool.dump.blocks import Block
    from logtool.dump.values import Values, show_record

    values, chosen = Values(shown.values), report.settings.format
    columns, safe = report.view.columns, report.settings.csv_safe
    of_block = table.block if table else dump.block_lines(chosen, values, columns, csv_safe=safe)
    job.in_blocks = of_block is not None
    raw = chosen in report.view.lines
    with report, table.open() if table else nullcontext():
        job.progress.on_progress = report.show
        for item in job:
            if isinstance(item, Exception):
                report.unreadable(item)
            elif isinstance(item, Block):
                for content in of_block(item) if of_block else ():
                    report.lines(content)
            else:
                report.item(item if raw else show_record(item, values))
        if table and job.summary.has_no_partition:
            given.require()  # so that no empty table is left


def _parquet_file(target: Path, paths: Sequence[Path], *, records: bool) -> "ParquetFile":
    """Return the file to write, or end the command where it cannot or must not be written."""
    from logtool.commands import output

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
