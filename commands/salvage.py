"""``logtool salvage``: every sound batch around damage, in new partition dirs."""

from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import spread
from logtool.errors import UsageError

FillFrom = Annotated[
    list[Path] | None,
    typer.Option(
        "--fill-from",
        metavar="DIR",
        parser=options.local_path,
        help="Take what is damaged or missing from another copy, in this log dir or partition dir, "
        "where it is proved to be the same log; repeatable.",
    ),
]


Retry = Annotated[
    Path | None,
    typer.Option(
        "--retry",
        metavar="DIR",
        parser=options.local_path,
        help="Ask a failing disk only for what it did not give to an earlier run, whose output DIR "
        "is.",
    ),
]


class RecordsFormat(StrEnum):
    """Formats in which the records of saved partitions can be written as well."""

    NDJSON = "ndjson"
    PARQUET = "parquet"
    KCAT = "kcat"


Records = Annotated[
    RecordsFormat | None,
    typer.Option(
        "--records",
        help="Write the records of each partition that is saved, too, to be produced again: into "
        "DIR/records/TOPIC-N.FORMAT.",
    ),
]
DecodeDamaged = Annotated[
    bool,
    typer.Option(
        "--decode-damaged",
        help="Write what decodes of damaged bytes, too, as NDJSON beside them in DIR/rejects; each "
        "record says that it is damaged.",
    ),
]


@spread
def salvage(
    *,
    inputs: options.AnyLocalInputs,
    output: options.SavedTo,
    fill_from: FillFrom = None,
    retry: Retry = None,
    records: Records = None,
    decode_damaged: DecodeDamaged = False,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Save every sound batch of damaged logs into new partition dirs, and say what is left.

    A broker cuts a log at its first bad batch, with all sound ones behind it. Here the log goes on
    behind damage: each sound batch is written with its bytes and its offset into
    DIR/partitions/TOPIC-N, in the same segments, with indexes, producer snapshots and leader epochs
    as a broker's recovery makes them. PATH is only read. A broker loads these directories in place
    of the damaged ones: stop it first, move the old directory away, and give the new one to the
    broker's user.

    What is not taken over goes into DIR/rejects, with a line for each range in DIR/manifest.ndjson:
    the file, the bytes, the offsets that can have been in it, the reason, CRC-32C and SHA-256. That
    is damage; sectors that the disk does not give, each read again by itself; sound batches whose
    offset or leader epoch contradicts those around, as no CRC covers these; batches of offsets that
    the next segment holds; and segments that a truncation had removed. A sound batch in the value
    of a damaged record is not taken for one of the log. Transactions that may have lost records or
    their marker are told, and no marker is made up.

    A partition that comes twice, as from two brokers, lies in DIR/partitions.2 the second time; the
    metadata log lies in DIR/metadata. Of Redpanda, segments and base indexes of its form lie in
    DIR/partitions/NAMESPACE/TOPIC/PARTITION; a .cannotrecover file is read as a segment. Terms are
    its epochs. Records have raft_offset, and behind damage no offset: Kafka's is not known there.

    With --fill-from, what is missing is taken from another copy of the partition. The batches
    before and behind it must be the same there, in offsets, leader epoch, CRC and size; behind the
    last batch the leader epochs must agree, or, of a log without them, that copy's high watermark
    lie behind; or more than half of the damaged bytes. If not, the manifest says why. What has
    another topic id or cluster is no copy, and nothing is taken from before where this log begins.

    Of a log on a failing disk all that can be read is kept as DIR/rejects/TOPIC-N/LOG.image, with
    zeros in place of the rest, and LOG.map says which bytes these are, in the form of GNU ddrescue.
    A second run with another --output and with --retry DIR asks the disk for these alone, in parts
    of 512 bytes; 'ddrescue LOG LOG.image LOG.map' does that, too.

    With --records, the records of what is saved are written besides, to be produced again: as lines
    of JSON or a Parquet table with the fields of 'logtool dump --records', or as lines for kcat,
    with the command to run. Markers of transactions and brokers' own topics are left out; what was
    aborted is not. A partition that kcat would produce wrongly gets no file: the reason is told.
    With --decode-damaged, what decodes of damaged bytes is written beside them, up to where it does
    not. A CRC does not tell which bit is wrong: no such record is known to be what was produced.

    Examples:
      logtool salvage --output /mnt/saved /var/lib/kafka/data/orders-0
      logtool salvage --output /mnt/saved --fill-from /mnt/broker-2/data /var/lib/kafka/data

    Exit status:
      0    all was saved, or filled from another copy
      1    something was rejected, or a broker would not start with what was saved
      2
      4    incomplete: nothing matched, or some input could not be read, or DIR not be written
      5    refused: DIR is not empty, lies in a log dir or lacks room; or records are none for kcat
      6    --max-duration ran out; the partitions saved until then are whole
      130

    """
    from logtool.commands.views.salvage import run

    if records is RecordsFormat.PARQUET and find_spec("pyarrow") is None:
        raise UsageError("--records parquet needs pyarrow: pip install 'kafka-logtool[parquet]'")
    status = run(
        inputs, running, printing,
        output=output, fill_from=fill_from or (), retry=retry,
        records=records and str(records), damaged=decode_damaged,
    )  # fmt: skip
    raise typer.Exit(status)
