"""Producers and transactions of a log, from the reports of its segments.

The state is replayed from the batches, not taken from a snapshot. Only the state before the log
start is taken from the newest sound snapshot, as a broker does.
"""

from collections.abc import Sequence
from dataclasses import field, replace
from enum import StrEnum
from pathlib import Path

import numpy as np

from logtool.checks import producers
from logtool.checks.report import PartitionSummary, SegmentReport
from logtool.disk import shell
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats.names import PartitionDirectory
from logtool.formats.record_batch import BatchTable, concat
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition
from logtool.log.flavour import Flavour
from logtool.log.kafka import KAFKA
from logtool.log.producer_state import (
    NONE,
    CommittedTransaction,
    Marker,
    Producer,
    ProducerState,
    last_markers,
)
from logtool.txns import lost_markers
from logtool.txns.coordinator import Account

MAX_AGE_MS = 15 * 60_000 + 10_000
"""Defaults of ``transaction.max.timeout.ms`` and of how often a coordinator looks for transactions
past their timeout (``transaction.abort.timed.out.transaction.cleanup.interval.ms``): no coordinator
knows an older transaction, or no coordinator has run."""


class TransactionState(StrEnum):
    """The states of a transaction."""

    OPEN = "open"
    HANGING = "hanging"
    """Open, and no coordinator ends it: the log dir shows that, or its age does."""
    UNKNOWN = "unknown"
    """Open for longer than any coordinator leaves it, or until its broker stopped, but the state of
    its coordinator was not read or is lost."""
    MARKER_LOST = "marker-lost"
    """Committed by its coordinator, but the log has lost the marker: no broker writes it again."""
    ABORTED = "aborted"
    COMMITTED = "committed"


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transaction that left batches in the log."""

    producer_id: int
    state: TransactionState
    first_offset: int
    last_offset: int | None
    """Offset of its marker; while it is open, of its last batch, or None where that is gone."""
    producer_epoch: int | None = None
    """Producer epoch of the first batch; None if that batch is deleted."""
    marker_epoch: int | None = None
    """Producer epoch of the marker; None while the transaction is open."""
    started_ms: int | None = None
    """Timestamp of its first record, as its client set it."""
    age_ms: int | None = None
    """Age of an open transaction."""
    pins: bool = False
    """True if the first offset of the transaction is the last stable offset."""
    is_stopped: bool = False
    """True if its broker has stopped: the time since then does not decide whether it hangs."""
    account: Account | None = None
    """Account of the coordinators for an open transaction; None if no coordinator was asked."""

    @property
    def is_open(self) -> bool:
        """Return whether the transaction has no marker, hanging or not."""
        return self.state not in (TransactionState.ABORTED, TransactionState.COMMITTED)

    @property
    def without_account(self) -> "Transaction":
        """Return the transaction where no coordinator has an account of it: it may not hang."""
        hangs = self.unless_listed.state is TransactionState.HANGING
        return replace(self, state=TransactionState.UNKNOWN) if hangs else self

    @property
    def with_lost_marker(self) -> "Transaction":
        """Return an open transaction as one that was committed, without its marker."""
        return replace(self, state=TransactionState.MARKER_LOST)

    @property
    def unless_listed(self) -> "Transaction":
        """Return the transaction where no entry lists it: what a stop leaves hangs at any age."""
        hangs = self.is_stopped and self.state is TransactionState.OPEN
        return replace(self, state=TransactionState.HANGING) if hangs else self


@dataclass(frozen=True, slots=True)
class PartitionTransactions:
    """Producers and transactions of the log of one partition."""

    path: Path
    topic: str | None
    partition: int | None
    segments: int
    start_offset: int
    end_offset: int
    high_watermark: int | None
    """From replication-offset-checkpoint of the log dir."""
    producers: dict[int, Producer]
    transactions: list[Transaction]
    """The hanging ones and the open ones, oldest first, then the others in the order of their
    markers."""
    findings: list[Finding]
    lost_at: tuple[int, ...] = ()
    """Offsets at which a marker may be lost in damage, in their order."""
    absent: tuple[range, ...] = ()
    """Offsets before the log end that no sound batch has, in order."""
    has_markers: bool = True
    """False if `markers` is not filled: the log was not replayed from its batches."""
    unread: bool = False
    """True if a segment could not be read, so that its markers are not known."""
    leader_epoch: int = NONE
    """Leader epoch of the last batch."""
    flavour: Flavour = KAFKA
    """The flavour of the log. No tool of Kafka's makes Redpanda abort a transaction."""
    markers: dict[int, Marker] = field(default_factory=dict, compare=False)
    """The last marker of each producer id."""

    @property
    def damaged(self) -> bool:
        """Return whether a marker may be lost in damage."""
        return bool(self.lost_at)

    @property
    def open(self) -> list[Transaction]:
        """Return the transactions without a marker, hanging ones too."""
        return [transaction for transaction in self.transactions if transaction.is_open]

    def count(self, state: TransactionState) -> int:
        """Return the number of transactions in a state."""
        return sum(transaction.state is state for transaction in self.transactions)

    @property
    def pinned_by(self) -> int | None:
        """Return the producer whose open transaction pins the last stable offset."""
        return next((one.producer_id for one in self.open if one.pins), None)

    @property
    def producer_count(self) -> int:
        """Return how many producers there are."""
        return len(self.producers)

    @property
    def open_count(self) -> int:
        """Return how many transactions have no marker, hanging ones too."""
        return len(self.open)

    @property
    def hanging_count(self) -> int:
        """Return how many transactions hang."""
        return self.count(TransactionState.HANGING)

    @property
    def aborted_count(self) -> int:
        """Return how many transactions are aborted."""
        return self.count(TransactionState.ABORTED)

    @property
    def committed_count(self) -> int:
        """Return how many transactions are committed."""
        return self.count(TransactionState.COMMITTED)

    @property
    def last_stable_offset(self) -> int:
        """Return how far read_committed consumers get once everything is replicated."""
        return self._stable_offset(self.open)

    @property
    def last_stable_offset_later(self) -> int:
        """Return the same once the transactions that end by themselves have ended.

        Their markers, which the log does not have yet, are not counted.
        """
        return self._stable_offset(
            [one for one in self.open if not (one.account and one.account.ends_by_itself)]
        )

    def _stable_offset(self, still_open: Sequence[Transaction]) -> int:
        pinned = min((one.first_offset for one in still_open), default=self.end_offset)
        return max(pinned, self.start_offset)


def audit(
    partition: Partition,
    reports: Sequence[SegmentReport],
    findings: list[Finding],
    high_watermark: int | None,
    now_ms: int,
    until_ms: int,
    max_age_ms: int,
) -> PartitionTransactions:
    """Return producers and transactions from the reports of all segments of a partition.

    `until_ms` is the time up to which a coordinator may have run. UnreadableError.
    """
    start = reports[0].base_offset if reports else 0
    committed: list[CommittedTransaction] = []
    state = ProducerState(_remembered(partition, start), committed)
    rows = concat([report.producer_rows for report in reports])
    aborted, _ = state.apply(rows)
    begun = _Beginnings(rows)
    ended = [
        begun.complete(
            Transaction(
                producer_id=transaction.producer_id,
                state=kind,
                first_offset=transaction.first_offset,
                last_offset=transaction.last_offset,
            )
        )
        for kind, ones in (
            (TransactionState.ABORTED, aborted),
            (TransactionState.COMMITTED, committed),
        )
        for transaction in ones
    ]
    still = [
        begun.complete(
            Transaction(
                producer_id=producer_id,
                state=TransactionState.OPEN,
                first_offset=transaction.transaction_first_offset,
                last_offset=None if transaction.last_offset == NONE else transaction.last_offset,
            )
        )
        for producer_id, transaction in state.producers.items()
        if transaction.transaction_first_offset != NONE
    ]
    still.sort(key=lambda transaction: transaction.first_offset)
    aged = [
        with_age(transaction, now_ms, until_ms, max_age_ms, pins=number == 0)
        for number, transaction in enumerate(still)
    ]
    ended.sort(key=lambda transaction: transaction.last_offset or 0)
    return PartitionTransactions(
        flavour=partition.flavour,
        path=partition.path,
        topic=partition.topic,
        partition=partition.number,
        segments=len(reports),
        start_offset=start,
        end_offset=max((report.next_offset for report in reports), default=start),
        high_watermark=high_watermark,
        producers=dict(sorted(state.producers.items())),
        # What hangs is what somebody came for; the sort keeps the order within both.
        transactions=[
            *sorted(aged, key=lambda one: one.state is not TransactionState.HANGING),
            *ended,
        ],
        findings=findings,
        lost_at=lost_markers.lost_at(partition, reports),
        absent=lost_markers.absent(partition, reports),
        unread=not all(report.scanned for report in reports),
        leader_epoch=max((epoch for one in reports for epoch, _, _ in one.epochs), default=NONE),
        markers=last_markers(rows),
    )


def audit_plain(
    path: Path,
    directory: PartitionDirectory,
    facts: PartitionSummary,
    rows: BatchTable,
    high_watermark: int | None,
) -> PartitionTransactions:
    """Return the same for a plain partition, which holds no transaction.

    `rows` are the `producer_state.significant` rows of its segments.
    """
    state = ProducerState()
    state.apply(rows)
    start = facts.first_base_offset or 0
    return PartitionTransactions(
        path=path,
        topic=directory.topic,
        partition=directory.partition,
        segments=facts.segments,
        start_offset=start,
        end_offset=start if facts.log_end_offset is None else facts.log_end_offset,
        high_watermark=high_watermark,
        producers=dict(sorted(state.producers.items())),
        transactions=[],
        findings=[],
        leader_epoch=max((epoch for epoch, _ in facts.epoch_starts), default=NONE),
    )


def abort_command(bootstrap: str, topic: str, number: int, first_offset: int) -> str:
    """Return the command that ends an open transaction; a broker must run for it."""
    return (
        f"kafka-transactions.sh --bootstrap-server {shell.quote(bootstrap)} abort "
        f"{shell.option('--topic', topic)} --partition {number} --start-offset {first_offset}"
    )


def ask_command(bootstrap: str, topic: str, number: int) -> str:
    """Return the command that asks a running cluster which transactions of a partition hang."""
    return (
        f"kafka-transactions.sh --bootstrap-server {shell.quote(bootstrap)} find-hanging "
        f"{shell.option('--topic', topic)} --partition {number}"
    )


def describe_command(bootstrap: str, transactional_id: str) -> str:
    """Return the command that shows the state of a transactional id at its coordinator."""
    return (
        f"kafka-transactions.sh --bootstrap-server {shell.quote(bootstrap)} "
        f"describe {shell.option('--transactional-id', transactional_id)}"
    )


def terminate_command(bootstrap: str, transactional_id: str) -> str:
    """Return the command that has a coordinator abort an ongoing transaction before its time."""
    return (
        f"kafka-transactions.sh --bootstrap-server {shell.quote(bootstrap)} "
        f"forceTerminateTransaction {shell.option('--transactionalId', transactional_id)}"
    )


class _Beginnings:
    """Finds the first batch of a transaction among the rows kept of a log."""

    def __init__(self, rows: BatchTable) -> None:
        self._order = np.argsort(rows.base_offset, kind="stable")
        self._offsets = rows.base_offset[self._order]
        self._rows = rows

    def complete(self, transaction: Transaction) -> Transaction:
        """Return the transaction with the epochs of its first batch and marker, and its time."""
        if not transaction.is_open:
            marker_epoch = self._epoch_at(transaction.last_offset)
            transaction = replace(transaction, marker_epoch=marker_epoch)
        at = int(np.searchsorted(self._offsets, transaction.first_offset))
        if at == len(self._offsets) or self._offsets[at] != transaction.first_offset:
            return transaction
        row = self._order[at]
        # A cleaned batch has its delete horizon there.
        horizon = bool(self._rows[row : row + 1].has_delete_horizon[0])
        stamp = NONE if horizon else int(self._rows.base_timestamp[row])
        epoch = int(self._rows.producer_epoch[row])
        return replace(
            transaction, producer_epoch=epoch, started_ms=None if stamp == NONE else stamp
        )

    def _epoch_at(self, offset: int | None) -> int | None:
        """Return the producer epoch of the batch at an offset; None without one."""
        if offset is None:
            return None
        at = int(np.searchsorted(self._offsets, offset))
        if at == len(self._offsets) or self._offsets[at] != offset:
            return None
        return int(self._rows.producer_epoch[self._order[at]])


def with_age(
    transaction: Transaction, now_ms: int, until_ms: int, max_age_ms: int, *, pins: bool
) -> Transaction:
    """Return an open transaction with its age: it hangs, as far as its age decides that.

    Its age at `until_ms` counts: up to then its broker ran.
    """
    started = transaction.started_ms
    age = None if started is None else now_ms - started
    hangs = started is not None and until_ms - started > max_age_ms
    return replace(
        transaction,
        state=TransactionState.HANGING if hangs else TransactionState.OPEN,
        age_ms=age,
        pins=pins,
        is_stopped=until_ms < now_ms,
    )


def _remembered(partition: Partition, first_known: int) -> dict[int, Producer]:
    """Return the producers of the newest sound snapshot that have batches below `first_known`."""
    for file in reversed(partition.snapshots):
        try:
            entries = producers.check_snapshot_file(file)[1]
        except UnreadableError:
            continue  # `check_partition` says so
        if entries is not None:
            return {
                producer_id: Producer(
                    epoch=entry["producer_epoch"],
                    last_sequence=entry["last_sequence"],
                    last_offset=entry["last_offset"],
                    offset_delta=entry["offset_delta"],
                    timestamp=entry["timestamp"],
                    coordinator_epoch=entry["coordinator_epoch"],
                    transaction_first_offset=max(entry["current_txn_first_offset"], NONE),
                )
                for producer_id, entry in entries.items()
                if 0 <= entry["last_offset"] < first_known
                or 0 <= entry["current_txn_first_offset"] < first_known
            }
    return {}
