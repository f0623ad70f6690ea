"""``logtool txns``: producers, transactions, what pins the last stable offset. Writes nothing."""

import time
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.options import (
    AsJson,
    Color,
    ColorOption,
    ExcludeTopics,
    FilesFrom,
    Format,
    FormatOption,
    Jobs,
    MaxDuration,
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

Every = Annotated[
    bool, typer.Option("--all", help="List the aborted and committed transactions too.")
]
Now = Annotated[
    str | None,
    typer.Option(
        "--now", metavar="TIME",
        help="Ages are counted to TIME, milliseconds or RFC 3339; by default to this moment.",
    ),
]  # fmt: skip
MaxAge = Annotated[
    str | None,
    typer.Option(
        "--max-age", metavar="TIME",
        help="A transaction open for longer, such as 20m, is hanging; by default 15m10s.",
    ),
]  # fmt: skip
Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap-server", metavar="HOST:PORT",
        help="What the printed commands connect to; this one connects to nothing.",
        show_default=True,
    ),
]  # fmt: skip


def txns(
    paths: Paths = None,
    files_from: FilesFrom = None,
    null: Null = False,
    topic: Topics = None,
    exclude_topic: ExcludeTopics = None,
    partition: Partitions = None,
    every: Every = False,
    now: Now = None,
    max_age: MaxAge = None,
    bootstrap_server: Bootstrap = "localhost:9092",
    jobs: Jobs = None,
    max_rate: MaxRate = None,
    max_duration: MaxDuration = None,
    format: FormatOption = Format.TABLE,
    as_json: AsJson = False,
    color: ColorOption = Color.AUTO,
    progress: Progress = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Show producers and transactions of log dirs, partition dirs or logs, and what is stuck.

    The state of every producer is replayed from the batches and held against the producer
    snapshots and transaction indexes, by the rules of verify. The last stable offset, up to which
    read_committed consumers get, is the first offset of the oldest open transaction, or the end
    of the log, once everything is replicated; see high_watermark for what the broker knew of that.

    A transaction is hanging when its first record is older than --max-age. The default is that
    of transaction.max.timeout.ms, 15 minutes, and the 10 seconds after which a coordinator looks
    again: had one known of the transaction, it would have aborted it by then. Where brokers were
    down for as long, one may still do so when it starts. Timestamps are those that clients set.

    For each open transaction the command that ends it is printed, to be run against a broker. It
    loses the records of that transaction: run it for hanging ones only.

    Examples:
      logtool txns /var/lib/kafka/data
      logtool txns --all --now 2025-03-01T12:00:00Z data/orders-0
      logtool txns --json data | jq -r '.items[] | select(.state == "hanging").abort'

    Exit status:
      0    complete: nothing hangs, snapshots and transaction indexes agree with the log
      1    complete: a transaction is hanging, or a snapshot or an index contradicts the log
      2    the command line makes no sense
      4    incomplete: some input could not be read, or nothing matched
      6    --max-duration ran out; nothing said of the rest
      130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)

    """
    from logtool.commands import txns_view
    from logtool.commands.output import Report
    from logtool.data_dir import Inputs
    from logtool.dump.values import parse_time
    from logtool.open_transactions import MAX_AGE_MS
    from logtool.schedule import Budget
    from logtool.summary import ActionSummary
    from logtool.txns import Audit
    from logtool.workers import Pace, available_cpus

    settings = options.settings(
        format, as_json, color, quiet=quiet, verbose=verbose, progress=progress
    )
    now_ms = time.time_ns() // 1_000_000 if now is None else parse_time(now)
    if now_ms is None:
        raise UsageError(f"--now {now}: expected milliseconds or RFC 3339 with a time zone")
    age = None if max_age is None else options.parse_duration("--max-age", max_age)
    summary = ActionSummary()
    inputs = Inputs(
        options.all_paths(paths, files_from, null),
        options.selection(topic, exclude_topic, partition),
    )
    report = Report(settings, txns_view.make(settings), summary, inputs)
    job = Audit(
        inputs.paths,
        now_ms,
        MAX_AGE_MS if age is None else round(age * 1000),
        inputs.selection,
        Budget(
            jobs or available_cpus(),
            Pace.starting_now(
                options.parse_size("--max-rate", max_rate) if max_rate else None,
                options.parse_duration("--max-duration", max_duration) if max_duration else None,
            ),
        ),
        report.show_progress,
        summary,
    )
    printer = txns_view.Printer(report, bootstrap_server, every=every)
    with report:
        for item in job:
            if isinstance(item, Exception):
                summary.add(item)
                report.unreadable(item)
            else:
                printer.show(item)
        summary.to_do = printer.states["hanging"] > 0
    for line, style in printer.last_lines():
        report.note(line, style)
    raise typer.Exit(report.exit_status(Severity.WARNING))
