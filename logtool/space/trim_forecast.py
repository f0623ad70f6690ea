"""The bytes that `trim` frees of the steps of `space`, and why these are fewer."""

from collections.abc import Sequence
from pathlib import Path

from logtool.errors import LogtoolError, RefusedError
from logtool.lazy_dataclass import dataclass
from logtool.log.selection import Selection
from logtool.space.freeing import FreeingStep
from logtool.space.trimming import TrimmedDirectory, TrimOptions, TrimRun


@dataclass(frozen=True, slots=True)
class TrimForecast:
    """The result of `trim` with the same paths and the same bytes to free."""

    bytes: int
    """Bytes of the blocks that it frees."""
    above_watermark: tuple[str, ...]
    """Partitions that keep segments of the steps, which reach above their high watermark."""
    refused: str | None
    """Reason why it removes nothing; None if it does not refuse."""


def forecast(
    paths: Sequence[Path],
    options: TrimOptions,
    selection: Selection,
    steps: Sequence[FreeingStep],
) -> TrimForecast:
    """Return the bytes that `trim` frees of the steps of `space`; nothing is written."""
    found = list(TrimRun(paths, options, selection, steps))
    trimmed = [one for one in found if isinstance(one, TrimmedDirectory)]
    problems = [one for one in found if isinstance(one, LogtoolError)]
    reached = {one.path: one.new_log_start_offset for one in trimmed}
    refused = next((str(one) for one in problems if isinstance(one, RefusedError)), None)
    return TrimForecast(
        bytes=0 if refused else sum(one.bytes for one in trimmed),
        above_watermark=()
        if problems
        else tuple(
            f"{step.topic}-{step.partition}"
            for step in steps
            if step.before_offset is not None and (reached.get(step.path) or 0) < step.before_offset
        ),
        refused=refused,
    )
