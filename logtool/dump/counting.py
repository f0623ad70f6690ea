"""How many records of each partition a dump would print, without printing one."""

from collections.abc import Iterator
from pathlib import Path

from logtool.dump.blocks import Block
from logtool.dump.records import Object
from logtool.dump.stream import Dump
from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PartitionCount:
    """The number of records of one partition that would be printed."""

    path: Path
    """The partition dir, or a file that lies in none."""
    topic: str | None
    partition: int | None
    records: int


@dataclass(frozen=True, slots=True)
class TotalCount:
    """The number of records of all partitions that would be printed."""

    partitions: int
    """Partitions or files with such records."""
    records: int


Place = tuple[Path, str | None, int | None]
"""A partition dir with its topic and partition, or a file that lies in none."""


@dataclass(slots=True)
class Count:
    """Iterate to get what cannot be read or shown, then the counts of partitions and of all."""

    job: Dump

    def __iter__(self) -> Iterator[Object | UnreadableError | PartitionCount | TotalCount]:
        """Yield errors as they are met, and the counts at the end."""
        logs = self.job.logs()
        counts = {_place(log.path, log.topic, log.partition): 0 for log in logs}
        for item in self.job:
            if isinstance(item, UnreadableError):
                yield item
            elif isinstance(item, Block):
                origin = item.origin
                assert item.records
                counts[_place(origin.path, origin.topic, origin.partition)] += len(
                    item.records.offset
                )
            elif item["type"] == "record":
                counts[_place(Path(item["path"]), item["topic"], item["partition"])] += 1
            elif item["type"] == "error":
                yield item
        if not logs:
            return  # of nothing there is no count
        for (path, topic, partition), records in counts.items():
            yield PartitionCount(path, topic, partition, records)
        yield TotalCount(
            partitions=sum(records > 0 for records in counts.values()),
            records=sum(counts.values()),
        )


def _place(path: Path, topic: str | None, partition: int | None) -> Place:
    return path if topic is None else path.parent, topic, partition
