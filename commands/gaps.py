"""``logtool gaps``: every missing offset and why. Writes nothing but --output."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.commands.program import broker_config, parsing
from logtool.commands.program.broker_config import BrokerConfig
from logtool.commands.program.spread import spread
from logtool.disk import files
from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass
from logtool.log.redpanda import REDPANDA

if TYPE_CHECKING:
    from logtool.commands.output import Report
    from logtool.gaps.ghosts import Ghosts
    from logtool.gaps.objects import PartitionGaps
    from logtool.gaps.run import GapOptions, Gaps, Result
    from logtool.running.summary import ActionSummary


class LevelChoice(StrEnum):
    """How deep to look."""

    BATCHES = "batches"
    RECORDS = "records"


class IsolationChoice(StrEnum):
    """Whose view it is; the names are Kafka's."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class PolicyChoice(StrEnum):
    """What a topic is, or was, set to."""

    COMPACT = "compact"
    DELETE = "delete"


class GhostEpochChoice(StrEnum):
    """Whose epoch a ghost has."""

    FOLLOWING = "following"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True, slots=True)
class Shown:
    """What of the gaps is looked for and shown."""

    level: Annotated[
        LevelChoice,
        typer.Option(
            "--level",
            help="batches: of a batch that lost records, how many; records: decode it and say "
            "which.",
        ),
    ] = LevelChoice.BATCHES
    isolation: Annotated[
        IsolationChoice,
        typer.Option(
            "--isolation",
            help="read_committed: list the offsets of markers and of aborted records too.",
        ),
    ] = IsolationChoice.READ_UNCOMMITTED
    max_batch_memory: options.MaxBatchMemory = options.MAX_BATCH_MEMORY
    cleanup_policy: Annotated[
        PolicyChoice | None,
        typer.Option(
            "--cleanup-policy",
            help="What the topics are, or were, set to; by default as the metadata log in the log "
            "dir says.",
        ),
    ] = None
    ghosts: Annotated[
        bool,
        typer.Option("--ghosts", help="Print the batches that would fill the gaps, one by one."),
    ] = False
    ghost_epoch: Annotated[
        GhostEpochChoice,
        typer.Option(
            "--ghost-epoch",
            help="Whose leader epoch a ghost has. following: that of the batch behind the gap, one "
            "ghost for one gap; checkpoint: where leader-epoch-checkpoint is sound, what it says.",
        ),
    ] = GhostEpochChoice.CHECKPOINT
    fill_losses: Annotated[
        bool,
        typer.Option(
            "--fill-losses",
            help="With --output: fill the gaps too that may mean loss, so that nobody sees them.",
        ),
    ] = False
    as_stored: Annotated[
        bool,
        typer.Option(
            "--as-stored",
            help="With --output: leave the ghosts out, as a follower does, which counts their "
            "offsets but does not store them.",
        ),
    ] = False
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            parser=options.local_path,
            help="Write one partition with its gaps filled as a log of its own, of Redpanda as a "
            "directory; must not exist.",
        ),
    ] = None
    rounds: Annotated[
        str | None,
        typer.Option(
            "--rounds",
            metavar="SIZE",
            help="Show the rounds in which a follower is recovered if each reads at most SIZE, "
            "such as 512K: what is read, the ghosts, and the offsets before and after.",
        ),
    ] = None
    follower: Annotated[
        Path | None,
        typer.Option(
            "--follower",
            metavar="DIR",
            parser=files.path_of,
            help="Show what the replica in the partition dir DIR would be sent from PATH, and how "
            "it would number it without ghosts.",
        ),
    ] = None

    def wanted(self, config: BrokerConfig) -> "GapOptions":
        """Return what the engine is to find out; UsageError for what makes no sense."""
        if self.fill_losses and self.as_stored:
            raise UsageError("--fill-losses and --as-stored contradict each other")
        for given, name in ((self.fill_losses, "--fill-losses"), (self.as_stored, "--as-stored")):
            if given and not self.output:
                raise UsageError(f"{name} is for --output")
        if self.rounds:
            parsing.parse_size("--rounds", self.rounds)
        from logtool.gaps.run import GapOptions

        return GapOptions(
            exact=self.level is LevelChoice.RECORDS,
            isolation=self.isolation is IsolationChoice.READ_COMMITTED,
            policy=None if self.cleanup_policy is None else str(self.cleanup_policy),
            max_batch_memory=parsing.parse_batch_memory(self.max_batch_memory),
            static=config.take(
                *broker_config.TIMESTAMPS,
                *([] if self.cleanup_policy else [broker_config.POLICY]),
            ),
        )


@spread
def gaps(
    *, inputs: options.AnyInputs, shown: Shown, running: options.Running, printing: options.Printing
) -> None:
    """List every missing offset of log dirs, partition dirs or logs, with the reason.

    From the log start to the log end, each offset is visible, is the marker of a transaction
    ("control"), or is missing: before the first batch, between batches or segments, or inside a
    batch whose records compaction removed. Reasons are compaction, retention (below the log start),
    segment-missing, truncation-hole, damage and unknown; the last four may mean loss. Three things
    show that a topic is or was compacted: the metadata log in the same log dir, by today's policy
    or an earlier one, the cleaner's checkpoint, and what only the cleaner leaves in batches.

    The table shows each partition with the gaps that may mean loss; -v shows all gaps. Timestamps
    far in the future or in another unit are told as infos, as verify tells them.

    Ghosts are the empty batches that would fill the gaps, as Redpanda's Raft recovery sends them: a
    header of 61 bytes that covers the offsets from a first through a last one. There is none behind
    the last batch. --ghost-epoch says which leader epoch they have; both are shown.

    --output writes the log of one partition, filled with ghosts, as one segment that 'logtool
    verify' accepts. Gaps that may mean loss stay unless --fill-losses is given. Every real batch
    stays byte for byte as it is, and what is damaged is left out. Kafka has no type for ghosts:
    they are written as what its cleaner leaves of an emptied batch, a header with 0 records, here
    of no producer and no time, which every broker and client reads and steps over. FILE is called
    by its first offset, as a segment is.

    Of Redpanda --output names a new directory with a segment for each one, ghosts of its own type
    between the batches. A gap before a segment goes to its head, with its term, as the RFC has it.
    No broker stores ghosts, and verify tells of each. With --as-stored there are none: that is what
    a follower of the RFC has on disk, every batch at the leader's offset.

    --rounds plays the recovery of a follower as the RFC does it: read, fill from the follower's
    next offset on, go on behind the last batch. A gap between two rounds is filled in the second.
    The follower is empty, or that of --follower.
    --follower shows what becomes of the log in a replica that numbers batches as they arrive, as
    Redpanda's does; Kafka's keeps the leader's offsets. Raft's offsets come with Kafka's, if known.

    Examples:
      logtool gaps /var/lib/kafka/data
      logtool gaps -v --level records --topic 'changelog*' /var/lib/kafka/data
      logtool gaps --ghosts --format ndjson data/orders-0 | jq 'select(.type == "ghost")'
      logtool gaps --output /tmp/filled/00000000000000000000.log data/orders-0
      logtool gaps --rounds 1M --topic orders /var/lib/kafka/data
      logtool gaps --follower /mnt/b/orders-0 /mnt/a/orders-0

    Exit status:
      0    complete, and no gap that may mean loss
      1    complete, with gaps that may mean loss
      2
      4    incomplete: nothing matched, some input could not be read, or --output not be written
      5    refused: --output is there, lies among files of a broker, or would be no sound log
      6
      130

    """
    from logtool.commands.output import Report
    from logtool.commands.views import gaps
    from logtool.gaps.run import Gaps
    from logtool.running.summary import ActionSummary

    settings, summary, given = printing.settings(), ActionSummary(), inputs.resolved()
    report = Report(settings=settings, view=gaps.make(settings), summary=summary, inputs=given)
    wanted, run = shown.wanted(inputs.broker), running.run(report)
    job = Gaps(given.paths, wanted, selection=given.selection, run=run, flavour=given.flavour)
    if shown.output:
        _check_target(shown.output, of_redpanda=given.output_flavour is not None)
    _list(report, summary, job, shown)
    raise typer.Exit(report.exit_status())


def _check_target(target: Path, *, of_redpanda: bool) -> None:
    # Not with the other imports: it brings along all that writes.
    from logtool.gaps import fill

    fill.check_target(target, of_redpanda=of_redpanda)


def _list(report: "Report", summary: "ActionSummary", job: "Gaps", shown: Shown) -> None:
    """Print the gaps of all partitions, partition by partition, and in the end the sums."""
    from logtool.commands.views import gaps
    from logtool.commands.views.findings import FurtherFindings
    from logtool.errors import UnreadableError

    printer, aside = _Printer(report, shown), FurtherFindings(report)
    with report:
        if (shown.output or shown.follower) and job.partitions > 1:
            raise UsageError(f"--output and --follower take one partition, not {job.partitions}")
        replica = job.log_end_of(shown.follower) if shown.follower else None
        for item in job:
            if isinstance(item, UnreadableError):
                report.unreadable(item)
            else:
                printer.partition(item, replica)
                for finding in item.findings:
                    aside.take(finding)
        summary.to_do = printer.totals.all.losses > 0
        for topic in printer.totals.topics():
            report.item(gaps.DOCUMENT.row(topic))
    for line, style in aside.last_lines():
        report.note(line, style)
    style = "error" if summary.to_do else "good" if summary.complete else "warning"
    for line in gaps.last_lines(printer.totals.all, summary):
        report.note(line, style)


class _Printer:
    """Prints partitions as they come, and adds them up."""

    def __init__(self, report: "Report", shown: Shown) -> None:
        from logtool.gaps.objects import Totals

        self._report = report
        self._shown = shown
        self.totals = Totals()

    def partition(self, result: "Result", replica: int | None) -> None:
        """Take one partition; `replica` is where the log of --follower ends."""
        from logtool.commands.views.gaps import DOCUMENT
        from logtool.gaps import ghosts, objects

        report, settings = self._report, self._report.settings
        brief = settings.format == "table" and not settings.verbose
        following = self._shown.ghost_epoch is GhostEpochChoice.FOLLOWING
        fillers = ghosts.of(result.ledger, result.subject.facts, following=following)
        about = objects.PartitionGaps(result, fillers)
        self.totals.add(about)
        report.item(DOCUMENT.row(about))
        for obj in objects.gap_objects(result, fillers, losses_only=brief):
            report.item(obj)
        for obj in objects.ghost_objects(result, fillers) if self._shown.ghosts else ():
            report.item(obj)
        if self._shown.rounds:
            self._rounds(result, fillers, replica or 0)
        if replica is not None:
            for obj in objects.stretch_objects(result, fillers, replica):
                report.item(obj)
        if self._shown.output:
            self._write(self._shown.output, result, fillers, about)
        summary = report.summary
        summary.partitions += 1
        summary.segments += result.segments
        summary.batches += result.ledger.batches
        summary.records += result.records
        summary.bytes += result.bytes

    def _rounds(self, result: "Result", fillers: "Ghosts", start: int) -> None:
        from logtool.commands.views.gaps import DOCUMENT
        from logtool.errors import UnreadableError
        from logtool.gaps import objects

        most = parsing.parse_size("--rounds", self._shown.rounds or "")
        try:
            for one in objects.partition_rounds(result, fillers, start, most):
                self._report.item(DOCUMENT.row(one))
        except UnreadableError as error:  # it has changed since it was read
            self._report.unreadable(error)

    def _write(
        self, target: Path, result: "Result", fillers: "Ghosts", about: "PartitionGaps"
    ) -> None:
        from logtool.commands.views import gaps
        from logtool.gaps import fill, fill_redpanda, ghosts

        losses_too = self._shown.fill_losses
        chosen = fillers if losses_too else ghosts.harmless(fillers, result.ledger)
        as_stored = self._shown.as_stored
        if result.subject.partition.flavour is REDPANDA:
            size = fill_redpanda.write(result, chosen, target, stored=as_stored)
        else:
            size = fill.write(result, ghosts.none(fillers) if as_stored else chosen, target)
        stored = gaps.stored(target, size, len(fillers))
        filled = gaps.written(target, size, about, losses_too=losses_too)
        self._report.note(stored if as_stored else filled)
