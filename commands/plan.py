"""``logtool plan``: what a broker does at its next start. Writes nothing."""

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.commands.program import broker_config, parsing, starting_broker
from logtool.commands.program import limits as host
from logtool.commands.program.spread import spread
from logtool.commands.program.strategy import Strategy
from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from logtool.actions import Action
    from logtool.commands.output import Report
    from logtool.log.inputs import GivenPaths
    from logtool.running.summary import ActionSummary
    from logtool.startup.forecast import Forecast
    from logtool.startup.partition import PartitionForecast


class PolicyChoice(StrEnum):
    """What is recovered after a kill; see `logtool.startup.policies`."""

    LAST_SEGMENT = "last-segment"
    RECOVERY_POINT = "recovery-point"


Threads = Annotated[
    int | None,
    typer.Option(
        "--recovery-threads",
        metavar="N",
        min=1,
        help="num.recovery.threads.per.data.dir of the broker; by default that of "
        "--broker-config, else 1.",
    ),
]
ReadRate = Annotated[
    str | None,
    typer.Option(
        "--read-rate",
        metavar="SIZE",
        help="How many bytes a thread of the broker reads in a second, such as 200M; by default "
        "measured, as a range.",
    ),
]


Policies = Annotated[
    list[PolicyChoice] | None,
    typer.Option(
        "--policy",
        help="Say what recovery after a kill reads by this policy, how long it takes, and what it "
        "misses; repeatable, to have them side by side. last-segment: the last one of each log, as "
        "up to Kafka 0.8.0; recovery-point: from the recovery point on, as today.",
    ),
]


@dataclass(frozen=True, slots=True)
class Timing:
    """How the start is timed, on which host, and which policies of recovery are compared."""

    recovery_threads: Threads = None
    read_rate: ReadRate = None
    limits: host.LimitsOption = None
    policy: Policies = None

    def check(self, given: "GivenPaths", strategy: Strategy) -> None:
        """UsageError where something is asked for that no start of Redpanda does."""
        if given.output_flavour and (strategy.supplements or self.policy):
            raise UsageError("--strategy supplement and --policy are of Kafka; PATH is of Redpanda")

    @property
    def rate(self) -> float | None:
        """Return the bytes a second of each thread; None where they are to be measured."""
        return parsing.parse_size("--read-rate", self.read_rate) if self.read_rate else None


@spread
def plan(
    *,
    inputs: options.AnyLocalInputs,
    broker: starting_broker.StartingBroker,
    timing: Timing,
    strategy: Strategy,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Say what a broker will do to log dirs or partition dirs at its next start, and how long.

    Loads each log as a broker loads it, but in memory: nothing on the disk changes. Says which
    files are deleted, renamed, read again or cut (with the byte, the offset, the records that are
    lost, and whether they were acknowledged), which indexes are rebuilt, which bad indexes the
    broker does not notice, and what stops the start. A partition dir is judged by the checkpoints
    of the log dir that holds it.

    Log dirs given together are those of one broker. The metadata log in one of them says which
    partitions are stray and which settings the topics have. A meta.properties that does not fit the
    others, a partition in two log dirs (if one is damaged, its repair from the other is proposed),
    or a copy on its way is judged as the start judges it. The last lines say what is not known.

    The time is a range, with one thread for each log: from reading at the fastest rate measured
    here to the slowest, or that of the disk where logs came from the page cache, with the least and
    the most that brokers spent on a batch. It names the ten slowest; -v prints all that changes.

    A segment that a truncation removed and a crash brought back is named, with what a broker serves
    of it; where leader epochs do not decide between segments, that is said.

    What lies below the recovery point is read by no start, and not here: one line says how much
    that is, and which command reads it. What the logs need of the host is held against its limits.
    With --strategy supplement, or --trust-log too, it foretells 'logtool recover' with the same.
    Of Redpanda it says what a start replays, cuts or gives up as .cannotrecover, by source alone.
    With --policy, a table compares today's recovery with that before KAFKA-615: what is read and
    what is not, the time (at least that of logs in the page cache), and the damage that is missed.

    Examples:
      logtool plan /var/lib/kafka/data
      logtool plan --policy last-segment --policy recovery-point /var/lib/kafka/data
      logtool plan --kafka-version 3.9 --recovery-threads 4 /data1/kafka /data2/kafka
      logtool plan --broker-config /etc/kafka/server.properties
      logtool plan --json /var/lib/kafka/data | jq '.items[] | select(.lost_records > 0)'

    Exit status:
      0    complete: nothing is lost, nothing stops the start
      1    complete: a log is cut, does not load or is put aside, a log dir goes offline, no start,
           a file is ignored, a bad index goes unnoticed, segments overlap, or limits are too low
      2
      4
      6
      130

    """
    from logtool.commands.output import Report
    from logtool.commands.views import actions
    from logtool.running.summary import ActionSummary
    from logtool.startup.forecast import Forecast

    settings, summary, given = printing.settings(), ActionSummary(), inputs.resolved()
    timing.check(given, strategy)
    report = Report(settings=settings, view=actions.make(settings), summary=summary, inputs=given)
    forecast = Forecast(
        given.paths, strategy.chosen(broker.assumed(inputs.broker)), selection=given.selection,
        run=running.run(report), flavour=given.flavour,
        sample_disks=timing.rate is None and running.max_rate is None,
    )  # fmt: skip
    _print(report, forecast, summary, timing, inputs.broker.number(broker_config.THREADS, 1))
    raise typer.Exit(report.exit_status())


def _print(
    report: "Report",
    forecast: "Forecast",
    summary: "ActionSummary",
    timing: Timing,
    default_threads: int,
) -> None:
    """Print what happens as it is known, then how long it takes, and what policies come to.

    How long it takes is said of a broker alone, and not where what is there is supplemented.
    """
    from logtool.actions import Action
    from logtool.commands.views import actions, plan_tables
    from logtool.node import host_limits
    from logtool.startup import rates
    from logtool.startup.below import below
    from logtool.startup.duration import duration
    from logtool.startup.partition import PartitionForecast
    from logtool.startup.policies import Policy, compare

    if timing.policy and forecast.assumed.supplement:
        raise UsageError("--policy compares what brokers do: it goes with --strategy rebuild")
    printer, rate = actions.Printer(report, summary), timing.rate
    limits = host.parse(timing.limits)
    threads = timing.recovery_threads or default_threads
    partitions: list[PartitionForecast] = []
    time = unread = None
    with report:
        for item in forecast:
            if isinstance(item, Action):
                printer.action(item)
            elif isinstance(item, PartitionForecast):
                printer.partition(item)
                if item.fix:
                    summary.next.setdefault(item.fix)
                partitions.append(replace(item, actions=_kept(item) if timing.policy else ()))
            else:
                printer.problem(item)
        summary.to_do = printer.grave > 0
        needed = sum((one.needs for one in partitions), host_limits.Needs())
        for start in forecast.log_dirs[:1]:
            for finding in host_limits.judge(needed, limits, start.log_dir.path):
                printer.finding(finding)
        known = None
        # How long Redpanda takes was never measured.
        if not forecast.assumed.supplement and not any(p.request.redpanda for p in partitions):
            disks = forecast.disks if summary.complete else None
            known = rates.known(partitions, rate, disks=disks)
        if known:
            time = duration(partitions, threads, known)
            report.item(plan_tables.DURATION.row(time))
        if timing.policy:
            chosen = [Policy(one) for one in dict.fromkeys(timing.policy)]
            report.item(plan_tables.POLICIES.row(compare(partitions, chosen, threads, known)))
        unread = None if forecast.assumed.trust else below(partitions)
        if unread:
            summary.next.setdefault(unread.command)
    style = "good" if report.exit_status() == 0 else None
    for line in actions.last_lines(printer, partitions, time, unread, summary):
        report.note(line, style)


def _kept(item: "PartitionForecast") -> "tuple[Action, ...]":
    """Return the actions of a partition that a comparison of policies needs."""
    return tuple(action for action in item.actions if action.action == "unnoticed")
