"""The end of each copy of a key: what removes it, and when, or why it stays.

A start removes ``.deleted`` and ``.cleaned`` files, and each ``.swap`` file of a job that was not
committed; it goes on with the deletion of ``-delete`` directories. Stray directories stay until a
person removes them. Retention deletes segments, so that a record goes with the rest of its segment.
The log cleaner rewrites all segments before the first uncleanable offset. It leaves out a record if
a dirty record of the same key has a larger offset, or the record is of an aborted transaction, or
has no key, and a tombstone if the delete horizon of its batch has passed. Files that retention or
the cleaner gives up are removed ``file.delete.delay.ms`` later.

Source: ``LogLoader.removeTempFilesAndCollectSwapFiles``, ``LogManager.deleteLogs``,
``UnifiedLog.deleteOldSegments``, ``Cleaner.buildOffsetMap``, ``Cleaner.shouldRetainRecord``
(Kafka 3.9 and 4.x).
"""

from collections.abc import Collection
from enum import StrEnum

import numpy as np

from logtool.cleaner.rules import CleaningObstacle
from logtool.cleaner.run import PartitionCleaning
from logtool.erasure.files import KeyRecords, RecordFile
from logtool.formats.names import DirectoryKind, FileState
from logtool.formats.record_batch import Column
from logtool.lazy_dataclass import dataclass
from logtool.retention.run import SegmentRetention


class Remover(StrEnum):
    """The removers of a copy, besides the rules of retention (`DeletionRule`)."""

    CLEANER = "cleaner"
    START = "start"
    PARTITION = "deleted-partition"


class Refuge(StrEnum):
    """Reasons for which a copy stays, besides the obstacles of retention and of the cleaner."""

    LATEST = "latest-value"
    TOMBSTONE = "tombstone"
    NEWER_IS_CLEAN = "newer-is-clean"
    STRAY = "stray"
    FUTURE = "future-copy"
    SWAP = "swap-file"
    OTHER_NAME = "other-name"
    UNREAD = "unread"


_NEVER_TAKEN = (
    CleaningObstacle.DISABLED, CleaningObstacle.CHECKPOINT, CleaningObstacle.FUTURE,
    CleaningObstacle.DAMAGE, CleaningObstacle.OVERFLOW,
)  # fmt: skip
"""Obstacles that no time and no new record removes."""


@dataclass(frozen=True, slots=True)
class Fate:
    """The end of a copy."""

    rule: str | None
    """The rule or the remover; None if it stays."""
    round: int | None = None
    """Number of the round of retention; None if another rule removes it."""
    gone_ms: int | None = None
    """Time from which on no byte of it is left, in ms; None if it stays."""
    obstacle: str | None = None
    """Why it stays, or why it is not gone earlier; None for neither."""


@dataclass(frozen=True, slots=True)
class Moments:
    """The times of a forecast, in ms."""

    start: int
    partition_delay: int
    """From the start until a ``-delete`` directory is removed."""
    cleaner_delay: int
    """From the start until the cleaner begins, once the high watermark is known."""


def of_leftover(file: RecordFile, uncommitted: Collection[str], moments: Moments) -> Fate | None:
    """Return the end of a copy by the name of its file and directory alone; None for a live one.

    `uncommitted` are the names of the ``.swap`` files that the start removes.
    """
    state = file.name.state
    is_removed = state in (FileState.DELETED, FileState.CLEANED)
    if is_removed or (state is FileState.SWAP and file.path.name in uncommitted):
        return Fate(Remover.START, gone_ms=moments.start)
    if file.directory.kind is DirectoryKind.DELETE:
        return Fate(Remover.PARTITION, gone_ms=moments.start + moments.partition_delay)
    if file.directory.kind is DirectoryKind.STRAY:
        return Fate(None, obstacle=Refuge.STRAY)
    if file.directory.kind is DirectoryKind.FUTURE:
        return Fate(None, obstacle=Refuge.FUTURE)
    if state is FileState.SWAP:
        return Fate(None, obstacle=Refuge.SWAP)
    return None if file.is_segment else Fate(None, obstacle=Refuge.OTHER_NAME)


def of_retention(segment: SegmentRetention, delay_ms: int) -> Fate:
    """Return the end that retention gives to a segment."""
    at_ms, why = segment.deleted_ms, segment.obstacle
    gone = None if at_ms is None else at_ms + delay_ms
    rule = None if segment.rule is None else str(segment.rule)
    return Fate(rule, segment.round, gone, None if why is None else str(why))


def of_cleaner(
    found: KeyRecords,
    aborted: Column,
    one: PartitionCleaning,
    moments: Moments,
    delay_ms: int,
    *,
    has_key: bool,
) -> tuple[tuple[Fate, ...], Column]:
    """Return the ends that the cleaner gives to the records of a key, and the number of each.

    `found` are all records of the key in the live segments of a log, and `aborted` says which are
    of aborted transactions.
    """
    extent, when = one.extent, moments.start + moments.cleaner_delay
    first, limit = extent.first_dirty_offset, extent.first_uncleanable_offset
    is_due = one.obstacle is CleaningObstacle.RATIO and one.due_ms is not None
    if is_due:
        when = max(when, one.due_ms or 0)
    elif not one.is_cleaned:
        limit = first = -1
    offset = found.offset
    counts = offset[~aborted] if has_key else offset[:0]
    newest = int(counts.max(initial=-1))
    dirty = int(counts[(counts >= first) & (counts < limit)].max(initial=-1))
    is_due_tombstone = found.is_tombstone & (found.horizon >= 0) & (found.horizon <= when)
    useless = aborted if has_key else np.ones(len(offset), np.bool_)
    goes = (offset < limit) & ((offset < dirty) | useless | is_due_tombstone)
    stays = np.where(found.is_tombstone, 3, 2)
    replaced = np.where((offset < limit) & (newest < limit), 4, 1)
    number = np.where(goes, 0, np.where((offset < newest) | useless, replaced, stays))
    # The horizon of a tombstone is not what keeps it in a log that the cleaner does not take.
    is_waiting = is_due_tombstone if one.obstacle not in _NEVER_TAKEN else found.is_tombstone
    number = np.where((number == 3) & is_waiting, 1, number)
    fates = (
        Fate(Remover.CLEANER, None, when + delay_ms, str(one.obstacle) if one.obstacle else None),
        Fate(None, obstacle=str(one.obstacle or extent.bound)),
        Fate(None, obstacle=Refuge.LATEST),
        Fate(None, obstacle=Refuge.TOMBSTONE),
        Fate(None, obstacle=Refuge.NEWER_IS_CLEAN),
    )
    return fates, number


def earlier(retention: Fate, cleaner: Fate) -> Fate:
    """Return the end that comes first; if the record stays, the reason of the cleaner counts."""
    if retention.gone_ms is None:
        return cleaner
    if cleaner.gone_ms is None or retention.gone_ms <= cleaner.gone_ms:
        return retention
    return cleaner
