"""``logtool metadata``: the metadata log of a KRaft cluster. Writes nothing."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import parsing
from logtool.commands.program.lazy_group import add, help_text, new_app
from logtool.commands.program.spread import Without, spread
from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass

LARGEST = 2**63 - 1
"""Offsets have 64 bits."""

Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="GLOB",
        help="Show only the topics that match, by name or by id; repeatable.",
    ),
]
ShowSecrets = Annotated[
    bool,
    typer.Option(
        "--show-secrets",
        help="Also show secrets: salts and keys of SCRAM credentials, ids of delegation "
        "tokens, values of settings that are passwords or keys, and values of settings that "
        "Kafka does not define, such as those of plugins.",
    ),
]
Offset = Annotated[
    int | None,
    typer.Option(
        "--offset",
        metavar="N",
        min=0,
        max=LARGEST,
        help="Show the state after the record at this offset.",
    ),
]
Timestamp = Annotated[
    str | None,
    typer.Option(
        "--timestamp",
        metavar="T",
        help="Show the state at this time: milliseconds, a time such as 2026-11-22T10:30:00Z"
        " (UTC without a zone), a date, -2h (also s, m, d, w), now, today or yesterday.",
    ),
]
Offsets = Annotated[
    str | None,
    typer.Option(
        "--offset",
        metavar="A..B",
        help="Compare the states of one PATH after the record at offset A and after the "
        "record at offset B.",
    ),
]
Given = Annotated[options.Inputs, Without("topic", "exclude_topic", "partition")]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Options for the part of an image to show, and for its secrets."""

    topic: Topics = None
    show_secrets: ShowSecrets = False

    @property
    def topics(self) -> tuple[str, ...]:
        """Return the globs and ids."""
        return tuple(self.topic or ())


def metadata() -> None:
    """Show the KRaft metadata log: topics, brokers, settings, and their changes.

    The metadata log is in __cluster_metadata-0, in one log dir of each node, together with its
    snapshots. Every command takes that directory, a log dir that contains it, or a snapshot
    (.checkpoint).
    """


@spread
def show(*, inputs: Given, chosen: Chosen, printing: options.StillPrinting) -> None:
    """Print the current state in a metadata log: topics, partitions, brokers, settings.

    The state results from the newest complete snapshot and the log after it: voters of the quorum,
    features, controllers, brokers (fenced or not, with log dirs, and whether these are cordoned),
    topics with ids, partitions with leader, ISR and eligible leader replicas, settings, quotas,
    ACLs, users with SCRAM credentials, delegation tokens, and the next free producer id. Secrets
    are left out unless --show-secrets is given.

    The files do not contain the committed offset of the metadata log: if the cluster has several
    controllers, records after the newest snapshot may be uncommitted. A record that a broker could
    not apply is a finding with file and byte.

    Examples:
      logtool metadata show /var/lib/kafka/data
      logtool metadata show --topic orders /var/lib/kafka/data
      logtool metadata show --json data/__cluster_metadata-0/*-0000000003.checkpoint

    Exit status:
      0    everything was printed
      1    a record cannot be applied, records are missing, or the log is damaged
      2
      4
      130

    """
    from logtool.commands.views.metadata import run_show

    raise typer.Exit(run_show(inputs, printing, chosen.topics, show_secrets=chosen.show_secrets))


@spread
def at(
    *,
    inputs: Given,
    offset: Offset = None,
    timestamp: Timestamp = None,
    chosen: Chosen,
    printing: options.StillPrinting,
) -> None:
    """Print the state in a metadata log at an offset or a time.

    The output is what 'logtool metadata show' would have printed at that moment. States older than
    the oldest snapshot are not available, unless the log begins at offset 0.

    Examples:
      logtool metadata at --offset 4711 /var/lib/kafka/data
      logtool metadata at --timestamp -2h --topic orders /var/lib/kafka/data

    Exit status:
      0    everything was printed
      1    a record cannot be applied, records are missing, or the log is damaged
      2
      4
      130

    """
    from logtool.commands.views.metadata import run_show

    if (offset is None) == (timestamp is None):
        raise UsageError("give one of --offset and --timestamp")
    time_ms, meaning = None, None
    if timestamp is not None:
        time_ms, meaning = parsing.parse_moment("--timestamp", timestamp)
    status = run_show(
        inputs, printing, chosen.topics,
        show_secrets=chosen.show_secrets, offset=offset, time_ms=time_ms, meaning=meaning,
    )  # fmt: skip
    raise typer.Exit(status)


@spread
def log(*, inputs: Given, chosen: Chosen, printing: options.StillPrinting) -> None:
    """Print what each record of a metadata log changed, in order.

    For each record, the command prints offset, leader epoch, time, the changed object, and the old
    and new value of each field. Records of a transaction are printed at the end of the transaction,
    with their own offsets; records of an aborted transaction are not printed. NoOpRecords, which
    controllers write all the time, are left out.

    With --topic, the command prints the history of a topic, even of a deleted one: creation,
    settings, every change of its partitions, deletion. If several topics had the same name, give
    the topic id. The history begins with the oldest record that can be applied; a note reports if
    that record follows a snapshot.

    Examples:
      logtool metadata log /var/lib/kafka/data
      logtool metadata log --topic orders -f ndjson /var/lib/kafka/data
      logtool metadata log --topic J8aAPcfLQt2bqs1JT_rMgQ /var/lib/kafka/data

    Exit status:
      0    everything was printed
      1    a record cannot be applied, records are missing, or the log is damaged
      2
      4
      130

    """
    from logtool.commands.views.metadata import run_log

    raise typer.Exit(run_log(inputs, printing, chosen.topics, show_secrets=chosen.show_secrets))


@spread
def diff(
    *, inputs: Given, offset: Offsets = None, chosen: Chosen, printing: options.StillPrinting
) -> None:
    """Print the differences of two metadata logs, two snapshots, or two offsets of one log.

    Give two paths, or one path with --offset A..B. Objects that exist only in the first are
    'removed', objects that exist only in the second are 'added'; for objects in both, the differing
    fields are printed.

    Examples:
      logtool metadata diff /mnt/controller-1/data /mnt/controller-2/data
      logtool metadata diff --offset 4711..4805 /var/lib/kafka/data
      logtool metadata diff old.checkpoint new.checkpoint --topic orders

    Exit status:
      0    no difference
      1    differences, or one of the logs is damaged
      2
      4    an input could not be read
      130

    """
    from logtool.commands.views.metadata import run_diff

    status = run_diff(
        inputs, printing, chosen.topics, show_secrets=chosen.show_secrets, offsets=offset
    )
    raise typer.Exit(status)


app = new_app(help=help_text(metadata))
for _name, _function in (("show", show), ("log", log), ("at", at), ("diff", diff)):
    add(app, _name, _function)
