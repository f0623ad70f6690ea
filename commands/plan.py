"""``logtool plan``: prediction of a broker's next start. Writes nothing."""

from enum import StrEnum
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import check_options, start_options
from logtool.commands.program.bucket_inputs import BucketInputs
from logtool.commands.program.case_paths import TakesCases
from logtool.commands.program.recovery_options import RecoveryOptions
from logtool.commands.program.spread import spread
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PlanInputs(TakesCases, BucketInputs):
    """Inputs of `plan`, which also takes case files."""


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
        help="num.recovery.threads.per.data.dir of the broker. Default: the value in "
        "--broker-config, otherwise 1.",
    ),
]
ReadRate = Annotated[
    str | None,
    typer.Option(
        "--read-rate",
        metavar="SIZE",
        help="Bytes per second that one thread of the broker reads (for example 200M). "
        "Default: measured, as a range.",
    ),
]


Policies = Annotated[
    list[RecoveryPolicy] | None,
    typer.Option(
        "--policy",
        help="Show what recovery after a kill would read with this policy, how long it would"
        " take, and which damage it would miss; repeatable, to compare policies. "
        "last-segment: the last segment of each log, as up to Kafka 0.8.0; "
        "recovery-point: from the recovery point on, as today.",
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
    inputs: PlanInputs,
    broker: start_options.StartingBroker,
    timing: Timing,
    strategy: RecoveryOptions,
    running: options.Running,
    metrics_file: check_options.MetricsFile = None,
    printing: options.Printing,
) -> None:
    """Show what a broker will do at its next start, and how long it will take.

    logtool loads each log as a broker loads it, but in memory; it changes nothing on the disk. It
    shows which files the broker will delete, rename, read again or cut (with the byte, the offset,
    the lost records, and whether these were acknowledged), which indexes it will rebuild, which bad
    indexes and batches it will not notice, and what will stop the start. The last lines show what
    could not be determined, and the commands that fill or accept a loss, or mend what stops the
    start.

    Log dirs given together belong to one broker. The metadata log in one of them shows which
    partitions are stray and which settings the topics have. For a partition dir, logtool uses the
    checkpoints of the log dir that contains it.

    Examples:
      logtool plan /var/lib/kafka/data
      logtool plan --policy last-segment --policy recovery-point /var/lib/kafka/data
      logtool plan --kafka-version 3.9 --recovery-threads 4 /data1/kafka /data2/kafka
      logtool plan --kafka-version all /var/lib/kafka/data
      logtool plan --broker-config /etc/kafka/server.properties
      logtool plan --json /var/lib/kafka/data | jq '.items[] | select(.lost_records > 0)'

    Duration:

    The duration is a range. logtool copies memory for a tenth of a second, to compare this machine
    with the one on which starts of brokers were timed, and tries the disk where the logs came from
    the page cache. On a quiet machine nine of ten of these starts took from 0.7 to 2.0 times the
    usual time; if more processes want a processor than there are, the upper bound is up to twice as
    high. With --read-rate the bounds add the least and the most time that brokers were seen to
    spend on a batch. logtool assumes one thread for each log. It lists the ten slowest partitions;
    -v lists all changes. A liveness probe should wait twice the longest time, and a minute for the
    rest of the start.

    Several log dirs:

    logtool judges log dirs as the start does: a meta.properties that contradicts the others, a
    partition in two log dirs, a replica that is being moved between log dirs. If one of two copies
    of a partition is damaged, logtool proposes to repair it from the other.

    Segments and limits:

    If a truncation removed a segment and a crash restored the file, logtool reports the segment and
    what the broker will serve from it. If leader epochs cannot decide between two segments, logtool
    reports that. No start reads data below the recovery point, and this command does not read it
    either: one line shows its size and the command that checks it. logtool also compares the open
    files, memory maps and heap that the logs need with the limits of the host.

    After the start:

    For up to 5,000 partitions and with a metadata log, the last lines also show what the first
    round of retention deletes, and which partitions an open transaction keeps from compaction.

    Releases:

    With --kafka-version the command predicts an upgrade or a downgrade: it names the record of the
    metadata log that the release cannot read, and each level of a feature that it does not support.
    A release and a level are two things: Kafka 4.4 supports metadata.version 7 to 33. With
    --kafka-version all, a table shows every release: starts or refuses, and the first reason. The
    status is 1 if no release starts.

    Tiered storage:

    The log start of a tiered topic is the row in log-start-offset-checkpoint, below the first local
    segment. With -v the command names the offsets that are in remote storage alone, of which a
    start reads nothing, and a log without a local record: a follower takes leader epochs and
    producer snapshot from remote storage. A leader without a local record and without leader epochs
    begins a log of its own, and deletes the remote segments of the partition: this counts as lost.

    The command checks the indexes in remote-log-index-cache as the start does: with one that is
    damaged, or a file of another name, the broker does not start. Incomplete sets are deleted.

    Other ways of recovery:

    With --strategy supplement or --trust-log, the command shows what 'logtool recover' with these
    options would do. With --policy, a table compares recovery as it is today with recovery before
    KAFKA-615: the bytes read and not read, the duration (at least that of reading from the page
    cache), and the damage that recovery does not find.

    Redpanda:

    For a Redpanda directory, the command shows what a start replays, cuts, or renames to
    .cannotrecover. This knowledge comes from Redpanda's source code; logtool was not compared with
    a running Redpanda.

    AutoMQ:

    With a bucket and the log dir of its metadata log as PATH, the command shows what a node reads
    from its WAL after a crash, the end of each open stream before and after, and what it drops
    behind a gap. For each partition it shows the producer snapshot, the offset from which the log
    is replayed, the bytes of this replay and of a replay without checkpoints (AKIP-2), and the log
    start offset of a deletion of records that the crash undoes. A clean partition is not replayed.

    Exit status:
      0    complete: nothing is lost, and nothing stops the start
      1    a log is cut, does not load or is renamed; a log dir goes offline; the start
           fails; a file is ignored; damage is not noticed; segments overlap; or limits are too low;
           or a node of AutoMQ does not start or drops records of its WAL
      2
      4
      5    refused: --metrics-file names a file in a log dir
      6
      130

    """
    from logtool.commands.views.plan import run

    status = run(
        inputs, broker, strategy, running, printing,
        threads=timing.recovery_threads, read_rate=timing.read_rate, limits=timing.limits,
        policies=[str(one) for one in timing.policy or ()], metrics_file=metrics_file,
    )  # fmt: skip
    raise typer.Exit(status)
