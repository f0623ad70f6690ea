"""``logtool dump-index``: print indexes, with what they point at. Writes nothing."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import spread

JoinLog = Annotated[
    bool,
    typer.Option(
        "--join-log",
        help="Read the log too and show the batch that each entry points at, and whether the "
        "entry is right.",
    ),
]


@spread
def dump_index(
    *,
    inputs: options.AnyInputs,
    join_log: JoinLog = False,
    printing: options.Printing,
) -> None:
    """Print offset, time and transaction indexes of files, partition dirs or log dirs.

    Of Redpanda it prints base indexes.

    With --join-log each entry is printed beside the batch in the log that it points at, with a
    verdict: right; no-batch (none begins there, or none holds the offset); offset (a lookup would
    miss records); timestamp (the batch has another); later (an earlier record is younger);
    no-abort-marker; unknown (the log is damaged there). Right means that every lookup through the
    entry works, not that a broker would write the same index again.

    Examples:
      logtool dump-index data/orders-0/00000000000000000000.timeindex
      logtool dump-index --join-log data/orders-0
      logtool dump-index --join-log -f ndjson data | jq -c 'select(.verdict == "offset")'

    Exit status:
      0    everything was printed
      1    an index is damaged, or an entry is wrong
      2
      4    some input could not be read, or nothing matched
      130

    """
    from logtool.commands.views.dump_index import run

    raise typer.Exit(run(inputs, printing, join_log=join_log))
