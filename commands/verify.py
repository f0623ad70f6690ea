"""``logtool verify``: check everything that can be checked. Writes nothing."""

from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.commands.program import broker_config, parsing
from logtool.commands.program.spread import spread
from logtool.errors import UsageError
from logtool.findings import Severity

if TYPE_CHECKING:
    from logtool.commands.output import Report
    from logtool.commands.views.findings import Printer
    from logtool.running.budget import Budget
    from logtool.verify import Verification


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
        help="Begin with what was checked least recently; earlier runs wrote that to FILE.",
    ),
]
DropCache = Annotated[
    bool,
    typer.Option(
        "--drop-cache",
        help="Give pages back to the system once they are read; this cools the broker's cache.",
    ),
]


@spread
def verify(
    *,
    inputs: options.AnyInputs,
    level: LevelOption = LevelChoice.BATCHES,
    fail_on: options.FailOn = Severity.WARNING,
    max_findings: options.MaxFindings = None,
    max_batch_memory: options.MaxBatchMemory = options.MAX_BATCH_MEMORY,
    running: options.Running,
    resume: Resume = None,
    drop_cache: DropCache = False,
    engine: EngineOption = EngineChoice.LOCAL,
    spark: options.Spark,
    printing: options.Printing,
) -> None:
    """Check log dirs, partition dirs or files; the verdict is the exit status.

    Prints a line for each error as soon as it is found, and for the first three warnings of each
    code. Other warnings, and findings of severity info, are counted; -v prints them too. Every
    format other than table prints all findings.

    With --engine spark the executors of a Spark cluster do the work, and find the same in the same
    order. It needs pip install 'kafka-logtool[spark]' and Java 17.

    Writes nothing and needs no broker. While one runs, new data may look torn (info). SIGUSR1 makes
    it say how far it is. If a PATH holds a copy of a damaged log, its repair is proposed first.

    Examples:
      logtool verify /var/lib/kafka/data
      logtool verify --level records --topic 'orders*' /var/lib/kafka/data
      logtool verify --max-duration 30m --max-rate 100M --resume ~/.logtool.json /var/lib/kafka/data
      logtool verify --format ndjson data/orders-0 | jq -r 'select(.severity == "error").path'

    Exit status:
      0    complete, nothing found at or above --fail-on
      1    complete, with findings at or above --fail-on
      2
      4    incomplete: nothing matched, or some input could not be read, which says nothing about
           corruption
      5    refused: --resume names a file in a log dir
      6
      130  interrupted by Ctrl-C (143: SIGTERM, 129: SIGHUP); the summary says what was checked

    """
    from logtool.commands.output import Report
    from logtool.commands.views import findings
    from logtool.verify import Level, Verification

    settings = printing.settings()
    _check_engine(engine, running, resume, spark)
    budget = _budget(running, resume, drop_cache=drop_cache)
    paths = inputs.given()
    if not (spark.master or "local").startswith("local"):
        # An executor on another machine has another current directory.
        paths = [path.absolute() for path in paths]
    job = Verification(
        paths,
        level=Level(level),
        selection=inputs.selection,
        limit=parsing.parse_batch_memory(max_batch_memory),
        budget=budget,
        static={} if level is LevelChoice.QUICK else inputs.broker.take(*broker_config.JUDGED),
        on_progress=lambda progress: report.show(progress), flavour=inputs.given_flavour,
    )  # fmt: skip
    given = inputs.resolved(paths)
    report = Report(settings, findings.make(settings), job.summary, given)
    printer = findings.Printer(report, max_findings)
    _run(job, report, printer, spark if engine is EngineChoice.SPARK else None)
    printer.left_out(job.too_large)
    printer.conclude(fail_on)
    raise typer.Exit(report.exit_status(fail_on))


def _check_engine(
    engine: EngineChoice, running: options.Running, resume: Path | None, spark: options.Spark
) -> None:
    """UsageError for an option that says nothing to the engine."""
    useless: dict[str, object] = {"--master": spark.master, "--conf": spark.conf}
    if engine is EngineChoice.SPARK:
        useless = {
            "--jobs": running.jobs,
            "--max-rate": running.max_rate,
            "--max-duration": running.max_duration,
            "--resume": resume,
        }
    for name, value in useless.items():
        if value is not None:
            raise UsageError(f"{name} says nothing to --engine {engine}")


def _budget(running: options.Running, resume: Path | None, *, drop_cache: bool) -> "Budget":
    from logtool.running.budget import Budget
    from logtool.running.resume import load

    return Budget(
        jobs=running.threads,
        pace=running.pace(),
        drop_cache=drop_cache,
        memory=load(resume) if resume else None,
    )


def _run(
    job: "Verification", report: "Report", printer: "Printer", spark: options.Spark | None
) -> None:
    """Print what is found, here or by Spark; SIGUSR1 prints how far the job is."""
    from logtool.commands.printing.interrupts import status_on_signal
    from logtool.commands.views import findings

    conf = spark.settings() if spark else {}
    with (
        ExitStack() as stack,
        report,
        status_on_signal(lambda: report.note(findings.status(job))),
    ):
        if spark:
            from logtool.spark.engine import SparkEngine
            from logtool.spark.session import session

            job.use(SparkEngine(stack.enter_context(session(spark.master, conf))))
        for item in job:
            printer.show(item)
