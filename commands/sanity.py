"""``logtool sanity``: cost and coverage of index sanity checks at a start. Writes nothing."""

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
        "--mode",
        help="Kind of start to measure. eager: as before Kafka 2.3; lazy: as since 2.3.",
        show_default=True,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        min=1,
        help="num.recovery.threads.per.data.dir of the broker. Threads help less here than "
        "in a broker, because only one at a time can wait for a page. Default: the "
        "value in --broker-config, otherwise 1.",
    ),
]
Repeat = Annotated[
    int,
    typer.Option(
        "--repeat",
        metavar="N",
        min=1,
        help="Measure N times, and print the median.",
        show_default=True,
    ),
]
Cold = Annotated[
    bool,
    typer.Option(
        "--cold",
        help="Before each run, ask the system to drop the indexes from the page cache. The "
        "bytes that were then read from the disk show whether it did.",
    ),
]
FirstAccess = Annotated[
    int,
    typer.Option(
        "--first-access",
        metavar="N",
        min=0,
        help="Also measure how long the first N readers of inactive segments wait after a "
        "lazy start.",
    ),
]
BackgroundThreads = Annotated[
    int,
    typer.Option(
        "--background-threads",
        metavar="N",
        min=0,
        help="Also measure the proposal of KIP-263: check active segments first, the others "
        "in N background threads, while the readers of --first-access run.",
    ),
]
BecomeLeader = Annotated[
    int,
    typer.Option(
        "--become-leader",
        metavar="N",
        min=0,
        help="Also measure, as proposed in KIP-263, how long a broker needs to become leader"
        " of N partitions after a lazy start, if it then checks all their inactive "
        "segments.",
    ),
]
Project = Annotated[
    list[str] | None,
    typer.Option(
        "--project",
        metavar="SIZE",
        help="Also estimate the time of a start at SIZE: segments=N, partitions=N or both; "
        "or rate=SIZE,retention=TIME for the bytes per second written to this broker, "
        "with segment-bytes=SIZE if not 1G. Separate the parts with commas; repeatable.",
    ),
]
Brokers = Annotated[
    int | None,
    typer.Option(
        "--brokers",
        metavar="N",
        min=1,
        help="With --project: also estimate a rolling restart of N brokers of that size, in which "
        "each starts when the previous one has loaded its logs.",
    ),
]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify/--no-verify",
        help="Whether to also look for damage with the index rules of 'logtool verify "
        "--level quick'. --no-verify measures only.",
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
    """Measure the index sanity checks of a broker's start, and what they miss.

    Brokers before Kafka 2.3 opened, mapped and checked every index at every start (eager). Since
    2.3 (KIP-263, KAFKA-7283) a broker opens only the indexes of active segments and checks only
    transaction indexes (lazy); the first reader opens the others. The command does both on the real
    files with Kafka's checks, and measures files, bytes, page faults, and the time for each kind of
    index.

    Next to the measurement it prints an estimate of the whole log loading of a broker, which also
    opens logs, leader epochs and snapshots. The estimate is a range from measured starts of Kafka
    2.2.2, 3.9.2 and 4.3.1 after a clean shutdown. For a start after a kill, use 'logtool plan'.

    Examples:
      logtool sanity --cold --repeat 5 --threads 4 /data1/kafka /data2/kafka
      logtool sanity --first-access 1000 --background-threads 2 /var/lib/kafka/data
      logtool sanity --project partitions=6360,segments=31800 /var/lib/kafka/data
      logtool sanity --project rate=80M,retention=7d,partitions=6360 --brokers 15 /kafka

    Postponed checks:

    KIP-263 proposes to postpone the checks until the first access (--first-access), until the
    broker becomes leader (--become-leader), or until a background thread runs them
    (--background-threads). A bad segment forces the checks of all segments before it.

    Other sizes:

    --project estimates a start with other sizes. It prints the interval that contains 95 of 100
    starts, and reports if the sample is too small for such an estimate. The examples use the
    cluster of KIP-263: 31,800 partitions with three replicas on 15 brokers, so 6,360 a broker, here
    with 5 segments each. Producers write 400 MB/s, so with three replicas a broker receives 80
    MB/s. (Its "roughly 3000 log segments" a broker would be fewer than its partitions, but every
    partition has at least one segment.)

    Damage:

    Finally the index rules of 'logtool verify --level quick' look for damage that the sanity checks
    do not find, and logtool compares the open files, memory maps and heap that the logs need with
    the limits of the host. While a broker runs, the unfinished indexes of its active segments are
    not findings, because the broker completes them when it stops. If the broker deletes files of a
    partition during the check, logtool checks that partition again.

    Redpanda:

    A start of Redpanda reads every base index, so the command measures only one kind of start.

    Exit status:
      0    complete: nothing found
      1    a sanity check of Kafka fails, an index is bad, or a limit of the host is too
           low
      2
      4
      6    --max-duration ran out; unfinished measurements are not printed
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
