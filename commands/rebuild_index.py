"""``logtool rebuild-index``: indexes and producer snapshots, built anew from the logs."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from logtool import shell
from logtool.commands import options
from logtool.commands.options import (
    AsJson,
    Color,
    ColorOption,
    ExcludeTopics,
    FilesFrom,
    Format,
    FormatOption,
    Jobs,
    LocalPaths,
    MaxDuration,
    MaxRate,
    Null,
    Partitions,
    Progress,
    Quiet,
    Topics,
    Verbose,
)
from logtool.errors import UsageError


class KindChoice(StrEnum):
    """What can be built; see `logtool.rebuild.KINDS`."""

    OFFSET = "offset"
    TIME = "time"
    TRANSACTION = "transaction"
    SNAPSHOT = "snapshot"


Kinds = Annotated[
    list[KindChoice] | None,
    typer.Option(
        "--kind", help="Build only these: .index, .timeindex, .txnindex, .snapshot; repeatable."
    ),
]
OnlyBad = Annotated[
    bool,
    typer.Option(
        "--only-bad/--all",
        help="What 'logtool verify' would warn of and what is missing, or all that recovery would "
        "write otherwise.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", metavar="DIR", parser=options.local_path,
        help="Write what is built into DIR, a folder for each partition, and nothing in place.",
    ),
]  # fmt: skip


def rebuild_index(
    paths: LocalPaths = None,
    files_from: FilesFrom = None,
    null: Null = False,
    topic: Topics = None,
    exclude_topic: ExcludeTopics = None,
    partition: Partitions = None,
    kind: Kinds = None,
    only_bad: OnlyBad = True,
    index_interval_bytes: options.IndexInterval = None,
    index_size_max_bytes: options.IndexSize = None,
    apply: options.Apply = False,
    undo_dir: options.UndoDir = None,
    output: Output = None,
    jobs: Jobs = None,
    max_rate: MaxRate = None,
    max_duration: MaxDuration = None,
    format: FormatOption = Format.TABLE,
    as_json: AsJson = False,
    color: ColorOption = Color.AUTO,
    progress: Progress = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Build indexes and producer snapshots anew, byte by byte as a broker's recovery would.

    Takes log dirs, partition dirs, or single logs, indexes and snapshots; an index that is missing
    may be named too. Without --apply or --output nothing is written: what would be is printed.

    A log itself is never changed. Where it is damaged, an index reaches up to the damage, as it
    would after recovery, and the damage is told: 'logtool recover' is for that. Where damage hides
    which transactions were open, no transaction index and no snapshot is built behind it, up to
    the next snapshot that is sound.

    Producer snapshots are built that are bad, and those that are missing where a broker has them:
    at the base of the last two segments, and at the end of a log that was stopped in order. One
    that is bad and outside of the log is removed. A transaction index is made only where a
    transaction was aborted.

    With --apply, Kafka's own lock is held, what is replaced is kept in an undo directory beside
    the log dir, and what a kill interrupts, the same command finishes or 'logtool undo' puts back.

    Examples:
      logtool rebuild-index /var/lib/kafka/data
      logtool rebuild-index --apply --topic 'orders*' /var/lib/kafka/data
      logtool rebuild-index --all --kind time --apply /var/lib/kafka/data/orders-0
      logtool rebuild-index --output /tmp/new data/orders-0/00000000000000000000.log

    Exit status:
      0    with --apply or --output: done; without: nothing to do
      1    without them: there is something to do; with: something could not be built, or a log is
           damaged
      2    the command line makes no sense
      4    incomplete: nothing matched, or some input could not be read, or not be written
      5    refused: a broker holds the log dir, --output is in use or in a log dir, or files changed
           meanwhile
      6    --max-duration ran out; nothing of the log dir at hand was changed
      130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)

    """
    from logtool.commands import rebuild_view
    from logtool.commands.output import Report
    from logtool.data_dir import Inputs
    from logtool.rebuild import KINDS, Consent, Indexing, Rebuild, Wanted
    from logtool.schedule import Budget
    from logtool.summary import ActionSummary
    from logtool.workers import Pace, available_cpus

    settings = options.settings(
        format, as_json, color, quiet=quiet, verbose=verbose, progress=progress
    )
    if output and (apply or undo_dir):
        raise UsageError("--output writes elsewhere, --apply and --undo-dir are for in place")
    summary = ActionSummary()
    inputs = Inputs(
        options.local_paths(paths, files_from, null),
        options.selection(topic, exclude_topic, partition),
    )
    report = Report(settings, rebuild_view.make(settings), summary, inputs)
    job = Rebuild(
        inputs.paths,
        Wanted(frozenset(KINDS[one] for one in kind or KINDS), not only_bad),
        Consent(apply, undo_dir, output, shell.join(["logtool", *sys.argv[1:]])),
        inputs.selection,
        Indexing(index_interval_bytes, index_size_max_bytes),
        Budget(
            jobs or available_cpus(),
            Pace.starting_now(
                options.parse_size("--max-rate", max_rate) if max_rate else None,
                options.parse_duration("--max-duration", max_duration) if max_duration else None,
            ),
        ),
        report.show_progress,
        summary,
    )
    raise typer.Exit(rebuild_view.run(job, report, summary))
