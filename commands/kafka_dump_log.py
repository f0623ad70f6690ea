"""``logtool kafka-dump-log``: takes the command line of Kafka's own tool. Writes nothing."""

import re
from typing import Annotated

import typer

from logtool.commands.program.spread import spread
from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass

_STRINGS = ("org.apache.kafka.tools.api.StringDecoder", "kafka.serializer.StringDecoder")
"""Default decoder of Kafka's tool, by its names since and before Kafka 4.0."""
_NO_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Decoders:
    """Options for the decoder of records; the first of several counts, as in Kafka's tool."""

    offsets: Annotated[
        bool,
        typer.Option("--offsets-decoder", help="Decode records as those of __consumer_offsets."),
    ] = False
    transaction_log: Annotated[
        bool,
        typer.Option(
            "--transaction-log-decoder",
            help="Decode records as those of __transaction_state, in the format of Kafka 4.",
        ),
    ] = False
    cluster_metadata: Annotated[
        bool,
        typer.Option(
            "--cluster-metadata-decoder", help="Decode records as those of __cluster_metadata."
        ),
    ] = False
    remote_log_metadata: Annotated[
        bool,
        typer.Option(
            "--remote-log-metadata-decoder",
            help="Decode records as those of __remote_log_metadata.",
        ),
    ] = False
    share_group_state: Annotated[
        bool,
        typer.Option(
            "--share-group-state-decoder", help="Decode records as those of __share_group_state."
        ),
    ] = False

    @property
    def topic(self) -> str | None:
        """Return the topic of the chosen decoder; None without a decoder."""
        wanted = {
            "__consumer_offsets": self.offsets,
            "__transaction_state": self.transaction_log,
            "__cluster_metadata": self.cluster_metadata,
            "__remote_log_metadata": self.remote_log_metadata,
            "__share_group_state": self.share_group_state,
        }
        return next((topic for topic, is_wanted in wanted.items() if is_wanted), None)


Files = Annotated[
    str,
    typer.Option("--files", metavar="FILE,FILE...", help="Files to print, separated by commas."),
]
PrintDataLog = Annotated[
    bool, typer.Option("--print-data-log", help="Print the records with keys and values.")
]
DeepIteration = Annotated[
    bool, typer.Option("--deep-iteration", help="Print the records without keys and values.")
]
SanityCheck = Annotated[
    bool,
    typer.Option(
        "--index-sanity-check",
        help="For indexes, print only whether they pass the sanity check of a broker's start.",
    ),
]
VerifyOnly = Annotated[
    bool,
    typer.Option("--verify-index-only", help="Compare indexes with the log without printing them."),
]
MaxBytes = Annotated[
    int,
    typer.Option("--max-bytes", metavar="N", min=0, help="Read at most N bytes of a log."),
]
MaxMessageSize = Annotated[
    int,
    typer.Option(
        "--max-message-size",
        metavar="N",
        help="Accepted without effect: logtool reads batches of any size.",
    ),
]
SkipMetadata = Annotated[
    bool,
    typer.Option(
        "--skip-record-metadata",
        help="Print only keys and values of records, and no transaction markers.",
    ),
]
DecoderClass = Annotated[
    str | None,
    typer.Option(metavar="CLASS", help="Accepts only the default class, which prints text."),
]


@spread
def kafka_dump_log(
    *,
    file_names: Files,
    print_data_log: PrintDataLog = False,
    deep_iteration: DeepIteration = False,
    index_sanity_check: SanityCheck = False,
    verify_index_only: VerifyOnly = False,
    decoders: Decoders,
    max_bytes: MaxBytes = _NO_LIMIT,
    max_message_size: MaxMessageSize = 5 * 1024 * 1024,
    skip_record_metadata: SkipMetadata = False,
    key_decoder_class: DecoderClass = None,
    value_decoder_class: DecoderClass = None,
) -> None:
    """Print what kafka-dump-log.sh of Kafka 4.4 prints; takes its options.

    Every line on standard output is the same as in Kafka 4.4, with two exceptions: the reason why a
    record cannot be decoded, and passwords and keys, which are left out. Kafka 4.0 to 4.3 print
    numbers for the states of transactions, and a brace behind the CRC of a message of magic 0 or 1.
    Kafka 3.9 and earlier print other words for records of __transaction_state, and do not print the
    leader of a quorum.

    Unlike Kafka's tool, the command changes no file, continues after damage and with the next file,
    and returns an exit status for errors. The messages on standard error are different, except the
    lines on non-consecutive offsets, which are those of Kafka's tool.

    Examples:
      logtool kafka-dump-log --files 00000000000000000000.log --print-data-log
      logtool kafka-dump-log --transaction-log-decoder --files 00000000000000000000.log

    Exit status:
      0    everything was printed
      1    something is damaged, or an index entry is wrong (Kafka's tool returns 0 in most of these
           cases)
      2
      4
      130

    """
    from logtool.commands.views.kafka_dump_log import KafkaDump, run

    for decoder in (key_decoder_class, value_decoder_class):
        if decoder is not None and decoder not in _STRINGS:
            raise UsageError(f"{decoder}: logtool cannot run Java decoders; it prints UTF-8 text")
    _ = max_message_size
    wanted = KafkaDump(
        topic=decoders.topic,
        contents=print_data_log or decoders.topic is not None,
        deep=deep_iteration,
        metadata=not skip_record_metadata,
        max_bytes=None if max_bytes == _NO_LIMIT else max_bytes,
        sanity=index_sanity_check,
        verify=verify_index_only,
    )
    raise typer.Exit(run([re.sub("//+", "/", name) for name in file_names.split(",")], wanted))
