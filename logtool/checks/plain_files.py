"""Facts about the files of a partition that the fast check finds to be plain."""

from dataclasses import field

from logtool.checks.partition_numbers import PartitionNumbers
from logtool.formats import producer_snapshot
from logtool.lazy_dataclass import dataclass
from logtool.node.host_limits import Needs


@dataclass(slots=True)
class PlainFiles:
    """Further facts about the files of a partition that a look found to be plain."""

    segments: int = 0
    snapshots: list[int] = field(default_factory=list)
    """Offsets of the producer snapshots."""
    newest_snapshot: bytes = b""
    """Content of the newest producer snapshot; empty without one."""
    epochs: tuple[tuple[int, int], ...] = ()
    """Entries of leader-epoch-checkpoint."""
    epochs_content: bytes = b""
    """Content of leader-epoch-checkpoint."""
    log_bytes: int = 0
    """Bytes of the logs."""
    other_bytes: int = 0
    """Bytes of all other files."""
    last_bytes: int = 0
    """Bytes of the log of the last segment."""
    last_position: int = 0
    """Position in the last entry of the offset index of the last segment; 0 without one."""
    inactive_indexes: int = 0
    """Number of indexes that are not empty, in the segments before the last one."""

    @property
    def numbers(self) -> PartitionNumbers:
        """Return the same as `numbers_of` for the listed partition."""
        entries = max(0, len(self.newest_snapshot) - producer_snapshot.HEADER.size)
        return PartitionNumbers(
            segments=self.segments,
            log_bytes=self.log_bytes,
            bytes=self.log_bytes + self.other_bytes,
            needs=Needs(
                logs=1,
                segments=self.segments,
                indexes=2 + self.inactive_indexes,
                producers=entries // producer_snapshot.ENTRY_SIZE,
            ),
        )
