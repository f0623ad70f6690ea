"""Rules for the rows of a checkpoint, judged by the log that they describe.

Nothing is made up: a row only changes to what a broker itself would make of it, and a row that
cannot be judged stays. Source: ``LeaderEpochFileCache``, ``LogLoader``, ``LogManager``,
``LogCleanerManager`` (Kafka 3.9 and 4.x).
"""

from collections.abc import Iterable, Sequence

from logtool.checks.continuity import Run
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass

Epoch = tuple[int, int]
"""(leader epoch, start offset)."""


@dataclass(frozen=True, slots=True)
class LogBounds:
    """Offsets at which the log of a partition begins and ends."""

    first_base_offset: int
    log_end_offset: int | None
    """None if the active segment does not show it."""


def log_start(extent: LogBounds, row: int | None) -> int:
    """Return the log start offset that a broker has with this row of log-start-offset-checkpoint.

    A row beyond the end is taken for the end.
    """
    start = max(extent.first_base_offset, row or 0)
    return start if extent.log_end_offset is None else min(start, extent.log_end_offset)


def first_epoch_start(rows: Sequence[Epoch], runs: Iterable[Run], start: int) -> int:
    """Return the offset at which the leader epochs of a log may begin; the log begins at `start`.

    It is that of the first row, if all batches below are of its epoch or of earlier ones: so
    DeleteRecords leaves it, and after a kill the row alone shows what was deleted.
    """
    if not rows or rows[0][1] <= start:
        return start
    epoch, offset = rows[0]
    may_begin = all(
        run_epoch == epoch if first < offset <= last else run_epoch <= epoch
        for run_epoch, first, last in runs
        if first < offset
    )
    return offset if may_begin else start


def epochs(
    rows: Sequence[Epoch], runs: Sequence[Run], *, start: int, end: int | None
) -> list[Epoch]:
    """Return the leader epochs of a log that begins at offset `start` and ends before `end`.

    `rows` are those of the present file. One that no batch contradicts stays: it may be of an epoch
    in which nothing was written, or name a start whose batches compaction has removed since. One
    at the very end stays too, since a leader writes it when it is elected.
    """
    known = [run for run in runs if run[0] >= 0]
    kept = [row for row in rows if _agrees(row, known, start) and (end is None or row[1] <= end)]
    # With the epochs that end before the log starts: the last of them is that of its first offset.
    pairs = {*kept, *((epoch, first) for epoch, first, _ in known)}
    return _from_start(_assigned(sorted(pairs, key=lambda row: (row[1], row[0]))), start)


def _agrees(row: Epoch, runs: Iterable[Run], start: int) -> bool:
    """Return whether all batches before the row are of earlier epochs, all behind it of no such.

    A row at the start of the log is that of the epoch which is current there, and that may have
    begun before: `_from_start`.
    """
    epoch, offset = row
    if epoch < 0 or offset < 0:
        return False
    if offset == start:
        return all(
            (run_epoch >= epoch or last < start) and (run_epoch <= epoch or first >= start)
            for run_epoch, first, last in runs
        )
    return all(
        run_epoch >= epoch if first >= offset else run_epoch < epoch and last < offset
        for run_epoch, first, last in runs
    )


def _assigned(rows: Iterable[Epoch]) -> list[Epoch]:
    """Return the rows that stay if they are assigned in order: both columns rise strictly."""
    cache: list[Epoch] = []
    for epoch, offset in rows:
        if cache and cache[-1][0] == epoch:
            continue
        while cache and (cache[-1][0] >= epoch or cache[-1][1] >= offset):
            cache.pop()
        cache.append((epoch, offset))
    return cache


def _from_start(rows: list[Epoch], start: int) -> list[Epoch]:
    """Return the rows from `start` on; the epoch that holds that offset begins there."""
    before = [row for row in rows if row[1] <= start]
    behind = rows[len(before) :]
    return [(before[-1][0], start), *behind] if before else behind


def offset(kind: FileKind, row: int, extent: LogBounds, start: int) -> int:
    """Return the offset that a checkpoint of `kind` should hold instead of `row`.

    A recovery point only ever comes down, to the end of the log: that what stands below it was
    flushed is not for the log to say. A row of log-start-offset-checkpoint below the first segment
    stays: it does nothing, but for a topic with tiered storage it is where the remote log starts.
    """
    end = extent.log_end_offset
    if end is None:
        return row
    if kind in (FileKind.RECOVERY_POINT_CHECKPOINT, FileKind.LOG_START_CHECKPOINT):
        return min(row, end)
    if kind is FileKind.REPLICATION_CHECKPOINT:
        return max(start, min(row, end))
    return row if start <= row <= end else start
