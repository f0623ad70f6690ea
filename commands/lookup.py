"""``logtool lookup``: where an offset or a timestamp lives. Writes nothing."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.options import (
    AsJson,
    Color,
    ColorOption,
    Format,
    FormatOption,
    Progress,
    Quiet,
    Verbose,
)
from logtool.errors import UsageError

LARGEST = 2**63 - 1
"""Offsets and timestamps have 64 bits."""

PartitionDir = Annotated[
    # Not Path: that would take an empty string for the current directory.
    str,
    typer.Argument(metavar="PARTITION_DIR", help="A partition dir.", show_default=False),
]
Offset = Annotated[
    int | None,
    typer.Option("--offset", metavar="N", min=0, max=LARGEST, help="Look for this offset."),
]
Timestamp = Annotated[
    str | None,
    typer.Option(
        "--timestamp", metavar="T",
        help="Look for the first record of this time or a later one: milliseconds or RFC 3339; or "
        "for the earliest or the latest offset.",
    ),
]  # fmt: skip


def lookup(
    partition_dir: PartitionDir,
    offset: Offset = None,
    timestamp: Timestamp = None,
    format: FormatOption = Format.TABLE,
    as_json: AsJson = False,
    color: ColorOption = Color.AUTO,
    progress: Progress = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Find the segment, the batch and the record of an offset or a timestamp in a partition dir.

    It is looked for twice: by the indexes, by the steps of a broker, and by reading the log from
    its start, which leaves out what is damaged. Where the two lead to different records, consumers
    get other records than there are, or miss some.

    A timestamp gives the first offset whose record has it or a later one, as a broker answers
    offsetsForTimes; earliest is the log start offset, latest the one behind the last record. That
    a broker does not answer beyond its high watermark is left out of account.

    Examples:
      logtool lookup --offset 1200 data/orders-0
      logtool lookup --timestamp 2025-03-01T12:00:00Z data/orders-0
      logtool lookup --timestamp latest --json data/orders-0 | jq .items[0].log_end_offset

    Exit status:
      0    it was found, and index and scan agree
      1    nothing is there, or index and scan disagree
      2    the command line makes no sense
      4    the log could not be read
      130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)

    """
    from logtool.commands import lookup_view
    from logtool.commands.output import Report
    from logtool.dump.values import parse_time
    from logtool.lookup import Asked, Lookup
    from logtool.summary import ActionSummary

    if (offset is None) == (timestamp is None):
        raise UsageError("give one of --offset and --timestamp")
    settings = options.settings(
        format, as_json, color, quiet=quiet, verbose=verbose, progress=progress
    )
    asked, value = Asked.OFFSET, offset
    if timestamp in (Asked.EARLIEST, Asked.LATEST):
        asked = Asked(timestamp)
    elif timestamp is not None:
        asked, value = Asked.TIMESTAMP, parse_time(timestamp)
        if value is None or abs(value) > LARGEST:
            raise UsageError(
                f"--timestamp {timestamp}: expected milliseconds, RFC 3339 with a time zone, "
                "earliest or latest"
            )
    (path,) = options.all_paths([partition_dir], None, False)
    summary = ActionSummary()
    with Report(settings, lookup_view.make(settings), summary) as report:
        answer = Lookup(path, summary, report.show_progress).find(asked, value)
        summary.to_do = not (answer.is_there and answer.agree)
        for obj in lookup_view.objects(answer):
            report.item(obj)
    raise typer.Exit(report.exit_status())
