"""``logtool dump-index``: print indexes, with what they point at. Writes nothing."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.options import (
    AsJson,
    Color,
    ColorOption,
    ExcludeTopics,
    FilesFrom,
    Format,
    FormatOption,
    Null,
    Partitions,
    Paths,
    Progress,
    Quiet,
    Topics,
    Verbose,
)

SCHEMA = "logtool.dump-index/1"

JoinLog = Annotated[
    bool,
    typer.Option(
        "--join-log",
        help="Read the log too and show the batch that each entry points at, and whether the "
        "entry is right.",
    ),
]


def dump_index(
    paths: Paths = None,
    files_from: FilesFrom = None,
    null: Null = False,
    topic: Topics = None,
    exclude_topic: ExcludeTopics = None,
    partition: Partitions = None,
    join_log: JoinLog = False,
    format: FormatOption = Format.TABLE,
    as_json: AsJson = False,
    color: ColorOption = Color.AUTO,
    progress: Progress = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Print offset, time and transaction indexes of files, partition dirs or log dirs.

    With --join-log each entry stands beside the batch in the log that it points at, with a
    verdict: right; no-batch (none begins there, or none holds the offset); offset (a lookup would
    miss records); timestamp (the batch has another); later (an earlier record is younger);
    no-abort-marker; unknown (the log is damaged there). Right means that every lookup through the
    entry works, not that a broker would write the same index again.

    Examples:
      logtool dump-index data/orders-0/00000000000000000000.timeindex
      logtool dump-index --join-log data/orders-0
      logtool dump-index --join-log -f ndjson data | jq -c 'select(.verdict == "offset")'

    Exit status:
      0    everything was printed
      1    an index is damaged, or an entry is wrong
      2    the command line makes no sense
      4    some input could not be read, or nothing matched
      130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)

    """
    from logtool.commands import dump_views
    from logtool.commands.output import Report, View
    from logtool.data_dir import Inputs
    from logtool.dump.index import IndexDump
    from logtool.formats import names

    settings = options.settings(
        format, as_json, color, quiet=quiet, verbose=verbose, progress=progress
    )
    inputs = Inputs(
        options.all_paths(paths, files_from, null),
        options.selection(topic, exclude_topic, partition),
    )
    job = IndexDump(
        inputs.paths,
        inputs.selection,
        join_log,
    )
    layouts = dump_views.Layouts(joined=join_log)
    view = View(
        SCHEMA,
        layouts.delimited(names.INDEX_KINDS),
        layouts.table,
        row_types=dump_views.row_types(records=False),
    )
    with Report(settings, view, job.summary, inputs) as report:
        job.on_progress = report.show_progress
        for item in job:
            if isinstance(item, Exception):
                report.unreadable(item)
            else:
                report.item(item)
    dump_views.conclude(report)
    raise typer.Exit(report.exit_status())
