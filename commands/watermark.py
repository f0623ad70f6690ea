"""``logtool watermark``: progress of the replicas of each partition. Writes nothing."""

from enum import StrEnum
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import check_options, start_options
from logtool.commands.program.case_paths import TakesCases
from logtool.commands.program.spread import spread
from logtool.findings import Severity
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ReplicaDirs(TakesCases, options.AnyLocalInputs):
    """Arguments for the directories to read: DIR in place of PATH."""

    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR...",
            help="Log dirs, each of one broker, or partition dirs. ID=DIR sets the node id.",
            show_default=False,
        ),
    ] = None


Leader = Annotated[
    int | None,
    typer.Option(
        "--leader",
        metavar="ID",
        help="Assume this broker as leader. Default: the last leader, otherwise the furthest"
        " in-sync replica.",
    ),
]


class RuleChoice(StrEnum):
    """The rule by which followers cut their logs; see `TruncationRule` of the simulation."""

    SCENARIO = "scenario"
    HIGH_WATERMARK = "high-watermark"
    LEADER_EPOCH = "leader-epoch"


ScenarioArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help="TOML file, or the name of a built-in scenario.",
        show_default=False,
    ),
]
Rule = Annotated[
    RuleChoice,
    typer.Option(
        "--truncation",
        help="Rule by which followers truncate their logs. Default: the rule in the scenario.",
    ),
]


@spread
def watermark(
    *,
    inputs: ReplicaDirs,
    leader: Leader = None,
    kafka_version: start_options.OneKafkaVersion = start_options.NEWEST_KAFKA,
    fail_on: options.FailOn = Severity.WARNING,
    metrics_file: check_options.MetricsFile = None,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Show high watermarks and log ends, and what a new leader would lose.

    logtool loads each replica as its broker would load it, but in memory; it changes nothing on the
    disk. High watermark, last stable offset and log end offset are exclusive: a high watermark of 8
    means that offsets 0 through 7 are committed and 8 is not, and a log end offset of 15 means that
    14 is the last offset. The high watermark comes from replication-offset-checkpoint, which is
    some seconds behind the high watermark of a running broker. uncommitted_records is the number of
    offsets between high watermark and log end offset.

    Given the log dirs of several brokers, the command compares the replicas of each partition:
    which replica is furthest, where each replica would be truncated if another one became leader,
    and how many committed records would be lost.

    Examples:
      logtool watermark /var/lib/kafka/data
      logtool watermark 1=/mnt/a/data 2=/mnt/b/data 3=/mnt/c/data --topic orders
      logtool watermark --leader 3 -f markdown /mnt/*/kafka

    Losses of a replica:

      acknowledged_gone  offsets below the checkpointed high watermark that its log no longer has
      lost_records       sound records that the broker cuts when it loads the log

    Comparing replicas:

      expected_high_watermark  lowest log end offset of the in-sync replicas, to which the high
                               watermark would rise
      furthest                 the replica with the newest leader epoch, then with the highest log
                               end offset
      not_given                replicas in the metadata log of which no copy was given; a result
                               without them rests on the given copies alone
      truncation               offsets at which each replica would be cut: by high watermark (before
                               Kafka 0.11), and by leader epoch (since 0.11)
      acknowledged_lost        offsets that the leader does not have, below the highest offset that
                               any log or checkpoint shows as acknowledged
      nowhere                  those that no given copy has: they are lost with every leader
      may_be_lost              further offsets that the leader does not have and that may have been
                               acknowledged: a replica that was not given was in sync, or the copies
                               are of different moments
      other_topic              replicas with another topic id than the metadata log, or than most
                               replicas: the topic was deleted and created again. They are not
                               compared
      choice                   whether a replica can be elected cleanly (in the ISR or in the ELR),
                               and what its election would lose

    In-sync replicas:

    The metadata log with the highest offset among the DIRs decides which replicas are in sync.
    Offsets that all in-sync replicas have count as committed, even if the checkpoints are older.
    Without a metadata log, all replicas count as in sync, and only checkpoints decide which offsets
    are committed. If fewer replicas are in sync than min.insync.replicas in the metadata log, the
    high watermark stays at its checkpoint.

    Simulation:

    'logtool watermark simulate' shows step by step how these offsets move. (For a directory with
    the name simulate, write ./simulate.)

    Redpanda:

    Redpanda stores no high watermark. For Redpanda, offsets that a majority of the given replicas
    has count as committed.

    Exit status:
      0    complete: no acknowledged record is lost, and nothing found at or above --fail-on
      1    acknowledged records are or may be lost, a replica does not load or belongs to
           another topic, or there are findings
      2
      4
      5    refused: --metrics-file names a file in a log dir
      6
      130

    """
    from logtool.commands.views.watermark import run

    status = run(
        inputs,
        running,
        printing,
        kafka_version=kafka_version,
        leader=leader,
        fail_on=fail_on,
        metrics_file=metrics_file,
    )
    raise typer.Exit(status)


Steps = Annotated[
    bool,
    typer.Option(
        "--steps",
        help="Show the steps of each produce and fetch in their order.",
    ),
]


@spread
def simulate(
    *,
    scenario: ScenarioArgument,
    truncation: Rule = RuleChoice.SCENARIO,
    steps: Steps = False,
    printing: options.StillPrinting,
) -> None:
    """Simulate replication, and show log ends and high watermarks.

    SCENARIO is one of the built-in scenarios or a TOML file with replicas, a leader and events.
    After every event, the command prints the state of each replica. With --steps, it also prints
    the steps of each produce and fetch in their order.

    Offsets are exclusive. Built-in scenarios are walk-through (one record, two rounds of fetching),
    bounds-are-exclusive, four-occasions, caught-up-not-in-sync, transactions, acks, acks-1-loss,
    and kip-101-loss and kip-101-divergence (the errors that happen when followers truncate their
    logs by high watermark).

    Examples:
      logtool watermark simulate walk-through --steps
      logtool watermark simulate kip-101-loss --truncation leader-epoch
      logtool watermark simulate my.toml -f csv

    Scenario files:

      truncation = "leader-epoch"  # or "high-watermark"
      replica_lag_time_max_ms = 30000
      min_insync_replicas = 1
      checkpoint_high_watermarks = true
      replicas = [1, 2, 3]
      leader = 1
      start = [
        { replica = 1, log_end_offset = 15, high_watermark = 8 },
        { replica = 2, log_end_offset = 9, high_watermark = 8, remote_log_end_offset = 8 },
      ]
      events = [
        { produce = ["m0", "m1"], acks = "all" },
        { produce = ["m2"], transaction = "t" },
        { commit = "t" },  # or abort
        { fetch = 2, most = 1 },
        { fetch = 2, response = "lost" },
        { wait = 30001 },
        { checkpoint = 2 },
        { crash = 1, unflushed = 1 },
        { notice = 1 },
        { restart = 1 },
        { elect = 3, unclean = true },
      ]

    Only replicas, leader and events are required. After 'crash', the crashed leader stays the
    leader until 'notice' or 'elect'.

    Columns:

      remote_log_end_offset  the follower's log end offset as the leader knows it: the offset of the
                             last fetch
      looked_at              the occasion on which the leader checked whether its high watermark can
                             rise: it became leader, the ISR shrank, a produce, or a fetch
      read_uncommitted       the records that such a consumer receives, up to the high watermark
      read_committed         the records that such a consumer receives, up to the last stable offset
      answers                the responses to producers: with acks=1 when the leader has the
                             records, with acks=all when its high watermark has passed them

    Exit status:
      0    all committed records exist, and no follower differs from its leader
      1    committed or acknowledged records are lost, or logs differ
      2    usage error, or the scenario is not valid
      130

    """
    from logtool.commands.views.watermark_simulate import run

    rule = None if truncation is RuleChoice.SCENARIO else str(truncation)
    raise typer.Exit(run(printing, scenario=scenario, rule=rule, steps=steps))
