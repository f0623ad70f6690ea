"""``logtool retention``: the segments that a broker deletes, and when. Writes nothing."""

from dataclasses import replace
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.broker_config import BrokerConfig
from logtool.commands.program.broker_config import load as load_broker_config
from logtool.commands.program.spread import Without, spread
from logtool.errors import UsageError

At = Annotated[
    str,
    typer.Option(
        "--at",
        metavar="T",
        help="Time of the start of the broker: milliseconds, a time such as "
        "2026-11-22T10:30:00Z (UTC without a zone), a date, -2h (also s, m, d, w), now, today or "
        "yesterday.",
        show_default=True,
    ),
]
With = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="NAME=VALUE",
        help="Assume this setting for all selected topics, for example retention.ms=3600000, and "
        "show what it frees; repeatable.",
    ),
]
Segments = Annotated[bool, typer.Option("--segments", help="Also print a row for each segment.")]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="TEXT",
        help="Instead, print where records with this key lie, and when each is gone: text, hex:.., "
        "base64:.., or null: for no key; utf8:.. for text that begins like one of these. PATH may "
        "then also be log dirs of several brokers of a cluster.",
    ),
]

Configs = Annotated[
    list[BrokerConfig] | None,
    typer.Option(
        "--broker-config",
        metavar="FILE",
        parser=load_broker_config,
        help="Configuration file of the broker, such as server.properties. If PATH is not given, "
        "logtool uses the log dirs in the file. For an option that is not given, it uses the "
        "corresponding setting, if the file has one. One line on standard error shows the settings "
        "that logtool took from the file. With --key repeatable: node.id in each file says which "
        "log dirs are those of its broker.",
    ),
]


@spread
def retention(
    *,
    inputs: Annotated[options.LocalInputs, Without("broker_config")],
    configs: Configs = None,
    at: At = "now",
    changed: With = None,
    segments: Segments = False,
    key: Key = None,
    running: Annotated[options.Running, Without("jobs", "max_rate")],
    printing: options.StillPrinting,
) -> None:
    """Show what retention deletes when, and what keeps the rest.

    The command assumes that the broker starts at --at and that nothing is produced. It computes
    what each round of retention deletes, from the names and sizes of the segments, from the last
    entries of their time indexes, from the checkpoints, and from the settings in the metadata log,
    in --broker-config, and in Kafka's defaults. After a stop in order it reads no log, unless a
    timestamp in the future keeps a segment: then it finds the batch with it.

    The first round is log.initial.task.delay.ms after the start (30 s by default), the others
    follow log.retention.check.interval.ms apart (5 min). In each round, the log start offset
    deletes segments first, then the size, then the age. Each rule begins with the oldest segment
    and stops at the first that it does not delete: that segment keeps all behind it.

    Examples:
      logtool retention /var/lib/kafka/data
      logtool retention --segments --topic orders /var/lib/kafka/data
      logtool retention --with retention.ms=86400000 --topic orders /var/lib/kafka/data
      logtool retention --at 2026-12-24 --json /var/lib/kafka/data
      logtool retention --key customer-17 1=/mnt/b1/data 2=/mnt/b2/data
      logtool retention --key customer-17 --broker-config b1.conf --broker-config b2.conf

    Obstacles:

      age               the segment is not older than retention.ms yet
      future-timestamp  its largest timestamp is later than --at, as if it were that much younger
      older-segment     it is old enough, but an older segment stays (held_by)
      high-watermark    it ends above the high watermark. The row in replication-offset-checkpoint
                        counts, until the broker hears from the other replicas; a replica that is
                        alone in sync raises it to the log end
      empty-active      the active segment is empty. An active segment with records is deleted like
                        any other: the broker begins a new one
      policy            cleanup.policy does not include delete
      no-limit          retention.ms and retention.bytes are -1
      within-size       retention.ms is -1, and the log is not larger than retention.bytes
      cleaner-disabled  only the log cleaner deletes segments of compacted topics

    Copies of a key:

    --key reads all logs, and prints each file that holds records with the key: live segments also
    below the log start offset, files that end in .deleted, .cleaned or .swap, and those in stray,
    future and deleted partition dirs. For each it prints the offsets, and the consumers that get
    the records if this broker leads the partition: any consumer; those with
    isolation.level=read_uncommitted only, if the transaction was aborted or is open; or none.
    gone is the time in UTC from which on the bytes are gone: file.delete.delay.ms after the round.
    In a compacted topic the cleaner removes a record that a newer one of the same key replaces, if
    it cleans that part of the log (see logtool cleaner); gone is the earliest time then. Give
    --broker-config once for each broker: Kafka's defaults count for a broker without, and a line
    names those on which the answer rests. Records that are not gone stay because of an obstacle of
    the cleaner, or:

      latest-value      nothing replaces it: it stays until a tombstone or a new value is written
      tombstone         the first cleaning after its delete horizon deletes it: delete.retention.ms
                        after the first cleaning of it, which sets the horizon
      newer-is-clean    the record that replaces it is not dirty, so that no cleaning removes it
      stray             a broker never deletes a stray partition dir
      swap-file         the start finishes the cleaning that wrote it; ask again after that
      other-name        a broker does not remove a file of that name
      unread            the segments of the log could not be read

    Where a batch is damaged, the key may be in it: the exit status is 1, and gone is null in the
    sum. Copies in remote storage, in backups and in the memory of clients are not looked for.

    Timestamps:

    The age of a segment is that of its largest timestamp: the last entry of its time index. If the
    index is empty, the modification time of the .log file counts (timestamp_source mtime), so that
    a copy that does not keep modification times is kept longer. Segments that a start recovers,
    because the broker was killed, get the largest timestamp of their batches. A timestamp in
    seconds is one of January 1970, and lets a segment go in the first round (early), however young
    its records are; one in microseconds is in the far future, and keeps the log.

    Tiered storage:

    If segments are copied to remote storage, local.retention.ms and local.retention.bytes count,
    and a broker deletes only segments that it has copied. logtool assumes that they are copied.
    For the remote part retention.ms and retention.bytes count, with the size of both parts. If
    __remote_log_metadata is in the log dirs, logtool shows what a leader deletes of the remote
    part at --at, at the first look at it, and the log start offset after that. A leader before
    4.3.2 may count local segments twice (KAFKA-20732): at_risk is what it deletes then.

    Not shown:

    The metadata log, stray and future copies, and partition dirs that wait to be deleted are left
    out: no retention applies to them.

    Exit status:
      0    complete, whatever is deleted; with --key also if no copy was found (see `found` in the
           summary)
      1    with --key, something is damaged that may hold the key
      2
      4
      6
      130

    """
    if key is not None:
        if segments:
            raise UsageError("use only one of --key and --segments")
        from logtool.commands.views.retention_key import run as search

        files = configs or []
        status = search(inputs, files, running, printing, at=at, changed=changed or [], key=key)
        raise typer.Exit(status)
    if configs and len(configs) > 1:
        raise UsageError("--broker-config: give several files only with --key")
    inputs = replace(inputs, broker_config=configs[0] if configs else None)
    from logtool.commands.views.retention import run

    status = run(inputs, running, printing, at=at, changed=changed or [], segments=segments)
    raise typer.Exit(status)
