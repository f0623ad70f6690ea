"""``logtool watermark``: how far the replicas of each partition have come. Writes nothing."""

from enum import StrEnum
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import start_options
from logtool.commands.program.spread import spread
from logtool.findings import Severity
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ReplicaDirs(options.AnyLocalInputs):
    """Arguments for the directories to read: DIR in place of PATH."""

    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR...",
            help="Log dirs, each of one broker, or partition dirs; ID=DIR says whose it is.",
            show_default=False,
        ),
    ] = None


Leader = Annotated[
    int | None,
    typer.Option(
        "--leader",
        metavar="ID",
        help="Judge as if this broker led; by default who led last, else the furthest in sync.",
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
        help="A TOML file, or the name of one that comes along.",
        show_default=False,
    ),
]
Rule = Annotated[
    RuleChoice,
    typer.Option(
        "--truncation",
        help="By what a follower cuts its log; by default as the scenario says.",
    ),
]


@spread
def watermark(
    *,
    inputs: ReplicaDirs,
    leader: Leader = None,
    kafka_version: start_options.OneKafkaVersion = start_options.NEWEST_KAFKA,
    fail_on: options.FailOn = Severity.WARNING,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Show high watermark, log end and leader epoch of replicas, and what a new leader would cost.

    Loads each replica as its broker would load it, but in memory: nothing on the disk changes. High
    watermark, last stable offset and log end are exclusive: a high watermark of 8 means that
    offsets 0 through 7 are committed and 8 is not, and a log end of 15 means that 14 is the last
    offset. The high watermark is that of replication-offset-checkpoint, which lags behind that of
    the broker by some seconds; uncommitted_records counts what lies between it and the log end.

    Given the dirs of several brokers, it compares the replicas of a partition: the least log end of
    those in sync, to which the high watermark would rise (expected_high_watermark); which replica
    is furthest (newest leader epoch, then log end); and where each other replica would be cut if
    one led, by its high watermark as before Kafka 0.11, and by leader epochs as since then.
    acknowledged_lost counts the committed offsets of a follower that the leader lacks. Who is in
    sync is taken from the metadata log with the highest offset among the dirs, and what all of them
    have counts as committed, however old the checkpoints are; without a metadata log all are in
    sync, and only checkpoints count. Where fewer are in sync than the metadata log has as
    min.insync.replicas, the high watermark stays as checkpointed. may_be_lost counts offsets which
    the leader lacks and which may have been acknowledged, if another replica was in sync and was
    not given. other_topic names replicas whose topic id is not that of the metadata log, or of most
    replicas: the topic was deleted and created again; these replicas are not compared. A choice
    says whether a replica may be elected clean (in sync or in the ELR), and what it costs. Redpanda
    keeps no high watermark: there, what a majority of the given replicas has counts as committed.

    'logtool watermark simulate' plays how these offsets move. (A directory of that name is given as
    ./simulate.)

    Examples:
      logtool watermark /var/lib/kafka/data
      logtool watermark 1=/mnt/a/data 2=/mnt/b/data 3=/mnt/c/data --topic orders
      logtool watermark --leader 3 -f markdown /mnt/*/kafka

    Exit status:
      0    complete: no acknowledged record is lost, nothing found at or above --fail-on
      1    complete: acknowledged records are or may be lost, a replica does not load or belongs to
           another topic, or there are findings
      2
      4
      6
      130

    """
    from logtool.commands.views.watermark import run

    status = run(
        inputs, running, printing, kafka_version=kafka_version, leader=leader, fail_on=fail_on
    )
    raise typer.Exit(status)


Steps = Annotated[
    bool,
    typer.Option(
        "--steps",
        help="Show what is done for each produce and fetch, one thing after the other.",
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
    """Play a scenario of replication, and show log ends and high watermarks after every event.

    These scenarios come along: walk-through (one record, two rounds of fetching),
    bounds-are-exclusive, four-occasions, caught-up-not-in-sync, transactions, acks, acks-1-loss,
    and kip-101-loss and kip-101-divergence (what goes wrong where followers cut their logs by high
    watermark). Others are written in TOML: only replicas, leader and events must be there.

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

    Offsets that are bounds are exclusive. remote_log_end_offset is what the leader knows of a
    follower: the offset of its last fetch. looked_at says on which of the four occasions the leader
    looked whether its high watermark may rise: it became leader, the replicas in sync shrank, a
    produce, a fetch. With --steps, the lines before these say in which order it came to that.
    read_uncommitted and read_committed are what consumers get, up to the high watermark and to the
    last stable offset. answers says what producers are told: with acks=1 once the leader has the
    records, with acks=all once its high watermark has passed them. After 'crash' the leader stays
    in place until 'notice' or 'elect'.

    Examples:
      logtool watermark simulate walk-through --steps
      logtool watermark simulate kip-101-loss --truncation leader-epoch
      logtool watermark simulate my.toml -f csv

    Exit status:
      0    all committed records are there, and no follower differs from its leader
      1    committed or acknowledged records are lost, or logs differ
      2    the command line or the scenario makes no sense
      130

    """
    from logtool.commands.views.watermark_simulate import run

    rule = None if truncation is RuleChoice.SCENARIO else str(truncation)
    raise typer.Exit(run(printing, scenario=scenario, rule=rule, steps=steps))
