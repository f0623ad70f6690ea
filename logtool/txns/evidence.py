"""Evidence about an open transaction that the entry of its producer does not list.

A partition is in the entry before its first record is appended, in any transaction version, and the
entry is complete only after every marker was appended (unless a coordinator of 4.3 was just
loaded). So at no moment does a log have an open transaction that its entry does not list, unless
that transaction hangs. But a copy of a running broker has its logs from different moments, and a
follower may be behind.
Source: ``TransactionCoordinator.endTransaction``, ``TransactionStateManager.loadTransactions``
(``prepareComplete``), ``ReplicaManager.checkpointHighWatermarks`` (Kafka 3.9 and 4.3).
"""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass
from logtool.log.producer_state import Marker
from logtool.metadata import image
from logtool.metadata.image import MetadataImage
from logtool.node import identity
from logtool.txns.coordinator import TOPIC, CoordinatorLog, TransactionalId
from logtool.txns.open_transactions import PartitionTransactions, Transaction

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


def _image(home: Path) -> MetadataImage | None:
    """Return the metadata in a log dir; None without it, or if it is damaged."""
    try:
        known = image.read(home)
    except UnreadableError:
        return None
    return None if known.damage is not None else known
