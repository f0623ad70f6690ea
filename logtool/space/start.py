"""The room on a disk that the start of a broker takes, and the log cleaner after it.

After a kill, and for a segment without an offset index, a start writes the indexes of the segment
again and a producer snapshot at its end. It writes each checkpoint of the log dir as a whole, under
another name first. The indexes of active segments get the length of ``segment.index.bytes``; the
new part is a hole, which takes no blocks before entries are written.

The log cleaner copies the records that stay before it removes the old segments, and these keep
their room for ``file.delete.delay.ms``: each thread may write as much as one log has in closed
segments.

Source: ``LogLoader.recoverSegment``, ``LogSegment.recover``, ``AbstractIndex.resize``,
``UnifiedLog.rebuildProducerState``, ``CheckpointFile.write``, ``Cleaner.cleanSegments``
(Kafka 4.2; the blocks were measured with 4.4.0).
"""

import os
from dataclasses import field
from heapq import nlargest

from logtool.formats.names import format_offset
from logtool.lazy_dataclass import dataclass
from logtool.retention.run import PartitionRetention
from logtool.retention.segments import StampSource
from logtool.retention.settings import (
    CLEANER,
    CLEANER_THREADS,
    INDEX_BYTES,
    INDEX_INTERVAL,
    RetentionSettings,
)
from logtool.space.usage import BLOCK, ActiveIndexes

_PAGE = 4096
"""Bytes of a block of usual file systems."""
_OFFSET_ENTRY, _TIME_ENTRY = 8, 12
_ROW_DIGITS = 24
"""Bytes of an offset, a partition number and three separators in a row of a checkpoint."""
_COPIES = 4
"""Three offset checkpoints of a log dir, and one of them under its temporary name."""
_SMALL_FILES = 8 * _PAGE
"""Room for the small files of a log dir: the metadata log, leader epochs, ``meta.properties``."""


@dataclass(slots=True)
class StartRoom:
    """The bytes of one file system that a start takes at most, added up log by log."""

    index_growth_bytes: int = 0
    """Bytes by which the files of indexes become longer; they are holes."""
    recovery_bytes: int = 0
    """Bytes of the blocks of indexes and snapshots that are written again."""
    log_dirs: int = 0
    _row_bytes: int = 0
    """Bytes of the rows of an offset checkpoint with all logs."""
    _closed: list[int] = field(default_factory=list)
    """Bytes of the closed segments of each compacted log."""
    _threads: int = 1

    @property
    def start_bytes(self) -> int:
        """Return the bytes of the blocks that a start writes at most."""
        return (
            self.recovery_bytes
            + _COPIES * _whole_blocks(self._row_bytes)
            + _SMALL_FILES * self.log_dirs
        )

    @property
    def cleaner_bytes(self) -> int:
        """Return the bytes that the threads of the log cleaner write at most at a time."""
        return sum(nlargest(self._threads, self._closed))

    def add(
        self, log: PartitionRetention, active: ActiveIndexes | None, settings: RetentionSettings
    ) -> None:
        """Add one log; `active` are the indexes of its active segment, None if not known."""
        topic = log.directory.topic
        limit = settings.value(topic, INDEX_BYTES).number
        self._row_bytes += len(log.path.name) + _ROW_DIGITS
        if active is not None and active.base_offset is not None:
            for size, entry in ((active.offsets, _OFFSET_ENTRY), (active.times, _TIME_ENTRY)):
                self.index_growth_bytes += max(0, limit - limit % entry - size)
        interval = max(1, settings.value(topic, INDEX_INTERVAL).number)
        self.recovery_bytes += _recovered(log, limit, interval)
        if log.limits.compacts and settings.of_broker(CLEANER).is_true:
            self._threads = max(1, settings.of_broker(CLEANER_THREADS).number)
            self._closed += filter(None, [sum(log.log.columns.size[:-1])])


def _recovered(log: PartitionRetention, limit: int, interval: int) -> int:
    """Return the bytes of the blocks that the recovery of segments adds."""
    found = 0
    snapshot = f"{log.path}/{format_offset(log.log.snapshot)}.snapshot"
    for base, size, source in zip(
        log.log.columns.base_offset, log.log.columns.size, log.log.sources, strict=True
    ):
        if source is not StampSource.BATCHES:
            continue
        entries, stem = size // interval + 1, f"{log.path}/{format_offset(base)}"
        for end, entry in ((".index", _OFFSET_ENTRY), (".timeindex", _TIME_ENTRY)):
            needed = _whole_blocks(min(limit, entries * entry))
            found += max(0, needed - _blocks(stem + end))
        found += max(_PAGE, _blocks(snapshot))
    return found


def _whole_blocks(size: int) -> int:
    """Return a size rounded up to whole blocks of a file system."""
    return -(-size // _PAGE) * _PAGE


def _blocks(path: str) -> int:
    """Return the bytes of the blocks of a file; 0 if it is not there."""
    try:
        return os.lstat(path).st_blocks * BLOCK
    except OSError:
        return 0
