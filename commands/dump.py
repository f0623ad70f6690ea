"""``logtool dump``: print what the files of a data directory hold. Writes nothing."""

from enum import StrEnum
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.record_selectors import Selectors
from logtool.commands.program.shown_content import DumpContent
from logtool.commands.program.spread import Without, spread
from logtool.errors import UsageError


class DumpFormat(StrEnum):
    """Output formats: those of `Format`, lines of Kafka's own tool, Parquet, and producer input."""

    _ignore_ = "members each"
    members = vars()
    for each in options.Format:
        members[each.name] = each.value
    KAFKA = "kafka"
    PARQUET = "parquet"
    KCAT = "kcat"
    CONSOLE_PRODUCER = "console-producer"


_AS_TABLE = DumpFormat(options.Format.TABLE)


FormatOption = Annotated[
    DumpFormat,
    typer.Option(
        "-f",
        "--format",
        help="Format of standard output; kafka prints the lines of kafka-dump-log.sh, parquet "
        "writes --output and prints nothing, kcat and console-producer print records for these "
        "tools to produce again.",
        show_default=True,
    ),
]


Output = Annotated[
    str | None,
    typer.Option(
        "--output", metavar="FILE", help="The file that --format parquet writes; must not exist."
    ),
]


@spread
def dump(
    *,
    inputs: options.AnyInputs,
    shown: DumpContent,
    selectors: Selectors,
    format: FormatOption = _AS_TABLE,
    output_file: Output = None,
    printing: Annotated[options.Printing, Without("format")],
) -> None:
    """Print what the files of a data directory hold, record by record where they hold records.

    Takes logs (also .deleted, .cleaned and .swap), KRaft snapshots, the three kinds of index,
    producer snapshots, offset checkpoints, leader epochs, partition.metadata, meta.properties,
    quorum-state and the marker of a clean shutdown. It prints all files of a directory in order;
    with --records or a filter, only its logs.

    Of Redpanda it takes segments and base indexes, by name or in a directory; with --records or a
    filter it prints records of data, with Raft's offsets. Kafka offsets of batches are known in the
    namespace kafka, from offset 0 or Raft's snapshot on and not behind damage.

    Where a log is damaged the dump says so, and goes on at the next batch that is provably sound.

    Records of __consumer_offsets, __transaction_state, __share_group_state, __remote_log_metadata
    and __cluster_metadata are printed as the fields they hold: a key or value has `json` in place
    of `utf8`. --decode none prints bytes. Passwords, SCRAM keys and ids of delegation tokens are
    left out, or replaced by stars where bytes are printed, unless --show-secrets is given.

    Records are found by --key, --value, --header, --grep and --json-path in all partitions of the
    given paths, compressed or not; control records are no such records. --count tells how many
    there are.

    'logtool kafka-dump-log' takes the command line of kafka-dump-log.sh. Of --format kafka, too,
    the lines are those of Kafka 4.3, whatever release wrote the log.

    --format parquet writes one table to --output: batches, or with --records records. Its columns
    are the fields of ndjson; keys, values and headers are binary, times are timestamps in UTC
    beside their milliseconds. It needs pip install 'kafka-logtool[parquet]'.

    --format kcat and --format console-producer print records as kcat -P or
    kafka-console-producer.sh takes them in, and say on stderr with which options. They look at all
    records first, and print none where one would be produced wrongly. Timestamps are not kept; the
    guide logtool-recipes shows how to produce records again with all that they have.

    Examples:
      logtool dump --records --offset 4711..4800 data/orders-0
      logtool dump --topic orders --key customer-17 --timestamp yesterday.. data
      logtool dump --topic orders --json-path '$.order.state=failed' --count data
      logtool dump --format ndjson data/orders-0/*.log | jq -c 'select(.type == "batch")'
      logtool dump --format kafka --records data/orders-0/00000000000000000000.log

    Exit status:
      0    everything was printed
      1    something is damaged; what could be read was printed
      2
      4    some input could not be read, or a batch is beyond --max-batch-memory, or nothing matched
      5    --output exists or lies in what is dumped, or a record cannot be said in the format;
           nothing was written
      130

    """
    from logtool.commands.views.dump import run

    settings = printing.settings(format)
    if (settings.format == "parquet") != (output_file is not None):
        raise UsageError("--format parquet and --output FILE need each other")
    raise typer.Exit(run(inputs, shown, selectors, settings, output_file=output_file))
