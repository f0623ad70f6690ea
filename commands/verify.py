"""``logtool verify``: check everything that can be checked. Writes nothing."""

from enum import StrEnum
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.options import (
    AsJson,
    Color,
    ColorOption,
    ExcludeTopics,
    FailOn,
    FilesFrom,
    Format,
    FormatOption,
    MaxFindings,
    Null,
    Partitions,
    Paths,
    Progress,
    Quiet,
    Topics,
    Verbose,
)
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

    Nothing is written, and no broker is needed. Under a running broker the newest data may look
    torn: that is said as info.

    Examples:
      logtool verify /var/lib/kafka/data
      logtool verify --level records --topic 'orders*' /var/lib/kafka/data
      logtool verify --format ndjson data/orders-0 | jq -r 'select(.severity == "error").path'

    Exit status:
      0    complete, nothing found at or above --fail-on
      1    complete, with findings at or above --fail-on
      2    the command line makes no sense
      4    incomplete: some input could not be read; says nothing about corruption
      130  interrupted; the summary says what was checked

    """
    from logtool.commands import findings_view
    from logtool.commands.output import Report
    from logtool.data_dir import Selection
    from logtool.verify import Level, Verification

    settings = options.settings(
        format, as_json, color, quiet=quiet, verbose=verbose, progress=progress
    )
    job = Verification(
        options.all_paths(paths, files_from, null),
        level=Level(level),
        selection=Selection(tuple(topic or ()), tuple(exclude_topic or ()), tuple(partition or ())),
        on_progress=lambda p: report.show_progress(p.bytes_done, p.bytes_total, p.path),
    )
    report = Report(settings, findings_view.make(settings), job.summary)
    with report:
        printer = findings_view.Printer(report, max_findings)
        for item in job:
            printer.show(item)
    printer.conclude(fail_on)
    raise typer.Exit(report.exit_status(fail_on))
