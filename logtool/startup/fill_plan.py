"""The fill of a log from other copies, planned as `recover` does it, and the command for it."""

from collections.abc import Sequence
from pathlib import Path

from logtool.actions import Action
from logtool.errors import LogtoolError
from logtool.lazy_dataclass import dataclass
from logtool.node.options import StartOptions
from logtool.repair import propose
from logtool.startup.partition import PartitionForecast
from logtool.startup.recover import ApplyConsent, Recover


@dataclass(frozen=True, slots=True)
class FillPlan:
    """The ranges of a log that other copies fill, as `recover --fill-from` would fill them."""

    command: str | None
    """The command line; None if it would fill nothing."""
    unfilled: tuple[tuple[int | None, int | None], ...]
    """Segment and byte of each range for which no copy has proven batches."""


def plan_fill(path: Path, places: Sequence[Path]) -> FillPlan | None:
    """Plan the fill of a partition from other places as `recover` does it; nothing is changed.

    None if no place holds another copy that `recover` takes, or if a log cannot be read.
    """
    command = propose.repair(path, places)
    if command is None:
        return None
    assumed = StartOptions(fill_from=tuple(places), cut_precisely=True)
    actions: list[Action] = []
    try:
        for item in Recover([path], assumed, ApplyConsent()):
            if isinstance(item, LogtoolError):
                return None
            actions += item.actions if isinstance(item, PartitionForecast) else []
    except LogtoolError:
        return None
    fills = any(action.action == "fill" for action in actions)
    return FillPlan(
        command=command if fills else None,
        unfilled=tuple(
            (action.segment, action.position) for action in actions if action.action == "unfilled"
        ),
    )
