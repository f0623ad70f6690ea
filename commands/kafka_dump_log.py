"""``logtool kafka-dump-log``: takes the command line of Kafka's own tool. Writes nothing."""

import re
from typing import Annotated

import typer

from logtool.commands.program.spread import spread
from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass

_STRINGS = ("org.apache.kafka.tools.api.StringDecoder", "kafka.serializer.StringDecoder")
"""The decoder that Kafka's tool takes by itself, by its names since 4.0 and before."""
_NO_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Decoders:
    """By what records are taken apart; of several the first counts, as it does for Kafka."""

    offsets: Annotated[
        bool,
        typer.Option("--offsets-decoder", help="Take records for those of __consumer_offsets."),
    ] = False
    transaction_log: Annotated[
        bool,
        typer.Option(
            "--transaction-log-decoder",
            help="Take records for those of __transaction_state, in the words of Kafka 4.",
        ),
    ] = False
    cluster_metadata: Annotated[
        bool,
        typer.Option(
            "--cluster-metadata-decoder", help="Take records for those of __cluster_metadata."
        ),
    ] = False
    remote_log_metadata: Annotated[
        bool,
        typer.Option(
            "--remote-log-metadata-decoder",
            help="Take records for those of __remote_log_metadata.",
        ),
    ] = False
    share_group_state: Annotated[
        bool,
        typer.Option(
            "--share-group-state-decoder", help="Take records for those of __share_group_state."
        ),
    ] = False

    @property
    def topic(self) -> str | None:
        """Return the topic whose records are meant; None where they are plain."""
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
    typer.Option("--files", metavar="FILE,FILE...", help="The files, with commas between them."),
]
PrintDataLog = Annotated[
    bool, typer.Option("--print-data-log", help="Print the records, with what they hold.")
]
DeepIteration = Annotated[
    bool, typer.Option("--deep-iteration", help="Print the records, without what they hold.")
]
SanityCheck = Annotated[
    bool,
    typer.Option(
        "--index-sanity-check",
        help="Say of indexes only whether they pass the check of a broker's start.",
    ),
]
VerifyOnly = Annotated[
    bool,
    typer.Option(
        "--verify-index-only", help="Compare indexes with the log, and do not print them."
    ),
]
MaxBytes = Annotated[
    int,
    typer.Option("--max-bytes", metavar="N", min=0, help="Read no more than N bytes of a log."),
]
MaxMessageSize = Annotated[
    int,
    typer.Option(
        "--max-message-size",
        metavar="N",
        help="Taken and left aside: an index may point at a batch of any size.",
    ),
]
SkipMetadata = Annotated[
    bool,
    typer.Option(
        "--skip-record-metadata", help="Print of records only what they hold, of markers nothing."
    ),
]
DecoderClass = Annotated[str | None, typer.Option(metavar="CLASS", help="Only the default.")]


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
    """Print what kafka-dump-log.sh of Kafka 4.3 prints, given its command line.

    Every line on standard output is the same, but for the reason why a record cannot be decoded,
    and for passwords and keys, which are left out. Tools of Kafka 3.9 and before have other words
    for the records of __transaction_state, and do not spell out who leads a quorum. Unlike Kafka's
    tool this one changes no file, goes on behind damage and at the next file, and its exit status
    says what was wrong. What stands on stderr is said in its own words.

    Examples:
      logtool kafka-dump-log --files 00000000000000000000.log --print-data-log
      logtool kafka-dump-log --transaction-log-decoder --files 00000000000000000000.log

    Exit status:
      0    everything was printed
      1    something is damaged, or an entry of an index is wrong; Kafka's tool says 0 of most
      2
      4    some input could not be read
      130

    """
    from logtool.commands.views.kafka_dump_log import KafkaDump, run

    for decoder in (key_decoder_class, value_decoder_class):
        if decoder is not None and decoder not in _STRINGS:
            raise UsageError(f"{decoder}: logtool runs no Java class, it prints text (UTF-8)")
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
