"""``logtool dump``: the content of the files in a log dir. Writes nothing."""

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
        help="Format of standard output. kafka: the lines of kafka-dump-log.sh; parquet: "
        "writes --output and prints nothing; kcat and console-producer: records as "
        "input for these tools.",
        show_default=True,
    ),
]


Output = Annotated[
    str | None,
    typer.Option("--output", metavar="FILE", help="File for --format parquet; must not exist."),
]


@spread
def dump(
    *,
    inputs: options.AnyInputs,
    shown: DumpContent,
    selectors: Selectors,
    format: FormatOption = _AS_TABLE,
    output_file: Output = None,
    running: Annotated[options.Running, Without("jobs")],
    printing: Annotated[options.Printing, Without("format")],
) -> None:
    """Print the content of log segments, indexes and checkpoints.

    The command prints every file of a log dir or partition dir: log segments (also .deleted,
    .cleaned and .swap), KRaft snapshots, offset, time and transaction indexes, producer snapshots,
    offset checkpoints, leader epochs, partition.metadata, meta.properties, quorum-state and the
    clean-shutdown marker. With --records, or with an option that selects records, it prints only
    log segments, of a directory those that a broker loads.

    Where a log is damaged, the command reports the damage and continues at the next batch that is
    provably sound. With --records, table, Markdown, JSON and NDJSON also show the records of a
    batch of Kafka with a wrong CRC, as far as they decode, as bad-record: any may be wrong,
    except a message of magic 0 or 1 whose own CRC matches.

    Examples:
      logtool dump --records --offset 4711..4800 data/orders-0
      logtool dump --topic orders --key customer-17 --timestamp yesterday.. data
      logtool dump --topic orders --json-path '$.order.state=failed' --count data
      logtool dump --topic orders --records --schema-ids data
      logtool dump --missing-in /mnt/broker-2/data -f kcat /mnt/broker-1/data/orders-0
      logtool dump --format ndjson data/orders-0/*.log | jq -c 'select(.type == "batch")'
      logtool dump --format kafka --records data/orders-0/00000000000000000000.log

    Searching records:

    --key, --value, --header, --grep and --json-path search the records of all partitions in PATH,
    compressed or not, also in .deleted, .cleaned and .swap files (not with --missing-in, --format
    kcat or console-producer). They never select control records. --count prints only the number of
    matching records.

    With --key a record has a state if not every consumer gets it, or if it is a tombstone: aborted
    or open-transaction, by the next marker of its producer; below-log-start; deleted-partition,
    stray or future-copy, by the name of its directory; deleted-file, cleaned-file, swap-file or
    other-name. logtool retention --key also says when each record is gone.

    Records that an election cuts:

    With --missing-in the command compares the copy in PATH, for example of the old leader, with the
    copy in DIR, for example of the new leader. It prints the records behind the offset at which the
    two diverge, or behind the end of DIR, and those in holes of DIR. It leaves out records that DIR
    has by producer id, epoch and sequence, and records of aborted or open transactions. Records of
    producers without idempotence may be in both copies. JSON and NDJSON have an object with the
    counts for each partition, after all records.

    Internal topics and secrets:

    Records of __consumer_offsets, __transaction_state, __share_group_state, __remote_log_metadata
    and __cluster_metadata are decoded: the key or value has the field `json` in place of `utf8`.
    --decode none prints the bytes. Passwords, settings that Kafka does not define, SCRAM keys and
    ids of delegation tokens are left out (in bytes, replaced by asterisks), unless --show-secrets
    is given.

    Schema ids:

    With --schema-ids a key or value has the field `schema_id`, if it begins with a zero byte and
    the four bytes of an id, or if the header __key_schema_id or __value_schema_id has an id or a
    GUID. Data without a schema may begin with a zero byte too. After all records, table, JSON and
    NDJSON have an object for each id of a topic: how many records, and the subjects and versions
    that _schemas in the same log dir has for it.

    Formats:

    --format kafka prints the lines of kafka-dump-log.sh as in Kafka 4.4, whatever release wrote the
    log. 'logtool kafka-dump-log' takes the options of kafka-dump-log.sh.

    --format csv and --format tsv quote cells by the rules of CSV: the cell of a key or value holds
    its text, line ends too. key_encoding and value_encoding are base64 for bytes that are not
    UTF-8, and empty for null. The cell of the headers is JSON. --csv-escaped writes a record as one
    line.

    --format parquet writes one table to --output: batches, or records with --records. Its columns
    are the fields of ndjson. Keys, values and headers are binary; each time is stored as a UTC
    timestamp and in milliseconds. This format needs pip install 'kafka-logtool[parquet]'.

    --format kcat and --format console-producer print records as input for kcat -P or
    kafka-console-producer.sh, and print the options for these tools on standard error. logtool
    first checks all records, and prints none of them if one would be produced differently.
    Timestamps are not kept; logtool-recipes(7) shows how to produce records with all their
    attributes.

    Redpanda:

    The command prints Redpanda's segments and base indexes. With --records, or with an option that
    selects records, it prints data records, with Raft offsets. The Kafka offsets of batches are
    known only in the namespace kafka, from offset 0 or from a Raft snapshot on, up to the first
    damage.

    AutoMQ:

    With a bucket and the log dir of its metadata log as PATH, the command prints the partitions as
    they are after the recovery of the WAL: batches or records, time and transaction indexes,
    producer snapshots and leader epochs. A bucket alone, or a file in it, is printed as objects:
    the entries of index blocks, the records of streams in data blocks and WAL objects, links of
    composite objects, ranges of a node, and the owner of a WAL. A WAL on a device or in a file, as
    AutoMQ had it before May 2025, is printed as the records that AutoMQ recovers from it.

    Tiered storage:

    With the prefix of its objects as a further PATH, the command also prints what a partition has
    in remote storage alone: the segments that the records of __remote_log_metadata in the log dirs
    name, as far as brokers find offsets in them by the leader epochs of the local copy. Give the
    log dirs of all brokers: each has some partitions of that topic. What the objects are is known
    from their names: those of the plugin of Aiven, unless they are encrypted, and of
    LocalTieredStorage. An object that is missing or cannot be read is an error, and the status is
    4.

    A partition without records in the log dirs is printed from its objects alone, by the leader
    epochs that came with its last segment; so are all partitions if PATH is a prefix alone, or the
    folder of a topic in it. Objects of deleted topics are left out if the log dirs have the
    metadata log. Without it, two topics of the same name are an error; give the folder of one.

    Exit status:
      0    everything was printed, also if a search found nothing (see `found` in the summary)
      1    something is damaged; the readable part was printed
      2
      4    ..., or a batch exceeds --max-batch-memory
      5    refused: --output exists or is in the dumped directory, or the format cannot represent a
           record; nothing was written
      6
      130

    """
    from logtool.commands.views.dump import run

    settings = printing.settings(format)
    if (settings.format == "parquet") != (output_file is not None):
        raise UsageError("--format parquet and --output FILE need each other")
    raise typer.Exit(run(inputs, shown, selectors, running, settings, output_file=output_file))
