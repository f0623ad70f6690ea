"""``logtool rebuild-index``: indexes and producer snapshots, rebuilt from the logs."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import start_options
from logtool.commands.program.spread import Without, spread
from logtool.errors import UsageError


class KindChoice(StrEnum):
    """Kinds of files that can be built; see `logtool.rebuild.KINDS`."""

    OFFSET = "offset"
    TIME = "time"
    TRANSACTION = "transaction"
    SNAPSHOT = "snapshot"


Kinds = Annotated[
    list[KindChoice] | None,
    typer.Option(
        "--kind",
        help="Build only these kinds of files: .index, .timeindex, .txnindex, .snapshot; "
        "repeatable.",
    ),
]
OnlyBad = Annotated[
    bool,
    typer.Option(
        "--only-bad/--all",
        help="--only-bad builds missing files and files with findings in 'logtool verify'; "
        "--all builds every file that recovery would write differently.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="DIR",
        parser=options.local_path,
        help="Write the files into DIR, one directory for each partition, and leave PATH "
        "unchanged.",
    ),
]


SnapshotEvery = Annotated[
    str | None,
    typer.Option(
        "--snapshot-every",
        metavar="SIZE",
        help="Build producer snapshots at the base offset of each segment and after about "
        "every SIZE of log (for example 256M), so that recovery replays less of the "
        "log.",
    ),
]


@spread
def rebuild_index(
    *,
    inputs: options.AnyLocalInputs,
    kind: Kinds = None,
    only_bad: OnlyBad = True,
    snapshot_every: SnapshotEvery = None,
    broker: Annotated[start_options.StartingBroker, Without("kafka_version")],
    apply: options.Apply = False,
    undo_dir: options.UndoDir = None,
    output: Output = None,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Rebuild indexes and producer snapshots as a broker's recovery would.

    The files are the same byte for byte as after a broker's recovery. PATH is a log dir, a
    partition dir, a segment, an index (even a missing one) or a producer snapshot. Without --apply
    or --output, the command writes nothing and prints what it would do. With --apply, it takes the
    broker's lock and saves replaced files in an undo directory next to the log dir; if it is
    killed, run the same command again to finish, or run 'logtool undo' to restore everything.

    The command never changes the log. If the log is damaged, the index ends at the damage, as after
    recovery, and the damage is reported; 'logtool recover' repairs it. If damage hides which
    transactions were open, no transaction index and no snapshot is built from there to the next
    sound snapshot.

    Examples:
      logtool rebuild-index /var/lib/kafka/data
      logtool rebuild-index --apply --topic 'orders*' /var/lib/kafka/data
      logtool rebuild-index --all --kind time --apply /var/lib/kafka/data/orders-0
      logtool rebuild-index --output /tmp/new data/orders-0/00000000000000000000.log

    Snapshots and transaction indexes:

    The command builds bad producer snapshots, and missing ones where a broker has them: at the base
    offset of the last two segments, and at the end of a log after a clean shutdown. With
    --snapshot-every, it builds more snapshots for 'logtool recover'; a broker deletes snapshots
    that are not at the base offset of a segment, except the newest one after the last base offset.
    A bad snapshot outside of the log is removed. A transaction index is written only for a segment
    with an aborted transaction.

    Redpanda:

    For Redpanda, the command rebuilds base indexes.

    Exit status:
      0    with --apply or --output: done; without: nothing to do
      1    without these options: something to do; with them: a file could not be built, or a log is
           damaged
      2
      4    ..., or could not be written
      5    refused: a broker holds the log dir, --output is in use or in a log dir, or files changed
           during the run
      6    --max-duration ran out; the current log dir was not changed
      130

    """
    from logtool.commands.views.rebuild_index import run

    if output and (apply or undo_dir):
        raise UsageError("--output cannot be used with --apply or --undo-dir")
    status = run(
        inputs, broker, running, printing,
        kinds=[str(one) for one in kind or ()], snapshot_every=snapshot_every,
        everything=not only_bad, apply=apply, undo_dir=undo_dir, output=output,
    )  # fmt: skip
    raise typer.Exit(status)
