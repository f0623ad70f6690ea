"""``logtool quorum``: the controllers' copies of the metadata log. Writes nothing."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.commands.program import broker_config
from logtool.commands.program.spread import Without, spread

if TYPE_CHECKING:
    from logtool.commands.output import Report
    from logtool.disk.node_dir import NodeDir
    from logtool.quorum.verdict import Quorum
    from logtool.quorum.voters import Voter
    from logtool.running.run import Run


@dataclass(frozen=True, slots=True)
class Copies(options.LocalInputs):
    """What is looked at: DIR in place of PATH."""

    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR...",
            help="Log dirs that hold __cluster_metadata-0, one of each node, or those directories "
            "themselves; ID=DIR says whose it is.",
            show_default=False,
        ),
    ] = None


@spread
def quorum(
    *,
    inputs: Annotated[Copies, Without("topic", "exclude_topic", "partition")],
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
    records that no copy here has.

    A log counts up to its first damage, for a controller cuts off the rest when it starts.

    Examples:
      logtool quorum /mnt/c1/kraft /mnt/c2/kraft /mnt/c3/kraft
      logtool quorum 1=/mnt/c1/__cluster_metadata-0 4=/mnt/broker-4/data
      logtool quorum --broker-config controller.properties --json

    Exit status:
      0    complete: the copies agree, and a majority of the voters is among them
      1    complete: copies diverge or are damaged, are of several clusters, or are fewer than a
           majority
      2    the command line makes no sense
      4    incomplete: some input could not be read, or holds no metadata log
      6    --max-duration ran out; nothing said of the rest
      130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)

    """
    from logtool.commands.output import Report
    from logtool.commands.views import quorum
    from logtool.running.summary import ActionSummary

    settings, sources = printing.settings(), inputs.node_dirs()
    given = inputs.resolved([source.path for source in sources])
    configured = _configured(inputs)
    summary = ActionSummary()
    report = Report(settings=settings, view=quorum.make(settings), summary=summary, inputs=given)
    with report:
        found = _read(report, sources, running.run(report.show), configured)
        summary.to_do = bool(found and found.is_grave)
    if found:
        _conclude(report, found)
    raise typer.Exit(report.exit_status())


def _configured(inputs: Copies) -> "tuple[Voter, ...] | None":
    from logtool.quorum.voters import parse_named

    key = broker_config.VOTERS
    text = inputs.broker.take(key).get(key)
    return parse_named(text, key) if text else None


def _read(
    report: "Report",
    sources: "list[NodeDir]",
    run: "Run",
    configured: "tuple[Voter, ...] | None",
) -> "Quorum | None":
    """Print each copy and the verdict; None where there is no copy, or time is over."""
    from logtool.errors import UnreadableError
    from logtool.quorum.copy import MetadataCopy, read
    from logtool.quorum.verdict import judge
    from logtool.running.workers import OutOfTimeError

    copies: list[MetadataCopy] = []
    summary = report.summary
    try:
        for item in read(sources, run):
            if isinstance(item, UnreadableError):
                summary.add(item)
                report.unreadable(item)
                continue
            copies.append(item)
            summary.partitions += 1
            summary.segments += item.batches.segments
            summary.batches += len(item.batches.batches)
            summary.records += item.batches.records
            summary.bytes += item.batches.bytes
            report.item(item.as_json())
    except OutOfTimeError:
        summary.out_of_budget = True
        return None
    if not copies:
        return None
    found = judge(copies, configured)
    report.item(found.as_json())
    return found


def _conclude(report: "Report", found: "Quorum") -> None:
    from logtool.formats import wording

    count = wording.count(len(found.copies), "copy", "copies")
    if len(found.clusters) > 1:
        report.note(f"the copies are of {len(found.clusters)} clusters", "error")
    state = "a person must act before these controllers serve" if found.is_grave else "in order"
    report.note(f"{count}: {state}", "error" if found.is_grave else "good")
