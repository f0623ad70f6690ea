"""``logtool gaps``: every missing offset and why. Writes nothing but --output."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from logtool import files
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
    Paths,
    Progress,
    Quiet,
    Topics,
    Verbose,
)
from logtool.errors import UsageError


class LevelChoice(StrEnum):
    """How deep to look."""

    BATCHES = "batches"
    RECORDS = "records"


class IsolationChoice(StrEnum):
    """Whose view it is; the names are Kafka's."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class PolicyChoice(StrEnum):
    """What a topic is, or was, set to."""

    COMPACT = "compact"
    DELETE = "delete"


LevelOption = Annotated[
    LevelChoice,
    typer.Option(
        "--level",
        help="batches: of a batch that lost records, how many; records: decode it and say which.",
    ),
]
IsolationOption = Annotated[
    IsolationChoice,
    typer.Option(
        "--isolation",
        help="read_committed: list the offsets of markers and of aborted records too.",
    ),
]
PolicyOption = Annotated[
    PolicyChoice | None,
    typer.Option(
        "--cleanup-policy",
        help="What the topics are, or were, set to; by default as the metadata log in the log dir "
        "says.",
    ),
]
GhostsOption = Annotated[
    bool, typer.Option("--ghosts", help="Print the batches that would fill the gaps, one by one.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", metavar="FILE", parser=options.local_path,
        help="Write one partition with its gaps filled as a log of its own; must not exist.",
    ),
]  # fmt: skip
FollowerOption = Annotated[
    Path | None,
    typer.Option(
        "--follower", metavar="DIR", parser=files.path_of,
        help="Show what the replica in the partition dir DIR would be sent from PATH, and how it "
        "would number it without ghosts.",
    ),
]  # fmt: skip


def gaps(
    paths: Paths = None,
    files_from: FilesFrom = None,
    null: Null = False,
    topic: Topics = None,
    exclude_topic: ExcludeTopics = None,
    partition: Partitions = None,
    level: LevelOption = LevelChoice.BATCHES,
    isolation: IsolationOption = IsolationChoice.READ_UNCOMMITTED,
    cleanup_policy: PolicyOption = None,
    ghosts: GhostsOption = False,
    output: OutputOption = None,
    follower: FollowerOption = None,
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
    """List every missing offset of log dirs, partition dirs or logs, with the reason.

    From the log start to the log end, each offset is visible, a marker of a transaction
    ("control"), or missing: before the first batch, between batches or segments, or inside a batch
    whose records compaction removed. Reasons are compaction, retention (below the log start),
    segment-missing, truncation-hole, damage and unknown; the last four may mean loss. Whether a
    topic is compacted is told by the metadata log in the same log dir, the cleaner's checkpoint and
    what only the cleaner leaves in batches.

    The table shows each partition, and of its gaps those that may mean loss; -v shows all.

    Ghosts are the batches of [base, last] that would fill the gaps, as Redpanda's Raft recovery
    sends them: 61 bytes each, none behind the last batch. A ghost has the leader epoch that
    leader-epoch-checkpoint gives its offsets where that is sound, else that of the batch behind.

    --output writes the log of one partition with them as one segment that 'logtool verify' accepts
    and whose offsets have no gap; every real batch stays byte by byte as it is, and what is damaged
    is left out. Kafka has no type for ghosts: they are written as what its cleaner leaves of an
    emptied batch, a header with 0 records, here of no producer and no time, which every broker and
    client reads and steps over. FILE is called by its first offset, as a segment is.

    --follower tells what a replica that numbers batches as they arrive, as Redpanda's does, would
    make of the log. A Kafka follower keeps the leader's offsets and needs no ghosts.

    Examples:
      logtool gaps /var/lib/kafka/data
      logtool gaps -v --level records --topic 'changelog*' /var/lib/kafka/data
      logtool gaps --ghosts --format ndjson data/orders-0 | jq 'select(.type == "ghost")'
      logtool gaps --output /tmp/filled/00000000000000000000.log data/orders-0
      logtool gaps --follower /mnt/b/orders-0 /mnt/a/orders-0

    Exit status:
      0    complete, and no gap that may mean loss
      1    complete, with gaps that may mean loss
      2    the command line makes no sense
      4    incomplete: nothing matched, some input could not be read, or --output not be written
      5    refused: --output is there, lies among files of a broker, or would be no sound log
      6    --max-duration ran out; nothing said of the rest
      130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)

    """
    from logtool.commands import gaps_view
    from logtool.commands.output import Report
    from logtool.data_dir import Inputs
    from logtool.errors import UnreadableError
    from logtool.gaps import fill, objects
    from logtool.gaps import ghosts as ghosts_of
    from logtool.gaps.run import Gaps, Wanted
    from logtool.summary import ActionSummary
    from logtool.workers import Pace, available_cpus

    settings = options.settings(
        format, as_json, color, quiet=quiet, verbose=verbose, progress=progress
    )
    summary = ActionSummary()
    inputs = Inputs(
        options.all_paths(paths, files_from, null),
        options.selection(topic, exclude_topic, partition),
    )
    report = Report(settings, gaps_view.make(settings), summary, inputs)
    job = Gaps(
        inputs.paths,
        Wanted(
            level is LevelChoice.RECORDS,
            isolation is IsolationChoice.READ_COMMITTED,
            None if cleanup_policy is None else str(cleanup_policy),
        ),
        selection=inputs.selection,
        jobs=jobs or available_cpus(),
        pace=Pace.starting_now(
            options.parse_size("--max-rate", max_rate) if max_rate else None,
            options.parse_duration("--max-duration", max_duration) if max_duration else None,
        ),
        on_progress=report.show_progress,
    )
    if output:
        fill.check_target(output)
    totals = objects.Totals()
    brief = settings.format == "table" and not verbose
    with report:
        if (output or follower) and job.partitions > 1:
            raise UsageError(f"--output and --follower take one partition, not {job.partitions}")
        replica = job.log_end_of(follower) if follower else None
        for item in job:
            if isinstance(item, UnreadableError):
                summary.add(item)
                report.unreadable(item)
                continue
            found = ghosts_of.of(item.ledger, item.subject.facts)
            about = objects.partition_object(item, found)
            totals.add(about)
            report.item(about)
            for obj in objects.gap_objects(item, found, losses_only=brief):
                report.item(obj)
            for obj in objects.ghost_objects(item, found) if ghosts else ():
                report.item(obj)
            for obj in () if replica is None else objects.stretch_objects(item, found, replica):
                report.item(obj)
            if output:
                size = fill.write(item, found, output)
                report.note(gaps_view.written(output, size, about))
            summary.partitions += 1
            summary.segments += item.segments
            summary.batches += item.ledger.batches
            summary.records += item.records
            summary.bytes += item.bytes
        summary.out_of_budget = job.out_of_time
        summary.to_do = totals.all["losses"] > 0
        for obj in totals.topics():
            report.item(obj)
    for line in gaps_view.last_lines(totals.all, summary):
        report.note(line, "error" if summary.to_do else "good" if summary.complete else "warning")
    raise typer.Exit(report.exit_status())
