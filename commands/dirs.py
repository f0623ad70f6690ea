"""``logtool dirs``: log dirs against what the metadata log says of them. Writes nothing."""

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
            help="All log dirs of a broker, or of several brokers; ID=DIR says whose one is. By "
            "default those of --broker-config, else the current directory.",
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
    """Hold log dirs against the metadata log: their ids, misplaced replicas, futures and strays.

    Give all log dirs of a broker, the one with the metadata log among them; with those of other
    brokers more can be proven. For each it prints the directory id and whether the broker had it
    online, offline or cordoned when it registered last. Log dirs that the metadata log knows and
    that were not given are absent.

    Then come the partitions that need a person: replicas that lie in another log dir than the
    metadata log says (elsewhere), or that it calls lost; copies on their way to another log dir
    (-future), with how far they are behind the live copy, whether they hold everything that it has,
    and whether it is gone (abandoned); and strays, both -stray directories and partitions that the
    metadata log does not assign to their broker, each with the proof that live copies in the other
    log dirs hold every batch of it, or replaced it by compaction, or with what only the stray has.
    'logtool may-delete' asks that of any partition dir. Never delete a stray without that proof.

    Examples:
      logtool dirs /data/1 /data/2
      logtool dirs --broker-config server.properties
      logtool dirs /mnt/broker-1/* /mnt/broker-2/* --json
      logtool dirs 1=/mnt/a/data 1=/mnt/b/data

    Exit status:
      0    complete: everything is where it should be
      1    complete: a log dir is absent, offline or has no id, a replica lies elsewhere or is lost,
           a future copy is abandoned, diverged or damaged, there is a stray, or the metadata log
           is damaged
      2
      4    incomplete: some input could not be read, or is no log dir
      6
      130

    """
    from logtool.commands.views.dirs import run

    raise typer.Exit(run(inputs, running, printing))
