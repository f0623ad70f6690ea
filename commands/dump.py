"""``logtool dump``: print what the files of a data directory hold. Writes nothing."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.commands.options import (
    AsJson,
    Color,
    ColorOption,
    DumpFormat,
    DumpFormatOption,
    ExcludeTopics,
    FilesFrom,
    Null,
    Partitions,
    Paths,
    Progress,
    Quiet,
    Topics,
    ValuesChoice,
    Verbose,
)
from logtool.errors import UsageError
from logtool.exits import Exit

if TYPE_CHECKING:
    from logtool.commands.dump_parquet import ParquetFile

SCHEMA = "logtool.dump/1"

Records = Annotated[bool, typer.Option("--records", help="Print the records in each batch.")]
ValuesOption = Annotated[
    ValuesChoice,
    typer.Option(
        "--values",
        help="How keys, values and headers are printed; utf8 falls back to base64 where bytes are "
        "not UTF-8, len prints sizes alone.",
    ),
]
Offset = Annotated[
    str | None,
    typer.Option(
        "--offset",
        metavar="A..B",
        help="Print only offsets A to B, both included; either may be left out.",
    ),
]
Timestamp = Annotated[
    str | None,
    typer.Option(
        "--timestamp",
        metavar="A..B",
        help="Print only timestamps A to B: milliseconds, or RFC 3339 with a time zone.",
    ),
]
Producer = Annotated[
    int | None,
    typer.Option("--producer", metavar="ID", help="Print only what producer ID wrote."),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=1, help="Stop after N batches, records and entries."),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", metavar="FILE", help="The file that --format parquet writes; must not exist."
    ),
]


def dump(
    paths: Paths = None,
    files_from: FilesFrom = None,
    null: Null = False,
    topic: Topics = None,
    exclude_topic: ExcludeTopics = None,
    partition: Partitions = None,
    records: Records = False,
    values: ValuesOption = ValuesChoice.UTF8,
    offset: Offset = None,
    timestamp: Timestamp = None,
    producer: Producer = None,
    limit: Limit = None,
    format: DumpFormatOption = DumpFormat.TABLE,
    output_file: Output = None,
    as_json: AsJson = False,
    color: ColorOption = Color.AUTO,
    progress: Progress = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Print what the files of a data directory hold, record by record where they hold records.

    Takes logs (also .deleted, .cleaned and .swap), KRaft snapshots, the three kinds of index,
    producer snapshots, offset checkpoints, leader epochs, partition.metadata, meta.properties,
    quorum-state and the marker of a clean shutdown. Of a directory it prints everything in order;
    with --records or a filter, its logs alone.

    Damage is printed in its place and the dump goes on behind it, at the next batch that is
    provably sound.

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
      4    some input could not be read, or nothing matched
      5    --output exists or lies in what is dumped; nothing was written
      130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)

    """
    from logtool.commands import dump_views, kafka_text, output
    from logtool.commands.output import Report, View
    from logtool.data_dir import Inputs
    from logtool.dump.blocks import Block
    from logtool.dump.log import Filter
    from logtool.dump.stream import Dump
    from logtool.dump.values import (
        EVERYTHING,
        Values,
        parse_offsets,
        parse_timestamps,
        show_record,
    )

    settings = options.settings(
        format, as_json, color, quiet=quiet, verbose=verbose, progress=progress
    )
    if (settings.format == "parquet") != (output_file is not None):
        raise UsageError("--format parquet and --output FILE need each other")
    inputs = Inputs(
        options.all_paths(paths, files_from, null),
        options.selection(topic, exclude_topic, partition),
    )
    job = Dump(
        inputs.paths,
        Filter(
            EVERYTHING if offset is None else parse_offsets(offset),
            EVERYTHING if timestamp is None else parse_timestamps(timestamp),
            producer,
            records,
        ),
        inputs.selection,
        limit,
    )
    layouts = dump_views.Layouts(records=records)
    lines = {"kafka": kafka_text.render_safely if output.is_terminal() else kafka_text.render}
    table = None
    if output_file is not None:
        table = _parquet_file(options.local_path(output_file), inputs.paths, records=records)
        lines["parquet"] = table.item
    view = View(
        SCHEMA,
        layouts.delimited(job.kinds()),
        layouts.table,
        lines,
        dump_views.row_types(records=records),
    )
    of_block = table.block if table else dump_views.block_lines(
        settings.format, Values(values), view.columns
    )  # fmt: skip
    job.in_blocks = of_block is not None
    raw = settings.format in view.lines
    report = Report(settings, view, job.summary, inputs)
    with report, table.open() if table else nullcontext():
        job.on_progress = report.show_progress
        for item in job:
            if isinstance(item, Exception):
                report.unreadable(item)
            elif isinstance(item, Block):
                for content in of_block(item) if of_block else ():
                    report.lines(content)
            else:
                report.item(item if raw else show_record(item, Values(values)))
        if table and job.summary.has_no_partition:
            inputs.require()  # so that no empty table is left
    dump_views.conclude(report)
    raise typer.Exit(report.exit_status())


def _parquet_file(target: Path, paths: Sequence[Path], *, records: bool) -> "ParquetFile":
    """Return the file to write, or end the command where it cannot or must not be written."""
    from logtool.commands import output

    try:
        from logtool.commands import dump_parquet
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        output.error("--format parquet needs pyarrow: pip install 'kafka-logtool[parquet]'")
        raise typer.Exit(Exit.USAGE) from error
    if reason := dump_parquet.refusal(target, paths):
        output.error(f"--output: {reason}; nothing was written")
        raise typer.Exit(Exit.REFUSED)
    return dump_parquet.ParquetFile(target, records=records)
