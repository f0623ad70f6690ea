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
            help="Log dirs that hold __cluster_metadata-0, one of each node, or those directories "
            "themselves; ID=DIR says whose it is.",
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class Ordered:
    """Options for the voters to set, and for the changes that this permits."""

    voters: Annotated[
        str | None,
        typer.Option(
            "--voters",
            metavar="LIST",
            help="The voters that there are to be, as ID@HOST:PORT,... or, where meta.properties "
            "of a voter is not among the DIRs, ID-DIRECTORYID@HOST:PORT.",
        ),
    ] = None
    apply: options.Apply = False
    accept_loss: Annotated[
        list[str] | None,
        typer.Option(
            "--accept-loss",
            metavar="TOPIC-PARTITION",
            help="Let this partition be left without a replica; repeatable.",
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
    """Say what the controllers that are left know, who votes, and which copy to keep.

    Give the log dirs of all controllers that are left, and of brokers too: a broker has a copy of
    the metadata log, which may go further than that of a controller. For each copy it prints how
    far it goes, its last leader epoch, its snapshots, who votes by it (the last VotersRecord of log
    or snapshot; in a static quorum quorum-state, or controller.quorum.voters of --broker-config),
    kraft.version, and what quorum-state says of the last election.

    Together they say which offset a majority of the voters had, the first batch in which two copies
    differ (by CRC and leader epoch), which copy to keep (the highest last epoch, then the longest
    log, as Raft elects) and what is lost by it. Offsets are exclusive: a log end of 27 means that
    26 is the last offset. How far the controllers had agreed is on no disk. Where so many copies
    are missing that their nodes were a majority by themselves, it says that they may have agreed on
    records that no copy here has. A log counts up to its first damage, for a controller cuts off
    the rest when it starts.

    With --voters it says what gives the copy to keep these voters, or the same ones at other
    addresses, and with --apply it does so: behind the end of the log comes a segment with one
    VotersRecord in a new leader epoch, and quorum-state forgets the last election. A voter that is
    alone then elects itself. In a static quorum (kraft.version 0) only quorum-state is written, and
    controller.quorum.voters does the rest. It refuses where a partition would have no replica left,
    where the copy to keep is not that of a voter, and where a log is damaged. Start the node of the
    copy that was written first. Voters that are gone must never start again on their old
    directories, for together they may be a majority that knows nothing of this: format those of
    them that come back with 'kafka-storage.sh format --no-initial-controllers', and let them join
    with 'kafka-metadata-quorum.sh add-controller'.

    Examples:
      logtool quorum /mnt/c1/kraft /mnt/c2/kraft /mnt/c3/kraft
      logtool quorum 1=/mnt/c1/__cluster_metadata-0 4=/mnt/broker-4/data
      logtool quorum --voters 1@controller-1:9093 /mnt/c1/kraft
      logtool quorum --apply --voters 1@10.0.0.1:9093,2@10.0.0.2:9093 /mnt/c1/kraft /mnt/c2/kraft

    Exit status:
      0    complete: the copies agree, and a majority of the voters is among them; with --voters,
           these vote already, or with --apply, it was done
      1    complete: copies diverge or are damaged, are of several clusters, or are fewer than a
           majority; with --voters, something is to be done
      2
      4    incomplete: some input could not be read, or holds no metadata log; nothing was written
      5    refused: it would not be safe, or a broker holds the log dir
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
