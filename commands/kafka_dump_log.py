"""``logtool kafka-dump-log``: takes the command line of Kafka's own tool. Writes nothing."""

import re
from collections.abc import Iterable, Sequence
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands.program.spread import spread
from logtool.disk import files
from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from logtool.commands.output import Report
    from logtool.commands.printing.writers import Object
    from logtool.dump.blocks import Block
    from logtool.errors import UnreadableError

_STRINGS = ("org.apache.kafka.tools.api.StringDecoder", "kafka.serializer.StringDecoder")
"""The decoder that Kafka's tool takes by itself, by its names since 4.0 and before."""
_NO_LIMIT = 2**31 - 1
_DUMPED = (".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot")
_CHECKED = (".index", ".timeindex")


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
    for decoder in (key_decoder_class, value_decoder_class):
        if decoder is not None and decoder not in _STRINGS:
            raise UsageError(f"{decoder}: logtool runs no Java class, it prints text (UTF-8)")
    _ = max_message_size
    wanted = _Wanted(
        topic=decoders.topic,
        contents=print_data_log or decoders.topic is not None,
        deep=deep_iteration,
        metadata=not skip_record_metadata,
        max_bytes=None if max_bytes == _NO_LIMIT else max_bytes,
        sanity=index_sanity_check,
        verify=verify_index_only,
    )
    raise typer.Exit(_print([re.sub("//+", "/", name) for name in file_names.split(",")], wanted))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is printed of each file."""

    topic: str | None
    contents: bool
    deep: bool
    metadata: bool
    max_bytes: int | None
    sanity: bool
    verify: bool


def _print(names: Sequence[str], wanted: _Wanted) -> int:
    from logtool.commands import output
    from logtool.commands.output import OutputSettings, Report, View
    from logtool.commands.printing import kafka_text
    from logtool.running.summary import Summary

    shown = kafka_text.render_safely if output.is_terminal() else kafka_text.render

    def lines(obj: "Object") -> str | None:
        if obj["type"] == "line":
            return str(obj["line"])
        return shown(obj, metadata=wanted.metadata, contents=wanted.contents)

    view = View(schema="", columns=(), layout=lambda _: None, lines={"kafka": lines})
    report = Report(OutputSettings(format="kafka", progress=False), view, Summary())
    with report:
        for name in names:
            if not name.endswith(_DUMPED):
                report.item({"type": "line", "line": f"Dumping {name}"})
                report.note(f"Ignoring unknown file {name}", "warning")
            elif wanted.sanity and name.endswith(_CHECKED):
                _check(report, name)
            else:
                _dump(report, name, wanted)
                if name.endswith(_CHECKED):
                    _compare(report, name)
    return report.exit_status()


def _dump(report: "Report", name: str, wanted: _Wanted) -> None:
    from logtool.commands.views.dump import kafka_lines, unknown_notes
    from logtool.dump.log import Filter
    from logtool.dump.stream import Dump

    records = wanted.contents or wanted.deep
    chosen = Filter(records=records, decode=wanted.topic is not None)
    topic, stop = wanted.topic, wanted.max_bytes
    job = Dump([files.path_of(name)], chosen, as_topic=topic, stop=stop, summary=report.summary)
    lines = kafka_lines(contents=wanted.contents) if wanted.metadata else None
    job.in_blocks = lines is not None
    items: Iterable[Object | Block | memoryview | UnreadableError]
    items = lines.among(job) if lines else job
    with closing(lines) if lines else nullcontext():
        for item in items:
            if isinstance(item, Exception):
                report.unreadable(item)
            elif isinstance(item, memoryview):
                report.lines(item)
            elif isinstance(item, dict):
                _print_object(report, name, wanted, item)
    for line in unknown_notes(job.unknown, job.unknown_tags):
        report.note(f"{name}: {line}")


def _print_object(report: "Report", name: str, wanted: _Wanted, obj: "Object") -> None:
    if obj["type"] == "error":
        report.note(f"{name}: {obj['message']}", "error")
    # Kafka's tool prints the name as it was given.
    named = {**obj, "path": name} if obj["type"] == "file" else obj
    if not (wanted.verify and obj["type"] == "entry" and name.endswith(_CHECKED)):
        report.item(named)


def _check(report: "Report", name: str) -> None:
    """Print whether an index passes what a broker checks at its start."""
    from logtool.errors import UnreadableError
    from logtool.formats.names import FileKind, parse_partition_file
    from logtool.sanity import kafka_check

    report.item({"type": "line", "line": f"Dumping {name}"})
    path = files.path_of(name)
    try:
        data = files.read_small(path)
    except UnreadableError as error:
        report.unreadable(error)
        return
    known = parse_partition_file(path.name)
    is_offsets = known.kind is FileKind.OFFSET_INDEX
    if is_offsets and len(data) < kafka_check.ENTRY_SIZES[known.kind]:
        report.item({"type": "line", "line": f"{name} is empty."})
        return
    check = kafka_check.check_offset_index if is_offsets else kafka_check.check_time_index
    finding = check(lambda at, size: data[at : at + size], len(data), known.offset or 0)
    if finding is None:
        report.item({"type": "line", "line": f"{name} passed sanity check."})
    else:
        report.summary.add(finding)
        report.note(f"{name} failed the sanity check: {finding.message}", "error")


def _compare(report: "Report", name: str) -> None:
    """Say which entries of an index are wrong beside the log, and print nothing of it."""
    from logtool.dump.index import IndexDump

    for item in IndexDump([files.path_of(name)], join_log=True, summary=report.summary):
        if isinstance(item, dict) and item.get("verdict") not in (None, "right", "unknown"):
            place = f"entry {item['entry']} (offset {item['offset']})"
            report.note(f"{name}: {place} is wrong beside the log: {item['verdict']}", "warning")
