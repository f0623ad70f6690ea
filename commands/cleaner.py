"""``logtool cleaner``: the compacted partitions that a broker cleans. Writes nothing."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import Without, spread

At = Annotated[
    str,
    typer.Option(
        "--at",
        metavar="T",
        help="Time of the round: milliseconds, a time such as 2026-11-22T10:30:00Z (UTC without a "
        "zone), a date, -2h (also s, m, d, w), now, today or yesterday.",
        show_default=True,
    ),
]
With = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="NAME=VALUE",
        help="Assume this setting for all selected topics, for example "
        "min.cleanable.dirty.ratio=0.1; repeatable.",
    ),
]
Records = Annotated[
    bool,
    typer.Option(
        "--records",
        help="Read all records of the partitions that are cleaned: those without a key are "
        "counted, and also those are found that cannot be read although their CRC is right.",
    ),
]
Sizes = Annotated[
    bool,
    typer.Option(
        "--sizes",
        help="Also read the records of the partitions that are cleaned twice, and print how many "
        "records and bytes are left.",
    ),
]


@spread
def cleaner(
    *,
    inputs: options.LocalInputs,
    at: At = "now",
    changed: With = None,
    records: Records = False,
    sizes: Sizes = False,
    running: Annotated[options.Running, Without("jobs", "max_rate")],
    printing: options.StillPrinting,
) -> None:
    """Show which compacted partitions are cleaned, and why others are not.

    The command assumes that the broker is started, leads its partitions again, and cleans at --at;
    nothing is produced. It computes the range that the log cleaner would clean in each compacted
    partition, whether it does, the row that it then writes to cleaner-offset-checkpoint, and the
    one reason if it does not. It reads names, sizes, checkpoints, producer snapshots and settings.
    In the partitions that are cleaned, it compares the CRCs of all batches, and reads the records
    of those with a wrong one.

    A log is cleaned if the cleanable bytes are more than min.cleanable.dirty.ratio of the clean and
    the cleanable bytes, or if there are some and the first batch of a dirty segment is older than
    max.compaction.lag.ms. Each thread of the cleaner cleans one log at a time, the one with the
    largest ratio first, and begins again log.cleaner.backoff.ms after no log was left.

    Examples:
      logtool cleaner /var/lib/kafka/data
      logtool cleaner --topic accounts --records /var/lib/kafka/data
      logtool cleaner --with min.cleanable.dirty.ratio=0.1 /var/lib/kafka/data
      logtool cleaner --with log.cleaner.enable=true --broker-config server.properties data
      logtool cleaner --sizes --with min.cleanable.dirty.ratio=0 /var/lib/kafka/data
      logtool cleaner --json /mnt/disk1/kafka /mnt/disk2/kafka

    The range:

    It begins at the first dirty offset: the row in cleaner-offset-checkpoint, or the log start if
    there is no row, or if the row is below the log start or above the log end. It ends before the
    first uncleanable offset: the active segment, the segment with the last stable offset, or the
    first one that is younger than min.compaction.lag.ms.

    Obstacles:

      active-segment         all closed segments are clean; the active segment is never cleaned. It
                             ends at the first append that comes segment.ms (or
                             max.compaction.lag.ms, if that is smaller) after its first batch, or
                             that needs more than segment.bytes
      dirty-ratio            too few bytes are cleanable, and max.compaction.lag.ms has not passed
      open-transaction       a transaction is open: nothing at or behind its first offset is cleaned
      high-watermark         records are above the high watermark, which is that of the checkpoint
                             until the broker hears from the other replicas
      min-lag                a segment is younger than min.compaction.lag.ms: it is not cleaned,
                             nor is any segment behind it. stamp is its timestamp if that is in the
                             future
      damaged-batch          the cleaner stops at a batch without a possible size or magic byte, or
                             at records that it cannot read, and does not try again until the next
                             start. It does not compare CRCs: a batch with a wrong CRC whose records
                             it can read does not stop it
      offset-overflow        a segment has offsets too far from its base offset: it is split first,
                             and cleaned in a later round
      future-copy            the replica is moved to another log dir; cleaning waits for that
      checkpoint-unreadable  the broker cannot read cleaner-offset-checkpoint, and cleans nothing
      cleaner-disabled       log.cleaner.enable is false
      empty                  the log has no records

    Tombstones and markers:

    The cleaner gives a batch with tombstones or with transaction markers a delete horizon,
    delete.retention.ms after it first cleaned it. The first cleaning after that time deletes them:
    horizons and horizons_due count such batches. A record without a key is deleted by the first
    cleaning, whatever its age; --records counts them (without_key).

    Old message formats:

    The cleaner of Kafka 4.0 and later writes the batches of magic 0 and 1 of a partition that it
    cleans with magic 2 (old_formats counts them). It rewrites all closed segments up to the first
    uncleanable offset. Partitions that are not compacted keep their formats.

    Sizes:

    --sizes finds from the keys which records of the closed segments a cleaning leaves. The number
    of records is exact unless the keys of a partition take more than 256 MiB: then it is an
    estimate from a part of the keys (is_exact false). The bytes are always an estimate: the broker
    compresses the records again that are left of a batch, and few records compress less well, so
    that a tenth more may be left of small compressed batches.

    Limits:

    The row after the round is an upper bound if the offset map of the cleaner
    (log.cleaner.dedupe.buffer.size) is too small for all dirty keys. With cleanup.policy
    compact,delete, retention may delete segments first: see logtool retention. A partition that the
    running broker has marked as uncleanable is tried again after a start.

    Exit status:
      0    complete, whatever is cleaned
      2
      4
      6
      130

    """
    from logtool.commands.views.cleaner import run

    wanted = {"records": records, "sizes": sizes}
    status = run(inputs, running, printing, at=at, changed=changed or [], **wanted)
    raise typer.Exit(status)
