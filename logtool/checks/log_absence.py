"""Rules for what is absent from one partition: the beginning of its log, snapshots, its start row.

`verify`, `plan` and `watermark` use them. Sources: ``UnifiedLog.deleteSegments``,
``UnifiedLog.rebuildProducerState``, ``ProducerStateManager.removeStraySnapshots``,
``LeaderEpochFileCache.truncateFromStart``, ``LogManager.checkpointLogStartOffsets``
(Kafka 3.9 and 4.3).
"""

from collections.abc import Iterator

from logtool.checks.foreign_segments import EXPIRATION_MS
from logtool.findings import Finding, Severity
from logtool.formats import wording
from logtool.formats.leader_epoch_checkpoint import EpochRow
from logtool.formats.names import DirectoryKind, FileKind
from logtool.log import producer_state
from logtool.log.claims import Claim, ClaimKind, Evidence, Presence, Revocation, standing, unmet
from logtool.log.dir import OF_TODAY, Partition
from logtool.log.partition_claims import (
    end_claims,
    epoch_rows,
    first_base,
    first_epoch,
    start_claims,
)
from logtool.log.producer_state import ProducerState
from logtool.metadata.log_start import lacks_remote_epochs
from logtool.node.surroundings import Surroundings

REMOTE_EPOCHS = "leader-epoch/missing-remote"
"""Code of a tiered log that lacks the leader epochs of its remote segments."""
FirstEpoch = tuple[EpochRow, Evidence]
"""The first row of leader-epoch-checkpoint and its place."""


def check(partition: Partition, around: Surroundings, end: int | None) -> Iterator[Finding]:
    """Yield findings about absent parts of a partition that a broker writes to.

    `end` is its log end offset, None if it is not known. The log is read where it decides.
    """
    is_judged = getattr(partition.directory, "kind", None) in OF_TODAY
    if not is_judged or partition.is_metadata_log or not partition.segments:
        return
    epoch = first_epoch(partition)
    yield from remote_epochs(partition, around)
    yield from _beginning(partition, around, epoch)
    yield from _start_row(partition, around, end, epoch)
    yield from _snapshots(partition, around, end)


def action_of(finding: Finding) -> str | None:
    """Return the action of `plan` for a finding of these rules; None for an info that needs none.

    A beginning that may be lost counts as lacking, unless compaction may have emptied it; the other
    warnings cost no record.
    """
    if finding.code == "checkpoint/log-start-behind":
        return "reappear"
    if finding.code == REMOTE_EPOCHS:
        return "lost"
    if finding.severity is Severity.INFO:
        return None
    is_lack = finding.severity is Severity.ERROR or finding.code == "log/beginning-absent"
    return "lacks" if is_lack else "unnoticed"


def missing_beginning(partition: Partition, around: Surroundings) -> Finding | None:
    """Return the finding about a beginning that may be lost; None if it is there or was deleted.

    Its offsets are those from the lowest one that a file names up to the first segment.
    """
    is_judged = getattr(partition.directory, "kind", None) in OF_TODAY
    if not is_judged or partition.is_metadata_log or not partition.segments:
        return None
    found = _beginning(partition, around, first_epoch(partition))
    return next((one for one in found if one.severity is not Severity.INFO), None)


def unproven_beginning(partition: Partition, around: Surroundings) -> Finding | None:
    """Return a finding if a log that begins above its log start has no leader-epoch-checkpoint.

    A broker moves the first row of that file when it deletes a beginning, so that only the file
    shows whether the beginning was deleted in order. Batches of magic 0 and 1 have no epoch. The
    log start row of a broker that stopped in order shows it too.
    """
    is_judged = getattr(partition.directory, "kind", None) in OF_TODAY
    there = FileKind.LEADER_EPOCH_CHECKPOINT in partition.fixed
    if not is_judged or there or partition.is_metadata_log or not partition.segments:
        return None
    if around.retention and around.retention.is_tiered:
        return None  # The beginning is in remote storage: see `remote_epochs`.
    first = first_base(partition, compacted=True) or 0
    start = around.log_start or 0
    if start >= first:
        return None
    for chunk in (one for segment in partition.segments for one in segment.batches(payload=False)):
        if not len(chunk.table):
            continue
        epoch = int(chunk.table.leader_epoch[0])
        if epoch < 0:
            return None
        text = (
            f"batches from offset {first} onwards have leader epoch {epoch}, but there is no file: "
            f"nothing shows whether {wording.offsets(start, first - 1)} were deleted in order"
        )
        return Finding("leader-epoch/missing", text, None, None, start, first - 1, partition.path)
    return None


def remote_epochs(partition: Partition, around: Surroundings) -> Iterator[Finding]:
    """Yield a finding if a tiered log lacks the leader epochs of what is in remote storage alone.

    A leader deletes the remote segments of older leader epochs, and finds no offset in others.
    """
    retention, start = around.retention, around.log_start
    if retention is None or not retention.is_tiered or start is None or not partition.segments:
        return
    rows = [(row.leader_epoch, row.start_offset) for row, _ in epoch_rows(partition)]
    local = partition.segments[0].base_offset
    if not lacks_remote_epochs(rows, start, local) or (rows and not around.has_start_rows):
        return
    file = FileKind.LEADER_EPOCH_CHECKPOINT
    what = f"{file} begins at offset {rows[0][1]}" if rows else f"there is no row in {file}"
    if file not in partition.fixed:
        what = f"{file} is missing"
    text = (
        f"{wording.offsets(start, local - 1)} are in remote storage alone, and {what}: as the "
        "leader the broker DELETES the remote segments of earlier leader epochs, and does not find "
        "the others; a start adds only the epochs of the local segments that it recovers; 'logtool "
        "remote restore' writes the whole file"
    )
    if rows and not around.clean:
        text += "; unless the records were deleted in the minute before the stop"
    place = start, local - 1, partition.path / file.value
    yield Finding("leader-epoch/missing-remote", text, None, None, *place)


def missing_end(partition: Partition, end: int, *, clean: bool) -> Finding | None:
    """Return a finding if a file of the partition proves offsets behind its log end, `end`.

    Without a clean stop only leader epochs prove anything about a log that has bytes: a log dir
    that is copied while its broker runs has producer snapshots that are ahead of the log.
    """
    is_live = getattr(partition.directory, "kind", None) is DirectoryKind.LIVE
    if partition.is_metadata_log or not is_live:
        return None
    has_bytes = any(segment.log.size for segment in partition.segments)
    claims = unmet(end_claims(partition), Presence(exists=True, end=end))
    if has_bytes and not clean:
        claims = (one for one in claims if one.kind is ClaimKind.LEADER_EPOCH)
    claim = max(claims, key=lambda one: one.offset, default=None)
    if claim is None:
        return None
    what = f"ends at {end}" if has_bytes else "is empty" if partition.segments else "is absent"
    text = f"the log {what}, but {claim.evidence}: {claim.kind} {claim.offset}"
    if has_bytes and not clean:
        text += ": records are lost, unless the broker was killed just after it truncated the log"
    path = claim.evidence.path if has_bytes else partition.path
    span = end, claim.offset - 1
    if not has_bytes:
        found = Finding("log/lost", text, None, None, *span)
    elif claim.kind is ClaimKind.PRODUCER_SNAPSHOT:
        found = Finding("producer-snapshot/beyond-end", text, None, None, *span)
    else:
        found = Finding("leader-epoch/beyond-end", text, None, None, *span)
    return found.placed(path, topic=partition.topic, partition=partition.number)


def _replayed(partition: Partition) -> ProducerState:
    """Return the producers at the end of a log, by all of its batches."""
    state = ProducerState()
    for segment in partition.segments:
        for chunk in segment.batches(payload=False):
            state.apply(producer_state.significant(chunk.table))
    return state


def has_no_snapshot(partition: Partition) -> bool:
    """Return whether a broker finds no snapshot; after a clean stop its producer state is empty.

    A start first deletes the snapshots that stand at no base offset, but not the newest one if no
    segment begins behind it. A snapshot that cannot be read counts: the state is then rebuilt.
    """
    bases = {segment.base_offset for segment in partition.segments}
    offsets = {file.name.offset or 0 for file in partition.snapshots}
    newest = max(offsets, default=-1)
    return offsets.isdisjoint(bases) and newest < max(bases, default=0)


def _snapshots(partition: Partition, around: Surroundings, end: int | None) -> Iterator[Finding]:
    """Yield a finding if a log that was closed in order has no snapshot at its end."""
    if not around.clean or end is None or not any(one.log.size for one in partition.segments):
        return
    if any((file.name.offset or 0) >= end for file in partition.snapshots):
        return  # A snapshot behind the log end has a rule of its own.
    what = f"the broker stopped in order, and no snapshot is at the log end {end}"
    if not has_no_snapshot(partition):
        text = f"{what}: the broker reads the log behind an older snapshot"
        yield Finding("producer-snapshot/absent", text, path=partition.path)
        return
    what = f"{what}, nor any older one that the broker takes"
    state = _replayed(partition)
    first = state.oldest_open(none=end)
    if first < end:
        text = (
            f"{what}: the broker forgets the transaction that is open from offset {first} onwards, "
            "so that consumers with read_committed read its records"
        )
        yield Finding(
            "producer-snapshot/lost-transaction", text, first_offset=first, path=partition.path
        )
        return
    since_ms = around.stopped_ns // 1_000_000 - EXPIRATION_MS
    known = sum(one.timestamp > since_ms for one in state.producers.values())
    text = f"{what}: the broker forgets {wording.count(known, 'producer')}"
    code = "producer-snapshot/lost" if known else "producer-snapshot/absent"
    yield Finding(code, text, path=partition.path)


def _beginning(
    partition: Partition, around: Surroundings, epoch: FirstEpoch | None
) -> Iterator[Finding]:
    """Yield a finding if files of the partition name offsets before its first segment."""
    retention = around.retention
    first = first_base(partition, compacted=retention is None or retention.compacts)
    claims: list[Claim | Revocation] = [*start_claims(partition, epoch)]
    about = partition.topic or "", partition.number or 0
    if around.clean and around.log_start:
        # A broker rewrites the row when it stops in order.
        evidence = Evidence(around.row_path)
        claims.append(Claim(about, ClaimKind.LOG_START, evidence, around.log_start))
    if retention and retention.is_remote:
        remote = frozenset({ClaimKind.FIRST_EPOCH, ClaimKind.LOG_START})
        claims.append(Revocation(about, Evidence(partition.path), remote))
    missed = list(unmet(standing(claims), Presence(exists=True, start=first)))
    if first is None or not missed:
        return
    may_be_cleaned = _may_be_cleaned(around, first)
    if may_be_cleaned and _was_empty(partition, first):
        return
    lowest = min(missed, key=lambda one: one.offset)
    # What lies below the log start offset was deleted, also within a segment that is lost.
    start = max(lowest.offset, around.log_start or 0)
    if start >= first:
        return
    text = f"the log begins at {first}, but {lowest.evidence}: {lowest.kind} {lowest.offset}"
    place = start, first - 1, partition.path
    text = f"{text}; {wording.offsets(start, first - 1)}"
    named = any(one.kind is not ClaimKind.FIRST_EPOCH for one in missed)
    # A broker that deletes a beginning moves the first row of leader-epoch-checkpoint, and renames
    # all files of a segment. So retention explains the rest only in a copy that was made meanwhile,
    # or after a kill at that moment.
    by_retention = retention is not None and _may_be_deleted(partition, around)
    if may_be_cleaned:
        # The cleaner leaves rows and names of segments as they are.
        why = "lost, unless compaction had left no record there"
        yield Finding("log/beginning-cleaned", f"{text}: {why}", None, None, *place)
    elif (retention and not by_retention) or (named and (around.clean or retention is None)):
        yield Finding(
            "log/beginning-lost", f"{text}: lost, retention does not explain it", None, None, *place
        )
    elif retention is None:
        why = "lost, unless the topic is in remote storage"
        yield Finding("log/beginning-absent", f"{text}: {why}", None, None, *place)
    elif around.clean or named:
        why = "lost, unless retention deleted them just before a kill"
        yield Finding("log/beginning-absent", f"{text}: {why}", None, None, *place)
    else:
        why = "retention may have deleted them, or they are lost"
        yield Finding("log/beginning-deleted", f"{text}: {why}", None, None, *place)


def _may_be_cleaned(around: Surroundings, first: int) -> bool:
    """Return whether the cleaner may have removed all records below the offset `first`."""
    cleaned, retention = around.cleaned, around.retention
    if cleaned is not None and (cleaned >= first or around.clean):
        return cleaned >= first
    # The row of a killed broker may be old.
    return retention is not None and retention.compacts


def _was_empty(partition: Partition, first: int) -> bool:
    """Return whether a segment without its log is known below `first`, and no index has an entry.

    The cleaner writes an empty time index for a segment that it has emptied.
    """
    before = [one for one in partition.orphans if (one.name.offset or 0) < first]
    is_known = any(one.name.kind is FileKind.TIME_INDEX for one in before)
    return is_known and not any(one.size for one in before)


def _may_be_deleted(partition: Partition, around: Surroundings) -> bool:
    """Return whether retention may have deleted what was before the first segment."""
    made = partition.fixed.get(FileKind.PARTITION_METADATA)
    size = sum(segment.log.size for segment in partition.segments)
    return around.retention is not None and around.retention.may_have_deleted(
        size, _oldest_ms(partition), made.mtime_ns if made else 0, around.stopped_ns
    )


def _oldest_ms(partition: Partition) -> int:
    """Return the time of the first batch that is left, in ms; 0 if no batch has a time."""
    for segment in partition.segments:
        for chunk in segment.batches(payload=False):
            if len(chunk.table):
                return max(0, int(chunk.table.max_timestamp[0]))
    return 0


def _start_row(
    partition: Partition, around: Surroundings, end: int | None, first: FirstEpoch | None
) -> Iterator[Finding]:
    """Yield a finding if log-start-offset-checkpoint lacks a row that DeleteRecords made.

    DeleteRecords moves the first row of leader-epoch-checkpoint into the log, in front of batches
    of another epoch or in the midst of batches of its own. The row of the log start is written
    within a minute, and at a stop in order. Without it the log begins at its first segment again.
    A broker that was killed within that minute begins so and keeps the epoch: its later rows are
    lower too, also after a stop in order.
    """
    epochs = partition.fixed.get(FileKind.LEADER_EPOCH_CHECKPOINT)
    if around.log_start is None or epochs is None or first is None:
        return
    row, evidence = first
    if end is None:  # The active segment has no sound batch: the log does not end below its base.
        end = partition.segments[-1].base_offset
    start, begin = max(around.log_start, partition.segments[0].base_offset), row.start_offset
    if not start < begin <= end or _epoch_before(partition, begin) != row.leader_epoch:
        return
    # An epoch that recovery found again begins at a base offset.
    at_base = any(segment.base_offset == begin for segment in partition.segments)
    there = f"has the row {around.log_start}" if around.log_start else "has no row"
    text = (
        f"{around.row_path.name} {there} of the partition, but {evidence}: "
        f"{ClaimKind.FIRST_EPOCH} {begin}: {wording.offsets(start, begin - 1)}, which were "
        "deleted, are readable again"
    )
    is_lost = around.clean and around.rows_replaced and not at_base
    code = "checkpoint/log-start-lost" if is_lost else "checkpoint/log-start-behind"
    yield Finding(code, text, None, None, start, begin - 1, around.row_path)


def _epoch_before(partition: Partition, offset: int) -> int | None:
    """Return the leader epoch of the last batch that begins below an offset; None without one."""
    found = None
    for segment in partition.segments:
        behind = segment.next_base_offset
        if segment.base_offset >= offset or (behind is not None and behind < offset):
            continue
        for chunk in segment.batches(payload=False):
            below = chunk.table[chunk.table.base_offset < offset]
            if len(below):
                found = int(below.leader_epoch[-1])
    return found
