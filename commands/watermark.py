"""``logtool watermark``: how far the replicas of each partition have come. Writes nothing."""

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.commands.options import (
    AsJson,
    Color,
    ColorOption,
    ExcludeTopics,
    FailOn,
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
from logtool.findings import Severity

if TYPE_CHECKING:
    from logtool.watermark import Place

Dirs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DIR",
        help="Log dirs, each of one broker, or partition dirs; ID=DIR says whose it is.",
        show_default=False,
    ),
]
Leader = Annotated[
    int | None,
    typer.Option(
        "--leader", metavar="ID",
        help="Judge as if this broker led; by default who led last, else the furthest in sync.",
    ),
]  # fmt: skip


class RuleChoice(StrEnum):
    """By what followers cut their logs; see `logtool.replication.TruncationRule`."""

    SCENARIO = "scenario"
    HIGH_WATERMARK = "high-watermark"
    LEADER_EPOCH = "leader-epoch"


ScenarioArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO", help="A TOML file, or the name of one that comes along.",
        show_default=False,
    ),
]  # fmt: skip
Rule = Annotated[
    RuleChoice,
    typer.Option(
        "--truncation", help="By what a follower cuts its log; by default as the scenario says.",
    ),
]  # fmt: skip
_WITH_NODE = re.compile(r"([0-9]+)=(.+)", re.DOTALL)


def watermark(
    dirs: Dirs = None,
    files_from: FilesFrom = None,
    null: Null = False,
    topic: Topics = None,
    exclude_topic: ExcludeTopics = None,
    partition: Partitions = None,
    leader: Leader = None,
    kafka_version: options.OneKafkaVersion = options.NEWEST_KAFKA,
    fail_on: FailOn = Severity.WARNING,
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
    """Show high watermark, log end and leader epoch of replicas, and what a new leader would cost.

    Each replica is loaded as its broker would load it, on a picture of its directory. High
    watermark, last stable offset and log end are exclusive: a high watermark of 8 means that
    offsets 0 to 7 are committed and 8 is not, a log end of 15 that 14 is the last record. The high
    watermark is that of replication-offset-checkpoint, which lags behind that of the broker by
    some seconds; uncommitted_records lie from it to the log end.

    Given the dirs of several brokers, the replicas of a partition are held against each other: the
    least log end of those in sync, which is what the high watermark would come to; who is furthest
    (newest leader epoch, then log end); and where each other replica would be cut if one led, by
    its high watermark as before Kafka 0.11, and by leader epochs as since then. acknowledged_lost
    counts the committed offsets of a follower that the leader lacks. Who is in sync is taken from
    the metadata log with the highest offset among the dirs, and what all of them have counts as
    committed, however old the checkpoints are; without a metadata log all are in sync, and only
    checkpoints count. Where fewer are in sync than the metadata log has as min.insync.replicas, the
    high watermark stays as checkpointed. may_be_lost counts what may have been acknowledged and
    the leader lacks, where another one was in sync and was not given. other_topic names those whose
    topic id is not that of the metadata log, or of most: the topic was deleted and made anew, and
    they are no part of the rest.

    'logtool watermark simulate' plays how these offsets move. (A directory of that name is given as
    ./simulate.)

    Examples:
      logtool watermark /var/lib/kafka/data
      logtool watermark 1=/mnt/a/data 2=/mnt/b/data 3=/mnt/c/data --topic orders
      logtool watermark --leader 3 -f markdown /mnt/*/kafka

    Exit status:
      0    complete: no acknowledged record goes, nothing found at or above --fail-on
      1    complete: acknowledged records go or may go, a replica does not load or is of another
           topic, or there are findings
      2    the command line makes no sense
      4    incomplete: some input could not be read, or nothing matched
      6    --max-duration ran out; nothing said of the rest
      130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)

    """
    from logtool.commands import watermark_views
    from logtool.commands.output import Report
    from logtool.data_dir import Inputs
    from logtool.errors import UnreadableError
    from logtool.findings import Finding
    from logtool.forecast import Settings
    from logtool.plan import Action
    from logtool.replica import Replica
    from logtool.watermark import Watermarks
    from logtool.workers import Pace, available_cpus

    settings = options.settings(
        format, as_json, color, quiet=quiet, verbose=verbose, progress=progress
    )
    places = [_place(path) for path in options.local_paths(dirs, files_from, null)]
    inputs = Inputs(
        [place.path for place in places], options.selection(topic, exclude_topic, partition)
    )
    job = Watermarks(
        places,
        Settings(options.parse_kafka_version(kafka_version)),
        selection=inputs.selection,
        leader=leader,
        jobs=jobs or available_cpus(),
        pace=Pace.starting_now(
            options.parse_size("--max-rate", max_rate) if max_rate else None,
            options.parse_duration("--max-duration", max_duration) if max_duration else None,
        ),
        on_progress=lambda done, total, path: report.show_progress(done, total, path),
    )
    report = Report(settings, watermark_views.of_replicas(), job.summary, inputs)
    printer = watermark_views.Printer(report)
    with report:
        for item in job:
            if isinstance(item, UnreadableError):
                report.unreadable(item)
            elif isinstance(item, Action):
                report.note(f"{item.path}: {item.reason}", "warning")
            elif isinstance(item, Replica | Finding):
                printer.show(item.as_json())
            else:
                printer.group(item)
        printer.finish()
    for line in printer.last_lines():
        report.note(line, "warning" if job.summary.to_do else "good")
    raise typer.Exit(report.exit_status(fail_on))


def simulate(
    scenario: ScenarioArgument,
    truncation: Rule = RuleChoice.SCENARIO,
    format: FormatOption = Format.TABLE,
    as_json: AsJson = False,
    color: ColorOption = Color.AUTO,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Play a scenario of replication, and show log ends and high watermarks after every event.

    Three scenarios come along: walk-through (one record, two rounds of fetching), kip-101-loss and
    kip-101-divergence (what goes wrong where followers cut their logs by high watermark). Others
    are written in TOML: replicas, leader and events must be there, the settings before them need
    not.

      truncation = "leader-epoch"  # or "high-watermark"
      replica_lag_time_max_ms = 30000
      min_insync_replicas = 1
      checkpoint_high_watermarks = true
      replicas = [1, 2, 3]
      leader = 1
      events = [
        { produce = ["m0", "m1"] },
        { fetch = 2 },
        { fetch = 2, most = 1 },
        { fetch = 2, response = "lost" },
        { wait = 30001 },
        { checkpoint = 2 },
        { crash = 1, unflushed = 1 },
        { notice = 1 },
        { restart = 1 },
        { elect = 3, unclean = true },
      ]

    High watermark and log end are exclusive. remote_log_end_offset is what the leader knows of a
    follower: the offset of its last fetch. looked_at says on which of the four occasions the leader
    looked whether its high watermark may rise: it became leader, the replicas in sync shrank, a
    produce, a fetch. After 'crash' the leader stays in place until 'notice' or 'elect'.

    Examples:
      logtool watermark simulate walk-through
      logtool watermark simulate kip-101-loss --truncation leader-epoch
      logtool watermark simulate my.toml -f csv

    Exit status:
      0    all committed records are there, and no follower differs from its leader
      1    committed records are lost, or logs differ
      2    the command line or the scenario makes no sense
      130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)

    """
    from logtool.commands import watermark_views
    from logtool.commands.output import Report
    from logtool.replication import TruncationRule
    from logtool.scenario import play, read, verdict
    from logtool.summary import ActionSummary

    settings = options.settings(format, as_json, color, quiet=quiet, verbose=verbose)
    chosen = read(scenario)
    rule = None if truncation is RuleChoice.SCENARIO else TruncationRule(truncation)
    # Played before anything is printed: a scenario that makes no sense is wrong usage.
    states = []
    for step in play(chosen, rule):
        states += list(step.states())
    outcome = verdict(step.replicas)
    summary = ActionSummary(to_do=bool(outcome["lost_offsets"] or outcome["diverged"]))
    report = Report(settings, watermark_views.of_states(), summary)
    if verbose:
        report.note(f"{chosen.title}\n{chosen.about}")
    with report:
        for obj in (*states, outcome):
            report.item(obj)
    report.note(watermark_views.outcome(outcome), "warning" if summary.to_do else "good")
    raise typer.Exit(report.exit_status())


def _place(given: Path) -> "Place":
    """Return the node id and the path of ``ID=DIR``; a path that exists is one as it is."""
    from logtool.watermark import Place

    found = _WITH_NODE.fullmatch(str(given))
    if not found or given.exists():
        return Place(given)
    return Place(Path(found.group(2)), int(found.group(1)))
