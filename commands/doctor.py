"""``logtool doctor``: the first command of an incident. Writes nothing."""

from dataclasses import replace
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import broker_dirs, start_options
from logtool.commands.program.spread import Without, spread
from logtool.errors import UsageError
from logtool.findings import Severity

DEFAULT_DURATION = "10s"


Environment = Annotated[
    bool,
    typer.Option(
        "--environment",
        help="Show the environment of logtool, without DIR: Python, compiled kernels, CRC, "
        "Java, packages, limits, and your settings with their sources.",
    ),
]
MaxDuration = Annotated[
    str,
    typer.Option(
        "--max-duration",
        metavar="TIME",
        help="Stop after TIME in total (for example 10s, 5m or 2h).",
        show_default=True,
    ),
]


@spread
def doctor(
    *,
    inputs: broker_dirs.BrokerLogDirs,
    environment: Environment = False,
    kafka_version: start_options.KafkaVersion = None,
    fail_on: options.FailOn = Severity.WARNING,
    max_duration: MaxDuration = DEFAULT_DURATION,
    running: Annotated[options.Running, Without("max_duration")],
    printing: options.Printing,
) -> None:
    """Show on one screen what is wrong, what the next start will do, and what to do.

    Run this command first in an incident. It checks the log dirs as 'logtool verify --level quick'
    does, simulates the next start as 'logtool plan' does, and then checks every batch as 'logtool
    verify' does until --max-duration ends. It reports which part was not checked. The last line is
    the command to run next.

    Log dirs given together belong to one broker, unless ID=DIR or their meta.properties files give
    several node ids. Brokers with different ids are examined one after the other; a sound copy of a
    damaged partition is then proposed for the repair. Their replicas are not compared: the last
    line is then the command that does so. Several copies of one log dir, such as the log dir and
    its backup, are examined one after the other as well. Disk and limits do not change the exit
    status, because they do not concern the data. --format json has every finding, every action of
    the next start that matters, and the numbers of each line.

    Examples:
      logtool doctor /var/lib/kafka/data
      logtool doctor --max-duration 5m /data1/kafka /data2/kafka
      logtool doctor 1=/mnt/b1/data 2=/mnt/b2/data 3=/mnt/b3/data
      logtool doctor --json /var/lib/kafka/data | jq -r '.items[] | select(.type == "next").command'
      logtool doctor --environment

    Lines on the screen:

      damage     findings of 'logtool verify', the most severe first, with the first place of each
      start      what the broker will cut, delete, rebuild or refuse, and how long it will read
      retention  segments that retention deletes soon after the start, and compacted partitions that
                 an open transaction keeps from being cleaned; only if there are any. Of more than
                 5,000 partitions doctor looks at none
      txns       open transactions, and how many of them hang; only if there are any. Of Redpanda's
                 logs doctor does not look at them
      watermark  partitions that end below their high watermark: acknowledged records are lost
      broker     whether a broker holds the .lock of the log dir, and how the last one stopped
      versions   the broker release that registered last, metadata.version and meta.properties
      formats    partitions with batches of magic 0 or 1, which some clients misread; only if there
                 are any among the batches that were checked
      disk       the file system of each log dir: a warning from 90 % full, an error from 99 % full
      quorum     the voters that were not given, if all brokers of a cluster were given and too few
                 voters to elect a controller
      limits     open files (three for each segment) and memory maps, where a limit of this host is
                 too low

    Exit status:
      0    complete: nothing found at or above --fail-on, and the next start loses nothing
      1    findings at or above --fail-on, or the next start needs attention (see 'logtool plan'),
           or a transaction hangs (see 'logtool txns'), or no controller can be elected
      2
      4
      6
      130  ...; the findings so far are shown

    """
    if environment:
        settings = printing.settings()
        if inputs.paths or inputs.files_from or inputs.broker:
            raise UsageError("--environment takes no DIR")
        from logtool.commands.views.doctor_environment import run as describe

        raise typer.Exit(describe(settings))
    from logtool.commands.views.doctor import run

    limited = replace(running, max_duration=max_duration)
    raise typer.Exit(run(inputs, limited, printing, kafka_version=kafka_version, fail_on=fail_on))
