"""The numbers of a partition dir, for a run that keeps no listing."""

from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition
from logtool.node import host_limits
from logtool.node.host_limits import Needs


@dataclass(frozen=True, slots=True)
class PartitionNumbers:
    """The numbers of a partition dir."""

    segments: int
    log_bytes: int
    """Bytes of the logs alone."""
    bytes: int
    """Bytes of all its files."""
    needs: Needs
    """The needs of a broker on its host."""


def numbers_of(partition: Partition) -> PartitionNumbers:
    """Return the numbers of a listed partition."""
    return PartitionNumbers(
        segments=len(partition.segments),
        log_bytes=sum(segment.log.size for segment in partition.segments),
        bytes=sum(file.size for file in partition.files()),
        needs=host_limits.needs(partition),
    )
