"""``logtool groups``: groups, their members and committed offsets."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.coordinator_options import (
    ANY_BROKER,
    BootstrapServer,
    now_option,
)
from logtool.commands.program.spread import Without, spread
from logtool.errors import UsageError
from logtool.findings import Severity
from logtool.lazy_dataclass import dataclass

GroupGlobs = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="GLOB", help="Select only the groups that match; repeatable."),
]
History = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="GROUP",
        help="Print the records of one group in the order of the log.",
    ),
]
Sizes = Annotated[
    bool,
    typer.Option(
        "--sizes",
        help="Print the bytes of each group in the topic, the largest first, and how much of"
        " it newer records replaced.",
    ),
]
RestorePlan = Annotated[
    bool,
    typer.Option(
        "--restore-plan",
        help="Print the Kafka commands that commit the offsets again, one for each group.",
    ),
]
Removed = Annotated[
    bool,
    typer.Option(
        "--removed",
        help="With --restore-plan: only print commands that commit removed offsets again.",
    ),
]
Retention = Annotated[
    str,
    typer.Option(
        "--offsets-retention",
        metavar="TIME",
        help="offsets.retention.minutes of the broker, as a time such as 12h or 30d.",
        show_default=True,
    ),
]


At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="Show the state at TIME, by the timestamps of the records: a time as for --now.",
    ),
]


@dataclass(frozen=True, slots=True)
class Restoring:
    """Options of the commands that commit offsets again."""

    restore_plan: RestorePlan = False
    removed: Removed = False
    bootstrap_server: BootstrapServer = ANY_BROKER


@spread
def groups(
    *,
    inputs: options.AnyInputs,
    group: GroupGlobs = None,
    history: History = None,
    sizes: Sizes = False,
    restoring: Restoring,
    offsets_retention: Retention = "7d",
    at: At = None,
    now: Annotated[str | None, now_option("Compute expiry")] = None,
    fail_on: options.FailOn = Severity.WARNING,
    running: Annotated[options.Running, Without("jobs")],
    printing: options.Printing,
) -> None:
    """Show groups, members, committed offsets and lag from __consumer_offsets.

    logtool reads the partitions of __consumer_offsets in log dirs of one cluster, and replays them
    as the group coordinator does: the last commit of a partition counts, a tombstone removes it,
    and a commit in a transaction counts when the transaction is committed. --topic, --exclude-topic
    and --partition select partitions by the topics for which offsets were committed.

    Lag is the distance to the log end and to the last stable offset of partitions in the same log
    dirs. Findings are: committed offsets that are not in the log any more, or beyond its end;
    offsets committed for a deleted topic that a new topic of the same name would receive; a leader
    epoch of a commit that the log or the cluster does not have; partitions of the topic that are
    absent; records in a partition that the coordinator of the group does not read; records that
    cannot be read; records that are missing below the high watermark; and a batch at the log end
    of which only a part was written.

    Examples:
      logtool groups --group 'billing-*' --json /mnt/broker-1 /mnt/broker-2
      logtool groups --restore-plan --bootstrap-server b1:9092 data > restore.sh
      logtool groups --at 2026-11-22T10:30:00Z --restore-plan data > restore.sh
      logtool groups --restore-plan --removed --group reports data
      logtool groups --history billing --format csv data

    Copies, expiry and members:

    If a partition has several copies, logtool reads the copy with the newest leader epoch, then
    with the highest log end offset. An offset expires after --offsets-retention: in a classic
    group, counted from the moment when the group became empty; in all other groups, from its
    commit. It does not expire while a member subscribes to its topic. If all offsets of a group
    expired or were deleted, its last offsets are shown as long as the log has them. If the newest
    record for a partition is a commit in an aborted transaction, a line says so. A member is shown
    if the log contains the member that owned the partition at the commit.

    A coordinator reads a group only in the partition that the hash of its name and the number of
    partitions name. Records of the group in other partitions are a finding.

    Lost records:

    A partition has lost records if it is damaged, or ends below its high watermark, its recovery
    point or a producer snapshot. The newest records of any group there may be among them: such
    groups and offsets are marked, and may be older than they were. A group whose records are all
    lost is not shown: for a --group without records, the command names the partition that its
    coordinator reads.

    History:

    --history marks each commit that sets a partition back to a lower offset than the one that
    counted before. At the end of a transaction, it names the records of the commits in it: after
    an abort, they never count.

    The state at a moment:

    --at replays the records before the first one with a later timestamp, tombstones and ends of
    transactions included, and computes expiry at that moment. Start and end of partitions, lag and
    topics are those of today, so that findings show which of the offsets can be restored. If
    records from before the moment were compacted away, a finding says so: a commit that was
    replaced later may be missing.

    Share groups:

    For a share group, the command shows the start offset in each partition, from the partitions of
    __share_group_state in the same log dirs. The lag is the number of records from that offset on,
    without records that were already processed. Delivery goes on at the next offset: the records
    between the two are acknowledged or archived, that is rejected, or delivered as often as the
    group allows. --history also prints the last state of all records of which the log has it.

    Restoring offsets:

    --restore-plan leaves out offsets of deleted topics, and names the groups that have committed
    metadata with offsets: Kafka's tool cannot set it. It also names offsets that are outside of
    the log today: Kafka's tool sets them to the log end or the log start. Kafka runs the printed
    commands only for groups without members.

    Comments precede the commands for groups that may have committed newer offsets, as records are
    lost. The start offsets of a share group are left out; comments have the commands that set them
    to the next offset, one by one, for a person to choose from: the states of the records from
    there on are lost then.

    Removed offsets, which expired or were deleted, are left out, and a comment counts them.
    --restore-plan --removed prints only commands that commit the last offset of each such partition
    again: committed offsets do not change. The log has removed offsets until it is compacted.

    With --at, a partition for which no offset was committed at the moment keeps the offset that it
    has today: a comment names it, with the command that removes it. Other comments name partitions
    that a command sets back: the group reads these records again.

    Redpanda:

    The lag is counted in Kafka offsets if the files contain them.

    AutoMQ:

    With a bucket and the log dir of its metadata log as PATH, the command reads
    __consumer_offsets and the ends of the partitions as they are after the recovery of the WAL.

    Tiered storage:

    With the prefix of its objects and the log dirs of the cluster as PATH, the remote segments of a
    partition are part of its log; see 'logtool dump --help'.

    Exit status:
      0    complete: nothing found at or above --fail-on
      1    findings at or above --fail-on
      2
      4    ...; or the topic or the group does not exist
      6
      130

    """
    from logtool.commands.views.groups import run

    if sum((history is not None, sizes, restoring.restore_plan)) > 1:
        raise UsageError("use only one of --history, --sizes and --restore-plan")
    if at is not None and (history is not None or now is not None):
        raise UsageError("--at cannot be combined with --history or --now")
    if restoring.removed and (not restoring.restore_plan or at is not None):
        raise UsageError("--removed needs --restore-plan, and cannot be combined with --at")
    status = run(
        inputs, running, printing,
        groups=tuple(group or ()), history=history, sizes=sizes,
        restore_plan=restoring.restore_plan, removed=restoring.removed,
        bootstrap=restoring.bootstrap_server, retention=offsets_retention, now=now, at=at,
        fail_on=fail_on,
    )  # fmt: skip
    raise typer.Exit(status)
