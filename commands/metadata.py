"""``logtool metadata``: what the metadata log of a KRaft cluster says. Writes nothing."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import parsing
from logtool.commands.program.lazy_group import help_text, new_app
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
        help="Show only what is of the topics that match, by name or by id; repeatable.",
    ),
]
ShowSecrets = Annotated[
    bool,
    typer.Option(
        "--show-secrets",
        help="Show what is left out otherwise: salts and keys of SCRAM, ids of delegation tokens, "
        "values of sensitive settings.",
    ),
]
Offset = Annotated[
    int | None,
    typer.Option(
        "--offset",
        metavar="N",
        min=0,
        max=LARGEST,
        help="Show what was known once the record at this offset was applied.",
    ),
]
Timestamp = Annotated[
    str | None,
    typer.Option(
        "--timestamp",
        metavar="T",
        help="Show what was known at this time: milliseconds, a time such as 2026-11-22T10:30:00Z "
        "(UTC without a zone), a date, -2h (also s, m, d, w), now, today or yesterday.",
    ),
]
Offsets = Annotated[
    str | None,
    typer.Option(
        "--offset",
        metavar="A..B",
        help="Compare what one PATH says at two offsets: once the record at A was applied, and "
        "once that at B was.",
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
    """Show the metadata log of a KRaft cluster: topics, brokers, settings, and how they changed.

    It lies in __cluster_metadata-0 of one log dir of each node, with snapshots of it. Every command
    takes that directory, a log dir that holds it, or a snapshot (.checkpoint).
    """


@spread
def show(*, inputs: Given, chosen: Chosen, printing: options.StillPrinting) -> None:
    """Print what a metadata log says at its end: topics, partitions, brokers and settings.

    The image is what the newest whole snapshot and the log behind it add up to: the voters of the
    quorum, features, controllers, brokers (fenced, with their log dirs, which of them are
    cordoned), topics with ids, partitions with leader, ISR and eligible leader replicas, settings,
    quotas, ACLs, users with SCRAM credentials, delegation tokens, and the next free producer id.

    How far the log is committed is not on disk: what lies behind the newest snapshot may be records
    that the controllers never agreed on, unless there is one controller only. A record that a
    broker could not apply is a finding, which names its file and byte.

    Secrets are left out unless --show-secrets is given.

    Examples:
      logtool metadata show /var/lib/kafka/data
      logtool metadata show --topic orders /var/lib/kafka/data
      logtool metadata show --json data/__cluster_metadata-0/*-0000000003.checkpoint

    Exit status:
      0    everything was printed
      1    a record cannot be applied, records are missing, or the log is damaged
      2
      4    some input could not be read, or nothing matched
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
    """Print what a metadata log said at an offset or a time.

    Prints what 'logtool metadata show' would have printed then. What is older than the oldest
    snapshot cannot be told, unless the log reaches back to offset 0.

    Examples:
      logtool metadata at --offset 4711 /var/lib/kafka/data
      logtool metadata at --timestamp -2h --topic orders /var/lib/kafka/data

    Exit status:
      0    everything was printed
      1    a record cannot be applied, records are missing, or the log is damaged
      2
      4    some input could not be read, or nothing matched
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

    For each record: its offset, leader epoch and time, what it is about, and each field with what
    it was before. Records of a transaction come when it ends, with their own offsets; those of one
    that was aborted do not come. NoOpRecords, which controllers write all the time, are left out.

    With --topic, prints the history of a topic: its creation, its settings, every change of its
    partitions and its deletion, also of one that is no more. Give its id for one of several topics
    that had the same name.

    The history begins with the oldest record that can be applied. Where that stands behind a
    snapshot, a note says so.

    Examples:
      logtool metadata log /var/lib/kafka/data
      logtool metadata log --topic orders -f ndjson /var/lib/kafka/data
      logtool metadata log --topic J8aAPcfLQt2bqs1JT_rMgQ /var/lib/kafka/data

    Exit status:
      0    everything was printed
      1    a record cannot be applied, records are missing, or the log is damaged
      2
      4    some input could not be read, or nothing matched
      130

    """
    from logtool.commands.views.metadata import run_log

    raise typer.Exit(run_log(inputs, printing, chosen.topics, show_secrets=chosen.show_secrets))


@spread
def diff(
    *, inputs: Given, offset: Offsets = None, chosen: Chosen, printing: options.StillPrinting
) -> None:
    """Print what differs between two metadata logs, two snapshots, or two offsets of one log.

    Give two paths, or one path with --offset A..B. What is only in the first is 'removed', what is
    only in the second is 'added'; of what is in both, the fields that differ are shown.

    Examples:
      logtool metadata diff /mnt/controller-1/data /mnt/controller-2/data
      logtool metadata diff --offset 4711..4805 /var/lib/kafka/data
      logtool metadata diff old.checkpoint new.checkpoint --topic orders

    Exit status:
      0    they are the same
      1    they differ, or one of them is damaged
      2
      4    some input could not be read
      130

    """
    from logtool.commands.views.metadata import run_diff

    status = run_diff(
        inputs, printing, chosen.topics, show_secrets=chosen.show_secrets, offsets=offset
    )
    raise typer.Exit(status)


app = new_app(help=help_text(metadata))
for _name, _function in (("show", show), ("log", log), ("at", at), ("diff", diff)):
    app.command(_name, help=help_text(_function))(_function)
