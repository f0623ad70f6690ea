"""Fetches of a log with gaps by a follower, and the offsets that the follower gives to batches.

A replica that numbers batches as they arrive, as Redpanda's Raft does, gives lower offsets than the
leader to all batches after a gap; with ghosts in the gap its offsets equal the leader's
(`stretches`). A Kafka follower takes the leader's offsets and needs no ghosts.

Redpanda recovers a follower in rounds (`rounds`), as the RFC on ghost batches has it.
``raft::recovery_stm`` reads some batches from the follower's next offset on, fills their gaps with
ghosts from that offset on, notes the first and the last offset that it sends
(``_base_batch_offset``, ``_last_batch_offset``), and continues after the last. So a gap between
the batches of two rounds is filled at the start of the second round; no gap is filled after the
last batch.

A round reads as many whole batches as its bytes allow; a batch that is larger is read alone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from logtool.errors import RefusedError
from logtool.formats.record_batch import BatchTable
from logtool.gaps.ghosts import Ghosts
from logtool.gaps.run import Result
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SentGhost:
    """A ghost that the leader sends to a follower."""

    first_offset: int
    last_offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class Round:
    """One round: the batches read, the ghosts between them, and the variables before and after."""

    number: int
    start_offset: int
    """The follower's next offset."""
    first_offset: int
    """Base offset of the first batch that was read."""
    last_offset: int
    batches: int
    size: int
    """Bytes of these batches."""
    ghosts: Ghosts
    """Ghosts before a batch of the round; the first one begins at `start_offset` or later."""
    before: tuple[int, int] | None
    """``_base_batch_offset`` and ``_last_batch_offset``; None before the first round."""

    @property
    def after(self) -> tuple[int, int]:
        """Return ``_base_batch_offset`` and ``_last_batch_offset`` after the round."""
        return self.base, self.last

    @property
    def base_before(self) -> int | None:
        """Return ``_base_batch_offset`` before the round; None before the first one."""
        return self.before[0] if self.before else None

    @property
    def last_before(self) -> int | None:
        """Return ``_last_batch_offset`` before the round; None before the first one."""
        return self.before[1] if self.before else None

    @property
    def base(self) -> int:
        """Return ``_base_batch_offset`` after the round."""
        first = int(self.ghosts.first_offset[0]) if len(self.ghosts) else self.first_offset
        return min(first, self.first_offset)

    @property
    def last(self) -> int:
        """Return ``_last_batch_offset`` after the round."""
        return self.last_offset

    @property
    def sent(self) -> list[SentGhost]:
        """Return its ghosts one by one."""
        columns = (self.ghosts.first_offset, self.ghosts.last_offset, self.ghosts.epoch)
        return list(map(SentGhost, *(c.tolist() for c in columns)))


def batches(result: Result) -> Iterator[BatchTable]:
    """Yield the batches of a partition that count, in order.

    UnreadableError if a log cannot be read, RefusedError if it has entries older than magic 2.
    """
    if result.ledger.legacy:
        text = (
            f"{result.ledger.legacy} entries are older than magic 2; logtool cannot "
            "compute fetch rounds for such a log"
        )
        raise RefusedError(f"{result.subject.partition.path}: {text}")
    for part in result.parts:
        if not part.stretches:
            continue
        segment = part.segment
        with segment.log.open() as log:
            for start, stop in part.stretches:
                for chunk in segment.batches(log, start=start, stop=stop, payload=False):
                    yield chunk.table


def rounds(
    tables: Iterable[BatchTable], ghosts: Ghosts, *, start: int, most: int
) -> Iterator[Round]:
    """Yield the rounds of at most `most` bytes that bring a follower from `start` to the end."""
    current = _Open(1, start, ghosts)
    for table in tables:
        table = table[table.last_offset >= start]
        bounds, at = np.concatenate(([0], np.cumsum(table.size))), 0
        while at < len(table):
            room = bounds[at] + most - current.size
            end = int(np.searchsorted(bounds, room, "right")) - 1
            if not current.batches:
                end = max(end, at + 1)
            if end > at:
                current.take(table, at, end, int(bounds[end] - bounds[at]))
            if end < len(table):
                yield current.closed()
                current = current.next()
            at = max(end, at)
    if current.batches:
        yield current.closed()


class _Open:
    """A round that is not complete."""

    def __init__(
        self, number: int, start: int, ghosts: Ghosts, before: tuple[int, int] | None = None
    ) -> None:
        self._number, self._start, self._ghosts, self._before = number, start, ghosts, before
        self._first = self._last = start
        self.batches = self.size = 0

    def take(self, table: BatchTable, begin: int, end: int, size: int) -> None:
        """Add some rows of a table."""
        if not self.batches:
            self._first = int(table.base_offset[begin])
        self._last = int(table.last_offset[end - 1])
        self.batches += end - begin
        self.size += size

    def closed(self) -> Round:
        """Return the round with the batches that were added."""
        every = self._ghosts
        begin = np.searchsorted(every.last_offset, self._start)
        end = np.searchsorted(every.first_offset, self._last)
        ghosts = every[np.arange(begin, max(begin, end))]
        ghosts = replace(ghosts, first_offset=np.maximum(ghosts.first_offset, self._start))
        return Round(
            number=self._number,
            start_offset=self._start,
            first_offset=self._first,
            last_offset=self._last,
            batches=self.batches,
            size=self.size,
            ghosts=ghosts,
            before=self._before,
        )

    def next(self) -> "_Open":
        """Return the round after it."""
        return _Open(self._number + 1, self._last + 1, self._ghosts, self.closed().after)


@dataclass(frozen=True, slots=True)
class ShiftedRange:
    """A range of batches without a gap between them, or a ghost."""

    ghost: bool
    first_offset: int
    """First offset at the leader; also at the follower if ghosts are sent."""
    last_offset: int
    without_first: int | None
    """First offset at the follower if no ghosts are sent; None for a ghost."""
    without_last: int | None


def stretches(
    ghosts: Ghosts, *, leader_start: int, leader_end: int, follower_end: int
) -> list[ShiftedRange]:
    """Return the ranges that a leader sends to a follower whose log ends at `follower_end`.

    `leader_end` is the offset after the leader's last batch: the leader sends nothing beyond it. A
    follower whose log ends below the leader's start begins again at that start.
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
