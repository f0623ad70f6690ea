"""``logtool sanity``: what index sanity checks cost at a start, and what they see."""

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.commands.program import broker_config
from logtool.commands.program.spread import Without, spread
from logtool.errors import UsageError

if TYPE_CHECKING:
    from logtool.commands.output import OutputSettings
    from logtool.disk.log_dir import Inputs
    from logtool.sanity.run import Sanity


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
Project = Annotated[
    list[str] | None,
    typer.Option(
        "--project",
        metavar="SIZE",
        help="Also say how long a start would take at SIZE: segments=N, partitions=N or both, with "
        "a comma between; repeatable.",
    ),
]
_SIZE = re.compile(r"(segments|partitions)=([1-9][0-9]{0,14})")


@spread
def sanity(
    *,
    inputs: options.LocalInputs,
    mode: ModeOption = ModeChoice.BOTH,
    threads: Threads = None,
    repeat: Repeat = 1,
    cold: Cold = False,
    first_access: FirstAccess = 0,
    background_threads: BackgroundThreads = 0,
    project: Project = None,
    running: Annotated[options.Running, Without("jobs", "max_rate")],
    printing: options.StillPrinting,
) -> None:
    """Time the sanity checks of indexes at a broker's start, eager and lazy; say what each misses.

    Brokers before 2.3 opened, mapped and checked every index at every start (eager). Since then
    (KIP-263, KAFKA-7283) they open those of active segments alone (lazy), and only transaction
    indexes are checked; the rest is opened by its first reader. This command does both on the real
    files, with the same checks as Kafka, and counts files, bytes, page faults, and the time for
    each kind of index. The log files themselves, which every broker opens, are left alone.

    From the measured partitions it calculates what a partition, a segment and a byte cost, and
    --project uses this for other sizes. The cluster of KIP-263 had 31,800 partitions, three
    replicas each, on 15 brokers: 6,360 a broker, here with 5 segments each.

    Then the index rules of `verify --level quick` look for damage which the checks do not see.

    Examples:
      logtool sanity /var/lib/kafka/data
      logtool sanity --cold --repeat 5 --threads 4 /data1/kafka /data2/kafka
      logtool sanity --first-access 1000 --background-threads 2 /var/lib/kafka/data
      logtool sanity --project partitions=6360,segments=31800 /var/lib/kafka/data
      logtool sanity --json /var/lib/kafka/data | jq '.items[] | select(.seen_by == "eager")'

    Exit status:
      0    complete, nothing found
      1    complete: a check of Kafka's fails, or the rules of verify find an index bad
      2    the command line makes no sense
      4    incomplete: some input could not be read, or nothing matched
      6    --max-duration ran out; what was not finished is not printed
      130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)

    """
    from logtool.sanity.model import Target
    from logtool.sanity.results import Mode
    from logtool.sanity.run import Procedure, Sanity

    given = inputs.resolved()
    modes = (Mode.EAGER, Mode.LAZY) if mode is ModeChoice.BOTH else (Mode(mode),)
    job = Sanity(
        given.paths,
        Procedure(
            modes=modes,
            threads=threads or inputs.broker.number(broker_config.THREADS, 1),
            repeat=repeat,
            cold=cold,
            readers=first_access,
            background_threads=background_threads,
            targets=tuple(Target(**_parse_size(text)) for text in project or ()),
        ),
        selection=given.selection,
        pace=running.pace(),
    )
    raise typer.Exit(_print(job, printing.settings(), given, models=bool(project)))


def _print(job: "Sanity", settings: "OutputSettings", given: "Inputs", *, models: bool) -> int:
    """Print what a measurement says while it runs; returns the exit status."""
    from logtool.commands.output import Report
    from logtool.commands.views import sanity
    from logtool.errors import UnreadableError

    view = sanity.make(settings, models=models)
    report = Report(settings=settings, view=view, summary=job.summary, inputs=given)
    said = []
    with report:
        for item in job:
            if isinstance(item, UnreadableError):
                report.unreadable(item)
                continue
            said.append(item.as_json())
            report.item(said[-1])
    for line in sanity.last_lines(said, report):
        report.note(line, None if report.exit_status() else "good")
    return report.exit_status()


def _parse_size(given: str) -> dict[str, int]:
    """Return the numbers of ``segments=31800,partitions=6360``."""
    matches = [_SIZE.fullmatch(part) for part in given.split(",")]
    size = {part.group(1): int(part.group(2)) for part in matches if part}
    if len(size) < len(matches):
        raise UsageError(
            f"--project {given}: expected segments=N or partitions=N, each once, such as "
            "segments=31800,partitions=6360"
        )
    return size
