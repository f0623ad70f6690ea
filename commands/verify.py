"""``logtool verify``: check everything that can be checked. Writes nothing."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import case_paths, check_options, parsing
from logtool.commands.program.case_inputs import CaseInputs
from logtool.commands.program.spark_options import Spark
from logtool.commands.program.spread import spread
from logtool.errors import UsageError


class LevelChoice(StrEnum):
    """Depth of the checks; see `logtool.verify.Level`."""

    QUICK = "quick"
    BATCHES = "batches"
    RECORDS = "records"


LevelOption = Annotated[
    LevelChoice,
    typer.Option(
        "--level",
        help="quick: names, sizes, indexes and small files; batches: also framing, CRC and "
        "order of every batch; records: also the records in them.",
    ),
]


class EngineChoice(StrEnum):
    """Engines that can check segments."""

    LOCAL = "local"
    SPARK = "spark"


EngineOption = Annotated[
    EngineChoice,
    typer.Option(
        "--engine", help="local: threads of this process; spark: Spark executors (see --master)."
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="FILE",
        parser=options.local_path,
        help="Start with the partitions that were checked longest ago, and go on inside a segment "
        "in which the time ran out. FILE keeps the times and places from run to run.",
    ),
]
Sample = Annotated[
    str | None,
    typer.Option(
        "--sample",
        metavar="N/COUNT",
        help="Check one of COUNT samples of the partitions, or with P% another share each day. "
        "Every partition is in exactly one sample, on all brokers in the same one.",
    ),
]
WrongTopic = Annotated[
    bool,
    typer.Option(
        "--wrong-topic",
        help="Also look for batches that a client wrote to the wrong topic (KAFKA-19012): equal "
        "batches of a producer in two topics, one of which breaks its sequence; and for batches "
        "that one log has twice. Reads the headers once more; takes 8 B of memory for each batch.",
    ),
]


@spread
def verify(
    *,
    inputs: CaseInputs,
    sample: Sample = None,
    level: LevelOption = LevelChoice.BATCHES,
    shown: check_options.FindingOptions,
    max_batch_memory: options.MaxBatchMemory = options.MAX_BATCH_MEMORY,
    running: options.Running,
    resume: Resume = None,
    drop_cache: check_options.DropCache = False,
    wrong_topic: WrongTopic = False,
    engine: EngineOption = EngineChoice.LOCAL,
    spark: Spark,
    printing: options.Printing,
) -> None:
    """Check log dirs, partition dirs or files; the exit status is the verdict.

    logtool prints each error as soon as it finds it, and the first three warnings of each code. It
    counts the other warnings and the findings of severity info; -v prints them too. All formats
    other than table contain every finding. If one PATH holds a sound copy of a damaged log, the
    command that repairs the log from the copy is printed first. Log dirs belong to one broker,
    unless ID=DIR or two metadata logs show several: each broker is then judged by itself.

    The command needs no broker, and writes nothing but the files of --resume and --metrics-file.
    While a broker runs, the newest data may look incomplete; the finding then has severity info. On
    SIGUSR1 logtool prints its progress.

    Examples:
      logtool verify /var/lib/kafka/data
      logtool verify --level records --topic 'orders*' /var/lib/kafka/data
      logtool verify --max-duration 30m --max-rate 100M --resume ~/.logtool.json /var/lib/kafka/data
      logtool verify --sample 5% /var/lib/kafka/data
      logtool verify --format ndjson data/orders-0 | jq -r 'select(.severity == "error").path'

    Batches in the wrong topic:

    A Java client from 2.8 on could write a batch to the wrong partition (KAFKA-19012); its CRC is
    right there. With --wrong-topic the command compares the batches of all partitions in PATH. It
    finds such a batch while both partitions hold it, if the producer was idempotent and the batch
    breaks its sequence in the wrong partition. It also finds a batch of an idempotent producer that
    one log has twice, which no sound log has; and a segment file of another partition, also if the
    right place of its batches is in the log dir of another broker in PATH.

    Tiered storage:

    If PATH has the prefix of objects, they are checked as 'logtool remote verify' does: compared
    with the records of __remote_log_metadata in the log dirs given with them, or by themselves.

    Spark:

    With --engine spark the executors of a Spark cluster check the segments. The findings and their
    order are the same. This engine needs pip install 'kafka-logtool[spark]' and Java 17.

    Exit status:
      0    complete: nothing found at or above --fail-on
      1    findings at or above --fail-on
      2
      4    ...; this does not mean that data is corrupt
      5    refused: --resume or --metrics-file names a file in a log dir
      6
      130  ...; the summary shows what was checked

    """
    from logtool.commands.views.verify import run

    case_paths.require(inputs.given(), records=level is LevelChoice.RECORDS, crcs=wrong_topic)
    _check_engine(engine, running, resume, spark)
    status = run(
        inputs, running, printing,
        level=str(level), fail_on=shown.fail_on, max_findings=shown.max_findings,
        limit=parsing.parse_batch_memory(max_batch_memory), resume=resume, drop_cache=drop_cache,
        wrong_topic=wrong_topic,
        metrics_file=shown.metrics_file,
        sample=None if sample is None else parsing.parse_sample(sample),
        spark=spark if engine is EngineChoice.SPARK else None,
    )  # fmt: skip
    raise typer.Exit(status)


def _check_engine(
    engine: EngineChoice, running: options.Running, resume: Path | None, spark: Spark
) -> None:
    """Raise UsageError for an option without effect on the engine."""
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
            raise UsageError(f"{name} has no effect with --engine {engine}")
