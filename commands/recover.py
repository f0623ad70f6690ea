"""``logtool recover``: recovery of logs without a broker. Writes only with --apply."""

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
    """Recover logs as a broker would at its start, without a broker; can be undone.

    Without --apply, the command writes nothing and prints what it would do. With --apply, it takes
    the broker's lock and first saves everything that it changes in an undo directory next to the
    log dir. If it is killed, run the same command again to finish the work, or run 'logtool undo'
    to restore everything. If records would be lost, it changes nothing in that log dir unless
    --accept-loss names the partition. Records in a directory that ends in -delete do not count as
    lost, because the broker deletes that directory after its start.

    Log dirs given together belong to one broker. A log dir that the broker would ignore at its
    start stays unchanged. If a problem in one log dir would stop the broker, logtool marks none of
    them as cleanly shut down.

    Examples:
      logtool recover /var/lib/kafka/data
      logtool recover --apply --accept-loss orders-3 /var/lib/kafka/data
      logtool recover --truncate-to orders-3=1500000 --apply --accept-loss orders-3 data
      logtool recover --apply --fill-from /mnt/broker-2/data /var/lib/kafka/data/orders-3
      logtool recover --full --mark-clean --apply /var/lib/kafka/data

    Recovery:

    A segment is recovered from its first byte. A recovery point beyond the end of the log is
    lowered to the end. A segment that a truncation removed and a crash restored is dropped. With
    --strategy supplement, logtool keeps the content of indexes and producer snapshots; it replays
    the log from the older of two positions: the end of the transaction index, and the producer
    snapshot. It still checks every byte. With --trust-log, it reads only the batch headers from
    that position on.

    Repair from another copy:

    With --fill-from, batches of another copy replace damage if offsets, leader epochs, CRCs and the
    neighbouring batches prove that both copies are the same log. Damage after the last sound batch
    is filled only as far as the leader epochs prove that the log continued; in a log without leader
    epochs, up to the high watermark of the other copy. If the copy continues behind the end of a
    damaged log, its batches up to the high watermark are taken and listed too; --truncate-to cuts
    them in a second run. A partition that a log dir lacks and a copy of that log dir has is listed
    as absent, with the command that copies it. A lost beginning comes back as well, but
    nothing below the log start offset of either copy. Damage between batches whose offsets follow
    each other, such as zeros behind a segment, is left out. logtool only reads that copy. What it
    cannot fill is listed as unfilled. Where both copies have sound batches that differ, nothing is
    filled, and the copy is listed as one from which the log diverges; but a segment with batches of
    another partition is replaced by those that the producer snapshot names. See logtool-recipes(7).

    Truncation and clean shutdown:

    With --truncate-to, logtool lowers the recovery point, deletes the segments after the offset,
    and then cuts the segment that contains it. With --mark-clean, the recovery points rise after
    all logs are recovered; the clean-shutdown marker is written last.

    Redpanda:

    In a Redpanda directory, the command does what a start of Redpanda does, and takes pid.lock.
    With --full it replays every segment. See 'logtool plan'.

    Exit status:
      0    with --apply: done; without: nothing to do
      1    without --apply: something to do; with --apply: a log does not load, damage was not
           filled, a log diverges from the copy, a partition is absent, or a file stops the
           broker or takes its log dir offline
      2
      4    ..., or could not be written
      5    refused: the log dir is in use, records would be lost, files changed, or a log dir cannot
           be marked clean
      6    --max-duration ran out; the current log dir was not changed
      130

    """
    from logtool.commands.views.recover import run

    raise typer.Exit(run(inputs, begin, way, broker, consented, running, printing))
