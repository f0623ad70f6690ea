"""``logtool dirs``: log dirs compared with the metadata log. Writes nothing."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import spread
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class LogDirs(options.Inputs):
    """Arguments for the directories to read: DIR in place of PATH."""

    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR...",
            help="All log dirs of one or more brokers. ID=DIR sets the node id. Default: the log"
            " dirs in --broker-config, otherwise the current directory.",
            show_default=False,
        ),
    ] = None


@spread
def dirs(
    *,
    inputs: LogDirs,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Compare log dirs with the metadata log: ids, misplaced replicas, strays.

    Give all log dirs of a broker, including the one with the metadata log; with the log dirs of
    other brokers, more can be proven. For each log dir the command prints the directory id, and
    whether the broker had it online, offline or cordoned at its last registration. Log dirs that
    the metadata log contains and that were not given are absent. A log dir whose id the metadata
    log does not contain is unregistered, as a new disk is, or metadata if it holds only the
    metadata log: a metadata.log.dir outside of log.dirs is never registered. With --broker-config
    the node id, the log dirs and the voters in the file are compared with the disk, as plan does.

    The command then lists the partitions that need attention. Never delete a stray partition
    without the proof that its line shows; 'logtool may-delete' gives this proof for any partition
    dir.

    Examples:
      logtool dirs /data/1 /data/2
      logtool dirs --broker-config server.properties
      logtool dirs /mnt/broker-1/* /mnt/broker-2/* --json
      logtool dirs 1=/mnt/a/data 1=/mnt/b/data

    Partitions that need attention:

    Misplaced replicas: the replica is in another log dir than in the metadata log (elsewhere), or
    the metadata log marks its log dir as lost.

    Copies that are being moved to another log dir (-future): how far they are behind the live copy,
    whether they contain everything that the live copy contains, and whether the live copy is gone
    (abandoned).

    Strays: -stray directories, and partitions that the metadata log does not assign to their
    broker. For each, the proof that live copies in the other log dirs hold every batch (or replaced
    it by compaction), or the offsets that only the stray holds.

    Exit status:
      0    complete: all replicas are in the right place
      1    a log dir is absent, offline or without an id; a replica is elsewhere or lost;
           a future copy is abandoned, diverged or damaged; there is a stray; the metadata log is
           damaged; or the file of --broker-config contradicts the log dirs
      2
      4    incomplete: an input could not be read, or is not a log dir
      6
      130

    """
    from logtool.commands.views.dirs import run

    raise typer.Exit(run(inputs, running, printing))
