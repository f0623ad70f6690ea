"""``logtool recover``: what a broker would do at its next start, done now; with --apply only."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from logtool import shell
from logtool.commands import options
from logtool.commands.options import (
    AsJson,
    Color,
    ColorOption,
    ExcludeTopics,
    FilesFrom,
    Format,
    FormatOption,
    Jobs,
    LocalPaths,
    MaxDuration,
    MaxRate,
    Null,
    Partitions,
    Progress,
    Quiet,
    Topics,
    Verbose,
)
from logtool.errors import UsageError
from logtool.formats.java_text import parse_int, parse_long

if TYPE_CHECKING:
    from logtool.data_dir import Selection
    from logtool.forecast import Key, Points


class StrategyChoice(StrEnum):
    """How a log is recovered; see `logtool.forecast.Strategy`."""

    REBUILD = "rebuild"
    SUPPLEMENT = "supplement"


FromCheckpoint = Annotated[
    bool,
    typer.Option(
        "--from-checkpoint",
        help="From the segment that holds the recovery point of recovery-point-offset-checkpoint; "
        "0 without a row. The default.",
    ),
]
FromOffset = Annotated[
    list[str] | None,
    typer.Option(
        "--from-offset", metavar="[TOPIC-PARTITION=]N",
        help="From the segment that holds offset N, whatever the marker and the checkpoint say; "
        "repeatable. Without a name it is for the one partition that is selected.",
    ),
]  # fmt: skip
Full = Annotated[
    bool, typer.Option("--full", help="From the first segment of every log, whatever they say.")
]
Strategy = Annotated[
    StrategyChoice,
    typer.Option(
        "--strategy",
        help="rebuild: indexes and producer state anew, as a broker does; supplement: keep what "
        "they already hold and add what is missing.",
    ),
]
CutPrecisely = Annotated[
    bool,
    typer.Option(
        "--cut-precisely/--cut-as-broker",
        help="Where offsets go backwards a broker empties the whole segment; cut only what is "
        "out of order.",
    ),
]
AcceptLoss = Annotated[
    list[str] | None,
    typer.Option(
        "--accept-loss", metavar="TOPIC-PARTITION",
        help="With --apply: let this partition lose the records that the plan says; repeatable.",
    ),
]  # fmt: skip
MarkClean = Annotated[
    bool,
    typer.Option(
        "--mark-clean",
        help="Check the logs that need no recovery too, then write recovery points and the "
        "clean-shutdown marker, so that a broker recovers nothing.",
    ),
]


def recover(
    paths: LocalPaths = None,
    files_from: FilesFrom = None,
    null: Null = False,
    topic: Topics = None,
    exclude_topic: ExcludeTopics = None,
    partition: Partitions = None,
    from_checkpoint: FromCheckpoint = False,
    from_offset: FromOffset = None,
    full: Full = False,
    strategy: Strategy = StrategyChoice.REBUILD,
    cut_precisely: CutPrecisely = True,
    kafka_version: options.KafkaVersion = None,
    index_interval_bytes: options.IndexInterval = None,
    index_size_max_bytes: options.IndexSize = None,
    apply: options.Apply = False,
    accept_loss: AcceptLoss = None,
    mark_clean: MarkClean = False,
    undo_dir: options.UndoDir = None,
    jobs: Jobs = None,
    max_rate: MaxRate = None,
    max_duration: MaxDuration = None,
    format: FormatOption = Format.TABLE,
    as_json: AsJson = False,
    color: ColorOption = Color.AUTO,
    progress: Progress = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Recover log dirs or partition dirs as a broker would, with no broker; undoably.

    Without --apply nothing is written: what would be done is printed. With it, everything that is
    changed is first saved in an undo directory beside the log dir, Kafka's own lock is held, and
    a kill at any point leaves a log dir that the same command finishes or 'logtool undo' puts
    back. Where records would be lost, nothing of that log dir is done without --accept-loss.

    A segment is recovered as a whole, from its first byte. A recovery point beyond the end of the
    log lets the last segment be recovered, and is lowered to the end.

    Log dirs given together are those of one broker. One that the broker would start without is
    left alone, and none is marked clean where anything in one of them stops the broker.

    Examples:
      logtool recover /var/lib/kafka/data
      logtool recover --apply --accept-loss orders-3 /var/lib/kafka/data
      logtool recover --from-offset orders-3=1500000 /var/lib/kafka/data
      logtool recover --full --mark-clean --apply /var/lib/kafka/data

    Exit status:
      0    with --apply: done; without: nothing to do
      1    without --apply: there is something to do; with: a log does not load, or a file of the
           log dir still stops a broker or takes the log dir offline
      2    the command line makes no sense
      4    incomplete: nothing matched, or some input could not be read, or not be written
      5    refused: a broker holds the log dir, records would be lost without consent, a log dir
           cannot be marked clean, or files changed meanwhile
      6    --max-duration ran out; nothing of the log dir at hand was done
      130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)

    """
    from logtool.commands import actions_view
    from logtool.commands.output import Report
    from logtool.data_dir import Inputs
    from logtool.forecast import PartitionForecast, Settings
    from logtool.plan import Action
    from logtool.recover import HINDRANCES, Consent, Recover
    from logtool.summary import ActionSummary
    from logtool.workers import Pace, available_cpus

    settings = options.settings(
        format, as_json, color, quiet=quiet, verbose=verbose, progress=progress
    )
    if sum((from_checkpoint, from_offset is not None, full)) > 1:
        raise UsageError("--from-checkpoint, --from-offset and --full exclude each other")
    selection = options.selection(topic, exclude_topic, partition)
    points, selection = _points(from_offset, full, selection)
    inputs = Inputs(options.local_paths(paths, files_from, null), selection)
    summary = ActionSummary()
    report = Report(settings, actions_view.make(settings), summary, inputs)
    job = Recover(
        inputs.paths,
        Settings(
            options.kafka_version(kafka_version), index_interval_bytes, index_size_max_bytes,
            cut_precisely=cut_precisely, clean=False if full or from_offset else None,
            supplement=strategy is StrategyChoice.SUPPLEMENT,
        ),
        Consent(
            apply, frozenset(_key("--accept-loss", name) for name in accept_loss or ()), mark_clean,
            undo_dir, shell.join(["logtool", *sys.argv[1:]]),
        ),
        selection, points, jobs or available_cpus(),
        Pace.starting_now(
            options.parse_size("--max-rate", max_rate) if max_rate else None,
            options.parse_duration("--max-duration", max_duration) if max_duration else None,
        ),
        report.show_progress,
    )  # fmt: skip
    printer = actions_view.Printer(report, summary)
    changes = 0
    found: list[PartitionForecast] = []
    with report:
        for item in job:
            if isinstance(item, Action):
                printer.action(item)
                changes += item.change is not None
                summary.to_do |= item.action == "finish" and not apply
                # Marking clean mends what it can, and refuses where more is wrong.
                summary.to_do |= item.action in HINDRANCES and not mark_clean
            elif isinstance(item, PartitionForecast):
                printer.partition(item)
                changes += sum(action.change is not None for action in item.actions)
                found.append(replace(item, actions=()))
                summary.to_do |= item.outcome != "loads"
            else:
                printer.problem(item)
        for undo in job.undo_dirs:
            report.item(actions_view.undo_object(undo))
        summary.out_of_budget = job.out_of_time
        summary.to_do |= changes > 0 and not apply
    for line in actions_view.recovered_lines(printer, found, job, changes, summary):
        report.note(line)
    if summary.interrupted or settings.format in ("csv", "tsv", "markdown"):
        for undo in job.undo_dirs:
            report.note(actions_view.undo_line(undo))
    if summary.interrupted and job.undo_dirs:
        report.note("or go on with the same command")
    raise typer.Exit(report.exit_status())


def _points(
    from_offset: Sequence[str] | None, full: bool, selection: "Selection"
) -> "tuple[Points, Selection]":
    """Return where recovery begins, and the selection narrowed to what was named."""
    if full:
        return lambda key, row: 0, selection
    if from_offset is None:
        return lambda key, row: row or 0, selection
    named = dict(_pair(text) for text in from_offset)
    if len(named) < len(from_offset):
        raise UsageError("--from-offset is given twice for one partition")
    alone = named.pop(None, None)
    if alone is not None:
        if named:
            raise UsageError("--from-offset N is for one partition; name each: TOPIC-PARTITION=N")
        return _One(alone), selection
    return lambda key, row: named[key], replace(selection, keys=frozenset(filter(None, named)))


class _One:
    """An offset that is for one partition: UsageError as soon as there is a second."""

    def __init__(self, offset: int) -> None:
        self._offset = offset
        self._key: Key | None = None

    def __call__(self, key: "Key", row: int | None) -> int:
        if self._key not in (None, key):
            raise UsageError("--from-offset N is for one partition; name it: TOPIC-PARTITION=N")
        self._key = key
        return self._offset


def _pair(text: str) -> "tuple[Key | None, int]":
    name, _, number = text.rpartition("=")
    offset = parse_long(number)
    if offset is None or offset < 0:
        raise UsageError(f"--from-offset {text}: expected N or TOPIC-PARTITION=N")
    return _key("--from-offset", name) if name else None, offset


def _key(option: str, name: str) -> "Key":
    topic, _, number = name.rpartition("-")
    partition = parse_int(number)
    if not topic or partition is None or partition < 0:
        raise UsageError(f"{option} {name}: expected TOPIC-PARTITION, such as orders-3")
    return topic, partition
