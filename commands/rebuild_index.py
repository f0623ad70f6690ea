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
        "--kind", help="Build only these: .index, .timeindex, .txnindex, .snapshot; repeatable."
    ),
]
OnlyBad = Annotated[
    bool,
    typer.Option(
        "--only-bad/--all",
        help="What 'logtool verify' would warn of and what is missing, or all that recovery would "
        "write otherwise.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="DIR",
        parser=options.local_path,
        help="Write what is built into DIR, a folder for each partition, and nothing in place.",
    ),
]


SnapshotEvery = Annotated[
    str | None,
    typer.Option(
        "--snapshot-every",
        metavar="SIZE",
        help="Build producer snapshots at the base of each segment and about SIZE of log apart, "
        "such as 256M, so that less of the log has to be played back.",
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
    """Build indexes and producer snapshots anew, byte by byte as a broker's recovery would.

    Takes log dirs, partition dirs, or single logs, indexes and snapshots; an index that is missing
    may be named too. Without --apply or --output it writes nothing and prints what it would do.

    The log itself is never changed. If it is damaged, the index ends at the damage, as it would
    after recovery, and the damage is reported; 'logtool recover' repairs it. Where damage hides
    which transactions were open, no transaction index and no snapshot is built behind it, up to the
    next snapshot that is sound.

    Producer snapshots are built where they are bad, and where they are missing although a broker
    would have them: at the base of the last two segments, and at the end of a log stopped in order.
    With --snapshot-every there are more, for 'logtool recover'; a broker deletes those at no base
    of a segment, but for the newest one behind the last base. A bad snapshot outside of the log is
    removed. A transaction index is made only after an abort. Of Redpanda: base indexes.

    With --apply it takes the broker's lock and keeps what it replaces in an undo directory beside
    the log dir. If it is killed, the same command finishes the work, or 'logtool undo' puts
    everything back.

    Examples:
      logtool rebuild-index /var/lib/kafka/data
      logtool rebuild-index --apply --topic 'orders*' /var/lib/kafka/data
      logtool rebuild-index --all --kind time --apply /var/lib/kafka/data/orders-0
      logtool rebuild-index --output /tmp/new data/orders-0/00000000000000000000.log

    Exit status:
      0    with --apply or --output: done; without: nothing to do
      1    without them: there is something to do; with: something could not be built, or a log is
           damaged
      2
      4    incomplete: nothing matched, or some input could not be read, or not be written
      5    refused: a broker holds the log dir, --output is in use or in a log dir, or files changed
           meanwhile
      6    --max-duration ran out; nothing of the log dir at hand was changed
      130

    """
    from logtool.commands.views.rebuild_index import run

    if output and (apply or undo_dir):
        raise UsageError("--output writes elsewhere, --apply and --undo-dir are for in place")
    status = run(
        inputs, broker, running, printing,
        kinds=[str(one) for one in kind or ()], snapshot_every=snapshot_every,
        everything=not only_bad, apply=apply, undo_dir=undo_dir, output=output,
    )  # fmt: skip
    raise typer.Exit(status)
