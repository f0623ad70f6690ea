"""How a log is recovered: options of `recover`, and of `plan`, which foretells what it does."""

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from logtool.node.options import StartOptions


class StrategyChoice(StrEnum):
    """How a log is recovered; see `logtool.node.options`."""

    REBUILD = "rebuild"
    SUPPLEMENT = "supplement"


@dataclass(frozen=True, slots=True)
class RecoveryOptions:
    """How a log is recovered."""

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
