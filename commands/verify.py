"""``logtool verify``: check everything that can be checked. Writes nothing."""

from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.options import (
    AsJson,
    Color,
    ColorOption,
    Conf,
    ExcludeTopics,
    FailOn,
    FilesFrom,
    Format,
    FormatOption,
    Jobs,
    Master,
    MaxDuration,
    MaxFindings,
    MaxRate,
    Null,
    Partitions,
    Paths,
    Progress,
    Quiet,
    Topics,
    Verbose,
)
from logtool.errors import UsageError
from logtool.findings import Severity


class LevelChoice(StrEnum):
    """How deep to look; see `logtool.verify.Level`."""

    QUICK = "quick"
    BATCHES = "batches"
    RECORDS = "records"


LevelOption = Annotated[
    LevelChoice,
    typer.Option(
        "--level",
        help="quick: names, sizes, indexes and small files; batches: also framing, CRC and order "
        "of every batch; records: also what is in them.",
    ),
]


class EngineChoice(StrEnum):
    """Where segments are looked at."""

    LOCAL = "local"
    SPARK = "spark"


EngineOption = Annotated[
    EngineChoice,
    typer.Option(
        "--engine", help="local: threads of this process; spark: executors (see --master)."
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="FILE",
        parser=options.local_path,
        help="Begin with what was checked least recently, by what earlier runs wrote to FILE.",
    ),
]
DropCache = Annotated[
    bool,
    typer.Option(
        "--drop-cache", help="Give pages back to the system once read; cools the broker's cache."
    ),
]


def verify(
    paths: Paths = None,
    files_from: FilesFrom = None,
    null: Null = False,
    topic: Topics = None,
    exclude_topic: ExcludeTopics = None,
    partition: Partitions = None,
    level: LevelOption = LevelChoice.BATCHES,
    fail_on: FailOn = Severity.WARNING,
    max_findings: MaxFindings = None,
    jobs: Jobs = None,
    max_rate: MaxRate = None,
    max_duration: MaxDuration = None,
    resume: Resume = None,
    drop_cache: DropCache = False,
    engine: EngineOption = EngineChoice.LOCAL,
    master: Master = None,
    conf: Conf = None,
    format: FormatOption = Format.TABLE,
    as_json: AsJson = False,
    color: ColorOption = Color.AUTO,
    progress: Progress = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Check log dirs, partition dirs or files; the verdict is the exit status.

    Prints one line for each error and warning as it is found; what is only worth knowing is
    counted, and printed with -v. With another format than table, everything is printed.

    With --engine spark the same is found, in the same order, by the executors of a Spark cluster.
    It needs pip install 'kafka-logtool[spark]' and Java 17.

    Nothing is written, and no broker is needed. Under a running broker the newest data may look
    torn: that is said as info. SIGUSR1 prints a status line.

    Examples:
      logtool verify /var/lib/kafka/data
      logtool verify --level records --topic 'orders*' /var/lib/kafka/data
      logtool verify --max-duration 30m --max-rate 100M --resume ~/.logtool.json /var/lib/kafka/data
      logtool verify --format ndjson data/orders-0 | jq -r 'select(.severity == "error").path'

    Exit status:
      0    complete, nothing found at or above --fail-on
      1    complete, with findings at or above --fail-on
      2    the command line makes no sense
      4    incomplete: nothing matched, or some input could not be read, which says nothing about
           corruption
      5    refused: --resume names a file in a log dir
      6    --max-duration ran out; nothing said of the rest
      130  interrupted by Ctrl-C (143: SIGTERM, 129: SIGHUP); the summary says what was checked

    """
    from logtool.commands import findings_view
    from logtool.commands.interrupts import status_on_signal
    from logtool.commands.output import Report
    from logtool.data_dir import Inputs
    from logtool.resume import load
    from logtool.verify import Budget, Level, Verification
    from logtool.workers import Pace, available_cpus

    settings = options.settings(
        format, as_json, color, quiet=quiet, verbose=verbose, progress=progress
    )
    local_only = {"--jobs": jobs, "--max-rate": max_rate, "--max-duration": max_duration,
                  "--resume": resume}  # fmt: skip
    spark_only = {"--master": master, "--conf": conf}
    for name, value in (local_only if engine == "spark" else spark_only).items():
        if value is not None:
            raise UsageError(f"{name} says nothing to --engine {engine}")
    budget = Budget(
        jobs or available_cpus(),
        Pace.starting_now(
            options.parse_size("--max-rate", max_rate) if max_rate else None,
            options.parse_duration("--max-duration", max_duration) if max_duration else None,
        ),
        drop_cache,
        load(resume) if resume else None,
    )
    given = options.all_paths(paths, files_from, null)
    if not (master or "local").startswith("local"):
        # An executor on another machine has another current directory.
        given = [path.absolute() for path in given]
    inputs = Inputs(given, options.selection(topic, exclude_topic, partition))
    job = Verification(
        inputs.paths,
        level=Level(level),
        selection=inputs.selection,
        budget=budget,
        on_progress=lambda p: report.show_progress(p.bytes_done, p.bytes_total, p.path),
    )
    settings_of_spark = options.parse_conf(conf)
    report = Report(settings, findings_view.make(settings), job.summary, inputs)
    with (
        ExitStack() as stack,
        report,
        status_on_signal(lambda: report.note(findings_view.status(job))),
    ):
        if engine == "spark":
            from logtool.pipeline.engine import SparkEngine
            from logtool.pipeline.session import session

            spark = stack.enter_context(session(master, settings_of_spark))
            job.use(SparkEngine(spark))
        printer = findings_view.Printer(report, max_findings)
        for item in job:
            printer.show(item)
    printer.conclude(fail_on)
    raise typer.Exit(report.exit_status(fail_on))
