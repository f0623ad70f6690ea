"""``logtool diff``: the same partitions on several brokers. Writes nothing but ``--digest``."""

from pathlib import Path
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
    Jobs,
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

Sources = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DIR", show_default=False,
        help="A broker's log dir, a partition dir, or a file of --digest; ID=DIR names its node.",
    ),
]  # fmt: skip
DigestFile = Annotated[
    Path | None,
    typer.Option(
        "--digest", metavar="FILE", parser=options.local_path,
        help="Save what was scanned of the one DIR, to be compared elsewhere.",
    ),
]  # fmt: skip
Identical = Annotated[
    bool,
    typer.Option(
        "--identical",
        help="Anything but equal copies makes the exit status 1: also one that is shorter, "
        "compacted otherwise, or the only one.",
    ),
]


def diff(
    sources: Sources = None,
    files_from: FilesFrom = None,
    null: Null = False,
    topic: Topics = None,
    exclude_topic: ExcludeTopics = None,
    partition: Partitions = None,
    identical: Identical = False,
    digest: DigestFile = None,
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
    """Compare the copies of partitions on several brokers, batch by batch.

    Says where two copies diverge first (offset, leader epoch, CRC), which one is a superset, which
    are behind, what differs only as compaction at different times leaves it, where each copy is
    damaged and which other one has those offsets sound. A copy is called by its node id, from
    ID=DIR or meta.properties, else by its path. Partition dirs alone are copies of one partition,
    whatever they are called. Partitions that are the same everywhere are shown with -v.

    Two copies of which one is shorter do not contradict each other: the exit status is 0. Who asks
    whether a copy may be deleted takes --identical, with which all copies must have the same
    batches, log start, log end and leader epochs. Indexes and producer snapshots are compared by
    neither: a broker makes them from the log.

    A digest has offsets, epochs, CRCs, sizes and counts of batches, and no record; it is a zip of
    NumPy arrays. It must not lie in a log dir and is never overwritten.

    Examples:
      logtool diff /mnt/broker-1/data /mnt/broker-2/data /mnt/broker-3/data
      logtool diff 1=/mnt/a/orders-0 2=/mnt/b/orders-0
      logtool diff --identical /mnt/old/data /mnt/new/data && rm -r /mnt/old/data
      logtool diff --digest /tmp/broker-1.npz /var/lib/kafka/data
      logtool diff /tmp/broker-1.npz /tmp/broker-2.npz --json

    Exit status:
      0    complete: nothing diverged, nothing damaged; or the digest was saved
      1    complete: copies diverge, are damaged, or batches are missing; with --identical, copies
           differ in anything, or there is one only
      2    the command line makes no sense
      4    incomplete: some input could not be read, or nothing matched
      5    refused: --digest names a file that is there, or one in a log dir
      6    --max-duration ran out; nothing said of the rest, no digest saved
      130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)

    """
    from logtool.commands import diff_view
    from logtool.commands.output import Report
    from logtool.data_dir import Inputs
    from logtool.errors import UnreadableError
    from logtool.replicas import Comparison, parse_source
    from logtool.summary import ActionSummary
    from logtool.workers import Pace, available_cpus

    settings = options.settings(
        format, as_json, color, quiet=quiet, verbose=verbose, progress=progress
    )
    if identical and digest:
        raise UsageError("--identical compares copies, --digest saves the scan of one")
    summary = ActionSummary()
    given = options.all_texts(sources, files_from, null)
    inputs = Inputs(
        [parse_source(text)[1] for text in given],
        options.selection(topic, exclude_topic, partition),
        files_select=True,
    )
    report = Report(settings, diff_view.make(settings), summary, inputs)
    job = Comparison(
        given,
        selection=inputs.selection,
        jobs=jobs or available_cpus(),
        pace=Pace.starting_now(
            options.parse_size("--max-rate", max_rate) if max_rate else None,
            options.parse_duration("--max-duration", max_duration) if max_duration else None,
        ),
        save=digest,
        on_progress=report.show_progress,
    )
    printer = diff_view.Printer(report, summary, identical=identical)
    with report:
        for item in job:
            if isinstance(item, UnreadableError):
                printer.problem(item)
            else:
                printer.verdict(item)
        summary.out_of_budget = job.out_of_time
    printer.conclude(compared=digest is None)
    if digest and not job.out_of_time and not summary.interrupted:
        report.note(f"saved in {digest}", "good")
    raise typer.Exit(report.exit_status())
