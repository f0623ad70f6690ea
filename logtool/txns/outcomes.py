"""The outcome of the transaction of each record of a saved log.

The saved log has sound batches alone, and its source shows where a marker may be lost: a record
whose marker stands behind such a place may be of an earlier transaction, so its outcome is unknown.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import field
from enum import StrEnum
from pathlib import Path

from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.txns.coordinator import Relation
from logtool.txns.open_transactions import PartitionTransactions, Transaction, TransactionState
from logtool.txns.run import TransactionsRun


class RecordOutcome(StrEnum):
    """The outcome of the transaction of a record."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"
    """No marker ends it, and no entry of its coordinator shows how it ended."""
    UNKNOWN = "unknown"
    """The marker that ended it may be lost in damage."""


_OF_STATES = {
    TransactionState.COMMITTED: RecordOutcome.COMMITTED,
    TransactionState.MARKER_LOST: RecordOutcome.COMMITTED,
    TransactionState.ABORTED: RecordOutcome.ABORTED,
}


@dataclass(slots=True)
class Outcomes:
    """The outcomes of the transactions of one saved log."""

    lost_at: list[int] = field(default_factory=list)
    """Offsets at which a marker may be lost, in their order."""
    end_is_lost: bool = False
    """True if the log has lost its end, or may have."""
    _by_producer: dict[int, list[Transaction]] = field(default_factory=dict)
    """The transactions of each producer, by their first offset."""

    def add(self, one: Transaction) -> None:
        """Take a transaction of the log."""
        self._by_producer.setdefault(one.producer_id, []).append(one)

    def settle(self) -> None:
        """Put the transactions in their order, once all were added."""
        for found in self._by_producer.values():
            found.sort(key=lambda one: one.first_offset)

    def of(self, producer_id: int, offset: int) -> RecordOutcome:
        """Return the outcome of the transaction of a transactional record."""
        found = self._by_producer.get(producer_id, [])
        at = bisect_right(found, offset, key=lambda one: one.first_offset) - 1
        if at < 0:
            return RecordOutcome.UNKNOWN
        one = found[at]
        if one.is_open:
            return _OF_STATES.get(one.state, self._of_open(one))
        if one.last_offset is None or offset > one.last_offset:
            return RecordOutcome.UNKNOWN
        lost = bisect_right(self.lost_at, offset)
        is_lost = lost < len(self.lost_at) and self.lost_at[lost] <= one.last_offset
        return RecordOutcome.UNKNOWN if is_lost else _OF_STATES[one.state]

    def _of_open(self, one: Transaction) -> RecordOutcome:
        """Return OPEN if a coordinator lists it, or if no marker of it can have been lost."""
        is_listed = one.account is not None and one.account.relation is Relation.LISTED
        may_be_lost = self.end_is_lost or any(at > one.first_offset for at in self.lost_at)
        is_open = is_listed or not may_be_lost
        return RecordOutcome.OPEN if is_open else RecordOutcome.UNKNOWN


def of_saved(saved: Path, source: Path, now_ms: int) -> Outcomes:
    """Return the outcomes of the transactions of a saved log; `source` is the log it is from.

    Where the source cannot be read as a whole, a marker may be lost wherever offsets are absent.
    """
    outcomes = Outcomes()
    kept = _read(saved, now_ms)
    if kept is None or not kept.transactions:
        return outcomes
    found = _read(source, now_ms)
    committed = set()
    gaps = list(_gaps(saved))
    if found is not None and not found.unread:
        committed = {
            (one.producer_id, one.first_offset)
            for one in found.transactions
            if one.state is TransactionState.MARKER_LOST
        }
        lost = (*found.lost_at, *(one.start for one in found.absent))
        outcomes.end_is_lost = (found.high_watermark or 0) > found.end_offset or any(
            at >= kept.end_offset for at in lost
        )
        gaps = [one for one in gaps if any(one.start <= at < one.stop for at in lost)]
    else:
        outcomes.end_is_lost = True
    outcomes.lost_at = [one.start for one in gaps]
    for one in kept.transactions:
        is_committed = one.is_open and (one.producer_id, one.first_offset) in committed
        outcomes.add(one.with_lost_marker if is_committed else one)
    outcomes.settle()
    return outcomes


def _read(path: Path, now_ms: int) -> PartitionTransactions | None:
    """Return the transactions of a log; None if it cannot be read."""
    found = list(TransactionsRun([path], now_ms))
    known = [one for one in found if isinstance(one, PartitionTransactions)]
    return known[0] if len(known) == 1 else None


def _gaps(saved: Path) -> Iterator[range]:
    """Yield the offsets between the batches of a log that none of them has."""
    end = None
    for segment in opening.open_partition(saved).segments:
        for chunk in segment.batches(payload=False):
            bases, lasts = chunk.table.base_offset.tolist(), chunk.table.last_offset.tolist()
            for base, last in zip(bases, lasts, strict=True):
                if end is not None and base > end:
                    yield range(end, base)
                end = last + 1
