"""Options of recovery: strategy, start point, and permitted changes.

`RecoveryOptions` belongs to `plan` as well, which shows what `recover` would do.
"""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands import options
from logtool.commands.program import parsing, start_options
from logtool.commands.program.broker_config import BrokerConfig
from logtool.errors import UsageError
from logtool.formats.java_text import parse_long
from logtool.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from logtool.formats.names import TopicPartition
    from logtool.log.selection import Selection
    from logtool.node.options import StartOptions
    from logtool.startup.log_dir_start import Points


class StrategyChoice(StrEnum):
    """Strategies of recovery; see `logtool.node.options`."""

    REBUILD = "rebuild"
    SUPPLEMENT = "supplement"


@dataclass(frozen=True, slots=True)
class RecoveryOptions:
    """Options for the recovery of a log."""

    strategy: Annotated[
        StrategyChoice,
        typer.Option(
            "--strategy",
            help="rebuild: rebuild indexes and producer state, as a broker does; supplement: "
            "keep their content and add what is missing.",
        ),
    ] = StrategyChoice.REBUILD
    trust_log: Annotated[
        bool,
        typer.Option(
            "--trust-log",
            help="With --strategy supplement: check no CRC. Read only batch headers, from the "
            "position up to which producers and transactions are known; do not read or "
            "check anything before it.",
        ),
    ] = False

    @property
    def supplements(self) -> bool:
        """Return whether indexes are kept; UsageError for --trust-log with another strategy."""
        supplements = self.strategy is StrategyChoice.SUPPLEMENT
        if self.trust_log and not supplements:
            raise UsageError(
                "--trust-log requires --strategy supplement; --strategy rebuild reads every byte"
            )
        return supplements

    def chosen(self, assumed: "StartOptions") -> "StartOptions":
        """Return the options of the start, with the strategy.

        No broker supplements; with this strategy, 'logtool recover' acts, and cuts precisely.
        """
        supplements = self.supplements
        return replace(
            assumed, supplement=supplements, trust=self.trust_log, cut_precisely=supplements
        )


@dataclass(frozen=True, slots=True)
class StartPoint:
    """Options for the point at which recovery begins."""

    from_checkpoint: Annotated[
        bool,
        typer.Option(
            "--from-checkpoint",
            help="Start at the segment that contains the recovery point in "
            "recovery-point-offset-checkpoint (0 without a row). This is the default.",
        ),
    ] = False
    from_offset: Annotated[
        list[str] | None,
        typer.Option(
            "--from-offset",
            metavar="[TOPIC-PARTITION=]N",
            help="Start at the segment that contains offset N, regardless of clean-shutdown "
            "marker and checkpoint; repeatable. Without TOPIC-PARTITION, N applies to the "
            "only selected partition.",
        ),
    ] = None
    truncate_to: Annotated[
        list[str] | None,
        typer.Option(
            "--truncate-to",
            metavar="TOPIC-PARTITION=OFFSET",
            help="Truncate this log to OFFSET, as a follower does to agree with its leader, and "
            "recover the rest. A batch that reaches OFFSET is removed as a whole. "
            "Repeatable.",
        ),
    ] = None
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Start at the first segment of every log, regardless of clean-shutdown marker "
            "and checkpoint.",
        ),
    ] = False

    @property
    def clean(self) -> bool | None:
        """Return False if the clean-shutdown marker is ignored, otherwise None."""
        return False if self.full or self.from_offset or self.truncate_to else None

    @property
    def named_by(self) -> str:
        """Return the option that names partitions."""
        return "--truncate-to" if self.truncate_to else "--from-offset"

    @property
    def offsets(self) -> "dict[TopicPartition, int]":
        """Return the new end of each log in --truncate-to."""
        named = dict(_pair(text, "--truncate-to") for text in self.truncate_to or ())
        if None in named:
            raise UsageError("--truncate-to: name the partition: TOPIC-PARTITION=OFFSET")
        if len(named) < len(self.truncate_to or ()):
            raise UsageError("--truncate-to is given twice for one partition")
        return {key: offset for key, offset in named.items() if key}

    def points(self, selection: "Selection") -> "tuple[Points, Selection]":
        """Return the start of recovery, and the selection narrowed to the named partitions."""
        given = self.from_offset is not None, self.truncate_to is not None
        if sum((self.from_checkpoint, self.full, *given)) > 1:
            raise UsageError(
                "--from-checkpoint, --from-offset, --full and --truncate-to exclude each other"
            )
        if self.truncate_to is not None:
            ends = self.offsets
            narrowed = replace(selection, keys=frozenset(ends))
            return lambda key, row: min(row or 0, ends[key]), narrowed
        if self.full:
            return lambda key, row: 0, selection
        if self.from_offset is None:
            return lambda key, row: row or 0, selection
        named = dict(_pair(text) for text in self.from_offset)
        if len(named) < len(self.from_offset):
            raise UsageError("--from-offset is given twice for one partition")
        alone = named.pop(None, None)
        if alone is not None:
            if named:
                raise UsageError(
                    "--from-offset N requires a single partition; use TOPIC-PARTITION=N for each"
                )
            return _One(alone), selection
        return lambda key, row: named[key], replace(selection, keys=frozenset(filter(None, named)))


@dataclass(frozen=True, slots=True)
class RecoveryMode(RecoveryOptions):
    """Options for the recovery of a log and for the place at which it is cut."""

    cut_precisely: Annotated[
        bool,
        typer.Option(
            "--cut-precisely/--cut-as-broker",
            help="Where an index entry shows that offsets go backwards, a broker empties the whole "
            "segment; --cut-precisely cuts only the batches that are out of order, and drops "
            "segments that a truncation removed and a crash restored.",
        ),
    ] = True

    fill_from: Annotated[
        list[Path] | None,
        typer.Option(
            "--fill-from",
            metavar="DIR",
            parser=options.local_path,
            help="Replace damage with batches of another copy of the partition, in this log dir "
            "or partition dir, if it is provably the same log; repeatable.",
        ),
    ] = None

    def assumed(
        self, broker: start_options.StartingBroker, begin: StartPoint, config: BrokerConfig
    ) -> "StartOptions":
        """Return the options of the start; UsageError for contradicting options."""
        if self.supplements and begin.truncate_to:
            raise UsageError(
                "--truncate-to requires --strategy rebuild: supplement keeps indexes and snapshots "
                "of a log that continues after that offset"
            )
        if self.fill_from and (self.supplements or begin.truncate_to):
            raise UsageError(
                "--fill-from cannot be used with --strategy supplement or --truncate-to"
            )
        return replace(
            self.chosen(broker.assumed(config)),
            cut_precisely=self.cut_precisely,
            clean=begin.clean,
            truncate_to=begin.offsets,
            fill_from=tuple(self.fill_from or ()),
        )


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """Options that permit changes."""

    apply: options.Apply = False
    accept_loss: Annotated[
        list[str] | None,
        typer.Option(
            "--accept-loss",
            metavar="TOPIC-PARTITION",
            help="With --apply: accept that this partition loses the records that are shown "
            "without --apply; repeatable.",
        ),
    ] = None
    mark_clean: Annotated[
        bool,
        typer.Option(
            "--mark-clean",
            help="Also check the logs that need no recovery, then write recovery points and the "
            "clean-shutdown marker, so that a broker recovers nothing.",
        ),
    ] = False
    undo_dir: options.UndoDir = None

    @property
    def accepted(self) -> "frozenset[TopicPartition]":
        """Return the partitions that may lose records; UsageError for another text."""
        return frozenset(
            parsing.parse_topic_partition("--accept-loss", name) for name in self.accept_loss or ()
        )


class _One:
    """An offset for a single partition: UsageError for a second partition."""

    def __init__(self, offset: int) -> None:
        self._offset = offset
        self._key: TopicPartition | None = None

    def __call__(self, key: "TopicPartition", row: int | None) -> int:
        if self._key not in (None, key):
            raise UsageError("--from-offset N requires a single partition; use TOPIC-PARTITION=N")
        self._key = key
        return self._offset


def _pair(text: str, option: str = "--from-offset") -> "tuple[TopicPartition | None, int]":
    name, _, number = text.rpartition("=")
    offset = parse_long(number)
    if offset is None or offset < 0:
        raise UsageError(f"{option} {text}: expected N or TOPIC-PARTITION=N")
    return parsing.parse_topic_partition(option, name) if name else None, offset
