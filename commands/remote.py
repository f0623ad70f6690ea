"""``logtool remote``: tiered storage. Only ``restore`` writes, and nothing in a log dir."""

from enum import StrEnum
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.lazy_group import add, help_text, new_app
from logtool.commands.program.spread import Without, spread
from logtool.findings import Severity
from logtool.lazy_dataclass import dataclass


class PluginName(StrEnum):
    """Storage plugins whose objects logtool knows."""

    AIVEN = "aiven"
    LOCAL = "local"


class ContentLevel(StrEnum):
    """The depth of a check of the log of a segment."""

    BATCHES = "batches"
    RECORDS = "records"


At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="Show the state at TIME, by the timestamps of the records: milliseconds, a time such"
        " as 2026-11-22T10:30:00Z (UTC without a zone), a date, or -2h (also s, m, d, w).",
    ),
]
Segments = Annotated[
    bool, typer.Option("--segments", help="Also show a row for each remote segment.")
]

Rsm = Annotated[
    PluginName,
    typer.Option(
        "--rsm",
        help="The storage plugin that wrote the objects: that of Aiven, or LocalTieredStorage,"
        " which Kafka has for tests.",
    ),
]
Prefix = Annotated[
    str,
    typer.Argument(
        metavar="PREFIX",
        help="Folder or URL below which the objects are, such as s3://bucket/prefix.",
        show_default=False,
    ),
]
MetadataDirs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH...",
        help="Log dirs with the metadata of the segments; a local path or a URL. Default: the log"
        " dirs in --broker-config, otherwise none: the objects are checked by themselves.",
        show_default=False,
    ),
]
LevelOption = Annotated[
    ContentLevel,
    typer.Option("--level", help="batches: check each batch. records: also decode each record."),
]


@dataclass(frozen=True, slots=True)
class MetadataInputs(options.Inputs):
    """Log dirs that may be left out."""

    paths: MetadataDirs = None


LeftDirs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH...",
        help="Log dirs that are left of the cluster, of brokers and of a controller. Default: the"
        " log dirs in --broker-config, otherwise none: all partitions in PREFIX count as lost.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class RestoreInputs(options.Inputs):
    """Log dirs that are left, none if all are lost."""

    paths: LeftDirs = None


def remote() -> None:
    """Show and check what tiered storage holds, and what only it holds."""


@spread
def lineage(
    *,
    inputs: options.Inputs,
    at: At = None,
    segments: Segments = False,
    fail_on: options.FailOn = Severity.WARNING,
    running: Annotated[options.Running, Without("jobs")],
    printing: options.Printing,
) -> None:
    """Show where each range of offsets is: in remote storage, in local segments, or nowhere.

    logtool replays the records of __remote_log_metadata in log dirs of one cluster as brokers do,
    and compares the remote segments of each partition with its local segments, its log start offset
    and its leader epochs. Give the log dirs of all brokers: each has some partitions of the topic.

    A range is in 'both' parts, only in the 'remote' or the 'local' part, 'hidden', 'nowhere',
    'deleted' from remote storage with nothing before it, or 'unknown', because the topic lacks
    older records. Hidden offsets are in remote storage, but a local segment is missing between
    others: consumers skip them.
    Findings are: offsets that are nowhere or hidden; leader epochs that are missing, so that the
    broker deletes remote segments; copies and deletions that did not finish; segments that brokers
    do not use; segments of deleted topics; segments that were deleted although retention keeps
    them; records that brokers drop or cannot read; and partitions of the topic that are absent.

    Examples:
      logtool remote lineage /mnt/broker-1 /mnt/broker-2 /mnt/broker-3
      logtool remote lineage --topic orders --segments /var/lib/kafka/data
      logtool remote lineage --at 2026-11-22T10:30:00Z --json /var/lib/kafka/data

    The state at a moment:

    --at replays the records before the first one with a later timestamp. The local part of that
    moment is not known, so only the remote part is shown.

    Deletions:

    logtool compares a deletion with retention.ms and retention.bytes of today, and names it only if
    both keep the segment whatever the size of the local part was. If a setting may be in the
    broker's own file, give it with --broker-config.

    Exit status:
      0    complete: nothing found at or above --fail-on
      1    findings at or above --fail-on
      2
      4    ...; or no partition of __remote_log_metadata is there
      6
      130

    """
    from logtool.commands.views.remote_lineage import run

    status = run(inputs, running, printing, at=at, segments=segments, fail_on=fail_on)
    raise typer.Exit(status)


@spread
def verify(
    *,
    prefix: Prefix,
    inputs: MetadataInputs,
    rsm: Rsm,
    level: LevelOption = ContentLevel.BATCHES,
    fail_on: options.FailOn = Severity.WARNING,
    running: Annotated[options.Running, Without("jobs")],
    printing: options.Printing,
) -> None:
    """Check the objects of tiered storage, and compare them with __remote_log_metadata.

    PREFIX is where the storage plugin writes; each PATH is a log dir of the cluster. Without a PATH
    the objects are checked by themselves: each segment has all its objects, sizes and manifest
    agree, every batch is whole, and indexes fit the log. With log dirs, every copied segment must
    have its objects, and every object must belong to a segment; sizes, offsets and leader epochs
    must agree.

    If the plugin encrypts, logtool has no key: it checks objects, sizes and manifests, and says how
    many segments it could not read.

    Examples:
      logtool remote verify --rsm aiven s3://bucket/tiered /mnt/broker-1 /mnt/broker-2
      logtool remote verify --rsm aiven --topic orders s3://bucket/tiered
      logtool remote verify --rsm local /tmp/kafka-tiered-storage /var/lib/kafka/data

    Exit status:
      0    complete: nothing found at or above --fail-on
      1    findings at or above --fail-on
      2
      4    ...; or no object of the plugin is there
      6
      130

    """
    from logtool.commands.views.remote_verify import run

    status = run(prefix, inputs, running, printing, plugin=rsm, level=level.value, fail_on=fail_on)
    raise typer.Exit(status)


@spread
def rebuild_plan(
    *,
    prefix: Prefix,
    inputs: MetadataInputs,
    rsm: Rsm,
    running: Annotated[options.Running, Without("jobs")],
    printing: options.Printing,
) -> None:
    """Show what a bucket holds of a lost cluster, and what a new one lacks to read it.

    PREFIX is where the storage plugin wrote; each PATH is a log dir that is left of the cluster, of
    a broker or of a controller. For each partition the command shows the offsets and leader epochs
    of its segments; for each topic its id, its partitions, and its settings as far as a metadata
    log has them. Without a PATH only the objects speak. It changes nothing.

    A broker finds a remote segment if the topic has the same id, if __remote_log_metadata has the
    records of the segment and as many partitions as before, and if the leader has the leader epochs
    of the segment. No tool of Kafka makes any of the three: they are restored with log dirs.
    'logtool remote restore' makes partition dirs that have the leader epochs.

    Examples:
      logtool remote rebuild-plan --rsm aiven s3://bucket/tiered /mnt/broker-1 /mnt/broker-2
      logtool remote rebuild-plan --rsm aiven --json s3://bucket/tiered /mnt/controller-1
      logtool remote rebuild-plan --rsm local /tmp/kafka-tiered-storage

    What is lacking:

      topic-id       no metadata log that was given has the topic with this id. An empty cluster
                     that begins with a copy of __cluster_metadata-0 has it
      records        segments have no record in the log dirs. Give the log dirs of all brokers
      leader-epochs  no local copy has all leader epochs of the segments. A new replica takes them
                     from remote storage only if it is a follower; a leader without them deletes
                     the segments
      objects        segments with a record lack objects
      offsets        no segment has some offsets between the first and the last

    If a partition lacks something, its records can still be read from the objects, and produced to
    a topic of another cluster. 'logtool salvage' saves them, with a log dir that has a copy both
    parts as one log.

    Exit status:
      0    complete, whatever is lacking
      2
      4    ...; or no object of the plugin is there
      6
      130

    """
    from logtool.commands.views.remote_rebuild import run

    raise typer.Exit(run(prefix, inputs, running, printing, plugin=rsm))


@spread
def restore(
    *,
    prefix: Prefix,
    inputs: RestoreInputs,
    output: options.SavedTo,
    printing: options.Printing,
) -> None:
    """Make what local copies of tiered partitions lack, from remote storage.

    A leader without a local log deletes all remote segments of its partition seconds after its
    start: they have leader epochs that its log does not have. The command writes a new partition
    dir for each partition that has objects below PREFIX, and no copy in the log dirs PATH: an empty
    log behind the last remote offset, with the leader epochs and the producer snapshot that came
    with the last segment. A leader with this directory keeps the remote segments and serves them.
    If a copy that is there lacks them, it writes leader-epoch-checkpoint with the epochs of the
    remote segments and of the local batches, without which the leader deletes remote segments, and
    segments that are missing between local ones, with their indexes.

    Give the log dirs of all brokers that are left, and one of a controller: a partition with a
    whole copy there is left out, and so are deleted topics. Records that only the lost copies had
    stay lost: those from end_offset on. The command only reads PREFIX and PATH.

    Examples:
      logtool remote restore --output /mnt/back s3://bucket/tiered /mnt/broker-1 /mnt/controller-1
      logtool remote restore --output /mnt/back --topic orders s3://bucket/tiered

    Before the start:

    While the broker is stopped, move an empty partition dir that is in the way out of the log dir,
    copy the new directories into the log dir of a broker that has a replica (column replicas), and
    new files into the partition dirs that lack them, all files of a partition together. Let
    'logtool plan' show the start. The broker must own the files, and must start with the same
    metadata log: the topic must have the same id.

    Exit status:
      0    all were written, or no partition has lost its copies
      2
      4    ..., or DIR could not be written; or no object of the plugin is there
      5    refused: DIR is not empty, or is in a log dir
      130

    """
    from logtool.commands.views.remote_restore import run

    raise typer.Exit(run(prefix, inputs, printing, output=output))


app = new_app(help=help_text(remote))
app.callback(help=help_text(remote))(remote)
for _name, _function in (
    ("lineage", lineage), ("verify", verify), ("rebuild-plan", rebuild_plan), ("restore", restore),
):  # fmt: skip
    add(app, _name, _function)
