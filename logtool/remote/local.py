"""The local part of partitions: the copies in log dirs, with their ends and leader epochs.

The first local segment of a tiered log may lie far above its log start: its base offset is the
local log start offset. leader-epoch-checkpoint has the epochs since the log start.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import offset_index
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.loading.epochs import EpochCache
from logtool.loading.epochs import read as read_epochs
from logtool.loading.kafka_reading import OfflineError, StartFailsError
from logtool.log import opening
from logtool.log.dir import Partition, Segment
from logtool.log.flavour import Flavour
from logtool.metadata.log_start import lacks_remote_epochs
from logtool.node.identity import listed_topic_id

Rows = tuple[tuple[int, int], ...]
_SMALL = 1024 * 1024
"""Bytes of a log that is read without its index."""


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
    file_epochs: Rows
    """The rows of leader-epoch-checkpoint alone; empty without a file that a broker can read."""
    holes: Rows
    """First and last offset of each range between the local segments that none of them has."""

    @property
    def rank(self) -> tuple[int, int]:
        """Return the numbers by which copies of a partition are compared."""
        return self.leader_epoch, self.log_end

    @property
    def lacks_remote_epochs(self) -> bool:
        """Return whether the file lacks the leader epochs of what is in remote storage alone."""
        return bool(self.segments) and lacks_remote_epochs(
            self.file_epochs, self.log_start, self.local_start
        )

    def has(self, first: int, last: int) -> bool:
        """Return whether the local segments hold these offsets, both included."""
        is_inside = self.local_start <= first and last < self.log_end
        return is_inside and not any(low <= last and high >= first for low, high in self.holes)

    def bytes_from(self, offset: int) -> int:
        """Return the bytes of the local segments that begin at an offset or behind it."""
        return sum(size for base, size in self.segments if base >= offset)


def read(path: Path, flavour: Flavour, log_start: int, cleaned: int = 0) -> LocalCopy:
    """Return a copy; only headers at the ends of segments are read. UnreadableError.

    `log_start` is its row in log-start-offset-checkpoint, 0 without one. Below `cleaned`, its row
    in cleaner-offset-checkpoint, offsets are missing in order.
    """
    listed = opening.open_partition(path, flavour)
    end, epoch, cache = 0, -1, _epochs(listed)
    file_epochs = tuple(cache.rows)
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
        file_epochs=file_epochs,
        holes=tuple(_holes(listed, max(cleaned, log_start))),
    )


def _holes(listed: Partition, start: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges from `start` on that lie between the segments, and in none of them."""
    for segment in listed.segments[:-1]:
        index = segment.indexes.get(FileKind.OFFSET_INDEX)
        last, _ = tail(segment, index.path if index else None)
        first = max(start, segment.base_offset if last is None else last + 1)
        behind = segment.next_base_offset or first
        # Consumers stop at damage, and skip a hole.
        if first < behind and not any(one.damage for one in segment.batches(payload=False)):
            yield first, behind - 1


def tail(segment: Segment, index: Path | None) -> tuple[int | None, int]:
    """Return last offset and timestamp of a log, None and 0 without a batch.

    Only the batches behind the last entry of its offset index are read, if it leads to one.
    """
    position = 0
    if index is not None and segment.log.size > _SMALL:
        entries = offset_index.parse(files.read_small(index, 2**31))
        if len(entries) and 0 < entries.positions[-1] < segment.log.size:
            position = int(entries.positions[-1])
    for start in dict.fromkeys([position, 0]):
        end, when = None, 0
        for chunk in segment.batches(start=start, payload=False):
            if len(chunk.table):
                end = int(chunk.table.last_offset.max())
                when = int(chunk.table.max_timestamp.max())
        if end is not None:
            return end, when
    return None, 0


def best(copies: Sequence[LocalCopy], topic_id: str) -> LocalCopy | None:
    """Return the furthest copy of a topic id, or None."""
    known = [one for one in copies if one.topic_id in (None, topic_id)]
    return max(known, key=lambda one: one.rank, default=None)


def _epochs(listed: Partition) -> EpochCache:
    file = listed.fixed.get(FileKind.LEADER_EPOCH_CHECKPOINT)
    with suppress(UnreadableError, OfflineError, StartFailsError):
        return read_epochs(files.read_small(file.path)) if file else EpochCache()
    return EpochCache()
