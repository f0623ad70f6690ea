"""Options of recovery: how a log is recovered, where recovery begins, and what may be done.

The first are those of `plan`, too, which says what `recover` does.
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
            help="rebuild: indexes and producer state anew, as a broker does; supplement: keep "
            "what they already hold and add what is missing.",
        ),
    ] = StrategyChoice.REBUILD
    trust_log: Annotated[
        bool,
        typer.Option(
            "--trust-log",
            help="With --strategy supplement: compare no CRC. Read headers alone, from where "
            "producers and transactions are not known on; nothing below is read or checked.",
        ),
    ] = False

    @property
    def supplements(self) -> bool:
        """Return whether what is there is kept; UsageError where a log is trusted without that."""
        supplements = self.strategy is StrategyChoice.SUPPLEMENT
        if self.trust_log and not supplements:
            raise UsageError(
                "--trust-log goes with --strategy supplement: to rebuild, every byte is read"
            )
        return supplements

    def chosen(self, assumed: "StartOptions") -> "StartOptions":
        """Return what is assumed of the start, with the strategy.

        No broker supplements, so then it is 'logtool recover' that acts, and cuts precisely.
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
            help="From the segment that holds the recovery point of "
            "recovery-point-offset-checkpoint; 0 without a row. The default.",
        ),
    ] = False
    from_offset: Annotated[
        list[str] | None,
        typer.Option(
            "--from-offset",
            metavar="[TOPIC-PARTITION=]N",
            help="From the segment that holds offset N, whatever the marker and the checkpoint "
            "say; repeatable. Without a name it is for the one partition that is selected.",
        ),
    ] = None
    truncate_to: Annotated[
        list[str] | None,
        typer.Option(
            "--truncate-to",
            metavar="TOPIC-PARTITION=OFFSET",
            help="Let this log end at OFFSET, as a follower does to agree with its leader, and "
            "recover what stays; a batch that reaches OFFSET goes as a whole. Repeatable.",
        ),
    ] = None
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="From the first segment of every log, whatever marker and checkpoint say.",
        ),
    ] = False

    @property
    def clean(self) -> bool | None:
        """Return False where the marker of a clean shutdown says nothing, else None."""
        return False if self.full or self.from_offset or self.truncate_to else None

    @property
    def named_by(self) -> str:
        """Return the option that names partitions."""
        return "--truncate-to" if self.truncate_to else "--from-offset"

    @property
    def offsets(self) -> "dict[TopicPartition, int]":
        """Return where the logs that --truncate-to names are to end."""
        named = dict(_pair(text, "--truncate-to") for text in self.truncate_to or ())
        if None in named:
            raise UsageError("--truncate-to: name the partition: TOPIC-PARTITION=OFFSET")
        if len(named) < len(self.truncate_to or ()):
            raise UsageError("--truncate-to is given twice for one partition")
        return {key: offset for key, offset in named.items() if key}

    def points(self, selection: "Selection") -> "tuple[Points, Selection]":
        """Return where recovery begins, and the selection narrowed to what was named."""
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
                    "--from-offset N is for one partition; name each: TOPIC-PARTITION=N"
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
            help="Where offsets go backwards a broker empties the whole segment; cut only what is "
            "out of order. And drop segments that were truncated away and came back.",
        ),
    ] = True

    fill_from: Annotated[
        list[Path] | None,
        typer.Option(
            "--fill-from",
            metavar="DIR",
            parser=options.local_path,
            help="Put batches of another copy of the partition, in this log dir or partition dir, "
            "in the place of damage, where they are proved to be of the same log; repeatable.",
        ),
    ] = None

    def assumed(
        self, broker: start_options.StartingBroker, begin: StartPoint, config: BrokerConfig
    ) -> "StartOptions":
        """Return what is assumed of the start; UsageError for what does not go together."""
        if self.supplements and begin.truncate_to:
            raise UsageError(
                "--truncate-to goes with --strategy rebuild only: what supplement keeps was "
                "written for a log that goes on behind that offset"
            )
        if self.fill_from and (self.supplements or begin.truncate_to):
            raise UsageError(
                "--fill-from goes with neither --strategy supplement nor --truncate-to"
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
            help="With --apply: let this partition lose the records that the plan says; "
            "repeatable.",
        ),
    ] = None
    mark_clean: Annotated[
        bool,
        typer.Option(
            "--mark-clean",
            help="Check the logs that need no recovery too, then write recovery points and the "
            "clean-shutdown marker, so that a broker recovers nothing.",
        ),
    ] = False
    undo_dir: options.UndoDir = None

    @property
    def accepted(self) -> "frozenset[TopicPartition]":
        """Return the partitions that may lose records; UsageError for a name of none."""
        return frozenset(
            parsing.parse_topic_partition("--accept-loss", name) for name in self.accept_loss or ()
        )


class _One:
    """An offset that is for one partition: UsageError as soon as there is a second."""

    def __init__(self, offset: int) -> None:
        self._offset = offset
        self._key: TopicPartition | None = None

    def __call__(self, key: "TopicPartition", row: int | None) -> int:
        if self._key not in (None, key):
            raise UsageError("--from-offset N is for one partition; name it: TOPIC-PARTITION=N")
        self._key = key
        return self._offset


def _pair(text: str, option: str = "--from-offset") -> "tuple[TopicPartition | None, int]":
    name, _, number = text.rpartition("=")
    offset = parse_long(number)
    if offset is None or offset < 0:
        raise UsageError(f"{option} {text}: expected N or TOPIC-PARTITION=N")
    return parsing.parse_topic_partition(option, name) if name else None, offset
