"""``logtool scan``: log dirs as Parquet tables, by Spark. Writes only --output."""

import secrets
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.commands.program import parsing
from logtool.commands.program.spread import spread
from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from logtool.commands.output import OutputSettings, Report
    from logtool.exits import Exit
    from logtool.log.inputs import GivenPaths


class LevelChoice(StrEnum):
    """How deep the findings go; see `logtool.verify.Level`."""

    BATCHES = "batches"
    RECORDS = "records"


class PayloadChoice(StrEnum):
    """How much of keys and values the table of records tells."""

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
    """What is written, and under which name."""

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
        LevelChoice,
        typer.Option(
            "--level",
            help="How deep the findings go, whatever the tables: those of logtool verify --level.",
        ),
    ] = LevelChoice.BATCHES
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

    def names(self) -> tuple[str, ...]:
        """Return the names of the tables; UsageError for one that there is not."""
        from logtool.schemas import arrow

        if self.tables is None:
            return arrow.DEFAULT
        names = tuple(dict.fromkeys(self.tables.split(",")))
        for name in names:
            if name not in arrow.NAMES:
                raise UsageError(f"--tables {name}: expected some of {', '.join(arrow.NAMES)}")
        return names


@dataclass(frozen=True, slots=True)
class Runs:
    """What is asked of the runs in --output, in place of another run."""

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
    spark: options.Spark,
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
    limit = parsing.parse_batch_memory(max_batch_memory)
    raise typer.Exit(_scan(output, inputs, written, limit, runs, spark, printing))


def _scan(
    output: str,
    inputs: options.Inputs,
    written: Written,
    limit: int,
    runs: Runs,
    spark: options.Spark,
    printing: options.Printing,
) -> "Exit":
    """Do what is asked for; returns the exit status."""
    from logtool.commands.output import Report
    from logtool.commands.views import scan
    from logtool.exits import Exit
    from logtool.running.summary import Summary

    settings = printing.settings()
    if not output:
        raise UsageError("--output is missing: the tables go there")
    if about := runs.options():
        if inputs.paths or inputs.files_from or inputs.broker:
            raise UsageError(f"{about} are about --output: they take no PATH")
        return _runs(settings, output, written, runs)
    given, conf = inputs.resolved(), spark.settings()
    report = Report(settings=settings, view=scan.make(), summary=Summary(), inputs=given)
    with report:
        _write(report, output, given, written, limit, spark.master, conf)
    status = report.exit_status()
    return Exit.OK if status is Exit.FINDINGS else status


def _write(
    report: "Report",
    output: str,
    given: "GivenPaths",
    written: Written,
    limit: int,
    master: str | None,
    conf: dict[str, str],
) -> None:
    """Write the tables; the report is open."""
    from logtool.spark.session import needed, session

    needed()
    from logtool.commands.views import scan
    from logtool.schemas.arrow import Payload
    from logtool.spark.scan.runs import check
    from logtool.spark.scan.scan import Scan, check_output, check_since
    from logtool.verify import Level

    names, payload, summary = written.names(), Payload(written.payload), report.summary
    if written.payload is not PayloadChoice.NONE and "records" not in names:
        raise UsageError("--payload is about the table records: add it to --tables")
    if written.show_secrets and not ("records" in names and payload.tells(Payload.HASH)):
        told = "values of the table records: give --tables records --payload full, or hash"
        raise UsageError(f"--show-secrets is about {told}")
    run_id = written.run_id or f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
    check_output(output, given.paths)
    check(output, run_id)
    level = Level(written.level)
    secret = written.show_secrets
    check_since(output, written.since, names, payload, level=level, show_secrets=secret)
    report.show_progress(0, 0, "Spark starts", at_once=True)
    with session(master, conf) as spark:
        report.show_progress(0, 0, "Spark lists the partitions", at_once=True)
        job = Scan(
            spark=spark,
            paths=given.paths,
            output=output,
            run_id=run_id,
            wanted=names,
            payload=payload,
            show_secrets=secret,
            level=level,
            selection=given.selection,
            limit=limit,
            on_progress=lambda p: report.show_progress(
                p.bytes_done, p.bytes_total, scan.reading(summary, p.path)
            ),
            on_step=lambda text: report.note(text) if report.settings.verbose else None,
            on_wait=lambda text: report.show_progress(
                summary.bytes, summary.bytes, text, at_once=True
            ),
            on_unreadable=report.unreadable,
            since=written.since,
            summary=summary,
        )
        job.run()
    for obj in scan.objects(job):
        report.item(obj)
    report.note(scan.last_line(job), "good" if summary.complete else "warning")


def _runs(settings: "OutputSettings", output: str, written: Written, runs: Runs) -> "Exit":
    """Say what is asked of the runs, or remove some; returns the exit status."""
    from logtool.commands.output import Report
    from logtool.commands.views import scan
    from logtool.running.summary import Summary
    from logtool.spark.session import needed_for_runs

    if runs.compare:
        return _compare(settings, output, runs.compare)
    if runs.history:
        return _history(settings, output)
    of_files = runs.list_runs and bool(written.tables)
    with Report(
        settings=settings, view=scan.make("file" if of_files else "run"), summary=Summary()
    ) as report:
        needed_for_runs()
        if of_files:
            _list_files(report, output, written.names(), written.run_id)
        elif runs.list_runs:
            _list_runs(report, output)
        else:
            _remove(report, output, runs.remove)
    return report.exit_status()


def _list_runs(report: "Report", output: str) -> None:
    from logtool.commands.views import scan
    from logtool.spark.scan import manifest, runs

    for run in manifest.complete(output):
        report.item(scan.run_object(run, removed=False))
    left = runs.staged(output)
    for one in left:
        report.item(scan.staged_object(one, removed=False))
    if any(not one.lives for one in left):
        report.note("a killed process left what logtool scan --clean --output removes")


def _list_files(report: "Report", output: str, wanted: tuple[str, ...], run_id: str | None) -> None:
    from logtool.commands.views import scan
    from logtool.spark.scan import manifest

    runs = manifest.complete(output) if run_id is None else [manifest.find(output, run_id)]
    for run in runs:
        for obj in scan.file_objects(run, output, wanted):
            report.item(obj)


def _remove(report: "Report", output: str, run_id: str | None) -> None:
    """Remove a complete run, or what killed processes left, and list that."""
    from logtool.commands.views import scan
    from logtool.spark.scan import manifest, runs

    if run_id is not None:
        known = manifest.find(output, run_id)
        runs.remove(output, run_id)
        report.item(scan.run_object(known, removed=True))
        return
    left = runs.clean(output)
    for run in left:
        report.item(scan.staged_object(run, removed=True))
    if not left:
        report.note("nothing to remove")


def _compare(chosen: "OutputSettings", output: str, runs: tuple[str, str]) -> "Exit":
    from logtool.commands.output import Report
    from logtool.commands.views import scan_runs
    from logtool.exits import Exit
    from logtool.running.summary import Summary
    from logtool.spark.session import needed_for_runs

    with Report(
        settings=chosen, view=scan_runs.comparison(verbose=chosen.verbose), summary=Summary()
    ) as report:
        needed_for_runs()
        from logtool.spark.scan import compare_runs

        comparison = compare_runs.compare(output, *runs)
        for obj in scan_runs.objects(comparison):
            report.item(obj)
        for table in comparison.skipped:
            report.note(f"not compared: one of the runs has no table {table}", "warning")
        report.note(
            scan_runs.last_line(comparison, *runs), "warning" if comparison.is_worse else "good"
        )
    status = report.exit_status()
    return Exit.FINDINGS if status is Exit.OK and comparison.is_worse else status


def _history(chosen: "OutputSettings", output: str) -> "Exit":
    from logtool.commands.output import Report
    from logtool.commands.views import scan_runs
    from logtool.running.summary import Summary
    from logtool.spark.session import needed_for_runs

    with Report(settings=chosen, view=scan_runs.history(), summary=Summary()) as report:
        needed_for_runs()
        from logtool.spark.scan import history

        for row in history.history(output):
            report.item(scan_runs.history_object(row))
    return report.exit_status()
