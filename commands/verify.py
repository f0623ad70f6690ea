"""``logtool verify``: check everything that can be checked. Writes nothing."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import parsing
from logtool.commands.program.spark_options import Spark
from logtool.commands.program.spread import spread
from logtool.errors import UsageError
from logtool.findings import Severity


class LevelChoice(StrEnum):
    """Depth of the checks; see `logtool.verify.Level`."""

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
    """Engines that can check segments."""

    LOCAL = "local"
    SPARK = "spark"


EngineOption = Annotated[
    EngineChoice,
    typer.Option(
        "--engine", help="local: threads of this process; spark: executors (see --master)."
    ),
]
MaxFindings = Annotated[
    int | None,
    typer.Option(
        "--max-findings",
        metavar="N",
        min=0,
        help="Print at most N findings, but count all of them.",
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
    max_findings: MaxFindings = None,
    max_batch_memory: options.MaxBatchMemory = options.MAX_BATCH_MEMORY,
    running: options.Running,
    resume: Resume = None,
    drop_cache: DropCache = False,
    engine: EngineOption = EngineChoice.LOCAL,
    spark: Spark,
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
    from logtool.commands.views.verify import run

    _check_engine(engine, running, resume, spark)
    status = run(
        inputs, running, printing,
        level=str(level), fail_on=fail_on, max_findings=max_findings,
        limit=parsing.parse_batch_memory(max_batch_memory), resume=resume, drop_cache=drop_cache,
        spark=spark if engine is EngineChoice.SPARK else None,
    )  # fmt: skip
    raise typer.Exit(status)


def _check_engine(
    engine: EngineChoice, running: options.Running, resume: Path | None, spark: Spark
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
