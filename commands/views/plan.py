"""A run of ``plan``: what happens as it is known, how long it takes, and what policies come to."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from logtool.actions import GRAVE, Action
from logtool.cleaner.after_start import MOST_LOGS, AfterStart
from logtool.commands import options
from logtool.commands.output import Line, Report
from logtool.commands.printing import text
from logtool.commands.program import broker_config, parsing
from logtool.commands.program.bucket_inputs import require_local
from logtool.commands.program.recovery_options import RecoveryOptions
from logtool.commands.program.start_options import StartingBroker
from logtool.commands.views import actions, after_start, mending, plan_counts, release_starts
from logtool.commands.views.action_printer import NO_PARTITION, ActionPrinter
from logtool.commands.views.metrics import MetricsFile
from logtool.commands.views.plan_tables import DURATION, POLICIES
from logtool.disk import shell
from logtool.errors import LogtoolError, UsageError
from logtool.exits import Exit
from logtool.lazy_dataclass import dataclass
from logtool.log.flavour import Flavour
from logtool.log.kafka import KAFKA
from logtool.log.redpanda import REDPANDA
from logtool.node import host_limits
from logtool.node.claims import has_list
from logtool.node.host_limits import Limits
from logtool.node.node import Node
from logtool.running.summary import ActionSummary
from logtool.startup import rates, recovery_points
from logtool.startup.disks import PIECE
from logtool.startup.duration import Duration, duration
from logtool.startup.forecast import Forecast
from logtool.startup.partition import PartitionForecast
from logtool.startup.policies import Policy, compare
from logtool.startup.rates import ReadRates
from logtool.startup.recovery_points import MissingPoints
from logtool.startup.request import LoadRequest

_WORTH_THREADS = 0.8
"""Share of the time of a start up to which more threads are worth a line."""


@dataclass(frozen=True, slots=True)
class UnreadLogs:
    """Segments below the recovery points, not read by any start, so that damage stays unseen."""

    segments: int
    """Segments that are not recovered."""
    bytes: int
    """Size of their logs, in bytes."""
    places: tuple[Path, ...]
    """The log dirs that hold them; the partition dir where that is all there is."""
    flavour: Flavour = KAFKA
    """REDPANDA where Redpanda wrote all of them, which knows no recovery point."""

    @property
    def command(self) -> str:
        """Return the command that reads them, as a shell takes it."""
        return " ".join(["logtool verify", *map(shell.path, self.places)])


def unread_logs(forecasts: Sequence[PartitionForecast]) -> UnreadLogs | None:
    """Return the unread parts of these logs, which no start reads; None if a start reads all."""
    unread = [one for one in forecasts if one.unread_bytes and not one.request.is_deleted]
    if not unread:
        return None
    places = [one.request.path if len(forecasts) == 1 else one.request.log_dir for one in unread]
    return UnreadLogs(
        segments=sum(forecast.unread_segments for forecast in unread),
        bytes=sum(forecast.unread_bytes for forecast in unread),
        places=tuple(dict.fromkeys(places)),
        flavour=REDPANDA if all(one.request.redpanda for one in unread) else KAFKA,
    )


def run(
    inputs: options.AnyLocalInputs,
    broker: StartingBroker,
    strategy: RecoveryOptions,
    running: options.Running,
    printing: options.Printing,
    *,
    threads: int | None,
    read_rate: str | None,
    limits: str | None,
    policies: Sequence[str],
    metrics_file: Path | None,
) -> Exit:
    """Print the actions of a broker at its next start; return the exit status."""
    if broker.kafka_version == "all":
        if metrics_file:
            raise UsageError("--metrics-file has no effect with --kafka-version all")
        require_local(inputs.given())
        assumed = replace(broker, kafka_version=None).assumed(inputs.broker)
        return release_starts.run(inputs, printing, assumed)
    settings, summary, given = printing.settings(), ActionSummary(), inputs.of_one_broker()
    metrics = MetricsFile(metrics_file, "plan", given.paths)
    if given.has_bucket_and_more:
        if metrics_file:
            raise UsageError("--metrics-file does not support AutoMQ")
        if strategy.supplements or policies:
            raise UsageError("--strategy supplement and --policy do not support AutoMQ")
        # Few runs need it, and it imports what reads a bucket.
        from logtool.commands.views import plan_automq

        return plan_automq.run(given, settings)
    require_local(given.paths)
    if given.output_flavour and (strategy.supplements or policies):
        raise UsageError(
            "--strategy supplement and --policy do not support Redpanda, and PATH is "
            "a Redpanda directory"
        )
    report = Report(settings=settings, view=actions.make(settings), summary=summary, inputs=given)
    assumed = strategy.chosen(broker.assumed(inputs.broker))
    run_of_all = running.run(report)
    rate = parsing.parse_size("--read-rate", read_rate) if read_rate else None
    forecast = Forecast(
        given.paths, assumed, selection=given.selection, run=run_of_all, flavour=given.flavour,
        sample_disks=rate is None and running.max_rate is None,
    )  # fmt: skip
    default_threads = inputs.broker.number(broker_config.THREADS, 1)
    if policies and assumed.supplement:
        raise UsageError("use --policy only with --strategy rebuild")
    printer = PlanPrinter(
        report, summary, forecast, rate=rate, limits=parsing.parse_limits(limits),
        threads=threads or default_threads,
        policies=[Policy(one) for one in dict.fromkeys(policies)],
        look=partial(after_start.look, given, after_start.static(inputs.broker)),
    )  # fmt: skip
    return metrics.write(summary, report.consume(forecast, printer))


class PlanPrinter(ActionPrinter):
    """Prints the actions of a start, the time that it takes, and its last lines."""

    def __init__(
        self,
        report: Report,
        summary: ActionSummary,
        forecast: Forecast,
        *,
        rate: float | None,
        limits: Limits,
        threads: int,
        policies: Sequence[Policy],
        look: Callable[[Node], AfterStart | None],
    ) -> None:
        super().__init__(report, summary)
        self._forecast = forecast
        self._rate = rate
        self._limits = limits
        self._threads = threads
        self._policies = policies
        self._time: Duration | None = None
        self._faster: Duration | None = None
        """The duration with a thread for each processor; None unless that is much shorter."""
        self._missing: list[MissingPoints] = []
        self._unread: UnreadLogs | None = None
        self._look = look
        self._after: AfterStart | None = None
        self._cut_logs: list[LoadRequest] = []
        """Partitions that lose sound batches."""

    def show(self, item: Action | PartitionForecast | LogtoolError) -> None:
        """Print one item, and note the command that repairs a partition."""
        super().show(item)
        if isinstance(item, PartitionForecast):
            if item.fix:
                self._summary.next.setdefault(item.fix)
            if item.lost_batches:
                self._cut_logs.append(item.request)

    def _kept(self, forecast: PartitionForecast) -> tuple[Action, ...]:
        """Return the actions of a partition that a comparison and commands need."""
        kept = {"unnoticed"} if self._policies else set()
        kept |= mending.OF_REMOTE if forecast.request.start.tiered else set()
        return tuple(action for action in forecast.actions if action.action in kept)

    def finish(self) -> None:
        """Print the findings about host limits, the duration, and the comparison of policies."""
        summary, partitions = self._summary, self._forecasts
        summary.to_do = self._grave > 0
        summary.partition_list = has_list([self._forecast.broker.node])
        needed = sum((one.needs for one in partitions), host_limits.Needs())
        for start in self._forecast.log_dirs[:1]:
            for finding in host_limits.judge(needed, self._limits, start.log_dir.path):
                self._finding(finding)
        known = self._known_rates()
        self._missing = recovery_points.missing(self._forecast.log_dirs, partitions)
        for one in self._missing:
            self._finding(one.finding)
        if known:
            self._time = duration(partitions, self._threads, known)
            self._report.item(DURATION.row(self._time))
            if self._missing:
                more = max(self._threads, len(os.sched_getaffinity(0)))
                self._faster = duration(partitions, more, known)
        if self._policies:
            compared = compare(partitions, self._policies, self._threads, known)
            self._report.item(POLICIES.row(compared))
        if saving := self._saving():
            summary.next.setdefault(saving)
        summary.next.update((command, None) for _, command in self._mending())
        self._unread = None if self._forecast.assumed.trust else unread_logs(partitions)
        if self._unread:
            summary.next.setdefault(self._unread.command)
        refuses = self._of_log_dirs["refuse"] or self._of_log_dirs["offline"]
        quick = len(self._forecasts) <= MOST_LOGS
        if summary.complete and quick and not refuses and not self._forecast.assumed.supplement:
            self._after = self._look(self._forecast.broker.node)

    def _known_rates(self) -> ReadRates | None:
        """Return how fast a thread reads; None for Redpanda, and where a log is supplemented.

        How long Redpanda takes was never measured, and no broker supplements.
        """
        forecast = self._forecast
        redpanda = any(one.request.redpanda for one in self._forecasts)
        if forecast.assumed.supplement or redpanda:
            return None
        disks = forecast.disks if self._summary.complete else None
        return rates.known(self._forecasts, self._rate, disks=disks)

    def last_lines(self) -> Iterator[Line]:
        """Yield the last lines of a forecast, each with its style."""
        style = "good" if self._report.exit_status() == 0 else None
        early = set(after_start.early_lines(self._after))
        for line in self._last_lines():
            yield line, "warning" if line in early else style

    def _last_lines(self) -> Iterator[str]:
        if self._counts["refuse"]:
            yield (
                "the broker refuses to start, and rebuilds or removes nothing; the following lines "
                "are about its start once the cause is mended"
            )
        if self._withheld:
            yield self._withheld_line()
        yield from self._time_lines()
        if self._missing:
            yield from self._largest_lines()
        yield from self._thread_lines()
        if left := sum(one.damage_left for one in self._forecasts):
            places = text.count(left, "damaged place")
            yield f"the start reads {places} and leaves what is there, listed above as unnoticed"
        yield from self._below_lines()
        yield from self._unchecked_lines()
        yield from after_start.lines(self._after)
        if saving := self._saving():
            yield f"to save the sound records before the start: {saving}"
        for end, command in self._mending():
            yield f"{end}: {command}"
        yield text.state(self._summary) + self._verdict()

    def _verdict(self) -> str:
        """Return the line with the outcome for all partitions."""
        forecasts, complete = self._forecasts, self._summary.complete
        if not forecasts and complete and not self._is_absent():
            return NO_PARTITION
        stops = sum(forecast.outcome != "loads" for forecast in forecasts)
        without = " (the metadata log not counted)" if self._forecast.has_metadata_log else ""
        parts = [text.count(len(forecasts), "partition") + without]
        recovered = sum(forecast.recovered for forecast in forecasts)
        if recovered:
            segments = text.count(sum(forecast.segments for forecast in forecasts), "segment")
            cause = recovery_points.cause(self._missing)
            because = f" because {cause}" if cause else ""
            parts.append(f"{recovered:,} of {segments} recovered{because}")
        if stops:
            parts.append(f"{stops:,} {'does' if stops == 1 else 'do'} not load")
        parts += plan_counts.parts(self._counts, self._of_log_dirs, self._purged_bytes)
        parts += self._losses("lost")
        line = ", ".join(parts)
        if forecasts and complete and not self._is_bad():
            line += ": no sound record is lost" if self._cut else ": nothing is lost"
            if self._unread:
                line += " in what the start reads"
        return line

    def _saving(self) -> str | None:
        """Return the command that saves what the start cuts; None if it cuts no sound batch."""
        if not self._cut_logs:
            return None
        return f"logtool salvage --output salvaged {mending.places(self._cut_logs)}"

    def _mending(self) -> Iterator[tuple[str, str]]:
        """Yield the commands that mend what stops the broker, or what is lost, with their ends."""
        for command in self._rebuilding():
            yield "to repair checkpoint files", command
        for command in mending.compare(self._forecast.broker.copies.values()):
            yield "to compare a log dir with its copy", command
        yield from self._hidden_lines()
        yield from mending.remote(self._forecasts, self._report.inputs)
        losing = self._losing
        early = None if self._is_bad() else self._forecast.early_recovery(self._forecasts)
        doubtful = self._forecast.log_dirs if self._doubts_groups else ()
        cut = (one for one in self._hiding if one.hidden and one.hidden.is_damaged)
        lacking = [*losing, *(one for one in cut if one not in losing)]
        for end, found in (
            ("to recover before the start", early),
            ("to recover what no broker loads", mending.cut(self._forecasts)),
            (
                "to take what is lost from a copy on another broker or in a backup",
                mending.fill(lacking),
            ),
            (self._accepting(), mending.accept(losing, self._report.inputs)),
            ("to see which groups may be missing or older", mending.groups(doubtful)),
        ):
            if found:
                yield end, found

    def _accepting(self) -> str:
        """Return the words before the command that accepts a loss, as a start does that happens."""
        loads = all(one.outcome == "loads" for one in self._forecasts)
        starts = loads and not (self._counts["refuse"] or self._counts["offline"])
        return "to accept the loss, as the start does by itself" if starts else "to accept the loss"

    def _is_bad(self) -> bool:
        """Return whether the start loses something, or a partition does not load."""
        stops = any(forecast.outcome != "loads" for forecast in self._forecasts)
        grave = any(self._counts[one] for one in GRAVE)
        return bool(stops or self._losing or self._hiding or self._lacking or grave)

    def _is_absent(self) -> bool:
        """Return whether something is absent, or it is not known what becomes of it."""
        return any(self._counts[one] for one in ("lost", "absent", "unknown"))

    def _time_lines(self) -> Iterator[str]:
        """Yield how long the start takes, and what takes longest, or why there is no estimate.

        Nothing where no log is read. A loss matters more than why a time is absent, which -v shows.
        """
        forecasts, time = self._forecasts, self._time
        read = sum(forecast.bytes_read > 0 for forecast in forecasts)
        if not read:
            return
        if time is None:
            if not self._is_bad() or self._report.settings.verbose:
                yield f"start time not estimated: {self._why_no_time()}"
            return
        each_rate = time.rates
        said = text.span(each_rate.slow, each_rate.fast, lambda rate: text.rate(rate, 1))
        log_dirs = {forecast.request.log_dir for forecast in forecasts if forecast.bytes_read}
        each = " for each log dir" if len(log_dirs) > 1 else ""
        yield (
            f"a start reads {text.size(time.bytes)} of {text.count(read, 'partition')}: "
            f"{text.span(time.seconds_low, time.seconds_high, text.duration)} in "
            f"{text.count(time.threads, 'thread')}{each} at {said} each; let probes wait "
            f"{time.probe_timeout_s} s"
        )
        if each_rate.pieces:
            timed = text.count(each_rate.pieces, "stretch", "stretches")
            disk = each_rate.disk
            tail = "" if disk is None else f"; the disk itself gave {text.rate(disk, 1)}"
            yield f"estimated from {timed} of logs that were timed on this machine{tail}"
        for one in time.slowest if read > 1 else ():
            span = text.span(one.seconds_low, one.seconds_high, text.duration)
            yield f"- {one.forecast.request.path.name}, {span}: {', '.join(one.causes)}"
        if read > len(time.slowest) > 0:
            count = text.count(read - len(time.slowest), "other partition")
            yield f"- and {count}, together {text.span(*time.others, text.duration)}"

    def _thread_lines(self) -> Iterator[str]:
        """Yield the line on the setting that shortens a start without recovery points."""
        if not self._missing:
            return
        setting = f"{broker_config.THREADS} is {self._threads}"
        if self._time is None or self._faster is None:
            yield f"{setting}; --recovery-threads shows the time of a start with more threads"
        elif self._faster.seconds < self._time.seconds * _WORTH_THREADS:
            fast = self._faster
            span = text.span(fast.seconds_low, fast.seconds_high, text.duration)
            yield f"{setting}; with {fast.threads:,} threads the start takes {span}"

    def _why_no_time(self) -> str:
        """Return why the rates of a start are not known."""
        if self._forecast.assumed.supplement:
            return "no broker supplements indexes"
        if any(one.request.redpanda for one in self._forecasts):
            return "the start of Redpanda was not measured"
        if not self._summary.complete:
            return "not all logs were read"
        size = text.size(sum(one.bytes_read for one in self._forecasts))
        return (
            f"the start reads {size} of logs, and a measurement takes {text.size(PIECE)} or "
            f"{rates.MANY} segments; give the rate of the disk with --read-rate"
        )

    def _below_lines(self) -> Iterator[str]:
        """Yield a line about what lies where no start reads it, and how to look there."""
        found = self._unread
        if found is None:
            return
        known = ""
        unnoticed = self._counts["unnoticed"] - sum(one.damage_left for one in self._forecasts)
        if unnoticed:
            places = text.count(unnoticed, "damaged place")
            known = f" (of their indexes and ends alone, {places} listed above as unnoticed)"
        verb = "was" if found.segments == 1 else "were"
        where = "below the recovery point, which no broker checks"
        if not found.flavour.has_checkpoints:
            where = "in segments with a base index, which no start reads"
        yield (
            f"{where}, {text.count(found.segments, 'segment')} ({text.size(found.bytes)}) {verb} "
            f"not read{known}, and a start would not notice damage there; to check "
            f"{'it' if found.segments == 1 else 'them'}: {found.command}"
        )
