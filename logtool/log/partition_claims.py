"""Claims of the files of a partition dir: offsets that its log held when they were written."""

from collections.abc import Iterator
from contextlib import suppress

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import leader_epoch_checkpoint
from logtool.formats.leader_epoch_checkpoint import EpochRow
from logtool.formats.names import FileKind, FileState
from logtool.log.claims import Claim, ClaimKind, Evidence
from logtool.log.dir import Partition


def end_claims(partition: Partition) -> Iterator[Claim]:
    """Yield the claims of leader epochs, producer snapshots, and indexes without a log.

    Each says that the log end offset was at least as large. A leader-epoch-checkpoint that cannot
    be read makes no claim.
    """
    about = partition.topic or "", partition.number or 0
    for file in partition.snapshots:
        offset = file.name.offset or 0
        yield Claim(about, ClaimKind.PRODUCER_SNAPSHOT, Evidence(file.path), offset)
    for file in partition.orphans:
        yield Claim(about, ClaimKind.SEGMENT_NAME, Evidence(file.path), file.name.offset or 0)
    for row, evidence in epoch_rows(partition):
        yield Claim(about, ClaimKind.LEADER_EPOCH, evidence, max(0, row.start_offset))


def start_claims(partition: Partition, first: tuple[EpochRow, Evidence] | None) -> Iterator[Claim]:
    """Yield the claims of the `first` leader epoch, and of indexes without a log.

    Each says that the log begins at that offset or below it. A broker moves the first row of
    leader-epoch-checkpoint to the new log start when it deletes the beginning of a log
    (``LeaderEpochFileCache.truncateFromStart``).
    """
    about = partition.topic or "", partition.number or 0
    going = set(_deleted_logs(partition))
    for file in partition.orphans:
        if file.name.offset not in going:
            yield Claim(about, ClaimKind.SEGMENT_NAME, Evidence(file.path), file.name.offset or 0)
    if first:
        row, evidence = first
        yield Claim(about, ClaimKind.FIRST_EPOCH, evidence, max(0, row.start_offset))


def first_base(partition: Partition, *, compacted: bool) -> int | None:
    """Return the first base offset of a log; None without a log.

    A log that waits to be deleted counts: a broker that was killed then may not have written its
    checkpoints. So does the output of a cleaning that waits for its last rename. A segment before
    the last that is empty counts only if the log is `compacted`, because only the cleaner leaves
    such a segment.
    """
    last = partition.segments[-1:]
    full = [one for one in partition.segments[:-1] if compacted or one.log.size]
    bases = [one.base_offset for one in (*full, *last)]
    coming = (file.name.offset or 0 for file in partition.coming_logs())
    return min((*bases, *_deleted_logs(partition), *coming)) if bases else None


def _deleted_logs(partition: Partition) -> Iterator[int]:
    """Yield the base offsets of logs that a broker has renamed to delete them later."""
    for file in partition.leftovers:
        if file.name.state is FileState.DELETED and file.name.kind is FileKind.LOG:
            yield file.name.offset or 0


def first_epoch(partition: Partition) -> tuple[EpochRow, Evidence] | None:
    """Return the row of the first leader epoch; None without one."""
    return min(epoch_rows(partition), key=lambda one: one[0].start_offset, default=None)


def epoch_rows(partition: Partition) -> Iterator[tuple[EpochRow, Evidence]]:
    """Yield the rows of leader-epoch-checkpoint; no row if the file cannot be read."""
    file = partition.fixed.get(FileKind.LEADER_EPOCH_CHECKPOINT)
    if file is None:
        return
    with suppress(UnreadableError):
        for row in leader_epoch_checkpoint.parse(files.read_small(file.path)).rows:
            yield row, Evidence(file.path, row.line.number, row.line.position)
