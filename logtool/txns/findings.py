"""Rules for ``__transaction_state`` and for what the transactions of partitions make of it.

Source: ``TransactionStateManager``, ``TransactionMetadata``, ``TransactionMarkerChannelManager``
(Kafka 3.9 and 4.3).
"""

from logtool.findings import Finding
from logtool.formats import wording

NO_TIMEOUT = 2**31 - 1
"""Milliseconds that a coordinator stores for a transaction that never times out: one that takes
part in a two-phase commit."""


def damaged(reason: str, position: int, length: int) -> Finding:
    """Return the finding for bytes without a sound batch."""
    text = (
        f"{wording.size(length)} cannot be read, so entries in these bytes are not known: {reason}"
    )
    return Finding("transaction-state/damaged", text, position=position, length=length)


def lost_end(lost: range, was: str) -> Finding:
    """Return the finding for a log that ends below an offset; `was` says what shows that offset."""
    text = (
        f"the log ends at offset {lost.start}, but {was} {lost.stop}: "
        f"the entries in {wording.offsets(lost.start, lost.stop - 1)} are not known"
    )
    return Finding(
        "transaction-state/damaged", text, first_offset=lost.start, last_offset=lost.stop - 1
    )


def absent_partitions(absent: str) -> Finding:
    """Return the finding for partitions of the topic that are absent."""
    text = f"{absent}: transactional ids that are stored there are not known"
    return Finding("transaction-state/absent-partitions", text)


def unreadable_record(offset: int, reason: str) -> Finding:
    """Return the finding for a record that no coordinator can read."""
    text = f"offset {offset}: no coordinator can read this record: {reason}"
    return Finding("transaction-state/record", text, first_offset=offset, last_offset=offset)


def newer(count: int) -> Finding:
    """Return the finding for records of an unknown type or version."""
    text = f"logtool ignored {wording.count(count, 'record')} of an unknown type or version"
    return Finding("transaction-state/newer", text)


def abandoned(first_offset: int, producer_id: int, why: str) -> Finding:
    """Return the finding for an open transaction that no coordinator ends."""
    text = f"the transaction of producer {producer_id} from offset {first_offset} hangs: {why}"
    return Finding("transaction-state/abandoned", text, first_offset=first_offset)


def marker_lost(first_offset: int, producer_id: int, why: str) -> Finding:
    """Return the finding for a committed transaction whose marker the log has lost."""
    text = f"the transaction of producer {producer_id} from offset {first_offset} {why}"
    return Finding("transaction-state/marker-lost", text, first_offset=first_offset)


def other_outcome(transactional_id: str, state: str, marker: str, offset: int) -> Finding:
    """Return the finding for a marker that contradicts the coordinator's decision."""
    text = (
        f"{transactional_id!r} is in {state}, but its marker at offset {offset} is "
        f"{marker}: its partitions do not agree on the outcome"
    )
    return Finding("transaction-state/outcome", text, first_offset=offset, last_offset=offset)


def marker_refused(
    transactional_id: str, state: str, epoch: int, found_epoch: int, first_offset: int
) -> Finding:
    """Return the finding for a partition whose leader refuses the marker of a coordinator.

    `first_offset` is that of the producer's open transaction in the partition; -1 without one.
    """
    is_open = first_offset >= 0
    pinned = f", where its transaction is open from offset {first_offset}" if is_open else ""
    text = (
        f"{transactional_id!r} is in {state} with epoch {epoch}, but its producer has epoch "
        f"{found_epoch} in this partition{pinned}: the leader refuses the marker, and the "
        "coordinator gives up"
    )
    return Finding(
        "transaction-state/marker-refused", text, first_offset=first_offset if is_open else None
    )


def marker_repeated(
    transactional_id: str, state: str, epoch: int, offset: int, waited_ms: int
) -> Finding:
    """Return the finding for a written marker that its coordinator still waits for."""
    text = (
        f"{transactional_id!r} is in {state} with epoch {epoch}, and its marker is at "
        f"offset {offset}; coordinators have written for another "
        f"{wording.duration(waited_ms / 1000)} without completing the transaction"
    )
    return Finding(
        "transaction-state/marker-repeated", text, first_offset=offset, last_offset=offset
    )
