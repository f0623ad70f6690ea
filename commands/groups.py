"""``logtool groups``: groups, their members and committed offsets."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.coordinator_options import (
    LOCAL_BROKER,
    BootstrapServer,
    now_option,
)
from logtool.commands.program.spread import Without, spread
from logtool.errors import UsageError
from logtool.findings import Severity

GroupGlobs = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="GLOB", help="Take only the groups that match; repeatable."),
]
History = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="GROUP",
        help="Print what happened to one group, record by record in the order of the log.",
    ),
]
Sizes = Annotated[
    bool,
    typer.Option(
        "--sizes",
        help="Print what each group takes up in the topic, the largest first, and how much of it "
        "newer records have superseded.",
    ),
]
RestorePlan = Annotated[
    bool,
    typer.Option(
        "--restore-plan",
        help="Print the commands of Kafka that commit the offsets again, one for each group.",
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


@spread
def groups(
    *,
    inputs: options.AnyInputs,
    group: GroupGlobs = None,
    history: History = None,
    sizes: Sizes = False,
    restore_plan: RestorePlan = False,
    offsets_retention: Retention = "7d",
    now: Annotated[str | None, now_option("What has expired is counted")] = None,
    bootstrap_server: BootstrapServer = LOCAL_BROKER,
    fail_on: options.FailOn = Severity.WARNING,
    running: Annotated[options.Running, Without("jobs")],
    printing: options.Printing,
) -> None:
    """Show groups, their members, committed offsets and lag as __consumer_offsets has them.

    Reads the partitions of __consumer_offsets in log dirs of one cluster, or its partition dirs,
    and replays them as their coordinator does: the last commit of a partition counts, a tombstone
    removes it, and a commit in a transaction counts once the transaction is committed. Lag is
    counted to the log end and to the last stable offset of the partitions that lie in the same log
    dirs. --topic, --exclude-topic and --partition choose among the partitions that offsets are
    committed for.
    Of a share group it shows the offset at which it begins in each partition, by the partitions of
    __share_group_state in the same log dirs: its lag is what is behind that, less what was
    delivered and is done.

    Of several copies of a partition, the one with the newest leader epoch, and then with the larger
    log end, is taken. Findings are offsets that the log does not have any more, or not yet again;
    offsets that were committed for a deleted topic, and that its successor of the same name would
    get; records that cannot be read, and those that are missing below the high watermark. An offset
    expires after --offsets-retention: counted from when a classic group became empty, from its
    commit in all other groups, and not at all while a member subscribes to its topic. A member is
    named where the log tells who owned the partition when its offset was committed.
    --restore-plan leaves out offsets of deleted topics. Its commands need groups without members.
    Of Redpanda, too, lag is counted in Kafka offsets, where the files tell them.

    Examples:
      logtool groups --group 'billing-*' --json /mnt/broker-1 /mnt/broker-2
      logtool groups --restore-plan --bootstrap-server b1:9092 data > restore.sh
      logtool groups --history billing --format csv data

    Exit status:
      0    complete: nothing found at or above --fail-on
      1    complete: something found at or above it
      2
      4    incomplete: some input could not be read, or no such topic or group is there
      6
      130

    """
    from logtool.commands.views.groups import run

    if sum((history is not None, sizes, restore_plan)) > 1:
        raise UsageError("--history, --sizes and --restore-plan are answers of their own: give one")
    status = run(
        inputs, running, printing,
        groups=tuple(group or ()), history=history, sizes=sizes, restore_plan=restore_plan,
        retention=offsets_retention, now=now, bootstrap=bootstrap_server, fail_on=fail_on,
    )  # fmt: skip
    raise typer.Exit(status)
