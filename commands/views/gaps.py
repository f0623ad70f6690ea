"""A run of ``gaps``: partitions, what is missing in them, topics, ghosts."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from logtool.commands import options
from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing import terminal, text
from logtool.commands.printing.writers import Object, columns
from logtool.commands.program import broker_config, parsing
from logtool.commands.views.findings import FurtherFindings
from logtool.commands.views.gaps_tables import DOCUMENT, GAP
from logtool.disk import shell
from logtool.errors import UnreadableError, UsageError
from logtool.exits import Exit
from logtool.gaps import ghosts, objects
from logtool.gaps.ghosts import Ghosts
from logtool.gaps.objects import GapTotals, PartitionGaps, TopicGaps
from logtool.gaps.run import GapOptions, Gaps, Result
from logtool.log.redpanda import REDPANDA
from logtool.running.summary import ActionSummary, Summary
from logtool.schemas.columns import Way

if TYPE_CHECKING:
    from logtool.commands.gaps import GapChoices

_MOST_NAMED = 4
"""Ghosts that the line of a round names."""
_GAP_COLUMNS = columns(*GAP.names(Way.CSV))
_PARTITION_MARKDOWN = columns(
    "path", "log_start_offset", "log_end_offset", "visible", "control", "missing",
    "missing_share", "losses", "ghosts",
)  # fmt: skip
_GAP_MARKDOWN = columns(
    "path", "kind", "first_offset", "last_offset", "missing", "reason", "evidence"
)
_TOPIC_MARKDOWN = columns("topic", "partitions", "offsets", "missing", "missing_share", "losses")
_GHOST_MARKDOWN = columns(
    "path", "first_offset", "last_offset", "leader_epoch", "epoch_from", "following_leader_epoch",
    "checkpoint_leader_epochs", "reason",
)  # fmt: skip
_STRETCH_MARKDOWN = columns(
    "path", "ghost", "reason", "first_offset", "last_offset", "without_ghosts_first_offset",
    "without_ghosts_last_offset",
)  # fmt: skip
_ROUND_MARKDOWN = columns(
    "path", "round", "start_offset", "first_offset", "last_offset", "batches", "size",
    "base_batch_offset_before", "last_batch_offset_before", "base_batch_offset",
    "last_batch_offset",
)  # fmt: skip
_MARKDOWN = {
    "partition": _PARTITION_MARKDOWN, "gap": _GAP_MARKDOWN, "topic": _TOPIC_MARKDOWN,
    "ghost": _GHOST_MARKDOWN, "stretch": _STRETCH_MARKDOWN, "round": _ROUND_MARKDOWN,
}  # fmt: skip


def run(
    inputs: options.AnyInputs,
    shown: "GapChoices",
    running: options.Running,
    printing: options.Printing,
) -> Exit:
    """Print the gaps of all partitions, and the sums of each topic; return the exit status."""
    settings, summary, given = printing.settings(), ActionSummary(), inputs.with_buckets()
    view = make(settings, ghosts=settings.verbose or shown.asks_for_ghosts)
    report = Report(settings=settings, view=view, summary=summary, inputs=given)
    shown.check()
    wanted, limits = _wanted(shown, inputs.broker), running.run(report)
    job = Gaps(given.paths, wanted, selection=given.selection, run=limits, flavour=given.flavour)
    if shown.output:
        # Not with the other imports: it brings along all that writes.
        from logtool.gaps import fill

        fill.check_target(shown.output, of_redpanda=given.output_flavour == REDPANDA.name)
    printer = GapPrinter(report, summary, shown)
    return report.consume(_results(job, shown, printer), printer)


def _wanted(shown: "GapChoices", config: broker_config.BrokerConfig) -> GapOptions:
    """Return the options of the engine, from those of the command line and the broker."""
    policy = None if shown.cleanup_policy is None else str(shown.cleanup_policy)
    settings = (*broker_config.TIMESTAMPS, *(() if policy else (broker_config.POLICY,)))
    return GapOptions(
        exact=shown.exact,
        isolation=shown.isolated,
        policy=policy,
        max_batch_memory=parsing.parse_batch_memory(shown.max_batch_memory),
        static=config.take(*settings),
        sums_alone=not (shown.output or shown.follower or shown.rounds),
    )


def _results(
    job: Gaps, shown: "GapChoices", printer: "GapPrinter"
) -> Iterator[Result | UnreadableError]:
    """Yield the partitions, once the follower of --follower has been read."""
    if (shown.output or shown.follower) and job.partitions > 1:
        raise UsageError(f"--output and --follower take one partition, not {job.partitions}")
    if shown.follower:
        printer.follower_end = job.log_end_of(shown.follower)
    yield from job


def make(settings: OutputSettings, *, ghosts: bool) -> View:
    """Return the view of ``gaps``; with `ghosts`, tables count the batches that fill gaps."""
    return View(
        schema=DOCUMENT.schema,
        columns=_GAP_COLUMNS,
        layout=lambda obj: _MARKDOWN.get(obj["type"]),
        lines={"table": lambda obj: _lines(obj, settings, ghosts=ghosts)},
        row_types=frozenset({"gap"}),
        sparse=True,
    )


class GapPrinter(Printer[Result]):
    """Prints partitions as they come, and adds them up by topic."""

    def __init__(self, report: Report, summary: ActionSummary, shown: "GapChoices") -> None:
        self._report = report
        self._summary = summary
        self._shown = shown
        self._further = FurtherFindings(report)
        self._totals = GapTotals()
        self._unknown_ends = 0
        """Partitions of which no checkpoint shows where their log ended."""
        self._lossy: list[Path] = []
        """Partition dirs in which something is lost."""
        """Command that fills the first partition with losses from another copy."""
        self.follower_end: int | None = None
        """Log end offset of the log of --follower; None without it."""

    def show(self, item: Result) -> None:
        """Print one partition, its gaps and the additional objects that options ask for."""
        report, settings, shown = self._report, self._report.settings, self._shown
        brief = settings.format == "table" and not settings.verbose
        fillers = ghosts.of(item.ledger, item.subject.facts, following=shown.following)
        about = PartitionGaps(item, fillers)
        self._totals.add(about)
        report.item(DOCUMENT.row(about))
        for obj in objects.gap_objects(item, fillers, losses_only=brief):
            report.item(obj)
        for obj in objects.ghost_objects(item, fillers) if shown.ghosts else ():
            report.item(obj)
        if shown.rounds:
            self._rounds(item, fillers, parsing.parse_size("--rounds", shown.rounds))
        if self.follower_end is not None:
            for obj in objects.stretch_objects(item, fillers, self.follower_end):
                report.item(obj)
        if shown.output:
            self._write(shown.output, item, fillers, about)
        if about.losses and item.subject.partition.flavour.has_checkpoints:
            self._lossy.append(item.subject.partition.path)
        if item.subject.has_unknown_end and item.ledger.reached == item.ledger.log_end:
            self._unknown_ends += 1
        self._count(item)
        for finding in item.findings:
            self._further.take(finding)

    def _count(self, result: Result) -> None:
        summary = self._summary
        summary.partitions += 1
        summary.segments += result.segments
        summary.batches += result.ledger.batches
        summary.records += result.records
        summary.bytes += result.bytes

    def finish(self) -> None:
        """Print the sums of each topic."""
        self._summary.to_do = self._totals.all.losses > 0
        for topic in self._totals.topics():
            self._report.item(DOCUMENT.row(topic))

    def last_lines(self) -> Iterator[Line]:
        """Yield the findings, then the sums of all partitions."""
        summary = self._summary
        yield from self._further.last_lines()
        style = "error" if summary.to_do else "good" if summary.complete else "warning"
        if self._lossy:
            places = shell.partition_dirs(self._lossy)
            yield (
                "to take what is lost from a copy on another broker or in a backup: "
                f"logtool recover --fill-from COPY {places}",
                None,
            )
        if self._unknown_ends:
            logs = text.count(self._unknown_ends, "log")
            yield f"no checkpoint shows where {logs} ended: a lost end would not be found", None
        yield _last_line(self._totals.all, summary), style

    def _rounds(self, result: Result, fillers: Ghosts, most: int) -> None:
        try:
            for one in objects.partition_rounds(result, fillers, self.follower_end or 0, most):
                self._report.item(DOCUMENT.row(one))
        except UnreadableError as error:  # it has changed since it was read
            self._report.unreadable(error)

    def _write(self, target: Path, result: Result, fillers: Ghosts, about: PartitionGaps) -> None:
        from logtool.gaps import fill, fill_redpanda

        losses_too = self._shown.fill_losses
        chosen = fillers if losses_too else ghosts.harmless(fillers, result.ledger)
        as_stored = self._shown.as_stored
        if result.subject.partition.flavour is REDPANDA:
            size = fill_redpanda.write(result, chosen, target, stored=as_stored)
        else:
            size = fill.write(result, ghosts.none(fillers) if as_stored else chosen, target)
        stored = _stored(target, size, len(fillers))
        self._report.note(stored if as_stored else _filled(target, size, about, losses_too))


def _last_line(total: TopicGaps, summary: Summary) -> str:
    """Return the sums of all partitions, for people."""
    losses = total.losses
    if losses:
        verdict = f"{text.count(losses, 'gap')} that may mean loss"
    elif summary.complete:
        verdict = "no gap means loss"
    else:
        verdict = "in the data that was read, no gap means loss"
    missing = f"{total.missing:,} of {text.count(total.offsets, 'offset')} missing"
    return (
        f"{text.state(summary)}{verdict}; {missing}"
        f"{_percent(total.missing_share)} in {text.count(total.partitions, 'partition')}"
    )


def _filled(path: Path, size: int, partition: PartitionGaps, losses_too: bool) -> str:
    """Return the line about a log that was written.

    With `losses_too`, gaps that may mean loss were filled as well.
    """
    ghosts = partition.ghost_count - (0 if losses_too else partition.ghosts_of_losses)
    line = f"{path}: {text.size(size)}, {text.count(ghosts, 'ghost')}"
    if partition.losses and losses_too:
        line += "; gaps that may mean loss are filled too, and the output does not mark them"
    elif partition.losses:
        line += "; gaps that may mean loss are not filled; --fill-losses fills them too"
    return line


def _stored(path: Path, size: int, ghosts: int) -> str:
    """Return the line about a log that was written without its ghosts."""
    left = text.count(ghosts, "ghost")
    return f"{path}: {text.size(size)}, without {left}, which a follower counts but does not store"


def _lines(obj: Object, settings: OutputSettings, *, ghosts: bool) -> str | None:
    kind = obj["type"]
    if kind in ("partition", "topic") and not (obj["reasons"] or settings.verbose):
        return None
    if kind == "partition":
        return _partition(obj, ghosts=ghosts)
    if kind == "topic":
        return _topic(obj, ghosts=ghosts)
    if kind == "gap":
        return _gap(obj, settings) if obj["loss"] or settings.verbose else None
    if kind == "ghost":
        span = text.through(obj["first_offset"], obj["last_offset"])
        line = f"  ghost {span} epoch {obj['leader_epoch']} ({obj['epoch_from']})"
        by_checkpoint = ", ".join(map(str, obj["checkpoint_leader_epochs"])) or "not known"
        line += f": following-batch {obj['following_leader_epoch']}, leader-epoch-checkpoint "
        reason = str(obj["reason"])
        if obj["loss"]:
            reason = terminal.paint_stdout(f"{reason}, MAY MEAN LOSS", "error", settings.color)
        return f"{line}{by_checkpoint}; {reason}"
    if kind == "round":
        return _round(obj)
    if kind == "stretch":
        return _stretch(obj)
    return None


def _partition(obj: Object, *, ghosts: bool) -> str:
    extent = text.extent(obj["log_start_offset"], obj["log_start_offset"] + obj["offsets"])
    line = f"{text.escape(obj['path'])}: {extent}, {_counts(obj, ghosts=ghosts)}"
    if obj["kafka_offsets_unknown"]:
        line += f"\n  Kafka offsets are not known: {obj['kafka_offsets_unknown']}"
    elif obj["kafka_offsets_from"]:
        first, end = obj["kafka_log_start_offset"], obj["kafka_log_end_offset"]
        span = (
            f"from {first} up to, but not including, the first lost offset"
            if end is None
            else text.extent(first, end)
        )
        line += f"\n  Kafka offsets: {span}, counted from {obj['kafka_offsets_from']}"
    return line


def _topic(obj: Object, *, ghosts: bool) -> str | None:
    if obj["partitions"] < 2:
        return None
    partitions = text.count(obj["partitions"], "partition")
    return f"topic {text.escape(obj['topic'])}: {partitions}, {_counts(obj, ghosts=ghosts)}"


def _counts(obj: Object, *, ghosts: bool) -> str:
    parts = [f"{obj['visible']:,} visible"]
    if obj["aborted"]:
        parts[0] += f", of which {obj['aborted']:,} aborted"
    if obj["control"]:
        parts.append(f"{obj['control']:,} control")
    parts.append(f"{obj['missing']:,} missing{_percent(obj['missing_share'])}")
    details = "; ".join(
        f"{reason} {counts['offsets']:,} in {text.count(counts['gaps'], 'gap')}"
        for reason, counts in obj["reasons"].items()
    )
    if obj["ghosts"] and ghosts:
        number = text.count(obj["ghosts"], "empty ghost batch", "empty ghost batches")
        details += (
            f"; a follower of Redpanda would get {number} in place of the gaps, "
            f"{text.size(obj['ghost_bytes'])} ({text.size(obj['ghost_bytes_by_rfc'])} by the RFC), "
            f"{obj['ghost_share'] * 100:.2f} % of the log"
        )
        if obj["ghosts_of_losses"]:
            details += f"; {obj['ghosts_of_losses']:,} of them in gaps that may mean loss"
    return ", ".join(parts) + (f": {details}" if details else "")


def _percent(share: float) -> str:
    return f" ({share * 100:.2f} %)" if share else ""


def _gap(obj: Object, settings: OutputSettings) -> str:
    last = obj["last_offset"]
    span = text.through(obj["first_offset"], "the end" if last is None else last)
    if obj["kafka_first_offset"] is not None:
        behind = obj["kafka_last_offset"]
        of_kafka = text.through(obj["kafka_first_offset"], "?" if behind is None else behind)
        span += f" (Kafka {of_kafka})"
    reason = str(obj["reason"])
    if obj["loss"]:
        reason = terminal.paint_stdout(reason, "error", settings.color)
    where = obj["kind"]
    if obj["kind"] == "in-batch" and last is not None:
        width = last - obj["first_offset"] + 1
        where += f", {obj['missing']} of {width}" if obj["missing"] < width else ""
    return f"  {span}: {reason} ({where}): {text.escape(obj['evidence'])}"


def _round(obj: Object) -> str:
    span = text.through(obj["first_offset"], obj["last_offset"])
    read = f"{text.count(obj['batches'], 'batch', 'batches')}, {text.size(obj['size'])}"
    line = f"  round {obj['round']} from {obj['start_offset']}: read {span} ({read})"
    made = [
        f"{text.through(one['first_offset'], one['last_offset'])} epoch {one['leader_epoch']}"
        for one in obj["ghosts"]
    ]
    if made:
        more = f" and {len(made) - _MOST_NAMED:,} more" if len(made) > _MOST_NAMED else ""
        named = ", ".join(made[:_MOST_NAMED])
        line += f"; {text.count(len(made), 'ghost')}: {named}{more}"
    for name in ("base_batch_offset", "last_batch_offset"):
        before = obj[f"{name}_before"]
        line += f"; _{name} {'not set' if before is None else before} to {obj[name]}"
    return line


def _stretch(obj: Object) -> str:
    span = text.through(obj["first_offset"], obj["last_offset"])
    if obj["ghost"]:
        return f"  ghost   {span} ({obj['reason']})"
    first, last = obj["without_ghosts_first_offset"], obj["without_ghosts_last_offset"]
    wrong = (
        ""
        if first == obj["first_offset"]
        else f", without ghosts {text.through(first, last)}: WRONG"
    )
    return f"  batches {span}{wrong}"
