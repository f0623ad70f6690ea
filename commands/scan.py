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
        help="Directory or URL (such as s3://bucket/tables) for the tables.",
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
            help="Tables to write, separated by commas; records also writes findings. Default: all "
            "except records.",
        ),
    ] = None
    payload: Annotated[
        PayloadChoice,
        typer.Option(
            "--payload",
            help="Keys and values in the table records. hash: their CRC-32C.",
        ),
    ] = PayloadChoice.NONE
    show_secrets: Annotated[
        bool,
        typer.Option(
            "--show-secrets",
            help="In the table records, show secrets of a metadata log, otherwise replaced by "
            "asterisks: SCRAM keys, ids of delegation tokens, values of settings that are "
            "passwords or that Kafka does not define.",
        ),
    ] = False
    level: Annotated[
        ScanLevel,
        typer.Option(
            "--level",
            help="Depth of the findings, for all tables, as in 'logtool verify --level'; always "
            "records with the table records.",
        ),
    ] = ScanLevel.BATCHES
    run_id: Annotated[
        str | None,
        typer.Option(
            "--run-id",
            metavar="ID",
            help="Name of this run in the tables. Default: the time and six random digits. A "
            "run with this ID is replaced once the new run is complete; if a run with this ID is "
            "active, the command refuses.",
        ),
    ] = None
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="ID",
            help="Read only segments that are new or changed since this complete run in "
            "--output, and copy the rows of all others from it. The tables are the same as "
            "of a full run.",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class Runs:
    """Options for questions about the runs in --output, asked in place of another run."""

    list_runs: Annotated[
        bool,
        typer.Option(
            "--list",
            help="Only list the runs in --output: complete, incomplete, active, or left by a "
            "killed process. With --tables, list the files of these tables instead, of --run-id or "
            "of the runs of all IDs.",
        ),
    ] = False
    clean: Annotated[
        bool,
        typer.Option(
            "--clean",
            help="Only remove the files of killed runs from --output, and incomplete runs next to "
            "an older run with the same ID, and list them. All other runs stay.",
        ),
    ] = False
    remove: Annotated[
        str | None,
        typer.Option("--remove", metavar="ID", help="Only remove one run from --output."),
    ] = None
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--compare",
            metavar="ID ID",
            show_default=False,
            help="Only compare two complete runs in --output, the earlier one first: new, "
            "resolved and remaining (-v) findings, growth by topic, and replicas that fell "
            "behind or diverged.",
        ),
    ] = None
    history: Annotated[
        bool,
        typer.Option(
            "--history",
            help="Only list the totals of each topic in each run in --output, the oldest run "
            "first.",
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
    """Write log dirs as Parquet tables, with Spark.

    The tables are segments, batches, gaps, producers, transactions, findings, replicas and, with
    --tables, records. The table findings has the findings of 'logtool verify' at --level, and a row
    for each unreadable input. The table records lacks records that do not decode, and those of
    batches larger than --max-batch-memory: findings batch/records and batch/too-large show each.
    The table replicas compares the log dirs of one run, so give all copies at once.
    'logtool schema TABLE' prints the meaning and unit of each column; the schema in the files has
    them too.

    The command needs pip install 'kafka-logtool[spark]' and Java 17. Without --master, Spark runs
    on this machine.

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

    Runs:

    A run becomes visible only as a whole: the manifest in DIR/_runs is written last and lists the
    files of the run. Read only these files: 'logtool scan --list --tables NAME' prints them, and so
    does the Python function logtool.spark.scan.manifest.files. --list also shows the files of
    killed runs; --clean removes them, and so does the next run with the same ID. A run on another
    machine counts as killed if it shows no activity for 15 minutes.

    A run that could not read all of its inputs, or that read no segment, is incomplete. It does not
    replace an older run with the same ID: these files still show the older run, and the incomplete
    run is kept next to it. --list shows both. The next complete run with the ID replaces both, and
    --clean removes the incomplete one.

    Incremental runs:

    With --since, a segment counts as unchanged if size, time and inode (or ETag) of its log and
    indexes, and the CRC of its last batch, are the same. logtool does not read unchanged segments,
    so it does not find bytes that changed on the disk in such a segment. Results across segments,
    such as gaps, transactions and most findings, are computed again. Files of the earlier run are
    linked, or copied within the bucket, so you can remove the earlier run.

    Exit status:
      0    complete: the tables are written; without the table records, whatever was found
      1    with the table records: an error or a warning, as from 'logtool verify --level records',
           and the tables are written; with --compare: a new error or warning, or a replica fell
           behind or diverged
      2
      4    incomplete: an input could not be read, and the tables are complete apart from it, but an
           older run with the same ID stays; or nothing matched, Spark is not available, or the
           output could not be written, and no part of the run is kept; or the output to list does
           not exist
      5    refused: the output has other files or tables of another version, or is in a log dir;
           another process runs with the same ID; or the run does not exist
      130  ...; no part of the run is kept

    """
    limit, settings = parsing.parse_batch_memory(max_batch_memory), printing.settings()
    if not output:
        raise UsageError("--output is missing")
    if about := runs.options():
        if inputs.paths or inputs.files_from or inputs.broker:
            raise UsageError(f"{about} only read --output; they take no PATH")
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
