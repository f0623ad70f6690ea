"""``logtool plan``: what a broker does at its next start. Writes nothing."""

from dataclasses import replace
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
    LocalPaths,
    MaxDuration,
    MaxRate,
    Null,
    Partitions,
    Progress,
    Quiet,
    Topics,
    Verbose,
)

Threads = Annotated[
    int,
    typer.Option(
        "--recovery-threads", metavar="N", min=1,
        help="num.recovery.threads.per.data.dir of the broker.", show_default=True,
    ),
]  # fmt: skip
ReadRate = Annotated[
    str | None,
    typer.Option(
        "--read-rate", metavar="SIZE",
        help="Bytes a second that the broker gets through, such as 200M; measured by default.",
    ),
]  # fmt: skip


def plan(
    paths: LocalPaths = None,
    files_from: FilesFrom = None,
    null: Null = False,
    topic: Topics = None,
    exclude_topic: ExcludeTopics = None,
    partition: Partitions = None,
    kafka_version: options.KafkaVersion = None,
    index_interval_bytes: options.IndexInterval = None,
    index_size_max_bytes: options.IndexSize = None,
    recovery_threads: Threads = 1,
    read_rate: ReadRate = None,
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
    """Say what a broker will do to log dirs or partition dirs at its next start, and how long.

    Each log is loaded as a broker loads it, on a picture of its directory: what is deleted,
    renamed, read again, cut (with the byte, the offset and the records that go, and whether they
    were acknowledged), which indexes are written anew and which bad ones nobody notices, and
    what stops the start. A partition dir is judged by the checkpoints of the log dir it stands in.

    Log dirs given together are those of one broker. The metadata log of one of them says for all
    which partitions are stray and how topics are set; a meta.properties that does not fit the
    others, a partition in two log dirs or a copy on its way from one to another is judged as the
    start judges it. What cannot be said without a log dir that was not given is said last.

    The time is that of reading at the rate measured here, one thread for each log. With -v the
    files that follow from the rest (indexes, snapshots) are printed too.

    Examples:
      logtool plan /var/lib/kafka/data
      logtool plan --kafka-version 3.9 --recovery-threads 4 /data1/kafka /data2/kafka
      logtool plan --json /var/lib/kafka/data | jq '.items[] | select(.lost_records > 0)'

    Exit status:
      0    complete: nothing is lost, nothing stops the start
      1    complete: a log is cut, does not load or is put aside, a log dir goes offline, the
           broker does not start, a file is ignored, or a bad index goes unnoticed
      2    the command line makes no sense
      4    incomplete: some input could not be read, or nothing matched
      6    --max-duration ran out; nothing said of the rest
      130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)

    """
    from logtool.commands import actions_view
    from logtool.commands.output import Report
    from logtool.data_dir import Inputs
    from logtool.forecast import (
        Forecast,
        PartitionForecast,
        Settings,
        duration,
        measured_rate,
    )
    from logtool.plan import Action
    from logtool.summary import ActionSummary
    from logtool.workers import Pace, available_cpus

    settings = options.settings(
        format, as_json, color, quiet=quiet, verbose=verbose, progress=progress
    )
    rate = options.parse_size("--read-rate", read_rate) if read_rate else None
    summary = ActionSummary()
    inputs = Inputs(
        options.local_paths(paths, files_from, null),
        options.selection(topic, exclude_topic, partition),
    )
    report = Report(settings, actions_view.make(settings), summary, inputs)
    forecast = Forecast(
        inputs.paths,
        Settings(options.kafka_version(kafka_version), index_interval_bytes, index_size_max_bytes),
        selection=inputs.selection,
        jobs=jobs or available_cpus(),
        pace=Pace.starting_now(
            options.parse_size("--max-rate", max_rate) if max_rate else None,
            options.parse_duration("--max-duration", max_duration) if max_duration else None,
        ),
        on_progress=report.show_progress,
    )
    printer = actions_view.Printer(report, summary)
    found: list[PartitionForecast] = []
    time = None
    with report:
        for item in forecast:
            if isinstance(item, Action):
                printer.action(item)
            elif isinstance(item, PartitionForecast):
                printer.partition(item)
                found.append(replace(item, actions=()))
            else:
                printer.problem(item)
        summary.out_of_budget = forecast.out_of_time
        summary.to_do = printer.grave > 0
        speed = rate or measured_rate(found)
        if speed:
            time = duration(found, recovery_threads, speed)
            report.item(time.as_json())
    style = "good" if report.exit_status() == 0 else None
    for line in actions_view.last_lines(printer, found, time, summary):
        report.note(line, style)
    raise typer.Exit(report.exit_status())
