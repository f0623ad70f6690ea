"""``logtool recover``: what a broker would do at its next start, done now; with --apply only."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.commands.program import parsing, starting_broker
from logtool.commands.program.broker_config import BrokerConfig
from logtool.commands.program.spread import spread
from logtool.commands.program.strategy import Strategy
from logtool.disk import shell
from logtool.errors import UsageError
from logtool.formats.java_text import parse_long
from logtool.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from logtool.commands.output import Report
    from logtool.formats.names import TopicPartition
    from logtool.log.inputs import GivenPaths
    from logtool.log.selection import Selection
    from logtool.node.options import StartOptions
    from logtool.running.summary import ActionSummary
    from logtool.startup.log_dir_start import Points
    from logtool.startup.recover import Consent, Recover


@dataclass(frozen=True, slots=True)
class Begin:
    """Where recovery begins."""

    from_checkpoint: Annotated[
        bool,
        typer.Option(
            "--from-checkpoint",
            help="From the segment that holds the recovery point of "
            "recovery-point-offset-checkpoint; 0 without a row. The default.",
        ),
    ] = False
    from_offset: Annotated[
        list[str] | None,
        typer.Option(
            "--from-offset",
            metavar="[TOPIC-PARTITION=]N",
            help="From the segment that holds offset N, whatever the marker and the checkpoint "
            "say; repeatable. Without a name it is for the one partition that is selected.",
        ),
    ] = None
    truncate_to: Annotated[
        list[str] | None,
        typer.Option(
            "--truncate-to",
            metavar="TOPIC-PARTITION=OFFSET",
            help="Let this log end at OFFSET, as a follower does to agree with its leader, and "
            "recover what stays; a batch that reaches OFFSET goes as a whole. Repeatable.",
        ),
    ] = None
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="From the first segment of every log, whatever marker and checkpoint say.",
        ),
    ] = False

    @property
    def clean(self) -> bool | None:
        """Return False where the marker of a clean shutdown says nothing, else None."""
        return False if self.full or self.from_offset or self.truncate_to else None

    @property
    def named_by(self) -> str:
        """Return the option that names partitions."""
        return "--truncate-to" if self.truncate_to else "--from-offset"

    @property
    def offsets(self) -> "dict[TopicPartition, int]":
        """Return where the logs that --truncate-to names are to end."""
        named = dict(_pair(text, "--truncate-to") for text in self.truncate_to or ())
        if None in named:
            raise UsageError("--truncate-to: name the partition: TOPIC-PARTITION=OFFSET")
        if len(named) < len(self.truncate_to or ()):
            raise UsageError("--truncate-to is given twice for one partition")
        return {key: offset for key, offset in named.items() if key}

    def points(self, selection: "Selection") -> "tuple[Points, Selection]":
        """Return where recovery begins, and the selection narrowed to what was named."""
        given = self.from_offset is not None, self.truncate_to is not None
        if sum((self.from_checkpoint, self.full, *given)) > 1:
            raise UsageError(
                "--from-checkpoint, --from-offset, --full and --truncate-to exclude each other"
            )
        if self.truncate_to is not None:
            ends = self.offsets
            narrowed = replace(selection, keys=frozenset(ends))
            return lambda key, row: min(row or 0, ends[key]), narrowed
        if self.full:
            return lambda key, row: 0, selection
        if self.from_offset is None:
            return lambda key, row: row or 0, selection
        named = dict(_pair(text) for text in self.from_offset)
        if len(named) < len(self.from_offset):
            raise UsageError("--from-offset is given twice for one partition")
        alone = named.pop(None, None)
        if alone is not None:
            if named:
                raise UsageError(
                    "--from-offset N is for one partition; name each: TOPIC-PARTITION=N"
                )
            return _One(alone), selection
        return lambda key, row: named[key], replace(selection, keys=frozenset(filter(None, named)))


@dataclass(frozen=True, slots=True)
class Way(Strategy):
    """How a log is recovered, and where it is cut."""

    cut_precisely: Annotated[
        bool,
        typer.Option(
            "--cut-precisely/--cut-as-broker",
            help="Where offsets go backwards a broker empties the whole segment; cut only what is "
            "out of order. And drop segments that were truncated away and came back.",
        ),
    ] = True

    fill_from: Annotated[
        list[Path] | None,
        typer.Option(
            "--fill-from",
            metavar="DIR",
            parser=options.local_path,
            help="Put batches of another copy of the partition, in this log dir or partition dir, "
            "in the place of damage, where they are proved to be of the same log; repeatable.",
        ),
    ] = None

    def assumed(
        self, broker: starting_broker.StartingBroker, begin: Begin, config: BrokerConfig
    ) -> "StartOptions":
        """Return what is assumed of the start; UsageError for what does not go together."""
        if self.supplements and begin.truncate_to:
            raise UsageError(
                "--truncate-to goes with --strategy rebuild only: what supplement keeps was "
                "written for a log that goes on behind that offset"
            )
        if self.fill_from and (self.supplements or begin.truncate_to):
            raise UsageError(
                "--fill-from goes with neither --strategy supplement nor --truncate-to"
            )
        return replace(
            self.chosen(broker.assumed(config)),
            cut_precisely=self.cut_precisely,
            clean=begin.clean,
            truncate_to=begin.offsets,
            fill_from=tuple(self.fill_from or ()),
        )


@dataclass(frozen=True, slots=True)
class Consented:
    """What may be done."""

    apply: options.Apply = False
    accept_loss: Annotated[
        list[str] | None,
        typer.Option(
            "--accept-loss",
            metavar="TOPIC-PARTITION",
            help="With --apply: let this partition lose the records that the plan says; "
            "repeatable.",
        ),
    ] = None
    mark_clean: Annotated[
        bool,
        typer.Option(
            "--mark-clean",
            help="Check the logs that need no recovery too, then write recovery points and the "
            "clean-shutdown marker, so that a broker recovers nothing.",
        ),
    ] = False
    undo_dir: options.UndoDir = None

    def consent(self) -> "Consent":
        """Return it for the engine; UsageError for a name that is no partition."""
        from logtool.startup.recover import Consent

        return Consent(
            apply=self.apply,
            accepted=frozenset(
                parsing.parse_topic_partition("--accept-loss", name)
                for name in self.accept_loss or ()
            ),
            mark_clean=self.mark_clean,
            undo_dir=self.undo_dir,
            command=shell.join(["logtool", *sys.argv[1:]]),
        )


@spread
def recover(
    *,
    inputs: options.AnyLocalInputs,
    begin: Begin,
    way: Way,
    broker: starting_broker.StartingBroker,
    consented: Consented,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Recover log dirs or partition dirs as a broker would, without a broker; can be undone.

    Without --apply it writes nothing and prints what it would do. With --apply it takes the lock of
    the broker and first saves whatever it changes in an undo directory beside the log dir. If it is
    killed, the same command finishes the work, or 'logtool undo' puts everything back. If records
    would be lost, it changes nothing in that log dir without --accept-loss.

    A segment is recovered from its first byte. A recovery point beyond the end of the log is
    lowered to it. With --strategy supplement, what indexes and snapshots hold is kept, and the log
    is played back from the smaller one of the checkpoints of transaction index and producer
    snapshot; all is still checked. With --trust-log only headers from there on are read.

    With --fill-from, the batches of another copy take the place of damage where offsets, leader
    epochs, CRCs and neighbours prove that it is the same log. Behind its last batch the log must be
    known to have gone on; without leader epochs, to that copy's high watermark. That copy is only
    read; see the guide logtool-recipes.

    With --truncate-to, a log is cut at an offset: its recovery point comes down first, the segments
    behind go, then the one with the offset is cut. With --mark-clean, points rise when all logs are
    done; the marker comes last. A segment that was truncated away and came back is dropped.

    In a directory of Redpanda it does what a start of Redpanda does, under its pid.lock; --full has
    every segment replayed. See 'logtool plan'.

    Log dirs given together are those of one broker. A log dir without which the broker would start
    is left alone. If anything in one of them stops it, none is marked clean.

    Examples:
      logtool recover /var/lib/kafka/data
      logtool recover --apply --accept-loss orders-3 /var/lib/kafka/data
      logtool recover --truncate-to orders-3=1500000 --apply --accept-loss orders-3 data
      logtool recover --apply --fill-from /mnt/broker-2/data /var/lib/kafka/data/orders-3
      logtool recover --full --mark-clean --apply /var/lib/kafka/data

    Exit status:
      0    with --apply: done; without: nothing to do
      1    without --apply: there is something to do; with: a log does not load, damage is not
           filled, a file of the log dir stops a broker or takes the log dir offline
      2
      4    incomplete: nothing matched, or some input could not be read, or not be written
      5    refused: in use, records would be lost, files changed, or it cannot be marked clean
      6    --max-duration ran out; nothing of the log dir at hand was done
      130

    """
    from logtool.commands.output import Report
    from logtool.commands.views import actions
    from logtool.running.summary import ActionSummary
    from logtool.startup.recover import Recover

    settings, summary = printing.settings(), ActionSummary()
    points, selection = begin.points(inputs.selection)
    given = inputs.resolved(selection=selection)
    report = Report(settings=settings, view=actions.make(settings), summary=summary, inputs=given)
    assumed, consent = way.assumed(broker, begin, inputs.broker), consented.consent()
    _check_flavour(given, begin, way, consented)
    job = Recover(given.paths, assumed, consent, selection, points, running.run(report))
    job.named_by, job.flavour = begin.named_by, given.flavour
    _print(report, job, summary)
    raise typer.Exit(report.exit_status())


def _print(report: "Report", job: "Recover", summary: "ActionSummary") -> None:
    """Print what is done or would be, and in the end how to undo it."""
    from logtool.actions import Action
    from logtool.commands.views import actions
    from logtool.startup.partition import PartitionForecast
    from logtool.startup.recover import HINDRANCES

    consent = job.consent
    printer = actions.Printer(report, summary)
    changes = 0
    partitions: list[PartitionForecast] = []
    with report:
        for item in job:
            if isinstance(item, Action):
                printer.action(item)
                changes += item.change is not None
                summary.to_do |= item.action == "finish" and not consent.apply
                # Marking clean mends what it can, and refuses where more is wrong.
                summary.to_do |= item.action in HINDRANCES and not consent.mark_clean
            elif isinstance(item, PartitionForecast):
                printer.partition(item)
                changes += sum(action.change is not None for action in item.actions)
                partitions.append(replace(item, actions=()))
                summary.to_do |= item.outcome != "loads"
            else:
                printer.problem(item)
        for undo in job.undo_dirs:
            report.item(actions.undo_object(undo))
        summary.to_do |= (changes > 0 and not consent.apply) or printer.unfilled > 0
    for line in actions.recovered_lines(printer, partitions, job, changes, summary):
        report.note(line)
    if summary.interrupted or report.settings.format in ("csv", "tsv", "markdown"):
        for undo in job.undo_dirs:
            report.note(actions.undo_line(undo))
    if summary.interrupted and job.undo_dirs:
        report.note("or go on with the same command")


def _check_flavour(given: "GivenPaths", begin: Begin, way: Way, consented: Consented) -> None:
    """UsageError where something is asked for that a directory of Redpanda knows nothing of."""
    named = begin.from_offset or begin.truncate_to
    if given.output_flavour and (named or way.supplements or way.fill_from or consented.mark_clean):
        raise UsageError(
            "--from-offset, --truncate-to, --strategy supplement, --fill-from and --mark-clean are "
            "of Kafka; PATH is of Redpanda: 'logtool salvage --fill-from' writes a whole copy of it"
        )


class _One:
    """An offset that is for one partition: UsageError as soon as there is a second."""

    def __init__(self, offset: int) -> None:
        self._offset = offset
        self._key: TopicPartition | None = None

    def __call__(self, key: "TopicPartition", row: int | None) -> int:
        if self._key not in (None, key):
            raise UsageError("--from-offset N is for one partition; name it: TOPIC-PARTITION=N")
        self._key = key
        return self._offset


def _pair(text: str, option: str = "--from-offset") -> "tuple[TopicPartition | None, int]":
    name, _, number = text.rpartition("=")
    offset = parse_long(number)
    if offset is None or offset < 0:
        raise UsageError(f"{option} {text}: expected N or TOPIC-PARTITION=N")
    return parsing.parse_topic_partition(option, name) if name else None, offset
