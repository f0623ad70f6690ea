"""``logtool report``: one page about log dirs, for people who have no access to them."""

from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import broker_dirs, start_options
from logtool.commands.program.spread import spread
from logtool.findings import Severity

Output = Annotated[
    Path,
    typer.Option(
        "--output",
        metavar="FILE",
        parser=options.local_path,
        help="File to write: FILE.html for a page, FILE.md for Markdown. An older file of this "
        "name is replaced.",
    ),
]


@spread
def report(
    *,
    inputs: broker_dirs.BrokerLogDirs,
    output: Output,
    kafka_version: start_options.KafkaVersion = None,
    fail_on: options.FailOn = Severity.WARNING,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Write one page: what is wrong, what the next start does, a map of the damage.

    The command examines log dirs as 'logtool doctor' does, by default without a time limit, prints
    the same answers, and writes them into FILE. The page needs no other file, no network and no
    broker. It has names of topics and paths, offsets and times, but no keys and no values.

    Examples:
      logtool report --output report.html /var/lib/kafka/data
      logtool report --output FILE.md --max-duration 5m /data1/kafka /data2/kafka
      logtool report --output report.html 1=/mnt/b1/data 2=/mnt/b2/data

    Parts of the page:

    The answers of doctor with the command to run next; all findings and the actions of the next
    start that matter, to sort and filter; offsets of each partition; a map of the segments of each
    log, with what the next start reads and the places of damage; and the bytes of logs by the time
    of their last write. Of more than 200 logs the map has those with the most damage, then the
    largest. FILE.md has the first 50 findings and actions, and no map.

    Exit status:
      0    complete: nothing found at or above --fail-on, and the next start loses nothing
      1    findings at or above --fail-on, or the next start needs attention (see 'logtool plan')
      2
      4    ..., or FILE could not be written
      5    refused: FILE would be inside a log dir
      6
      130  ...; the findings so far are in FILE

    """
    from logtool.commands.views.report import run

    raise typer.Exit(
        run(inputs, running, printing, target=output, kafka_version=kafka_version, fail_on=fail_on)
    )
