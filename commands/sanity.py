"""``logtool sanity``: what index sanity checks cost at a start, and what they see."""

from enum import StrEnum
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import start_options
from logtool.commands.program.spread import Without, spread
from logtool.lazy_dataclass import dataclass


class ModeChoice(StrEnum):
    """Kinds of start to time."""

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


@dataclass(frozen=True, slots=True)
class Delayed:
    """Options for the time of the checks that a lazy start postpones."""

    first_access: FirstAccess = 0
    become_leader: BecomeLeader = 0
    background_threads: BackgroundThreads = 0


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Other sizes, and other hosts."""

    project: Project = None
    brokers: Brokers = None
    limits: start_options.LimitsOption = None


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
    from logtool.commands.views.sanity import run

    status = run(
        inputs, running, printing,
        mode=str(mode), threads=threads, repeat=repeat, cold=cold, verify=verify,
        first_access=delayed.first_access, become_leader=delayed.become_leader,
        background_threads=delayed.background_threads, project=elsewhere.project or (),
        brokers=elsewhere.brokers, limits=elsewhere.limits,
    )  # fmt: skip
    raise typer.Exit(status)
