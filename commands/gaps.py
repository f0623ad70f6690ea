"""``logtool gaps``: every missing offset and why. Writes nothing but --output."""

from enum import StrEnum
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
    Paths,
    Progress,
    Quiet,
    Topics,
    Verbose,
)


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

    Examples:
      logtool gaps /var/lib/kafka/data
      logtool gaps -v --level records --topic 'changelog*' /var/lib/kafka/data
      logtool gaps --ghosts --format ndjson data/orders-0 | jq 'select(.type == "ghost")'

    Exit status:
      0    complete, and no gap that may mean loss
      1    complete, with gaps that may mean loss
      2    the command line makes no sense
      4    incomplete: some input could not be read
      6    --max-duration ran out; nothing said of the rest
      130  interrupted

    """
    from logtool.commands import gaps_view
    from logtool.commands.output import Report
    from logtool.data_dir import Selection
    from logtool.errors import UnreadableError
    from logtool.gaps import ghosts as ghosts_of
    from logtool.gaps import objects
    from logtool.gaps.run import Gaps, Wanted
    from logtool.summary import ActionSummary
    from logtool.workers import Pace, available_cpus

    settings = options.settings(
        format, as_json, color, quiet=quiet, verbose=verbose, progress=progress
    )
    summary = ActionSummary()
    report = Report(settings, gaps_view.make(settings), summary)
    job = Gaps(
        options.all_paths(paths, files_from, null),
        Wanted(
            level is LevelChoice.RECORDS,
            isolation is IsolationChoice.READ_COMMITTED,
            None if cleanup_policy is None else str(cleanup_policy),
        ),
        selection=Selection(tuple(topic or ()), tuple(exclude_topic or ()), tuple(partition or ())),
        jobs=jobs or available_cpus(),
        pace=Pace.starting_now(
            options.parse_size("--max-rate", max_rate) if max_rate else None,
            options.parse_duration("--max-duration", max_duration) if max_duration else None,
        ),
        on_progress=report.show_progress,
    )
    totals = objects.Totals()
    with report:
        for item in job:
            if isinstance(item, UnreadableError):
                summary.add(item)
                report.unreadable(item)
                continue
            found = ghosts_of.of(item.ledger, item.subject.facts)
            about = objects.partition_object(item, found)
            totals.add(about)
            report.item(about)
            for obj in objects.gap_objects(item, found):
                report.item(obj)
            for obj in objects.ghost_objects(item, found) if ghosts else ():
                report.item(obj)
            summary.partitions += 1
            summary.segments += item.segments
            summary.batches += item.ledger.batches
            summary.records += item.records
            summary.bytes += item.bytes
        summary.out_of_budget = job.out_of_time
        summary.to_do = totals.all["losses"] > 0
        for obj in totals.topics():
            report.item(obj)
    for line in gaps_view.last_lines(totals.all):
        report.note(line, "error" if summary.to_do else "good")
    raise typer.Exit(report.exit_status())
