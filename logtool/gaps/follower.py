"""What becomes of a log with gaps in a replica that numbers batches as they arrive.

So does Redpanda's Raft: without ghosts everything behind a gap gets lower offsets than the leader
has, with them it gets the same. A Kafka follower takes the leader's offsets and needs no ghosts.
"""

import numpy as np

from logtool.gaps.ghosts import Ghosts
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ShiftedRange:
    """Neighbouring batches without a gap, or ghosts without a batch between them."""

    ghost: bool
    first_offset: int
    """The leader's; also the follower's where ghosts are sent."""
    last_offset: int
    without_first: int | None
    """What the follower would number it as where no ghosts are sent; None for a ghost."""
    without_last: int | None


def stretches(
    ghosts: Ghosts, *, leader_start: int, leader_end: int, follower_end: int
) -> list[ShiftedRange]:
    """Return what a leader sends to a follower whose log ends at `follower_end`.

    `leader_end` is the offset behind the leader's last batch: nothing is sent beyond it. A
    follower that ends below the leader's start begins there anew.
    """
    at = assigned = max(follower_end, leader_start)
    result: list[ShiftedRange] = []

    def batches(end: int) -> int:
        """Add the batches from `at` up to `end`."""
        if end > at:
            result.append(
                ShiftedRange(
                    ghost=False,
                    first_offset=at,
                    last_offset=end - 1,
                    without_first=assigned,
                    without_last=assigned + end - at - 1,
                )
            )
        return max(end - at, 0)

    rows = np.flatnonzero(ghosts.last_offset >= at)
    firsts, lasts = ghosts.first_offset[rows].tolist(), ghosts.last_offset[rows].tolist()
    for first, last in zip(firsts, lasts, strict=True):
        assigned += batches(first)
        result.append(
            ShiftedRange(
                ghost=True,
                first_offset=max(first, at),
                last_offset=last,
                without_first=None,
                without_last=None,
            )
        )
        at = last + 1
    batches(leader_end)
    return result
