"""``logtool dump-index``: indexes, with the batches that they point to. Writes nothing."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import spread

JoinLog = Annotated[
    bool,
    typer.Option(
        "--join-log",
        help="Read the log too, and show the batch at the position of each entry, and "
        "whether the entry is right.",
    ),
]


@spread
def dump_index(
    *,
    inputs: options.AnyInputs,
    join_log: JoinLog = False,
    printing: options.Printing,
) -> None:
    """Print offset, time and transaction indexes.

    With --join-log, each entry is printed together with the batch at its position in the log, and
    with a verdict. "right" means that every lookup through the entry works, not that a broker would
    write the same index again. For Redpanda, the command prints base indexes.

    Examples:
      logtool dump-index data/orders-0/00000000000000000000.timeindex
      logtool dump-index --join-log data/orders-0
      logtool dump-index --join-log -f ndjson data | jq -c 'select(.verdict == "offset")'

    Verdicts:

      right            every lookup through the entry works
      no-batch         no batch begins at the position, or no batch contains the offset
      offset           a lookup through the entry would miss records
      timestamp        the batch has another timestamp
      later            an earlier record has a later timestamp
      no-abort-marker  the log has no abort marker at this offset
      unknown          the log is damaged at the position

    Exit status:
      0    everything was printed
      1    an index is damaged, or an entry is wrong
      2
      4
      130

    """
    from logtool.commands.views.dump_index import run

    raise typer.Exit(run(inputs, printing, join_log=join_log))
