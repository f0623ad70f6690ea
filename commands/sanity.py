"""``logtool sanity``: what index sanity checks cost at a start, and what they see."""

import re
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.commands.program import broker_config, parsing
from logtool.commands.program import limits as host
from logtool.commands.program.spread import Without, spread
from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from logtool.commands.output import OutputSettings
    from logtool.log.inputs import GivenPaths
    from logtool.sanity.model import Target
    from logtool.sanity.run import Procedure, Sanity


class ModeChoice(StrEnum):
    """Which kind of start to time."""

    EAGER = "eager"
    LAZY = "lazy"
    BOTH = "both"


ModeOption = Annotated[
    ModeChoice,
    typer.Option(
        "--mode", help="eager: as brokers before 2.3; lazy: as brokers since.", show_default=True
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        min=1,
        help="num.recovery.threads.per.data.dir of the broker; they gain less here: only one at "
        "a time can wait for a page. By default that of --broker-config, else 1.",
    ),
]
Repeat = Annotated[
    int,
    typer.Option(
        "--repeat",
        metavar="N",
        min=1,
        help="Time each N times and take the median.",
        show_default=True,
    ),
]
Cold = Annotated[
    bool,
    typer.Option(
        "--cold",
        help="Before each run, ask the system to drop the indexes from the page cache; whether it "
        "did is told by what then came from the disk.",
    ),
]
FirstAccess = Annotated[
    int,
    typer.Option(
        "--first-access",
        metavar="N",
        min=0,
        help="Also time what the first N readers of inactive segments wait after a lazy start.",
    ),
]
BackgroundThreads = Annotated[
    int,
    typer.Option(
        "--background-threads",
        metavar="N",
        min=0,
        help="Also time the proposal of KIP-263: active segments first, the others in N threads, "
        "with the readers of --first-access meanwhile.",
    ),
]
BecomeLeader = Annotated[
    int,
    typer.Option(
        "--become-leader",
        metavar="N",
        min=0,
        help="Also time what it takes to become leader of N partitions after a lazy start, by the "
        "proposal of KIP-263: all their inactive segments are then checked.",
    ),
]
Project = Annotated[
    list[str] | None,
    typer.Option(
        "--project",
        metavar="SIZE",
        help="Also say how long a start would take at SIZE: segments=N, partitions=N or both, or "
        "rate=SIZE,retention=TIME for the bytes a second that this broker is written, with "
        "segment-bytes=SIZE if that is not 1G; with commas between; repeatable.",
    ),
]
Brokers = Annotated[
    int | None,
    typer.Option(
        "--brokers",
        metavar="N",
        min=1,
        help="With --project: also say what N brokers of that size take that are restarted one "
        "after the other, each once the one before has loaded.",
    ),
]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify/--no-verify",
        help="Whether the index rules of `verify --level quick` look for damage that the checks "
        "do not see; without them a directory is listed and measured only.",
    ),
]
_BY_COUNT = {"segments", "partitions"}
_COUNT = re.compile(r"[1-9][0-9]{0,14}")


@dataclass(frozen=True, slots=True)
class Delayed:
    """When the checks that a lazy start leaves out are made."""

    first_access: FirstAccess = 0
    become_leader: BecomeLeader = 0
    background_threads: BackgroundThreads = 0


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Other sizes, and other hosts."""

    project: Project = None
    brokers: Brokers = None
    limits: host.LimitsOption = None


@spread
def sanity(
    *,
    inputs: options.AnyLocalInputs,
    mode: ModeOption = ModeChoice.BOTH,
    threads: Threads = None,
    repeat: Repeat = 1,
    cold: Cold = False,
    delayed: Delayed,
    elsewhere: Elsewhere,
    verify: Verify = True,
    running: Annotated[options.Running, Without("jobs", "max_rate")],
    printing: options.StillPrinting,
) -> None:
    """Time the sanity checks of indexes at a broker's start, eager and lazy; say what each misses.

    Brokers before 2.3 opened, mapped and checked every index at every start (eager). Since then
    (KIP-263, KAFKA-7283) they open those of active segments alone (lazy), and only transaction
    indexes are checked; the rest is opened by its first reader. This command does both on the real
    files, with the same checks as Kafka, and counts files, bytes, page faults, and the time for
    each kind of index. Beside that measurement stands an estimate of the whole load of a broker,
    which also opens logs, leader epochs and snapshots: from the least to the most that brokers of
    2.2.2, 3.9.2 and 4.3.1 needed after a stop in order. (After a kill: `logtool plan`.)

    By KIP-263 the checks are delayed until a first access (--first-access), until the broker
    becomes leader (--become-leader), or until a background thread comes (--background-threads); a
    bad segment forces those of all before it. --project calculates other sizes, with the interval
    in which 95 of 100 starts lie, and says where the sample does not carry that. The cluster of the
    text had 31,800 partitions, three replicas each, on 15 brokers: 6,360 a broker, here with 5
    segments each, and 80 of 400 MB a second. (Its "roughly 3000 log segments" a broker would be
    fewer than its partitions, each of which has one at least.)

    A start of Redpanda reads every base index, so that there is one kind of start to time.

    Then the index rules of `verify --level quick` look for damage which the checks do not see, and
    what the logs need of the host is held against its limits. Under a running broker the indexes
    to which it appends are no fault: it puts them in order when it stops. A partition of which it
    takes away files meanwhile is looked at again.

    Examples:
      logtool sanity --cold --repeat 5 --threads 4 /data1/kafka /data2/kafka
      logtool sanity --first-access 1000 --background-threads 2 /var/lib/kafka/data
      logtool sanity --project partitions=6360,segments=31800 /var/lib/kafka/data
      logtool sanity --project rate=80M,retention=7d,partitions=6360 --brokers 15 /kafka

    Exit status:
      0    complete, nothing found
      1    complete: a check of Kafka's fails, an index is bad, or the host has too little
      2
      4
      6    --max-duration ran out; what was not finished is not printed
      130

    """
    from logtool.sanity.run import Sanity

    given = inputs.resolved()
    later = (delayed.first_access, delayed.become_leader, delayed.background_threads)
    if given.output_flavour and (mode is ModeChoice.LAZY or any(later) or elsewhere.project):
        raise UsageError(
            "--mode lazy, --first-access, --become-leader, --background-threads and --project are "
            "of Kafka; PATH is of Redpanda, whose start reads every base index"
        )
    wanted = _procedure(mode, delayed, elsewhere)
    threads = threads or inputs.broker.number(broker_config.THREADS, 1)
    wanted = replace(wanted, threads=threads, repeat=repeat, cold=cold, verify=verify)
    job = Sanity(
        given.paths, wanted, selection=given.selection, pace=running.pace(), flavour=given.flavour
    )
    is_projected = bool(elsewhere.project)
    raise typer.Exit(_print(job, printing.settings(), given, models=is_projected))


def _procedure(mode: ModeChoice, delayed: Delayed, elsewhere: Elsewhere) -> "Procedure":
    """Return what is to be measured; UsageError for a size or a limit that makes no sense."""
    from logtool.sanity.results import Mode
    from logtool.sanity.run import Procedure

    if elsewhere.brokers and not elsewhere.project:
        raise UsageError("--brokers: say of what size, with --project")
    return Procedure(
        modes=(Mode.EAGER, Mode.LAZY) if mode is ModeChoice.BOTH else (Mode(mode),),
        readers=delayed.first_access,
        new_leaders=delayed.become_leader,
        background_threads=delayed.background_threads,
        limits=host.parse(elsewhere.limits),
        targets=tuple(map(_parse_size, elsewhere.project or ())),
        brokers=elsewhere.brokers,
    )


def _print(job: "Sanity", settings: "OutputSettings", given: "GivenPaths", *, models: bool) -> int:
    """Print what a measurement says while it runs; returns the exit status."""
    from logtool.commands.output import Report
    from logtool.commands.views import sanity
    from logtool.commands.views.sanity_tables import DOCUMENT
    from logtool.errors import UnreadableError

    view = sanity.make(settings, models=models)
    report = Report(settings=settings, view=view, summary=job.summary, inputs=given)
    said = []
    with report:
        for item in job:
            if isinstance(item, UnreadableError):
                report.unreadable(item)
                continue
            said.append(DOCUMENT.row(item))
            report.item(said[-1])
    for finding in job.in_use:
        report.note(f"{finding.path}: {finding.message}")
    for line in sanity.last_lines(said, report):
        report.note(line, None if report.exit_status() else "good")
    return report.exit_status()


def _parse_size(given: str) -> "Target":
    """Return what ``segments=31800,partitions=6360`` or ``rate=80M,retention=7d`` asks for."""
    from logtool.sanity.model import Target

    parts = [part.partition("=")[::2] for part in given.split(",")]
    size = dict(parts)
    grows = {"rate", "retention"} <= size.keys()
    allowed = {"partitions", "rate", "retention", "segment-bytes"} if grows else _BY_COUNT
    counts = [value for name, value in parts if name in _BY_COUNT]
    is_good = len(size) == len(parts) and size.keys() <= allowed
    if not is_good or not all(map(_COUNT.fullmatch, counts)):
        raise UsageError(
            f"--project {given}: expected segments=N or partitions=N, each once, such as "
            "segments=31800,partitions=6360, or rate=SIZE,retention=TIME, such as "
            "rate=80M,retention=7d,partitions=6360,segment-bytes=1G"
        )
    partitions = int(size["partitions"]) if "partitions" in size else None
    if not grows:
        return Target(partitions, int(size["segments"]) if "segments" in size else None)
    return Target(
        partitions,
        rate=parsing.parse_size("--project", size["rate"]),
        retention=parsing.parse_duration("--project", size["retention"]),
        segment_bytes=parsing.parse_size("--project", size.get("segment-bytes", "1G")),
    )
