"""Committed offsets of groups that run ahead of the data.

A volume with ``__consumer_offsets`` may be newer than the volume whose replica leads. Then a group
has read records that the leader does not have, and misses as many new ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from logtool.cluster.partitions import PartitionOutlook
from logtool.errors import NothingMatchedError, UnreadableError
from logtool.findings import Finding
from logtool.formats.names import TopicPartition
from logtool.groups.run import Groups
from logtool.groups.state import GroupState
from logtool.lazy_dataclass import dataclass
from logtool.log.selection import Selection
from logtool.running.run import Run


@dataclass(frozen=True, slots=True)
class AheadOffset:
    """A committed offset behind the log end of a leader that controllers may elect."""

    group: str
    topic: str
    partition: int
    offset: int
    """The committed offset, by the furthest copy of ``__consumer_offsets``."""
    log_end: int
    """The smallest log end of these leaders."""
    nodes: tuple[int | None, ...]
    """Nodes of the leaders whose log ends before the offset."""

    @property
    def ahead(self) -> int:
        """Return by how many offsets the group is ahead of the log end."""
        return self.offset - self.log_end


def ahead(
    paths: Sequence[Path],
    partitions: Mapping[TopicPartition, PartitionOutlook],
    selection: Selection,
    run: Run,
    now_ms: int,
) -> Iterator[AheadOffset | Finding | UnreadableError]:
    """Yield the offsets that are ahead, and what is wrong with ``__consumer_offsets``."""
    for item in Groups(paths=paths, now_ms=now_ms, selection=selection, run=run):
        if isinstance(item, NothingMatchedError):
            continue  # no group has committed an offset
        if isinstance(item, Finding | UnreadableError):
            yield item
        elif isinstance(item, GroupState):
            for one in item.offsets:
                found = partitions.get((one.topic, one.partition))
                shorter = [
                    leader
                    for leader in (found.elected if found else ())
                    if leader.log_end < one.offset
                ]
                if shorter:
                    yield AheadOffset(
                        group=one.group,
                        topic=one.topic,
                        partition=one.partition,
                        offset=one.offset,
                        log_end=min(leader.log_end for leader in shorter),
                        nodes=tuple(leader.node for leader in shorter),
                    )
