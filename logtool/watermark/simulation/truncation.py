"""Truncation of a follower when a leader takes over: by high watermark and by leader epoch.

Before Kafka 0.11 a follower cut to its own high watermark. Since KIP-101 it asks the leader where
the epoch ended that it last saw, and since KIP-279 it asks again until both know the same epoch.
Source: ``LeaderEpochFileCache.endOffsetFor``, ``AbstractFetcherThread.getOffsetTruncationState``.
"""

from collections.abc import Sequence

from logtool.lazy_dataclass import dataclass

Epochs = Sequence[tuple[int, int]]
"""(leader epoch, start offset), both rising, as ``leader-epoch-checkpoint`` holds them."""


@dataclass(frozen=True, slots=True)
class LogState:
    """State of one replica's log, as far as the rules need it."""

    epochs: Epochs
    log_end: int
    """Exclusive: the offset that is written next."""
    high_watermark: int
    """Exclusive."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Offset to which a follower truncates its log: it removes this offset and all after it."""

    offset: int
    requests: int
    """Number of requests to the leader."""
    unknown: bool = False
    """True if the epochs did not decide, so that `offset` is the high watermark."""


def end_offset_for(epochs: Epochs, log_end: int, epoch: int) -> tuple[int, int] | None:
    """Return the greatest known epoch up to `epoch` and where it ends; None where that is unknown.

    An epoch older than all that are known ends where the first of them starts.
    """
    if epochs and epoch == epochs[-1][0]:
        return epoch, log_end
    higher = [start for known, start in epochs if known > epoch]
    if not higher:
        return None
    lower = [known for known, _ in epochs if known <= epoch]
    return (lower[-1] if lower else epoch), higher[0]


def by_high_watermark(follower: LogState) -> Cut:
    """Return the cut of a broker before Kafka 0.11, which looks at nothing but its own log."""
    return Cut(min(follower.high_watermark, follower.log_end), 0)


def by_leader_epoch(follower: LogState, leader: LogState) -> Cut:
    """Return the cut that follower and leader agree on.

    `leader` already knows its own new epoch, which starts at its log end.
    """
    epochs, end = list(follower.epochs), follower.log_end
    requests = 0
    while epochs:
        requests += 1
        answer = end_offset_for(leader.epochs, leader.log_end, epochs[-1][0])
        if answer is None:
            break
        epoch, leader_end = answer
        own = end_offset_for(epochs, end, epoch)
        if own is None or own[0] not in [known for known, _ in epochs]:
            return Cut(min(leader_end, end), requests)
        if own[0] == epoch:
            return Cut(min(own[1], leader_end, end), requests)
        # The follower never saw the epoch of the answer: it cuts what is newer, and asks again.
        end = min(own[1], end)
        epochs = [row for row in epochs if row[1] < end]
    return Cut(min(follower.high_watermark, end), requests, unknown=True)
