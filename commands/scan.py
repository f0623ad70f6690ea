"""``logtool scan``: log dirs as Parquet tables, by Spark. Writes only --output."""

from enum import StrEnum
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import parsing
from logtool.commands.program.spark_options import Spark
from logtool.commands.program.spread import spread
from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass


class ScanLevel(StrEnum):
    """Depth of the findings; see `logtool.verify.Level`."""

    BATCHES = "batches"
    RECORDS = "records"


class PayloadChoice(StrEnum):
    """Forms of keys and values in the table of records."""

    NONE = "none"
    LENGTH = "length"
    HASH = "hash"
    FULL = "full"


Output = Annotated[
    str,
    typer.Option(
        "--output",
        metavar="DIR",
        show_default=False,
        help="Where the tables go: a directory, or a URL such as s3://bucket/tables.",
    ),
]


@dataclass(frozen=True, slots=True)
class Written:
    """Options for the tables to write and for the name of the run."""

    tables: Annotated[
        str | None,
        typer.Option(
            "--tables",
            metavar="NAME,...",
            help="Which tables to write; by default all but records.",
        ),
    ] = None
    payload: Annotated[
        PayloadChoice,
        typer.Option(
            "--payload",
            help="Of the table records: what it tells of keys and values. hash is their CRC-32C.",
        ),
    ] = PayloadChoice.NONE
    show_secrets: Annotated[
        bool,
        typer.Option(
            "--show-secrets",
            help="Of the table records: leave passwords, SCRAM keys and ids of delegation tokens "
            "in those of a metadata log, where stars stand otherwise.",
        ),
    ] = False
    level: Annotated[
        ScanLevel,
        typer.Option(
            "--level",
            help="How deep the findings go, whatever the tables: those of logtool verify --level.",
        ),
    ] = ScanLevel.BATCHES
    run_id: Annotated[
        str | None,
        typer.Option(
            "--run-id",
            metavar="ID",
            help="Name of this run in the tables; by default the time and six random digits. A "
            "complete run of that name is replaced; one that is under way is not, and this is "
            "refused.",
        ),
    ] = None
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="ID",
            help="Read only segments that are new or changed since a complete run in --output, "
            "and take the rows of all others from it. It gives the tables of a full run.",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class Runs:
    """Options for questions about the runs in --output, asked in place of another run."""

    list_runs: Annotated[
        bool,
        typer.Option(
            "--list",
            help="Only list the runs in --output: complete, under way, or left by a process that "
            "was killed. With --tables, list the files of these tables instead, of all complete "
            "runs or of --run-id.",
        ),
    ] = False
    clean: Annotated[
        bool,
        typer.Option(
            "--clean",
            help="Only remove from --output what killed processes left, and list it. Complete "
            "runs and those under way stay.",
        ),
    ] = False
    remove: Annotated[
        str | None,
        typer.Option("--remove", metavar="ID", help="Only remove one complete run from --output."),
    ] = None
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--compare",
            metavar="ID ID",
            show_default=False,
            help="Only compare two complete runs in --output, the earlier one first: findings "
            "that are new, gone, or still there (-v), growth by topic, replicas that fell behind "
            "or diverged.",
        ),
    ] = None
    history: Annotated[
        bool,
        typer.Option(
            "--history",
            help="Only list what each topic came to in each run in --output, the oldest first.",
        ),
    ] = False

    def options(self) -> str | None:
        """Return the options of the kind that is asked for; None where a run is."""
        if self.compare or self.history:
            return "--compare and --history"
        if self.list_runs or self.clean or self.remove:
            return "--list, --clean and --remove"
        return None


@spread
def scan(
    *,
    output: Output = "",
    inputs: options.Inputs,
    written: Written,
    max_batch_memory: options.MaxBatchMemory = options.MAX_BATCH_MEMORY,
    runs: Runs,
    spark: Spark,
    printing: options.Printing,
) -> None:
    """Turn log dirs or partition dirs into Parquet tables, on Spark.

    The tables are segments, batches, gaps, producers, transactions, findings, replicas and, where
    they are asked for, records. The table findings holds those of 'logtool verify' at --level,
    whatever the tables, with a row for each input that cannot be read. The table replicas compares
    the log dirs of one run, so give all copies at once.

    A run is there as a whole or not at all: its manifest in DIR/_runs, written last, names its
    files. Read these: 'scan --list --tables NAME' prints them, and so does the Python function
    logtool.spark.scan.manifest.files. What a killed run leaves shows with --list and goes with
    --clean, or with the next run of its ID. A run on another machine counts as killed after 15
    minutes without a sign of life. 'logtool schema TABLE' says what each column means, and in which
    unit; so does the schema of the files.

    With --since a segment is the same if size, time and inode (or ETag) of its log and indexes are,
    and the CRC of its last batch; then no byte of it is read, so one that rotted in place is not
    seen. What is said across segments, such as gaps, transactions and most findings, is worked out
    anew. Files of the earlier run are linked, or copied inside the bucket: it may be removed.

    It needs pip install 'kafka-logtool[spark]' and Java 17. Without --master it runs on this
    machine.

    Examples:
      logtool scan /var/lib/kafka/data --output tables
      logtool scan broker-*/data --output tables --run-id monday --tables segments,replicas
      logtool scan /data --output tables --tables records --payload hash --topic orders
      logtool scan s3://backup/broker-1 --output tables --master spark://10.0.0.1:7077
      logtool scan broker-*/data --output tables --run-id tuesday --since monday
      logtool scan --output tables --list
      logtool scan --output tables --list --tables findings --run-id monday -f csv
      logtool scan --output tables --compare monday tuesday
      logtool scan --output tables --history -f csv > history.csv

    Exit status:
      0    complete: the tables are written, whatever was found
      1    with --compare: a finding of warning or error is new, or a replica fell behind or
           diverged
      2
      4    incomplete: some input could not be read, and the tables are complete but for that; or
           nothing matched, Spark cannot be had, or the output cannot be written, and nothing of the
           run is left
      5    refused: the output holds something else, or tables of another version, or lies in a
           log dir; or another process works on a run of that ID; or there is no such run
      130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP); nothing of the run is left

    """
    limit, settings = parsing.parse_batch_memory(max_batch_memory), printing.settings()
    if not output:
        raise UsageError("--output is missing: the tables go there")
    if about := runs.options():
        if inputs.paths or inputs.files_from or inputs.broker:
            raise UsageError(f"{about} are about --output: they take no PATH")
        from logtool.commands.views.scan_runs import run as run_on_output

        status = run_on_output(
            settings, output,
            tables=written.tables, run_id=written.run_id, is_listed=runs.list_runs,
            removed=runs.remove, compared=runs.compare, has_history=runs.history,
        )  # fmt: skip
        raise typer.Exit(status)
    from logtool.commands.views.scan import run

    status = run(
        inputs, spark, settings, output,
        limit=limit, tables=written.tables, payload=str(written.payload),
        show_secrets=written.show_secrets, level=str(written.level), run_id=written.run_id,
        since=written.since,
    )  # fmt: skip
    raise typer.Exit(status)
