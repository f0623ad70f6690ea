"""Sentences on open transactions: why they hang, what is missing to know it, how they end."""

from logtool.formats import wording
from logtool.times import shown
from logtool.txns.coordinator import (
    COMPLETE_COMMIT,
    ONGOING,
    PREPARE_COMMIT,
    TOPIC,
    Account,
    LostEntries,
    Relation,
    TransactionalId,
)
from logtool.txns.open_transactions import Transaction, TransactionState


def why(one: Transaction, account: Account | None) -> str:
    """Return why a transaction hangs, or why it counts as committed."""
    if account is None:
        return f"no entry of {TOPIC} was read"
    if account.committed_at is not None and account.entry is not None:
        return (
            f"was committed: the entry of {account.transactional_id!r} at offset "
            f"{account.committed_at} of {TOPIC}-{account.entry.number} is {PREPARE_COMMIT} and "
            f"lists this partition, a later one is {account.entry.state}; this log has lost the "
            "marker"
        )
    if account.transactional_id is None:
        return f"no entry of {TOPIC} has this producer id"
    entry = account.entry
    if entry is None:
        return f"{account.transactional_id!r}, which had this producer id, no longer has an entry"
    if account.is_older:
        return _why_older(one, account, entry)
    said = ""
    if account.may_be_committed:
        said = (
            "; no marker shows that the transaction began after that commit, so an abort may lose "
            "committed records: save them first"
        )
    elif entry.state == COMPLETE_COMMIT:
        said = (
            f"; the marker at offset {account.after_marker} is not older than that commit, and the "
            "transaction began behind it: an abort loses nothing that was committed"
        )
    return (
        f"the entry of {account.transactional_id!r} is {entry.state} with producer "
        f"{entry.producer_id}, epoch {entry.producer_epoch}, and does not list this partition"
        f"{said}"
    )


def _why_older(one: Transaction, account: Account, entry: TransactionalId) -> str:
    """Return why a transaction hangs whose entry is an older one of its producer."""
    said = (
        f"the newest entry of {account.transactional_id!r} is {entry.state} with epoch "
        f"{entry.producer_epoch}, older than epoch {one.producer_epoch} of the transaction"
    )
    if account.lost is not None:
        gone = wording.offsets(account.lost.offsets.start, account.lost.offsets.stop - 1)
        said += (
            f"; {TOPIC}-{account.lost.number} has lost the entries in {gone}, and no other replica "
            "has them"
        )
    if account.is_counted:
        return (
            f"{said}; the batches here account for each lost entry, and none of these decided on "
            "the transaction: an abort loses nothing that was committed"
        )
    return (
        f"{said}; a lost entry may have committed the transaction, so an abort may lose committed "
        "records: save them first"
    )


def reason(one: Transaction) -> str | None:
    """Return why a transaction hangs, or what is missing to know whether it does; None else."""
    account = one.account
    if one.state in (TransactionState.HANGING, TransactionState.MARKER_LOST):
        listed = account is not None and account.relation is Relation.LISTED
        return None if account is None or listed else why(one, account)
    if one.state is not TransactionState.UNKNOWN:
        return None
    if account is None:
        return f"no partition of {TOPIC} is here: give the log dirs that have it, too"
    if account.lost is None:
        return (
            f"no entry here has the producer, and a partition of {TOPIC} is missing or damaged: "
            "give the log dirs that have it, too"
        )
    return _missing(one, account, account.lost)


def _missing(one: Transaction, account: Account, lost: LostEntries) -> str:
    """Return the information that would decide on a transaction whose entry may be lost."""
    gone = wording.offsets(lost.offsets.start, lost.offsets.stop - 1)
    said = f"{TOPIC}-{lost.number} has lost the entries in {gone}, and one may list the transaction"
    if account.entry is not None:
        known, epoch = account.entry, account.entry.producer_epoch
        of = f", the transaction {one.producer_epoch}" if account.is_older else ""
        said += f" (the newest entry left is {known.state} with epoch {epoch}{of})"
    if lost.elsewhere is None:
        return f"{said}: no metadata log here names its replicas"
    if lost.elsewhere:
        nodes = wording.count(len(lost.elsewhere), "node")
        names = ", ".join(map(str, lost.elsewhere))
        return f"{said}: the replicas on {nodes} may have them, give these log dirs, too: {names}"
    return f"{said}; no other replica has them"


def after_restart(one: Transaction, topic: str | None, partition: int | None) -> str | None:
    """Return the effect of a start of the application of a hanging transaction; None if unknown.

    Known where its coordinator hands out the epoch of the transaction again. Source: brokers of
    3.9.2 and 4.3.1 (``tests/broker/test_rolled_back_coordinator.py``).
    """
    account = one.account
    entry = account.entry if account and account.is_older else None
    if account is None or entry is None or entry.is_active or one.producer_epoch is None:
        return None
    if one.state is not TransactionState.HANGING or topic is None:
        return None
    again = f"producer {one.producer_id} with epoch {entry.producer_epoch + 1}"
    app, place = account.transactional_id, f"{topic}-{partition}"
    if entry.producer_epoch + 1 < one.producer_epoch:
        return (
            f"end it before {app!r} starts. Its coordinator hands out {again}, older than epoch "
            f"{one.producer_epoch}: the leader of {place} refuses the first write (old epoch). If "
            "this transaction is then still open, a leader of 4.3 also refuses the abort of what "
            "that start began, and further starts fail (CONCURRENT_TRANSACTIONS)"
        )
    return (
        f"end it before {app!r} starts: its coordinator hands out {again} again, so that a commit "
        "of that start would commit these records, too. Also after the abort, the first write of "
        f"that start to {place} fails (OUT_OF_ORDER_SEQUENCE_NUMBER); the next start of the "
        "application works"
    )


def older_than_the_log(entry: TransactionalId, epoch: int, topic: str, partition: int) -> str:
    """Return a line on an entry whose producer has a newer epoch in a log."""
    return (
        f"older than the log: epoch {entry.producer_epoch} here, {epoch} in {topic}-{partition}; "
        "newer entries are missing here"
    )


def advice(one: Transaction, now_ms: int) -> str | None:
    """Return how an open transaction ends by itself, or is to be ended; None if not known."""
    account = one.account
    if one.state is TransactionState.MARKER_LOST:
        return (
            "do not abort it: its records are committed; no broker writes the marker again, so "
            f"read_committed consumers stop at offset {one.first_offset} until the end of the log "
            "comes from another copy (logtool recover --fill-from) or its records are produced "
            "again"
        )
    if account is None or account.entry is None or not account.will_end:
        return None
    return advice_on(account.entry, now_ms)


def advice_on(entry: TransactionalId, now_ms: int, *, refused: bool = False) -> str | None:
    """Return a line on how the transaction of an entry ends; None if it has none to end."""
    if refused:
        return "its coordinator cannot end it, because a marker is refused: see the findings"
    if entry.is_prepared:
        ends = "commits" if entry.state == PREPARE_COMMIT else "aborts"
        return f"wait: its coordinator {ends} the transaction when it runs; check again afterwards"
    if entry.state != ONGOING:
        return None
    time = entry.times_out_ms
    if time is None:
        return "the transaction never times out: its client ends it (two-phase commit)"
    if time <= now_ms:
        return (
            "wait: the coordinator aborts the transaction once its broker runs "
            f"(timeout {shown(time)})"
        )
    return f"wait: its client ends the transaction, or its coordinator aborts it at {shown(time)}"
