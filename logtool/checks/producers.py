"""Rules that need the producer state of the log: transaction indexes and producer snapshots."""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from logtool.checks.foreign_segments import is_forgotten
from logtool.disk import shell
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats import producer_snapshot, transaction_index, wording
from logtool.formats.names import FileKind
from logtool.log.dir import Segment
from logtool.log.file import File
from logtool.log.producer_state import NONE, AbortedTransaction, Producer

_OPEN = "first offset of the open transaction"


def check_transaction_index(
    segment: Segment,
    aborted: Sequence[AbortedTransaction],
    *,
    first_known: int,
    compacted: bool,
    damaged: bool,
    unclean: bool,
) -> Iterator[Finding]:
    """Compare a ``.txnindex`` with the transactions that the log shows aborted in this segment.

    Transactions may begin before `first_known`, the first offset of the replay. In a `compacted`
    log an entry may begin earlier than the batches left of its transaction, and in a `damaged`
    segment its marker may be lost. A broker appends a marker before it adds the entry: after a kill
    the last markers of an active segment may lack entries, which an `unclean` start adds.
    """
    file = segment.indexes.get(FileKind.TRANSACTION_INDEX)
    index = transaction_index.parse(file.read_listed() if file else b"")
    path = (file or segment.log).path
    command = f"logtool dump-index {shell.path(path)}" if file else None
    reported: set[int] = set()
    for finding in transaction_index.check(index, base_offset=segment.base_offset):
        yield finding.placed(path, next_command=command)
        first = (finding.position or 0) // transaction_index.ENTRY_SIZE
        reported.update(range(first, first + (finding.length or 0) // transaction_index.ENTRY_SIZE))
    entries = {
        (int(p), int(last)): (row, int(first))
        for row, (p, first, last) in enumerate(
            zip(index.producer_ids, index.first_offsets, index.last_offsets, strict=True)
        )
    }
    behind = unclean and segment.is_active
    latest = int(index.last_offsets.max()) if len(index) else NONE
    for transaction in aborted:
        key = (transaction.producer_id, transaction.last_offset)
        row, first = entries.pop(key, (NONE, NONE))
        wrong = _aborted_finding(transaction, row, first, compacted, bool(file))
        if wrong and row == NONE and behind and transaction.last_offset > latest:
            wrong = replace(wrong, code="transaction-index/behind")
        if wrong:
            yield wrong.placed(path, next_command=command)
    for (producer_id, last), (row, first) in entries.items():
        # Without earlier segments all batches of the transaction may be gone, but not its marker.
        if row in reported or damaged or first < first_known or compacted:
            continue
        text = (
            f"entry {row}: producer {producer_id}, {wording.offsets(first, last)}, but the log "
            f"has no ABORT marker of such a transaction at offset {last}"
        )
        finding = Finding(
            "transaction-index/no-marker",
            text,
            first_offset=first,
            last_offset=last,
            position=row * transaction_index.ENTRY_SIZE,
        )
        yield finding.placed(path, next_command=command)


def _aborted_finding(
    transaction: AbortedTransaction, row: int, first: int, compacted: bool, has_file: bool
) -> Finding | None:
    what = (
        f"producer {transaction.producer_id} aborted "
        f"{wording.offsets(transaction.first_offset, transaction.last_offset)}"
    )
    span = (transaction.first_offset, transaction.last_offset)
    if row == NONE and not transaction.has_records:
        return None  # compaction leaves empty batches, which have no records to read
    if row == NONE:
        text = f"{what}, but {'the index has no such entry' if has_file else 'there is no index'}"
        return Finding("transaction-index/missing-entry", text, None, None, *span)
    if first > transaction.first_offset or (first < transaction.first_offset and not compacted):
        text = f"entry {row}: {what}, but the entry begins at {first}"
        at = row * transaction_index.ENTRY_SIZE
        length = transaction_index.ENTRY_SIZE
        return Finding("transaction-index/first-offset", text, at, length, *span)
    return None


def check_snapshot_file(file: File) -> tuple[list[Finding], dict[int, Mapping[str, int]] | None]:
    """Return the findings of one ``.snapshot``; without findings, its entries by producer id."""
    snapshot = producer_snapshot.parse(file.read_listed())
    findings = [
        finding.placed(file.path, next_command=f"logtool dump {shell.path(file.path)}")
        for finding in producer_snapshot.check(snapshot, end_offset=file.name.offset)
    ]
    if findings:
        return findings, None
    names = snapshot.entries.dtype.names or ()
    return findings, {
        int(row["producer_id"]): {name: int(row[name]) for name in names}
        for row in snapshot.entries
    }


def last_batch_within(
    snapshots: Sequence[File], end_offset: int, offsets: range
) -> tuple[File, int] | None:
    """Return the snapshot of an end offset, and the end of a batch within `offsets` that it names.

    A snapshot has the last batch of each producer. So it proves that a log without compaction held
    the batch. None without such a snapshot, or if it cannot be read or is damaged.
    """
    at = bisect_left(snapshots, end_offset, key=lambda one: one.name.offset or 0)
    for file in snapshots[at : at + 1]:
        if file.name.offset != end_offset:
            continue
        with suppress(UnreadableError):
            entries = check_snapshot_file(file)[1] or {}
            named = [
                one["last_offset"] for one in entries.values() if one["last_offset"] in offsets
            ]
            return (file, max(named)) if named else None
    return None


def compare_snapshot(
    file: File,
    entries: Mapping[int, Mapping[str, int]],
    replayed: Mapping[int, Producer],
    *,
    first_known: int,
    compacted: bool,
    absent: Sequence[range] = (),
    skipped: Collection[int] = (),
) -> Iterator[Finding]:
    """Compare a snapshot with the state replayed from `first_known` up to the snapshot's offset.

    Only producers with batches in the log are judged. From a compacted log, batches and markers
    that the snapshot counts may be gone: the replay may then know less than the snapshot, but must
    not contradict it. A producer whose last batch is in one of the `absent` ranges of a log without
    compaction is not judged: the snapshot is right, and shows that a segment is missing. Nor are
    the producer ids in `skipped`.
    """
    command = f"logtool dump {shell.path(file.path)}"
    for producer_id, state in sorted(replayed.items()):
        entry = entries.get(producer_id)
        if producer_id in skipped:
            continue
        if entry and not compacted and any(entry["last_offset"] in one for one in absent):
            continue
        if entry is None:
            text = _missing(producer_id, state, file)
        elif compacted:
            text = _contradiction(producer_id, state, entry, first_known)
        else:
            text = _difference(producer_id, state, entry, first_known)
        if text:
            finding = Finding(
                "producer-snapshot/mismatch", text, first_offset=max(state.last_offset, 0) or None
            )
            yield finding.placed(file.path, next_command=command)


def _missing(producer_id: int, state: Producer, file: File) -> str | None:
    if state.transaction_first_offset == NONE and is_forgotten(file, state.timestamp):
        return None
    return (
        f"producer {producer_id} is missing, but the log has batches of this producer up to "
        f"offset {state.last_offset}"
    )


def _difference(
    producer_id: int, state: Producer, entry: Mapping[str, int], first_known: int
) -> str | None:
    """Return the difference between an entry and the replayed state, in words, or None."""
    last, began = entry["last_offset"], entry["current_txn_first_offset"]
    if state.last_offset not in (NONE, last):
        return _wording(producer_id, "last offset", last, state.last_offset)
    if state.epoch != entry["producer_epoch"]:
        return _wording(producer_id, "epoch", entry["producer_epoch"], state.epoch)
    if state.last_offset == last and state.last_sequence != entry["last_sequence"]:
        return _wording(producer_id, "last sequence", entry["last_sequence"], state.last_sequence)
    if began != state.transaction_first_offset and not 0 <= began < first_known:
        return _wording(producer_id, _OPEN, began, state.transaction_first_offset)
    return None


def _contradiction(
    producer_id: int, state: Producer, entry: Mapping[str, int], first_known: int
) -> str | None:
    """Return how the replayed state contradicts an entry that counts cleaned batches, or None.

    Epochs rise, and so do offsets within an epoch. Compaction keeps a marker as long as a batch of
    its transaction, so a transaction that is open in the batches left was open, from their first
    offset or from an earlier one.
    """
    last, epoch, began = (
        entry[field] for field in ("last_offset", "producer_epoch", "current_txn_first_offset")
    )
    if state.epoch > epoch:
        return _wording(producer_id, "epoch", epoch, state.epoch)
    if state.epoch == epoch and state.last_offset > last:
        return _wording(producer_id, "last offset", last, state.last_offset)
    # A sequence belongs to its offset, even if other batches are gone.
    if state.last_offset == last and state.last_sequence != entry["last_sequence"]:
        return _wording(producer_id, "last sequence", entry["last_sequence"], state.last_sequence)
    is_open, known = state.transaction_first_offset, not 0 <= began < first_known
    if is_open != NONE and known and not 0 <= began <= is_open:
        return _wording(producer_id, _OPEN, began, is_open)
    return None


def _wording(producer_id: int, field: str, found: int, expected: int) -> str:
    return f"producer {producer_id}: {field} is {found}, but the log has {expected}"
