"""``logtool doctor``: the first command of an incident. Writes nothing."""

from dataclasses import replace
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import start_options
from logtool.commands.program.spread import Without, spread
from logtool.errors import UsageError
from logtool.findings import Severity
from logtool.lazy_dataclass import dataclass

DEFAULT_DURATION = "10s"


@dataclass(frozen=True, slots=True)
class BrokerLogDirs(options.AnyLocalInputs):
    """Arguments for the directories to read: DIR in place of PATH."""

    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR...",
            help="Log dirs of one broker, or partition dirs; by default the log dirs of "
            "--broker-config, else the current directory.",
            show_default=False,
        ),
    ] = None


Environment = Annotated[
    bool,
    typer.Option(
        "--environment",
        help="Say what logtool runs on: Python, kernels, CRC, Java, packages, limits, and your own "
        "settings with where they come from; takes no DIR.",
    ),
]
MaxDuration = Annotated[
    str,
    typer.Option(
        "--max-duration",
        metavar="TIME",
        help="Take at most TIME for all of it, such as 10s, 5m or 2h.",
        show_default=True,
    ),
]


@spread
def doctor(
    *,
    inputs: BrokerLogDirs,
    environment: Environment = False,
    kafka_version: start_options.KafkaVersion = None,
    fail_on: options.FailOn = Severity.WARNING,
    max_duration: MaxDuration = DEFAULT_DURATION,
    running: Annotated[options.Running, Without("max_duration")],
    printing: options.Printing,
) -> None:
    """Say on one screen what is wrong with log dirs, what the next start does, and what to do.

    The first command of an incident. It looks at everything as 'logtool verify --level quick' does,
    plays the next start as 'logtool plan' does, and then checks every batch as 'logtool verify'
    does, as long as --max-duration allows. What was not reached is said. It shows:

      damage     what verify finds, the worst first, with the first place of each
      start      what the broker cuts, deletes, rebuilds or refuses, and how long it reads
      watermark  partitions that end below their high watermark: acknowledged records are gone
      broker     whether a broker holds the .lock of the log dir, and how the last one stopped
      versions   the release that registered last, metadata.version and meta.properties
      disk       the file system of each log dir; a warning from 90 % on, an error from 99 % on
      limits     open files (three for each segment) and maps against what a process may have

    The last line is the one command to run next. Log dirs given together are those of one broker.
    --format json has every finding, every grave action and the numbers behind each line. Disk and
    limits do not change the exit status, for they say nothing of the data.

    Examples:
      logtool doctor /var/lib/kafka/data
      logtool doctor --max-duration 5m /data1/kafka /data2/kafka
      logtool doctor --json /var/lib/kafka/data | jq -r '.items[] | select(.type == "next").command'
      logtool doctor --environment

    Exit status:
      0    complete, nothing found at or above --fail-on, and the next start loses nothing
      1    complete, with findings at or above --fail-on, or with what 'logtool plan' warns of
      2
      4    incomplete: nothing matched, or some input could not be read
      6    --max-duration ran out before every batch was checked
      130  interrupted by Ctrl-C (143: SIGTERM, 129: SIGHUP); what was found until then is shown

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
