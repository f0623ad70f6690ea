"""``logtool scan``: log dirs as Parquet tables, by Spark. Writes only --output."""

import secrets
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.commands.options import (
    AsJson,
    Color,
    ColorOption,
    Conf,
    ExcludeTopics,
    FilesFrom,
    Format,
    FormatOption,
    Master,
    Null,
    Partitions,
    Paths,
    Progress,
    Quiet,
    Topics,
    Verbose,
)
from logtool.errors import UsageError

if TYPE_CHECKING:
    from logtool.commands.output import Report
    from logtool.exits import Exit


class PayloadChoice(StrEnum):
    """How much of keys and values the table of records tells."""

    NONE = "none"
    LENGTH = "length"
    HASH = "hash"
    FULL = "full"


Output = Annotated[
    str,
    typer.Option(
        "--output", metavar="DIR", show_default=False,
        help="Where the tables go: a directory, or a URL such as s3://bucket/tables.",
    ),
]  # fmt: skip
RunId = Annotated[
    str | None,
    typer.Option(
        "--run-id", metavar="ID",
        help="Name of this run in the tables; by default the time and six random digits. A "
        "complete run of that name is replaced; one that is under way is not, and this is refused.",
    ),
]  # fmt: skip
Tables = Annotated[
    str | None,
    typer.Option(
        "--tables", metavar="NAME,...",
        help="Which tables to write; by default all but records.",
    ),
]  # fmt: skip
PayloadOption = Annotated[
    PayloadChoice,
    typer.Option(
        "--payload",
        help="Of the table records: what it tells of keys and values. hash is their CRC-32C.",
    ),
]


List = Annotated[
    bool,
    typer.Option(
        "--list",
        help="Only list the runs in --output: complete, under way, or left by a process that was "
        "killed.",
    ),
]
Clean = Annotated[
    bool,
    typer.Option(
        "--clean",
        help="Only remove from --output what killed processes left, and list it. Complete runs and "
        "those under way stay.",
    ),
]


def scan(
    paths: Paths = None,
    output: Output = "",
    files_from: FilesFrom = None,
    null: Null = False,
    topic: Topics = None,
    exclude_topic: ExcludeTopics = None,
    partition: Partitions = None,
    tables: Tables = None,
    payload: PayloadOption = PayloadChoice.NONE,
    run_id: RunId = None,
    list_runs: List = False,
    clean: Clean = False,
    master: Master = None,
    conf: Conf = None,
    format: FormatOption = Format.TABLE,
    as_json: AsJson = False,
    color: ColorOption = Color.AUTO,
    progress: Progress = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Turn log dirs or partition dirs into Parquet tables, on Spark.

    The tables are segments, batches, gaps, producers, transactions, findings, replicas and, where
    they are asked for, records. Findings are those of 'logtool verify'; what cannot be read is a
    row among them. Replicas compares the log dirs of one run: give it all copies at once.

    Each run is a directory run_id=ID in each table, and is there as a whole or not at all: its
    record in DIR/_runs is written last. What a killed run leaves shows with --list and goes with
    --clean, or with the next run of its ID. A run on another machine counts as killed after 15
    minutes without a sign of life. What each column means, and in which unit, stands in the
    schema of the files.

    It needs pip install 'kafka-logtool[spark]' and Java 17. Without --master it runs on this
    machine.

    Examples:
      logtool scan /var/lib/kafka/data --output tables
      logtool scan broker-*/data --output tables --run-id monday --tables segments,replicas
      logtool scan /data --output tables --tables records --payload hash --topic orders
      logtool scan s3://backup/broker-1 --output tables --master spark://10.0.0.1:7077
      logtool scan --output tables --list

    Exit status:
      0    complete: the tables are written, whatever was found
      2    the command line makes no sense
      4    incomplete: some input could not be read, and the tables are complete but for that; or
           nothing matched, Spark cannot be had, or the output cannot be written, and nothing of the
           run is left
      5    refused: the output holds something else, or tables of another version, or lies in a
           log dir; or another process works on a run of that ID
      130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP); nothing of the run is left

    """
    from logtool.commands import scan_view
    from logtool.commands.output import Report
    from logtool.data_dir import Inputs
    from logtool.exits import Exit
    from logtool.summary import Summary

    chosen = options.settings(
        format, as_json, color, quiet=quiet, verbose=verbose, progress=progress
    )
    if not output:
        raise UsageError("--output is missing: the tables go there")
    if list_runs or clean:
        if paths or files_from:
            raise UsageError("--list and --clean are about --output: they take no PATH")
        raise typer.Exit(
            _runs(Report(chosen, scan_view.make(runs=True), Summary()), output, clean=clean)
        )
    inputs = Inputs(
        options.all_paths(paths, files_from, null),
        options.selection(topic, exclude_topic, partition),
    )
    settings_of_spark = options.parse_conf(conf)
    report = Report(chosen, scan_view.make(), Summary(), inputs)
    with report:
        from logtool.pipeline.session import needed, session

        needed()
        from logtool.pipeline import tables as known
        from logtool.pipeline.scan import Scan, check_output
        from logtool.pipeline.storage import check
        from logtool.pipeline.tables import Payload

        wanted = known.DEFAULT if tables is None else tuple(dict.fromkeys(tables.split(",")))
        for name in wanted:
            if name not in known.NAMES:
                raise UsageError(f"--tables {name}: expected some of {', '.join(known.NAMES)}")
        if payload is not PayloadChoice.NONE and "records" not in wanted:
            raise UsageError("--payload is about the table records: add it to --tables")
        run_id = run_id or f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
        check_output(output, inputs.paths)
        check(output, run_id)
        report.show_progress(0, 0, "Spark starts", at_once=True)
        with session(master, settings_of_spark) as spark:
            report.show_progress(0, 0, "Spark lists the partitions", at_once=True)
            job = Scan(
                spark,
                inputs.paths,
                output,
                run_id,
                wanted,
                Payload(payload),
                inputs.selection,
                on_progress=lambda p: report.show_progress(
                    p.bytes_done, p.bytes_total, scan_view.reading(report.summary, p.path)
                ),
                on_step=lambda text: report.note(text) if verbose else None,
                on_wait=lambda text: report.show_progress(
                    report.summary.bytes, report.summary.bytes, text, at_once=True
                ),
                on_unreadable=report.unreadable,
                summary=report.summary,
            )
            job.run()
        for obj in scan_view.objects(job):
            report.item(obj)
        report.note(scan_view.last_line(job), "good" if report.summary.complete else "warning")
    status = report.exit_status()
    raise typer.Exit(Exit.OK if status is Exit.FINDINGS else status)


def _runs(report: "Report", output: str, *, clean: bool) -> "Exit":
    """List the runs of an output, or remove what killed processes left and list that."""
    from logtool.commands import scan_view

    with report:
        from logtool.pipeline.session import needed

        needed()
        from logtool.pipeline import storage

        if not clean:
            for record in storage.runs(output):
                report.item(scan_view.run_object(record))
        left = storage.clean(output) if clean else storage.staged(output)
        for one in left:
            report.item(scan_view.staged_object(one, removed=clean))
        if clean and not left:
            report.note("nothing to remove")
        elif not clean and any(not one.lives for one in left):
            report.note("a killed process left what logtool scan --clean --output removes")
    return report.exit_status()
