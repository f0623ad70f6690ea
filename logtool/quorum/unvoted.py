"""Records of an observer that no voter has, by their kinds.

An observer fetches from a voter, so its copy is longer where the voters lost the end of their logs,
or where its volume was copied later. A NoOpRecord changes nothing: the active controller writes one
every 500 ms, so that the high watermark moves on. Source: ``QuorumController`` (Kafka 4.3).
"""

from collections import Counter

from logtool.errors import LogtoolError
from logtool.lazy_dataclass import dataclass
from logtool.metadata import reading
from logtool.metadata.history import NO_OP, record_name
from logtool.quorum.copy import MetadataCopy

UNREADABLE = "unreadable"
SNAPSHOT = "KRaft snapshot"


@dataclass(frozen=True, slots=True)
class RecordCount:
    """Records of one kind."""

    record: str
    """Name of the kind; `UNREADABLE` for the rest of a log that cannot be read, `SNAPSHOT` for
    records of which only a snapshot is left."""
    count: int

    @property
    def is_change(self) -> bool:
        """Return whether these records change the state of the cluster."""
        return self.record != NO_OP


def unvoted(copy: MetadataCopy, offset: int) -> tuple[RecordCount, ...]:
    """Return the records of a copy from `offset` on, those of the most frequent kind first."""
    found: Counter[str] = Counter()
    if copy.batches.log_start > offset:
        found[SNAPSHOT] += 1
    try:
        for segment in copy.listed.segments:
            path, base = segment.log.path, segment.base_offset
            is_last = segment.next_base_offset is None
            for batch in reading.batches(path, base, active=is_last):
                if batch.last_offset >= offset:
                    found.update(
                        record_name(entry.content)
                        for entry in batch.entries
                        if entry.offset >= offset
                    )
    except LogtoolError:
        found[UNREADABLE] += 1
    return tuple(RecordCount(name, count) for name, count in found.most_common())
