"""``logtool txns``: producers, transactions, what pins the last stable offset. Writes nothing."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.coordinator_options import (
    LOCAL_BROKER,
    BootstrapServer,
    now_option,
)
from logtool.commands.program.spread import spread
from logtool.errors import UsageError

Every = Annotated[
    bool,
    typer.Option(
        "--all",
        help="List the aborted and committed transactions too, and in tables the producers that "
        "write without transactions.",
    ),
]
Open = Annotated[
    bool,
    typer.Option(
        "--open", help="Show only partitions with open transactions, and only these transactions."
    ),
]
MaxAge = Annotated[
    str | None,
    typer.Option(
        "--max-age",
        metavar="TIME",
        help="A transaction open for longer, such as 20m, is hanging; by default 15m10s.",
    ),
]


@spread
def txns(
    *,
    inputs: options.AnyInputs,
    every: Every = False,
    only_open: Open = False,
    now: Annotated[str | None, now_option("Ages are counted")] = None,
    max_age: MaxAge = None,
    bootstrap_server: BootstrapServer = LOCAL_BROKER,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Show producers and transactions of log dirs, partition dirs or logs, and what is stuck.

    Replays the state of every producer from the batches, and compares it with producer snapshots
    and transaction indexes as verify does. Consumers with read_committed get as far as the last
    stable offset: once all is replicated, where the oldest open transaction begins, or the end.

    A transaction is hanging when its first record is older than --max-age. The default is 15
    minutes, the default of transaction.max.timeout.ms, and the 10 seconds after which a coordinator
    looks again: by then a coordinator that knew of it had aborted it, if it ran. Timestamps are
    those that clients set.

    Where a log dir holds partitions of __transaction_state, each open transaction has what its
    coordinator says. One that an entry lists never hangs: the coordinator ends it after its
    timeout, or as PREPARE says, unless a leader refuses the marker. Then come the transactional ids
    whose transaction is not over, and in how many partitions it is open, committed, aborted, or has
    left nothing yet, which is legal. A follower's copy may be behind, and a coordinator of 4.3 may
    note a transaction as complete before its marker is in the log.

    Prints for open transactions that no coordinator is known to end the command that aborts them on
    a broker of Kafka. It loses their records: run it for hanging ones only. A table begins with the
    partitions that have open transactions, and leaves out what has nothing to do with transactions.

    Examples:
      logtool txns --open /var/lib/kafka/data
      logtool txns --json data | jq -r '.items[] | select(.state == "hanging").abort'

    Exit status:
      0    complete: nothing hangs, snapshots and transaction indexes agree with the log
      1    complete: a transaction hangs, or files or coordinators contradict the log
      2
      4
      6
      130

    """
    from logtool.commands.views.txns import run

    if every and only_open:
        raise UsageError("--open and --all contradict each other")
    status = run(
        inputs, running, printing,
        every=every, only_open=only_open, now=now, max_age=max_age, bootstrap=bootstrap_server,
    )  # fmt: skip
    raise typer.Exit(status)
