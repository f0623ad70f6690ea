"""``logtool quorum``: the controllers' copies of the metadata log. Writes only with --apply."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import Without, spread
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Copies(options.LocalInputs):
    """Arguments for the directories to read: DIR in place of PATH."""

    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR...",
            help="Log dirs with __cluster_metadata-0, one of each node, or these directories "
            "themselves. ID=DIR sets the node id.",
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class Ordered:
    """Options for the voters to set, and for the permitted changes."""

    voters: Annotated[
        str | None,
        typer.Option(
            "--voters",
            metavar="LIST",
            help="New voters as ID@HOST:PORT,..., or as ID-DIRECTORYID@HOST:PORT if the "
            "meta.properties of a voter is in none of the DIRs.",
        ),
    ] = None
    apply: options.Apply = False
    accept_loss: Annotated[
        list[str] | None,
        typer.Option(
            "--accept-loss",
            metavar="TOPIC-PARTITION",
            help="Accept that this partition has no replica after the change, or that its "
            "directory becomes a stray; __cluster_metadata-0: accept that changes which another "
            "given copy has are lost; repeatable.",
        ),
    ] = None
    undo_dir: options.UndoDir = None


@spread
def quorum(
    *,
    inputs: Annotated[Copies, Without("topic", "exclude_topic", "partition")],
    ordered: Ordered,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Compare the controllers' copies of the metadata log; change the voters.

    Give the log dirs of all remaining controllers, and of brokers too: a broker has a copy of the
    metadata log, which may be longer than the copy of a controller. For each copy the command
    prints its log end offset, last leader epoch, snapshots, voters, kraft.version, and the last
    election from quorum-state. Log end offsets are exclusive: 27 means that the last record has
    offset 26. A log counts up to its first damage, because a controller cuts the rest at its start.

    From all copies it derives the offset that a majority of the voters had, the first batch in
    which two copies differ (by CRC and leader epoch), the copy to keep (the highest last epoch,
    then the longest log, as in a Raft election), and the records that are lost with this choice.
    If that is the copy of a broker, which cannot be elected, the command prints how to give it to a
    controller: a node that votes, or that the metadata log registers as a controller.

    Examples:
      logtool quorum /mnt/c1/kraft /mnt/c2/kraft /mnt/c3/kraft
      logtool quorum 1=/mnt/c1/__cluster_metadata-0 4=/mnt/broker-4/data
      logtool quorum --voters 1@controller-1:9093 /mnt/c1/kraft
      logtool quorum --apply --voters 1@10.0.0.1:9093,2@10.0.0.2:9093 /mnt/c1/kraft /mnt/c2/kraft

    Voters and committed records:

    The voters come from the last VotersRecord in the log or snapshot; in a static quorum
    (kraft.version 0), from the newest quorum-state, or from controller.quorum.voters in
    --broker-config. The committed offset is not on any disk. If the nodes of the missing copies
    were a majority, the command reports that records may be committed that no copy here contains.

    A node that does not vote may have records that no given voter has. If these are only
    NoOpRecords, nothing is to be done. Otherwise the command counts them by kind, names the changes
    that are lost and the dirs that become strays without them, and prints for each given voter the
    command that gives it this copy. A voter was rolled back if another copy has records of an epoch
    in which the voter itself was the leader, behind the end of its log.

    Changing the voters:

    With --voters, the command keeps the furthest copy of these nodes, and prints how to give it
    these voters, or the same voters at other addresses; with --apply, it does so. Give the log dirs
    of the brokers too: the command then names the changes of the metadata that are lost because
    another copy is further, and the partition dirs that become strays.

    The change adds a segment with one VotersRecord in a new leader epoch at the end of the log, and
    removes the last election from quorum-state. A single voter then elects itself. In a static
    quorum, it writes only quorum-state; you also have to change controller.quorum.voters. Start the
    node with this copy first.

    The command refuses if a partition would have no replica left, if a partition dir next to a
    given copy would become a stray because the copy to keep does not have the partition, or if
    changes are lost that another given copy has (see --accept-loss). It also refuses if the copy to
    keep is damaged or does not belong to a voter. An unfinished append at the end is no damage: the
    change cuts it off.

    Voters that were removed must never start again on their old directories: together they may be a
    majority that does not know of this change. Format their directories with 'kafka-storage.sh
    format --no-initial-controllers', and add them again with 'kafka-metadata-quorum.sh
    add-controller'.

    Exit status:
      0    complete: the copies agree and include a majority of the voters; with --voters: nothing
           to do, or with --apply: done
      1    copies diverge, are damaged, were rolled back, belong to several clusters, or are fewer
           than a majority; partition dirs become strays; with --voters: something to do
      2
      4    incomplete: an input could not be read, or contains no metadata log; nothing was written
      5    refused: the change would not be safe, or a broker holds the log dir
      6
      130

    """
    from logtool.commands.views.quorum import run

    status = run(
        inputs, running, printing,
        voters=ordered.voters, apply=ordered.apply, accept_loss=ordered.accept_loss or (),
        undo_dir=ordered.undo_dir,
    )  # fmt: skip
    raise typer.Exit(status)
