"""Evidence about an open transaction that the entry of its producer does not list.

A partition is in the entry before its first record is appended, in any transaction version, and the
entry is complete only after every marker was appended (unless a coordinator of 4.3 was just
loaded). So at no moment does a log have an open transaction that its entry does not list, unless
that transaction hangs. But a copy of a running broker has its logs from different moments, and a
follower may be behind.

A log that has lost its end may come back from another replica. Where every replica is here, none
can: an entry with an older epoch than the transaction then stays, and no coordinator ends the
transaction. A lost entry may have committed it, as long as more entries are lost than the batches
of the producer account for: one for each new epoch (InitProducerId), three for each transaction
that was committed (Ongoing, PrepareCommit, CompleteCommit), and one (Ongoing) for the open one.
Source: ``TransactionCoordinator.endTransaction``, ``TransactionStateManager.loadTransactions``
(``prepareComplete``), ``ReplicaManager.checkpointHighWatermarks`` (Kafka 3.9 and 4.3).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass
from logtool.log.producer_state import NONE, Marker
from logtool.metadata import image
from logtool.metadata.image import MetadataImage
from logtool.node import identity
from logtool.txns.coordinator import PREPARE_COMMIT, TOPIC, CoordinatorLog, TransactionalId
from logtool.txns.open_transactions import (
    PartitionTransactions,
    Transaction,
    TransactionState,
)

_OF_A_COMMIT = 3
"""Entries of a committed transaction, at least."""
_VERSION_2 = 2
"""Transaction version from which on each transaction has an epoch of its own."""


@dataclass(slots=True)
class TransactionEvidence:
    """The metadata and the ids of log dirs, each read once."""

    _known: dict[Path, tuple[int | None, MetadataImage | None]] = field(default_factory=dict)
    """Node id and metadata, by log dir; None where they are not known."""

    def shows_hanging(
        self,
        one: Transaction,
        audited: PartitionTransactions,
        log: CoordinatorLog,
        entry: TransactionalId,
    ) -> bool:
        """Return whether a transaction that its entry does not list hangs, whatever its age.

        The high watermarks of a log dir, which its broker writes all at once, name a moment. Both
        logs are there up to that moment, the transaction had begun, the entry was written, and the
        broker was in sync: so the transaction was open and not listed at that moment.
        """
        return (
            audited.path.parent == log.path.parent
            and not (audited.damaged or audited.unread)
            and one.first_offset < (audited.high_watermark or 0) <= audited.end_offset
            and entry.offset < (log.high_watermark or 0) <= log.end_offset
            and self._is_in_sync(log.path.parent, audited.topic, audited.partition)
            and self._is_in_sync(log.path.parent, TOPIC, log.number)
        )

    def is_settled(
        self,
        audited: PartitionTransactions,
        log: CoordinatorLog,
        homes: Sequence[Path],
    ) -> bool:
        """Return whether no replica has what a log has lost, and a partition lacks no marker."""
        return (
            log.is_whole_before
            and not (audited.damaged or audited.unread)
            and (audited.high_watermark or 0) <= audited.end_offset
            and self._is_in_sync_by(homes, audited)
            and self.elsewhere(log, homes) == ()
        )

    def elsewhere(self, log: CoordinatorLog, homes: Sequence[Path]) -> tuple[int, ...] | None:
        """Return the nodes that may have more of a partition of the topic than its log here.

        A copy that is longer than the log, of an older leader epoch, does not count as here. None
        where no metadata in the log dirs names the replicas.
        """
        replicas = {
            node
            for known in self._images(homes)
            for state in [known.partitions.get(known.topics.get(TOPIC, ""), {}).get(log.number)]
            if state
            for node in state.replicas
        }
        if not replicas:
            return None
        here = {self._read(path.parent)[0] for path, end in log.copies if end <= log.end_offset}
        return tuple(sorted(replicas - here))

    def numbers(self, home: Path) -> set[int]:
        """Return the partitions of the topic that the metadata of a log dir has, if known."""
        known = self._read(home)[1]
        return set(known.partitions.get(known.topics.get(TOPIC, ""), ())) if known else set()

    def _is_in_sync(self, home: Path, topic: str | None, number: int | None) -> bool:
        """Return whether the broker of a log dir has all committed records of a partition.

        Its metadata says so: the broker is in the ISR, or in the ELR once the broker has stopped.
        """
        node_id, known = self._read(home)
        if known is None or topic is None or number is None:
            return False
        state = known.partitions.get(known.topics.get(topic, ""), {}).get(number)
        return state is not None and node_id in (*state.isr, *state.elr)

    def _is_in_sync_by(self, homes: Sequence[Path], audited: PartitionTransactions) -> bool:
        """Return whether all metadata in log dirs that has a partition has its broker in sync."""
        node_id = self._read(audited.path.parent)[0]
        found = [
            state
            for known in self._images(homes)
            for state in [
                known.partitions.get(known.topics.get(audited.topic or "", ""), {}).get(
                    NONE if audited.partition is None else audited.partition
                )
            ]
            if state
        ]
        return bool(found) and all(node_id in (*one.isr, *one.elr) for one in found)

    def _images(self, homes: Sequence[Path]) -> Iterator[MetadataImage]:
        """Yield the metadata in log dirs, as far as it is there."""
        for home in homes:
            known = self._read(home)[1]
            if known:
                yield known

    def _read(self, home: Path) -> tuple[int | None, MetadataImage | None]:
        if home not in self._known:
            self._known[home] = identity.ids_of(home)[0], _image(home)
        return self._known[home]


def marker_before(
    one: Transaction, markers: Mapping[int, Marker], entry: TransactionalId
) -> int | None:
    """Return the offset of a marker that shows that a transaction began after its entry; or None.

    The marker stands before the transaction, and was written after the coordinator had decided how
    the transaction of the entry ends: all records of that one were appended by then. It has the
    epoch of the entry (version 2), or a later time: both times are those of brokers. A coordinator
    that completes a transaction without a marker does so when it is loaded, and the time of the
    entry is then later than all markers before that.
    """
    before = [found for found in markers.values() if found.offset < one.first_offset]
    own = markers.get(one.producer_id)
    if (
        own in before
        and one.producer_id == entry.producer_id
        and entry.transaction_version >= _VERSION_2
        and own.producer_epoch == entry.producer_epoch
    ):
        return own.offset
    if entry.last_update_ms is None:
        return None
    later = [found for found in before if found.timestamp >= entry.last_update_ms]
    return max((found.offset for found in later), default=None)


def is_committed(
    one: Transaction,
    audited: PartitionTransactions,
    entry: TransactionalId,
    decision: TransactionalId,
) -> bool:
    """Return whether a decision of the coordinator committed an open transaction of a log.

    `decision` is the last entry of the producer that decided how a transaction ends; `entry`, which
    is newer, no longer lists the partition. The decision lists the partition, so that a marker was
    written to it. That marker is not in front of the transaction, where no offset is absent: it was
    behind, in the part that the log has lost.
    """
    first = one.first_offset
    has_lost_end = (audited.high_watermark or 0) > audited.end_offset
    absent = [one.start for one in audited.absent]
    behind = decision.producer_epoch - (one.producer_epoch or 0)
    is_version_2 = decision.transaction_version >= _VERSION_2
    return (
        decision.state == PREPARE_COMMIT
        and decision.offset < entry.offset
        and (audited.topic, audited.partition) in decision.partitions
        and one.producer_epoch is not None
        and (behind in (0, 1) if is_version_2 else behind == 0)
        and audited.has_markers
        and not audited.unread
        and (has_lost_end or audited.damaged)
        and all(found > first for found in (*audited.lost_at, *absent))
        and marker_before(one, audited.markers, decision) is None
    )


def is_older(entry: TransactionalId, one: Transaction) -> bool:
    """Return whether an entry has an older epoch than a transaction of its producer.

    The coordinator gave out the epoch, so it had written a newer entry.
    """
    return (
        entry.producer_id == one.producer_id
        and one.producer_epoch is not None
        and entry.producer_epoch < one.producer_epoch
    )


def is_counted(
    one: Transaction, audited: PartitionTransactions, log: CoordinatorLog, entry: TransactionalId
) -> bool:
    """Return whether the batches account for all entries that a log has lost behind an older one.

    Then none of these ended the open transaction. An aborted transaction counts nothing: an
    administrator may have aborted it, which no entry shows.
    """
    if log.lost is None or not log.is_lost_exactly or not log.is_whole_before or entry.is_active:
        return False
    later = [
        each
        for each in audited.transactions
        if not each.is_open and is_older(entry, each) and each.first_offset < one.first_offset
    ]
    needed = 0
    epoch: int | None = entry.producer_epoch
    for each in (*sorted(later, key=lambda each: each.first_offset), one):
        # The entry of the one before has another epoch: the producer got its own by another entry.
        needed += epoch not in (None, each.producer_epoch)
        is_committed = each.state is TransactionState.COMMITTED
        needed += 1 if each is one else _OF_A_COMMIT if is_committed else 0
        epoch = each.marker_epoch if is_committed else None
    return len(log.lost) == needed


def _image(home: Path) -> MetadataImage | None:
    """Return the metadata in a log dir; None without it, or if it is damaged."""
    try:
        known = image.read(home)
    except UnreadableError:
        return None
    return None if known.damage is not None else known
