"""``logtool txns``: producers and transactions. Writes nothing."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.case_inputs import CaseInputs
from logtool.commands.program.coordinator_options import (
    ANY_BROKER,
    BootstrapServer,
    now_option,
)
from logtool.commands.program.spread import spread
from logtool.errors import UsageError

Every = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Also list aborted and committed transactions, and in tables the producers "
        "without transactions.",
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
        help="Age from which an open transaction counts as hanging where nothing else shows it, "
        "for example 20m. Default: 15m10s.",
    ),
]


@spread
def txns(
    *,
    inputs: CaseInputs,
    every: Every = False,
    only_open: Open = False,
    now: Annotated[str | None, now_option("Compute ages")] = None,
    max_age: MaxAge = None,
    bootstrap_server: BootstrapServer = ANY_BROKER,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Show producers and transactions, and find hanging transactions.

    logtool rebuilds the state of every producer from the batches, and compares it with producer
    snapshots and transaction indexes. Consumers with isolation level read_committed read up to the
    last stable offset: the first offset of the oldest open transaction, or the log end without an
    open transaction, if all replicas have these records. Where it moves by itself, because
    coordinators end open transactions, the line also has the offset at which it then stands. The
    table begins with partitions that have open transactions, and leaves out partitions and
    producers without transactions.

    A transaction is hanging if no coordinator's state lists it. Whether the files are of one moment
    is not always certain: a log dir may be copied while its broker runs, and a follower may be
    behind. Where replication-offset-checkpoint and the metadata log of the log dir show that they
    are, the age does not matter. Else the first record must be older than --max-age. The default is
    15 minutes (the default of transaction.max.timeout.ms) plus the 10 seconds after which a
    coordinator checks again: it would have aborted the transaction by then. Without the
    coordinator's state such a transaction is 'unknown'. logtool uses the timestamps that clients
    set. If the broker of the log dir has stopped, and without --now, the age does not matter
    either: what no coordinator's state lists at the stop is hanging, or unknown without that state.
    A transaction is marker-lost if the coordinator has committed it and the log has lost the marker
    in damage or at its end. No broker writes that marker again. Do not abort such a transaction.

    Examples:
      logtool txns --open /var/lib/kafka/data
      logtool txns --json data | jq -r '.items[] | select(.state == "hanging").abort'

    Coordinator state:

    If a log dir contains partitions of __transaction_state, the state at the coordinator is shown
    for each open transaction. A transaction in that state never counts as hanging: the coordinator
    ends it after its timeout, or as its PREPARE state requires, unless a partition leader refuses
    the marker. If the state is not there, or its log has lost its end, the answer for an old
    transaction is not known. It is known where the transaction has a newer producer epoch than the
    state, and no other replica of the log exists, or all of them are in PATH: then it hangs. With
    --all, a state that is older than the log says so.

    Below the partitions, the command lists the transactional ids with an unfinished transaction,
    and in how many partitions this transaction is open, committed, aborted, or still without
    records, which is legal. A follower's copy may be behind, and a coordinator of Kafka 4.3 may
    record a transaction as complete before the marker is in the log.

    Abort commands:

    For each hanging transaction the command prints the Kafka command that aborts it; its records
    are then lost to read_committed consumers. If the coordinator has committed the last transaction
    of the producer, a marker before the hanging transaction shows whether it began after that
    commit: nothing that was committed is lost then. Where the log of the coordinator has lost its
    end at a clean stop, the batches of the producer must account for every lost entry: else a lost
    entry may have committed the transaction. If nothing shows that, and for each other open
    transaction without a known coordinator, it prints the commands that ask a running cluster
    which transactions hang, and what the coordinator knows.

    A coordinator that has lost its newest state hands out the same producer epochs again. Abort a
    transaction that hangs for this reason before its application starts: the line below it says
    what the start does.

    AutoMQ:

    With a bucket and the log dir of its metadata log as PATH, the command reads the partitions as
    they are after the recovery of the WAL. AutoMQ stores no high watermark.

    Tiered storage:

    With the prefix of its objects and the log dirs of the cluster as PATH, the remote segments of a
    partition are part of its log; see 'logtool dump --help'.

    Exit status:
      0    complete: no hanging transaction; snapshots and transaction indexes agree with the log
      1    a transaction is hanging, unknown or marker-lost, or files or coordinators contradict
           the log
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
