"""``logtool recover``: what a broker would do at its next start, done now; with --apply only."""

import typer

from logtool.commands import options
from logtool.commands.program import recovery_options, start_options
from logtool.commands.program.spread import spread


@spread
def recover(
    *,
    inputs: options.AnyLocalInputs,
    begin: recovery_options.StartPoint,
    way: recovery_options.RecoveryMode,
    broker: start_options.StartingBroker,
    consented: recovery_options.ApplyOptions,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Recover log dirs or partition dirs as a broker would, without a broker; can be undone.

    Without --apply it writes nothing and prints what it would do. With --apply it takes the lock of
    the broker and first saves whatever it changes in an undo directory beside the log dir. If it is
    killed, the same command finishes the work, or 'logtool undo' puts everything back. If records
    would be lost, it changes nothing in that log dir without --accept-loss.

    A segment is recovered from its first byte. A recovery point beyond the end of the log is
    lowered to it. With --strategy supplement, what indexes and snapshots hold is kept, and the log
    is played back from the smaller one of the checkpoints of transaction index and producer
    snapshot; all is still checked. With --trust-log only headers from there on are read.

    With --fill-from, the batches of another copy take the place of damage where offsets, leader
    epochs, CRCs and neighbours prove that it is the same log. Behind its last batch the log must be
    known to have gone on; without leader epochs, to that copy's high watermark. That copy is only
    read; see the guide logtool-recipes.

    With --truncate-to, a log is cut at an offset: its recovery point comes down first, the segments
    behind go, then the one with the offset is cut. With --mark-clean, points rise when all logs are
    done; the marker comes last. A segment that was truncated away and came back is dropped.

    In a directory of Redpanda it does what a start of Redpanda does, under its pid.lock; --full has
    every segment replayed. See 'logtool plan'.

    Log dirs given together are those of one broker. A log dir without which the broker would start
    is left alone. If anything in one of them stops it, none is marked clean.

    Examples:
      logtool recover /var/lib/kafka/data
      logtool recover --apply --accept-loss orders-3 /var/lib/kafka/data
      logtool recover --truncate-to orders-3=1500000 --apply --accept-loss orders-3 data
      logtool recover --apply --fill-from /mnt/broker-2/data /var/lib/kafka/data/orders-3
      logtool recover --full --mark-clean --apply /var/lib/kafka/data

    Exit status:
      0    with --apply: done; without: nothing to do
      1    without --apply: there is something to do; with: a log does not load, damage is not
           filled, a file of the log dir stops a broker or takes the log dir offline
      2
      4    incomplete: nothing matched, or some input could not be read, or not be written
      5    refused: in use, records would be lost, files changed, or it cannot be marked clean
      6    --max-duration ran out; nothing of the log dir at hand was done
      130

    """
    from logtool.commands.views.recover import run

    raise typer.Exit(run(inputs, begin, way, broker, consented, running, printing))
