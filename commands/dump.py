"""``logtool dump``: print what the files of a data directory hold. Writes nothing."""

from typing import Annotated

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

    Examples:
      logtool dump --records --offset 4711..4800 data/orders-0
      logtool dump --format ndjson data/orders-0/*.log | jq -c 'select(.type == "batch")'
      logtool dump --format kafka --records data/orders-0/00000000000000000000.log

    Exit status:
      0    everything was printed
      1    something is damaged; what could be read was printed
      2    the command line makes no sense
      4    some input could not be read
      130  interrupted

    """
    from logtool.commands import dump_views, kafka_text, output
    from logtool.commands.output import Report, View
    from logtool.data_dir import Selection
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
    job = Dump(
        options.all_paths(paths, files_from, null),
        Filter(
            EVERYTHING if offset is None else parse_offsets(offset),
            EVERYTHING if timestamp is None else parse_timestamps(timestamp),
            producer,
            records,
        ),
        Selection(tuple(topic or ()), tuple(exclude_topic or ()), tuple(partition or ())),
        limit,
    )
    layouts = dump_views.Layouts(records=records)
    view = View(
        SCHEMA,
        layouts.delimited(job.kinds()),
        layouts.table,
        {"kafka": kafka_text.render_safely if output.is_terminal() else kafka_text.render},
        dump_views.row_types(records=records),
    )
    raw = settings.format == "kafka"
    block_lines = dump_views.block_lines(settings.format, Values(values), view.columns)
    job.in_blocks = block_lines is not None
    with Report(settings, view, job.summary) as report:
        job.on_progress = report.show_progress
        for item in job:
            if isinstance(item, Exception):
                report.unreadable(item)
            elif isinstance(item, Block):
                for lines in block_lines(item) if block_lines else ():
                    report.lines(lines)
            else:
                report.item(item if raw else show_record(item, Values(values)))
    dump_views.conclude(report)
    raise typer.Exit(report.exit_status())
