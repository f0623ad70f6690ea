"""``logtool cluster``: the volumes of all nodes together, before they start. Writes nothing."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import start_options
from logtool.commands.program.spread import spread
from logtool.findings import Severity
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ClusterDirs(options.LocalInputs):
    """Arguments for the directories to read: DIR in place of PATH."""

    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR...",
            help="All log dirs of all brokers and controllers. ID=DIR says for which node a log"
            " dir is meant; repeat the id for several log dirs of a node.",
            show_default=False,
        ),
    ] = None


Controller = Annotated[
    int | None,
    typer.Option(
        "--controller",
        metavar="ID",
        help="Assume that this controller wins the election, also if too few voters are given, or"
        " if others are ahead of it. Default: the one with the longest metadata log that may win.",
    ),
]


@spread
def cluster(
    *,
    inputs: ClusterDirs,
    controller: Controller = None,
    kafka_version: start_options.KafkaVersion = None,
    fail_on: options.FailOn = Severity.WARNING,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Judge the volumes of all nodes before the start: who leads, what is lost.

    Give the log dirs of all brokers and controllers, for example restored volumes that were copied
    at different moments. The command names the node of each volume, the controllers that may win
    the election, and for each partition the replicas that controllers may elect, what each of them
    would cut from the others, and which copies become strays. It ends with the steps of a start
    that loses least. All brokers must be stopped, or the log dirs must be copies.

    Offsets of the volumes are compared as 'logtool watermark' does, copies of the metadata log as
    'logtool quorum' does, and the start of each node is that of 'logtool plan'.

    Examples:
      logtool cluster 1=/mnt/broker-1 2=/mnt/broker-2 3=/mnt/broker-3
      logtool cluster 1=/mnt/a/disk-1 1=/mnt/a/disk-2 2=/mnt/b/disk-1 9=/mnt/controller
      logtool cluster --json /mnt/*/kafka | jq '.items[] | select(.type == "step")'

    Volumes:

      other-cluster  cluster.id differs from that of most volumes
      swapped        node.id is not the ID that was given; the node does not start with this volume
      doubled        another volume of the same node has the same directory.id, or also a metadata
                     log; logtool judges the volume with the newer metadata log
      moved          the metadata log knows the directory.id of another node
      ahead          it has a snapshot of the metadata log that no controller has; if the metadata
                     log names the voters (kraft.version 1), its node may find no controller, and
                     a broker then ends
      unidentified   meta.properties does not show which log dir it is. If its partitions are
                     exactly those of one directory.id that no other volume has, a step writes the
                     file again; else the volume takes no part until it is given as ID=DIR
      empty          a directory without a file: a new disk in place of a volume that is lost for
                     good. The node makes empty logs on it, once it is formatted
      absent         a node of the cluster has this volume, and it was not given

    While a volume that is absent or unidentified may hold a longer copy of a partition, no step
    requests an unclean election of it, or starts the broker that lacks the volume. A node that is
    controller and broker in one process starts with the controllers. A step formats a new disk only
    after the elections: before them, its broker may lead with an empty log.

    All other states are those of 'logtool dirs'. The time of a volume is that of the last record in
    its copy of the metadata log, which controllers extend twice a second.

    Partitions:

      in-order           no leader that controllers may elect cuts anything
      may-lose           such a leader cuts offsets from others that may have been acknowledged
      loses              such a leader lacks acknowledged records
      leaderless         only an unclean election can give the partition a leader
      may-be-leaderless  the last replica in sync may be on a volume that is absent
      stray              copies get names that end in -stray: the metadata log of the controllers
                         does not have their topic id
      no-copy            no volume has a copy

    Brokers fetch the metadata log of the controller that wins the election before they load their
    partitions: of those that may win, the one with the longest metadata log (see --controller). A
    copy of a node without a vote never counts, unless no voter is given.
    After a stop of all nodes, controllers take all brokers out of the ISR one by one and keep the
    last one, so that any replica in sync may lead, also one whose volume is older than the others.
    With eligible leader replicas (KIP-966) the last leader is elected by itself only once all
    eligible replicas came back. A replica in sync without a copy begins with an empty log, and may
    lead with it.

    The loss with each leader counts from the highest offset that any log or checkpoint shows as
    acknowledged. What no volume has is lost with every leader.

    Logs below the recovery points are not read, because no start reads them: a step names the
    'logtool verify' that checks them. Where a start cuts sound records behind damage, or a log has
    lost its end, the first steps fill the replica from another given volume, also from one that is
    doubled or whose copy becomes a stray; run the command again then.

    Exit status:
      0    complete: the nodes may start in any order, and nothing is lost
      1    a node refuses to start, a volume is in the wrong place, a leader loses or may lose
           records, a copy becomes a stray, a disk is to be formatted, or there are findings
      2
      4    incomplete: a volume is absent, is not identified, or could not be read
      6
      130

    """
    from logtool.commands.views.cluster import run

    raise typer.Exit(
        run(
            inputs,
            running,
            printing,
            kafka_version=kafka_version,
            controller=controller,
            fail_on=fail_on,
        )
    )
