"""The local part of partitions: the copies in log dirs, with their ends and leader epochs.

The first local segment of a tiered log may lie far above its log start: its base offset is the
local log start offset. leader-epoch-checkpoint has the epochs since the log start.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.loading.epochs import EpochCache
from logtool.loading.epochs import read as read_epochs
from logtool.loading.kafka_reading import OfflineError, StartFailsError
from logtool.log import opening
from logtool.log.dir import Partition
from logtool.log.flavour import Flavour
from logtool.node.identity import listed_topic_id

Rows = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class LocalCopy:
    """One copy of a partition in a log dir."""

    path: Path
    topic_id: str | None
    """Topic id in partition.metadata; None without that file."""
    log_start: int
    """The row of log-start-offset-checkpoint; 0 without one, which a broker takes then too."""
    local_start: int
    """Base offset of the first local segment."""
    log_end: int
    leader_epoch: int
    """Leader epoch of the last batch; -1 without one."""
    epochs: Rows
    """Leader epochs with their first offsets; empty without a file that a broker can read."""
    segments: Rows
    """Base offset and size of each local segment, in order."""

    @property
    def rank(self) -> tuple[int, int]:
        """Return the numbers by which copies of a partition are compared."""
        return self.leader_epoch, self.log_end

    def bytes_from(self, offset: int) -> int:
        """Return the bytes of the local segments that begin at an offset or behind it."""
        return sum(size for base, size in self.segments if base >= offset)


def read(path: Path, flavour: Flavour, log_start: int) -> LocalCopy:
    """Return a copy; only headers of the last segment with batches are read. UnreadableError.

    `log_start` is its row in log-start-offset-checkpoint, 0 without one.
    """
    listed = opening.open_partition(path, flavour)
    end, epoch, cache = 0, -1, _epochs(listed)
    for segment in reversed(listed.segments):
        end = max(end, segment.base_offset)
        for chunk in segment.batches(payload=False):
            if len(chunk.table):
                end = max(end, int(chunk.table.last_offset.max()) + 1)
                epoch = int(chunk.table.leader_epoch[-1])
                cache.add(chunk.table)
        if epoch >= 0:
            break
    cache.truncate_from_end(end)
    first = listed.segments[0].base_offset if listed.segments else log_start
    return LocalCopy(
        path=path,
        topic_id=listed_topic_id(listed),
        log_start=log_start,
        local_start=first,
        log_end=max(end, log_start),
        leader_epoch=max([epoch, *(one for one, _ in cache.rows)]),
        epochs=tuple(cache.rows),
        segments=tuple((one.base_offset, one.log.size) for one in listed.segments),
    )


def best(copies: Sequence[LocalCopy], topic_id: str) -> LocalCopy | None:
    """Return the furthest copy of a topic id, or None."""
    known = [one for one in copies if one.topic_id in (None, topic_id)]
    return max(known, key=lambda one: one.rank, default=None)


def _epochs(listed: Partition) -> EpochCache:
    file = listed.fixed.get(FileKind.LEADER_EPOCH_CHECKPOINT)
    with suppress(UnreadableError, OfflineError, StartFailsError):
        return read_epochs(files.read_small(file.path)) if file else EpochCache()
    return EpochCache()
