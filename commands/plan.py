"""``logtool plan``: what a broker does at its next start. Writes nothing."""

from enum import StrEnum
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import start_options
from logtool.commands.program.recovery_options import RecoveryOptions
from logtool.commands.program.spread import spread
from logtool.lazy_dataclass import dataclass


class RecoveryPolicy(StrEnum):
    """Parts of a log that are recovered after a kill; see `logtool.startup.policies`."""

    LAST_SEGMENT = "last-segment"
    RECOVERY_POINT = "recovery-point"


Threads = Annotated[
    int | None,
    typer.Option(
        "--recovery-threads",
        metavar="N",
        min=1,
        help="num.recovery.threads.per.data.dir of the broker; by default that of "
        "--broker-config, else 1.",
    ),
]
ReadRate = Annotated[
    str | None,
    typer.Option(
        "--read-rate",
        metavar="SIZE",
        help="How many bytes a thread of the broker reads in a second, such as 200M; by default "
        "measured, as a range.",
    ),
]


Policies = Annotated[
    list[RecoveryPolicy] | None,
    typer.Option(
        "--policy",
        help="Say what recovery after a kill reads by this policy, how long it takes, and what it "
        "misses; repeatable, to have them side by side. last-segment: the last one of each log, as "
        "up to Kafka 0.8.0; recovery-point: from the recovery point on, as today.",
    ),
]


@dataclass(frozen=True, slots=True)
class Timing:
    """Options for timing a start: the host, and the policies of recovery to compare."""

    recovery_threads: Threads = None
    read_rate: ReadRate = None
    limits: start_options.LimitsOption = None
    policy: Policies = None


@spread
def plan(
    *,
    inputs: options.AnyLocalInputs,
    broker: start_options.StartingBroker,
    timing: Timing,
    strategy: RecoveryOptions,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Say what a broker will do to log dirs or partition dirs at its next start, and how long.

    Loads each log as a broker loads it, but in memory: nothing on the disk changes. Says which
    files are deleted, renamed, read again or cut (with the byte, the offset, the records that are
    lost, and whether they were acknowledged), which indexes are rebuilt, which bad indexes the
    broker does not notice, and what stops the start. A partition dir is judged by the checkpoints
    of the log dir that holds it.

    Log dirs given together are those of one broker. The metadata log in one of them says which
    partitions are stray and which settings the topics have. A meta.properties that does not fit the
    others, a partition in two log dirs (if one is damaged, its repair from the other is proposed),
    or a copy on its way is judged as the start judges it. The last lines say what is not known.

    The time is a range, with one thread for each log: from reading at the fastest rate measured
    here to the slowest, or that of the disk where logs came from the page cache, with the least and
    the most that brokers spent on a batch. It names the ten slowest; -v prints all that changes.

    A segment that a truncation removed and a crash brought back is named, with what a broker serves
    of it; where leader epochs do not decide between segments, that is said.

    What lies below the recovery point is read by no start, and not here: one line says how much
    that is, and which command reads it. What the logs need of the host is held against its limits.
    With --strategy supplement, or --trust-log too, it foretells 'logtool recover' with the same.
    Of Redpanda it says what a start replays, cuts or gives up as .cannotrecover, by source alone.
    With --policy, a table compares today's recovery with that before KAFKA-615: what is read and
    what is not, the time (at least that of logs in the page cache), and the damage that is missed.

    Examples:
      logtool plan /var/lib/kafka/data
      logtool plan --policy last-segment --policy recovery-point /var/lib/kafka/data
      logtool plan --kafka-version 3.9 --recovery-threads 4 /data1/kafka /data2/kafka
      logtool plan --broker-config /etc/kafka/server.properties
      logtool plan --json /var/lib/kafka/data | jq '.items[] | select(.lost_records > 0)'

    Exit status:
      0    complete: nothing is lost, nothing stops the start
      1    complete: a log is cut, does not load or is put aside, a log dir goes offline, no start,
           a file is ignored, a bad index goes unnoticed, segments overlap, or limits are too low
      2
      4
      6
      130

    """
    from logtool.commands.views.plan import run

    status = run(
        inputs, broker, strategy, running, printing,
        threads=timing.recovery_threads, read_rate=timing.read_rate, limits=timing.limits,
        policies=[str(one) for one in timing.policy or ()],
    )  # fmt: skip
    raise typer.Exit(status)
