"""One new log: where it goes, its bytes, and what is counted while they are written."""

from collections.abc import Callable, Iterator
from dataclasses import field
from pathlib import Path

import numpy as np

from logtool.formats.record_batch import BatchTable, Column
from logtool.lazy_dataclass import dataclass
from logtool.log.flavour import FlavourName

LEFT_OUT = "left-out"
"""The directory with what Kafka has no place for."""
LEFT_OUT_SCHEMA = "logtool.left-out/1"
PARTITIONS = "partitions"
TOPIC = "converted"
"""Topic of a segment whose folders do not name one."""


@dataclass(slots=True)
class OutputSegment:
    """One new log; its counts are complete once the caller has consumed its blocks."""

    source: Path
    target: Path
    """Path below the output directory."""
    flavour: FlavourName
    """Flavour of the target."""
    blocks: Callable[["OutputSegment"], Iterator[bytes]]
    offsets: str
    """Kind of its offsets: ``kafka``, or ``raft`` if Kafka's offsets are not known."""
    term: int | None = None
    """Term of a segment of Redpanda."""
    neighbours: dict[Path, bytes] = field(default_factory=dict)
    """Files next to the log, by path below the output directory; there after the blocks."""
    batches: int = 0
    records: int = 0
    bytes: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    left_out: int = 0
    """Batches that Kafka has no place for."""
    damaged: int = 0
    """Ranges that are no sound batch."""

    def count(self, table: BatchTable, first_offset: Column) -> None:
        """Count batches that begin at some offsets (int64) of the target."""
        if not len(table):
            return
        self.batches += len(table)
        self.records += int(np.maximum(table.record_count, 0).sum())
        if self.first_offset is None:
            self.first_offset = int(first_offset[0])
        span = table.last_offset[-1:] - table.base_offset[-1:]  # a scalar would warn of an overflow
        self.last_offset = int(first_offset[-1]) + int(span[0])


def runs(mask: Column) -> Iterator[slice]:
    """Yield the rows where a mask is set, as runs of neighbours."""
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False)).tolist()
    yield from map(slice, edges[::2], edges[1::2])
