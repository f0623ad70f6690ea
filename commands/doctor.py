"""``logtool doctor``: the first command of an incident. Writes nothing."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.commands.program import broker_config, parsing, starting_broker
from logtool.commands.program.spread import Without, spread
from logtool.errors import UsageError
from logtool.findings import Severity
from logtool.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logtool.commands.output import OutputSettings
    from logtool.doctor.answers import Component
    from logtool.exits import Exit

DEFAULT_DURATION = "10s"


@dataclass(frozen=True, slots=True)
class Dirs(options.AnyLocalInputs):
    """What is looked at: DIR in place of PATH."""

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
    inputs: Dirs,
    environment: Environment = False,
    kafka_version: starting_broker.KafkaVersion = None,
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
    settings = printing.settings()
    if not environment:
        limited = replace(running, max_duration=max_duration)
        raise typer.Exit(_examine(inputs, kafka_version, settings, limited, fail_on))
    if inputs.paths or inputs.files_from or inputs.broker:
        raise UsageError("--environment takes no DIR")
    raise typer.Exit(_environment(settings))


def _examine(
    inputs: options.Inputs, kafka_version: str | None, settings: "OutputSettings",
    running: options.Running, fail_on: Severity,
) -> "Exit":  # fmt: skip
    """Print what is wrong with log dirs."""
    from logtool.commands.output import Report
    from logtool.commands.views import doctor as views
    from logtool.commands.views.doctor_tables import DOCUMENT
    from logtool.doctor import telling
    from logtool.doctor.examination import Examination
    from logtool.errors import UnreadableError
    from logtool.node.options import StartOptions
    from logtool.running.budget import Budget

    given = inputs.resolved()
    keys = (*broker_config.INDEXES, *broker_config.JUDGED)
    hints = inputs.broker.hints() if kafka_version is None else ()
    run = Examination(
        given.paths,
        StartOptions(
            parsing.kafka_version(kafka_version), static=inputs.broker.take(*keys, *hints)
        ),
        selection=given.selection,
        flavour=given.flavour,
        budget=Budget(running.threads, running.pace()),
        on_progress=lambda progress: report.show(progress),
    )
    report = Report(settings, views.make(settings, run.paths), run.summary, given)
    with report:
        for item in telling.told(run):
            if isinstance(item, UnreadableError):
                report.unreadable(item)
            else:
                report.item(DOCUMENT.row(item))
    return report.exit_status(fail_on)


def _environment(settings: "OutputSettings") -> "Exit":
    """Print what logtool runs on."""
    from logtool.commands.output import Report
    from logtool.commands.views import doctor as views
    from logtool.commands.views.doctor_tables import COMPONENT
    from logtool.doctor.environment import components
    from logtool.running.summary import Summary

    report = Report(settings, views.of_environment(), Summary())
    with report:
        for one in (*components(), *_own_settings()):
            report.item(COMPONENT.row(one))
    return report.exit_status()


def _own_settings() -> "Iterator[Component]":
    """Yield the user's own defaults, each with where it comes from."""
    from logtool.commands.program import settings as own
    from logtool.doctor.answers import Component, State

    file = own.path()
    there = file is not None and file.exists()
    detail = str(file) if there else f"{file}, which is not there" if file else "switched off"
    problem, found = None, {}
    try:
        found = own.load()
    except UsageError as error:
        problem = Component("settings", False, None, str(error), State.ERROR)
    yield problem or Component("settings", there, None, detail)
    for name in own.SETTINGS:
        one = found.get(name)
        value, source = (str(one.value), f"from {one.source}") if one else (None, "not set")
        yield Component(f"setting {name}", one is not None, value, source)
    for variable in sorted(
        own.variables().keys() - {own.variable_of(name) for name in own.SETTINGS}
    ):
        yield Component(variable, True, None, "is no setting of logtool", State.WARNING)
